"""Arrays as people save them: which are the images and labels, and what white is."""

import numpy as np
import pytest

from gfscore.core.errors import InputError
from gfscore.images.datasets import load_all
from gfscore.workflow.new_audit.data_files import find_data
from gfscore.workflow.new_audit.request import Request

GENERATOR = np.random.default_rng(0)
PIXELS = GENERATOR.integers(0, 256, (6, 3, 9, 8), dtype=np.uint8)
LABELS = np.array([0, 1, 2, 2, 1, 0])
IMAGES = PIXELS.astype(np.float32) / np.float32(255)
OTHERS = {"x_train": PIXELS[::-1], "y_train": LABELS[::-1]}


def data_of(path, **options):
    return find_data(str(path), Request(("net.onnx",), str(path), **options))


@pytest.fixture
def saved(tmp_path):
    def save(arrays, folder=False):
        if not folder:
            np.savez(tmp_path / "mine.npz", **arrays)
            return tmp_path / "mine.npz"
        (tmp_path / "mine").mkdir()
        for name, array in arrays.items():
            np.save(tmp_path / f"mine/{name}.npy", array)
        return tmp_path / "mine"

    return save


def require_same(data, images=IMAGES, labels=LABELS):
    x, y = load_all(data.images)
    np.testing.assert_allclose(x, images, atol=1e-6)
    assert y.tolist() == labels.tolist()


