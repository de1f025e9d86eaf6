"""Training recipes, networks of timm, images that are read from files, and trainings that were interrupted."""

import math
import random

import numpy as np
import pytest
import torch
from PIL import Image
from pydantic import ValidationError
from torch import nn

from gfscore.core.errors import InputError
from gfscore.images.datasets import load_all, open_images
from gfscore.networks.architectures import build_network
from gfscore.networks.compatibility import import_torchvision
from gfscore.networks.trained import TrainingProgress, load_network, save_classifier
from gfscore.networks.training_settings import Augmentation, Recipe
from gfscore.training import loop
from gfscore.training.loop import ImagesOnDisk, selected_batches, training_images, training_settings
from gfscore.training.recipe import Trainer, augmentation, cosine_with_warmup, seeded
from helpers.configurations import shipped_configuration
from studies.reference import projection_tables

CONFIG = shipped_configuration()
ENTRIES = CONFIG["models"]["celeba"]["none"]
RECIPE = ENTRIES["ResNet_18"]["training"]["recipe"]
STILL = {"scale": [1, 1], "ratio": [1, 1], "flip": 0, "colour_jitter": 0}
PLAIN = {
    "method": "ERM",
    "architecture": "small_convnet",
    "arguments": {"width": 4, "pool": 2},
    "epochs": 3,
    "batch_size": 8,
    "learning_rate": 0.01,
    "weight_decay": 0.05,
    "seed": 1,
    "device": "cpu",
}
OF_TIMM = {**PLAIN, "architecture": "timm/test_efficientnet", "arguments": {"drop_path_rate": 0.3}, "recipe": RECIPE}
OF_TIMM["recipe"] = RECIPE | {"warmup_epochs": 1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of 24 images of 32x32 in two classes, one bright and one dark."""
    root, rng = tmp_path_factory.mktemp("images"), np.random.default_rng(0)
    for name, low in (("bright", 120), ("dark", 0)):
        (root / name).mkdir()
        for index in range(12):
            pixels = rng.integers(low, low + 120, (32, 32, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(root / name / f"{index:02d}.png")
    return root


@pytest.fixture(scope="module")
def images(folder):
    settings = {"source": "image_folder", "folders": None, "list": None, "preprocessing": {"method": "none"}}
    return open_images(settings, folder, classes=["bright", "dark"])


def train_classifier(images, labels, *, progress=None, **settings):
    return loop.train_classifier(images, labels, training_settings(settings), classes=2, progress=progress)


def augmented(images, **changes):
    return augmentation(Augmentation.model_validate(STILL | changes))(images)


def same(first, second):
    values = zip(first.state_dict().values(), second.state_dict().values(), strict=True)
    return all(torch.equal(one, other) for one, other in values)


def test_the_learning_rate_rises_in_a_line_and_falls_by_half_a_cosine():
    factor = cosine_with_warmup(14, warmup=4)
    assert [factor(step) for step in range(5)] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1])
    assert factor(9) == pytest.approx(0.5)
    assert factor(13) == pytest.approx((1 + math.cos(0.9 * math.pi)) / 2)
    assert factor(14) == pytest.approx(0)
    assert cosine_with_warmup(4, warmup=0)(0) == 1
    with pytest.raises(InputError, match="a warm-up of 8 of 8 steps leaves none"):
        cosine_with_warmup(8, warmup=8)


def trainer(network, objective, **recipe):
    rates = {"learning_rate": 0.1, "weight_decay": 0, "steps": 5, "epochs": 2}
    return Trainer(network, objective, **rates, device="cpu", recipe=Recipe(**recipe))


@pytest.mark.parametrize(("epochs", "batch_size"), [(1, 5), (5, 24)])
def test_a_training_may_have_five_steps(images, epochs, batch_size):
    pixels, labels = load_all(images)
    network = train_classifier(pixels, labels, **PLAIN | {"epochs": epochs, "batch_size": batch_size})
    assert all(value.isfinite().all() for value in network.state_dict().values())


def test_a_training_that_diverges_stops(images):
    with pytest.raises(InputError, match="the training diverged in epoch 1: its loss became nan; lower learning_rate"):
        train_classifier(*load_all(images), **PLAIN | {"learning_rate": 1e18})


def test_a_training_that_diverges_names_the_epoch():
    network = build_network("small_convnet", in_channels=3, image_size=(32, 32), classes=2, seed=0, width=4, pool=2)
    training = trainer(network, lambda network, x, y: network(x).mean())
    for _ in range(5):
        training.step(torch.zeros(2, 3, 32, 32), torch.zeros(2))
    with pytest.raises(InputError, match="diverged in epoch 2: its loss became nan"):
        training.step(torch.full((2, 3, 32, 32), torch.nan), torch.zeros(2))


@pytest.mark.parametrize(("clip", "expected"), [(None, 30.0), (1.5, 1.5), (100.0, 30.0)])
def test_gradients_longer_than_the_norm_are_shortened_to_it(clip, expected):
    network = nn.Linear(2, 2, bias=False)
    made = trainer(network, lambda network, x, y: 15 * network.weight.sum(), clip_norm=clip)
    made.step(torch.zeros(1, 3, 8, 8), torch.zeros(1))
    assert network.weight.grad.norm().item() == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(("mixed", "dtype"), [(True, torch.bfloat16), (False, torch.float32)])
def test_mixed_precision_computes_in_sixteen_bits_and_keeps_weights_in_thirty_two(mixed, dtype):
    network, seen = nn.Sequential(nn.Flatten(), nn.Linear(192, 2)), []

    def objective(network, x, y):
        seen.append(network(x).dtype)
        return network(x).float().square().sum()

    trainer(network, objective, mixed_precision=mixed).step(torch.rand(4, 3, 8, 8), torch.zeros(4))
    assert seen == [dtype]
    assert network[1].weight.dtype == torch.float32


def test_augmentation_without_limits_changes_nothing_and_mirrors_exactly():
    x = torch.rand(4, 3, 16, 16)
    torch.testing.assert_close(augmented(x), x)
    torch.testing.assert_close(augmented(x, flip=1), x.flip(3))
    assert augmentation(None)(x) is x


def test_augmentation_crops_and_changes_colours_image_by_image_within_its_limits():
    ramp = torch.linspace(0, 1, 64).expand(200, 3, 64, 64)
    with seeded(0):
        cropped = augmented(ramp, scale=[0.25, 0.25])
        coloured = augmented(torch.full((200, 3, 8, 8), 0.5), colour_jitter=0.2)
    # A quarter of the area is half of the width: the ramp across it spans about .5, from anywhere.
    span = cropped[:, 0, 32, -1] - cropped[:, 0, 32, 0]
    assert cropped.shape == ramp.shape
    assert span.min() > 0.45
    assert span.max() < 0.55
    assert cropped[:, 0, 32, 0].std() > 0.1
    # Of a plain grey image, only a changed brightness shows.
    assert 0.4 - 1e-6 <= coloured.min() < 0.42
    assert 0.58 < coloured.max() <= 0.6 + 1e-6


def test_a_crop_in_percent_is_refused():
    """A crop that is larger than the image is the image as it is."""
    with pytest.raises(ValidationError, match="scale"):
        Augmentation.model_validate(STILL | {"scale": [8, 100]})


def test_seeded_draws_leave_the_generators_as_they_were():
    torch.manual_seed(3)
    random.seed(3)
    expected = torch.rand(1), random.random()
    torch.manual_seed(3)
    random.seed(3)
    drawn = []
    for epoch in (0, 0, 1):
        with seeded(5, epoch):
            drawn.append((torch.rand(1).item(), random.random()))
    assert drawn[0] == drawn[1] != drawn[2]
    assert (torch.rand(1), random.random()) == expected


def test_large_sets_are_read_from_their_files_in_any_order(images, monkeypatch):
    x, _ = load_all(images)
    assert isinstance(training_images(images), np.ndarray)
    monkeypatch.setattr(loop, "IN_MEMORY_BYTES", x.nbytes - 1)
    read = training_images(images)
    assert isinstance(read, ImagesOnDisk)
    assert read.shape == x.shape
    batches = [np.array([5, 1, 20]), np.array([23]), np.array([2, 0]), np.arange(24)[::-1]]
    for rows, batch in zip(batches, selected_batches(read, batches), strict=True):
        np.testing.assert_array_equal(batch, x[rows])


def test_a_missing_file_stops_the_reader_by_name(images, folder, tmp_path, monkeypatch):
    import shutil

    copied = shutil.copytree(folder, tmp_path / "copy")
    settings = {"source": "image_folder", "folders": None, "list": None, "preprocessing": {"method": "none"}}
    copy = open_images(settings, copied, classes=["bright", "dark"])
    (copied / "dark" / "03.png").unlink()
    with pytest.raises(InputError, match=r"dark/03\.png: cannot be read"):
        list(selected_batches(ImagesOnDisk(copy), [np.arange(8), np.arange(8, 24)]))


@pytest.mark.parametrize("settings", [PLAIN, OF_TIMM], ids=["one cycle", "recipe"])
def test_reading_from_files_gives_the_same_weights(images, settings):
    held = train_classifier(load_all(images)[0], images.labels, **settings)
    assert same(held, train_classifier(ImagesOnDisk(images), images.labels, **settings))


class KilledError(Exception):
    """Stands for a signal that ends the process."""


ROBUST = {"method": "WORST_CLASS", "threat": {"norm": "linf", "eps": 0.05, "step_size": 0.02, "steps": 2}}
INTERRUPTED = {
    "one cycle": PLAIN,
    "recipe, batch statistics, drop-path": OF_TIMM,
    "method with a memory": {**PLAIN, **ROBUST, "coefficients": {"rate": 0.5, "floor": 0.1}},
}


@pytest.mark.parametrize("name", INTERRUPTED)
@pytest.mark.parametrize("step", [4, 8])
def test_an_interrupted_training_ends_in_the_same_weights(images, tmp_path, monkeypatch, name, step):
    settings, x = INTERRUPTED[name], load_all(images)[0]
    whole = train_classifier(x, images.labels, **settings)
    path, take, taken = tmp_path / "epoch.pt", Trainer.step, []

    def counted(trainer, *batch):
        taken.append(1)
        if len(taken) == step:
            raise KilledError
        take(trainer, *batch)

    def again():
        progress = TrainingProgress(path, [name], every_s=0)
        return train_classifier(x, images.labels, progress=progress, **settings)

    monkeypatch.setattr(Trainer, "step", counted)
    with pytest.raises(KilledError):
        again()
    assert same(again(), whole)
    # Three batches an epoch: those of finished epochs are not taken again.
    assert len(taken) == step + 9 - 3 * ((step - 1) // 3)


def test_what_was_kept_is_used_only_for_the_same_training_and_whole(images, tmp_path, capsys):
    x, path = load_all(images)[0], tmp_path / "epoch.pt"
    whole = train_classifier(x, images.labels, **PLAIN)

    def again(identity):
        progress = TrainingProgress(path, identity, every_s=0)
        assert same(train_classifier(x, images.labels, progress=progress, **PLAIN), whole)
        return capsys.readouterr().out

    assert "kept from an earlier" not in again({"seed": 1})
    assert "resuming after 3 epochs" in again({"seed": 1})
    assert "belongs to other images, settings or another version" in again({"seed": 2})
    for content in (b"", b"nonsense", path.read_bytes()[:500]):
        path.write_bytes(content)
        assert "not used, since it is damaged" in again({"seed": 2})


def test_finished_epochs_are_not_written_more_often_than_asked(images, tmp_path):
    path = tmp_path / "epoch.pt"
    train_classifier(load_all(images)[0], images.labels, progress=TrainingProgress(path, 1, every_s=3600), **PLAIN)
    assert not path.exists()


def test_a_network_of_timm_is_trained_stored_and_read_again(images, tmp_path):
    network = train_classifier(load_all(images)[0], images.labels, **{**OF_TIMM, "recipe": None, "epochs": 8})
    save_classifier(tmp_path / "m.safetensors", network, metadata={})
    loaded = load_network(tmp_path / "m.safetensors")
    x = torch.from_numpy(load_all(images)[0])
    assert torch.equal(loaded(x), network(x))
    assert loaded.recipe["architecture"] == "timm/test_efficientnet"
    assert (network(x).argmax(1).numpy() == images.labels).mean() > 0.9


def test_a_network_of_timm_sees_pixels_around_zero_and_follows_its_seed():
    shape = {"in_channels": 3, "image_size": (32, 32), "classes": 2}
    first, second, other = (build_network("timm/test_efficientnet", seed=seed, **shape).eval() for seed in (1, 1, 2))
    assert same(first, second)
    assert not same(first, other)
    x = torch.rand(2, 3, 32, 32)
    assert torch.equal(first(x), first[1](2 * x - 1))


def test_unknown_networks_and_arguments_of_timm_are_named():
    shape = {"in_channels": 3, "image_size": (32, 32), "classes": 2}
    with pytest.raises(InputError, match=r"no architecture 'resnet19'; did you mean 'resnet\d+"):
        build_network("timm/resnet19", **shape)
    with pytest.raises(InputError, match=r"timm's vgg11_bn cannot be built .*drop_path_rate"):
        build_network("timm/vgg11_bn", drop_path_rate=0.1, **shape)
    with pytest.raises(InputError, match="argument 'pretrained' follows from the data"):
        build_network("timm/test_efficientnet", pretrained=True, **shape)


def test_the_audit_has_the_networks_of_the_paper_by_its_names():
    import_torchvision()
    import timm

    table = projection_tables()
    kinds = table["architecture"].to_dict()
    assert {name.replace("_", "-") for name in ENTRIES} == set(kinds)
    assert sorted(kinds.values()).count("cnn") == 14
    assert len(kinds) == 24
    names = [entry["training"]["architecture"].removeprefix("timm/") for entry in ENTRIES.values()]
    assert len(set(names)) == 24
    assert all(timm.is_model(name) for name in names)
    for name, entry in ENTRIES.items():
        dropped = 0.0 if name.startswith(("VGG", "DenseNet")) else 0.1
        assert entry["training"]["arguments"].get("drop_path_rate", 0.0) == dropped
        assert entry["training"]["recipe"] == RECIPE


@pytest.mark.parametrize("name", ["ResNet_18", "MobileNet_V3", "DeiT_T", "Mixer_S"])
def test_shipped_entries_take_a_step_on_images_of_their_size(name):
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(2, 3, 224, 224)).astype(np.float32)
    chosen = {"device": "cpu", "epochs": 1, "batch_size": 2}
    chosen["recipe"] = RECIPE | {"warmup_epochs": 0}
    training = ENTRIES[name]["training"]
    network = train_classifier(x, np.array([0, 1]), **{**training, **chosen})
    before = build_network(training["architecture"], in_channels=3, image_size=(224, 224), classes=2, seed=1)
    assert all(torch.isfinite(value).all() for value in network.state_dict().values())
    assert not same(network, before)
