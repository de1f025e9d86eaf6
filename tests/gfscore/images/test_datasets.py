import hashlib
from dataclasses import replace

import numpy as np
import pytest

from gfscore.core.errors import InputError
from gfscore.core.files import write_json
from gfscore.images.datasets import load_all, open_images
from gfscore.images.image_set import ImageSet, from_arrays
from gfscore.images.manifests import image_digests, open_and_describe, open_described

DIGITS = {"source": "digits", "test_share": 0.5, "seed": 0}
NAMES = [str(digit) for digit in range(10)]
PAIR = ["cat", "dog"]
NPZ = {"source": "npz", "value_range": 255, "channels": "last"}


@pytest.fixture
def saved(tmp_path):
    """Function that saves arrays and returns the path; by default four valid 9x8 colour images, channels last."""
    rng = np.random.default_rng(0)
    arrays = {"x": rng.integers(0, 256, (4, 9, 8, 3), dtype=np.uint8), "y": np.array([1, 0, 1, 0])}

    def save(**changes):
        path = tmp_path / "pets.npz"
        np.savez(path, **{key: value for key, value in {**arrays, **changes}.items() if value is not None})
        return path

    return save


def test_digits_are_split_once_and_for_all_classes_alike():
    train = open_images({**DIGITS, "split": "train"}, classes=NAMES)
    test = open_images({**DIGITS, "split": "test"}, classes=NAMES)
    assert len(train) + len(test) == 1797
    assert not set(train.sample_id) & set(test.sample_id)
    assert all(87 <= count <= 92 for count in np.bincount(test.labels))
    images, labels = load_all(test)
    assert images.shape == (len(test), 1, 8, 8)
    assert images.dtype == np.float32
    assert (images.min(), images.max()) == (0, 1)
    assert labels.dtype == np.int32


def test_an_identifier_of_a_digit_is_its_place_in_scikit_learn():
    from sklearn.datasets import load_digits

    data = load_digits()
    test = open_images({**DIGITS, "split": "test"}, classes=NAMES)
    rows = [int(name.removeprefix("digits-")) for name in test.sample_id]
    np.testing.assert_array_equal(load_all(test)[0][:, 0] * 16, data.images[rows])
    np.testing.assert_array_equal(test.labels, data.target[rows])


def test_share_and_seed_determine_the_split():
    def of(**changes):
        return set(open_images({**DIGITS, "split": "test", **changes}, classes=NAMES).sample_id)

    assert of() == of()
    assert of() != of(seed=1)
    assert len(of(test_share=0.2)) == pytest.approx(0.2 * 1797, abs=5)


def test_batches_keep_the_order_whatever_their_size():
    test = open_images({**DIGITS, "split": "test"}, classes=NAMES)
    whole = np.concatenate(list(test.batches(10_000)))
    for size in (1, 7, 256):
        parts = list(test.batches(size))
        assert {len(part) for part in parts[:-1]} <= {size}
        np.testing.assert_array_equal(np.concatenate(parts), whole)


def make(images, labels, names):
    return from_arrays(images, labels, sample_id=names, preprocessing="none")


def test_the_digest_is_what_its_description_says():
    images = np.arange(8, dtype=np.float32).reshape(2, 1, 2, 2) / 10
    expected = hashlib.sha256(b"gfscore image set 1 1 2 2\n")
    for name, label, image in (("a", 3, images[0]), ("b", 1, images[1])):
        expected.update(name.encode() + b"\0" + label.to_bytes(4, "little") + image.astype("<f4").tobytes())
    assert make(images, [3, 1], ["a", "b"]).digest == expected.hexdigest()


def test_the_digest_changes_with_pixels_labels_and_order():
    images = np.arange(8, dtype=np.float32).reshape(2, 1, 2, 2) / 10
    moved = images + np.float32(1e-6)
    digests = {
        make(images, [0, 1], ["a", "b"]).digest,
        make(moved, [0, 1], ["a", "b"]).digest,
        make(images, [1, 0], ["a", "b"]).digest,
        make(images[::-1], [1, 0], ["b", "a"]).digest,
        make(images, [0, 1], ["a", "c"]).digest,
        make(images.reshape(2, 1, 1, 4), [0, 1], ["a", "b"]).digest,
    }
    assert len(digests) == 6


