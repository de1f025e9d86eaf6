"""Settings of data in a table that lists images and labels: separator, columns, and the folder of the images."""

from collections.abc import Sequence
from pathlib import Path

import pandas
from pandas import DataFrame

from gfscore.core.errors import InputError, few
from gfscore.core.settings import PlainSettings
from gfscore.images.listing import NamedImages, left_behind, require_inside
from gfscore.images.sources.image_csv import SEPARATORS
from gfscore.tables.binary_files import ROW_NAMES, unreadable
from gfscore.tables.csv_files import read_csv
from gfscore.tables.logit_files import LABELS
from gfscore.workflow.new_audit.request import MOST_OPTIONS

IMAGE_COLUMNS = (
    "image", "img", "path", "file", "filename", "file_name", "filepath", "file_path", "image_path", "img_path",
    "image_name", "image_id", "name", "id", "id_code",
)  # fmt: skip
LABEL_COLUMNS = (*LABELS, "class", "category", "target", "fine_label", "class_name", "class_id")

TABLE_ENDINGS = (".csv", ".tsv")

MOST_FOLDERS = 2000
"""Folders below the folder of a table in which its images are looked for."""


def csv_settings(path: Path, *, folder: str | None) -> tuple[PlainSettings, str]:
    """Settings of the source image_csv for a table, and what it is in words.

    Parameters
    ----------
    path : Path
        The table.
    folder : str or None
        Folder of the images; None for the folder in which all names are found: the folder of the table or one below it.

    Raises
    ------
    InputError
        Naming the file and the option that decides, for columns and images that are not found, and for images that may
        be in two folders.
    """
    separator = _separator(path)
    frame = _table(path, separator)
    columns = list(map(str, frame.columns))
    words = ""
    # pandas writes its index as a column without a name, which counts the rows, from 0 or 1.
    if len(columns) > 2 and ROW_NAMES.match(columns[0]):
        numbers = [str(number) for number in range(len(frame) + 1)]
        if frame.iloc[:, 0].astype(str).tolist() in (numbers[:-1], numbers[1:]):
            columns = columns[1:]
            words = ", without the first one, which counts the rows"
    _require_no_one_hot(frame[columns], path)
    image, label = _columns(columns, path)
    root, root_words = _image_folder(frame[image].tolist(), path, folder)

    settings = {"source": "image_csv", "path": str(path)}
    if root is not None:
        settings["images"] = str(root)
    settings.update(other_than_usual(image=image, label=label))
    if separator != "comma":
        settings["separator"] = separator
    return settings, f"images listed in {path.name}, columns {image} and {label}{words}{root_words}"


def column_of(path: Path, columns: Sequence[str], names: Sequence[str]) -> str:
    """The column with the first of these names, in any case; InputError where there is none."""
    column = _first_of(columns, names)
    if column is None:
        usual = ", ".join(names[:MOST_OPTIONS])
        raise InputError(f"{path}: no column {usual} or the like; it has {few(columns)}: rename one")
    return column


def other_than_usual(**columns: str) -> dict[str, str]:
    """Settings for columns that are not called by their usual names."""
    return {key: name for key, name in columns.items() if name != key}


def folder_and_label_of_each(settings: PlainSettings) -> list[tuple[str, str]]:
    """First folder of the path, and label, of each image that a table of these settings lists."""
    frame = _table(Path(settings["path"]), settings.get("separator", "comma"))
    names = frame[settings.get("image", "image")]
    labels = frame[settings.get("label", "label")]
    folders = [name.partition("/")[0] for name in names]
    return list(zip(folders, labels, strict=True))


def _separator(path: Path) -> str:
    # The first of SEPARATORS that stands in the header; a tab in files that say so by their ending.
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header = file.readline(1 << 20)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error}); write it again as UTF-8") from error
    if path.suffix == ".tsv":
        return "tab"
    for separator, character in SEPARATORS.items():
        if character in header:
            return separator
    return "comma"


def _table(path: Path, separator: str) -> DataFrame:
    # Table whose cells are texts.
    character = SEPARATORS[separator]
    try:
        columns = list(read_csv(path, separator=character).columns)
        return read_csv(path, separator=character, text=columns)
    # Damaged files raise errors of many types.
    except Exception as error:
        raise unreadable(path, path.suffix, error) from error


def _columns(columns: Sequence[str], path: Path) -> tuple[str, str]:
    # Columns of the images and of the labels; of two columns one is enough to tell the other.
    image = _first_of(columns, IMAGE_COLUMNS)
    label = _first_of(columns, LABEL_COLUMNS)
    if len(columns) == 2 and image is None and label is not None:
        (image,) = (name for name in columns if name != label)
        return image, label
    if len(columns) == 2 and label is None and image is not None:
        (label,) = (name for name in columns if name != image)
        return image, label
    return column_of(path, columns, IMAGE_COLUMNS), column_of(path, columns, LABEL_COLUMNS)


def _require_no_one_hot(frame: DataFrame, path: Path) -> None:
    # InputError for a table with a column of 0 and 1 for each class in place of one column of labels.
    numbers = frame.apply(pandas.to_numeric, errors="coerce")
    classes = [name for name in numbers if numbers[name].isin([0, 1]).all()]
    is_one_hot = len(classes) > 1 and (numbers[classes].sum(axis=1) == 1).all()
    if is_one_hot and _first_of(list(map(str, frame.columns)), LABEL_COLUMNS) is None:
        raise InputError(
            f"{path}: a column for each class ({few(list(map(str, classes)))}), one-hot, in place of one of labels; "
            "write that with pandas: table['label'] = table[classes].idxmax(axis=1)"
        )


def _first_of(columns: Sequence[str], names: Sequence[str]) -> str | None:
    # Exact names first.
    by_name = {name.strip().casefold(): name for name in reversed(columns)}
    by_name.update({name: name for name in columns})
    for name in names:
        if name in by_name:
            return by_name[name]
    return None


def _image_folder(names: Sequence[str], path: Path, option: str | None) -> tuple[Path | None, str]:
    # Folder of the images, None for the table's, and words on it.
    require_inside(names, path)
    if option:
        if not Path(option).is_dir():
            raise InputError(f"{option}: there is no such folder; correct --image-folder")
        NamedImages(option).files_of(names, path)
        return Path(option), f", in {option}"
    missing = NamedImages(path.parent).first_missing(names)
    if missing is None:
        return None, ""

    # Folders beside the table, then those in these, in the order of their names.
    subfolders = _folders_in(path.parent)
    folders = list(subfolders)
    for folder in subfolders:
        folders += _folders_in(folder)[:MOST_FOLDERS]
    fitting = []
    for folder in folders[:MOST_FOLDERS]:
        if NamedImages(folder).first_missing(names) is None:
            fitting.append(folder)
    if len(fitting) == 1:
        return fitting[0], f", in {fitting[0]}"
    if fitting:
        options = " or ".join(f"--image-folder {folder}" for folder in fitting[:MOST_OPTIONS])
        raise InputError(
            f"{path}: its images are in {len(fitting)} folders ({few([str(folder) for folder in fitting])}); add "
            f"{options} (make: IMAGE_FOLDER=)"
        )
    raise InputError(
        f"{path}: row {missing} names {names[missing]!r}, and no folder beside it has an image of that name and of all "
        "others; complete the images, or add --image-folder (make: IMAGE_FOLDER=), the folder that the names count from"
    )


def _folders_in(folder: Path) -> list[Path]:
    return sorted(entry for entry in folder.iterdir() if entry.is_dir() and not left_behind(entry.name))
