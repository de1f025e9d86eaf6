"""Images in folders: class folders, lists of images, and CSV files of their labels."""

import io
import os
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from pydantic import TypeAdapter

from gfscore.core.errors import InputError
from gfscore.core.files import write_json
from gfscore.images import encoded as _encoded
from gfscore.images.dataset_source import Preprocessing
from gfscore.images.datasets import load_all, open_images
from gfscore.images.decoding import prepare
from gfscore.images.manifests import open_and_describe, open_described

preprocessing = TypeAdapter(Preprocessing).validate_python
NONE = {"method": "none"}
CROP = {"method": "center_crop", "resize": 256, "size": 224, "interpolation": "bilinear"}
SQUASH = {"method": "squash", "size": 224, "interpolation": "bilinear"}
FOLDER = {"source": "image_folder", "folders": None, "list": None, "preprocessing": NONE}
PAIR = ["cat", "dog"]


def pixels_of(seed, width=9, height=8):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def encoded(image, kind="PNG", **options):
    buffer = io.BytesIO()
    (image if isinstance(image, Image.Image) else Image.fromarray(image)).save(buffer, kind, **options)
    return buffer.getvalue()


@pytest.fixture
def root(tmp_path):
    """Two class folders with three and two images, and what a file manager leaves behind."""
    for seed, name in enumerate(
        ["n02/b.png", "n02/a.PNG", "n02/c.jpeg", "n01/x.png", "n01/.hidden.png", "__MACOSX/x.png"]
    ):
        path = tmp_path / "val" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encoded(pixels_of(seed), "JPEG" if name.endswith("jpeg") else "PNG"))
    (tmp_path / "val/n01/Thumbs.db").touch()
    (tmp_path / "val/n01/y.png").write_bytes(encoded(pixels_of(9)))
    return tmp_path / "val"


def test_sorted_folders_count_the_labels_and_paths_identify_the_samples(root):
    images = open_images(FOLDER, root, classes=PAIR)
    assert images.sample_id.tolist() == ["n01/x.png", "n01/y.png", "n02/a.PNG", "n02/b.png", "n02/c.jpeg"]
    assert images.labels.tolist() == [0, 0, 1, 1, 1]
    assert images.class_names == ("n01", "n02")
    x, _ = load_all(images)
    assert x.shape == (5, 3, 8, 9)
    np.testing.assert_array_equal(x[3].transpose(1, 2, 0), pixels_of(0).astype(np.float32) / np.float32(255))
    for size in (1, 2, 100):
        np.testing.assert_array_equal(np.concatenate(list(images.batches(size))), x)


def test_declared_folders_give_the_order_and_must_be_those_that_are_there(root):
    declared = {**FOLDER, "folders": ["n02", "n01"]}
    assert open_images(declared, root, classes=PAIR).labels.tolist() == [0, 0, 0, 1, 1]
    with pytest.raises(InputError, match=r"val: class folder n00 is missing"):
        open_images({**FOLDER, "folders": ["n00", "n01", "n02"]}, root, classes=PAIR)
    (root / "n03").mkdir()
    with pytest.raises(InputError, match=r"val: class folder n03 is not in `folders`"):
        open_images({**FOLDER, "folders": ["n01", "n02"]}, root, classes=PAIR)


def test_names_of_numbered_folders_need_their_order(tmp_path):
    names = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    for number in range(11):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "x.png").write_bytes(encoded(pixels_of(number)))
    assert open_images(FOLDER, tmp_path, classes=None).class_names[:3] == ("0", "1", "10")
    with pytest.raises(
        InputError, match=r"sorted by name are 0, 1, 10, 2, 3, \.\.\., and `classes` gives them other names"
    ):
        open_images(FOLDER, tmp_path, classes=names)
    images = open_images({**FOLDER, "folders": list(map(str, range(11)))}, tmp_path, classes=names)
    assert [names[label] for label in images.labels[-2:]] == ["nine", "ten"]


