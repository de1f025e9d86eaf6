"""Decoding: images with an EXIF orientation, and the memory that threads share."""

import io
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image, ImageOps
from pydantic import TypeAdapter

from gfscore.core.errors import InputError
from gfscore.images import decoding
from gfscore.images.dataset_source import AsStored, Preprocessing
from gfscore.images.datasets import load_all, open_images
from gfscore.images.decoding import LARGEST_IMAGE, MemoryBudget, describe, orientation_of, prepare
from gfscore.images.sources.image_folder import ImageFolder
from helpers.processes import most_memory

preprocessing = TypeAdapter(Preprocessing).validate_python
STORED = {"method": "none"}
TURNED = {"method": "none", "orientation": "exif"}
LOSSLESS = {"PNG": {}, "WEBP": {"lossless": True}, "JPEG": {}}
TAG = 0x0112


def encoded(kind, orientation, seed=0):
    """Image of 9x8 pixels with an orientation, None for none."""
    pixels = np.random.default_rng(seed).integers(0, 256, (8, 9, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    exif = Image.Exif()
    if orientation is not None:
        exif[TAG] = orientation
    Image.fromarray(pixels).save(buffer, kind, exif=exif, **LOSSLESS.get(kind, {}))
    return buffer.getvalue()


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_an_image_is_read_as_torchvision_reads_it_or_as_a_viewer_shows_it(kind, orientation):
    content = encoded(kind, orientation)
    with Image.open(io.BytesIO(content)) as image:
        as_stored = np.asarray(image.convert("RGB"))
        as_shown = np.asarray(ImageOps.exif_transpose(image).convert("RGB"))
    assert orientation_of(content) == orientation
    np.testing.assert_array_equal(prepare(content, preprocessing(STORED), name="a"), as_stored)
    np.testing.assert_array_equal(prepare(content, preprocessing(TURNED), name="a"), as_shown)


def test_a_tiff_is_turned_by_pillow_so_both_readings_are_torchvisions():
    content = encoded("TIFF", 6)
    with Image.open(io.BytesIO(content)) as image:
        expected = np.asarray(image.convert("RGB"))
    assert expected.shape == (9, 8, 3) and orientation_of(content) == 1
    for settings in (STORED, TURNED):
        np.testing.assert_array_equal(prepare(content, preprocessing(settings), name="a"), expected)


@pytest.mark.parametrize("orientation", [None, 0, 9, 77])
def test_no_orientation_and_one_that_means_nothing_turn_nothing(orientation):
    content = encoded("JPEG", orientation)
    assert orientation_of(content) == 1
    np.testing.assert_array_equal(
        prepare(content, preprocessing(TURNED), name="a"), prepare(content, preprocessing(STORED), name="a")
    )


def test_malformed_exif_turns_nothing():
    whole = b"Exif\0\0MM\0*\0\0\0\x08"
    content = encoded("JPEG", 6).replace(whole, b"Exif\0\0MM\0*\x7f\xff\xff\xff")
    assert whole not in content and orientation_of(content) == 1
    assert orientation_of(b"\xff\xd8 Exif and no more") == 1
    np.testing.assert_array_equal(
        prepare(content, preprocessing(TURNED), name="a"), prepare(content, preprocessing(STORED), name="a")
    )


def test_only_the_words_of_a_preprocessing_that_turns_images_say_so():
    assert describe(preprocessing(STORED)) == "decoded to RGB, divided by 255"
    for method in (STORED, {"method": "squash", "size": 4, "interpolation": "bilinear"}):
        words = describe(preprocessing(method))
        assert "EXIF" not in words
        assert describe(preprocessing({**method, "orientation": "exif"})) == words.replace("RGB", "RGB, turned by EXIF")
    entry = ImageFolder.model_validate({"path": "x", "preprocessing": {"method": "none"}})
    assert entry.explicit()["preprocessing"] == {"method": "none"}


@pytest.fixture
def folder(tmp_path):
    """Two classes; the first image of the second has orientation 3, the others none."""
    for seed, name in enumerate(["a/1.png", "a/2.png", "b/1.png", "b/2.png"]):
        path = tmp_path / "images" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encoded("PNG", 3 if name == "b/1.png" else None, seed=seed))
    return tmp_path / "images"


def opened(folder, preprocessing):
    settings = {"source": "image_folder", "folders": None, "list": None, "preprocessing": preprocessing}
    return open_images(settings, folder, classes=["a", "b"])


def test_a_dataset_counts_orientations_and_has_another_digest_only_where_it_is_turned(folder):
    stored, turned = opened(folder, STORED), opened(folder, TURNED)
    assert list(stored.orientations()) == [1, 1, 3, 1]
    assert list(stored.select(np.array([2, 3])).orientations()) == [3, 1]
    assert stored.digest != turned.digest
    same = load_all(stored)[0] == load_all(turned)[0]
    assert same.all(axis=(1, 2, 3)).tolist() == [True, True, False, True]


def test_corrupted_copies_that_are_arrays_have_no_orientation(tmp_path):
    from gfscore.images.corrupted_copies import require_as_stored

    require_as_stored(tmp_path, preprocessing(STORED))
    with pytest.raises(InputError, match=r"orientation: exif"):
        require_as_stored(tmp_path, preprocessing(TURNED))


class Watch:
    """What is held at a time."""

    def __init__(self):
        self.lock, self.held, self.most, self.together = threading.Lock(), {}, 0, 0

    def hold(self, budget, number, size):
        with budget.reserved(size):
            with self.lock:
                self.held[number] = size
                self.most = max(self.most, sum(self.held.values()))
                self.together = max(self.together, len(self.held))
            time.sleep(0.01)
            with self.lock:
                del self.held[number]


def test_threads_never_hold_more_than_the_budget_together():
    watch, budget = Watch(), MemoryBudget(100)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: watch.hold(budget, number, 30), range(24)))
    assert watch.most <= 100 and watch.together == 3


