"""Proofs on trained networks beside what other verifiers prove: python benchmarks/proven.py [--part NAME ...].

sdp        200 images that papers on verification share, four adversarially trained networks, l_inf 2/255
trained    1,017 images, three networks that were trained to be provable, l_inf 2/255: proven and attacked by class
oval21     30 properties of a competition of verifiers, VNN-COMP 2021
crown      the time of linear bounds alone on the 200 images
certificates  the time that a check of all proofs of the 200 images takes, beside that of finding them again

Each sample is tried with rising budgets, until the processor time of its network is used up. What is finished is kept
in results/cache/proven, so that a run that was killed goes on.
"""

import argparse
import json
import os
import time
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pandas as pd
import torch
from shared_checkpoints import ARCHITECTURES, DATA, HERE, classifier_of, test_images
from timing import row

from gfscore.core.files import atomic
from gfscore.measures.adversarial import Adversarial
from gfscore.measures.adversarial.batch import measure_batch
from gfscore.networks.architecture_files import FOLDER_VARIABLE
from gfscore.networks.onnx_models import converted
from gfscore.proofs.balls import Ball
from gfscore.proofs.certificates import Certificate, Claim, image_digest
from gfscore.proofs.checking.check import check
from gfscore.proofs.checking.plain_network import PlainNetwork
from gfscore.proofs.graph import graph_of
from gfscore.proofs.layers import layered
from gfscore.proofs.proving import prove, prove_in, surely_misclassified
from gfscore.statistics.draws import seeds_of_samples

EPS = 2 / 255
SDP = {"cnn_a_adv": 45.5, "cnn_a_adv4": 46.5, "cnn_a_mix": 42.0, "cnn_a_mix4": 51.0}
"""Network -> share of the 200 images in percent that beta-CROWN proves (Wang et al. 2021)."""
TRAINED = {"kw_base_2_255": 1, "kw_wide_2_255": 1, "kw_deep_2_255": None}
"""Network -> how often the width of the band between proven and attacked is to fit into WIDTH points."""
WIDTH = 2.0
BUDGETS = (0, 20_000, 100_000, 500_000, 2_500_000, 10_000_000)
"""Bounds that may be evaluated for one sample, in turn."""
SECONDS = {"sdp": 7200, "trained": 1200, "oval21": 7200}
"""Processor time: 60 minutes on two cores for a network, 30 for three, 60 for all properties."""
CROWN_BEFORE = 1.8
"""Seconds an image that linear bounds took before stable units were folded, on the same machine."""
CACHE = HERE.parent / "results" / "cache" / "proven"


# What is kept


class Ledger:
    """Outcomes of the samples of one network, in a file that is written after each of them.

    A sample's entry: budget, status, lower, seconds of all its trials, evaluations and decided_by of the last one.
    """

    def __init__(self, name):
        self.path = CACHE / f"{name}.json"
        self.entries = json.loads(self.path.read_text()) if self.path.is_file() else {}

    def seconds(self):
        """Processor time of all trials."""
        return sum(entry["seconds"] for entry in self.entries.values())

    def status(self, key):
        """Status of a sample, "open" where nothing was tried."""
        return self.entries.get(str(key), {"status": "open"})["status"]

    def budget(self, key):
        """Budget of a sample's last trial, -1 for none."""
        return self.entries.get(str(key), {"budget": -1})["budget"]

    def keep(self, key, entry):
        """Keep the outcome of a trial."""
        before = self.entries.get(str(key), {"seconds": 0.0, "curve": []})
        entry["curve"] = [*before["curve"], [entry["budget"], round(entry["seconds"], 2), entry["status"]]]
        entry["seconds"] += before["seconds"]
        self.entries[str(key)] = entry
        with atomic(self.path) as temporary:
            temporary.write_text(json.dumps(self.entries))

    def curve(self):
        """By budget: seconds of all trials up to it, and the number of samples that are proven by it."""
        trials = [trial for entry in self.entries.values() for trial in entry["curve"]]
        points = []
        for budget in sorted({trial[0] for trial in trials}):
            seconds = sum(spent for at, spent, _ in trials if at <= budget)
            proven = sum(status == "proven" for at, _, status in trials if at <= budget)
            points.append((budget, seconds, proven))
        return points


def try_budgets(ledger, attempt, keys, *, seconds, largest):
    """Try samples, `attempt(key, budget)`, with rising budgets, the most promising first, while there is time."""
    for budget in BUDGETS:
        if budget > largest:
            return
        waiting = [key for key in keys if ledger.status(key) == "open" and ledger.budget(key) < budget]
        waiting.sort(key=lambda key: -ledger.entries.get(str(key), {"lower": 0})["lower"])
        for key in waiting:
            if ledger.seconds() > seconds:
                return
            started = time.process_time()
            entry = attempt(key, budget)
            entry |= {"budget": budget, "seconds": time.process_time() - started}
            ledger.keep(key, entry)
            print(f"{ledger.path.stem} {key}: {entry}", flush=True)