def streaming(kind):
    """Five samples whose images are those of a subclass of ImageSet."""
    labels = np.zeros(5, dtype=np.int32)
    return kind(sample_id=np.array(list("abcde")), labels=labels, image_shape=(1, 8, 8), preprocessing="none")


def test_a_streaming_source_needs_no_array():
    class Streamed(ImageSet):
        def stream(self, batch_size):
            for start in range(0, 5, batch_size):
                yield np.full((min(batch_size, 5 - start), 1, 8, 8), 0.25, dtype=np.float32)

    images = streaming(Streamed)
    assert [len(batch) for batch in images.batches(2)] == [2, 2, 1]
    kept = make(np.full((5, 1, 8, 8), 0.25, dtype=np.float32), np.zeros(5), list("abcde"))
    assert images.digest == kept.digest


@pytest.mark.parametrize(
    ("value", "count", "message"),
    [(1.5, 5, "outside"), (np.nan, 5, "outside"), (0.5, 4, "4 images for 5 labels"), (0.5, 6, "6 images for 5")],
)
def test_a_stream_that_breaks_its_promise_is_refused(value, count, message):
    class Streamed(ImageSet):
        def stream(self, batch_size):
            yield np.full((count, 1, 8, 8), value, dtype=np.float32)

    for read in (ImageSet.batches, ImageSet.stored_batches):
        with pytest.raises(InputError, match=message):
            list(read(streaming(Streamed), 10))


@pytest.mark.parametrize(("shape", "dtype"), [((5, 1, 8, 8), "uint8"), ((5, 1, 8, 8), "float64"), ((5, 8, 8, 1), "f4")])
def test_a_stream_of_another_shape_or_type_is_refused(shape, dtype):
    class Streamed(ImageSet):
        def stream(self, batch_size):
            yield np.zeros(shape, dtype)

    with pytest.raises(InputError, match=r"images from row 0 on are .*expected float32 \(1, 8, 8\)"):
        list(streaming(Streamed).batches(10))


def test_every_layout_of_an_npz_gives_the_same_images(saved):
    first = np.random.default_rng(1).integers(0, 256, (4, 3, 9, 8), dtype=np.uint8)
    layouts = [
        (first, 255, "first"),
        (first.transpose(0, 2, 3, 1), 255, "last"),
        (first.astype(np.float32), 255, "first"),
        (first.astype(np.float32) / np.float32(255), 1, "first"),
    ]
    digests = set()
    for x, scale, channels in layouts:
        settings = {"source": "npz", "value_range": scale, "channels": channels}
        images = open_images(settings, saved(x=x), classes=PAIR)
        np.testing.assert_array_equal(load_all(images)[0], first.astype(np.float32) / np.float32(255))
        digests.add(images.digest)
    assert len(digests) == 1
    grey = open_images({**NPZ, "channels": "none"}, saved(x=first[:, 0]), classes=PAIR)
    assert grey.image_shape == (1, 9, 8)
    assert grey.sample_id.tolist() == ["npz-000000", "npz-000001", "npz-000002", "npz-000003"]
    assert grey.labels.tolist() == [1, 0, 1, 0]


def test_signed_pixels_are_below_0_somewhere(saved):
    x = np.random.default_rng(1).random((4, 3, 8, 9), dtype=np.float32)
    settings = {"source": "npz", "value_range": "signed", "channels": "first"}
    with pytest.raises(InputError, match=r"no pixel is below 0\.00\d+, and signed means from -1 to 1; set value_range"):
        open_images(settings, saved(x=x), classes=PAIR)
    images = open_images(settings, saved(x=2 * x - 1), classes=PAIR)
    np.testing.assert_allclose(load_all(images)[0], x, atol=1e-6)


