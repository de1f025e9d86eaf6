import numpy as np
import pandas as pd
import pytest

from gfscore.audit.calibration.evidence import evidence_of_models
from gfscore.audit.calibration.temperatures import calibrate
from gfscore.audit.settings import CalibrationSplit, TemperatureGrid
from gfscore.core.errors import InputError
from gfscore.core.identity import label_of
from gfscore.statistics.classes import choosing_samples
from gfscore.statistics.curves import sweep_class_scores
from helpers.samples import logits_and_labels
from helpers.steps import audit_inputs, models_named

N, K = 200, 4
MODELS = models_named("m0", "m1", "m2", "m3")
MEASURES = {
    "great": {"kind": "great", "activation": "softmax"},
    "distances": {"kind": "minimal", "norm": "l2", "largest_distance": 5.0},
}
IDS = np.array([f"s{row:03d}" for row in range(N)])
SPLIT = CalibrationSplit(share=0.5)
SEARCH = TemperatureGrid(low=0.1, high=10.0, coarse_step=0.1, fine_step=0.001, fine_radius=0.1)


def made(index):
    # The same labels in every model, as in a data set; every model is confident to a different degree.
    logits, _ = logits_and_labels(index, n=N, k=K, scale=1.0, signal=0.0)
    labels = np.arange(N, dtype=np.int32) % K
    logits[np.arange(N), labels] += 2.5 - 0.3 * index
    return (logits * (1 + index)).astype(np.float32), labels


def chooses():
    return choosing_samples(IDS, made(0)[1], share=SPLIT.share, seed=SPLIT.seed)


@pytest.fixture(scope="module")
def curves():
    """Score of each model over the temperature, by label."""
    swept = {"activation": "softmax", "low": SEARCH.low, "high": SEARCH.high}
    return {label_of(model): sweep_class_scores(*made(index), K, **swept) for index, model in enumerate(MODELS)}


@pytest.fixture
def evidence(tmp_path, curves):
    """Function (distances (M, N), split, measured) -> ModelEvidence of M models.

    Their samples lie at the `distances`, of which those `measured` are in the table; None: no distances are looked at.
    """

    def find(distances, *, split, measured=slice(None)):
        models = MODELS if distances is None else MODELS[: len(distances)]
        tables, logits = {}, {}
        for index, model in enumerate(models):
            name, (values, labels) = model["model"], made(index)
            logits[name] = IDS, labels, values
            frame = pd.DataFrame({"sample_id": IDS, "label": labels, "prediction": labels, "value": 0.5})
            tables[name, "great"] = frame
            if distances is not None:
                near = frame.assign(value=distances[index], clean_prediction=labels, attack="fmn", steps=1)
                tables[name, "distances"] = near[measured]
        measures = {name: MEASURES[name] for name in dict.fromkeys(name for _, name in tables)}
        inputs = audit_inputs(tmp_path, models, measures, tables, logits=logits, calibrated_measure="great")
        accuracies = {model: {"robust_accuracy": 0.1 * i} for i, model in enumerate(inputs.subject.models)}
        given = {"distances": None if distances is None else "distances", "seed": 0, "split": split}
        return evidence_of_models(inputs, curves, accuracies, **given)

    return find


@pytest.mark.parametrize("split", [None, SPLIT])
def test_logits_are_read_when_asked_for_in_the_two_parts_of_the_samples(evidence, tmp_path, split):
    found = evidence(None, split=split)[1]
    logits, labels = made(1)
    parts = found.read_parts()
    for _, of_part in parts:
        np.testing.assert_array_equal(np.bincount(of_part), np.full(K, N / K / 2))
    rows = [(*row, label) for part in parts for row, label in zip(*part, strict=True)]
    assert sorted(rows) == sorted((*row, label) for row, label in zip(logits, labels, strict=True))
    if split:
        np.testing.assert_array_equal(parts[0][0], logits[chooses()])
    (tmp_path / "logits-m1.parquet").unlink()
    with pytest.raises(InputError, match=r"logits-m1\.parquet"):
        found.read_parts()


def test_each_model_has_its_own_accuracies_and_says_what_it_is_of(evidence):
    for index, found in enumerate(evidence(None, split=None)):
        logits, labels = made(index)
        assert (found.name, found.robust_accuracy) == (f"none/m{index}", 0.1 * index)
        assert found.clean_accuracy == np.mean(logits.argmax(axis=1) == labels)
        assert (found.checkpoint, found.dataset_digest) == (f"c-m{index}", "d")
        assert np.isnan([found.attack_distance, found.report_distance]).all()


def calibrated(evidence, distances, *, split=SPLIT):
    given = {"measure": "great", "settings": SEARCH, "stability_window": 0.05, "permutations": 19, "split": split}
    return calibrate(evidence(distances, split=split), ["attack_distance"], **given)[0]["attack_distance"]


def test_distances_of_samples_that_report_the_temperature_do_not_choose_it(evidence):
    own = np.array([0.2, 0.5, 0.9, 0.4])
    before = np.tile(own[:, None], N)
    # Among the samples that report, the models change places, and go far enough to reverse the means over all.
    after = np.where(chooses(), before, 3 * before[::-1])
    first, second = calibrated(evidence, before), calibrated(evidence, after)
    for key in ("t_star", "stretches", "best", "at_one", "permutation"):
        assert getattr(first, key) == getattr(second, key), key
    # They do report it.
    assert first.agreement["attack distance"] != second.agreement["attack distance"]
    assert first.baseline != second.baseline
    # Without a split all samples choose.
    assert calibrated(evidence, before, split=None).t_star != calibrated(evidence, after, split=None).t_star


def test_each_part_of_the_samples_has_its_own_mean_distance(evidence):
    distances = np.where(chooses(), 1.0, 3.0)
    (found,) = evidence([distances], split=SPLIT)
    assert (found.attack_distance, found.report_distance) == (1, 3)
    (whole,) = evidence([distances], split=None)
    assert whole.attack_distance == whole.report_distance == pytest.approx(distances.mean())


def test_an_attacked_part_without_samples_that_choose_says_what_to_do(evidence):
    distances = [np.ones(N)]
    with pytest.raises(InputError, match=r"none of its 100 samples .* `subset` .* or set `split: null`"):
        evidence(distances, split=SPLIT, measured=~chooses())
    # One that nobody reports has no agreement to report, but chooses.
    (found,) = evidence(distances, split=SPLIT, measured=chooses())
    assert found.attack_distance == 1
    assert np.isnan(found.report_distance)


@pytest.mark.parametrize(("share", "task"), [(0.001, "choose"), (0.999, "report")])
def test_a_split_that_leaves_a_part_fewer_than_two_classes_is_refused(evidence, share, task):
    with pytest.raises(InputError, match=rf"the share {share} . of 200 samples {task} the temperature.*`split: null`"):
        evidence(None, split=CalibrationSplit(share=share))
