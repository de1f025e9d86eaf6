"""Images read again after a run: the first that is another one is named, whatever source they come from."""

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from fetch_dataset import fetch_dataset
from gfscore.core.errors import InputError
from gfscore.core.files import read_json
from gfscore.images.manifests import files_behind, open_again

STORED = {"preprocessing": {"method": "none"}}
MANIFEST = "d.json"


def png(seed):
    content = io.BytesIO()
    Image.fromarray(np.random.default_rng(seed).integers(0, 256, (4, 4, 3), dtype=np.uint8)).save(content, "png")
    return content.getvalue()


def folder():
    for seed in range(6):
        path = Path(f"images/{'ab'[seed % 2]}/{seed}.png")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(seed))
    return {"source": "image_folder", "folders": None, "list": None, **STORED}, "images"


def listed():
    folder()
    names = [f"{'ab'[seed % 2]}/{seed}.png" for seed in range(6)]
    pd.DataFrame({"image": names, "label": [0, 1] * 3}).to_csv("labels.csv", index=False)
    settings = {"source": "image_csv", "images": "images", "image": "image", "label": "label"}
    return settings | STORED, "labels.csv"


def shards():
    Path("shards").mkdir()
    for shard in range(2):
        blobs = pa.array([{"bytes": png(3 * shard + row), "path": None} for row in range(3)])
        pq.write_table(pa.table({"image": blobs, "label": [0, 1, 0]}), f"shards/{shard}.parquet")
    return {"source": "parquet", "image": "image", "label": "label", "part": None, **STORED}, "shards"


def arrays():
    x = np.random.default_rng(0).random((6, 3, 4, 4), dtype=np.float32)
    np.savez("images.npz", x=x, y=[0, 1] * 3)
    settings = {"source": "npz", "value_range": 1, "channels": "first"}
    return settings, "images.npz"


def other_shard():
    table = pq.read_table("shards/1.parquet")
    blobs = [{"bytes": png(9), "path": None}, *table["image"].to_pylist()[1:]]
    pq.write_table(table.set_column(0, "image", pa.array(blobs)), "shards/1.parquet")


def other_array():
    with np.load("images.npz") as file:
        x, y = file["x"], file["y"]
    np.savez("images.npz", x=1 - x, y=y)


SOURCES = {
    "a folder": (folder, lambda: Path("images/b/3.png").write_bytes(png(9)), "images/b/3.png"),
    "a folder with one more": (folder, lambda: Path("images/a/9.png").write_bytes(png(9)), "images/a/9.png"),
    "a CSV file": (listed, lambda: Path("images/b/3.png").write_bytes(png(9)), "images/b/3.png"),
    "Parquet files": (shards, other_shard, "shards (1/000000)"),
    "arrays": (arrays, other_array, "images.npz"),
}


@pytest.mark.parametrize(("make", "change", "name"), SOURCES.values(), ids=SOURCES)
def test_the_first_image_that_is_another_one_is_named(tmp_path, monkeypatch, make, change, name):
    monkeypatch.chdir(tmp_path)
    settings, path = make()
    fetch_dataset(settings, ["a", "b"], MANIFEST, "d.parquet", dataset="d", path_to_images=path)
    images, changed = open_again(MANIFEST)
    assert changed is None
    files = files_behind(images, read_json(MANIFEST))
    assert files and all(Path(file).exists() for file in files)
    change()
    _, changed = open_again(MANIFEST)
    assert changed is not None and changed.startswith(name)


def test_images_that_are_gone_are_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings, path = folder()
    fetch_dataset(settings, ["a", "b"], MANIFEST, "d.parquet", dataset="d", path_to_images=path)
    Path("images").rename("taken")
    with pytest.raises(InputError, match="images"):
        open_again(MANIFEST)
