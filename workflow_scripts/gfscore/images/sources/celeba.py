"""CelebA with one of its 40 binary attributes as the classification task."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, model_validator

from gfscore.core.errors import InputError, unknown_name
from gfscore.core.numbers import counted
from gfscore.core.settings import Text, refusal
from gfscore.images.dataset_source import DatasetSettings, DatasetSource, Preprocessing, as_stored

if TYPE_CHECKING:
    from gfscore.images.image_set import ImageSet


class CelebA(DatasetSettings):
    """One part of CelebA and the attribute to be classified."""

    source: Literal["celeba"] = "celeba"
    path: Text = Field(
        "data/celeba",
        description="Folder with list_attr_celeba.txt, list_eval_partition.txt and the folder of images.",
    )
    images: Text = Field("img_align_celeba", description="Folder of images within it.")
    split: Literal["train", "valid", "test"] = Field("test", description="Part of the authors' partition.")
    task: Text = Field(description="Attribute to be classified.")
    preprocessing: Preprocessing = Field(default_factory=as_stored)

    @model_validator(mode="after")
    def _class_names_fit_the_task(self) -> Self:
        # Otherwise report and verdict would name a wrong task.
        if self.classes is None:
            return self
        remedy = f"write null for 'no {self.task}' and {self.task!r}"
        if len(self.classes) != 2:
            raise refusal(
                f"there are 2, without and with the task {self.task!r}, not {len(self.classes)}; {remedy}", "classes"
            )
        task = _normalised(self.task)
        without_task, with_task = map(_normalised, self.classes)
        # At the beginning of a word: "female" does not name the task "male".
        names_task = re.search(rf"\b{re.escape(task)}", with_task)
        if not names_task or without_task == task:
            raise refusal(
                f"label 1 means {self.task!r}, but is called {self.classes[1]!r}; {remedy}, or use that name",
                "classes",
            )
        return self


def _normalised(name: str) -> str:
    return name.casefold().replace("_", " ")


SOURCE = DatasetSource(name="celeba", settings=CelebA, claims=lambda entry: "task" in entry)


def open_source(settings: CelebA, path: Path | str) -> ImageSet:
    """Images of one split of CelebA; label 1 means that the attribute `task` is present.

    Parameters
    ----------
    settings : CelebA
        Settings of the dataset.
    path : Path or str
        Folder with the authors' lists and the folder of images.

    Returns
    -------
    ImageSet
        Its sample_id are file names.

    Raises
    ------
    InputError
        Naming the file, for lists that are missing or damaged, an unknown attribute, and images that are missing.

    References
    ----------
    CelebA (Liu et al. 2015).
    """
    from gfscore.images.encoded import from_files
    from gfscore.images.published_files import PARTITION, read_attribute_list, read_partition

    path_to_attributes = Path(path, "list_attr_celeba.txt")
    path_to_partition = Path(path, "list_eval_partition.txt")
    attributes = read_attribute_list(path_to_attributes)
    task = settings.task
    if task not in attributes:
        raise InputError(f"{path_to_attributes}: {unknown_name('attribute', task, list(attributes.columns))}")

    partition = read_partition(path_to_partition)
    names = []
    absent = []
    for name in attributes.index:
        if name not in partition:
            absent.append(name)
        elif partition[name] == PARTITION[settings.split]:
            names.append(name)
    if absent:
        raise InputError(
            f"{path_to_partition}: names no part for {counted(len(absent), 'image')} of list_attr_celeba.txt, the "
            f"first is {absent[0]}; restore the file"
        )
    if not names:
        raise InputError(f"{path_to_partition}: no image of the split {settings.split}; restore the file")

    has_task = attributes.loc[names, task].to_numpy() == 1
    return from_files(
        Path(path, settings.images),
        names,
        has_task.astype(int),
        sample_id=names,
        preprocessing=settings.preprocessing,
        class_names=(f"no {task}", task),
        listing=[path_to_attributes, path_to_partition],
    )