def test_arrays_have_names_of_their_own_in_a_file_or_a_folder(saved, tmp_path):
    x = np.random.default_rng(1).random((4, 9, 8, 3), dtype=np.float32)
    named = {"source": "npz", "image": "images", "label": "targets", "value_range": None, "channels": None}
    expected = open_images({**NPZ, "value_range": 1}, saved(x=x), classes=PAIR)
    arrays = {"images": x * 2 - 1, "targets": np.eye(2)[expected.labels]}
    for name, array in arrays.items():
        (tmp_path / "folder").mkdir(exist_ok=True)
        np.save(tmp_path / f"folder/{name}.npy", array)
    np.savez(tmp_path / "named.npz", **arrays)
    for place in ("folder", "named.npz"):
        images = open_images({**named, "value_range": "signed"}, tmp_path / place, classes=PAIR)
        np.testing.assert_allclose(load_all(images)[0], load_all(expected)[0], atol=1e-6)
        assert images.labels.tolist() == expected.labels.tolist()
    with pytest.raises(InputError, match=r"folder: array 'pictures' is unknown.*images, targets"):
        open_images({**named, "image": "pictures"}, tmp_path / "folder", classes=PAIR)
    with pytest.raises(InputError, match=r"folder: array '\.\./named' is unknown"):
        open_images({**named, "image": "../named"}, tmp_path / "folder", classes=PAIR)
    with pytest.raises(InputError, match=r"named\.npz: row 0 has pixels from -\S+ to \S+, outside 0\.\.1"):
        open_images(named, tmp_path / "named.npz", classes=PAIR)


BAD = [
    ({"x": None}, {}, "no array x, only y; name the array of images as `image`"),
    ({"y": None}, {}, "no array y, only x"),
    ({"y": np.array([0, 1, 0])}, {}, r"pets\.npz: y: shape \(3,\) for 4 images"),
    ({"y": np.array([0.0, 0.5, 1.0, 1.0])}, {}, "whole numbers"),
    ({"y": np.array([0, 1, 2, 1])}, {}, "row 2 has label 2, outside 0..1"),
    ({"y": np.array([0, -1, 1, 1])}, {}, "row 1 has label -1"),
    ({"y": np.array([1, 1, 1, 1])}, {}, "no sample of class 'cat'"),
    ({"y": np.array(["a", "b", "a", "b"])}, {}, r"pets\.npz: y: row 0 is 'a', none of the 2 classes"),
    ({"x": np.full((4, 9, 8, 3), 256)}, {}, "row 0 has pixels from 256 to 256, outside 0..255"),
    ({"x": np.full((4, 9, 8, 3), -0.1)}, {}, "outside 0..255"),
    ({"x": np.full((4, 9, 8, 3), 0.5)}, {}, "set value_range: 1"),
    ({"x": np.full((4, 9, 8, 3), 2.0)}, {"value_range": 1}, "outside 0..1"),
    ({"x": np.full((4, 9, 8, 3), np.nan)}, {"value_range": 1}, "row 0 has pixels from nan to nan"),
    ({"x": np.full((4, 9, 8, 3), np.inf)}, {"value_range": 1}, "row 0 has pixels"),
    ({"x": np.zeros((4, 9, 8))}, {}, "3, 9, 8|means 4 dimensions"),
    ({"x": np.zeros((4, 9, 8, 3))}, {"channels": "first"}, "9 channels"),
    ({"x": np.zeros((0, 9, 8, 3)), "y": np.zeros(0, dtype=int)}, {}, "no pixels"),
    ({"x": np.array(["a", "b", "c", "d"]).reshape(4, 1, 1, 1)}, {}, "save numbers"),
]


@pytest.mark.parametrize(("arrays", "settings", "message"), BAD)
def test_a_faulty_npz_is_refused_with_its_name_and_the_remedy(arrays, settings, message, saved):
    with pytest.raises(InputError, match=message) as caught:
        open_images({**NPZ, **settings}, saved(**arrays), classes=PAIR)
    assert "pets.npz" in str(caught.value)