def outcome(proof):
    """Entry of a proof."""
    status = "proven" if proof.proven else "open"
    if proof.counterexample is not None or proof.decided_by == "prediction":
        status = "refuted"
    return {
        "status": status,
        "lower": proof.lower,
        "decided_by": proof.decided_by,
        "branches": proof.branches,
        "evaluations": proof.evaluations,
    }


# Images of two data sets


@cache
def sdp_images():
    """The 200 images (n, 3, 32, 32) float32 in [0, 1], and their labels."""
    with np.load(DATA.parent / "verification" / "sdp_cifar200.npz") as file:
        return file["x"].transpose(0, 3, 1, 2).astype(np.float32) / 255, file["y"].astype(np.int64)


def attacked(name, images, labels):
    """Whether each image survives the default attacks of the measure `adversarial`, and the seconds they took."""
    path = CACHE / f"{name}-attacks-{len(images)}.json"
    if not path.is_file():
        started = time.process_time()
        seeds = seeds_of_samples(0, "adversarial", np.arange(len(labels)))
        columns = measure_batch(
            classifier_of(name), images, labels, settings=Adversarial(norm="linf", eps=EPS), seeds=seeds
        )
        outcomes = {"survived": columns["value"].tolist(), "seconds": time.process_time() - started}
        with atomic(path) as temporary:
            temporary.write_text(json.dumps(outcomes))
    outcomes = json.loads(path.read_text())
    return np.array(outcomes["survived"]) == 1, outcomes["seconds"]


@cache
def layers_of(name):
    """Layers of a checkpoint."""
    return layered(graph_of(classifier_of(name).network, (3, 32, 32)))


def prove_images(name, images, labels, *, seconds, largest):
    """Prove a network's images: those that attacks break without branches, which must prove none of them."""
    ledger = Ledger(name)
    survived, attack_seconds = attacked(name, images, labels)

    def attempt(index, budget):
        chosen = slice(index, index + 1)
        (proof,) = prove(layers_of(name), images[chosen], labels[chosen], norm="linf", eps=EPS, budget=budget)
        return outcome(proof)

    broken = np.flatnonzero(~survived).tolist()
    try_budgets(ledger, attempt, broken, seconds=np.inf, largest=0)
    contradictions = [index for index in broken if ledger.status(index) == "proven"]
    if contradictions:
        raise AssertionError(f"{name}: the images {contradictions} are proven, and attacks break them")
    standing = np.flatnonzero(survived).tolist()
    try_budgets(ledger, attempt, standing, seconds=seconds - attack_seconds, largest=largest)


def tried(name, images, labels):
    """Whether every image of a network was tried, so that its shares may be told."""
    path = CACHE / f"{name}-attacks-{len(images)}.json"
    return path.is_file() and len(Ledger(name).entries) == len(labels)


# Parts


def sdp(networks=SDP, largest=BUDGETS[-1]):
    """Try the 200 images on some networks."""
    for name in networks:
        prove_images(name, *sdp_images(), seconds=SECONDS["sdp"], largest=largest)


def sdp_rows():
    """Share of the 200 images that is proven on each network."""
    images, labels = sdp_images()
    for name, published in SDP.items():
        if not tried(name, images, labels):
            continue
        ledger = Ledger(name)
        survived, attack_seconds = attacked(name, images, labels)
        share = 100 * sum(entry["status"] == "proven" for entry in ledger.entries.values()) / len(labels)
        points = []
        for budget, seconds, proven in ledger.curve():
            points.append(f"{100 * proven / len(labels):.1f}% at {budget:,} bounds ({seconds + attack_seconds:,.0f} s)")
        seconds = ledger.seconds() + attack_seconds
        checked = ""
        if (CACHE / f"{name}-certificates.json").is_file():
            checked = "; " + json.loads((CACHE / f"{name}-certificates.json").read_text())["words"]
        yield row(
            f"proven: share of 200 images at l_inf 2/255, {name}",
            share,
            f"after {seconds:,.0f} s of one core, of {SECONDS['sdp']:,} s allowed; {'; '.join(points)}; "
            f"{100 * survived.mean():.1f}% survive attacks, and none of the others is proven{checked}",
            target=published,
            unit="% of the images",
        )


