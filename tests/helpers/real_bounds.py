"""Proofs and attacks, sample by sample, on the provably trained networks of the test data."""

import json
import os
from dataclasses import dataclass
from unittest.mock import patch

import numpy as np

from gfscore.attacks.autoattack import MEMBERS
from gfscore.measures.adversarial import Adversarial
from gfscore.measures.adversarial.batch import measure_batch as attack
from gfscore.measures.minimal import Minimal
from gfscore.measures.minimal.batch import measure_batch as nearest
from gfscore.networks.architecture_files import FOLDER_VARIABLE
from gfscore.networks.classifier import from_network, open_classifier
from gfscore.proofs.graph import graph_of
from gfscore.proofs.layers import layered
from gfscore.proofs.proving import prove
from helpers.real_audits import ARCHITECTURES, torch_entry
from helpers.samples import seeds_of
from studies.markdown import table

SAMPLES = {"kw_base_2_255": 20, "kw_wide_2_255": 6, "kw_deep_2_255": 10}
"""Network -> first so many images: a proof takes up to 2 s on one core for the wider and the deeper one."""

RADII = {"kw_base_2_255": 3}
"""Network -> of how many of its images that are right the largest proven radius is searched."""

EPS = 2 / 255
BUDGET = 6000
LARGEST, STEPS = 3 * EPS, 4
"""Of the search for the largest proven radius: where it ends, and steps of bisection."""

# Shorter than in AutoAttack proper, so that the tests stay fast; Square is the slowest.
LENGTHS = {"steps": 30, "targets": 9, "queries": 300}
PARTS = [
    {"name": "pgd", "steps": 20, "step_size": EPS / 8, "restarts": 2},
    *({name: LENGTHS.get(name, value) for name, value in part.items()} for part in MEMBERS),
]


@dataclass(frozen=True)
class Bounds:
    """What proofs and attacks say of one network's n samples.

    `right`, `proven` at EPS and `broken` (attack -> (n,)) bool; `distance` (n,) of the nearest adversarial example
    found, l_inf, 0 for a wrong prediction and infinite where none was found; `radius` (n,) up to LARGEST that bisection
    proves, NaN where none was searched.
    """

    network: str
    right: np.ndarray
    proven: np.ndarray
    broken: dict
    distance: np.ndarray
    radius: np.ndarray

    @property
    def survived(self):
        """Samples that are right and that no attack broke, (n,) bool."""
        return self.right & ~np.any(list(self.broken.values()), axis=0)


def compare_bounds(data):
    """Bounds of each network on the first images of the lossless test set; `data` is the folder of the test data."""
    with np.load(data / "cifar10/test_lossless_1017.npz") as file:
        images, labels = file["x"][: max(SAMPLES.values())].astype(np.float32) / 255, file["y"]
    return [_compare(name, data / "cifar10/models", images[:n], labels[:n]) for name, n in SAMPLES.items()]


def _compare(name, folder, images, labels):
    network = sequence_of(name, folder)
    classifier = from_network(network, classes=10)
    right = classifier.logits(images).argmax(1) == labels
    broken = {}
    for part in PARTS:
        settings = {"norm": "linf", "eps": EPS, "attacks": [part]}
        found = attack(
            classifier, images, labels, settings=Adversarial.model_validate(settings), seeds=seeds_of(images)
        )
        broken[part["name"]] = right & (found["value"] == 0)
    settings = {
        "norm": "linf",
        "largest_distance": 0.5,
        "attacks": [{"name": "fmn", "steps": 50}, {"name": "deepfool", "steps": 30}],
        "bisection_steps": 12,
    }
    found = nearest(classifier, images, labels, settings=Minimal.model_validate(settings), seeds=seeds_of(images))
    layers = layered(graph_of(network, images.shape[1:]))
    proven = proven_within(layers, images, labels, EPS)
    radius = np.full(len(labels), np.nan)
    few = np.flatnonzero(right)[: RADII.get(name, 0)]
    for row in few:
        radius[row] = proven_radius(layers, images[[row]], labels[[row]])
    return Bounds(
        network=name,
        right=right,
        proven=proven,
        broken=broken,
        distance=np.where(found["censored"], np.inf, found["value"]),
        radius=radius,
    )


def proven_within(layers, images, labels, eps):
    """Samples (n,) bool that are proven by a few thousand bounds, which suffice for optimised slopes."""
    proofs = prove(layers, images, np.asarray(labels, dtype=np.int64), norm="linf", eps=eps, budget=BUDGET)
    return np.array([proof.proven for proof in proofs])


def proven_radius(layers, image, label):
    """Largest radius up to LARGEST that bisection in STEPS proves for one image, 0 for none."""
    low, high = 0.0, LARGEST
    for step in range(STEPS + 1):
        eps = high if step == 0 else (low + high) / 2
        if proven_within(layers, image, label, eps).all():
            low = eps
            if step == 0:
                break
        else:
            high = eps
    return low


def sequence_of(name, folder):
    """The network as the sequence of layers that bound propagation takes, its normalisation first."""
    from torch import nn

    facts = json.loads((folder / "models.json").read_text())[name]
    settings = torch_entry(name, facts, folder)
    manifest = {"source": "torch", "path": settings["path"], "sha256": facts["sha256"], "settings": settings}
    with patch.dict(os.environ, {FOLDER_VARIABLE: str(ARCHITECTURES)}):
        opened = open_classifier(manifest, image_shape=[3, 32, 32], classes=10).network

    class Normalised(nn.Module):
        def forward(self, images):
            return (images - opened.mean) / opened.std

    return nn.Sequential(Normalised(), opened.network).eval()


def bounds_table(found):
    """Markdown of a list of Bounds, for docs/known-truth.md."""
    attacks = list(found[0].broken)
    header = ["network", "images", "right", *(f"survive {name}" for name in attacks), "survive all"]
    header += ["proven", "proven and broken", "nearest example of a proven image, times 2/255"]
    header += ["largest radius proven of the first right images, as a share of the distance to their nearest example"]
    rows = []
    for bounds in found:
        survivors = [bounds.right & ~broken for broken in bounds.broken.values()]
        counts = [bounds.right, *survivors, bounds.survived, bounds.proven, bounds.proven & ~bounds.survived]
        rows.append([bounds.network, str(len(bounds.right)), *(str(int(chosen.sum())) for chosen in counts)])
        rows[-1].append(f"{bounds.distance[bounds.proven].min() / EPS:.2f}")
        shares = (bounds.radius / bounds.distance)[~np.isnan(bounds.radius)]
        rows[-1].append(", ".join(f"{share:.2f}" for share in shares) or "not searched")
    return table(header, rows)
