"""The setting `remedy` of an audit in a file that a user may have edited, every other line left as it is."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from gfscore.core.errors import InputError
from gfscore.workflow.config_files import parsed
from gfscore.workflow.resolved_file import flow

REMEDY = "remedy"


def with_remedy(text: str, audit: str, remedy: Mapping[str, Any], *, where: Path) -> str:
    """Configuration with a remedy of one of its audits, in place of the one that it may have.

    Parameters
    ----------
    text : str
        The configuration as YAML.
    audit : str
        Name of the audit.
    remedy : mapping
        The setting.
    where : Path
        The file, for messages.

    Raises
    ------
    InputError
        For a file in which the setting cannot be written without changing others.
    """
    expected = parsed(text, str(where))
    expected["audits"][audit][REMEDY] = dict(remedy)

    node: yaml.Node | None = yaml.compose(text)
    for name in ("audits", audit):
        members = node.value if isinstance(node, yaml.MappingNode) else []
        node = next((value for key, value in members if key.value == name), None)

    lines = text.splitlines(keepends=True)
    if isinstance(node, yaml.MappingNode) and not node.flow_style and node.value:
        first_key, _ = node.value[0]
        line, column = first_key.start_mark.line, first_key.start_mark.column
        for key, value in node.value:
            if key.value == REMEDY:
                line = key.start_mark.line
                # The mark behind a block is where the next key begins.
                end = max(line + 1, value.end_mark.line)
                del lines[line:end]
        lines.insert(line, f"{' ' * column}{REMEDY}: {flow(remedy)}\n")

    changed = "".join(lines)
    if parsed(changed, str(where)) != expected:
        raise InputError(f"{where}: write under audits, {audit}, by hand: {REMEDY}: {flow(remedy)}")
    return changed
