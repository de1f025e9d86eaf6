"""Attacks on a module or a function: the values of the measure, and a model that is left as it was."""

import numpy as np
import pytest
import torch
from torch import nn

from gfscore import InputError, attack, audit_values
from gfscore.measures.adversarial import KIND, Adversarial
from gfscore.networks.classifier import from_network
from gfscore.statistics.draws import seeds_of_samples

FAST = [{"name": "pgd", "steps": 5}]
QUIET = {"attacks": FAST, "progress": False}


class Linear(nn.Module):
    """Two classes by the mean of the pixels: above or below one half."""

    def forward(self, images):
        mean = images.mean(dim=(1, 2, 3))
        return torch.stack([0.5 - mean, mean - 0.5], dim=1)


def images_of_means(*means):
    return torch.tensor(means, dtype=torch.float32)[:, None, None, None].expand(-1, 1, 8, 8).clone()


def small_network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 3))


def made_images(count=40):
    rng = np.random.default_rng(0)
    return rng.random((count, 1, 8, 8)).astype(np.float32), rng.integers(0, 3, count)


def test_an_image_survives_when_its_mean_is_further_from_the_boundary_than_eps():
    images = images_of_means(0.55, 0.65, 0.35, 0.45, 0.65)
    survived = attack(Linear(), images, [1, 1, 0, 0, 0], eps=0.1, **QUIET)
    # The last is wrong undisturbed.
    assert survived.dtype == bool
    assert survived.tolist() == [False, True, True, False, False]
    # In l2 a perturbation of length r moves the mean of 64 pixels by r / 8.
    assert attack(Linear(), images, [1, 1, 0, 0, 0], eps=0.9, norm="l2", **QUIET).tolist() == survived.tolist()


def test_the_values_are_those_of_the_measure():
    images, labels = made_images()
    settings = Adversarial(eps=0.05)
    seeds = seeds_of_samples(0, "adversarial", np.arange(len(images)))
    columns = KIND.load()(
        from_network(small_network()), images, labels.astype(np.int64), settings=settings, seeds=seeds
    )
    survived = attack(small_network(), images, labels, eps=0.05, progress=False)
    np.testing.assert_array_equal(survived, columns["value"] == 1)
    assert 0 < survived.sum() < (columns["attack"] != "clean").sum()


def test_a_function_arrays_bytes_and_other_batches_give_the_same():
    images, labels = made_images()
    images = np.round(images * 255) / np.float32(255)
    network = small_network().eval()
    survived = attack(network, torch.from_numpy(images), torch.from_numpy(labels), eps=0.05, **QUIET)
    same = attack(network.forward, np.round(images * 255).astype(np.uint8), labels, eps=0.05, batch_size=7, **QUIET)
    np.testing.assert_array_equal(same, survived)


def test_the_model_is_left_as_it_was():
    images, labels = made_images()
    network = small_network().train()
    network[1].eval()
    network[4].bias.requires_grad_(False)
    network(torch.from_numpy(images)).sum().backward()
    gradient = network[1].weight.grad.clone()
    before = torch.get_num_threads(), torch.is_grad_enabled()
    with torch.no_grad():
        attack(network, images, labels, eps=0.05, **QUIET)
    assert [module.training for module in network] == [True, False, True, True, True]
    assert not network[4].bias.requires_grad and network[4].weight.requires_grad
    assert torch.equal(network[1].weight.grad, gradient)
    assert before == (torch.get_num_threads(), torch.is_grad_enabled())


def test_a_model_outside_torch_is_attacked_without_gradients():
    images = images_of_means(0.52, 0.8)
    network = Linear()

    def outside(x):
        return network(x).detach().numpy()

    square = attack(outside, images, [1, 1], eps=0.1, attacks="square", progress=False)
    assert square.tolist() == [False, True]
    with pytest.raises(InputError, match="no gradient"):
        attack(outside, images, [1, 1], eps=0.1, **QUIET)


