"""What is kept of the real networks: its statistics on made-up networks, and a part of it computed again."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from gfscore.audit.classwise.confusion import class_errors, confusion_matrix
from gfscore.networks.architecture_files import FOLDER_VARIABLE
from gfscore.networks.classifier import open_classifier
from gfscore.statistics.classes import class_means
from gfscore.statistics.margins import predictions, scores
from helpers.real_audits import ARCHITECTURES, torch_entry
from studies.real_networks import measurements, statistics
from studies.reference import real_network_classes, real_network_measurements

ROOT = Path(__file__).resolve().parents[2]
CLASSES = 10


@pytest.fixture(scope="module")
def table():
    return real_network_classes()


# Pages


def test_groups_of_faces_on_the_page_are_those_that_were_measured():
    text = (ROOT / "docs/groups.md").read_text(encoding="utf-8")
    rows = pd.DataFrame(real_network_measurements()["balancing"])
    for (attribute, metric), measured in rows.groupby(["attribute", "metric"]):
        values = (measured.set_index("model")["value"] / 100).round(3)
        (line,) = [line for line in text.splitlines() if line.startswith(f"| {attribute} | `{metric}` |")]
        cells = line.split(" | ")
        assert (float(cells[3]), float(cells[6])) == (values["convolutions"], values["transformer"])
    assert f"audited on the other {rows['faces'].iloc[0]:,} " in text


# Statistics


def test_families_are_drawn_whole_and_as_many_as_there_are():
    number, times = statistics.resampled_families(["a", "b", "b", "c"])
    assert number.tolist() == [0, 1, 1, 2]
    assert (times.sum(axis=1) == 3).all()
    assert times.mean(axis=0) == pytest.approx(1, abs=0.05)


def test_interval_is_wider_for_families_than_for_networks():
    values = np.repeat([0.0, 1.0, 2.0, 3.0, 4.0], 4)
    by_family = statistics.mean_over_families(values, list(np.repeat(list("abcde"), 4)))
    by_network = statistics.mean_over_families(values, [str(index) for index in range(20)])
    assert by_family[0] == by_network[0] == 2
    assert by_family[1] < by_network[1] < 2 < by_network[2] < by_family[2]


def test_median_over_pairs_has_the_interval_of_its_families():
    pairs = {"aa": 0.9, "ab": 0.1, "ac": 0.2, "bc": 0.3}
    value, low, high = statistics.median_over_pairs(
        list(pairs.values()), [p[0] for p in pairs], [p[1] for p in pairs], list("abc")
    )
    assert (value, low, high) == pytest.approx((0.25, 0.1, 0.9))


def test_a_change_of_order_is_that_of_the_two_orders():
    after, y, families = [1.0, 2, 3, 4, 5], [2.0, 1, 4, 3, 5], list("aabbc")
    value, low, high = statistics.change_of_order(after[::-1], after, y, families)
    assert value == pytest.approx(2 * statistics.order(after, y)) and low <= value <= high
    assert statistics.change_of_order(after, after, y, families) == (0, 0, 0)


def test_profiles_that_differ_by_shift_and_scale_are_shared_whole():
    profile = np.arange(10.0)
    covariance = np.cov([profile, 3 * profile + 1, profile / 2])
    assert statistics.common_share(covariance, np.array(["a", "b", "c"])) == pytest.approx(1)


def test_pairs_within_a_family_do_not_count():
    covariance = np.array([[1.0, 1.0, 0.2], [1.0, 1.0, 0.4], [0.2, 0.4, 1.0]])
    assert statistics.common_share(covariance, np.array(["a", "a", "b"])) == pytest.approx(0.3)
    assert np.isnan(statistics.common_share(covariance, np.array(["a", "a", "a"])))


def made_networks(rng, *, shared, images=40, networks=4):
    """Right or wrong by network and image; class rates of variance .01, a share of it common to all networks."""
    common, own = rng.normal(size=CLASSES), rng.normal(size=(networks, CLASSES))
    rates = np.clip(0.5 + 0.1 * (np.sqrt(shared) * common + np.sqrt(1 - shared) * own), 0, 1)
    labels = np.repeat(np.arange(CLASSES), images)
    # The same images are hard for all networks.
    hard = rng.random(len(labels))
    return (hard < rates[:, labels]).astype(float), labels, rates


def test_noise_of_the_images_is_taken_off():
    rng = np.random.default_rng(0)
    errors = []
    for _ in range(100):
        values, labels, rates = made_networks(rng, shared=0.5)
        observed, noise = statistics.profile_covariances(values, labels, CLASSES)
        errors.append([observed - np.cov(rates), observed - noise - np.cov(rates)])
    naive, corrected = np.mean(errors, axis=0)
    assert (naive > 0.003).all(), "images shared by networks make them look alike"
    assert np.abs(corrected).max() < 0.0015


def test_the_interval_of_the_share_holds_what_was_planted():
    rng = np.random.default_rng(1)
    for shared in (0.0, 1.0):
        values, labels, rates = made_networks(rng, shared=shared, images=400, networks=6)
        names = list("abcdef")
        truth = statistics.common_share(np.cov(rates), np.array(names))
        value, low, high = statistics.common_share_interval(values, labels, names, CLASSES, draws=200)
        assert low - 0.05 <= truth <= high + 0.05
        assert value == pytest.approx(truth, abs=0.15)


@pytest.mark.parametrize("average", [statistics.mean_over_families, statistics.order_over_families])
def test_no_network_is_left_out_silently(average):
    values = [[1.0, np.nan, 3.0]] * (1 if average is statistics.mean_over_families else 2)
    with pytest.raises(ValueError, match="1 of 3 networks"):
        average(*values, list("abc"))


def test_scores_far_below_the_tolerance_of_ties_keep_their_order():
    scores = np.array([2e-12, 5e-11, 7e-10, 5e-8])
    assert statistics.order(scores, scores[::-1]) == pytest.approx(-1)
    assert np.isnan(statistics.order(np.zeros(4), scores))


def corrupted_samples(rng, images=300):
    """Samples of two networks under two corruptions that change nothing: as many wrong as right."""
    labels = rng.integers(CLASSES, size=images)
    said = np.where(rng.random(images) < 0.5, labels, rng.integers(CLASSES, size=images))
    own = pd.DataFrame({"label": labels, "prediction": said, "clean_prediction": said})
    return pd.concat([own.assign(model=model, corruption=name) for model in "ab" for name in ("fog", "snow")])


def test_corruptions_that_change_nothing_keep_every_class():
    """Whatever all images of the network look like: undisturbed values are of the images that are corrupted."""
    rows = measurements.corruptions(corrupted_samples(np.random.default_rng(0)))
    assert [row.pop("model") for row in rows] == ["a", "b"]
    assert all(value == 1 for row in rows for value in row.values())


def test_of_tied_classes_one_that_stays_is_counted_apart_from_all():
    label = np.arange(CLASSES)
    # Undisturbed 0 and 1 are never recognised; disturbed 1 alone.
    clean, disturbed = np.where(label < 2, 9, label), np.where(label == 1, 9, label)
    rows = pd.DataFrame({"label": label, "prediction": disturbed, "clean_prediction": clean, "model": "a"})
    (found,) = measurements.corruptions(rows.assign(corruption="fog"))
    assert (found["weakest"], found["all_weakest"], found["most_reached"], found["all_most_reached"]) == (1, 0, 1, 1)


# What is kept


def test_the_table_has_every_class_of_every_network(table):
    assert len(table) == 250
    assert table.groupby("networks")["model"].nunique().to_dict() == {"published": 8, "checkpoints": 17}
    images = table.groupby("model")["n"].sum()
    assert set(images) == {10_000, 1017}
    checkpoints = table[table["networks"] == "checkpoints"]
    attacked = [name for name in table if not name.startswith(("target_", "reached_"))]
    assert checkpoints[attacked].notna().all(axis=None)
    towards = checkpoints[checkpoints["target_success"].notna()]
    assert towards["model"].nunique() == 13 and "ResNet" not in set(towards["family"])
    assert (checkpoints["attacked_recall"] <= checkpoints["recall"]).all()
    assert checkpoints["family"].nunique() == 5
    assert table.groupby("model")["cfps"].sum().to_numpy() == pytest.approx(1, abs=1e-5)


def test_no_score_is_rounded_to_nothing(table):
    for column in ("great_softmax", "great_sigmoid"):
        assert (table[column] > 0).all() and (table.groupby("model")[column].nunique() == CLASSES).all()


def class_rows(logits, labels):
    """Recall, CFPS, CWA and softmax score of each class from logits."""
    predicted = predictions(logits, labels)
    matrix = confusion_matrix(labels, predicted, CLASSES)
    errors = class_errors(matrix, np.bincount(labels, minlength=CLASSES))
    score = class_means(scores(logits, labels, activation="softmax"), labels, CLASSES)
    return np.transpose([errors.recall, errors.cfps, errors.one_vs_rest_accuracy, score])


def kept_rows(table, model):
    return table[table["model"] == model][["recall", "cfps", "cwa", "great_softmax"]].to_numpy()


def test_the_published_networks_give_what_is_kept(table, real_data):
    leads = real_network_measurements()["logit_leads"]
    for path in sorted((real_data / "cifar10/logits").glob("*.npz")):
        with np.load(path) as file:
            logits, labels = file["logits"].astype(np.float64), file["labels"].astype(np.int64)
        assert kept_rows(table, path.stem) == pytest.approx(class_rows(logits, labels), abs=2e-6)
        ordered = np.sort(logits, axis=1)
        lead = np.where(logits.argmax(axis=1) == labels, ordered[:, -1] - ordered[:, -2], 0)
        assert leads[path.stem] == pytest.approx(lead.mean(), abs=1e-5)


@pytest.mark.parametrize("name", ["kw_base_2_255", "cnn_a_mix", "std_marabou_small"])
def test_a_checkpoint_gives_what_is_kept(table, real_data, name, monkeypatch):
    monkeypatch.setenv(FOLDER_VARIABLE, str(ARCHITECTURES))
    folder = real_data / "cifar10/models"
    facts = json.loads((folder / "models.json").read_text(encoding="utf-8"))[name]
    settings = torch_entry(name, facts, folder)
    manifest = {"source": "torch", "path": settings["path"], "sha256": facts["sha256"], "settings": settings}
    classifier = open_classifier(manifest, image_shape=[3, 32, 32], classes=CLASSES)
    with np.load(real_data / "cifar10/test_lossless_1017.npz") as file:
        images, labels = file["x"].astype(np.float32) / 255, file["y"].astype(np.int64)
    with torch.no_grad():
        logits = classifier.network(torch.from_numpy(images)).numpy()
    # Another processor may decide an image at the boundary otherwise: one of 84 in a class.
    assert kept_rows(table, name) == pytest.approx(class_rows(logits, labels), abs=0.015)
