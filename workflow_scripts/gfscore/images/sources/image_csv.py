"""Images listed in a CSV file with the label of each."""

from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field

from gfscore.core.errors import InputError, unknown
from gfscore.core.settings import Text
from gfscore.images.dataset_source import DatasetSettings, DatasetSource, Preprocessing, as_stored


class ImageCsv(DatasetSettings):
    """A CSV file that names images and their labels."""

    source: Literal["image_csv"] = "image_csv"
    path: Text = Field(description="CSV file with a row per image.")
    images: Text | None = Field(
        None, description="Folder that the names of the images are relative to; null for that of the CSV file."
    )
    image: Text = Field("image", description="Column with the names of the images.")
    label: Text = Field(
        "label", description="Column of labels: whole numbers from 0, or class names (then in alphabetical order)."
    )
    separator: Literal["comma", "semicolon", "tab"] | None = Field(
        None, description="What stands between the cells; null for a comma."
    )
    preprocessing: Preprocessing = Field(default_factory=as_stored)

    absent: ClassVar[frozenset[str]] = DatasetSettings.absent | {"separator"}


SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t"}
"""What stands between cells, by the values of `separator`."""

SOURCE = DatasetSource(name="image_csv", settings=ImageCsv)


def open_source(settings: dict[str, Any], path: Any) -> Any:
    """Images of a CSV file, in its order; identifiers are their names in it.

    `settings`: the folder `images`, the columns `image` and `label`, the `separator`, and `preprocessing`. A name
    without an ending is that of the one image of this name that has one. If labels are text, the
    classes are `classes`, or these names in alphabetical order. Raises InputError, naming the file, for missing
    columns, labels and names, for names that lead out of the folder, and for damaged images.
    """
    from gfscore.core.labels import class_indices
    from gfscore.images.encoded import from_files
    from gfscore.images.listing import NamedImages, is_image, require_inside

    names, labels = _rows(path, settings["image"], settings["label"], SEPARATORS[settings.get("separator") or "comma"])
    root = Path(settings["images"]) if settings["images"] else Path(path).parent
    classes = settings["classes"]
    if labels.dtype.kind in "OSU":
        classes = classes or sorted(set(labels.tolist()))
        labels = class_indices(labels, classes, f"{path}: {settings['label']}")
    require_inside(names, path)
    # A whole name that is missing is told when its image is read.
    files = names if all(map(is_image, names)) else NamedImages(root).files_of(names, path)
    return from_files(
        root,
        files,
        labels,
        sample_id=names,
        preprocessing=settings["preprocessing"],
        class_names=classes and tuple(classes),
        where=path,
    )


def _rows(path, image, label, separator):
    # Names of images (N,) str and labels (N,), whole numbers or text.
    from gfscore.core.labels import are_numbers
    from gfscore.tables.binary_files import unreadable
    from gfscore.tables.csv_files import read_csv

    if not Path(path or "").is_file():
        raise InputError(f"{path}: there is no such file; check `path` of this dataset in config.yaml")
    try:
        frame = read_csv(path, text=(image, label), separator=separator)
    # Damaged files raise errors of many types.
    except Exception as error:
        raise unreadable(path, ".csv", error) from error
    for column in (image, label):
        if column not in frame:
            raise InputError(f"{path}: {unknown('column', column, list(frame.columns))}")
        empty = frame[column].isna() | (frame[column] == "")
        if empty.any():
            raise InputError(f"{path}: row {int(empty.to_numpy().argmax())} has no {column}; complete or remove it")
    labels = frame[label].to_numpy(dtype=object)
    if not len(labels):
        raise InputError(f"{path}: holds a header and no rows; write the file again")
    if are_numbers(labels):
        labels = labels.astype(int)
    return frame[image].tolist(), labels
