import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from fetch_dataset import fetch_dataset
from gfscore.core.errors import InputError
from gfscore.images import decoding, encoded
from gfscore.images.datasets import load_all, open_images
from gfscore.images.image_set import ImageSet, LabelsAlone, from_arrays
from gfscore.images.manifests import open_and_compare, open_and_describe, open_described
from gfscore.images.subsets import draw_of_each_class, draw_subset, first_rows, half_rows
from gfscore.tables.parquet_tables import read_table
from gfscore.tables.table import DATASET

DIGITS = {"source": "digits", "split": "test", "test_share": 0.5, "seed": 0}
HALVES = ({}, {"half": "choosing"}, {"half": "judging"})
NAMES = [str(digit) for digit in range(10)]


@given(st.lists(st.integers(0, 4), min_size=5, max_size=80), st.integers(0, 5), st.data())
def test_a_subset_is_stratified_ascending_and_repeatable(labels, seed, data):
    labels = np.array(labels)
    k = len(np.unique(labels))
    samples = data.draw(st.integers(k, len(labels)))
    rows = draw_subset(labels, samples=samples, seed=seed, where="x")
    assert len(rows) == samples
    assert (np.diff(rows) > 0).all()
    np.testing.assert_array_equal(rows, draw_subset(labels, samples=samples, seed=seed, where="x"))
    counts, drawn = (np.unique(part, return_counts=True)[1] for part in (labels, labels[rows]))
    assert len(drawn) == k
    quotas = samples * counts / len(labels)
    assert (drawn < quotas + 1).all()
    if (quotas >= 1).all():
        assert (drawn > quotas - 1).all()


def test_means_over_a_subset_are_those_of_the_whole_where_classes_are_unequal():
    counts = np.array([1000, 500, 250, 125, 60, 40, 25])
    labels = np.repeat(np.arange(len(counts)), counts)
    rates = np.linspace(0.9, 0.3, len(counts))
    rows = draw_subset(labels, samples=200, seed=0, where="x")
    assert rates[labels[rows]].mean() == pytest.approx(rates[labels].mean(), abs=0.003)
    # One of each class, the rest of the largest.
    rows = draw_subset(labels, samples=8, seed=0, where="x")
    assert np.bincount(labels[rows]).tolist() == [2, 1, 1, 1, 1, 1, 1]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=80), st.integers(0, 5), st.integers(1, 20))
def test_so_many_of_each_class_are_among_one_more_and_depend_on_their_class_alone(labels, seed, number):
    labels = np.array(labels)
    rows, more = (draw_of_each_class(labels, per_class=n, seed=seed) for n in (number, number + 1))
    assert (np.diff(rows) > 0).all() and set(rows) <= set(more)
    classes, counts = np.unique(labels, return_counts=True)
    assert [np.sum(labels[rows] == label) for label in classes] == np.minimum(counts, number).tolist()
    alone = np.where(labels == classes[0], classes[0], classes.max() + 1)
    found = draw_of_each_class(alone, per_class=number, seed=seed)
    assert set(rows[labels[rows] == classes[0]]) == set(found[alone[found] == classes[0]])


def test_classes_of_one_size_get_equal_numbers_and_the_seed_matters():
    labels = np.repeat(np.arange(10), 100)
    rows = draw_subset(labels, samples=200, seed=0, where="x")
    assert (np.bincount(labels[rows]) == 20).all()
    assert set(rows) != set(draw_subset(labels, samples=200, seed=1, where="x"))


@pytest.mark.parametrize("samples", [9, 899])
def test_an_impossible_size_names_the_possible_ones(samples):
    with pytest.raises(InputError, match=rf"digits: subset: samples {samples} is not between 10 .* and 898"):
        open_images({**DIGITS, "subset": {"samples": samples, "seed": 0}}, classes=NAMES)


def test_a_subset_of_a_source_is_recorded_and_keeps_the_order():
    subset = {"samples": 100, "seed": 3}
    part, whole = (open_images(settings, classes=NAMES) for settings in ({**DIGITS, "subset": subset}, DIGITS))
    described = open_and_describe({**DIGITS, "subset": subset}, dataset="d", classes=NAMES)[1]
    assert described["settings"]["subset"] == subset
    assert described["samples"] == 100
    assert described["digest"] == part.digest != whole.digest
    rows = np.flatnonzero(np.isin(whole.sample_id, part.sample_id))
    pixels = np.concatenate(list(whole.batches(1000)))
    for size in (1, 7, 1000):
        np.testing.assert_array_equal(np.concatenate(list(part.batches(size))), pixels[rows])