@pytest.mark.parametrize(
    ("arrays", "entry"),
    [
        ({"x": PIXELS, "y": LABELS}, {}),
        ({"images": PIXELS, "labels": LABELS}, {"image": "images", "label": "labels"}),
        ({"imgs": PIXELS, "targets": LABELS}, {"image": "imgs", "label": "targets"}),
        ({"data": PIXELS, "label": LABELS}, {"image": "data", "label": "label"}),
        ({"X": PIXELS, "y": LABELS}, {"image": "X"}),
        ({"x_test": PIXELS, "y_test": LABELS, **OTHERS}, {"image": "x_test", "label": "y_test"}),
        ({"testX": PIXELS, "testY": LABELS, "trainX": PIXELS, "trainY": LABELS}, {"image": "testX", "label": "testY"}),
        (
            {f"{split}_{what}": array for split in ("train", "val", "test")
             for what, array in (("images", PIXELS), ("labels", LABELS[:, None]))},
            {"image": "test_images", "label": "test_labels"},
        ),
        ({"arr_0": PIXELS, "arr_1": LABELS}, {"image": "arr_0", "label": "arr_1"}),
        ({"x": PIXELS, "y": LABELS, "ids": np.arange(6)}, {}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("folder", [False, True])
def test_usual_names_of_images_and_labels_are_found(saved, arrays, entry, folder):
    path = saved(arrays, folder)
    data = data_of(path)
    assert data.entry == {"source": "npz", "path": str(path), **entry}
    require_same(data)
    assert f"arrays {entry.get('image', 'x')} and {entry.get('label', 'y')}" in data.words
    assert ("the test set beside" in data.words) == ("train" in "".join(arrays))


@pytest.mark.parametrize(
    ("x", "value_range"),
    [
        (PIXELS, None),
        (PIXELS.transpose(0, 2, 3, 1), None),
        (PIXELS.astype(np.float64), 255),
        (PIXELS.astype(np.int64), 255),
        (IMAGES, None),
        (IMAGES.astype(np.float64).transpose(0, 2, 3, 1), None),
        (IMAGES * 2 - 1, "signed"),
    ],
)
def test_the_value_of_white_is_found_and_written_where_it_is_not_the_usual_one(saved, x, value_range):
    data = data_of(saved({"x": x, "y": LABELS}))
    assert data.entry.get("value_range") == value_range
    require_same(data)


def test_grey_images_and_images_of_zeros_and_ones_are_read(saved):
    require_same(data_of(saved({"x": PIXELS[:, 0], "y": LABELS})), IMAGES[:, :1])
    strokes = (PIXELS[:, 0] > 128).astype(np.uint8)
    data = data_of(saved({"x": strokes, "y": LABELS}))
    assert data.entry["value_range"] == 1
    require_same(data, strokes[:, None].astype(np.float32))


@pytest.mark.parametrize(
    "y",
    [
        LABELS[:, None],
        LABELS.astype(np.float32),
        np.eye(3)[LABELS],
        np.eye(3)[LABELS].astype(bool),
        LABELS.astype(str),
        LABELS.astype(np.float32).astype(str),
        LABELS.astype("S1"),
        np.array(["cat", "dog", "emu"])[LABELS],
    ],
)
def test_labels_are_numbers_columns_one_hot_rows_or_texts(saved, y):
    data = data_of(saved({"x": PIXELS, "y": y}))
    require_same(data)
    assert list(data.classes) == (["cat", "dog", "emu"] if "cat" in y else ["0", "1", "2"])


def test_pixels_and_arrays_are_as_the_user_says(saved):
    dark = (PIXELS // 16).astype(np.float32)
    path = saved({"x": dark, "y": LABELS, "z": PIXELS})
    data = data_of(path, value_range="255")
    assert data.entry["value_range"] == 255 and "as asked" in data.words
    require_same(data, dark / 255)
    data = data_of(path, arrays="z,y")
    assert data.entry["image"] == "z" and "label" not in data.entry
    require_same(data)


@pytest.mark.parametrize(
    ("arrays", "options", "message"),
    [
        ({"x": PIXELS, "images": PIXELS, "y": LABELS}, {},
         r"mine\.npz: several .* x \(6, 3, 9, 8\), images \(6, 3, 9, 8\), .*--arrays x,y or --arrays images,y.*ARRAYS="),
        ({**OTHERS, "x_val": PIXELS, "y_val": LABELS}, {}, r"--arrays x_train,y_train or --arrays x_val,y_val"),
        ({"fog": PIXELS, "snow": PIXELS, "labels": LABELS}, {}, r"--arrays fog,labels or --arrays snow,labels"),
        ({"x": PIXELS}, {}, r"mine\.npz: no array of images with an array of as many labels; it has x \(6, 3, 9, 8\)"),
        ({"x": PIXELS, "y": LABELS[:4]}, {}, r"it has x \(6, 3, 9, 8\), y \(4,\)"),
        ({"x": PIXELS.reshape(6, -1), "y": LABELS}, {}, r"it has x \(6, 216\).*\(N, H, W, C\)"),
        ({"x": PIXELS, "y": LABELS}, {"arrays": "x"}, r"--arrays x: name two"),
        ({"x": PIXELS, "labels": LABELS}, {"arrays": "x,label"}, r"mine\.npz: --arrays .*did you mean 'labels'"),
        ({"x": PIXELS // 16 * 1.0, "y": LABELS}, {}, r"x: pixels from 0 to 15.*--value-range 255 \(make: VALUE_RANGE="),
        ({"x": IMAGES * 1.4 - 0.4, "y": LABELS}, {}, r"x: pixels from -0\.4 to 1.*--value-range signed"),
        ({"x": IMAGES * 4 - 2, "y": LABELS}, {}, r"x: pixels from -2 to 2, which are normalised"),
        ({"x": PIXELS * 257.0, "y": LABELS}, {}, r"x: pixels from 0 to 6\.\d+e\+04, which are normalised"),
        ({"x": np.where(IMAGES > 0.9, np.nan, IMAGES), "y": LABELS}, {}, r"x: .*not finite"),
        ({"x": IMAGES, "y": LABELS}, {"value_range": "255"}, r"no pixel exceeds .*--value-range 1"),
        ({"x": PIXELS * 1.0, "y": LABELS}, {"value_range": "1"}, r"outside 0\.\.1.*--value-range"),
        ({"x": PIXELS, "y": np.eye(3)[LABELS] * 0.9}, {}, r"y: shape \(6, 3\), and row 0 is not a single 1"),
        ({"x": PIXELS[:, :2], "y": LABELS}, {}, r"x: shape \(6, 2, 9, 8\), of which no axis"),
        ({"x": PIXELS.reshape(6, -1), "y": LABELS}, {"arrays": "x,y"}, r"x: shape \(6, 216\), of which no axis"),
        ({"x": PIXELS[:, :, :, :3], "y": LABELS}, {}, r"x: shape \(6, 3, 9, 3\), of which two axes"),
        ({"x": PIXELS, "y": LABELS + 1}, {}, r"no sample of class '0'.*subtract 1"),
        ({"x": PIXELS, "y": LABELS}, {"image_folder": "images"}, r"--image-folder images: .*no use"),
    ],
)  # fmt: skip
def test_what_is_not_plain_is_refused_with_the_arrays_and_the_option(saved, arrays, options, message):
    with pytest.raises(InputError, match=message):
        data_of(saved(arrays), **options)


def test_objects_are_not_unpickled_and_damaged_files_are_named(saved, tmp_path):
    path = saved({"x": PIXELS, "y": np.array([{}] * 6, dtype=object)})
    with pytest.raises(InputError, match=r"mine\.npz: not a whole \.npz file without pickled objects"):
        data_of(path)
    folder = saved({"x": PIXELS, "y": LABELS}, folder=True)
    content = (folder / "x.npy").read_bytes()
    (folder / "x.npy").write_bytes(content[:-7])
    with pytest.raises(InputError, match=r"x\.npy: not a whole"):
        data_of(folder)
    with pytest.raises(InputError, match=r"x\.npy: one array; give the folder"):
        data_of(folder / "x.npy")


def test_options_of_arrays_are_refused_for_other_data(tmp_path):
    from PIL import Image

    for number in range(4):
        (tmp_path / f"images/{number % 2}").mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 4), (number, 0, 0)).save(tmp_path / f"images/{number % 2}/{number}.png")
    for option, value in (("arrays", "x,y"), ("value_range", "255"), ("image_folder", "images")):
        with pytest.raises(InputError, match=rf"--{option.replace('_', '-')} {value}: .*class folders.*leave it out"):
            data_of(tmp_path / "images", **{option: value})