def test_faults_of_the_folders_are_named(root):
    with pytest.raises(InputError, match="the data have 2 classes, `classes` declares 3"):
        open_images(FOLDER, root, classes=["a", "b", "c"])
    with pytest.raises(InputError, match="'n02' is label 0 in `classes`, but label 1 in the data"):
        open_images(FOLDER, root, classes=["n02", "n01"])
    (root / "n03").mkdir()
    (root / "n03/notes.txt").write_text("")
    with pytest.raises(InputError, match=r"n03/notes\.txt: not an image by its name"):
        open_images(FOLDER, root, classes=PAIR)
    (root / "loose.jpg").write_text("")
    with pytest.raises(InputError, match=r"loose\.jpg lies outside the class folders"):
        open_images(FOLDER, root, classes=PAIR)
    with pytest.raises(InputError, match="absent: no such folder"):
        open_images(FOLDER, root / "absent", classes=PAIR)
    (root / "only").mkdir()
    with pytest.raises(InputError, match="no class folders"):
        open_images(FOLDER, root / "only", classes=PAIR)


def test_an_empty_class_folder_is_a_class_without_samples(root):
    (root / "n015").mkdir()
    (root / "n015/Thumbs.db").write_bytes(b"left behind")
    images = open_images(FOLDER, root, classes=None)
    assert images.class_names == ("n01", "n015", "n02")
    assert np.bincount(images.labels, minlength=3).tolist() == [2, 0, 3]
    _, manifest = open_and_describe(FOLDER, root, dataset="pets", classes=["a", "b", "c"])
    assert manifest["samples_per_class"] == [2, 0, 3]


def test_classes_that_a_list_passes_over_are_refused(root, tmp_path):
    (tmp_path / "list.txt").write_text("n02/c.jpeg\n")
    with pytest.raises(InputError, match="no sample of class 'n01'"):
        open_images({**FOLDER, "list": str(tmp_path / "list.txt")}, root, classes=None)


def test_folders_without_any_image_are_refused(tmp_path):
    for name in PAIR:
        (tmp_path / "empty" / name).mkdir(parents=True)
    with pytest.raises(InputError, match="empty: no images in its class folders"):
        open_images(FOLDER, tmp_path / "empty", classes=None)


def test_a_list_chooses_images_and_labels(root, tmp_path):
    listed = tmp_path / "list.txt"
    settings = {**FOLDER, "list": str(listed)}
    listed.write_text("n02/c.jpeg\n\nn01/x.png\n")
    images = open_images(settings, root, classes=PAIR)
    assert (images.sample_id.tolist(), images.labels.tolist()) == (["n02/c.jpeg", "n01/x.png"], [1, 0])
    assert images.class_names == ("n01", "n02")
    listed.write_text("n02/c.jpeg 0\nn01/x.png\tn02\n")
    images = open_images(settings, root, classes=PAIR)
    assert (images.labels.tolist(), images.class_names) == ([0, 1], None)
    with pytest.raises(InputError, match=r"row 1 has label 7, outside 0\.\.1"):
        listed.write_text("n02/c.jpeg 0\nn01/x.png 7\n")
        open_images(settings, root, classes=PAIR)
    for line, message in (
        ("../n01/x.png 0", "line 1 leads outside"),
        (".", "line 1 names no image"),
        ("/n01/x.png 0", "line 1 leads outside"),
        ("n01/x.png cow", "line 1 has label cow, neither"),
        ("", "names no image"),
    ):
        listed.write_text(line)
        with pytest.raises(InputError, match=rf"list\.txt: .*{message}"):
            open_images(settings, root, classes=PAIR)
    listed.write_text("n01/absent.png 0\nn01/x.png 1\n")
    with pytest.raises(InputError, match=r"absent\.png: cannot be read"):
        open_images(settings, root, classes=PAIR)
    with pytest.raises(InputError, match="the list cannot be read"):
        open_images({**FOLDER, "list": str(root / "no.txt")}, root, classes=PAIR)


@pytest.mark.parametrize("separator", ["\t", " ", " \t ", "   "])
def test_folders_and_images_in_a_list_may_hold_blanks(root, tmp_path, separator):
    (root / "n01").rename(root / "great white")
    (root / "n02").rename(root / "white")
    (root / "white/c.jpeg").rename(root / "white/c d.jpeg")
    listed = tmp_path / "list.txt"
    lines = [f"white/c d.jpeg{separator}great white", "great white/x.png", f"./white//b.png{separator}white"]
    listed.write_text("\n".join(lines))
    images = open_images({**FOLDER, "list": str(listed)}, root, classes=PAIR)
    assert images.sample_id.tolist() == ["white/c d.jpeg", "great white/x.png", "white/b.png"]
    assert (images.labels.tolist(), images.class_names) == ([0, 0, 1], ("great white", "white"))
    listed.write_text(f"white/c d.jpeg{separator}0\nwhite/b.png{separator}1")
    images = open_images({**FOLDER, "list": str(listed)}, root, classes=PAIR)
    assert (images.sample_id.tolist(), images.labels.tolist()) == (["white/c d.jpeg", "white/b.png"], [0, 1])