def test_a_stream_is_selected_from_without_being_held():
    class Streamed(ImageSet):
        def stream(self, batch_size):
            for start in range(0, 10, batch_size):
                yield np.full((min(batch_size, 10 - start), 1, 8, 8), start / 10, dtype=np.float32)

    names, labels = np.array(list("abcdefghij")), np.arange(10, dtype=np.int32)
    images = Streamed(sample_id=names, labels=labels, image_shape=(1, 8, 8), preprocessing="none")
    part = images.select(np.array([0, 5, 9])).select(np.array([1, 2]))
    assert part.sample_id.tolist() == ["f", "j"]
    assert [batch[:, 0, 0, 0].tolist() for batch in part.batches(2)] == [[np.float32(0.4)], [np.float32(0.8)]]
    held = from_arrays(np.zeros((3, 1, 8, 8)), [0, 1, 2], sample_id=list("abc"), preprocessing="none")
    assert held.select(np.array([2])).labels.tolist() == [2]


def test_parts_of_labels_without_images_have_digests_of_their_own():
    wholes = [
        LabelsAlone(sample_id=np.array(list(names)), labels=np.arange(3, dtype=np.int32), path="y.npy")
        for names in ("abc", "abd")
    ]
    parts = [labels.select(np.array(rows)) for labels in wholes for rows in ([0, 1], [0, 2])]
    assert len({labels.digest for labels in [*parts, *wholes]}) == 6
    assert parts[0].digest == wholes[0].select(np.array([0, 1])).digest
    assert parts[0].digest_covers == "labels, identifiers"


@given(st.lists(st.integers(0, 4), min_size=5, max_size=80), st.integers(0, 2**256 - 1))
def test_halves_share_every_class_and_no_sample(labels, number):
    labels = np.array([*labels, *range(5), *range(5)])
    names = [str(row) for row in range(len(labels))]
    halves = [
        half_rows(
            np.array(names),
            labels,
            half,
            first=first_rows(None, len(labels)),
            digest=f"{number:064x}",
            names=list("abcde"),
            where="data",
        )
        for half in ("choosing", "judging")
    ]
    assert sorted(np.concatenate(halves)) == list(range(len(labels)))
    counts = [np.bincount(labels[rows], minlength=5) for rows in halves]
    assert np.abs(counts[0] - counts[1]).max() <= 1


def opened(entry, path=None, *, classes=NAMES):
    return open_and_describe(entry, path, dataset="d", classes=classes)[0]


def test_halves_of_a_dataset_keep_its_identifiers_and_follow_its_pixels():
    whole, choosing, judging = (opened({**DIGITS, **half}) for half in HALVES)
    assert sorted([*choosing.sample_id, *judging.sample_id]) == sorted(whole.sample_id)
    counts = np.bincount(choosing.labels) - np.bincount(judging.labels)
    assert np.abs(counts).max() <= 1
    assert len({whole.digest, choosing.digest, judging.digest}) == 3
    # Of a subset, the halves are those of what it draws.
    part = {"subset": {"per_class": 7, "seed": 0}}
    whole, choosing, judging = (opened({**DIGITS, **part, **half}) for half in HALVES)
    assert sorted([*choosing.sample_id, *judging.sample_id]) == sorted(whole.sample_id)


def test_a_manifest_of_a_half_opens_the_same_half(tmp_path):
    files = tmp_path / "half.json", tmp_path / "half.parquet"
    images = fetch_dataset({**DIGITS, "half": "judging"}, NAMES, *files, dataset="half")
    again, manifest = open_described(files[0])
    assert again.sample_id.tolist() == images.sample_id.tolist()
    assert again.digest == images.digest == manifest["digest"]
    assert manifest["samples"] == len(images) == sum(manifest["samples_per_class"])


FOLDER = {"source": "image_folder", "folders": None, "list": None, "preprocessing": {"method": "none"}}


