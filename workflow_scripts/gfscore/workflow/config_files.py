"""Files of configurations: what is no YAML, and what YAML allows and a configuration must not hold.

Imports nothing heavy, because every run of Snakemake reads it.
"""

from pathlib import Path

import yaml

from gfscore.core.errors import InputError

MOST = 1_000_000
"""Values of a configuration, aliases written out; that of 2,000 models has some 100,000."""


def require_mapping(path):
    """Raise InputError, naming file and line, unless a file is YAML in UTF-8 with keys at its top.

    A file that is absent passes: Snakemake says so itself, or goes on with those of --configfile.
    """
    try:
        # Not libyaml's, which a hundred thousand brackets bring down.
        root = yaml.compose(Path(path).read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except FileNotFoundError:
        return
    except RecursionError:
        raise InputError(f"{path}: is nested too deeply for a configuration; correct its brackets") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); put a readable file there") from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}: line {line} is not UTF-8 text; save it as UTF-8") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where, what = (f"line {mark.line + 1}: ", error.problem) if mark else ("", " ".join(str(error).split()))
        raise InputError(
            f"{path}: {where}no YAML ({what}); look at that line and the one before: indent with spaces alone, put a "
            "blank after each colon, and close every bracket and quote"
        ) from error
    if not isinstance(root, yaml.MappingNode):
        found = "is empty" if root is None else "has no keys at its top"
        raise InputError(f"{path}: {found}; give it sections such as `run:` and `audits:`, as the shipped file has")


def require_unambiguous(path):
    """Raise InputError, naming file and lines, where a mapping of a YAML file has one key twice.

    YAML forbids it, but readers take the last one silently. Text that is no YAML is left to who reads the file.
    """
    try:
        root = yaml.compose(
            Path(path).read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        )
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return
    waiting, seen = [root], set()
    while waiting:
        node = waiting.pop()
        # An alias is the same node again.
        if id(node) in seen or not isinstance(node, yaml.CollectionNode):
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting += node.value
            continue
        lines = {}
        for key, value in node.value:
            waiting += [key, value]
            if not isinstance(key, yaml.ScalarNode) or key.value == "<<":
                continue
            name, line = (key.tag, key.value), key.start_mark.line + 1
            if name in lines:
                raise InputError(
                    f"{path}: line {line}: the key {key.value!r} stands in line {lines[name]} of the same entry "
                    "already, and only one of them would count; remove one"
                )
            lines[name] = line


def require_written_out(config):
    """Raise InputError for a configuration that contains itself, or has more than MOST values, aliases written out."""
    if _values(config, {}) > MOST:
        raise InputError(
            f"config.yaml (with --config and --configfile merged in): more than {MOST:,} values once every alias "
            "(*name) is written out, or one that contains itself; use fewer aliases"
        )


def children(data):
    """Keys or positions of a mapping or list, and what stands there; nothing for anything else."""
    return data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()


def _values(data, known):
    if not isinstance(data, dict | list):
        return 1
    if id(data) not in known:
        # Until it is known it counts as endless, which it is if it is met again meanwhile.
        known[id(data)] = MOST + 1
        known[id(data)] = min(1 + sum(_values(part, known) for _, part in children(data)), MOST + 1)
    return known[id(data)]