def test_progress_goes_to_stderr_and_can_be_left_out(capsys):
    images, labels = made_images(10)
    attack(small_network(), images, labels, attacks=FAST)
    told = capsys.readouterr()
    assert told.out == "" and "10 of 10" in told.err
    attack(small_network(), images, labels, **QUIET)
    assert capsys.readouterr().err == ""


def test_from_a_module_to_a_verdict():
    images = images_of_means(*np.linspace(0.05, 0.95, 400))
    labels = (np.linspace(0.05, 0.95, 400) > 0.5).astype(int)
    audit = audit_values(attack(Linear(), images, labels, eps=0.09, **QUIET), labels, value_range=(0, 1))
    # Of means spread evenly over .45 on either side, those nearer than .09 to .5 fall: a fifth.
    assert audit.classes["value"].tolist() == pytest.approx([0.8, 0.8], abs=0.01)
    assert audit.judge(0.7).verdict == "PASS"
    assert audit.judge(0.9).verdict == "FAIL"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"images": np.zeros((40, 8, 8))}, r"images have shape \(40, 8, 8\)"),
        ({"images": np.zeros((0, 1, 8, 8))}, r"images have shape \(0, 1, 8, 8\)"),
        ({"images": np.full((40, 1, 8, 8), 2.0)}, "pixels run from 2 to 2"),
        ({"images": np.full((40, 1, 8, 8), np.nan)}, "pixels run from nan"),
        ({"images": np.zeros((40, 1, 8, 8), int)}, "images have dtype int64"),
        ({"images": np.zeros((39, 1, 8, 8))}, "39 images for 40 labels"),
        ({"labels": np.full(40, 3)}, r"row 0 has label 3, outside 0\.\.2"),
        ({"eps": "8/25x"}, "eps: .*got '8/25x'"),
        ({"eps": 2.0}, "exceeds the pixel range"),
        ({"norm": "l1"}, "norm: .*got 'l1'"),
        ({"attacks": ["pdg"]}, "did you mean 'pgd'"),
        ({"attacks": [{"name": "pgd", "stps": 3}]}, "attack 'pgd': stps"),
        ({"attacks": [{"steps": 3}]}, "has no name"),
        ({"attacks": []}, "attacks: "),
        ({"attacks": ["apgd-targeted"]}, "needs at least 4 classes"),
        ({"batch_size": 0}, "batch_size must be at least 1"),
        ({"model": lambda x: (x, x)}, "returns a tuple"),
        ({"model": lambda x: x.mean(dim=(1, 2, 3))}, r"returns shape \(1,\) for 1 image"),
        ({"model": lambda x: x.mean(dim=(2, 3)).expand(-1, 3) * torch.nan}, "NaN or infinite logits"),
    ],
)
def test_bad_input_is_one_line_that_says_what_is_wrong(change, message):
    images, labels = made_images()
    arguments = {"model": small_network(), "images": images, "labels": labels, "eps": 0.05, **QUIET} | change
    with pytest.raises(InputError, match=message) as error:
        attack(**arguments)
    assert "\n" not in str(error.value)


def called_in_training_mode(layer):
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(1, 3, 3), layer, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()).train()
    return lambda images: 100 * network(images)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (called_in_training_mode(nn.BatchNorm2d(3)), "depend on the other images"),
        (called_in_training_mode(nn.Dropout(0.5)), "between a batch and the image alone|from run to run"),
        (lambda images: images.sub_(0.5).flatten(1)[:, :3], "modifies its input images in place"),
    ],
)
def test_a_model_that_gives_an_image_several_logits_is_refused(model, message):
    images, labels = made_images()
    with pytest.raises(InputError, match=message):
        attack(model, images, labels, **QUIET)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_device_that_is_not_there_is_named():
    images, labels = made_images()
    with pytest.raises(InputError, match=r"device 'cuda:0': .* finds no CUDA device"):
        attack(small_network(), images, labels, device="cuda:0", **QUIET)
