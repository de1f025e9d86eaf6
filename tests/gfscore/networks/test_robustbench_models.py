import importlib.util
import random
import re
import socket
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
import torch

from gfscore.core.errors import InputError
from gfscore.networks import leaderboard, robustbench_models
from gfscore.networks.checkpoint_files import describe_checkpoint
from gfscore.networks.classifier import open_classifier
from gfscore.networks.compatibility import import_robustbench

pytestmark = pytest.mark.seconds(25)

ROOT = Path(__file__).resolve().parents[3]
TOOL = ROOT / "studies/survey_robustbench.py"

SMALL = [
    ("cifar10", "Linf", "Wong2020Fast"),
    ("cifar10", "L2", "Ding2020MMA"),
    ("cifar10", "L2", "Sehwag2021Proxy_R18"),
    ("cifar10", "Linf", "Andriushchenko2020Understanding"),
]
MMA = SMALL[1]


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture(scope="module")
def tool():
    """The survey, whose knowledge of the published forms of checkpoints the tests share."""
    specification = importlib.util.spec_from_file_location("survey_robustbench", TOOL)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def named(key):
    return dict(zip(("dataset", "threat", "model"), key, strict=True))


def weights_of(key, seed=0):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return dict(robustbench_models.define(**named(key)).state_dict())


def save(folder, key, content):
    path = leaderboard.checkpoint_files(*key, folder=folder)[0]
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(content, path)
    return path


def open_saved(folder, key, *, image_shape=(3, 32, 32), classes=10, **changes):
    settings = leaderboard.entry(*key, folder=folder) | changes
    path = leaderboard.files_of(settings)[0]["path"]
    return robustbench_models.open_classifier(settings, path, image_shape=image_shape, classes=classes, threads=1)


def images(count=3):
    return np.random.default_rng(0).random((count, 3, 32, 32), dtype=np.float32)


@pytest.mark.parametrize("key", SMALL, ids=lambda key: key[2])
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_local_checkpoint_gives_the_logits_of_robustbench_itself(tmp_path, key, wrapped):
    content = weights_of(key)
    if wrapped:
        content = {"state_dict": {f"module.{name}": value for name, value in content.items()}}
    save(tmp_path, key, {"last": content} if "Andriushchenko" in key[2] else content)
    classifier = open_saved(tmp_path, key)
    dataset, threat, model = key
    theirs = import_robustbench().utils.load_model(model, model_dir=tmp_path, dataset=dataset, threat_model=threat)
    with torch.inference_mode():
        expected = theirs(torch.from_numpy(images())).numpy()
    assert classifier.classes == 10
    assert not classifier.network.training
    assert np.isfinite(expected).all()
    np.testing.assert_array_equal(classifier.logits(images()), expected)


def test_a_file_placed_by_hand_goes_from_entry_to_logits(tmp_path):
    save(tmp_path, MMA, weights_of(MMA))
    settings = leaderboard.entry(*MMA, folder=tmp_path)
    manifest = describe_checkpoint(settings, identity=named(MMA))
    assert manifest["architecture"] == "WideResNet-28-4"
    classifier = open_classifier(manifest, image_shape=(3, 32, 32), classes=10)
    np.testing.assert_array_equal(classifier.logits(images()), open_saved(tmp_path, MMA).logits(images()))


def test_gradients_reach_the_images(tmp_path):
    save(tmp_path, MMA, weights_of(MMA))
    pixels = torch.from_numpy(images(1)).requires_grad_()
    open_saved(tmp_path, MMA).network(pixels).sum().backward()
    assert pixels.grad.abs().sum() > 0


def test_a_checkpoint_with_the_options_of_its_training_is_read_without_unpickling_them(tmp_path):
    content = {"state_dict": weights_of(MMA), "args": Namespace(lr=0.1), "best": np.float64(0.5)}
    save(tmp_path, MMA, content)
    assert open_saved(tmp_path, MMA).logits(images()).shape == (3, 10)


def test_what_robustbench_looks_like_afterwards_is_what_it_looked_like_before(tmp_path):
    utils = import_robustbench().utils
    before = dict(vars(utils)), torch.Tensor.cuda
    save(tmp_path, MMA, {"foreign": torch.zeros(1)})
    with pytest.raises(InputError):
        open_saved(tmp_path, MMA)
    assert (dict(vars(utils)), torch.Tensor.cuda) == before


def test_a_missing_file_is_named_with_the_remedy(tmp_path):
    with pytest.raises(InputError, match=r"cifar10/L2/Ding2020MMA\.pt: missing.*make audit ARGS=inputs.*by hand"):
        open_saved(tmp_path, MMA)
    assert not list(tmp_path.iterdir())


