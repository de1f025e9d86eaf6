"""What files of transformers and timm state of images leads to the pixels that these libraries make of them."""

import numpy as np
import pytest
from PIL import Image

from gfscore.images.dataset_source import CenterCrop, Squash
from gfscore.images.encoded import from_files
from gfscore.networks.compatibility import import_torchvision
from gfscore.workflow.new_audit.new_model import Resize, input_of_timm, input_of_transformers

PROCESSORS = {
    "ViT": {},
    "ConvNext": {},
    "ConvNext below 384": {"size": {"shortest_edge": 224}},
    "EfficientNet": {},
    "MobileViT": {"size": {"shortest_edge": 288}},
    "MobileNetV2": {},
    "Levit": {},
    "PoolFormer": {},
    "CLIP": {},
    "Perceiver": {},
    "ViT nearest": {"resample": 0},
    "ViT lanczos": {"resample": 1},
    "MobileViT without flip": {"size": {"shortest_edge": 288}, "do_flip_channel_order": False},
    "PoolFormer uncropped": {"crop_pct": None},
}

OTHERS = {
    "MobileViT": "padded with black, as the crop is larger than the image",
    "PPLCNet": "channels flipped",
    "Bit": "a crop that is no square",
    "Levit": "a crop that is smaller than the size says",
}
"""Processors of transformers that no settings of a dataset stand for, and why."""

ARGUMENTS = {"Bit": {"crop_size": {"height": 200, "width": 224}}, "Levit": {"size": {"height": 256, "width": 256}}}


@pytest.fixture(scope="module")
def picture(tmp_path_factory):
    """A folder with a photograph, smooth and wider than it is high."""
    folder = tmp_path_factory.mktemp("picture")
    coarse = np.random.default_rng(0).integers(0, 256, (9, 12, 3), dtype=np.uint8)
    Image.fromarray(coarse).resize((500, 375), Image.Resampling.BICUBIC).save(folder / "0.png")
    return folder


@pytest.fixture(scope="module")
def transformers():
    """The library."""
    import_torchvision()
    return pytest.importorskip("transformers")


def pixels_as_stated(folder, stated):
    """Pixels (C, H, W) of the picture by the preprocessing of the data and of the model that an audit would have."""
    settings = {"center_crop": CenterCrop, "squash": Squash}[stated.resize.method].model_validate(stated.resize.entry())
    images = from_files(folder, ["0.png"], [0], sample_id=["0"], preprocessing=settings)
    (batch,) = images.batches(1)
    return stated.pixels.preprocessing.apply(batch, where="")[0]


@pytest.mark.parametrize("name", PROCESSORS)
def test_a_processor_of_transformers_is_read_as_it_works(name, picture, tmp_path, transformers):
    processor = getattr(transformers, f"{name.split()[0]}ImageProcessor")(**PROCESSORS[name])
    processor.save_pretrained(tmp_path)
    expected = processor(Image.open(picture / "0.png"), return_tensors="np")["pixel_values"][0]
    pixels = pixels_as_stated(picture, input_of_transformers(tmp_path / "preprocessor_config.json"))
    assert pixels.shape == expected.shape
    # Its crop may begin one pixel beside ours: it rounds the border down, torchvision to even.
    assert np.abs(pixels - expected).mean() < 0.03 * expected.std()


@pytest.mark.parametrize("name", OTHERS)
def test_a_processor_that_no_settings_stand_for_is_not_followed(name, tmp_path, transformers):
    getattr(transformers, f"{name}ImageProcessor")(**ARGUMENTS.get(name, {})).save_pretrained(tmp_path)
    stated = input_of_transformers(tmp_path / "preprocessor_config.json")
    assert stated.shape is None and stated.pixels is None and stated.resize is None
    assert f"is not followed, as no settings do what {name}ImageProcessor does" in stated.note


def test_what_a_processor_does_not_say_is_what_its_library_does(tmp_path, transformers):
    (tmp_path / "preprocessor_config.json").write_text('{"image_processor_type": "CLIPImageProcessor"}')
    stated = input_of_transformers(tmp_path / "preprocessor_config.json")
    assert stated.resize == Resize("center_crop", 224, 224, "bicubic")
    assert stated.pixels.preprocessing.mean == pytest.approx(transformers.CLIPImageProcessor().image_mean)


def test_a_size_that_would_fill_the_memory_is_not_tried(tmp_path, transformers):
    side = 60_000
    transformers.ViTImageProcessor(size={"height": side, "width": side}).save_pretrained(tmp_path)
    assert "is not followed" in input_of_transformers(tmp_path / "preprocessor_config.json").note


def test_code_of_a_processor_is_not_run(tmp_path, transformers):
    (tmp_path / "preprocessor_config.json").write_text(
        '{"image_processor_type": "Mine", "auto_map": {"AutoImageProcessor": "mine.Mine"}}'
    )
    (tmp_path / "mine.py").write_text(f"open({str(tmp_path / 'run')!r}, 'w')\nclass Mine: pass\n")
    assert "is not followed (The repository" in input_of_transformers(tmp_path / "preprocessor_config.json").note
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("DeiT", {}), ("ViT", {"size": {"shortest_edge": 224}}), ("CLIP", {"size": {"height": 256, "width": 256}})],
)
def test_another_crop_of_images_that_are_not_square_is_said(name, arguments, tmp_path, transformers):
    getattr(transformers, f"{name}ImageProcessor")(**arguments).save_pretrained(tmp_path)
    assert "not square" in input_of_transformers(tmp_path / "preprocessor_config.json").note


@pytest.mark.parametrize(
    "name", ["resnet18.a1_in1k", "convnext_tiny.fb_in1k", "inception_v3.tv_in1k", "convnext_base.fb_in22k_ft_in1k_384"]
)
def test_a_network_of_timm_is_shown_images_as_timm_shows_them(name, picture):
    import_torchvision()
    timm = pytest.importorskip("timm")
    stated = timm.get_pretrained_cfg(name).to_dict()
    settings = timm.data.resolve_data_config({}, pretrained_cfg=stated)
    expected = timm.data.create_transform(**settings)(Image.open(picture / "0.png")).numpy()
    np.testing.assert_allclose(pixels_as_stated(picture, input_of_timm(stated, "")), expected, atol=1e-5)