def test_one_image_under_two_spellings_of_its_path_is_refused(root, tmp_path):
    (tmp_path / "list.txt").write_text("n01/x.png\nn01//x.png\nn02/b.png\n")
    with pytest.raises(InputError, match="sample identifiers are repeated"):
        open_images({**FOLDER, "list": str(tmp_path / "list.txt")}, root, classes=PAIR)


def test_a_list_may_start_with_the_mark_of_windows_and_must_be_utf_8(root, tmp_path):
    listed = tmp_path / "list.txt"
    listed.write_text("n02/c.jpeg 0\nn01/x.png 1\n", encoding="utf-8-sig")
    images = open_images({**FOLDER, "list": str(listed)}, root, classes=PAIR)
    assert images.sample_id.tolist() == ["n02/c.jpeg", "n01/x.png"]
    for encoding in ("latin-1", "utf-16"):
        listed.write_text("n02/ü.jpeg 0\n", encoding=encoding)
        with pytest.raises(InputError, match=r"list\.txt: the list cannot be read .*; save it as UTF-8$"):
            open_images({**FOLDER, "list": str(listed)}, root, classes=PAIR)


@pytest.mark.parametrize("label", ["99999999999", "9" * 5000])
def test_a_label_in_a_list_that_no_class_can_have_is_named(label, root):
    listed = root.parent / "list.txt"
    listed.write_text(f"n02/c.jpeg 0\nn01/x.png {label}\n")
    with pytest.raises(InputError, match=r"list\.txt: line 2 has label 9{11,80}, neither"):
        open_images({**FOLDER, "list": str(listed)}, root, classes=PAIR)


def test_links_that_lead_to_themselves_are_named(root):
    (root / "n02/loop.png").symlink_to("loop.png")
    with pytest.raises(InputError, match=r"n02/loop\.png: no regular file"):
        open_images(FOLDER, root, classes=PAIR)
    (root / "n02/loop.png").unlink()
    (root / "n03").symlink_to("n03")
    # It is no folder, so it is no class.
    assert open_images(FOLDER, root, classes=PAIR).class_names == ("n01", "n02")


def test_pipes_are_refused_and_not_waited_for(root):
    pipe = root / "n02/pipe.png"
    os.mkfifo(pipe)
    with pytest.raises(InputError, match=r"n02/pipe\.png: no regular file"):
        open_images(FOLDER, root, classes=PAIR)
    listed = root.parent / "list.txt"
    listed.write_text("n01/x.png 0\nn02/pipe.png 1\n")
    with pytest.raises(InputError, match=r"pipe\.png: cannot be read \(a pipe or a device"):
        list(open_images({**FOLDER, "list": str(listed)}, root, classes=PAIR).batches(2))
    with pytest.raises(InputError, match=r"pipe\.png: the list cannot be read \(a pipe or a device"):
        open_images({**FOLDER, "list": str(pipe)}, root, classes=PAIR)
    for source in ("npz", "parquet", "labels"):
        with pytest.raises(InputError, match=r"pipe\.png: is no regular file but a pipe or a device; name the"):
            open_images({"source": source}, pipe, classes=PAIR)


def test_names_that_are_no_text_are_refused(root):
    (root / os.fsdecode(b"n02/\xff.png")).write_bytes(encoded(pixels_of(5)))
    with pytest.raises(InputError, match=r"n02: the name '\\udcff\.png' is no UTF-8; rename"):
        open_images(FOLDER, root, classes=PAIR)
    (root / os.fsdecode(b"n02/\xff.png")).unlink()
    (root / "n02").rename(root / os.fsdecode(b"n\xff"))
    with pytest.raises(InputError, match=r"val: the name 'n\\udcff' is no UTF-8; rename"):
        open_images(FOLDER, root, classes=None)
    root = root.rename(root.parent / os.fsdecode(b"\xff"))
    (root / os.fsdecode(b"n\xff")).rename(root / "n02")
    with pytest.raises(InputError, match=r"dataset: the name '.*\\udcff' is no UTF-8; rename"):
        open_images(FOLDER, root, classes=PAIR)


