"""Images of a dataset in a folder: those in class folders, those named in a list, and those named in a CSV file."""

import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path, PurePosixPath

import numpy as np

from gfscore.core.errors import InputError, unknown_name
from gfscore.core.files import regular_bytes
from gfscore.core.labels import are_numbers, class_indices, is_number, without_point
from gfscore.core.mappings import positions
from gfscore.core.names import require_utf8
from gfscore.images.dataset_source import Preprocessing
from gfscore.images.encoded import from_files
from gfscore.images.image_set import ImageSet
from gfscore.tables.binary_files import unreadable
from gfscore.tables.csv_files import read_csv

ENDINGS = (".jpeg", ".jpg", ".png", ".webp", ".bmp", ".tif", ".tiff", ".gif", ".ppm", ".pgm")
"""File name suffixes of images, in any case."""

LEFT_BEHIND = {"__MACOSX", "Thumbs.db", "desktop.ini"}
"""Names of what archives and file managers leave in folders of images, beside those that start with a dot."""


def is_image(name: str) -> bool:
    """Whether a file is an image by its name."""
    return name.lower().endswith(ENDINGS)


def left_behind(name: str) -> bool:
    """Whether a file or folder is hidden, or what an archive or a file manager leaves behind."""
    return name.startswith(".") or name in LEFT_BEHIND


def visible(folder: Path | str) -> list[os.DirEntry[str]]:
    """Entries of a folder but those that `left_behind` names, sorted by name.

    Raises InputError if it is no folder, and for a name that is no UTF-8.
    """
    try:
        with os.scandir(folder) as scan:
            entries = [entry for entry in scan if not left_behind(entry.name)]
    except OSError as error:
        raise InputError(f"{folder}: no such folder ({error.strerror}); check `path` of this dataset") from error
    for entry in entries:
        require_utf8(entry.name, where=folder)
    return sorted(entries, key=lambda entry: entry.name)


# Class folders, and lists.


def open_class_folders(
    path: Path | str,
    *,
    folders: Sequence[str] | None,
    path_to_list: str | None,
    preprocessing: Preprocessing,
    within: str = "",
) -> ImageSet:
    """Images <class folder>/<file> of a folder.

    Parameters
    ----------
    path : path or str
        Folder of the dataset.
    folders : sequence of str or None
        Class folders in label order; None for all, sorted by name. An empty one is a class without samples.
    path_to_list : str or None
        Text file that names the images to use, see `images_in_list`; None for all.
    preprocessing : CenterCrop, Squash or AsStored
        What is done to every image.
    within : str
        Folder of the class folders in `path`; empty for `path` itself. Names that start with a dot are ignored.

    Returns
    -------
    ImageSet
        In the order of the list, or by class and name. Identifiers are the paths relative to `path`.

    Raises
    ------
    InputError
        Naming folder or file, for missing and undeclared class folders, files that are no images, and damaged images.
    """
    root = Path(path, within)
    listing = [root]
    class_names: Sequence[str] | None
    if path_to_list is None:
        class_names = class_folders(root, folders)
        names, labels = images_in_folders(root, class_names)
    else:
        names, labels, class_names = images_in_list(path_to_list, root, folders)
        listing.append(Path(path_to_list))
    if not names:
        fault = "no images in its class folders" if class_names else "no class folders"
        raise InputError(f"{root}: {fault}; put the images of each class into a folder of its own")
    files = [str(PurePosixPath(within, name)) for name in names]
    return from_files(
        Path(path),
        files,
        labels,
        sample_id=files,
        preprocessing=preprocessing,
        class_names=tuple(class_names) if class_names else None,
        where=path_to_list or root,
        listing=listing,
    )


def class_folders(root: Path | str, declared: Sequence[str] | None) -> list[str]:
    """Class folders in label order.

    Parameters
    ----------
    root : path or str
        Folder of the class folders.
    declared : sequence of str or None
        Their names in label order; None for all, sorted by name.

    Raises
    ------
    InputError
        For a folder that is missing or not declared, and for images outside the class folders.
    """
    folders = []
    for entry in visible(root):
        if _is(entry.is_dir):
            folders.append(entry.name)
        elif is_image(entry.name):
            raise InputError(
                f"{root}: {entry.name} lies outside the class folders; move it into one, or write a `list`"
            )
    if declared is None:
        return folders

    missing = set(declared) - set(folders)
    undeclared = set(folders) - set(declared)
    for fault, names in (("missing", missing), ("not in `folders`", undeclared)):
        if names:
            raise InputError(f"{root}: class folder {min(names)} is {fault} ({len(names)} such); correct `folders`")
    return list(declared)


