import os
import pickle
import resource
import struct

import numpy as np
import pytest

from gfscore.core.errors import InputError
from gfscore.images.datasets import load_all, open_images
from gfscore.images.published_files import load_plain

TEN = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
TEST = {"source": "cifar", "variant": "cifar10", "split": "test"}
HUNDRED = [f"class{label:02d}" for label in range(100)]


def text(value):
    """A byte string as Python 2 pickled it."""
    return b"T" + struct.pack("<I", len(value)) + value


def python2_pickle(pixels, labels, key=b"labels"):
    """The bytes that Python 2 wrote for {"data": array, key: list}: protocol 2, byte strings, numpy.core."""
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00t" + text(b"b") + b"tR"
        b"(K\x01(J" + struct.pack("<i", len(pixels)) + b"J" + struct.pack("<i", pixels.shape[1]) + b"t"
        b"cnumpy\ndtype\n("
        + text(b"u1")
        + b"K\x00K\x01tR(K\x03"
        + text(b"|")
        + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xff"
        b"K\x00tb\x89" + text(pixels.tobytes()) + b"tb"
    )
    listed = b"](" + b"".join(b"K" + bytes([label]) for label in labels) + b"e"
    return b"\x80\x02}(" + text(b"data") + array + text(key) + listed + b"u."


@pytest.fixture(scope="module")
def made():
    """Pixels (10000, 3072) uint8, channels first, and labels."""
    rng = np.random.default_rng(0)
    return rng.integers(0, 256, (10_000, 3072), dtype=np.uint8), (np.arange(10_000) % 10).astype(np.uint8)


@pytest.fixture(scope="module")
def forms(made, tmp_path_factory):
    """Folders of the Python form as published, as Python 3 writes it, and of the binary form."""
    root = tmp_path_factory.mktemp("cifar")
    pixels, labels = made
    contents = {
        "published/cifar-10-batches-py/test_batch": python2_pickle(pixels, labels),
        "again/test_batch": pickle.dumps({"data": pixels, "labels": labels.tolist(), "filenames": ["a"]}, protocol=2),
        "fourth/test_batch": pickle.dumps({"data": pixels, "labels": labels.tolist()}, protocol=4),
        "binary/cifar-10-batches-bin/test_batch.bin": np.concatenate([labels[:, None], pixels], axis=1).tobytes(),
    }
    for name, content in contents.items():
        (root / name).parent.mkdir(parents=True)
        (root / name).write_bytes(content)
    meta = root / "published/cifar-10-batches-py/batches.meta"
    meta.write_bytes(pickle.dumps({"label_names": [name.encode() for name in TEN]}, protocol=2))
    return root


def test_every_form_gives_the_same_images(forms, made):
    pixels, labels = made
    digests = set()
    for form in ("published", "published/cifar-10-batches-py", "again", "fourth", "binary"):
        images = open_images(TEST, forms / form, classes=TEN)
        assert images.labels.tolist() == labels.tolist()
        assert images.image_shape == (3, 32, 32)
        assert images.sample_id[[0, -1]].tolist() == ["cifar10-test-00000", "cifar10-test-09999"]
        first = next(images.batches(5))
        np.testing.assert_array_equal(first, pixels[:5].reshape(5, 3, 32, 32).astype(np.float32) / np.float32(255))
        digests.add(images.digest)
    assert len(digests) == 1


def test_training_batches_are_read_in_order(made, tmp_path):
    pixels, labels = made
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    for number in range(1, 6):
        rows = np.concatenate([np.roll(labels, number)[:, None], pixels], axis=1)
        (folder / f"data_batch_{number}.bin").write_bytes(rows.tobytes())
    images = open_images({**TEST, "split": "train"}, tmp_path, classes=TEN)
    assert len(images) == 50_000
    assert images.labels[[0, 10_000, 40_000]].tolist() == [9, 8, 5]
    assert images.sample_id[-1] == "cifar10-train-49999"
    (folder / "data_batch_3.bin").unlink()
    with pytest.raises(InputError, match="no complete set data_batch_1"):
        open_images({**TEST, "split": "train"}, tmp_path, classes=TEN)


def test_cifar100_has_its_fine_labels_in_both_forms(made, tmp_path):
    pixels, _ = made
    fine, coarse = (np.arange(10_000) % 100).astype(np.uint8), (np.arange(10_000) % 20).astype(np.uint8)
    contents = {
        "cifar-100-python/test": python2_pickle(pixels, fine, b"fine_labels"),
        "other/cifar-100-binary/test.bin": np.concatenate([coarse[:, None], fine[:, None], pixels], axis=1).tobytes(),
    }
    for name, content in contents.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_bytes(content)
    settings = {**TEST, "variant": "cifar100"}
    python, binary = (open_images(settings, folder, classes=HUNDRED) for folder in (tmp_path, tmp_path / "other"))
    assert python.labels[:3].tolist() == [0, 1, 2]
    assert python.digest == binary.digest


def test_the_names_in_the_archive_guard_the_order_of_the_classes(forms):
    with pytest.raises(InputError, match="'cat' is label 2 in `classes`, but label 3 in the data"):
        open_images(TEST, forms / "published", classes=[*TEN[:2], "cat", "bird", *TEN[4:]])