def test_who_needs_more_than_there_is_works_alone():
    watch, budget = Watch(), MemoryBudget(100)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: watch.hold(budget, number, 150), range(8)))
    assert watch.together == 1 and watch.most == 150


def test_an_error_gives_the_memory_back():
    budget = MemoryBudget(100)
    with pytest.raises(InputError), budget.reserved(100):
        raise InputError("x")
    with budget.reserved(100):
        pass


def png(width, height):
    """PNG of black pixels, made without holding them."""

    def chunk(kind, content):
        return len(content).to_bytes(4, "big") + kind + content + zlib.crc32(kind + content).to_bytes(4, "big")

    packer, rows = zlib.compressobj(9), bytes(1 + width)
    data = b"".join(packer.compress(rows) for _ in range(height)) + packer.flush()
    header = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([8, 0, 0, 0, 0])
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def test_an_image_of_too_many_pixels_is_refused_by_its_header_with_its_size():
    content = png(13_300, 13_300)
    assert LARGEST_IMAGE < 13_300**2
    with most_memory() as most, pytest.raises(InputError, match=r"big\.png: 13300x13300 pixels.*120 million"):
        prepare(content, AsStored(method="none"), name="big.png")
    assert most[0] < 2**20


def test_images_are_decoded_within_the_budget(monkeypatch):
    asked = []

    class Noted(MemoryBudget):
        def reserved(self, size):
            asked.append(size)
            return super().reserved(size)

    monkeypatch.setattr(decoding, "DECODING", Noted(1000))
    buffer = io.BytesIO()
    Image.fromarray(np.zeros((20, 10, 3), dtype=np.uint8)).save(buffer, "PNG")
    assert prepare(buffer.getvalue(), AsStored(method="none"), name="a").shape == (20, 10, 3)
    assert asked == [decoding.BYTES_PER_PIXEL * 200]
