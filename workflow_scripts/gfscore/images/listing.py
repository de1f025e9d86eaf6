"""Which images of a folder belong to a dataset: those of its class folders, or those that a list names."""

import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from gfscore.core.errors import InputError
from gfscore.core.regular import regular_bytes

ENDINGS = (".jpeg", ".jpg", ".png", ".webp", ".bmp", ".tif", ".tiff", ".gif", ".ppm", ".pgm")
"""Ends of the names of images, whatever their case."""

LABEL_DIGITS = 9
"""Digits of a label at most: labels are numbers of 32 bits."""


def visible(folder: Path | str) -> list[os.DirEntry[str]]:
    """Entries of a folder whose names do not start with a dot, sorted by name; InputError when it is none."""
    try:
        with os.scandir(folder) as entries:
            return sorted((entry for entry in entries if not entry.name.startswith(".")), key=lambda entry: entry.name)
    except OSError as error:
        raise InputError(f"{folder}: no such folder ({error.strerror}); check `path` of this dataset") from error


def class_folders(root: Path | str, declared: Sequence[str] | None) -> list[str]:
    """Class folders in label order: `declared` when it is not None, else every folder in `root`, sorted by name.

    Raises InputError, naming the folder, for one that is missing or not declared, and for images beside folders.
    """
    entries = visible(root)
    found = [entry.name for entry in entries if _is(entry.is_dir)]
    loose = [entry.name for entry in entries if entry.name not in found and is_image(entry.name)]
    if loose:
        raise InputError(f"{root}: {loose[0]} lies beside the class folders; move it into one, or write a `list`")
    if declared is None:
        return found
    for what, names in (("missing", set(declared) - set(found)), ("not in `folders`", set(found) - set(declared))):
        if names:
            raise InputError(f"{root}: class folder {min(names)} is {what} ({len(names)} such); correct `folders`")
    return list(declared)


def images_of(root: Path | str, folders: Sequence[str]) -> tuple[list[str], list[int]]:
    """Relative paths, sorted within each class folder, and labels; InputError for a folder without images."""
    names, labels = [], []
    for label, folder in enumerate(folders):
        entries = visible(Path(root, folder))
        wrong = [entry.name for entry in entries if not (is_image(entry.name) and _is(entry.is_file))]
        if wrong:
            what = (
                "no regular file (a link whose file is not there, say)"
                if is_image(wrong[0])
                else f"not an image by its name ({' '.join(ENDINGS)})"
            )
            raise InputError(
                f"{root}/{folder}/{wrong[0]}: {what}; class folders hold nothing but images: remove or convert it"
            )
        if not entries:
            raise InputError(f"{root}/{folder}: no images in this class folder; add some, or remove the class")
        names += [f"{folder}/{entry.name}" for entry in entries]
        labels += [label] * len(entries)
    return names, labels


def images_in_list(
    path: Path | str, root: Path | str, declared: Sequence[str] | None
) -> tuple[list[str], list[int], Sequence[str] | None]:
    """Relative paths, labels, and the class folders in label order, of the images that a text file names, in its order.

    A line is a path relative to `root`, then, after a tab or blank, the label: a class folder (one of
    `declared`, or of those in `root`), else a number from 0. Without a label the path's first folder is it. Paths and
    class folders may hold blanks. Two spellings of one path, such as a//b and a/b, become the same.
    The class folders are None when numbers stand in place of undeclared names. InputError names the line.
    """
    folders = declared or [entry.name for entry in visible(root) if _is(entry.is_dir)]
    known = {name: label for label, name in enumerate(folders)}
    names, labels, numbered = [], [], False
    for number, line in _lines(path):
        name, label = _parted(line, known)
        place = PurePosixPath(name)
        label = place.parts[0] if label is None else label
        if place.is_absolute() or ".." in place.parts:
            raise InputError(f"{path}: line {number} leads outside the dataset's folder ({name}); correct it")
        if "\0" in name:
            raise InputError(f"{path}: line {number} holds a zero byte ({name!r}); correct it")
        # Of thousands of digits Python makes no number.
        if label not in known and not (label.isdecimal() and len(label) <= LABEL_DIGITS):
            raise InputError(
                f"{path}: line {number} has label {label[:80]}, neither a class folder nor a number of a class; "
                "correct it"
            )
        numbered = numbered or label not in known
        names.append(str(place))
        labels.append(known[label] if label in known else int(label))
    if not names:
        raise InputError(f"{path}: the list names no image; write one relative path per line")
    return names, labels, declared or (None if numbered else folders)


def _parted(line, known):
    # Path and label of a line, None where it has none; `known` holds the class folders.
    if "\t" in line:
        name, _, label = line.rpartition("\t")
        return name.strip(), label.strip()
    blanks = [place for place, sign in enumerate(line) if sign == " "]
    # The longest class folder that a line ends with: great white, not white.
    for place in blanks:
        if line[place + 1 :] in known:
            return line[:place].strip(), line[place + 1 :]
    if not blanks or is_image(line):
        return line, None
    return line[: blanks[-1]].strip(), line[blanks[-1] + 1 :]


def _lines(path):
    try:
        # Editors of Windows put a mark in front, which would be part of the first name.
        lines = regular_bytes(path).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: the list cannot be read ({error}); save it as UTF-8") from error
    except OSError as error:
        raise InputError(f"{path}: the list cannot be read ({error}); check `list` of this dataset") from error
    return [(number, line.strip()) for number, line in enumerate(lines, start=1) if line.strip()]


def _is(kind):
    # A link that leads to itself is of no kind.
    try:
        return kind()
    except OSError:
        return False


def is_image(name: str) -> bool:
    """Whether a file is an image by its name."""
    return name.lower().endswith(ENDINGS)
