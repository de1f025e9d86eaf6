"""What files of transformers and timm state of images leads to the pixels that these libraries make of them."""

import numpy as np
import pytest
from PIL import Image

from gfscore.images.dataset_source import CenterCrop, Squash
from gfscore.images.encoded import from_files
from gfscore.networks.compatibility import import_torchvision
from gfscore.workflow.new_audit.new_model import input_of_timm, input_of_transformers

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
}


@pytest.fixture(scope="module")
def picture(tmp_path_factory):
    """A folder with a photograph, smooth and wider than it is high."""
    folder = tmp_path_factory.mktemp("picture")
    coarse = np.random.default_rng(0).integers(0, 256, (9, 12, 3), dtype=np.uint8)
    Image.fromarray(coarse).resize((500, 375), Image.Resampling.BICUBIC).save(folder / "0.png")
    return folder


def pixels_as_stated(folder, stated):
    """Pixels (C, H, W) of the picture by the preprocessing of the data and of the model that an audit would have."""
    settings = {"center_crop": CenterCrop, "squash": Squash}[stated.resize.method].model_validate(stated.resize.entry())
    images = from_files(folder, ["0.png"], [0], sample_id=["0"], preprocessing=settings)
    (batch,) = images.batches(1)
    return stated.pixels.preprocessing.apply(batch, where="")[0]


@pytest.mark.parametrize("name", PROCESSORS)
def test_a_processor_of_transformers_is_read_as_it_works(name, picture, tmp_path):
    import_torchvision()
    transformers = pytest.importorskip("transformers")
    processor = getattr(transformers, f"{name.split()[0]}ImageProcessor")(**PROCESSORS[name])
    processor.save_pretrained(tmp_path)
    expected = processor(Image.open(picture / "0.png"), return_tensors="np")["pixel_values"][0]
    pixels = pixels_as_stated(picture, input_of_transformers(tmp_path / "preprocessor_config.json"))
    assert pixels.shape == expected.shape
    # Its crop may begin one pixel beside ours.
    assert np.abs(pixels - expected).mean() < 0.03 * expected.std()


def test_squashing_before_a_crop_is_said(tmp_path):
    import_torchvision()
    transformers = pytest.importorskip("transformers")
    transformers.DeiTImageProcessor().save_pretrained(tmp_path)
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
