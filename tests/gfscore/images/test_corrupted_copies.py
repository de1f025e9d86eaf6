import hashlib
import shutil

import numpy as np
import pytest
from PIL import Image

from gfscore.core.errors import InputError
from gfscore.core.files import write_json
from gfscore.images.datasets import load_all, open_images
from gfscore.images.manifests import open_and_describe, open_described

PAIR = ["cat", "dog"]
LABELS = np.array([0, 1, 1, 0])
ALL = {"corruptions": None, "severities": None, "preprocessing": {"method": "none"}}


@pytest.fixture
def folder(tmp_path):
    """Four images of one colour, 0 to 3, and copies that tell corruption, severity and image apart."""
    clean = np.stack([np.full((3, 8, 8), image, dtype=np.uint8) for image in range(4)])
    np.savez(tmp_path / "clean.npz", x=clean, y=LABELS)
    for place, corruption in enumerate(("saturate", "fog", "snow")):
        values = [100 * place + 10 * severity + image for severity in range(1, 6) for image in range(4)]
        stored = np.stack([np.full((8, 8, 3), value % 256, dtype=np.uint8) for value in values])
        np.save(tmp_path / f"{corruption}.npy", stored)
    np.save(tmp_path / "labels.npy", np.tile(LABELS, 5))
    return tmp_path


def entry(folder, *, subset=None, **corrupted):
    """Settings of the dataset, and its path."""
    copies = ALL | {"path": str(folder)} | corrupted
    images = {"source": "npz", "value_range": 255, "channels": "first", "subset": subset, "corrupted": copies}
    return images, folder / "clean.npz"


def opened(folder, **settings):
    return open_images(*entry(folder, **settings), classes=PAIR, with_copies=True)


def values(copies, corruption, severity):
    """The grey value of each copy."""
    return np.rint(255 * copies.corrupted(corruption, severity)[:, 0, 0, 0]).astype(int).tolist()


def test_one_dataset_of_n_samples_has_a_copy_of_each_for_every_corruption_and_severity(folder):
    images = opened(folder)
    # The fifteen common corruptions in their usual order, then others.
    names = ["snow", "fog", "saturate"]
    assert images.copies.conditions == tuple((name, severity) for name in names for severity in range(1, 6))
    assert len(images) == 4 and load_all(images)[0][:, 0, 0, 0] * 255 == pytest.approx([0, 1, 2, 3])
    assert values(images.copies, "fog", 2) == [120, 121, 122, 123]
    assert (
        images.copies.corrupted("fog", 2).shape == (4, 3, 8, 8)
        and images.copies.corrupted("fog", 2).dtype == np.float32
    )


def test_lists_choose_corruptions_and_severities_in_their_order(folder):
    copies = opened(folder, corruptions=["saturate", "fog"], severities=[5, 1]).copies
    assert copies.conditions == (("saturate", 5), ("saturate", 1), ("fog", 5), ("fog", 1))


def test_a_part_of_the_samples_keeps_its_own_copies(folder):
    part = opened(folder, subset={"every": 2})
    assert values(part.copies, "saturate", 1) == [10, 12]
    assert values(part.select(np.array([1])).copies, "saturate", 5) == [52]


def test_the_manifest_holds_their_digest_and_another_pixel_is_noticed(folder):
    settings, path = entry(folder, corruptions=["fog"], severities=[2])
    _, manifest = open_and_describe(settings, path, dataset="d", classes=PAIR)
    state = hashlib.sha256(b"gfscore corrupted copies 1 3 8 8 decoded to RGB, divided by 255\nfog/2\n")
    state.update(np.repeat(np.arange(120, 124), 8 * 8 * 3).astype(np.uint8).tobytes())
    assert manifest["corrupted"] == {"digest": state.hexdigest(), "conditions": [["fog", 2]]}
    plain = open_and_describe({**settings, "corrupted": None}, path, dataset="d", classes=PAIR)[1]
    assert manifest["digest"] == plain["digest"] and "corrupted" not in plain
    write_json(folder / "d.json", manifest)
    assert open_described(folder / "d.json", with_copies=True)[0].copies
    stored = np.load(folder / "fog.npy")
    stored[4, 0, 0, 0] += 1
    np.save(folder / "fog.npy", stored)
    assert open_described(folder / "d.json")[0].copies is None
    with pytest.raises(InputError, match=r"the data have digest .* records"):
        open_described(folder / "d.json", with_copies=True)


