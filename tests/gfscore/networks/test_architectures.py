import pytest
import torch

from gfscore.core.errors import InputError
from gfscore.networks.architectures import ARCHITECTURES, build_network

SHAPE = {"in_channels": 3, "image_size": (9, 12), "classes": 5}


@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.parametrize("size", [(8, 8), (9, 13), (32, 32)])
def test_every_architecture_takes_any_size_from_eight_on(name, size):
    network = build_network(name, in_channels=2, image_size=size, classes=7)
    logits = network(torch.rand(3, 2, *size))
    assert logits.shape == (3, 7)
    assert torch.isfinite(logits).all()


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_logits_of_a_sample_do_not_depend_on_its_batch(name):
    network = build_network(name, **SHAPE)
    assert network.training
    images = torch.rand(6, 3, 9, 12)
    torch.testing.assert_close(network(images)[2:3], network(images[2:3]), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_pixel_reaches_the_logits(name):
    images = torch.rand(1, 3, 9, 12, requires_grad=True)
    build_network(name, **SHAPE)(images).square().sum().backward()
    assert (images.grad.abs().sum(dim=(0, 1)) > 0).all()


def test_the_seed_determines_the_weights_and_no_other_draw():
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    first, second, other = (build_network("small_convnet", seed=seed, **SHAPE) for seed in (1, 1, 2))
    assert torch.equal(torch.rand(2), expected)
    assert torch.equal(first[0].weight, second[0].weight)
    assert not torch.equal(first[0].weight, other[0].weight)


def test_building_a_network_does_not_seed_a_gpu(monkeypatch):
    # Queued until a GPU is used, where there is one.
    monkeypatch.setattr(torch.cuda, "manual_seed_all", lambda _: pytest.fail("a GPU was seeded"))
    build_network("small_convnet", seed=1, **SHAPE)


def test_architectures_differ_in_kind():
    kinds = {name: {type(m).__name__ for m in build_network(name, **SHAPE).modules()} for name in ARCHITECTURES}
    assert "LayerNorm" in kinds["patch_mixer"]
    assert "LayerNorm" not in kinds["small_convnet"]


def test_the_residual_network_is_as_large_as_its_model():
    network = build_network("residual_network", in_channels=3, image_size=(32, 32), classes=10)
    # ResNet-18 for CIFAR-10 with batch normalisation has as many.
    assert sum(value.numel() for value in network.parameters()) == 11_173_962
    assert not any(isinstance(module, torch.nn.modules.batchnorm._BatchNorm) for module in network.modules())
    convolutions = [module for module in network.modules() if isinstance(module, torch.nn.Conv2d)]
    assert len([module for module in convolutions if module.kernel_size == (3, 3)]) == 17


@pytest.mark.parametrize("width", [4, 24, 33])
def test_the_residual_network_takes_any_width_and_depth(width):
    network = build_network("residual_network", width=width, blocks=1, **SHAPE)
    assert network(torch.rand(2, 3, 9, 12)).shape == (2, 5)


def test_bad_requests_are_named():
    with pytest.raises(InputError, match="'vgg' is unknown; choose one of small_convnet, patch_mixer"):
        build_network("vgg", **SHAPE)
    with pytest.raises(InputError, match="no argument 'heads'; it knows patch, width, depth"):
        build_network("patch_mixer", heads=2, **SHAPE)
    with pytest.raises(InputError, match="at least 8x8 pixels, got 7x9"):
        build_network("patch_mixer", in_channels=1, image_size=(7, 9), classes=2)
