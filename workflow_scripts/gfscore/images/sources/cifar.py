"""CIFAR-10 and CIFAR-100 as their authors publish them, in the Python or the binary version."""

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from gfscore.core.errors import InputError
from gfscore.core.settings import Text
from gfscore.images.dataset_source import DatasetSettings, DatasetSource

CIFAR_10 = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


class Cifar(DatasetSettings):
    """CIFAR-10 or CIFAR-100."""

    source: Literal["cifar"] = "cifar"
    variant: Literal["cifar10", "cifar100"] = Field("cifar10", description="Dataset.")
    split: Literal["train", "test"] = Field("test", description="Part of the dataset.")
    path: Text = Field(
        default_factory=lambda earlier: f"data/{earlier.get('variant', 'cifar10')}",
        description="Folder of the unpacked archive, or the folder that holds it.",
    )


SOURCE = DatasetSource(
    name="cifar",
    settings=Cifar,
    claims=lambda entry: "variant" in entry,
    # The class names of CIFAR-100 are read from its files.
    class_names=lambda settings: CIFAR_10 if settings.variant == "cifar10" else None,
)

BATCHES = {
    ("cifar10", "train"): [f"data_batch_{number}" for number in range(1, 6)],
    ("cifar10", "test"): ["test_batch"],
    ("cifar100", "train"): ["train"],
    ("cifar100", "test"): ["test"],
}
FOLDERS = {
    "cifar10": ["cifar-10-batches-py", "cifar-10-batches-bin"],
    "cifar100": ["cifar-100-python", "cifar-100-binary"],
}
LABELS = {"cifar10": "labels", "cifar100": "fine_labels"}
NAMES = {"cifar10": ("batches.meta", "label_names"), "cifar100": ("meta", "fine_label_names")}
ROWS = {"train": 50_000, "test": 10_000}
PIXELS = 3 * 32 * 32


def open_source(settings: dict[str, Any], path: Any) -> Any:
    """10,000 test or 50,000 training images, (N, 3, 32, 32), with the 10 classes or the 100 fine ones.

    `settings`: `variant` and `split`. `path` is the folder of the unpacked archive, or the folder that holds it.
    Identifiers ("cifar10-test-00000") follow the published order and are the same in both versions. No code in a pickle
    is run (`pickles.load_plain`). Raises InputError, naming the file, for missing, truncated and malformed files.
    Source: Krizhevsky 2009.
    """
    import numpy as np

    from gfscore.images.image_set import from_pixels

    variant, split = settings["variant"], settings["split"]
    folders = [Path(path or ""), *(Path(path or "", name) for name in FOLDERS[variant])]
    parts = [_read(file, variant) for file in _files(folders, BATCHES[variant, split])]
    labels = np.concatenate([labels for _, labels in parts])
    if len(labels) != ROWS[split]:
        raise InputError(f"{path}: {len(labels)} images, but {variant} {split} has {ROWS[split]}; unpack it again")
    pixels = np.concatenate([pixels for pixels, _ in parts]).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    names = [f"{variant}-{split}-{row:05d}" for row in range(len(labels))]
    return from_pixels(pixels, labels, sample_id=names, class_names=_class_names(folders, *NAMES[variant]))


def _files(folders, stems):
    for files in ([folder / f"{stem}{end}" for stem in stems] for folder in folders for end in ("", ".bin")):
        if all(file.is_file() for file in files):
            return files
    inside = " or ".join(folder.name for folder in folders[1:])
    raise InputError(f"{folders[0]}: no complete set {stems[0]}[.bin] here or in {inside}; unpack the archive there")


def _read(file, variant):
    import numpy as np

    from gfscore.images.published_files import load_plain

    if file.suffix == ".bin":
        before = 1 if variant == "cifar10" else 2  # CIFAR-100: coarse label, fine label
        content = np.fromfile(file, dtype=np.uint8)
        if len(content) == 0 or len(content) % (before + PIXELS):
            raise InputError(f"{file}: {len(content)} bytes are not whole images of {before + PIXELS}; unpack it again")
        rows = content.reshape(-1, before + PIXELS)
        return rows[:, before:], rows[:, before - 1].astype(np.int32)
    stored = load_plain(file)
    pixels: Any = stored.get("data")
    labels: Any = stored.get(LABELS[variant])
    whole = isinstance(labels, list) and all(isinstance(label, int) and 0 <= label < 100 for label in labels)
    if not (whole and isinstance(pixels, np.ndarray) and pixels.shape == (len(labels), PIXELS)):
        raise InputError(f"{file}: no uint8 data (n, {PIXELS}) with n {LABELS[variant]}; unpack {variant} again")
    return np.asarray(pixels), np.asarray(labels)


def _class_names(folders, file, key):
    from gfscore.images.published_files import load_names

    for path in (folder / file for folder in folders):
        if path.is_file():
            return load_names(path, key)
    return None
