"""Images of a dataset in a folder: those in class folders, or those named in a list."""

import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from gfscore.core.errors import InputError
from gfscore.core.files import regular_bytes
from gfscore.core.labels import is_number
from gfscore.core.names import require_utf8

ENDINGS = (".jpeg", ".jpg", ".png", ".webp", ".bmp", ".tif", ".tiff", ".gif", ".ppm", ".pgm")
"""File name suffixes of images, in any case."""

LEFT_BEHIND = {"__MACOSX", "Thumbs.db", "desktop.ini"}
"""Names of what archives and file managers leave in folders of images, beside those that start with a dot."""


def visible(folder: Path | str) -> list[os.DirEntry[str]]:
    """Entries of a folder but those that `left_behind` names, sorted by name.

    Raises InputError if it is no folder, and for a name that is no UTF-8.
    """
    try:
        with os.scandir(folder) as entries:
            shown = [entry for entry in entries if not left_behind(entry.name)]
    except OSError as error:
        raise InputError(f"{folder}: no such folder ({error.strerror}); check `path` of this dataset") from error
    for entry in shown:
        require_utf8(entry.name, where=folder)
    return sorted(shown, key=lambda entry: entry.name)


def class_folders(root: Path | str, declared: Sequence[str] | None) -> list[str]:
    """Class folders in label order: `declared` if it is not None, else all folders in `root`, sorted by name.

    Raises InputError for a folder that is missing or not declared, and for images outside the class folders.
    """
    entries = visible(root)
    folders = [entry.name for entry in entries if _is(entry.is_dir)]
    loose = [entry.name for entry in entries if entry.name not in folders and is_image(entry.name)]
    if loose:
        raise InputError(f"{root}: {loose[0]} lies outside the class folders; move it into one, or write a `list`")
    if declared is None:
        return folders
    for what, names in (("missing", set(declared) - set(folders)), ("not in `folders`", set(folders) - set(declared))):
        if names:
            raise InputError(f"{root}: class folder {min(names)} is {what} ({len(names)} such); correct `folders`")
    return list(declared)


def images_of(root: Path | str, folders: Sequence[str]) -> tuple[list[str], list[int]]:
    """Relative paths, sorted within each class folder, and labels; InputError for files that are no images."""
    names, labels = [], []
    for label, folder in enumerate(folders):
        entries = visible(Path(root, folder))
        wrong = [entry.name for entry in entries if not (is_image(entry.name) and _is(entry.is_file))]
        if wrong:
            what = (
                "no regular file (for example a broken link)"
                if is_image(wrong[0])
                else f"not an image by its name ({' '.join(ENDINGS)})"
            )
            raise InputError(
                f"{root}/{folder}/{wrong[0]}: {what}; class folders may hold only images: remove or convert it"
            )
        names += [f"{folder}/{entry.name}" for entry in entries]
        labels += [label] * len(entries)
    return names, labels


def images_in_list(
    path: Path | str, root: Path | str, declared: Sequence[str] | None
) -> tuple[list[str], list[int], Sequence[str] | None]:
    """Relative paths, labels, and the class folders in label order, of the images in a text file, in its order.

    A line is a path relative to `root` and, after a tab or blank, the label: a class folder (one of `declared`, or a
    folder in `root`) or a number from 0. Without a label the first folder of the path is the label. Paths and class
    folders may contain blanks; paths are normalised (a//b to a/b). The class folders are None if none are declared and
    labels are numbers. Raises InputError, naming the line.
    """
    folders = declared or [entry.name for entry in visible(root) if _is(entry.is_dir)]
    known = {name: label for label, name in enumerate(folders)}
    names, labels, has_numbers = [], [], False
    for number, line in _lines(path):
        name, label = _parted(line, known)
        place = PurePosixPath(name)
        label = place.parts[0] if label is None else label
        if place.is_absolute() or ".." in place.parts:
            raise InputError(f"{path}: line {number} leads outside the dataset's folder ({name}); correct it")
        if "\0" in name:
            raise InputError(f"{path}: line {number} holds a zero byte ({name!r}); correct it")
        if label not in known and not is_number(label):
            raise InputError(
                f"{path}: line {number} has label {label[:80]}, neither a class folder nor a number of a class; "
                "correct it"
            )
        has_numbers = has_numbers or label not in known
        names.append(str(place))
        labels.append(known[label] if label in known else int(label))
    if not names:
        raise InputError(f"{path}: the list names no image; write one relative path per line")
    return names, labels, declared or (None if has_numbers else folders)


