"""The checker accepts certificates of proofs, and refuses those that were changed or claim what is false."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import torch
from torch import nn

from gfscore.core.errors import InputError
from gfscore.proofs.certificates import Certificate, LayerProof
from gfscore.proofs.checking.activations import lines as lines_of
from gfscore.proofs.checking.check import check, margins_at, smallest_margin
from gfscore.proofs.checking.plain_network import PlainNetwork
from gfscore.proofs.checking.trees import Refused
from gfscore.proofs.graph import graph_of
from gfscore.proofs.layers import layered
from gfscore.proofs.proving import prove
from helpers.proofs import Products, cancelling_normalisation, points_in, random_network

pytestmark = pytest.mark.seconds(10)


class Case:
    """A proof with splits of one image of a small convolutional network."""

    def __init__(self):
        torch.manual_seed(0)
        layers = [nn.Conv2d(2, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, 6, 3, padding=1), nn.ReLU(), nn.Flatten()]
        network = nn.Sequential(*layers, nn.Linear(96, 12), nn.ReLU(), nn.Linear(12, 4)).eval()
        graph = graph_of(network, (2, 4, 4))
        self.graph = graph
        self.network = PlainNetwork(graph.plain())
        images = torch.rand(40, 2, 4, 4, generator=torch.Generator().manual_seed(3)).numpy()
        labels = graph.logits(torch.from_numpy(images)).argmax(1).numpy()
        for eps in (0.2, 0.15, 0.1, 0.07, 0.05):
            for image, label in zip(images, labels, strict=True):
                proof = next(
                    iter(prove(layered_of(graph), image[None], label[None], norm="linf", eps=eps, budget=9000))
                )
                if proof.branches >= 8 and proof.proven:
                    self.image, self.proof = image, proof
                    return
        raise AssertionError("no proof of these needs splits")

    @property
    def certificate(self):
        return self.proof.certificate


LAYERED = {}


def layered_of(graph):
    if graph.digest not in LAYERED:
        LAYERED[graph.digest] = layered(graph)
    return LAYERED[graph.digest]


@pytest.fixture(scope="module")
def case():
    return Case()


def test_a_certificate_is_accepted_with_the_bound_of_its_proof(case):
    lower = check(case.certificate, case.certificate.claim, case.network, case.image)
    assert lower >= case.proof.lower - 1e-7
    assert case.proof.lower == case.certificate.lower > 0


def test_a_certificate_survives_storage_and_is_small(case):
    content = case.certificate.to_bytes()
    again = Certificate.from_bytes(content)
    assert again.claim == case.certificate.claim
    assert again.to_bytes() == content
    assert check(again, again.claim, case.network, case.image) > 0
    for damaged in (content[:-9], b"", content[:40] + b"x" + content[41:]):
        with pytest.raises(InputError):
            changed = Certificate.from_bytes(damaged)
            # A change that the format does not notice must not change what is claimed.
            if changed.to_bytes() == content:
                raise InputError("the same")
            check(changed, again.claim, case.network, case.image)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_certificates_of_random_networks_are_accepted(seed, norm):
    network = random_network(seed)
    graph = graph_of(network, (2, 4, 4))
    images = torch.rand(5, 2, 4, 4, generator=torch.Generator().manual_seed(seed)).numpy()
    labels = graph.logits(torch.from_numpy(images)).argmax(1).numpy()
    eps = 0.03 if norm == "linf" else 0.1
    plain = PlainNetwork(graph.plain())
    for image, proof in zip(
        images, prove(layered(graph), images, labels, norm=norm, eps=eps, budget=3000), strict=True
    ):
        if proof.proven:
            assert check(proof.certificate, proof.certificate.claim, plain, image) >= proof.lower - 1e-6


@pytest.mark.parametrize("stride", [1, 2])
def test_certificates_of_networks_with_units_that_see_padding_alone_are_accepted(stride):
    torch.manual_seed(0)
    convolutions = [nn.Conv2d(1, 2, 3, padding=1), nn.Conv2d(2, 3, 1, stride=stride, padding=1, bias=False)]
    network = nn.Sequential(*convolutions, nn.ReLU(), nn.Flatten(), nn.LazyLinear(2)).eval()
    network(torch.zeros(1, 1, 2, 2))
    network[-1].bias.data += torch.tensor([3.0, 0])
    graph = graph_of(network, (1, 2, 2))
    image = np.full((1, 2, 2), 0.5, dtype=np.float32)
    (proof,) = prove(layered(graph), image[None], np.array([0]), norm="linf", eps=0.05, budget=500)
    assert proof.proven
    assert check(proof.certificate, proof.certificate.claim, PlainNetwork(graph.plain()), image) > 0


# Planted faults


def with_tree(certificate, place, **changes):
    trees = list(certificate.trees)
    trees[place] = replace(trees[place], **changes)
    return replace(certificate, trees=tuple(trees))


def largest_tree(certificate):
    return max(range(len(certificate.trees)), key=lambda place: len(certificate.trees[place].units))


def changed_multiplier(value):
    def change(certificate, number):
        place = largest_tree(certificate)
        multipliers = certificate.trees[place].multipliers.copy()
        multipliers[(7 * number) % len(multipliers)] = value
        return with_tree(certificate, place, multipliers=multipliers)

    return change


def missing_child(certificate, number):
    # A leaf and its slopes and multipliers are taken out, its sibling stays.
    place = largest_tree(certificate)
    tree = certificate.trees[place]
    leaves = np.flatnonzero(tree.units < 0)
    node = leaves[number % len(leaves)]
    units, children = np.delete(tree.units, node), np.delete(tree.children, node)
    children = np.where(children > node, children - 1, children)
    return with_tree(certificate, place, units=units, children=children, slopes=tree.slopes[1:])


def leaf_without_splits(certificate, number):
    # What was split counts as a leaf: the bound of the whole is not positive.
    place = largest_tree(certificate)
    tree = certificate.trees[place]
    slopes = tree.slopes[number % len(tree.slopes)][None]
    leaf = np.array([-1])
    return with_tree(
        certificate, place, units=leaf, children=leaf, slopes=slopes, multipliers=np.zeros(0, dtype=np.float32)
    )


def shared_children(certificate, number):
    # Two splits name one pair of children, so that another pair is part of no split.
    place = largest_tree(certificate)
    children = certificate.trees[place].children.copy()
    splits = np.flatnonzero(children >= 0)
    first, second = splits[number % (len(splits) - 1)], splits[number % (len(splits) - 1) + 1]
    children[second] = children[first]
    return with_tree(certificate, place, children=children)


def circle(certificate, number):
    place = largest_tree(certificate)
    children = certificate.trees[place].children.copy()
    splits = np.flatnonzero(children >= 0)
    children[splits[number % len(splits)]] = 0
    return with_tree(certificate, place, children=children)


def unit_split_twice(certificate, number):
    place = largest_tree(certificate)
    tree = certificate.trees[place]
    units = tree.units.copy()
    inner = [child for child in (tree.children[0], tree.children[0] + 1) if tree.units[child] >= 0]
    units[inner[number % len(inner)]] = units[0]
    return with_tree(certificate, place, units=units)


def unknown_unit(certificate, number):
    place = largest_tree(certificate)
    units = certificate.trees[place].units.copy()
    units[0] = len(certificate.layers) + number
    return with_tree(certificate, place, units=units)


def place_that_is_none(certificate, number):
    places = certificate.places.copy()
    places[number % len(places)] = 10_000 + number if number % 2 else -1
    return replace(certificate, places=places)


def tree_left_out(certificate, number):
    trees = list(certificate.trees)
    del trees[number % len(trees)]
    return replace(certificate, trees=tuple(trees))


def other_rival(certificate, number):
    rivals = [tree.rival for tree in certificate.trees]
    return with_tree(certificate, number % len(rivals), rival=rivals[(number + 1) % len(rivals)])


def fewer_slopes(certificate, number):
    place = largest_tree(certificate)
    return with_tree(certificate, place, slopes=certificate.trees[place].slopes[: 1 + number])


def with_claim(**changes):
    def change(certificate, number):
        values = {name: value(getattr(certificate.claim, name), number) for name, value in changes.items()}
        return replace(certificate, claim=replace(certificate.claim, **values))

    return change


def other_pair(units_of):
    def change(certificate, number):
        pairs = certificate.pairs.copy()
        pairs[number % len(pairs)] = units_of(certificate, number)
        return replace(certificate, pairs=pairs)

    return change


def units_of_two_layers(certificate, number):
    return number, len(certificate.layers) - 1


FAULTS = {
    "negative multiplier": (changed_multiplier(-1e-3), 5),
    "multiplier that is not a number": (changed_multiplier(np.nan), 3),
    "infinite multiplier": (changed_multiplier(np.inf), 3),
    "missing child": (missing_child, 5),
    "leaf without its splits": (leaf_without_splits, 3),
    "children of two splits": (shared_children, 4),
    "circle": (circle, 4),
    "unit split twice": (unit_split_twice, 2),
    "unknown unit": (unknown_unit, 3),
    "unknown place": (place_that_is_none, 4),
    "class left out": (tree_left_out, 3),
    "class twice": (other_rival, 3),
    "fewer slopes": (fewer_slopes, 2),
    "pair of two layers": (other_pair(units_of_two_layers), 2),
    "unit paired with itself": (other_pair(lambda certificate, number: (number, number)), 2),
    "pair of an unknown unit": (other_pair(lambda certificate, number: (number, len(certificate.layers))), 2),
    "pair of a negative number": (other_pair(lambda certificate, number: (-1, number)), 1),
    "other network": (with_claim(network=lambda digest, number: digest[::-1]), 1),
    "other image": (with_claim(image=lambda digest, number: digest[::-1]), 1),
    "swapped label": (with_claim(label=lambda label, number: (label + 1 + number) % 4), 3),
    "other radius": (with_claim(eps=lambda eps, number: eps * (1.01 + number)), 2),
    "other norm": (with_claim(norm=lambda norm, number: "l2"), 1),
}
CASES = [(name, number) for name, (_, count) in FAULTS.items() for number in range(count)]


@pytest.mark.parametrize(("name", "number"), CASES)
def test_a_planted_fault_is_refused(case, name, number):
    change, _ = FAULTS[name]
    faulty = change(case.certificate, number)
    with pytest.raises(Refused):
        check(faulty, case.certificate.claim, case.network, case.image)


@pytest.mark.parametrize("share", [1.3, 1.6, 2.5])
def test_a_producer_whose_claim_is_false_is_refused(case, share):
    """Certificate and claim agree on a larger ball, for which the proof does not hold."""
    claim = replace(case.certificate.claim, eps=case.certificate.claim.eps * share)
    with pytest.raises(Refused, match="not proven"):
        check(replace(case.certificate, claim=claim), claim, case.network, case.image)


def test_a_claim_of_another_label_is_refused_although_the_certificate_agrees(case):
    label = case.certificate.trees[0].rival
    claim = replace(case.certificate.claim, label=label)
    trees = [replace(case.certificate.trees[0], rival=case.certificate.claim.label), *case.certificate.trees[1:]]
    with pytest.raises(Refused, match="not proven"):
        check(replace(case.certificate, claim=claim, trees=tuple(trees)), claim, case.network, case.image)


def test_a_network_with_other_weights_proves_nothing_with_the_certificate(case):
    nodes = list(case.network.nodes)
    last = nodes[-1]
    arrays = last.arrays | {"weight": last.arrays["weight"][:, ::-1]}
    nodes[-1] = replace(last, arrays=arrays)
    network = PlainNetwork(nodes)
    with pytest.raises(Refused, match="another network"):
        check(case.certificate, case.certificate.claim, network, case.image)
    claim = replace(case.certificate.claim, network=network.digest)
    with pytest.raises(Refused, match="not proven"):
        check(replace(case.certificate, claim=claim), claim, network, case.image)


def test_pairs_prove_more_and_the_same_pair_twice_no_more_than_once(case):
    certificate, claim = case.certificate, case.certificate.claim
    assert len(certificate.pairs)
    none, twice = certificate.pairs[:0], np.concatenate([certificate.pairs, certificate.pairs])
    first_layer = np.flatnonzero(certificate.layers == 0)
    every = np.array(list(combinations(first_layer.tolist(), 2)))
    bounds = []
    for pairs in (none, certificate.pairs, twice, every):
        bounds.append(smallest_margin(replace(certificate, pairs=pairs), claim, case.network, case.image))
    assert bounds[0] < bounds[1]
    assert bounds[2] <= bounds[1] + 1e-9
    points = points_in(torch.from_numpy(case.image), claim.eps, claim.norm, torch.Generator().manual_seed(0), 2000)
    logits = case.graph.logits(points).numpy()
    others = np.delete(logits, claim.label, axis=1)
    assert max(bounds) <= (logits[:, claim.label] - others.max(1)).min()


def test_changed_slopes_stay_valid_but_may_prove_less(case):
    """Any slope from 0 to 1 is one of a line below a ReLU: what is accepted is still proven."""
    generator = np.random.default_rng(0)
    certificate = case.certificate
    proofs = {}
    for number, proof in certificate.proofs.items():
        lower = generator.integers(0, 256, proof.lower.shape, dtype=np.uint8)
        proofs[number] = LayerProof(proof.places, lower, proof.upper)
    try:
        lower = check(replace(certificate, proofs=proofs), certificate.claim, case.network, case.image)
    except Refused as refusal:
        assert "not proven" in str(refusal)
    else:
        assert lower > 0


# The checker's own bounds


def random_balls(seed, norm):
    """A random network as it is, as a graph and for the checker, and three images with balls and certificates."""
    network = random_network(seed)
    graph = graph_of(network, (2, 4, 4))
    images = torch.rand(3, 2, 4, 4, generator=torch.Generator().manual_seed(seed)).numpy()
    labels = graph.logits(torch.from_numpy(images)).argmax(1).numpy()
    eps = 0.03 if norm == "linf" else 0.1
    proofs = prove(layered(graph), images, labels, norm=norm, eps=eps, budget=500)
    return network, graph, PlainNetwork(graph.plain()), zip(images, labels, proofs, strict=True), eps


def margins_of(logits, label):
    others = [j for j in range(logits.shape[1]) if j != label]
    return logits[:, label] - logits[:, others].max(1).values


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_no_point_contradicts_a_bound_of_the_checker_in_real_or_in_float32_arithmetic(norm):
    generator = torch.Generator().manual_seed(0)
    checked = 0
    for seed in range(20, 32):
        network, graph, plain, balls, eps = random_balls(seed, norm)
        for image, label, proof in balls:
            if not proof.proven:
                continue
            claim = proof.certificate.claim
            lower = smallest_margin(proof.certificate, claim, plain, image)
            lower32 = smallest_margin(proof.certificate, claim, plain, image, float32=True)
            assert lower - 1e-3 < lower32 < lower
            points = points_in(torch.from_numpy(image), eps, norm, generator, 2000)
            with torch.no_grad():
                assert float(margins_of(graph.logits(points), label).min()) >= lower
                assert float(margins_of(network(points.float()).double(), label).min()) >= lower32
            checked += 1
    assert checked >= 12


def chain(factors, last_weights, last_biases):
    """A ReLU after each product of the first pixel with a factor, then two logits."""
    layers = [nn.Flatten()]
    for factor in factors:
        layers += [nn.Linear(1, 1, bias=False), nn.ReLU()]
        nn.init.constant_(layers[-2].weight, factor)
    logits = nn.Linear(1, 2)
    logits.weight.data = torch.tensor(last_weights)[:, None]
    logits.bias.data = torch.tensor(last_biases)
    return nn.Sequential(*layers, logits).eval().requires_grad_(False)


def proof_of(network, image, label, eps):
    """The proof of one image, which needs no branches, and the network for the checker."""
    graph = graph_of(network, image.shape)
    (proof,) = prove(layered(graph), image[None], np.array([label]), norm="linf", eps=eps, budget=100)
    return proof, PlainNetwork(graph.plain())


def test_a_bound_of_float32_arithmetic_counts_products_that_are_too_small_for_float32():
    network = chain([1, 1e-30, 1e-30, 1e30, 1e30], [1e-3, 0.0], [-1e-4, 0.0])
    image = np.full((1, 1, 1), 0.8, dtype=np.float32)
    proof, plain = proof_of(network, image, 0, 0.05)
    claim = proof.certificate.claim
    assert check(proof.certificate, claim, plain, image) > 6e-4
    logits = network(torch.from_numpy(image[None]))[0]
    assert logits[0] < logits[1]
    assert smallest_margin(proof.certificate, claim, plain, image, float32=True) <= logits[0] - logits[1]


@pytest.mark.usefixtures("not_compared")
def test_there_is_no_bound_of_float32_arithmetic_where_a_value_may_overflow():
    network = chain([1e20, 1e20, 1e-20, 1e-20], [0.0, 1.0], [2.0, 0.0])
    image = np.full((1, 1, 1), 1e-3, dtype=np.float32)
    proof, plain = proof_of(network, image, 0, 0.05)
    claim = proof.certificate.claim
    assert check(proof.certificate, claim, plain, image) > 1
    assert network(torch.full((1, 1, 1, 1), 0.04))[0, 1] == torch.inf
    assert smallest_margin(proof.certificate, claim, plain, image, float32=True) == -np.inf


def test_bounds_count_what_cancels_in_a_batch_normalisation():
    network = cancelling_normalisation(1e4, 1 + 649 / 4096)
    image = np.zeros((1, 1, 1), dtype=np.float32)
    proof, plain = proof_of(network, image, 0, 1e-9)
    claim = proof.certificate.claim
    assert check(proof.certificate, claim, plain, image) > 8e-5
    logits = network(torch.zeros(1, 1, 1, 1))[0]
    assert logits[0] - logits[1] < -6e-4
    assert smallest_margin(proof.certificate, claim, plain, image, float32=True) <= logits[0] - logits[1]


@pytest.mark.usefixtures("not_compared")
def test_a_bound_counts_coefficients_that_are_too_small_for_float64():
    """The product of the small factors is 1e-352, which the large ones make 2e-83; at a corner the margin is below 0."""
    image = np.array([[[0.8, 0.2]]], dtype=np.float32)
    proof, plain = proof_of(Products([1e-44] * 2), image, 0, 0.05)
    assert check(proof.certificate, proof.certificate.claim, plain, image) > 1e-83
    network = PlainNetwork(graph_of(Products([3e38] * 7 + [1e-44] * 8), image.shape).plain())
    _, upper = margins_at(np.array([[[0.85, 0.15]]]), 0, network)
    assert upper < 0
    claim = replace(proof.certificate.claim, network=network.digest)
    with pytest.raises(Refused, match="not proven"):
        check(replace(proof.certificate, claim=claim), claim, network, image)


@pytest.mark.parametrize("kind", ["sigmoid", "tanh"])
def test_lines_of_curves_hold_between_their_ends(kind):
    generator = np.random.default_rng(0)
    ends = np.sort(generator.normal(size=(4000, 2)) * 10.0 ** generator.integers(-8, 3, (4000, 1)), axis=1)
    ends[:1000] += 3 * generator.normal(size=(1000, 1))
    low, high = ends.T
    lines = lines_of(kind, low, high)
    shares = np.linspace(0, 1, 301)
    points = np.clip(low[:, None] + shares * (high - low)[:, None], low[:, None], high[:, None])
    exact = np.longdouble(points)
    values = np.tanh(exact) if kind == "tanh" else 1 / (1 + np.exp(-exact))
    below, below_at_0, above, above_at_0 = (line[:, None].astype(np.longdouble) for line in lines)
    assert (below * exact + below_at_0 <= values).all()
    assert (above * exact + above_at_0 >= values).all()
    # Lines of a narrow interval are close to the curve.
    narrow = high - low < 1e-3
    assert ((above - below) * exact + above_at_0 - below_at_0)[narrow].max() < 1e-5


def test_margins_at_a_point_enclose_those_of_the_network(case):
    point = case.image.astype(np.float64) + 1e-3
    label = case.certificate.claim.label
    lower, upper = margins_at(point, label, case.network)
    logits = case.graph.logits(torch.from_numpy(point[None]))[0].numpy()
    margins = logits[label] - np.delete(logits, label)
    assert (lower <= margins).all() and (margins <= upper).all()
    assert (upper - lower).max() < 1e-9
