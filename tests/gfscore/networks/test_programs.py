"""The source program: networks with their code in their file."""

import zipfile

import numpy as np
import pytest
import torch
from torch import nn

from gfscore.core.digests import sha256_of_file
from gfscore.core.errors import InputError
from gfscore.networks.batches import fitting_batch_size
from gfscore.networks.checkpoint_files import describe_checkpoint
from gfscore.networks.classifier import open_classifier
from gfscore.networks.programs import kind_of_program

IMAGES = np.random.default_rng(0).random((5, 3, 8, 8), dtype=np.float32)
PIXELS = {"image_shape": [3, 8, 8], "channel_order": "rgb", "value_range": 1, "mean": [0.5, 0.5, 0.5], "std": None}
MODEL = {"dataset": "z", "threat": "none", "model": "M"}


@pytest.fixture
def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 4)).eval()


def opened(path, *, classes=4, **settings):
    entry = {"source": "program", "path": str(path), "url": None, "sha256": sha256_of_file(path), "trust_pickle": True}
    manifest = describe_checkpoint({**entry, **PIXELS, **settings}, identity=MODEL)
    return open_classifier(manifest, image_shape=[3, 8, 8], classes=classes)


def saved(network, path, *, kind="script", batch="any"):
    example = torch.zeros(2 if batch == "any" else batch, 3, 8, 8)
    if kind == "script":
        torch.jit.trace(network, example).save(path)
    else:
        shapes = ({0: torch.export.Dim("n")},) if batch == "any" else None
        torch.export.save(torch.export.export(network, (example,), dynamic_shapes=shapes), path)


@pytest.mark.parametrize(("kind", "batch"), [("script", "any"), ("export", "any"), ("export", 1), ("export", 3)])
def test_a_program_gives_the_logits_and_gradients_of_its_network(tmp_path, network, kind, batch):
    path = tmp_path / "m.pt2"
    saved(network, path, kind=kind, batch=batch)
    assert kind_of_program(path) == kind
    classifier = opened(path)
    images = torch.from_numpy(IMAGES).requires_grad_()
    expected = network(images - 0.5)
    np.testing.assert_allclose(classifier.logits(IMAGES), expected.detach(), rtol=1e-5, atol=1e-6)
    (wanted,) = torch.autograd.grad(expected[:, 1].sum(), images)
    (found,) = torch.autograd.grad(classifier.network(images)[:, 1].sum(), images)
    torch.testing.assert_close(found, wanted)
    assert 1 <= fitting_batch_size(classifier, (3, 8, 8), "cpu") <= 256
    assert classifier.batch == (1 if batch == "any" else batch)
    assert classifier.classes == 4 and opened(path, outputs=[2, 0]).classes == 2


class ChannelsLast(nn.Module):
    """A network of images (n, H, W, C)."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, images):
        return self.network(images.permute(0, 3, 1, 2))


@pytest.mark.parametrize("batch", ["any", 2])
@pytest.mark.parametrize("head", [None, "softmax"])
def test_a_program_of_images_with_their_channels_last_gets_them_so(tmp_path, network, batch, head):
    layers = [ChannelsLast(network)] + ([nn.Softmax(dim=1)] if head else [])
    shapes = ({0: torch.export.Dim("n")},) if batch == "any" else None
    program = torch.export.export(nn.Sequential(*layers), (torch.zeros(2, 8, 8, 3),), dynamic_shapes=shapes)
    torch.export.save(program, tmp_path / "m.pt2")
    classifier = opened(tmp_path / "m.pt2", head=head)
    expected = network(torch.from_numpy(IMAGES) - 0.5).detach()
    np.testing.assert_allclose(classifier.logits(IMAGES), expected, rtol=1e-5, atol=1e-6)


class ByKeyword(nn.Module):
    """A network as those of transformers: images by a keyword, an argument beside them, and a dict."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, scale=1.0, labels=None, pixel_values=None):
        return {"logits": scale * self.network(pixel_values)}


@pytest.mark.parametrize("number_type", [torch.float32, torch.float16])
def test_a_program_gets_images_by_the_keyword_that_it_was_exported_with(tmp_path, network, number_type):
    path = tmp_path / "m.pt2"
    images = {"pixel_values": torch.zeros(2, 3, 8, 8, dtype=number_type), "labels": None}
    program = torch.export.export(ByKeyword(network.to(number_type)), (2.0,), images)
    torch.export.save(program, path)
    with torch.no_grad():
        expected = 2 * network.float()(torch.from_numpy(IMAGES) - 0.5)
    np.testing.assert_allclose(opened(path).logits(IMAGES), expected, atol=2e-3)


def test_a_program_of_more_than_images_is_refused(tmp_path):
    path = tmp_path / "m.pt2"

    class Sum(nn.Module):
        def forward(self, images, others):
            return (images + others).flatten(1)

    torch.export.save(torch.export.export(Sum(), (torch.zeros(2, 3, 8, 8), torch.zeros(2, 3, 8, 8))), path)
    with pytest.raises(InputError, match=r"m\.pt2: fails on images .*takes nothing but images \(n, C, H, W\)"):
        opened(path)


def test_code_is_opened_only_with_trust_and_its_digest(tmp_path, network):
    path = tmp_path / "m.pt"
    saved(network, path)
    for missing in ({"trust_pickle": False}, {"sha256": None}):
        with pytest.raises(InputError, match=r"trust"):
            opened(path, **missing)
    with pytest.raises(InputError, match=r"sha256 is"):
        opened(path, sha256="0" * 64)


def test_files_that_are_no_programs_are_named(tmp_path, network):
    path = tmp_path / "weights.pt"
    torch.save(network.state_dict(), path)
    with pytest.raises(InputError, match=r"weights\.pt: is neither TorchScript nor .*architecture"):
        opened(path)
    with zipfile.ZipFile(tmp_path / "compiled.pt2", "w") as file:
        file.writestr("m/archive_format", "pt2")
        file.writestr("m/data/aotinductor/model/code.so", "")
    with pytest.raises(InputError, match=r"compiled\.pt2: holds compiled code"):
        opened(tmp_path / "compiled.pt2")


# ---- source transformers ----