def certificates(networks=SDP, largest=BUDGETS[-1]):
    """Find the proofs of the 200 images again, and check their certificates as somebody who is handed them would."""
    images, labels = sdp_images()
    for name in networks:
        ledger, layers = Ledger(name), layers_of(name)
        plain = PlainNetwork(layers.graph.plain())
        finding, checking, sizes = 0.0, 0.0, []
        for index in range(len(labels)):
            if ledger.status(index) != "proven" or ledger.budget(index) > largest:
                continue
            chosen = slice(index, index + 1)
            budget = ledger.budget(index)
            started = time.process_time()
            (proof,) = prove(layers, images[chosen], labels[chosen], norm="linf", eps=EPS, budget=budget)
            content = proof.certificate.to_bytes()
            found = time.process_time()
            claim = Claim(plain.digest, image_digest(images[index]), int(labels[index]), "linf", EPS)
            check(Certificate.from_bytes(content), claim, plain, images[index])
            finding += found - started
            checking += time.process_time() - found
            sizes.append(len(content))
        words = (
            f"{len(sizes)} certificates found in {finding:.0f} s, all accepted by the checker in {checking:.0f} s; "
            f"{np.median(sizes) / 1000:.0f} kB at the median, {max(sizes) / 1000:,.0f} kB at most"
        )
        print(f"{name}: {words}", flush=True)
        with atomic(CACHE / f"{name}-certificates.json") as temporary:
            temporary.write_text(json.dumps({"words": words}))


def trained(networks=TRAINED, largest=BUDGETS[-1]):
    """Try 1,017 images on some of the networks that were trained to be provable."""
    for name in networks:
        prove_images(name, *test_images(None), seconds=SECONDS["trained"], largest=largest)


def trained_rows():
    """Width of the band between proven and attacked."""
    images, labels = test_images(None)
    for name, wanted in TRAINED.items():
        if not tried(name, images, labels):
            continue
        ledger = Ledger(name)
        survived, attack_seconds = attacked(name, images, labels)
        refuted = np.array([ledger.status(index) == "refuted" for index in range(len(labels))])
        proven = np.array([ledger.status(index) == "proven" for index in range(len(labels))])
        robust = survived & ~refuted
        width = 100 * (robust.mean() - proven.mean())
        bands = []
        for label in range(10):
            members = labels == label
            bands.append(f"{label}: {100 * proven[members].mean():.1f} to {100 * robust[members].mean():.1f}")
        yield row(
            f"proven: width of the band between proven and attacked at l_inf 2/255, {name}",
            WIDTH / max(width, 0.05),
            f"{100 * proven.mean():.1f} to {100 * robust.mean():.1f}% of {len(labels):,} images, {width:.1f} points; "
            f"by class {', '.join(bands)}; {ledger.seconds() + attack_seconds:,.0f} s of one core",
            target=wanted,
            unit=f"times as narrow as {WIDTH:g} points",
        )


@cache
def properties():
    """Properties of the competition: network, verdict, label and ends of the box, which are widened by one ulp."""
    folder = DATA.parent / "verification"
    frame = pd.read_csv(folder / "oval21.csv")
    with np.load(folder / "oval21.npz") as file:
        frame["low"] = list(np.nextafter(file["low"], np.float32(-np.inf)))
        frame["high"] = list(np.nextafter(file["high"], np.float32(np.inf)))
    frame["label"] = frame["output_property"].str.extract(r"Y_(\d+)", expand=False).astype(int)
    return frame


def oval21(largest=BUDGETS[-1]):
    """Try the properties of the competition; boxes are searched by descent before they are bounded."""
    ledger = Ledger("oval21")
    frame = properties()

    def attempt(number, budget):
        member = frame.iloc[number]
        low, high = (member[end].astype(np.float64) for end in ("low", "high"))
        centre = ((low + high) / 2).astype(np.float32)
        box = Ball(centre.astype(np.float64), low, high, float((high - low).max() / 2), "linf")
        images, labels = centre.reshape(1, 3, 32, 32), np.array([member["label"]])
        layers = competition_layers(member["network"])
        point = descended(layers.graph, low, high, int(member["label"]))
        if surely_misclassified(layers, point[None], labels)[0]:
            return {"status": "refuted", "lower": -np.inf, "decided_by": "attack", "branches": 0, "evaluations": 0}
        (proof,) = prove_in(layers, [box], images, labels, budget=budget)
        return outcome(proof)

    try_budgets(ledger, attempt, list(range(len(frame))), seconds=SECONDS["oval21"], largest=largest)


@cache
def competition_layers(file):
    """Layers of one of the competition's networks."""
    graph = onnx.load(DATA.parent / "verification" / file)
    network = converted(graph, graph.graph.output[0].name, where=file)
    return layered(graph_of(network, (3, 32, 32)))


