"""Certificates and counterexamples of a bundle are accepted as they were made, and refused by name after a change."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from fetch_dataset import fetch_dataset
from gfscore.core.digests import sha256_of_file
from gfscore.core.errors import InputError
from gfscore.measures.samples import table_of
from gfscore.networks import adjusted
from gfscore.networks.classifier import from_network
from gfscore.proofs import counterexamples
from gfscore.proofs.certificates import Certificate
from gfscore.proofs.checking import plain_network
from gfscore.proofs.checking.plain_network import PlainNetwork
from gfscore.tables.parquet_tables import read_identity, read_table, write_logits, write_table
from gfscore.workflow.bundling import evidence
from gfscore.workflow.bundling.contents import Bundle
from gfscore.workflow.bundling.evidence import PIXELS, EvidenceCheck, write_evidence
from gfscore.workflow.configuration import resolved_configuration
from gfscore.workflow.plan import Run
from helpers.samples import seeds_of

CONFIGURATION = """
audits: {toy: {dataset: toy, models: [toy/none/net], measures: [clean, proven, attacked]}}
measures:
  proven: {kind: proven, norm: linf, eps: 0.05, budget: 200}
  attacked: {kind: adversarial, norm: linf, eps: 0.2, counterexamples: true, attacks: [{name: pgd, steps: 5}]}
datasets: {toy: {source: npz, path: images.npz, value_range: 1, channels: first, classes: [cat, dog, frog]}}
models: {toy: {none: {net: {source: torch, path: given/net.safetensors, architecture: "torch.nn:Linear"}}}}
"""
PROVEN = "samples/proven/toy/none/net.parquet"
ATTACKED = "samples/attacked/toy/none/net.parquet"
NETWORK = "proofs/networks/toy/none/net.npz"
LOGITS = "logits/toy/none/net.parquet"


def small_network():
    torch.manual_seed(3)
    return nn.Sequential(nn.Conv2d(1, 4, 2), nn.ReLU(), nn.Flatten(), nn.Linear(36, 3)).eval()


def measured(audit, network, images, labels):
    """Logits, and samples tables of both measures, in results/."""
    samples = read_table(audit.dataset.samples, evidence.DATASET)
    with torch.no_grad():
        logits = network(torch.from_numpy(images)).numpy()
    names = samples["sample_id"].to_numpy()
    write_logits(f"results/{LOGITS}", sample_id=names, label=labels, logits=logits, identity={})
    clean = logits.argmax(1)
    for name in ("proven", "attacked"):
        measure = audit.measures[name]
        columns = measure.kind.load()(
            from_network(network), images, labels, settings=measure.settings, seeds=seeds_of(images)
        )
        frame = pd.DataFrame({"sample_id": samples["sample_id"], "label": labels, "clean_prediction": clean, **columns})
        table = table_of(measure.kind.name)
        frame = frame[table.with_evidence(columns).column_names]
        write_table(audit.models[0].samples(name), table, frame, identity={"measure": name})


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with results/ of 30 samples, and with what a bundle holds of them."""
    folder = tmp_path_factory.mktemp("evidence")
    network = small_network()
    images = np.random.default_rng(0).random((30, 1, 4, 4), dtype=np.float32)
    with torch.no_grad():
        labels = network(torch.from_numpy(images)).argmax(1).numpy()
    # Some samples are wrong without an attack.
    labels[:3] = (labels[:3] + 1) % 3
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        np.savez("images.npz", x=images, y=labels)
        Path("config.yaml").write_text(CONFIGURATION)
        audit = Run(resolved_configuration(["config.yaml"], {}).config).audits["toy"]
        dataset = audit.dataset
        fetch_dataset(
            dataset.image_settings(),
            dataset.entry["classes"],
            dataset.manifest,
            dataset.samples,
            dataset="toy",
            path_to_images=dataset.images,
        )
        measured(audit, network, images, labels)
        patch.setattr(adjusted, "open_model", lambda *_, **__: (from_network(network), {}))
        shutil.copytree("results", "bundle")
        assert write_evidence(Path("bundle"), audit, pytest.fail)
    return folder, audit, network


