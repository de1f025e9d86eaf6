"""SHA-256 of every file of a folder, recorded in a file of that folder."""

from pathlib import Path

from gfscore.core.errors import InputError
from gfscore.core.files import read_json, sha256_of_file, write_json

NAME = "checksums.json"


def write_digests(folder: Path | str) -> None:
    """Write checksums.json, which maps the names of a folder's files to their SHA-256."""
    write_json(Path(folder) / NAME, {"sha256": _digests(folder)})


def changed_files(folder: Path | str) -> list[str]:
    """Files that differ from checksums.json: one sentence each, beginning with the path; an empty list if none does.

    Raises InputError, naming the file, when checksums.json is missing or changed itself.
    """
    if not (Path(folder) / NAME).exists():
        raise InputError(f"{Path(folder) / NAME}: missing, or from an earlier version; request the folder again")
    recorded, present = read_json(Path(folder) / NAME).get("sha256"), _digests(folder)
    if not isinstance(recorded, dict):
        raise InputError(f"{Path(folder) / NAME}: holds no digests of files; request the folder again")
    words = {name: "edited or damaged" for name in recorded.keys() & present if recorded[name] != present[name]}
    words |= dict.fromkeys(recorded.keys() - present, "missing")
    words |= dict.fromkeys(present.keys() - recorded.keys(), "added")
    return [f"{Path(folder) / name}: {word}, according to {NAME}" for name, word in sorted(words.items())]


def _digests(folder):
    # Hidden files belong to Snakemake or a desktop, not to the results.
    files = sorted(path for path in Path(folder).iterdir() if path.is_file() and not path.name.startswith("."))
    return {path.name: sha256_of_file(path) for path in files if path.name != NAME}