def descended(graph, low, high, label):
    """The point (3, 32, 32) float64 of a box with the smallest margin on 100 steps from its centre and nine points."""
    generator = torch.Generator().manual_seed(0)
    ends = [torch.from_numpy(end).reshape(3, 32, 32) for end in (low, high)]
    shares = torch.rand(10, 3, 32, 32, generator=generator, dtype=torch.float64)
    shares[0] = 0.5
    points = ends[0] + shares * (ends[1] - ends[0])
    best, smallest = points[0], torch.tensor(torch.inf)
    for step in range(100):
        points = points.detach().requires_grad_()
        logits = graph.logits(points.float()).double()
        others = logits.clone()
        others[:, label] = -torch.inf
        margins = logits[:, label] - others.amax(1)
        lowest = int(margins.argmin())
        if margins[lowest] < smallest:
            best, smallest = points[lowest].detach(), margins[lowest].detach()
        (gradient,) = torch.autograd.grad(margins.sum(), points)
        share = 0.25 * (1 - step / 100)
        points = (points.detach() - share * (ends[1] - ends[0]) * gradient.sign()).clamp(*ends)
    return best.numpy()


def oval21_rows():
    """Properties that are decided, beside the competition's verdicts."""
    ledger = Ledger("oval21")
    frame = properties()
    if len(ledger.entries) < len(frame):
        return
    frame["status"] = [ledger.status(number) for number in range(len(frame))]
    holds, violated = frame["verdict"] == "holds", frame["verdict"] == "violated"
    proven, refuted = frame["status"] == "proven", frame["status"] == "refuted"
    contradictions = int((holds & refuted).sum() + (violated & proven).sum())
    if contradictions:
        raise AssertionError(f"{contradictions} properties are decided otherwise than in the competition")
    seconds = [ledger.entries[str(number)]["seconds"] for number in range(len(frame))]
    beside = []
    for number in np.flatnonzero(holds):
        member = frame.iloc[number]
        name = member["property"].removesuffix(".vnnlib")
        beside.append(f"{name} {member['status']} {seconds[number]:.0f} s ({member['fastest_s']:.0f} s)")
    yield row(
        "proven: properties of OVAL21 that hold",
        (holds & proven).sum(),
        f"of {holds.sum()}; seconds of one core (of the competition's fastest tool): {', '.join(beside)}",
        target=11,
        unit="properties proven",
    )
    conflict = frame[frame["verdict"] == "conflict"]["status"].tolist()
    undecided = frame["verdict"] == "open"
    yield row(
        "proven: properties of OVAL21 that are violated",
        (violated & refuted).sum(),
        f"of {violated.sum()}; the one on which tools contradict each other: {conflict[0]}; of {undecided.sum()} that "
        f"no tool decided {(undecided & proven).sum()} proven, {(undecided & refuted).sum()} refuted; none decided "
        f"otherwise than in the competition; {sum(seconds):,.0f} s of one core for all",
        target=2,
        unit="properties refuted",
    )


def crown():
    """Time of linear bounds alone on the 200 images of cnn_a_adv."""
    images, labels = sdp_images()
    layers = layers_of("cnn_a_adv")
    started = time.process_time()
    proofs = list(prove(layers, images, labels, norm="linf", eps=EPS, budget=0))
    outcomes = {"seconds": time.process_time() - started, "proven": sum(proof.proven for proof in proofs)}
    with atomic(CACHE / "crown.json") as temporary:
        temporary.write_text(json.dumps(outcomes))


def crown_rows():
    """The same beside what linear bounds took before stable units were folded."""
    path = CACHE / "crown.json"
    if not path.is_file():
        return
    outcomes = json.loads(path.read_text())
    each = outcomes["seconds"] / 200
    yield row(
        "proven: linear bounds alone, 200 images, cnn_a_adv",
        CROWN_BEFORE / each,
        f"{each:.3f} s an image of one core, {100 * outcomes['proven'] / 200:.1f}% proven; {CROWN_BEFORE} s "
        "and 35.5% with all units carried along",
        target=20,
        unit="times as fast as before",
    )


PARTS = {"sdp": sdp, "trained": trained, "oval21": oval21, "crown": crown, "certificates": certificates}
"""What computes the outcomes of each part."""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", nargs="*", choices=PARTS, default=list(PARTS), help="none: rows of what is finished")
    parser.add_argument("--network", choices=[*SDP, *TRAINED], help="of a part, this one only")
    parser.add_argument("--budget", type=int, choices=BUDGETS, default=BUDGETS[-1], help="the largest one to try")
    parser.add_argument("--output", type=Path, help="file for the figures as JSON")
    given = parser.parse_args()
    torch.set_num_threads(1)
    os.environ[FOLDER_VARIABLE] = str(ARCHITECTURES)
    for name in given.part:
        limits = {} if name == "crown" else {"largest": given.budget}
        if given.network:
            limits["networks"] = [given.network]
        PARTS[name](**limits)
    results = [*sdp_rows(), *trained_rows(), *oval21_rows(), *crown_rows()]
    if given.output:
        given.output.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