def test_labels_are_called_what_they_are_called_in_the_file(tmp_path):
    """Only .npz files of images call them y."""
    for content, name, seen in (
        (b"y\n0.5\n1\n", "y", r"row 0 is 0\.5"),
        (b"kind,y\n0,0\n1,\n", "y", r"row 1 is nan \(an empty cell\?\)"),
    ):
        (tmp_path / "mine.csv").write_bytes(content)
        expected = rf"mine\.csv: {name}: dtype .*, {seen}; give whole numbers 0\.\.K-1, .* in `classes`"
        with pytest.raises(InputError, match=expected):
            open_images({"source": "labels"}, tmp_path / "mine.csv", classes=PAIR)
    (tmp_path / "mine.csv").write_text("kind,label\n0,cat\n1,1\n")
    with pytest.raises(InputError, match=r"mine\.csv: label: row 1 is '1', none of the 2 classes"):
        open_images({"source": "labels"}, tmp_path / "mine.csv", classes=PAIR)
    (tmp_path / "mine.csv").write_text("label\n0\n-1\n")
    with pytest.raises(InputError, match=r"mine\.csv: label: row 1 has label -1; labels count from 0"):
        open_images({"source": "labels"}, tmp_path / "mine.csv", classes=PAIR)
    with pytest.raises(InputError, match=r"^labels: shape \(2,\) for 3 images"):
        make(np.zeros((3, 1, 2, 2)), [0, 1], list("abc"))
    with pytest.raises(InputError, match=r"^labels: dtype <U1, row 0 is 'a'; give whole numbers"):
        make(np.zeros((3, 1, 2, 2)), list("abc"), list("abc"))


def test_names_of_classes_count_in_the_order_of_the_configuration(tmp_path):
    """Not in that of the alphabet, or of the file."""
    path = tmp_path / "mine.csv"
    path.write_text("label\nemu\ncat\nemu\ndog\n")
    classes = ["dog", "emu", "cat"]
    images = open_images({"source": "labels"}, path, classes=classes)
    assert images.labels.tolist() == [1, 2, 1, 0]
    manifest = open_and_describe({"source": "labels"}, path, dataset="mine", classes=classes)[1]
    assert manifest["samples_per_class"] == [1, 2, 1] and "classes" not in manifest["settings"]
    with pytest.raises(
        InputError, match=r"mine\.csv: label: row 0 is 'emu', a name, .* lists no classes; list all names under"
    ):
        open_images({"source": "labels"}, path, classes=None)


def test_nobody_is_told_how_to_unpickle_what_is_no_file_of_arrays(saved):
    path = saved()
    path.write_bytes(b"\x00 of no format")
    with pytest.raises(InputError, match=r"\(neither a \.npy nor a \.npz file\); copy or download it again"):
        open_images(NPZ, path, classes=PAIR)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"absent\.npz: there is no such file; check `path`"):
        open_images(NPZ, tmp_path / "absent.npz", classes=PAIR)


def test_missing_classes_are_named_and_one_class_is_refused():
    with pytest.raises(InputError, match=r"no sample of class 'ten' \(1 of 11 classes\)"):
        open_images({**DIGITS, "split": "test"}, classes=[*NAMES, "ten"])
    with pytest.raises(InputError, match="at least 2 classes"):
        open_images({**DIGITS, "split": "test"}, classes=["only"])
    with pytest.raises(InputError, match=r"has label 9, outside 0\.\.8"):
        open_images({**DIGITS, "split": "test"}, classes=NAMES[:9])


def test_an_unknown_source_names_the_known_ones():
    with pytest.raises(InputError, match=r"'mnist' is unknown; .*cifar, .*npz"):
        open_images({"source": "mnist"}, classes=NAMES)


@pytest.mark.parametrize("settings", [{"value_rnage": 1}, {"value_range": 2}, {"subset": {"samples": 0}}])
def test_settings_that_a_source_does_not_have_are_refused_by_their_key(settings, saved):
    with pytest.raises(InputError, match=rf"pets\.npz: {next(iter(settings))}.*correct the settings of this dataset"):
        open_images({"source": "npz", **settings}, saved(), classes=PAIR)


def test_the_generators_files_are_opened(saved):
    x = np.full((4, 1, 8, 8), 0.5, dtype=np.float32)
    images = open_images({"source": "generated"}, saved(x=x), classes=PAIR)
    assert images.sample_id[0] == "generated-000000"
    np.testing.assert_array_equal(load_all(images)[0], x)


