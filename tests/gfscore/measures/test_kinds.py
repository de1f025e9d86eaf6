"""What every kind of measure promises, whichever there are."""

import importlib.util
import math
from copy import deepcopy
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from pydantic import ValidationError
from torch import nn

from gfscore.core.errors import InputError
from gfscore.measures import KINDS, complete, measure_of, named_measures
from gfscore.measures.samples import table_of
from gfscore.networks.adjusted import with_offsets
from gfscore.networks.classifier import Classifier, from_network
from gfscore.statistics.draws import seeds_of_samples
from helpers.networks import broken, predicted
from helpers.samples import seeds_of

ROOT = Path(__file__).parents[3]
SHAPE, CLASSES, SAMPLES = (3, 32, 32), 10, 3
BY_THE_HOUSE = {"sample_id", "label", "clean_prediction"}
OF_NETWORKS = [name for name, kind in KINDS.items() if kind.needs == "network"]


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(SHAPE), CLASSES)).eval()


@pytest.fixture(scope="module")
def images():
    return np.random.default_rng(0).uniform(0.2, 0.8, (SAMPLES, *SHAPE)).astype(np.float32)


@pytest.fixture(scope="module")
def labels(network, images):
    right = network(torch.from_numpy(images)).argmax(1).numpy()
    return np.array([*right[:-1], (right[-1] + 1) % CLASSES])


def measured(name, classifier, images, labels, seed=0):
    kind = KINDS[name]
    settings = kind.parse({"kind": name})
    if kind.needs == "logits":
        return kind.load()(classifier.logits(images), labels, settings=settings)
    if kind.needs == "measures":
        members = [pd.DataFrame(measured(member, classifier, images, labels, seed)) for member in members_by_kind(name)]
        return kind.load()(members, settings=settings, sources=["file"] * len(members))
    return kind.load()(classifier, images, labels, settings=settings, seeds=seeds_of(images, seed))


def members_by_kind(name):
    """Kinds of the members of a derived measure, where an audit measures by every kind in its ball."""
    kind = KINDS[name]
    ball = {key: getattr(kind.parse({"kind": name}), key) for key in kind.named_by}
    entries = {}
    for other, declared in KINDS.items():
        entries[other] = {"kind": other}
        if declared.named_by == kind.named_by:
            entries[other] |= ball
    measures = named_measures(entries)
    return [member.kind.name for member in measures[name].members(measures)]


@pytest.mark.parametrize("name", KINDS)
def test_offsets_count_as_the_bias_of_the_last_layer(name, network, images, labels):
    offsets = np.random.default_rng(5).normal(scale=0.1, size=CLASSES)
    biased = deepcopy(network)
    with torch.no_grad():
        biased[1].bias += torch.from_numpy(offsets)
    expected = measured(name, from_network(biased), images, labels)["value"]
    values = measured(name, with_offsets(from_network(network), offsets), images, labels)["value"]
    assert np.asarray(values, dtype=float) == pytest.approx(np.asarray(expected, dtype=float), abs=1e-3)


def test_each_kind_is_named_as_its_file_and_imports_no_other():
    folder = ROOT / "workflow_scripts/gfscore/measures"
    for name, kind in KINDS.items():
        assert kind.name == name == kind.settings.model_fields["kind"].default
        files = [folder / f"{name}.py"] if (folder / f"{name}.py").is_file() else [*(folder / name).glob("*.py")]
        text = "".join(path.read_text() for path in files)
        assert not [other for other in KINDS if other != name and f"gfscore.measures.{other}" in text], name


@pytest.mark.parametrize("name", KINDS)
def test_settings_have_defaults_are_closed_and_complete_to_themselves(name):
    kind, entry = KINDS[name], complete({"kind": name})
    assert complete(entry) == entry
    assert not list(kind.mistakes(kind.parse(entry), classes=CLASSES, thorough=True))
    with pytest.raises(ValidationError, match="extra_forbidden"):
        kind.parse(entry | {"zzz": 1})
    with pytest.raises(ValidationError):
        kind.parse({"kind": "zzz"})


def test_named_measures_hold_parsed_settings_in_the_order_of_the_entries():
    entries = {"attacked": {"kind": "adversarial", "eps": "8/255"}, "right": {"kind": "clean"}}
    measures = named_measures(entries)
    assert list(measures) == ["attacked", "right"]
    attacked, right = measures.values()
    assert (attacked.name, attacked.kind, attacked.settings.eps) == ("attacked", KINDS["adversarial"], 8 / 255)
    assert attacked.entry() == complete(entries["attacked"]) and attacked.description == measure_of(entries["attacked"])
    assert not attacked.from_logits and right.from_logits
    assert attacked.subset is None and right.subset is None
    with pytest.raises(InputError, match="kind"):
        named_measures({"wrong": {"kind": "zzz"}})


@pytest.mark.parametrize("name", KINDS)
def test_it_says_what_a_value_means(name):
    measure, kind = measure_of({"kind": name}), KINDS[name]
    low, high = measure.value_range
    assert -math.inf < low < high < math.inf
    assert 0 <= measure.error_rate < 0.5
    assert all((measure.title, measure.unit, measure.explanation, kind.value, kind.passes))
    assert min(kind.version, kind.table_version, kind.mem_mb, kind.runtime) > 0