def images_in_folders(root: Path | str, folders: Sequence[str]) -> tuple[list[str], list[int]]:
    """Images in class folders.

    Parameters
    ----------
    root : path or str
        Folder of the class folders.
    folders : sequence of str
        Class folders in label order.

    Returns
    -------
    names : list of str
        Paths relative to `root`, sorted within each class folder.
    labels : list of int
        Positions of the class folders.

    Raises
    ------
    InputError
        For files that are no images.
    """
    names = []
    labels = []
    for label, folder in enumerate(folders):
        for entry in visible(Path(root, folder)):
            if not is_image(entry.name):
                fault = f"not an image by its name ({' '.join(ENDINGS)})"
            elif not _is(entry.is_file):
                fault = "no regular file (for example a broken link)"
            else:
                names.append(f"{folder}/{entry.name}")
                labels.append(label)
                continue
            raise InputError(
                f"{root}/{folder}/{entry.name}: {fault}; class folders may hold only images: remove or convert it"
            )
    return names, labels


def images_in_list(
    path: Path | str, root: Path | str, declared: Sequence[str] | None
) -> tuple[list[str], list[int], Sequence[str] | None]:
    """Images that a text file names, in its order.

    A line is a path relative to `root` and, after a tab or blank, the label: a class folder or a number from 0. Without
    a label the first folder of the path is the label. Paths and class folders may contain blanks.

    Parameters
    ----------
    path : path or str
        The text file.
    root : path or str
        Folder of the images.
    declared : sequence of str or None
        Class folders in label order; None for all folders in `root`.

    Returns
    -------
    names : list of str
        Paths, normalised (a//b to a/b).
    labels : list of int
    class_names : sequence of str or None
        The class folders; None if none are declared and labels are numbers.

    Raises
    ------
    InputError
        Naming the line.
    """
    folders = declared or [entry.name for entry in visible(root) if _is(entry.is_dir)]
    label_of = positions(folders)
    names = []
    labels = []
    has_numbers = False
    for number, line in _lines_of_list(path):
        name, label = _path_and_label(line, label_of)
        image = PurePosixPath(name)
        if not image.parts:
            raise InputError(f"{path}: line {number} names no image ({name!r}); correct it")
        if image.is_absolute() or ".." in image.parts:
            raise InputError(f"{path}: line {number} leads outside the dataset's folder ({name}); correct it")
        if "\0" in name:
            raise InputError(f"{path}: line {number} holds a zero byte ({name!r}); correct it")
        if label is None:
            label = image.parts[0]
        if label in label_of:
            labels.append(label_of[label])
        elif is_number(label):
            labels.append(int(label))
            has_numbers = True
        else:
            raise InputError(
                f"{path}: line {number} has label {label[:80]}, neither a class folder nor a number of a class; "
                "correct it"
            )
        names.append(str(image))
    if not names:
        raise InputError(f"{path}: the list names no image; write one relative path per line")
    if declared is None and has_numbers:
        return names, labels, None
    return names, labels, folders


def _path_and_label(line: str, folders: Collection[str]) -> tuple[str, str | None]:
    # Fields of a line of a list; the label is None where it is missing.
    if "\t" in line:
        name, _, label = line.rpartition("\t")
        return name.strip(), label.strip()
    blanks = [position for position, character in enumerate(line) if character == " "]
    # The longest class folder that the line ends with: "great white", not "white".
    for blank in blanks:
        if line[blank + 1 :] in folders:
            return line[:blank].strip(), line[blank + 1 :]
    if not blanks or is_image(line):
        return line, None
    last = blanks[-1]
    return line[:last].strip(), line[last + 1 :]