@pytest.fixture
def bundle(made, tmp_path):
    return shutil.copytree(made[0] / "bundle", tmp_path / "bundle")


def check_of(folder, audit):
    digests = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            digests[path.relative_to(folder).as_posix()] = sha256_of_file(path)
    return EvidenceCheck(Bundle(folder, digests, "toy"), audit, lambda words: None)


def faults(folder, made):
    return list(check_of(folder, made[1]).faults())


def edited(folder, name, change):
    """A samples table of which `change` edits the frame."""
    path = folder / name
    table = table_of("proven" if name == PROVEN else "adversarial")
    frame = read_table(path, table, evidence=True).astype(object)
    change(frame)
    write_table(path, table, frame, identity=read_identity(path))


def rows_of(folder, name, **values):
    frame = read_table(folder / name, table_of("proven" if name == PROVEN else "adversarial"), evidence=True)
    chosen = pd.Series(True, index=frame.index)
    for column, value in values.items():
        chosen &= frame[column] == value
    return frame[chosen]


def test_all_certificates_and_counterexamples_are_checked_and_accepted(made, bundle):
    check = check_of(bundle, made[1])
    assert list(check.faults()) == []
    proven, wrong = rows_of(bundle, PROVEN, status="proven"), rows_of(bundle, PROVEN, decided_by="prediction")
    broken = rows_of(bundle, ATTACKED, value=0.0)
    assert len(proven) >= 5 and len(wrong) == 3 and len(broken) >= 8
    assert check.certificates == len(proven)
    assert check.points == len(broken) + (rows_of(bundle, PROVEN)["status"].str.startswith("refuted")).sum()
    assert check.unchecked == [] and check.left_out == 0


def test_two_bundles_have_the_same_bytes(made, bundle, tmp_path, monkeypatch):
    folder, audit, network = made
    monkeypatch.chdir(folder)
    monkeypatch.setattr(adjusted, "open_model", lambda *_, **__: (from_network(network), {}))
    write_evidence(tmp_path / "again", audit, pytest.fail)
    for name in (PIXELS, NETWORK):
        assert (tmp_path / "again" / name).read_bytes() == (bundle / name).read_bytes()


# Changes that somebody might make, each with the statement made anew


def forged_bound(folder):
    """Slopes, ball and network of a proof, claimed of a sample that is refuted."""
    content = rows_of(folder, PROVEN, status="proven")["certificate"].iloc[0]
    row = rows_of(folder, PROVEN, decided_by="prediction").index[0]

    def change(frame):
        frame.loc[row, ["status", "value", "certificate", "lower"]] = ["proven", 1.0, content, 0.1]

    edited(folder, PROVEN, change)


def claim_of_another_label(folder):
    row = rows_of(folder, PROVEN, status="proven").index[0]

    def change(frame):
        certificate = Certificate.from_bytes(frame.loc[row, "certificate"])
        claim = replace(certificate.claim, label=(certificate.claim.label + 1) % 3)
        frame.loc[row, "certificate"] = replace(certificate, claim=claim).to_bytes()

    edited(folder, PROVEN, change)


def claim_of_a_smaller_ball(folder):
    row = rows_of(folder, PROVEN, status="proven").index[0]

    def change(frame):
        certificate = Certificate.from_bytes(frame.loc[row, "certificate"])
        frame.loc[row, "certificate"] = replace(certificate, claim=replace(certificate.claim, eps=0.01)).to_bytes()

    edited(folder, PROVEN, change)


def proven_without_certificate(folder):
    row = rows_of(folder, PROVEN, status="proven").index[0]

    def change(frame):
        frame.loc[row, "certificate"] = None

    edited(folder, PROVEN, change)


def larger_bound(folder, *, column):
    row = rows_of(folder, PROVEN, status="proven").index[0]

    def change(frame):
        frame.loc[row, column] = 9.0

    edited(folder, PROVEN, change)


def larger_lower(folder):
    larger_bound(folder, column="lower")


def larger_lower32(folder):
    larger_bound(folder, column="lower32")


