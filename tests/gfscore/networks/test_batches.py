"""Images per forward pass, found from the network."""

import threading

import numpy as np
import pytest
import torch
from torch import nn

from gfscore.core.errors import InputError
from gfscore.images.image_set import from_arrays
from gfscore.networks.architectures import build_network
from gfscore.networks.batches import CACHE_BYTES, ITEMS_AHEAD, MOST_IMAGES, computed_ahead, fitting_batch_size
from gfscore.networks.classifier import Classifier, from_network
from gfscore.networks.inference import extract_logits
from gfscore.networks.wrappers import in_blocks


def convolution(channels, out):
    """A classifier whose largest layer reads `channels` and writes `out` values per pixel."""
    return from_network(nn.Sequential(nn.Conv2d(channels, out, 3, padding=1), nn.AdaptiveAvgPool2d(1), nn.Flatten()))


def test_the_largest_layer_of_a_batch_stays_near_the_processor():
    """Convolution of 3 to 64 channels at 224x224: 13.4 MB per image, so 2 images within 32 MiB."""
    per_image = (3 + 64) * 224 * 224 * 4
    assert fitting_batch_size(convolution(3, 64), (3, 224, 224), "cpu") == 2
    assert 2 * per_image <= CACHE_BYTES < 4 * per_image


def test_small_networks_take_the_most():
    network = build_network("small_convnet", in_channels=1, image_size=(8, 8), classes=10)
    assert fitting_batch_size(from_network(network), (1, 8, 8), "cpu") == MOST_IMAGES["cpu"]


def test_a_layer_beyond_all_room_is_given_one_image():
    assert fitting_batch_size(convolution(1, 4000), (1, 64, 64), "cpu") == 1


def test_without_a_network_images_are_counted():
    """Ten images of 3x224x224 are 6 MB: 5 fit into 32 MiB."""
    classifier = Classifier("", None, 2, None, run=lambda images: images[:, :2, 0, 0])
    assert fitting_batch_size(classifier, (3, 224, 224), "cpu") == 4


def test_a_network_of_functions_alone_is_counted_likewise():
    class Means(nn.Module):
        def forward(self, images):
            return images.mean((2, 3))

    outer = nn.Sequential(Means())
    # The layer is seen, if not what it does inside: an image and three numbers.
    assert fitting_batch_size(from_network(outer), (3, 224, 224), "cpu") == 32


@pytest.mark.parametrize(("batch", "expected"), [(1, 4), (3, 3), (16, 16)])
def test_a_fixed_batch_is_filled_with_images_not_with_zeros(batch, expected):
    """Five images fit, of a network with a layer of 6.6 MB per image, and of a function."""
    network = from_network(in_blocks(convolution(3, 30).network, batch), batch=batch)
    assert fitting_batch_size(network, (3, 224, 224), "cpu") == expected
    function = Classifier("", None, 2, None, run=lambda images: images, batch=batch)
    assert fitting_batch_size(function, (3, 224, 224), "cpu") == expected


@pytest.mark.parametrize(("memory", "expected"), [(80 << 30, 512), (1 << 30, 8), (1 << 20, 1)])
def test_a_gpu_is_asked_for_its_memory(monkeypatch, memory, expected):
    """A stand-in for a GPU: 13.4 MB per image, in an eighth of its memory, however much of that others hold."""
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (memory // 3, memory))
    assert fitting_batch_size(convolution(3, 64), (3, 224, 224), "cuda") == expected


def test_no_hook_is_left_and_the_logits_are_those_of_any_other_size():
    network = build_network("small_convnet", in_channels=1, image_size=(16, 16), classes=3).eval()
    pixels = np.random.default_rng(0).random((300, 1, 16, 16), dtype=np.float32)
    images = from_arrays(pixels, np.zeros(300, int), sample_id=np.arange(300), preprocessing="")
    found = extract_logits(network, images, device="cpu")[2]
    assert not any(layer._forward_hooks for layer in network.modules())
    np.testing.assert_allclose(found, extract_logits(network, images, batch_size=7, device="cpu")[2], atol=1e-6)


def test_the_next_item_is_made_while_this_one_is_worked_on():
    asked = [threading.Event() for _ in range(3)]

    def made():
        for event in asked:
            event.set()
            yield event

    for number, event in enumerate(computed_ahead(made())):
        assert event is asked[number]
        # Without the other thread nobody would ask for the next item before this one is done with.
        assert asked[min(number + 1, 2)].wait(10)


def test_no_more_is_made_ahead_than_memory_is_meant_for():
    made = []

    def items():
        for number in range(10):
            made.append(number)
            yield number

    for number in computed_ahead(items()):
        assert len(made) <= number + 1 + ITEMS_AHEAD
    assert made == list(range(10))


def test_an_error_of_the_loading_thread_is_raised_here():
    def made():
        yield 1
        raise InputError("broken image")

    items = computed_ahead(made())
    # What was made before the error is still given.
    assert next(items) == 1
    with pytest.raises(InputError, match="broken image"):
        next(items)
