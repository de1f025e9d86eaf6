"""What every registered attack must do, whoever adds it."""

import math
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import torch
from pydantic import ValidationError

import gfscore.attacks
from gfscore.attacks.registry import ATTACKS, BALL_ATTACKS, MINIMAL_ATTACKS, expand, modules_of, parse_attack
from gfscore.core.errors import InputError
from helpers.networks import curved, detached
from helpers.samples import draws_of

SHAPE, CLASSES, SAMPLES = (3, 6, 6), 5, 12
EPS = {"linf": 0.2, "l2": 1.5}
FORMS = [(name, known) for known in (BALL_ATTACKS, MINIMAL_ATTACKS) for name in known]
COMPUTED = [(name, known, norm) for name, known in FORMS for norm in ATTACKS[name].norms if known[name].members is None]
every_form = pytest.mark.parametrize(("name", "known"), FORMS)
every_search = pytest.mark.parametrize(("name", "known", "norm"), COMPUTED)


@pytest.fixture(scope="module")
def network():
    return curved(CLASSES, math.prod(SHAPE), width=40, seed=1)


@pytest.fixture(scope="module")
def images():
    """Saturated pixels, at which every search meets the end of the range."""
    return torch.from_numpy(np.random.default_rng(0).integers(0, 2, (SAMPLES, *SHAPE)).astype(np.float32))


def complete(entry, known):
    return parse_attack(entry, known).model_dump()


def found(name, known, norm, given):
    """Points and passes of an attack, in a few steps, on images that are classified correctly."""
    network, images = given
    labels = network(images).argmax(1)
    options = complete({"name": name}, known)
    del options["name"]
    for key, value in options.items():
        if type(value) is int:
            options[key] = min(value, 10)
    if "targets" in options:
        options["targets"] = CLASSES - 1
    if known is BALL_ATTACKS:
        options |= {"ball": {"norm": norm, "eps": EPS[norm]}, "draws": draws_of(images)}
    else:
        options |= {"norm": norm, "largest_distance": 2 * EPS[norm]}
    points, passes = known[name].load()(network, images, labels, **options)
    return points.detach(), passes


def test_each_is_named_as_its_file():
    folder = Path(gfscore.attacks.__file__).parent
    for name, attack in ATTACKS.items():
        assert attack.name == name and (folder / f"{attack.module.rsplit('.', 1)[1]}.py").is_file()
        assert attack.in_ball or attack.nearest
        assert not attack.with_fewer or ATTACKS[attack.with_fewer].fewest_classes < attack.fewest_classes


@every_form
def test_settings_have_defaults_and_are_closed(name, known):
    entry = complete({"name": name}, known)
    assert complete(entry, known) == entry and known[name].settings.__doc__
    with pytest.raises(ValidationError, match="extra_forbidden"):
        known[name].settings.model_validate(entry | {"zzz": 1})
    with pytest.raises(InputError, match="zzz: Extra inputs are not permitted"):
        complete(entry | {"zzz": 1}, known)


@every_form
def test_it_names_a_function_or_attacks_that_search_alike(name, known):
    settings = known[name].settings.model_validate({"name": name})
    members = known[name].members
    assert bool(known[name].function) != bool(members)
    for member in members(settings) if members else ():
        assert known[member["name"]].function
    assert ATTACKS[name].module in modules_of([settings], known)


@pytest.mark.parametrize("name", BALL_ATTACKS)
def test_a_list_holds_what_there_are_classes_for(name):
    for classes in range(2, 12):
        try:
            entries = expand([parse_attack({"name": name}, BALL_ATTACKS)], classes)
        except InputError:
            assert classes < ATTACKS[name].fewest_classes
            continue
        assert all(ATTACKS[entry["name"]].fewest_classes <= classes for entry in entries)
        assert all(entry.get("targets", 1) < classes for entry in entries)


@every_search
def test_points_stay_in_ball_and_box_are_the_same_every_time_and_leave_no_trace(name, known, norm, network, images):
    before = torch.get_rng_state()
    points, passes = found(name, known, norm, (network, images))
    assert points.shape == images.shape and (points != images).any()
    assert passes.shape == (SAMPLES,) and passes.dtype == torch.int64 and (passes > 0).all()
    assert points.min() >= 0 and points.max() <= 1
    if known is BALL_ATTACKS:
        order = math.inf if norm == "linf" else 2
        assert (points - images).flatten(1).norm(p=order, dim=1).max() <= EPS[norm] * 1.0001
    again, spent = found(name, known, norm, (network, images))
    assert torch.equal(points, again) and torch.equal(passes, spent)
    assert torch.equal(torch.get_rng_state(), before) and not network.training
    assert all(parameter.requires_grad and parameter.grad is None for parameter in network.parameters())


@every_search
def test_every_layer_keeps_its_mode(name, known, norm, images):
    layers = curved(CLASSES, math.prod(SHAPE), width=40, seed=1).train()
    layers[1].eval()
    modes = [module.training for module in layers.modules()]
    found(name, known, norm, (layers, images))
    assert [module.training for module in layers.modules()] == modes


@every_search
def test_it_needs_gradients_as_declared(name, known, norm, network, images):
    with pytest.raises(InputError, match="no gradient") if ATTACKS[name].gradients else nullcontext():
        found(name, known, norm, (detached(network), images))
