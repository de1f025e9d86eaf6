"""Attributes of samples, and CelebA's lists: how a whole file is made, and what is done to read it."""

import gzip
from types import SimpleNamespace

import numpy as np

from faults.user_files import AS_STORED, PIXELS, SAMPLES, encoded

NAMES = [f"{number:06d}.png" for number in range(SAMPLES)]
MALE, YOUNG = np.arange(SAMPLES) % 2, np.arange(SAMPLES) % 3 > 0
AGES = 20 + 2.5 * np.arange(SAMPLES)
AGE = {"column": "age", "cut": [30, 60], "names": ["young", "middle", "old"]}


def dataset(source="npz", path=None, names=NAMES):
    """The dataset whose samples have the attributes."""
    from gfscore.images.attribute_values import Dataset

    manifest = {"dataset": "made", "digest": "d", "settings": {"source": source}, "path": path}
    return Dataset(manifest, SimpleNamespace(sample_id=np.array(names)))


def read_source(settings, of):
    """Do what the step read_attributes does."""
    from gfscore.images.attribute_values import attributes_of

    attributes = attributes_of({"missing": "drop", **settings}, of)
    frame, categories, missing = attributes.frame, attributes.categories, attributes.missing
    assert frame["sample_id"].tolist() == of.images.sample_id.tolist()
    for name, order in categories.items():
        known = frame[name].notna()
        assert set(frame[name][known]) <= set(order) and missing[name] == (~known).sum()
    return [frame.fillna("").to_numpy(dtype=str), np.array(str(categories))]


# ---- a table of their own ----


def frame():
    import pandas as pd

    return pd.DataFrame({"who": NAMES, "age": AGES, "sex": np.where(MALE, "m", "f"), "young": YOUNG})


def table_csv(folder):
    frame().to_csv(folder / "people.csv", index=False)
    return folder / "people.csv"


def table_gzipped(folder):
    (folder / "people.csv.gz").write_bytes(gzip.compress(table_csv(folder).read_bytes(), mtime=0))
    return folder / "people.csv.gz"


def table_parquet(folder):
    frame().to_parquet(folder / "people.parquet", write_page_checksum=True)
    return folder / "people.parquet"


def read_table(path):
    columns = [AGE, "sex", "young"]
    return read_source({"source": "table", "path": str(path), "key": "who", "columns": columns}, dataset())


# ---- columns beside the images ----


def columns_parquet(folder):
    frame().to_parquet(folder / "faces.parquet", write_page_checksum=True)
    return folder / "faces.parquet"


def read_columns(path):
    of = dataset("parquet", str(path), [f"faces/{row:06d}" for row in range(SAMPLES)])
    return read_source({"source": "columns", "columns": [AGE, "sex", "young"]}, of)


# ---- CelebA ----


def celeba(folder):
    rows = [
        f"{name} {2 * male - 1:2d} {2 * young - 1:2d}" for name, male, young in zip(NAMES, MALE, YOUNG, strict=True)
    ]
    (folder / "list_attr_celeba.txt").write_text("\n".join([str(SAMPLES), "Male Young", *rows]) + "\n")
    parts = [f"{name} {row % 3}" for row, name in enumerate(NAMES)]
    (folder / "list_eval_partition.txt").write_text("\n".join(parts) + "\n")
    (folder / "images").mkdir(exist_ok=True)
    for name, content in zip(NAMES, encoded("PNG"), strict=True):
        (folder / "images" / name).write_bytes(content)


def celeba_attributes(folder):
    celeba(folder)
    return folder / "list_attr_celeba.txt"


def celeba_partition(folder):
    celeba(folder)
    return folder / "list_eval_partition.txt"


def read_celeba(path):
    from gfscore.images.datasets import load_all, open_images

    settings = {"source": "celeba", "images": "images", "split": "test", "task": "Male", "preprocessing": AS_STORED}
    images = open_images(settings, path.parent, classes=None)
    pixels, labels = load_all(images)
    assert len(set(images.sample_id.tolist())) == len(labels) == len(pixels) and pixels.shape[1:] == (3, 8, 8)
    rows = [NAMES.index(name) for name in images.sample_id]
    np.testing.assert_array_equal(pixels, PIXELS[rows].transpose(0, 3, 1, 2) / np.float32(255))


def read_celeba_attributes(path):
    read_source({"source": "celeba", "path": str(path), "columns": None}, dataset())
    read_celeba(path)


# ---- the table that the workflow makes of them ----


def attributes_table(folder):
    import pandas as pd

    from gfscore.tables.parquet_tables import write_attributes

    made = pd.DataFrame({"sample_id": NAMES, "sex": np.where(MALE, "m", "f"), "young": np.where(YOUNG, "yes", None)})
    identity = {"dataset": "made", "categories": {"sex": ["f", "m"], "young": ["yes"]}}
    write_attributes(folder / "attributes.parquet", made, identity=identity)
    return folder / "attributes.parquet"


def read_attributes_table(path):
    from gfscore.tables.parquet_tables import read_attributes

    found, categories = read_attributes(path, expect={"dataset": "made"})
    return [found.fillna("").to_numpy(dtype=str), np.array(str(categories))]