def test_a_flat_folder_is_read_through_a_list(tmp_path):
    for number in range(3):
        (tmp_path / f"val_{number}.png").write_bytes(encoded(pixels_of(number)))
    listed = tmp_path / "val.txt"
    listed.write_text("val_0.png 1\nval_1.png 0\nval_2.png 1\n")
    images = open_images({**FOLDER, "list": str(listed)}, tmp_path, classes=PAIR)
    assert images.labels.tolist() == [1, 0, 1]
    listed.write_text("val_0.png n02\nval_1.png n01\n")
    images = open_images({**FOLDER, "list": str(listed), "folders": ["n01", "n02"]}, tmp_path, classes=PAIR)
    assert images.labels.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (lambda content: content[: len(content) // 2], r"b\.png: not a whole image \("),
        (lambda content: content[:60] + bytes([content[60] ^ 255]) + content[61:], r"b\.png: not a whole image"),
        (lambda content: b"", r"b\.png: not a whole image"),
        (lambda content: b"<!doctype html>", r"b\.png: not a whole image \(UnidentifiedImageError"),
        (lambda content: b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 8\n", r"b\.png: not a whole image"),
        (lambda content: encoded(pixels_of(0), "JPEG")[:-200], r"b\.png: not a whole image"),
        (lambda content: encoded(Image.fromarray(np.zeros((8, 9), dtype=np.uint16))), r"b\.png: pixels of mode I"),
        (lambda content: encoded(pixels_of(0, width=10)), r"n02/b\.png: 10x8 pixels, but the first image has 9x8"),
    ],
)
def test_a_broken_image_is_named(fault, message, root):
    path = root / "n02/b.png"
    path.write_bytes(fault(path.read_bytes()))
    with pytest.raises(InputError, match=message):
        list(open_images(FOLDER, root, classes=PAIR).batches(2))


def test_every_kind_of_colour_becomes_rgb():
    grey = Image.fromarray(np.arange(72, dtype=np.uint8).reshape(8, 9))
    for image, kind in (
        (grey, "PNG"),
        (grey.convert("1"), "PNG"),
        (grey.convert("LA"), "PNG"),
        (grey.convert("RGBA"), "PNG"),
        (grey.convert("RGB").quantize(8), "GIF"),
        (grey.convert("CMYK"), "JPEG"),
        (grey, "WEBP"),
        (grey, "BMP"),
    ):
        pixels = prepare(encoded(image, kind), preprocessing(NONE), name="x")
        assert pixels.shape == (8, 9, 3)
        assert pixels.dtype == np.uint8
    np.testing.assert_array_equal(prepare(encoded(grey), preprocessing(NONE), name="x")[..., 2], np.asarray(grey))


def png_of_16_bits(colour):
    channels = {2: 3, 4: 2, 6: 4}[colour]

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = zlib.compress((b"\0" + bytes(2 * channels * 9)) * 8)
    header = struct.pack(">IIBBBBB", 9, 8, 16, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def tiff_of_16_bits(planar):
    entries = [
        (256, 9),
        (257, 8),
        (258, 200),
        (259, 1),
        (262, 2),
        (273, 300),
        (277, 3),
        (278, 8),
        (279, 432),
        (284, planar),
    ]
    if planar == 2:
        entries = [(tag, {273: 210, 279: 222}.get(tag, value)) for tag, value in entries]
    several = (258, 273, 279) if planar == 2 else (258,)
    fields = [
        struct.pack(
            "<HHII" if tag in several else "<HHIHxx",
            tag,
            4 if tag in (273, 279) else 3,
            3 if tag in several else 1,
            value,
        )
        for tag, value in entries
    ]
    content = b"II*\0\x08\0\0\0" + struct.pack("<H", len(fields)) + b"".join(fields) + bytes(4)
    content = content.ljust(200, b"\0") + struct.pack("<HHHxxxx", 16, 16, 16)
    return content + struct.pack("<6I", 300, 444, 588, 144, 144, 144).ljust(90, b"\0") + bytes(432)


@pytest.mark.parametrize(
    "content",
    [
        *(png_of_16_bits(colour) for colour in (2, 4, 6)),
        *(tiff_of_16_bits(planar) for planar in (1, 2)),
        b"P6 9 8 65535\n" + bytes(432),
        b"P3 9 8 65535\n" + b"0 " * 216,
    ],
    ids=["RGB", "LA", "RGBA", "TIFF", "planar TIFF", "PPM", "plain PPM"],
)
def test_colours_of_16_bits_are_refused_and_not_cut(content):
    assert Image.open(io.BytesIO(content)).convert("RGB").size == (9, 8)
    with pytest.raises(InputError, match=r"^x: 16 bits per channel; convert it to 8-bit RGB$"):
        prepare(content, preprocessing(NONE), name="x")


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "TIFF", "PNG"])
def test_animations_and_pages_are_refused(kind):
    first, second = Image.fromarray(pixels_of(0)), Image.fromarray(pixels_of(1))
    with pytest.raises(InputError, match=r"^x: holds 2 pictures .* as a separate image$"):
        prepare(encoded(first, kind, save_all=True, append_images=[second]), preprocessing(NONE), name="x")
    assert prepare(encoded(first, kind), preprocessing(NONE), name="x").shape == (8, 9, 3)