@pytest.mark.parametrize(
    ("names", "message"),
    [
        *((value, "label_names is no list of names") for value in (5, None, TEN[0], [*range(10)])),
        ([b"\xff"] * 10, "has a name that is no UTF-8 text"),
        (["\udcff"] * 10, r"the name '\\udcff' is no UTF-8; rename"),
    ],
)
def test_names_in_the_archive_that_are_none_are_refused(names, message, forms, tmp_path):
    (tmp_path / "test_batch").symlink_to(forms / "again/test_batch")
    (tmp_path / "batches.meta").write_bytes(pickle.dumps({b"label_names": names}, protocol=2))
    with pytest.raises(InputError, match=message):
        open_images(TEST, tmp_path, classes=None)


@pytest.mark.parametrize(
    "content",
    [
        b"\x80\x02Nr\xff\xff\xff\x1f.",
        b"\x80\x02Nr\xff\xff\xff\xff.",
        b"Np99999999\n.",
        b"Np-5\n.",
        # what the scan does not understand the reader might
        b"\x80\x02I01\nNr\xff\xff\xff\x1f.",
    ],
)
def test_a_table_of_gigabytes_is_not_made_for_a_few_bytes(content, tmp_path):
    (tmp_path / "test_batch").write_bytes(content)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InputError, match=r"test_batch: not a whole pickle of CIFAR \(value number -?\d+ in"):
        load_plain(tmp_path / "test_batch")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + 50_000


class Dangerous:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_malicious_pickle_executes_nothing_and_is_refused(protocol, tmp_path):
    evidence = tmp_path / "executed"
    harmful = pickle.dumps({"data": Dangerous(evidence), "labels": [0]}, protocol=protocol)
    (tmp_path / "test_batch").write_bytes(harmful)
    with pytest.raises(InputError, match=r"test_batch: the pickle names \w+\.system, .* nothing was run"):
        open_images(TEST, tmp_path, classes=TEN)
    assert not evidence.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"cnumpy\nndarray\n}(S'__code__'\nI1\nub.",  # state for a stand-in
        b"cnumpy\nndarray\n(N}S'make'\nI1\nstb.",  # attributes of a stand-in
        b"\x80\x02cnumpy\nndarray\n)\x81.",  # the stand-in as a class to be built
        b"\x80\x04\x8c\x05numpy\x8c\x0fndarray.tofile.x\x93.",  # an attribute's attribute
        b"cnumpy.core.multiarray\n_reconstruct\n(tR(I1\n(I5\ntNI0\nS'x'\ntb.",  # a type that is none
        b"cnumpy\ndtype\n(S'O8'\ntR.",  # an array of objects
        b"c_codecs\nencode\n(S'x'\nS'rot13'\ntR.",
        b"\x80\x02]q\x00.",
        b"",
        b"<!doctype html>",
    ],
)
def test_crafted_pickles_are_refused_with_the_name_of_the_file(content, tmp_path):
    (tmp_path / "test_batch").write_bytes(content)
    with pytest.raises(InputError, match="test_batch: "):
        load_plain(tmp_path / "test_batch")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("test_batch.bin", bytes(3073 * 2 - 1), r"test_batch\.bin: 6145 bytes are not whole images of 3073"),
        ("test_batch.bin", b"", "0 bytes are not whole images"),
        ("test_batch.bin", bytes(3073 * 20), "20 images, but cifar10 test has 10000"),
        ("test_batch", python2_pickle(np.zeros((2, 12), dtype=np.uint8), [1, 2]), r"no uint8 data \(n, 3072\)"),
        ("test_batch", python2_pickle(np.zeros((2, 3072), dtype=np.uint8), [1]), "no uint8 data"),
        ("test_batch", python2_pickle(np.zeros((2, 3072), dtype=np.uint8), [1, 2]), "2 images, but cifar10"),
        ("test_batch", pickle.dumps({"data": [[1], [2, 3]], "labels": [[1], [2, 3]]}), "no uint8 data"),
        ("test_batch", pickle.dumps({"labels": [1]}), "no uint8 data"),
        ("test_batch", pickle.dumps({"data": 1, "labels": [2**70]}), "no uint8 data"),
        ("elsewhere", b"", r"no complete set test_batch\[\.bin\] here or in cifar-10-batches-py"),
    ],
)
def test_incomplete_files_are_refused(name, content, message, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        open_images(TEST, tmp_path, classes=TEN)


def test_the_real_images_read_the_same_through_the_archive(real_data, tmp_path):
    """The real test images, stored as the archive stores them, are those of the lossless file."""
    stored = np.load(real_data / "cifar10/test_lossless_1017.npz")
    x, y = (np.resize(stored[key], (10_000, *stored[key].shape[1:])) for key in ("x", "y"))
    (tmp_path / "test_batch").write_bytes(python2_pickle(x.reshape(10_000, -1), y.tolist()))
    images = open_images(TEST, tmp_path, classes=TEN)
    source = {"source": "npz", "value_range": 255, "channels": "first"}
    lossless = open_images(source, real_data / "cifar10/test_lossless_1017.npz", classes=TEN)
    np.testing.assert_array_equal(next(images.batches(1017)), load_all(lossless)[0])
