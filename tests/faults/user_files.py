"""Logits, values, images and labels of the user: how a whole file is made, and what is done to read it."""

import gzip
import json
import pickle

import numpy as np

SAMPLES, CLASSES = 24, ["cat", "dog", "frog"]
LABELS = np.arange(SAMPLES) % len(CLASSES)
LOGITS = np.random.default_rng(0).normal(size=(SAMPLES, len(CLASSES))).astype(np.float32)
PIXELS = np.random.default_rng(1).integers(0, 256, (SAMPLES, 8, 8, 3), dtype=np.uint8)
IDENTITY = {"dataset": "made", "threat": "none", "model": "A", "dataset_digest": "d"}
AS_STORED = {"method": "none"}


# ---- logits and values per sample of the user ----


def npy_logits(folder):
    np.save(folder / "logits.npy", LOGITS)
    return folder / "logits.npy"


def npz_logits(folder):
    np.savez_compressed(folder / "logits.npz", logits=LOGITS, labels=LABELS)
    return folder / "logits.npz"


def csv_logits(folder):
    rows = [f"s{i},{y}," + ",".join(map(str, z)) for i, (y, z) in enumerate(zip(LABELS, LOGITS, strict=True))]
    (folder / "logits.csv").write_text("\n".join(["sample_id,label,cat,dog,frog", *rows]) + "\n")
    return folder / "logits.csv"


def gzipped_logits(folder):
    (folder / "logits.csv.gz").write_bytes(gzip.compress(csv_logits(folder).read_bytes(), mtime=0))
    return folder / "logits.csv.gz"


def parquet_logits(folder):
    import pandas as pd

    frame = pd.DataFrame({"logits": list(LOGITS), "label": LABELS, "sample_id": [f"s{i}" for i in range(SAMPLES)]})
    frame.to_parquet(folder / "logits.parquet", write_page_checksum=True)
    return folder / "logits.parquet"


def read_user_logits(path):
    from gfscore.statistics.logits import require_logits
    from gfscore.tables.logit_files import read_logits_file

    logits, labels, _ = read_logits_file(path, classes=CLASSES)
    labels = LABELS if labels is None else labels
    logits, labels = require_logits(logits, labels, classes=len(CLASSES), source=path)
    assert logits.ndim == 2 and np.isfinite(logits).all() and logits.dtype.kind == "f"
    return [logits, labels]


def tsv_radii(folder):
    rows = [f"{i}\t{y}\t{y}\t{0.1 * (i % 5):.1f}\t1\t0:00:01" for i, y in enumerate(LABELS)]
    (folder / "radii.tsv").write_text("\n".join(["idx\tlabel\tpredict\tradius\tcorrect\ttime", *rows]) + "\n")
    return folder / "radii.tsv"


def read_radii(path):
    from gfscore.tables.radius_files import read_certified_radii

    rows, prediction, radius = read_certified_radii(path, labels=LABELS, classes=len(CLASSES), largest_radius=4.0)
    assert len(set(rows.tolist())) == len(rows) == len(prediction) and ((radius >= 0) & (radius <= 4)).all()


# ---- images and labels of the user ----


def images_of(**settings):
    def read(path):
        return read_images(settings, path)

    return read


def read_images(settings, path):
    from gfscore.images.datasets import load_all, open_images

    images = open_images(settings, path, classes=CLASSES)
    pixels, labels = load_all(images)
    assert pixels.dtype == np.float32 and pixels.min() >= 0 and pixels.max() <= 1 and len(pixels) == len(labels)
    assert set(labels.tolist()) == set(range(len(CLASSES))) and len(images.digest) == 64
    return [pixels, labels]


def npz_images(folder):
    np.savez(folder / "images.npz", x=PIXELS, y=LABELS)
    return folder / "images.npz"


def npy_labels(folder):
    np.save(folder / "labels.npy", LABELS)
    return folder / "labels.npy"


def csv_labels(folder):
    rows = [f"s{i},{y}" for i, y in enumerate(LABELS)]
    (folder / "labels.csv").write_text("\n".join(["sample_id,label", *rows]) + "\n")
    return folder / "labels.csv"


def read_labels(path):
    from gfscore.images.datasets import open_images

    images = open_images({"source": "labels"}, path, classes=CLASSES)
    assert images.labels.min() == 0 and images.labels.max() == len(CLASSES) - 1 and len(images.digest) == 64


def encoded(format):
    import io

    from PIL import Image

    def bytes_of(pixels):
        buffer = io.BytesIO()
        Image.fromarray(pixels).save(buffer, format=format)
        return buffer.getvalue()

    return [bytes_of(pixels) for pixels in PIXELS]


def parquet_images(folder):
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    frame = pd.DataFrame({"image": [{"bytes": one, "path": None} for one in encoded("PNG")], "label": LABELS})
    names = {"info": {"features": {"label": {"names": CLASSES, "_type": "ClassLabel"}}}}
    table = pa.Table.from_pandas(frame).replace_schema_metadata({"huggingface": json.dumps(names)})
    pq.write_table(table, folder / "images.parquet", write_page_checksum=True)
    return folder / "images.parquet"


def folder_images(format):
    def make(folder):
        for row, (label, content) in enumerate(zip(LABELS, encoded(format), strict=True)):
            (folder / CLASSES[label]).mkdir(exist_ok=True)
            (folder / CLASSES[label] / f"{row}.{format.lower()}").write_bytes(content)
        return folder / CLASSES[0] / f"0.{format.lower()}"

    return make


def read_folder(path):
    settings = {"source": "image_folder", "folders": None, "list": None, "preprocessing": AS_STORED}
    read_images(settings, path.parent.parent)


def listed_images(folder):
    folder_images("PNG")(folder)
    lines = [f"{CLASSES[label]}/{row}.png {CLASSES[label]}" for row, label in enumerate(LABELS)]
    (folder / "list.txt").write_text("\n".join(lines) + "\n")
    return folder / "list.txt"


def read_listed(path):
    settings = {"source": "image_folder", "folders": CLASSES, "list": str(path), "preprocessing": AS_STORED}
    read_images(settings, path.parent)


def corrupted_images(folder):
    np.save(folder / "labels.npy", np.tile(LABELS, 5))
    np.save(folder / "fog.npy", np.tile(PIXELS, (5, 1, 1, 1)))
    return folder / "fog.npy"


def read_corrupted(path):
    settings = {"source": "corrupted", "corruption": "fog", "severity": 2, "preprocessing": AS_STORED}
    read_images(settings, path.parent)


def cifar_pickle(folder):
    content = {"data": PIXELS.reshape(SAMPLES, -1), "labels": LABELS.tolist()}
    (folder / "test_batch").write_bytes(pickle.dumps(content, protocol=2))
    return folder / "test_batch"


def read_cifar(path):
    from gfscore.images.published_files import load_plain

    content = load_plain(path)
    plain = (dict, list, tuple, int, float, str, bytes, bool, type(None), np.ndarray)
    assert all(isinstance(value, plain) or type(value).__module__.startswith("gfscore") for value in content.values())