def _lines_of_list(path: Path | str) -> list[tuple[int, str]]:
    # Numbers and texts of the lines that are not blank.
    try:
        # utf-8-sig removes a byte order mark, as Windows editors write it.
        lines = regular_bytes(path).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: the list cannot be read ({error}); save it as UTF-8") from error
    except OSError as error:
        raise InputError(f"{path}: the list cannot be read ({error}); check `list` of this dataset") from error
    numbered = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            numbered.append((number, line.strip()))
    return numbered


def _is(kind: Callable[[], bool]) -> bool:
    # A link to itself raises an error.
    try:
        return kind()
    except OSError:
        return False


# CSV files.


def open_images_of_csv(
    path: Path | str,
    *,
    root: Path,
    image: str,
    label: str,
    separator: str,
    classes: Sequence[str] | None,
    preprocessing: Preprocessing,
) -> ImageSet:
    """Images of a CSV file, in its order.

    Parameters
    ----------
    path : path or str
        The file, with a row per image.
    root : Path
        Folder that the names of images count from.
    image, label : str
        Columns of names and of labels. A name without an ending stands for the only image of this name with an ending.
    separator : str
        What stands between cells.
    classes : sequence of str or None
        Class names in label order, for labels that are names; None for their alphabetical order.
    preprocessing : CenterCrop, Squash or AsStored
        What is done to every image.

    Returns
    -------
    ImageSet
        Identifiers are the names in the file.

    Raises
    ------
    InputError
        Naming the file, for missing columns, labels and names, for names that lead out of the folder, and for damaged
        images.
    """
    if not Path(path).is_file():
        raise InputError(f"{path}: there is no such file; check `path` of this dataset")
    try:
        frame = read_csv(path, text=(image, label), separator=separator)
    # Damaged files raise errors of many types.
    except Exception as error:
        raise unreadable(path, ".csv", error) from error
    for column in (image, label):
        if column not in frame:
            raise InputError(f"{path}: {unknown_name('column', column, list(frame.columns))}")
        empty = frame[column].isna() | (frame[column] == "")
        if empty.any():
            row = int(empty.to_numpy().argmax())
            raise InputError(f"{path}: row {row} has no {column}; complete or remove it")
    if not len(frame):
        raise InputError(f"{path}: holds a header and no rows; write the file again")

    texts = frame[label].tolist()
    declared = set(classes or ())
    if not declared.issuperset(texts):
        texts = without_point(texts)
    labels = np.array(texts, dtype=object)
    if are_numbers(texts) and not declared.issuperset(texts):
        labels = labels.astype(int)
    else:
        classes = classes or sorted(set(texts))
        labels = class_indices(labels, classes, f"{path}: {label}")
    names = frame[image].tolist()
    require_inside(names, path)
    files = names
    # A whole name that is missing is told when its image is read.
    if not all(map(is_image, names)):
        files = NamedImages(root).files_of(names, path)
    return from_files(
        root,
        files,
        labels,
        sample_id=names,
        preprocessing=preprocessing,
        class_names=tuple(classes) if classes else None,
        where=path,
    )


def require_inside(names: Sequence[str], where: Path | str) -> None:
    """Raise InputError, naming the row in `where`, for a name that leads out of its folder."""
    for row, name in enumerate(names):
        image = PurePosixPath(name)
        if image.is_absolute() or ".." in image.parts or "\0" in name:
            raise InputError(f"{where}: row {row} is {name!r}; write paths within the folder of the images, from there")


class NamedImages:
    """Images in the folder `root` by names that may lack their ending.

    The folder is listed once, however many names are looked up.
    """

    def __init__(self, root: Path | str) -> None:
        """Names count from `root`."""
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
        for row, name in enumerate(names):
            if not self._candidates(name):
                return row
        return None

    def _candidates(self, name: str) -> list[str]:
        if (self.root / name).is_file():
            return [name]
        if is_image(name):
            return []
        image = PurePosixPath(name)
        folder = self.root / image.parent
        if folder not in self._by_stem:
            entries = visible(folder) if folder.is_dir() else []
            by_stem: dict[str, list[str]] = {}
            for entry in entries:
                if is_image(entry.name):
                    stem = entry.name.rpartition(".")[0]
                    by_stem.setdefault(stem, []).append(entry.name)
            self._by_stem[folder] = by_stem
        return [str(image.parent / file) for file in self._by_stem[folder].get(image.name, [])]