def wrong_files(folder):
    """What is done to the files, and the message."""
    fog, labels = np.load(folder / "fog.npy"), np.load(folder / "labels.npy")
    swapped = labels.copy()
    swapped[[8, 9]] = swapped[[9, 8]]
    return {
        "another number of images": (
            {"fog": fog[:15], "labels": labels[:15]},
            r"fog\.npy: 3 images at each severity.*4",
        ),
        "no whole severities": ({"fog": fog[:19]}, r"fog\.npy: uint8 \(19, 8, 8, 3\), expected uint8 \(5 n, H, W, C\)"),
        "other labels": ({"labels": swapped}, r"labels\.npy: row 8 has label 1, but \S+ of the dataset has 0 \(2 such"),
        "fewer labels": ({"labels": labels[:4]}, r"labels\.npy: int64 \(4,\) for 20 images"),
        "another size": ({"fog": fog[:, :4]}, r"fog\.npy: images of 4x8x3, but the dataset's are 8x8x3"),
        "grey": ({"fog": fog[..., :1]}, r"fog\.npy: images of 8x8x1, but"),
        "numbers between 0 and 1": ({"fog": fog / 255}, r"fog\.npy: float64"),
    }


@pytest.mark.parametrize("case", ["another number of images", "no whole severities", "other labels", "fewer labels",
                                  "another size", "grey", "numbers between 0 and 1"])  # fmt: skip
def test_files_of_other_images_are_refused(folder, case):
    arrays, message = wrong_files(folder)[case]
    for name, content in arrays.items():
        np.save(folder / f"{name}.npy", content)
    with pytest.raises(InputError, match=message):
        opened(folder, corruptions=["fog"])


def test_what_is_missing_is_named(folder):
    with pytest.raises(InputError, match=r"'frost' is unknown.*saturate"):
        opened(folder, corruptions=["frost"])
    with pytest.raises(InputError, match="need the preprocessing method none, not squash"):
        opened(folder, preprocessing={"method": "squash", "size": 8, "interpolation": "bilinear"})
    (folder / "labels.npy").unlink()
    with pytest.raises(InputError, match=r"labels\.npy"):
        opened(folder)
    (folder / "empty").mkdir()
    with pytest.raises(InputError, match="empty: no corruption here"):
        opened(folder, path=str(folder / "empty"))
    with pytest.raises(InputError, match="nowhere"):
        opened(folder, path=str(folder / "nowhere"))


# ---- folders, as ImageNet-C ----

NAMES = ("n01/a.png", "n01/b.png", "n02/c.png")


@pytest.fixture
def folders(tmp_path):
    """Three images in two class folders, with copies of 8 pixels, while the images themselves have 10."""
    for place, name in enumerate(NAMES):
        for root, value in (("clean", 0), *((f"c/fog/{severity}", 10 * severity) for severity in (1, 2))):
            path = tmp_path / root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            side = 10 if root == "clean" else 8
            Image.fromarray(np.full((side, side, 3), value + place, dtype=np.uint8)).save(path)
    return tmp_path


def in_folders(folders, **corrupted):
    copies = ALL | {"path": str(folders / "c"), "severities": [1, 2]} | corrupted
    crop = {"method": "center_crop", "resize": None, "size": 8, "interpolation": "bilinear"}
    images = {"source": "image_folder", "folders": None, "list": None, "preprocessing": crop, "corrupted": copies}
    return open_images(images, folders / "clean", classes=PAIR, with_copies=True)


def test_copies_in_folders_stand_under_the_names_of_the_images(folders):
    images = in_folders(folders)
    assert images.copies.conditions == (("fog", 1), ("fog", 2))
    assert values(images.copies, "fog", 2) == [20, 21, 22]
    part = images.select(np.array([0, 2]))
    assert part.sample_id.tolist() == [NAMES[0], NAMES[2]] and values(part.copies, "fog", 1) == [10, 12]
    assert len({images.copies.digest, part.copies.digest, in_folders(folders, severities=[1]).copies.digest}) == 3


def test_faults_of_folders_are_named(folders):
    with pytest.raises(InputError, match=r"fog/2: images of 4x4x3, but the dataset's are 8x8x3"):
        shrink = {"method": "squash", "size": 4, "interpolation": "bilinear"}
        in_folders(folders, preprocessing=shrink).copies.corrupted("fog", 2)
    (folders / "c/fog/2/n02/c.png").unlink()
    with pytest.raises(InputError, match=r"fog/2/n02/c\.png: cannot be read \(No such file"):
        _ = in_folders(folders).copies.digest
    shutil.rmtree(folders / "c/fog/1")
    with pytest.raises(InputError, match=r"fog/1/n01/a\.png: cannot be read \(No such file"):
        _ = in_folders(folders).copies.digest


FOG = {"source": "corrupted", "corruption": "fog", "severity": 2, "preprocessing": {"method": "none"}}


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
