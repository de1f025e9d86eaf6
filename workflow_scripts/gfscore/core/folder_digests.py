"""Digests of the files of a folder, in a file beside them."""

from pathlib import Path

from gfscore.core.errors import InputError
from gfscore.core.files import read_json, sha256_of_file, write_json

NAME = "checksums.json"


def write_digests(folder: Path | str) -> None:
    """Write checksums.json, which maps the names of a folder's files to their SHA-256 and has a checksum itself."""
    write_json(Path(folder) / NAME, {"sha256": _digests(folder)})


def changed_files(folder: Path | str) -> list[str]:
    """What differs from checksums.json, a list of sentences that begin with a path; none where nothing does.

    Raises InputError, naming the file, when checksums.json is missing or changed itself.
    """
    if not (Path(folder) / NAME).exists():
        raise InputError(f"{Path(folder) / NAME}: missing, or the folder is of an earlier version; ask for it again")
    recorded, found = read_json(Path(folder) / NAME).get("sha256"), _digests(folder)
    if not isinstance(recorded, dict):
        raise InputError(f"{Path(folder) / NAME}: holds no digests of files; ask for the folder again")
    words = {name: "edited or damaged" for name in recorded.keys() & found if recorded[name] != found[name]}
    words |= dict.fromkeys(recorded.keys() - found, "missing") | dict.fromkeys(found.keys() - recorded.keys(), "added")
    return [f"{Path(folder) / name}: {word}, as {NAME} beside it says" for name, word in sorted(words.items())]


def _digests(folder):
    # Hidden files are marks of Snakemake and of desktops.
    files = sorted(path for path in Path(folder).iterdir() if path.is_file() and not path.name.startswith("."))
    return {path.name: sha256_of_file(path) for path in files if path.name != NAME}