def renamed(weights):
    first = next(iter(weights))
    return {("other" if name == first else name): value for name, value in weights.items()}


def reshaped(weights):
    first = next(iter(weights))
    return weights | {first: torch.zeros(2, 2)}


def incomplete(weights):
    return dict(list(weights.items())[1:])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (renamed, "1 weights are missing"),
        (incomplete, "1 weights are missing"),
        (reshaped, "size mismatch for .*torch.Size.*delete it to download"),
        (lambda weights: list(weights.values()), ""),
        (lambda weights: {"state_dict": {}}, "weights are missing"),
    ],
)
def test_weights_that_do_not_fit_are_refused_with_file_and_model(tmp_path, damage, message):
    save(tmp_path, MMA, damage(weights_of(MMA)))
    with pytest.raises(InputError, match=rf"Ding2020MMA\.pt: does not fit .*cifar10/L2/Ding2020MMA \(.*{message}"):
        open_saved(tmp_path, MMA)


def test_a_checkpoint_without_its_wrapper_is_refused(tmp_path):
    key = SMALL[3]
    save(tmp_path, key, weights_of(key))
    with pytest.raises(InputError, match=r"does not fit .*last"):
        open_saved(tmp_path, key)


def test_an_imagenet_checkpoint_of_something_else_is_refused_where_robustbench_answers_at_random(tmp_path):
    key = ("imagenet", "Linf", "Salman2020Do_R18")
    save(tmp_path, key, {"something.else": torch.zeros(3)})
    theirs = import_robustbench().utils.load_model(key[2], model_dir=tmp_path, dataset=key[0], threat_model=key[1])
    assert theirs(torch.zeros(1, 3, 64, 64)).shape == (1, 1000)
    with pytest.raises(InputError, match=r"weights are missing"):
        open_saved(tmp_path, key, image_shape=(3, 224, 224), classes=1000)


@pytest.mark.parametrize(
    ("shape", "classes", "message"),
    [
        ((3, 32, 32), 100, "10 classes, but the data declare 100"),
        ((3, 64, 64), 10, r"\(3, 32, 32\), got \(3, 64, 64\)"),
    ],
)
def test_data_of_another_kind_are_refused(tmp_path, shape, classes, message):
    save(tmp_path, MMA, weights_of(MMA))
    with pytest.raises(InputError, match=message):
        open_saved(tmp_path, MMA, image_shape=shape, classes=classes)


def test_files_come_with_their_addresses_and_digests(tmp_path):
    settings = leaderboard.entry("cifar10", "Linf", "Chen2020Adversarial", folder=tmp_path)
    files = leaderboard.files_of(settings)
    assert [file["path"].name for file in files] == [f"Chen2020Adversarial.pt_m{member}.pt" for member in range(3)]
    assert [file["sha256"] for file in files] == [None] * 3
    assert len({file["url"] for file in files}) == 3
    pinned = leaderboard.files_of(settings | {"sha256": ["a", "b", "c"]})
    assert [file["sha256"] for file in pinned] == ["a", "b", "c"]
    with pytest.raises(InputError, match="1 digests for 3 files"):
        leaderboard.files_of(settings | {"sha256": "a"})


def test_the_table_has_the_addresses_and_the_preprocessing_of_the_installed_package(tool):
    defined = tool.definitions()
    listed = {key: row for key, row in rows_of_the_survey().items() if row["status"] == "supported"}
    assert listed.keys() == defined.keys()
    for key, definition in defined.items():
        for name, value in tool.describe(key, definition).items():
            assert listed[key][name] == str(value)


def rows_of_the_survey():
    rows = leaderboard._rows("robustbench_support.csv")
    return {(row["dataset"], row["threat"], row["model"]): row for row in rows}


def sample_of_every_way_to_load():
    draw = random.Random(5)
    # Two gigabytes of weights are the survey's business.
    small = [listing for listing in leaderboard.listings() if listing.supported and not re.match("Bai", listing.model)]
    ways = sorted({one.loading for one in small})
    return [draw.choice([one for one in small if one.loading == way]) for way in ways]


@pytest.mark.parametrize(
    "listing", sample_of_every_way_to_load(), ids=lambda listing: f"{listing.loading}-{listing.model}"
)
def test_a_sample_of_the_survey_is_confirmed(tool, listing):
    key = (listing.dataset, listing.threat, listing.model)
    row = {"loading": listing.loading, "image_side": int(rows_of_the_survey()[key]["image_side"])}
    assert tool.verdict(key, row) == ("supported", "")