def changed_pixel(folder):
    with np.load(folder / PIXELS) as file:
        names, pixels = file["sample_id"], file["pixels"].copy()
    pixels[5, 0, 1, 1] = np.nextafter(pixels[5, 0, 1, 1], np.float32(0))
    np.savez_compressed(folder / PIXELS, sample_id=names, pixels=pixels)


def changed_weight(folder):
    network = PlainNetwork.from_bytes((folder / NETWORK).read_bytes())
    nodes = list(network.nodes)
    weight = nodes[1].arrays["weight"].copy()
    weight.flat[0] += 1e-6
    nodes[1] = replace(nodes[1], arrays=nodes[1].arrays | {"weight": weight})
    (folder / NETWORK).write_bytes(PlainNetwork(nodes).to_bytes())


def other_last_layer(folder, change):
    """A network of which `change` makes other arrays of the last operator."""
    network = PlainNetwork.from_bytes((folder / NETWORK).read_bytes())
    *nodes, last = network.nodes
    arrays = {name: np.array(values) for name, values in last.arrays.items()}
    (folder / NETWORK).write_bytes(PlainNetwork([*nodes, replace(last, arrays=change(arrays))]).to_bytes())


def other_last_weights(folder, *, factor):
    other_last_layer(folder, lambda arrays: arrays | {"weight": factor * arrays["weight"]})


def smaller_logits(folder, *, factor):
    other_last_layer(folder, lambda arrays: {name: factor * values for name, values in arrays.items()})


def without_proofs(folder):
    def change(frame):
        frame["status"], frame["value"], frame["certificate"], frame["counterexample"] = "open", 0.0, None, None

    edited(folder, PROVEN, change)


def another_network(folder):
    other_last_weights(folder, factor=-1)


def constant_network(folder):
    """Every point is as near to misclassified as any."""
    smaller_logits(folder, factor=0)
    without_proofs(folder)
    (folder / LOGITS).unlink()


def network_with_an_enormous_logit(folder):
    """Of a class that no sample is predicted as; beside it, the answers of two others that are exchanged seem equal."""

    def exchanged(arrays):
        arrays = {name: values[..., [1, 0, 2]] for name, values in arrays.items()}
        arrays["bias"][..., 2] = -1e9
        return arrays

    other_last_layer(folder, exchanged)
    without_proofs(folder)
    (folder / LOGITS).unlink()
    for name in (PROVEN, ATTACKED):
        edited(folder, name, lambda frame: frame.drop(frame.index[frame["clean_prediction"] == 2], inplace=True))


def network_with_smaller_logits(folder):
    """The same answers, and the bundle holds the logits."""
    smaller_logits(folder, factor=0.9)
    without_proofs(folder)


def point_that_is_right_by_little(folder):
    """As all points are, of a network whose logits are all tiny."""
    smaller_logits(folder, factor=1e-6)
    without_proofs(folder)
    (folder / LOGITS).unlink()
    point_that_is_right(folder)


def network_left_out(folder):
    (folder / NETWORK).unlink()


def damaged_certificate(folder):
    row = rows_of(folder, PROVEN, status="proven").index[0]

    def change(frame):
        frame.loc[row, "certificate"] = frame.loc[row, "certificate"][:100]

    edited(folder, PROVEN, change)


def moved_counterexample(folder, *, outside):
    row = rows_of(folder, ATTACKED, attack="pgd").index[0]

    def change(frame):
        point = counterexamples.from_bytes(frame.loc[row, "counterexample"], (1, 4, 4))
        point.flat[0] = 1.5 if outside else (0.0 if point.flat[0] > 0.5 else 1.0)
        frame.loc[row, "counterexample"] = counterexamples.to_bytes(point)

    edited(folder, ATTACKED, change)


def point_beyond_the_ball(folder):
    moved_counterexample(folder, outside=False)


def point_outside_the_box(folder):
    moved_counterexample(folder, outside=True)