@pytest.mark.parametrize("name", KINDS)
def test_it_fills_its_table_within_its_range_and_alike_every_time(name, network, images, labels):
    classifier, measure = from_network(network), measure_of({"kind": name})
    columns = measured(name, classifier, images, labels)
    rows = columns.get("row", np.arange(SAMPLES))
    asked = set(table_of(name).column_names) - BY_THE_HOUSE
    assert set(columns) - {"row", *(column.name for column in KINDS[name].evidence)} == asked
    assert set(rows) == set(range(SAMPLES)) and (len(rows) > SAMPLES) == measure.several_copies
    low, high = measure.value_range
    assert ((columns["value"] >= low) & (columns["value"] <= high)).all()
    if measure.binary:
        assert set(columns["value"]) <= {low, high}
    again = measured(name, classifier, images, labels)
    for column, values in columns.items():
        np.testing.assert_array_equal(again[column], values, err_msg=column)


@pytest.mark.parametrize("name", OF_NETWORKS)
def test_a_network_without_gradients_serves_those_that_need_none(name, network, images, labels):
    @torch.no_grad()
    def run(given):
        return network(torch.from_numpy(given)).numpy()

    onnx = Classifier("onnx", SHAPE, CLASSES, None, run=run)
    if not KINDS[name].gradients(KINDS[name].parse({"kind": name})):
        assert len(measured(name, onnx, images, labels)["value"])
        return
    with pytest.raises(InputError, match="onnx has none"):
        measured(name, onnx, images, labels)


@pytest.mark.parametrize("name", OF_NETWORKS)
def test_logits_that_are_no_numbers_are_refused(name, network, images):
    with pytest.raises(InputError, match="NaN or infinite"):
        measured(name, from_network(broken(network, images, beyond=1e-3)), images, predicted(network, images))


def test_the_page_holds_what_is_declared():
    specification = importlib.util.spec_from_file_location("page", ROOT / "tools/write_measures_page.py")
    tool = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(tool)
    text = tool.PAGE.read_text(encoding="utf-8")
    assert text == tool.page(text), "run tools/write_measures_page.py"


def test_distances_may_be_fractions_of_white():
    assert complete({"kind": "adversarial", "eps": "8/255"})["eps"] == 8 / 255
    assert complete({"kind": "minimal", "largest_distance": "1.5 / 2"})["largest_distance"] == 0.75
    for wrong in ("8/0", "0/255", "8/255/2", "x", -0.1, True):
        with pytest.raises(ValidationError):
            complete({"kind": "adversarial", "eps": wrong})


def test_radii_are_computed_here_or_elsewhere():
    assert complete({"kind": "certified"})["smoothing"]["sigma"] == 0.25
    assert "smoothing" not in complete({"kind": "certified", "largest_radius": 4.0})
    with pytest.raises(ValidationError, match="give one"):
        complete({"kind": "certified", "largest_radius": 4.0, "smoothing": {}})


DRAWING = {
    "targeted": {"steps": 1, "step_size": 0.001},
    "proven": {"eps": 0.1, "attacks": [{"name": "pgd", "steps": 1, "step_size": 0.0001}]},
}
"""Settings by which a random start decides how far an attack ends."""


class Pixels(nn.Module):
    """Logits that are pixels: no sums, whose rounding depends on the size of a batch."""

    def forward(self, x):
        return 5 * x[:, 0, 0, :CLASSES]


@pytest.mark.parametrize("name", OF_NETWORKS)
def test_a_sample_has_one_value_in_every_batch_and_another_by_another_seed_where_it_is_drawn(name):
    rng = np.random.default_rng(5)
    images = rng.uniform(0.3, 0.6, (8, *SHAPE)).astype(np.float32)
    labels = images[:, 0, 0, :CLASSES].argmax(1)
    images[np.arange(8), 0, 0, labels] += rng.uniform(0, 0.15, 8).astype(np.float32)
    kind = KINDS[name]
    settings = kind.parse({"kind": name} | DRAWING.get(name, {}))
    run = partial(kind.load(), from_network(Pixels()), settings=settings)
    seeds = seeds_of_samples(0, name, range(8))
    whole = run(images, labels, seeds=seeds)
    of_row = whole.get("row", np.arange(8))
    for rows in ([6], [7, 1, 4], [0, 1, 2, 3, 4]):
        part = run(images[rows], labels[rows], seeds=seeds[rows])
        for place, row in enumerate(rows):
            own = part.get("row", np.arange(len(rows))) == place
            for column in part.keys() - {"row"}:
                np.testing.assert_array_equal(part[column][own], whole[column][of_row == row], err_msg=column)
    other = run(images, labels, seeds=seeds_of_samples(1, name, range(8)))
    differs = any((other[column] != whole[column]).any() for column in whole)
    assert differs == kind.random_draws, f"{name}: random_draws of its declaration says otherwise"