def test_class_names_are_checked_against_those_of_the_data(saved, monkeypatch):
    path = saved()
    whole = open_images(NPZ, path, classes=PAIR)
    import gfscore.images.sources.npz as source

    monkeypatch.setattr(source, "open_source", lambda *_: replace(whole, class_names=("dog", "cat")))
    with pytest.raises(InputError, match="'cat' is label 0 in `classes`, but label 1 in the data"):
        open_images(NPZ, path, classes=PAIR)
    with pytest.raises(InputError, match="'Cat' is label 0 in `classes`, but label 1 in the data"):
        open_images(NPZ, path, classes=["Cat", "Dog"])
    assert len(open_images(NPZ, path, classes=["hound", "cat"])) == 4
    monkeypatch.setattr(source, "open_source", lambda *_: replace(whole, class_names=("n02099601", "n02123045")))
    with pytest.raises(InputError, match="'tabby' is label 0 in `classes`, but label 1 in the data"):
        open_images(NPZ, path, classes=["tabby", "golden_retriever"])
    assert len(open_images(NPZ, path, classes=["Golden_retriever", "tabby"])) == 4
    # Names that differ in capitals alone are two classes.
    monkeypatch.setattr(source, "open_source", lambda *_: replace(whole, class_names=("a", "A")))
    assert len(open_images(NPZ, path, classes=["a", "A"])) == 4
    monkeypatch.setattr(source, "open_source", lambda *_: replace(whole, class_names=("dog", "cat")))
    with pytest.raises(InputError, match="only in the data: none; only declared: cow; correct"):
        open_images(NPZ, path, classes=["dog", "cat", "cow"])
    with pytest.raises(InputError, match="'dog' is repeated"):
        open_images(NPZ, path, classes=["dog", "dog"])
    with pytest.raises(InputError, match=r"classes 'd\\xf6g' and 'do\\u0308g' differ in .* Unicode alone"):
        open_images(NPZ, path, classes=["d\u00f6g", "do\u0308g"])
    assert len(open_images(NPZ, path, classes=["a", "A"])) == 4


def test_a_pinned_digest_is_enforced(saved):
    path = saved()
    described = open_and_describe(NPZ, path, dataset="pets", classes=PAIR)[1]
    for pinned in (described["digest"], described["digest"].upper()):
        assert open_and_describe(NPZ, path, dataset="pets", classes=PAIR, pinned=pinned)[1] == described
    with pytest.raises(InputError, match=r"pets\.npz: the data have digest .*, but config\.yaml pins 000"):
        open_and_describe(NPZ, path, dataset="pets", classes=PAIR, pinned="0" * 64)[1]


def test_a_described_dataset_is_opened_again_and_a_changed_one_refused(saved, tmp_path):
    path = saved()
    manifest = tmp_path / "pets.json"
    described = open_and_describe(NPZ, path, dataset="pets", classes=PAIR)[1]
    assert described["samples_per_class"] == [2, 2]
    assert described["image_shape"] == [3, 9, 8]
    write_json(manifest, described)
    images, read = open_described(manifest)
    assert images.digest == read["digest"] == described["digest"]
    saved(y=np.array([0, 0, 1, 1]))
    with pytest.raises(InputError, match=r"pets\.npz: the data have digest .*delete that manifest"):
        open_described(manifest)


def test_equal_images_have_equal_digests_whatever_part_they_are_read_in(saved):
    pixels = np.random.default_rng(0).integers(0, 256, (4, 9, 8, 3), dtype=np.uint8)
    pixels[2] = pixels[0]
    path = saved(x=pixels)
    settings = NPZ | {"image": "x", "label": "y"}
    images = open_images(settings, path, classes=PAIR)
    digests = image_digests(images, where=path)["pixel_digest"]
    assert digests[0] == digests[2] and len(set(digests)) == 3
    part = image_digests(images.select(np.array([1, 2])), where=path)
    np.testing.assert_array_equal(part["pixel_digest"], digests[1:3])
    np.testing.assert_array_equal(part["image_digest"], digests[1:3])


def test_an_image_under_two_labels_is_refused(saved):
    pixels = np.random.default_rng(0).integers(0, 256, (4, 9, 8, 3), dtype=np.uint8)
    pixels[3] = pixels[0]
    path = saved(x=pixels)
    images = open_images(NPZ | {"image": "x", "label": "y"}, path, classes=PAIR)
    with pytest.raises(InputError, match=r"pets\.npz: \S+ \(label 1\) and \S+ \(label 0\) are one image"):
        image_digests(images, where=path)


def test_labels_without_images_have_no_digests(tmp_path):
    np.save(tmp_path / "y.npy", np.array([0, 1, 0]))
    images = open_images({"source": "labels"}, tmp_path / "y.npy", classes=PAIR)
    assert image_digests(images, where="y.npy") == {"image_digest": None, "pixel_digest": None}