def test_the_preview_inside_a_photograph_is_no_second_picture():
    first, second = Image.fromarray(pixels_of(0)), Image.fromarray(pixels_of(1))
    content = encoded(first, "MPO", save_all=True, append_images=[second])
    np.testing.assert_array_equal(
        prepare(content, preprocessing(NONE), name="x"), prepare(encoded(first, "JPEG"), preprocessing(NONE), name="x")
    )


def test_few_bits_are_no_many_bits():
    for content in (b"P6 9 8 255\n" + bytes(216), b"P6 9 8 100\n" + bytes(216), b"P1 9 8\n" + b"0 " * 72):
        assert prepare(content, preprocessing(NONE), name="x").shape == (8, 9, 3)
    # 16 bits for all three channels together.
    bitmap = b"BM" + struct.pack("<IIIIiiHHIIiiII", 54 + 160, 0, 54, 40, 9, 8, 1, 16, 0, 160, 0, 0, 0, 0) + bytes(160)
    assert prepare(bitmap, preprocessing(NONE), name="x").shape == (8, 9, 3)


def test_a_strip_that_resizing_would_blow_up_is_refused():
    strip = encoded(Image.new("L", (60_000, 1)))
    assert len(strip) < 1000
    with pytest.raises(InputError, match=r"^x: not a whole image .*60000x1 pixels would be resized to 15360000x256"):
        prepare(strip, preprocessing(CROP), name="x")
    assert prepare(strip, preprocessing({**CROP, "resize": None}), name="x").shape == (224, 224, 3)
    # As narrow as photographs and drawings may be.
    assert prepare(encoded(Image.new("L", (20, 20_000))), preprocessing(CROP), name="x").shape == (224, 224, 3)


def test_every_preprocessing_equals_torchvisions_to_the_bit():
    from gfscore.networks.compatibility import import_torchvision

    import_torchvision()
    from torchvision import transforms
    from torchvision.transforms import InterpolationMode

    for seed, (width, height) in enumerate([(500, 375), (375, 500), (257, 256), (101, 640), (224, 224), (301, 90)]):
        content = encoded(pixels_of(seed, width, height))
        image = Image.open(io.BytesIO(content))
        for name in ("bilinear", "bicubic"):
            mode = InterpolationMode(name)
            pairs = [
                (CROP, transforms.Compose([transforms.Resize(256, mode), transforms.CenterCrop(224)])),
                ({**CROP, "resize": None, "size": 288}, transforms.CenterCrop(288)),
                (SQUASH, transforms.Resize([224, 224], mode)),
            ]
            for settings, transform in pairs:
                ours = prepare(content, preprocessing({**settings, "interpolation": name}), name="x")
                np.testing.assert_array_equal(ours, np.asarray(transform(image)))


def test_a_described_folder_is_verified_without_decoding(root, tmp_path, monkeypatch):
    settings = {**FOLDER, "preprocessing": CROP}
    described = open_and_describe(settings, root, dataset="pets", classes=PAIR)[1]
    assert described["digest_covers"] == "encoded images, labels, identifiers and preprocessing"
    assert described["preprocessing"].startswith("decoded to RGB, short side 256 (bilinear, antialiased), centre crop")
    manifest = tmp_path / "pets.json"
    write_json(manifest, described)
    decoded = []
    monkeypatch.setattr(_encoded, "prepare", lambda *given, name: decoded.append(name) or prepare(*given, name=name))
    images, _ = open_described(manifest)
    assert len(decoded) == 1  # the first image, for the shape
    assert images.digest == described["digest"]
    (root / "n01/x.png").write_bytes(encoded(pixels_of(77)))
    with pytest.raises(InputError, match="delete that manifest"):
        open_described(manifest)


