import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from gfscore.core.errors import InputError
from gfscore.images.datasets import load_all, open_images
from gfscore.images.manifests import open_and_describe

SETTINGS = {
    "source": "parquet",
    "image": "image",
    "label": "label",
    "part": None,
    "preprocessing": {"method": "none"},
}
PAIR = ["cat", "dog"]
TEN = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


def png(seed):
    buffer = io.BytesIO()
    Image.fromarray(np.random.default_rng(seed).integers(0, 256, (8, 9, 3), dtype=np.uint8)).save(buffer, "PNG")
    return buffer.getvalue()


def table(seeds, labels, *, plain=False, metadata=None):
    images = [png(seed) if plain else {"bytes": png(seed), "path": f"{seed}.png"} for seed in seeds]
    made = pa.table({"image": images, "label": pa.array(labels, pa.int64()), "other": [0] * len(labels)})
    return made.replace_schema_metadata(metadata)


@pytest.fixture
def shards(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    pq.write_table(table(range(5), [0, 1, 0, 1, 0]), folder / "test-0.parquet", row_group_size=2)
    pq.write_table(table(range(5, 8), [1, 1, 0]), folder / "test-1.parquet", row_group_size=2)
    return folder


def test_shards_are_read_in_order_across_row_groups(shards):
    images = open_images(SETTINGS, shards, classes=PAIR)
    assert images.labels.tolist() == [0, 1, 0, 1, 0, 1, 1, 0]
    assert images.sample_id[[0, 4, 5]].tolist() == ["test-0/000000", "test-0/000004", "test-1/000000"]
    x, _ = load_all(images)
    for row in range(8):
        stored = np.asarray(Image.open(io.BytesIO(png(row))))
        np.testing.assert_array_equal(x[row].transpose(1, 2, 0), stored.astype(np.float32) / np.float32(255))
    rows = np.array([1, 4, 6])
    part = images.select(rows)
    np.testing.assert_array_equal(load_all(part)[0], x[rows])
    assert part.sample_id.tolist() == ["test-0/000001", "test-0/000004", "test-1/000001"]


def test_a_column_of_names_makes_classes_in_alphabetical_order(tmp_path):
    for shard, names in enumerate((["b", "c", "b"], ["a", "c"])):
        made = table(range(3 * shard, 3 * shard + len(names)), [0] * len(names)).append_column("kind", [names])
        pq.write_table(made, tmp_path / f"{shard}.parquet")
    images = open_images({**SETTINGS, "label": "kind"}, tmp_path, classes=None)
    assert images.class_names == ("a", "b", "c")
    assert images.labels.tolist() == [1, 2, 1, 0, 2]
    with pytest.raises(InputError, match="'b' is label 0 in `classes`, but label 1 in the data"):
        open_images({**SETTINGS, "label": "kind"}, tmp_path, classes=["b", "a", "c"])
    pq.write_table(table([9], [1]).rename_columns(["image", "kind", "other"]), tmp_path / "2.parquet")
    with pytest.raises(InputError, match="labels are numbers in some files and names in others"):
        open_images({**SETTINGS, "label": "kind"}, tmp_path, classes=None)


@pytest.mark.parametrize("point", ["", ".0"])
def test_names_that_are_numbers_are_sorted_as_numbers(tmp_path, point):
    texts = [number + point for number in ("10", "2", "9", "2")]
    made = table(range(4), [0] * 4).append_column("kind", [texts])
    pq.write_table(made, tmp_path / "a.parquet")
    images = open_images({**SETTINGS, "label": "kind"}, tmp_path, classes=None)
    assert images.class_names == ("2", "9", "10") and images.labels.tolist() == [2, 0, 1, 0]


def test_a_class_that_the_metadata_name_may_be_without_samples(tmp_path):
    features = {"info": {"features": {"label": {"names": ["dog", "cow", "cat"], "_type": "ClassLabel"}}}}
    path = tmp_path / "a.parquet"
    pq.write_table(table([0, 1], [0, 2], metadata={"huggingface": json.dumps(features)}), path)
    images = open_images(SETTINGS, path, classes=None)
    assert images.class_names == ("dog", "cow", "cat") and images.labels.tolist() == [0, 2]
    pq.write_table(table([0, 1], [0, 2]), path)
    with pytest.raises(InputError, match="no sample of class '1'"):
        open_images(SETTINGS, path, classes=None)


def test_two_parts_make_the_whole_and_keep_the_shares_of_the_classes(shards):
    def part(name, seed=0):
        chosen = {"name": name, "test_share": 0.5, "seed": seed, "within": None}
        return open_images({**SETTINGS, "part": chosen}, shards, classes=PAIR)

    whole, train, test = open_images(SETTINGS, shards, classes=PAIR), part("train"), part("test")
    assert sorted([*train.sample_id, *test.sample_id]) == whole.sample_id.tolist()
    assert np.bincount(test.labels).tolist() == np.bincount(train.labels).tolist() == [2, 2]
    rows = np.flatnonzero(np.isin(whole.sample_id, test.sample_id))
    np.testing.assert_array_equal(load_all(test)[0], load_all(whole)[0][rows])
    np.testing.assert_array_equal(test.labels, whole.labels[rows])
    assert part("test").digest == test.digest != whole.digest
    assert {tuple(part("test", seed).sample_id) for seed in range(8)} != {tuple(test.sample_id)}


def test_datasets_of_other_labels_have_the_same_parts_where_they_are_within_one_column(tmp_path):
    path, labels, other = tmp_path / "a.parquet", [0, 1, 0, 1, 0, 1, 1, 0], [0, 0, 0, 0, 1, 1, 1, 1]
    pq.write_table(table(range(8), labels).set_column(2, "other", pa.array(other)), path)

    def part(label, within):
        chosen = {"name": "test", "test_share": 0.5, "seed": 0, "within": within}
        return open_images({**SETTINGS, "label": label, "part": chosen}, path, classes=PAIR)

    found = part("other", "label")
    assert found.sample_id.tolist() == part("label", None).sample_id.tolist() != part("other", None).sample_id.tolist()
    assert found.labels.tolist() == [other[int(name[-6:])] for name in found.sample_id]


@pytest.mark.parametrize("part", [{"subset": {"per_class": 2, "seed": 0}}, {"half": "judging"}])
def test_a_manifest_of_a_part_names_classes_that_are_numbers(tmp_path, part):
    pq.write_table(table(range(8), [0, 1] * 4), tmp_path / "a.parquet")
    images, manifest = open_and_describe({**SETTINGS, **part}, tmp_path / "a.parquet", dataset="d", classes=None)
    assert manifest["classes"] == list(images.class_names) == ["0", "1"]
    assert manifest["samples_per_class"] == [2, 2]


def test_plain_bytes_and_other_column_names_are_read(tmp_path):
    path = tmp_path / "a.parquet"
    renamed = table([0, 1], [1, 0], plain=True).rename_columns(["img", "fine_label", "other"])
    pq.write_table(renamed, path)
    images = open_images({**SETTINGS, "image": "img", "label": "fine_label"}, path, classes=PAIR)
    assert load_all(images)[0].shape == (2, 3, 8, 9)


def test_files_of_a_folder_name_the_classes_alike(tmp_path):
    def write(shard, names, seeds):
        metadata = {"huggingface": json.dumps({"info": {"features": {"label": {"names": names}}}})}
        pq.write_table(table(seeds, [0, 1], metadata=metadata), tmp_path / shard)

    write("0.parquet", ["dog", "cat"], [0, 1])
    pq.write_table(table([2, 3], [0, 1]), tmp_path / "1.parquet")
    write("2.PARQUET", ["dog", "cat"], [4, 5])
    images = open_images(SETTINGS, tmp_path, classes=None)
    assert images.class_names == ("dog", "cat") and len(images) == 6
    write("3.parquet", ["cat", "dog"], [6, 7])
    with pytest.raises(InputError, match=r"3\.parquet: the metadata name the classes of label cat, dog, other files"):
        open_images(SETTINGS, tmp_path, classes=None)


def test_names_in_the_metadata_guard_the_order_of_the_classes(tmp_path):
    features = {"info": {"features": {"label": {"names": ["dog", "cat"], "_type": "ClassLabel"}}}}
    path = tmp_path / "a.parquet"
    pq.write_table(table([0, 1], [0, 1], metadata={"huggingface": json.dumps(features)}), path)
    assert open_images(SETTINGS, path, classes=["dog", "cat"]).class_names == ("dog", "cat")
    with pytest.raises(InputError, match="'cat' is label 0 in `classes`, but label 1 in the data"):
        open_images(SETTINGS, path, classes=PAIR)


def test_faulty_files_are_named(shards, tmp_path):
    path = shards / "test-0.parquet"
    whole = path.read_bytes()
    with pytest.raises(InputError, match=r"test-0\.parquet: no column img, only image, label, other"):
        open_images({**SETTINGS, "image": "img"}, path, classes=PAIR)
    with pytest.raises(InputError, match="no column y, only"):
        open_images({**SETTINGS, "label": "y"}, path, classes=PAIR)
    with pytest.raises(InputError, match=r"column image is struct.*; give whole numbers"):
        open_images({**SETTINGS, "label": "image"}, path, classes=PAIR)
    with pytest.raises(InputError, match="row 0 holds no encoded image"):
        open_images({**SETTINGS, "image": "other"}, path, classes=PAIR)
    pq.write_table(table([0, 1], [0, None]), path)
    with pytest.raises(InputError, match="column label is int64, 1 null"):
        open_images(SETTINGS, path, classes=PAIR)
    for content in (whole[: len(whole) // 2], b"", b"<!doctype html>", whole[:-3] + b"???"):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"test-0\.parquet: not a whole Parquet file"):
            open_images(SETTINGS, shards, classes=PAIR)
    with pytest.raises(InputError, match=r"absent\.parquet: not a whole Parquet file"):
        open_images(SETTINGS, tmp_path / "absent.parquet", classes=PAIR)
    with pytest.raises(InputError, match=r"no \.parquet file in this folder"):
        open_images(SETTINGS, tmp_path, classes=PAIR)
    pq.write_table(table([], []), path)
    with pytest.raises(InputError, match="no rows"):
        open_images(SETTINGS, path, classes=PAIR)


@pytest.mark.parametrize("labels", [pa.array([0, 1, 2**32]), pa.array([0, 1, 2**64 - 2**32], pa.uint64())])
def test_labels_that_no_32_bits_hold_are_refused(labels, tmp_path):
    images = [png(seed) for seed in range(3)]
    pq.write_table(pa.table({"image": images, "label": labels}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"a\.parquet: label: row 2 has label \d{10,}; labels count from 0 to K-1"):
        open_images(SETTINGS, tmp_path / "a.parquet", classes=PAIR)


def test_a_column_that_stands_twice_is_named(tmp_path):
    images, labels = pa.array([png(0), png(1)]), pa.array([0, 1])
    for names in (["image", "label", "label"], ["image", "label", "image"]):
        columns = [{"image": images, "label": labels}[name] for name in names]
        pq.write_table(pa.Table.from_arrays(columns, names=names), tmp_path / "a.parquet")
        with pytest.raises(InputError, match=rf"a\.parquet: has 2 columns {names[2]}; rename one"):
            open_images(SETTINGS, tmp_path / "a.parquet", classes=PAIR)


@pytest.mark.parametrize("kind", [pa.string(), pa.int64()])
def test_labels_stored_by_dictionary_are_read(kind, tmp_path):
    labels = pa.array([1, 0, 1]).cast(kind).dictionary_encode()
    made = pa.table({"image": [png(seed) for seed in range(3)], "label": labels})
    pq.write_table(made, tmp_path / "a.parquet")
    assert open_images(SETTINGS, tmp_path / "a.parquet", classes=["0", "1"]).labels.tolist() == [1, 0, 1]
    missing = pa.array([1, None, 1]).cast(kind).dictionary_encode()
    pq.write_table(made.set_column(1, "label", missing), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"column label is .*, 1 null"):
        open_images(SETTINGS, tmp_path / "a.parquet", classes=["0", "1"])


def test_real_images_of_cifar10_are_streamed(real_data):
    path = real_data / "cifar10/test_jpeg_10000.parquet"
    images = open_images({**SETTINGS, "subset": {"samples": 200, "seed": 0}}, path, classes=TEN)
    assert (np.bincount(images.labels) == 20).all()
    assert [batch.shape for batch in images.batches(150)] == [(150, 3, 32, 32), (50, 3, 32, 32)]
    whole = open_images(SETTINGS, path, classes=TEN)
    lossless = np.load(real_data / "cifar10/test_lossless_1017.npz")
    first = next(whole.batches(1017))
    assert (np.bincount(whole.labels) == 1000).all()
    np.testing.assert_array_equal(whole.labels[:1017], lossless["y"])
    assert np.abs(first - lossless["x"] / 255).mean() < 0.03