def point_that_is_right(folder):
    """The sample itself, which the network gets right, at a distance that fits."""
    row = rows_of(folder, ATTACKED, attack="pgd").index[0]

    def change(frame):
        with np.load(folder / PIXELS) as file:
            image = file["pixels"][file["sample_id"].tolist().index(frame.loc[row, "sample_id"])]
        frame.loc[row, ["counterexample", "distance"]] = [counterexamples.to_bytes(image), 0.0]

    edited(folder, ATTACKED, change)


def refuted_without_a_point(folder):
    row = rows_of(folder, PROVEN, status="proven").index[0]

    def change(frame):
        frame.loc[row, ["status", "value", "certificate", "decided_by"]] = ["refuted", 0.0, None, "attack"]

    edited(folder, PROVEN, change)


def answers_left_out(folder):
    def change(frame):
        frame["clean_prediction"] = None

    edited(folder, PROVEN, change)


CHANGES = {
    larger_lower32: PROVEN,
    answers_left_out: PROVEN,
    forged_bound: PROVEN,
    claim_of_another_label: PROVEN,
    claim_of_a_smaller_ball: PROVEN,
    proven_without_certificate: PROVEN,
    larger_lower: PROVEN,
    changed_pixel: PIXELS,
    changed_weight: PROVEN,
    another_network: NETWORK,
    constant_network: NETWORK,
    network_with_an_enormous_logit: NETWORK,
    network_with_smaller_logits: NETWORK,
    network_left_out: PROVEN,
    damaged_certificate: PROVEN,
    point_beyond_the_ball: ATTACKED,
    point_outside_the_box: ATTACKED,
    point_that_is_right: ATTACKED,
    point_that_is_right_by_little: ATTACKED,
    refuted_without_a_point: PROVEN,
}
"""Changes, and the file that the fault names."""


@pytest.mark.parametrize(("module", "limit"), [(evidence, "LARGEST_IMAGES"), (plain_network, "LARGEST_NETWORK")])
def test_what_unpacks_to_more_than_any_bundle_has_is_not_read(made, bundle, monkeypatch, module, limit):
    monkeypatch.setattr(module, limit, 100)
    with pytest.raises(InputError, match="unpacks to"):
        faults(bundle, made)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_change_is_refused_and_its_file_named(made, bundle, change):
    change(bundle)
    found = faults(bundle, made)
    assert found and any(fault.startswith(f"{CHANGES[change]}: ") for fault in found)


def test_a_network_that_is_no_function_of_the_pixels_is_refused(made, bundle):
    other_last_weights(bundle, factor=np.nan)
    with pytest.raises(InputError, match="finite"):
        faults(bundle, made)


def test_a_table_of_proofs_without_its_evidence_is_refused(made, bundle):
    path = bundle / PROVEN
    table = table_of("proven")
    frame = read_table(path, table, evidence=True).drop(columns=["certificate", "counterexample"])
    write_table(path, table, frame, identity=read_identity(path))
    with pytest.raises(InputError, match="certificate"):
        faults(bundle, made)


def test_what_has_no_pixels_is_said_and_not_taken_for_checked(made, tmp_path, monkeypatch):
    folder, audit, network = made
    monkeypatch.chdir(folder)
    monkeypatch.setattr(adjusted, "open_model", lambda *_, **__: (from_network(network), {}))
    monkeypatch.setattr(evidence, "LARGEST_PIXELS", 10 * 64)
    messages = []
    shutil.copytree("results", tmp_path / "bundle")
    write_evidence(tmp_path / "bundle", audit, messages.append)
    assert len(messages) == 1 and "10" in messages[0]
    check = check_of(tmp_path / "bundle", audit)
    assert list(check.faults()) == []
    assert 0 < check.certificates < len(rows_of(tmp_path / "bundle", PROVEN, status="proven"))
    assert any(words.startswith(PROVEN) for words in check.unchecked) and check.left_out > 0


def test_points_of_a_network_that_cannot_be_computed_are_checked_but_for_the_answer(made, bundle):
    network_left_out(bundle)
    without_proofs(bundle)
    check = check_of(bundle, made[1])
    assert list(check.faults()) == []
    assert (
        check.points == 0
        and check.number_to_check >= 8
        and any(words.startswith(ATTACKED) for words in check.unchecked)
    )