def test_the_digest_covers_bytes_names_labels_and_preprocessing(root):
    def digest(path=root, **changes):
        return open_images({**FOLDER, **changes}, path, classes=PAIR).digest

    seen = {digest(), digest(preprocessing=CROP), digest(preprocessing=SQUASH), digest(folders=["n02", "n01"])}
    seen.add(digest(subset={"samples": 3, "seed": 0}))
    content = (root / "n01/y.png").read_bytes()
    (root / "n01/y.png").write_bytes(content[:-1] + b"?")
    seen.add(digest())
    (root / "n01/y.png").rename(root / "n01/z.png")
    seen.add(digest())
    assert len(seen) == 7


def test_a_subset_decodes_only_what_it_needs(root, monkeypatch):
    decoded = []
    monkeypatch.setattr(_encoded, "prepare", lambda *given, name: decoded.append(name) or prepare(*given, name=name))
    images = open_images({**FOLDER, "subset": {"samples": 2, "seed": 0}}, root, classes=PAIR)
    assert len(load_all(images)[0]) == 2
    assert len(decoded) == 4  # and the first, once for the whole and once for the part


def test_a_reader_that_stops_early_leaves_no_work_behind(root):
    stream = open_images(FOLDER, root, classes=PAIR).batches(1)
    next(stream)
    stream.close()
    waiting = _encoded.in_order(lambda number: 1 // number, iter([1, 0, 1]), ahead=1)
    assert next(waiting) == 1
    with pytest.raises(ZeroDivisionError):
        next(waiting)


MEASURE = """
import sys
from pathlib import Path
from gfscore.images.datasets import open_images
from gfscore.images.manifests import open_and_describe
settings = {"source": "image_folder", "folders": None, "list": None, "preprocessing": %r}
names = [str(label) for label in range(10)]
open_and_describe(settings, sys.argv[1], dataset="x", classes=names)
images = open_images(settings, sys.argv[1], classes=names)
assert sum(len(batch) for batch in images.batches(64)) == int(sys.argv[2])
# Of this program alone: getrusage would also count the test that started it.
print(next(line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line))
"""


def peak_memory(folder, count):
    """Peak memory in MiB of a process that describes and streams `count` JPEGs of 500x400 pixels."""
    rng = np.random.default_rng(0)
    coarse = [Image.fromarray(rng.integers(0, 256, (50, 40, 3), dtype=np.uint8)) for _ in range(8)]
    contents = [encoded(image.resize((500, 400)), "JPEG") for image in coarse]
    for number in range(count):
        path = folder / f"n{number % 10}" / f"{number:05d}.JPEG"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(contents[number % 8])
    sources = Path(__file__).resolve().parents[3] / "workflow_scripts"
    command = [sys.executable, "-c", MEASURE % CROP, str(folder), str(count)]
    done = subprocess.run(command, env={"PYTHONPATH": str(sources)}, capture_output=True, text=True, check=True)
    return float(done.stdout) / 1024


def test_memory_does_not_grow_with_the_number_of_images(tmp_path):
    few, many = peak_memory(tmp_path / "few", 200), peak_memory(tmp_path / "many", 600)
    # Below a tenth of the 3 GB that 50,000 images may take; paths and labels are a few hundred bytes an image.
    assert many < 300
    assert many - few < 10


def test_real_imagenet_images_stream_through_the_folder(real_data):
    folder = real_data / "imagenet/val"
    names = sorted(path.name for path in folder.iterdir())
    settings = {**FOLDER, "preprocessing": CROP, "list": None}
    images = open_images({**settings, "subset": {"samples": 1000, "seed": 0}}, folder, classes=names)
    assert images.labels.tolist() == list(range(1000))
    assert images.sample_id[0] == "n01440764/n01440764_tench.JPEG"
    batch = next(images.batches(8))
    assert batch.shape == (8, 3, 224, 224)
    assert 0.3 < batch.mean() < 0.6


@pytest.fixture
def folder(tmp_path):
    """Six images of one colour each, 0 to 5, in one folder."""
    (tmp_path / "flat").mkdir()
    for number in range(6):
        Image.new("RGB", (4, 4), (number, 0, 0)).save(tmp_path / f"flat/{number}.png")
    return tmp_path


def opened(folder, rows, *, header="image,label", classes=None, **settings):
    path = folder / "flat/labels.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    entry = {
        "source": "image_csv",
        "images": None,
        "image": "image",
        "label": "label",
        "preprocessing": {"method": "none"},
    }
    return open_images(entry | settings, path, classes=classes)


