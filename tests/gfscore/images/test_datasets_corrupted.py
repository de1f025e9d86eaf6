import numpy as np
import pytest
from PIL import Image

from gfscore.core.errors import InputError
from gfscore.images.datasets import load_all, open_images

FOG = {"source": "corrupted", "corruption": "fog", "severity": 2, "preprocessing": {"method": "none"}}
PAIR = ["cat", "dog"]


@pytest.fixture
def arrays(tmp_path):
    """Four images at five severities; the pixels tell severity and image apart."""
    stored = np.stack([np.full((8, 8, 3), 10 * severity + image) for severity in range(1, 6) for image in range(4)])
    np.save(tmp_path / "fog.npy", stored.astype(np.uint8))
    np.save(tmp_path / "snow.npy", stored.astype(np.uint8))
    np.save(tmp_path / "labels.npy", np.tile([0, 1, 1, 0], 5))
    return tmp_path


@pytest.mark.parametrize("severity", [1, 2, 5])
def test_a_severity_is_its_fifth_of_the_array(severity, arrays):
    images = open_images({**FOG, "severity": severity}, arrays, classes=PAIR)
    assert images.labels.tolist() == [0, 1, 1, 0]
    assert images.sample_id.tolist() == [f"fog/{severity}/{row:05d}" for row in range(4)]
    x, _ = load_all(images)
    assert x.shape == (4, 3, 8, 8)
    np.testing.assert_allclose(x[:, 0, 0, 0] * 255, 10 * severity + np.arange(4), rtol=1e-6)


def test_folders_are_read_as_image_folders(tmp_path):
    for name in ("n02/b.png", "n01/a.png"):
        path = tmp_path / "fog/2" / name
        path.parent.mkdir(parents=True)
        Image.fromarray(np.full((8, 8, 3), 50, dtype=np.uint8)).save(path)
    images = open_images(FOG, tmp_path, classes=PAIR)
    assert images.sample_id.tolist() == ["fog/2/n01/a.png", "fog/2/n02/b.png"]
    with pytest.raises(InputError, match="fog/3: no such folder"):
        open_images({**FOG, "severity": 3}, tmp_path, classes=PAIR)


@pytest.mark.parametrize("labels", [np.array([2**32, 1]), np.array([2**64 - 2**32, 1], dtype=np.uint64)])
def test_labels_that_no_32_bits_hold_are_refused(labels, arrays):
    np.save(arrays / "labels.npy", np.tile(labels, 10))
    with pytest.raises(InputError, match=r"labels\.npy: row 0 has label \d{10,}; labels count from 0 to K-1"):
        open_images(FOG, arrays, classes=PAIR)


def test_faults_are_named(arrays):
    with pytest.raises(InputError, match="corruption 'frost' is unknown"):
        open_images({**FOG, "corruption": "frost"}, arrays, classes=PAIR)
    crop = {"method": "squash", "size": 224, "interpolation": "bilinear"}
    with pytest.raises(InputError, match="need the preprocessing method none, not squash"):
        open_images({**FOG, "preprocessing": crop}, arrays, classes=PAIR)
    path = arrays / "fog.npy"
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], b"", b"<!doctype html>"):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"fog\.npy: not a whole \.npy file"):
            open_images(FOG, arrays, classes=PAIR)
    for wrong in (
        np.zeros((20, 8, 8, 3)),
        np.zeros((19, 8, 8, 3), dtype=np.uint8),
        np.zeros((20, 3, 8, 8), dtype=np.uint8),
    ):
        np.save(path, wrong)
        with pytest.raises(InputError, match=r"fog\.npy: .* expected uint8"):
            open_images(FOG, arrays, classes=PAIR)
    path.write_bytes(whole)
    np.save(arrays / "labels.npy", np.zeros(7, dtype=int))
    with pytest.raises(InputError, match=r"labels\.npy: int64 \(7,\) for 20 images"):
        open_images(FOG, arrays, classes=PAIR)
    np.save(arrays / "labels.npy", np.array([{}]), allow_pickle=True)
    with pytest.raises(InputError, match=r"labels\.npy: not a whole \.npy file of numbers"):
        open_images(FOG, arrays, classes=PAIR)
