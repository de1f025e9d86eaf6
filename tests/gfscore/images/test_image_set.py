"""Images as they are stored, and as batches of numbers in [0, 1]."""

import numpy as np
import pytest
from PIL import Image

from gfscore.images import encoded
from gfscore.images.datasets import open_images
from gfscore.images.image_set import from_arrays, from_pixels, unit_range

PIXELS = np.random.default_rng(0).integers(0, 256, (5, 4, 6, 3), dtype=np.uint8)


@pytest.fixture(params=["in memory", "encoded"])
def images(request, tmp_path):
    """Five images of which the source has pixels of 8 bits."""
    if request.param == "in memory":
        return from_pixels(PIXELS, [0, 1, 0, 1, 0], sample_id=np.arange(5))
    for row, pixels in enumerate(PIXELS):
        path = tmp_path / "ab"[row % 2] / f"{row}.png"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(pixels).save(path)
    preprocessing = {"method": "squash", "size": 4, "interpolation": "bilinear"}
    settings = {"source": "image_folder", "folders": None, "list": None, "preprocessing": preprocessing}
    return open_images(settings, tmp_path, classes=["a", "b"])


@pytest.mark.parametrize("rows", [range(5), (1, 2, 4)])
def test_stored_pixels_are_255_times_the_images(images, rows):
    chosen = images.select(np.array(rows))
    stored, whole = list(chosen.stored_batches(2)), list(chosen.batches(2))
    assert sum(map(len, stored)) == len(rows) and stored[0].dtype == np.uint8
    np.testing.assert_array_equal(unit_range(np.concatenate(stored)), np.concatenate(whole))


def test_what_is_stored_as_float_stays_so():
    images = from_arrays(unit_range(PIXELS), [0, 1, 0, 1, 0], sample_id=np.arange(5), preprocessing="")
    np.testing.assert_array_equal(np.concatenate(list(images.stored_batches(2))), unit_range(PIXELS))


@pytest.mark.parametrize("room", [0, 5 * 4 * 4 * 3])
def test_images_that_are_kept_are_decoded_once_where_there_is_room(images, monkeypatch, room):
    decode, decoded = encoded.prepare, []

    def counted(content, preprocessing, *, name):
        decoded.append(name)
        return decode(content, preprocessing, name=name)

    monkeypatch.setattr(encoded, "prepare", counted)
    monkeypatch.setattr(encoded, "KEPT", room)
    kept = images.kept_in_memory()
    passes = [list(kept.stored_batches(size)) for size in (2, 3, 2)]
    if isinstance(images, encoded.EncodedImages):
        assert len(decoded) == (5 if room else 15)
    assert [len(batch) for batch in passes[1]] == [3, 2]
    for batches in passes:
        np.testing.assert_array_equal(np.concatenate(batches), np.concatenate(list(images.stored_batches(4))))