def test_images_come_in_the_order_of_the_file_with_their_labels(folder):
    images = opened(folder, ["3.png,1", "0.png,0", "5.png,1"])
    assert images.sample_id.tolist() == ["3.png", "0.png", "5.png"] and images.labels.tolist() == [1, 0, 1]
    pixels = np.concatenate(list(images.batches(2)))
    np.testing.assert_allclose(pixels[:, 0, 0, 0], np.array([3, 0, 5]) / 255)


def test_names_of_classes_are_sorted_or_in_the_order_that_is_declared(folder):
    rows = ["0.png,NA", "1.png,cat", "2.png,NA"]
    images = opened(folder, rows)
    assert images.class_names == ("NA", "cat") and images.labels.tolist() == [0, 1, 0]
    images = opened(folder, rows, classes=["cat", "NA"])
    assert images.labels.tolist() == [1, 0, 1]


def test_numbers_that_are_names_of_classes_are_names(folder):
    rows = ["0.png,8", "1.png,3", "2.png,8"]
    assert opened(folder, rows, classes=["3", "8"]).labels.tolist() == [1, 0, 1]
    rows = ["0.png,0", "1.png,1", "2.png,0"]
    assert opened(folder, rows, classes=["0", "1"]).labels.tolist() == [0, 1, 0]
    assert opened(folder, rows, classes=["no", "yes"]).labels.tolist() == [0, 1, 0]
    # Label 0 would be called 1.
    with pytest.raises(InputError, match="row 0 is '0': the name of class 1 and the index of another one"):
        opened(folder, rows, classes=["1", "0"])


def test_numbers_with_a_point_are_numbers(folder):
    """As pandas writes whole numbers of a column that had an empty cell."""
    rows = ["0.png,2.0", "1.png,0.0", "2.png,10.00", "3.png,1.0"]
    names = [f"c{number}" for number in range(11)]
    with pytest.raises(InputError, match="no sample of class 'c3'"):
        opened(folder, rows, classes=names)
    with pytest.raises(InputError, match="no sample of class '3'"):
        opened(folder, rows)
    images = opened(folder, rows, classes=["0", "1", "2", "10"])
    assert images.labels.tolist() == [2, 0, 3, 1]
    versions = ["2.0", "0.0", "10.00", "1.0"]
    assert opened(folder, rows, classes=versions).labels.tolist() == [0, 1, 2, 3]
    assert opened(folder, ["0.png,1.5", "1.png,2.0"]).class_names == ("1.5", "2.0")


def test_the_images_may_lie_elsewhere_under_other_columns(folder):
    rows = ["flat/0.png,0", "flat/1.png,1"]
    images = opened(folder, rows, header="file,class", images=str(folder), image="file", label="class")
    assert images.labels.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["../0.png,0", "1.png,1"], r"labels\.csv: row 0 is .*within the folder"),
        (["/etc/passwd,0", "1.png,1"], r"labels\.csv: row 0 is .*within the folder"),
        (["0.png,0", "9.png,1"], r"9\.png: cannot be read"),
        (["0.png,0", "1.png,"], r"labels\.csv: row 1 has no label"),
        (["0.png,cat", "1.png,dgo"], r"labels\.csv: label: row 1 is 'dgo'.*nearest is 'dog'"),
        ([], r"labels\.csv: holds a header and no rows"),
        (["0.png,0,1"], r"labels\.csv"),
    ],
)
def test_bad_rows_are_named(folder, rows, message):
    classes = ["cat", "dog"] if "cat" in "".join(rows) else None
    with pytest.raises(InputError, match=message):
        images = opened(folder, rows, classes=classes)
        list(images.batches(8))


def test_a_missing_column_is_named(folder):
    with pytest.raises(InputError, match=r"labels\.csv: column 'label' is unknown"):
        opened(folder, ["0.png,0"], header="image,class")
