"""Files that a configuration names: mistakes in their paths, and what planning a run says of those that are there."""

import errno
import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from gfscore.core import digests
from gfscore.core.errors import InputError
from gfscore.networks.architecture_files import describe_network, folder, network_files
from gfscore.networks.onnx_files import data_files
from gfscore.workflow import plan
from gfscore.workflow.config_files import Place
from gfscore.workflow.resolution import ConfigMistake

MAX_HASHED_BYTES = 1 << 20
"""Largest size in bytes of a file that is hashed whenever a run is planned, as Snakemake itself does."""

MAX_CLOCK_DIFFERENCE = 60
"""Largest difference in seconds between the clocks of machines that share files; Snakemake warns of smaller ones."""

RESERVED_CHARACTERS = set("{}<>")
"""Characters with a meaning for Snakemake in file names."""

INVALID_PATH = {errno.ENAMETOOLONG, errno.EINVAL}
"""Error codes of the system for invalid paths."""


def path_mistakes(place: Place, entry: Mapping[str, Any]) -> Iterator[ConfigMistake]:
    """Yield the invalid paths of an entry and those that Snakemake would misinterpret."""
    for key in ("path", "list"):
        path = entry.get(key)
        if not isinstance(path, str):
            continue
        try:
            Path(path).stat()
        except (OSError, ValueError) as error:
            # A null byte, half a surrogate pair, or a name or path that is too long for the file system.
            if isinstance(error, ValueError) or error.errno in INVALID_PATH:
                reason = getattr(error, "strerror", None) or error
                yield ConfigMistake((*place, key), f"no file can have the path {path[:100]!r} ({reason}); correct it")
        if set(path) & RESERVED_CHARACTERS:
            message = f"{path!r} contains braces or angle brackets, which Snakemake interprets; rename it"
            yield ConfigMistake((*place, key), message)


def missing_files(config: Mapping[str, Any], audits: Iterable[str]) -> list[str]:
    """Files that steps of some audits need and that are neither there nor downloaded, a message for each.

    Not those that an earlier run has read, whose results are there.
    """
    found = {}
    for audit in audits:
        for name in plan.datasets_of(config, audit):
            entry = config["datasets"][name]
            read = Path(f"results/datasets/{name}.json").exists()
            for path in (entry.get("path"), *(entry.get(key, {}).get("path") for key in ("corrupted", "generator"))):
                if path and not read and not Path(path).exists():
                    found[path] = f"{path}: there is no such file or folder, of dataset {name}"
        for model in plan.models_of(config, audit):
            entry = plan.entry_of(config, **model)
            zoo = plan.zoo_of(config, model["dataset"])
            read = Path(f"results/checkpoints/{zoo}/{model['threat']}/{model['model']}.json").exists()
            path = None if plan.is_downloaded(entry) or read else entry.get("path")
            if path and not Path(path).exists():
                found[path] = f"{path}: there is no such file, of model {model['threat']}/{model['model']}"
            elif path and entry["source"] == "onnx":
                for beside in data_files(path):
                    if not beside.exists():
                        found[str(beside)] = (
                            f"{beside}: there is no such file, which holds weights of {path}; put it beside that file"
                        )
    return list(found.values())


def present(path: str | None) -> str | list[str]:
    """A file of the user as a job's input if it exists, else [], and the step that reads it reports it.

    With a missing file as input, Snakemake would consider earlier outputs up to date, whatever path the configuration
    has now. Raises InputError for a file in a folder without permission, and for a modification time more than
    MAX_CLOCK_DIFFERENCE in the future, since no output would be newer.
    """
    if not path or size_of(path) is None:
        return []
    ahead = Path(path).stat().st_mtime - time.time()
    if ahead > MAX_CLOCK_DIFFERENCE:
        raise InputError(
            f"{path}: its modification time is {ahead / 3600:.1f} hours in the future, so everything made from it "
            f"would be out of date; set it to now with: touch {path}"
        )
    return path


def size_of(path: str | None) -> int | None:
    """Size in bytes of a file; None for a missing one. Raises InputError for one in a folder without permission."""
    # Path.is_file raises PermissionError in such a folder.
    try:
        return Path(path).stat().st_size if path and Path(path).is_file() else None
    except OSError as error:
        raise InputError(
            f"{path}: cannot be accessed ({error.strerror}); make its folder accessible, or move it"
        ) from error


def state(file: Any) -> str | list[int] | None:
    """Value that identifies the content of a user's file; None for a missing file or one in results/.

    The SHA-256 digest up to MAX_HASHED_BYTES, so that a copy counts as the same file; size and modification time (ns)
    of larger files, whose content gfscore.workflow.replaced_files compares.
    """
    if not file or file.startswith("results/") or size_of(file) is None:
        return None
    found = Path(file).stat()
    if found.st_size <= MAX_HASHED_BYTES:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    return [found.st_size, found.st_mtime_ns]


def digest(file: Any) -> str | None:
    """SHA-256 (hex) of a user's file of any size; None for a missing file or one in results/."""
    if not file or file.startswith("results/") or size_of(file) is None:
        return None
    return digests.sha256(file)


# ---- checkpoints, generators, and the code of their networks ----


def placed_checkpoint(config: Mapping[str, Any], zoo: str, threat: str, model: str) -> list[str]:
    """Files of an entry without url, as inputs, so that their replacement is noticed; [] for other entries.

    An ONNX file comes with the files beside it that hold its weights. Those that are missing are left out, which
    fetch_checkpoint reports.
    """
    entry = plan.zoo_entry_of(config, zoo, threat, model)
    if plan.is_downloaded(entry):
        return []
    paths = [entry["path"]]
    if entry["source"] == "onnx":
        paths += [str(file) for file in data_files(entry["path"])]
    return [path for path in paths if present(path)]


def architecture_files(config: Mapping[str, Any], zoo: str, threat: str, model: str) -> list[Path]:
    """Files of the folder architectures/ that define a network, in order; [] for other networks."""
    return _network(plan.zoo_entry_of(config, zoo, threat, model).get("architecture"), folder())[0]


def checkpoint_state(config: Mapping[str, Any], zoo: str, threat: str, model: str) -> str | list[Any] | None:
    """State of a user's checkpoint and digest of the code of its network; None without either."""
    states = [state(path) for path in placed_checkpoint(config, zoo, threat, model)]
    # One file is told by its state alone, as it always was, so that nothing made from it runs again.
    placed: Any = states if len(states) > 1 else next(iter(states), None)
    digest = _network(plan.zoo_entry_of(config, zoo, threat, model).get("architecture"), folder())[1]
    return [placed, digest] if digest else placed


def generator_files(config: Mapping[str, Any], dataset: str) -> list[str | Path]:
    """File of a user's generator, if it is there, and those of the folder architectures/ that define its network."""
    generator = config["datasets"][dataset]["generator"]
    placed = present(generator["path"])
    return [*([placed] if isinstance(placed, str) else []), *_network(generator["architecture"], folder())[0]]


def generator_state(config: Mapping[str, Any], dataset: str) -> list[Any]:
    """State of a user's generator and digest of the code of its network, None without."""
    generator = config["datasets"][dataset]["generator"]
    return [state(generator["path"]), _network(generator["architecture"], folder())[1]]


@cache
def _network(architecture: str | None, home: Path) -> tuple[list[Path], str | None]:
    # Cached, since every job that loads a classifier needs it; `home` is a key, so that other folders are not mixed up.
    return network_files(architecture or ""), describe_network(architecture or "").get("architecture_sha256")