def require_inside(names: Sequence[str], where: Path | str) -> None:
    """Raise InputError, naming the row in `where`, for a name that leads out of its folder."""
    for row, name in enumerate(names):
        place = PurePosixPath(name)
        if place.is_absolute() or ".." in place.parts or "\0" in name:
            raise InputError(f"{where}: row {row} is {name!r}; write paths within the folder of the images, from there")


class NamedImages:
    """Images in a folder by names that may lack their ending."""

    def __init__(self, root: Path | str) -> None:
        """`root`: folder that the names count from."""
        self.root = Path(root)
        self._by_stem: dict[Path, dict[str, list[str]]] = {}

    def files_of(self, names: Sequence[str], where: Path | str) -> list[str]:
        """Relative path of each image; InputError, naming the row in `where`, for none or several of a name."""
        files = []
        for row, name in enumerate(names):
            candidates = self._candidates(name)
            if len(candidates) > 1:
                raise InputError(
                    f"{where}: row {row} is {name!r}, which may be {candidates[0]} or {candidates[1]} in {self.root}; "
                    "write names with their endings, or remove one of each"
                )
            if not candidates:
                raise InputError(
                    f"{where}: row {row} is {name!r}, and {self.root} has no such image; complete the images, correct "
                    "the row, or name the folder that the names count from (images; gfscore audit: --image-folder)"
                )
            files += candidates
        return files

    def first_missing(self, names: Sequence[str]) -> int | None:
        """Row of the first name that no image has, None where all have one."""
        return next((row for row, name in enumerate(names) if not self._candidates(name)), None)

    def _candidates(self, name: str) -> list[str]:
        if (self.root / name).is_file():
            return [name]
        if is_image(name):
            return []
        place = PurePosixPath(name)
        folder = self.root / place.parent
        if folder not in self._by_stem:
            self._by_stem[folder] = _images_by_stem(folder)
        return [str(place.parent / file) for file in self._by_stem[folder].get(place.name, [])]


def _images_by_stem(folder):
    by_stem: dict[str, list[str]] = {}
    if folder.is_dir():
        for entry in visible(folder):
            if is_image(entry.name):
                by_stem.setdefault(entry.name.rpartition(".")[0], []).append(entry.name)
    return by_stem


def _parted(line, known):
    # Path and label (None if missing) of a line; `known` holds the class folders.
    if "\t" in line:
        name, _, label = line.rpartition("\t")
        return name.strip(), label.strip()
    blanks = [place for place, sign in enumerate(line) if sign == " "]
    # The longest class folder that the line ends with: "great white", not "white".
    for place in blanks:
        if line[place + 1 :] in known:
            return line[:place].strip(), line[place + 1 :]
    if not blanks or is_image(line):
        return line, None
    return line[: blanks[-1]].strip(), line[blanks[-1] + 1 :]


def _lines(path):
    try:
        # utf-8-sig removes a byte order mark, as Windows editors write it.
        lines = regular_bytes(path).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: the list cannot be read ({error}); save it as UTF-8") from error
    except OSError as error:
        raise InputError(f"{path}: the list cannot be read ({error}); check `list` of this dataset") from error
    return [(number, line.strip()) for number, line in enumerate(lines, start=1) if line.strip()]


def _is(kind):
    # A link to itself raises an error.
    try:
        return kind()
    except OSError:
        return False


def is_image(name: str) -> bool:
    """Whether a file is an image by its name."""
    return name.lower().endswith(ENDINGS)


def left_behind(name: str) -> bool:
    """Whether a file or folder is hidden, or what an archive or a file manager leaves behind."""
    return name.startswith(".") or name in LEFT_BEHIND