def picture(seed, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (4, 4, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)


@pytest.fixture
def fetched_half(tmp_path):
    """Folder of 20 images, and manifest of its judging half."""
    for seed in range(20):
        picture(seed, tmp_path / f"images/{'ab'[seed % 2]}/{seed:02d}.png")
    manifest = tmp_path / "half.json"
    fetch_dataset(
        {**FOLDER, "half": "judging"},
        ["a", "b"],
        manifest,
        manifest.with_suffix(".parquet"),
        dataset="half",
        path_to_images=tmp_path / "images",
    )
    return tmp_path / "images", manifest


@pytest.fixture
def decoded(monkeypatch):
    """Names of the images that are decoded, from here on."""
    names = []

    def prepare(content, preprocessing, *, name):
        names.append(name)
        return decoding.prepare(content, preprocessing, name=name)

    monkeypatch.setattr(encoded, "prepare", prepare)
    return names


def test_a_half_is_drawn_once_and_its_jobs_decode_its_images_alone(fetched_half, decoded):
    folder, manifest = fetched_half
    images, described = open_described(manifest)
    samples = read_table(manifest.with_suffix(".parquet"), DATASET)
    assert images.sample_id.tolist() == samples["sample_id"].tolist()
    pixels, _ = load_all(images)
    # The first one of the folder as well, whose size is that of all.
    outside = {str(folder / "a/00.png")} | {str(folder / name) for name in images.sample_id}
    assert set(decoded) <= outside and len(decoded) == len(images) + 2

    decoded.clear()
    arguments = {"dataset": "half", "path_to_images": folder}
    drawn = fetch_dataset(described["settings"], ["a", "b"], manifest, manifest.with_suffix(".parquet"), **arguments)
    assert len(decoded) == 20 + 2
    np.testing.assert_array_equal(load_all(drawn)[0], pixels)


@pytest.mark.parametrize("inside", [True, False])
def test_an_image_of_either_half_that_changes_is_refused_by_jobs_on_one(fetched_half, inside):
    # An image outside changes nothing of this half, but the other half is no longer the rest.
    folder, manifest = fetched_half
    images, _ = open_described(manifest)
    paths = {path.relative_to(folder).as_posix() for path in folder.glob("*/*.png")}
    name = min(set(images.sample_id) if inside else paths - set(images.sample_id))
    picture(99, folder / name)
    with pytest.raises(InputError, match="the data have digest"):
        open_described(manifest)
    assert open_and_compare(manifest)[1] == str(folder / name if inside else folder)


def test_samples_of_another_half_than_the_manifest_describes_are_refused(fetched_half):
    folder, manifest = fetched_half
    other = folder.parent / "other.json"
    files = other, manifest.with_suffix(".parquet")
    fetch_dataset({**FOLDER, "half": "choosing"}, ["a", "b"], *files, dataset="half", path_to_images=folder)
    with pytest.raises(InputError, match=r"half\.parquet"):
        open_described(manifest)


@pytest.mark.parametrize("copies", [[2] * 40, [1, 5] * 20])
def test_copies_of_an_image_are_in_the_same_half(tmp_path, copies):
    images = np.repeat(np.random.default_rng(0).random((40, 1, 8, 8), dtype=np.float32), copies, axis=0)
    order = np.random.default_rng(1).permutation(len(images))
    np.savez(tmp_path / "data.npz", x=images[order], y=np.repeat(np.arange(40) % 4, copies)[order])
    entry = {"source": "npz"}
    _, choosing, judging = (opened({**entry, **half}, tmp_path / "data.npz", classes=list("abcd")) for half in HALVES)

    digests = [images.pixel_digests for images in (choosing, judging)]
    assert len(choosing) + len(judging) == sum(copies)
    assert not set(digests[0]) & set(digests[1])
    for half, digests_of_half in zip((choosing, judging), digests, strict=True):
        _, first = np.unique(digests_of_half, return_index=True)
        assert np.bincount(half.labels[first]).tolist() == [5] * 4


def test_the_first_row_of_an_image_stands_for_its_copies():
    assert first_rows(np.array(list("badab")), 5).tolist() == [0, 1, 2, 1, 0]
    assert first_rows(None, 3).tolist() == [0, 1, 2]


def test_a_class_of_one_image_has_no_halves():
    keywords = {"digest": "0", "names": ["a", "b"], "where": "data"}
    with pytest.raises(InputError, match="class b has one image"):
        half_rows(np.array(["x", "y", "z"]), np.array([0, 1, 0]), "judging", first=np.arange(3), **keywords)
    with pytest.raises(InputError, match="class b has one image"):
        half_rows(np.array(list("wxyz")), np.array([0, 1, 0, 1]), "judging", first=np.array([0, 1, 2, 1]), **keywords)
