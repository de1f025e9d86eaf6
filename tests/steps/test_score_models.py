"""The step score_models: which logits are audited, and every measure that is made of them."""

import shutil

import numpy as np
import pandas as pd
import pytest

from fetch_dataset import fetch_dataset
from gfscore.audit.calibration.evidence import read_sweeps
from gfscore.audit.checks import PublishedAccuracy, check_logits, selection_of
from gfscore.audit.samples import ModelLogits, ScoresFile, stored_values, supplied_logits
from gfscore.core.dataset_manifest import DatasetManifest
from gfscore.core.digests import sha256_of_file
from gfscore.core.errors import InputError
from gfscore.core.files import read_json, write_json
from gfscore.core.identity import ModelName
from gfscore.statistics.curves import sweep_class_scores
from gfscore.statistics.margins import predictions, scores
from gfscore.tables import parquet_tables
from gfscore.tables.parquet_tables import read_identity, read_table
from gfscore.tables.table import DATASET
from gfscore.workflow.catalogue import CATALOGUE
from helpers.steps import AUDIT, DIGEST, NAMES, UNPUBLISHED, made_logits, models_named, three_models, write_dataset

WEAK, MIDDLE, STRONG = models_named("weak", "middle", "strong")


@pytest.fixture(scope="module")
def audit(tmp_path_factory):
    audit = three_models(tmp_path_factory.mktemp("audit"))
    audit.score()
    return audit


def test_every_measure_from_logits_of_every_model_stands_in_one_table(audit):
    file = ScoresFile(audit.scored["scores"])
    assert (file.identity["audit"], file.identity["dataset_digest"], file.identity["classes"]) == (AUDIT, DIGEST, NAMES)
    assert file.identity["logits"]["none/strong"]["checkpoint_sha256"] == "c-strong"
    for index, model in enumerate((WEAK, MIDDLE, STRONG)):
        logits, labels = made_logits(index)
        clean, great = (file.read(ModelName.from_columns(model), measure) for measure in ("clean", "great"))
        for frame in (clean, great):
            assert (frame[list(model)] == list(model.values())).all(axis=None)
            assert frame["sample_id"].tolist() == audit.ids.tolist()
            assert frame["label"].tolist() == labels.tolist()
            assert frame["prediction"].tolist() == predictions(logits, labels).tolist()
            assert not frame["censored"].any()
        assert clean["value"].tolist() == (predictions(logits, labels) == labels).tolist()
        np.testing.assert_array_equal(great["value"], scores(logits, labels, activation="softmax"))
    assert len(read_table(audit.scored["scores"], CATALOGUE["scores"])) == 3 * 2 * 120


def test_sweeps_are_read_back_as_the_curves_that_they_are_of(audit):
    found = read_sweeps(audit.scored["sweeps"], audit=AUDIT)
    assert list(found) == ["none/weak", "none/middle", "none/strong"]
    curves = sweep_class_scores(*made_logits(1), len(NAMES), activation="softmax", low=0.01, high=10)
    at = np.array([0.02, 0.37, 1.0, 9.0])
    assert np.array_equal(found["none/middle"](at), curves(at))
    assert np.array_equal(found["none/middle"].n, curves.n)


def test_sensitivity_shows_that_softmax_ignores_a_shift(audit):
    table = audit.read("sensitivity")
    assert len(table) == 3 * 5
    shifts, scales = table[table["scale"] == 1], table[table["shift"] == 0]
    spread = [
        rows.groupby("model")["value"].agg(lambda values: values.max() - values.min()) for rows in (shifts, scales)
    ]
    assert spread[0].max() < 1e-6
    assert spread[1].min() > 0.05
    assert table["place"].between(1, 3).all()
    assert read_identity(audit.scored["sensitivity"])["measured"]


def test_without_a_score_there_are_neither_sweeps_nor_sensitivity(tmp_path):
    audit = three_models(tmp_path, calibrated=None)
    audit.measures = {"clean": {"kind": "clean"}}
    audit.score()
    assert read_sweeps(audit.scored["sweeps"], audit=AUDIT) == {}
    assert audit.read("sensitivity").empty and not read_identity(audit.scored["sensitivity"])["measured"]


# Which models take part


def logits_of(index):
    logits, labels = made_logits(index)
    return ModelLogits(np.arange(len(labels)).astype(str), labels, logits, {})


def check(index=0, **gate):
    """What is found of one model's logits."""
    return check_logits(logits_of(index), NAMES, source="weak.parquet", gate=PublishedAccuracy(**UNPUBLISHED | gate))


def test_the_gate_on_logits_records_what_it_measured(audit):
    logits, labels = made_logits(0)
    recorded = check()
    assert recorded.clean_accuracy == np.mean(logits.argmax(axis=1) == labels)
    assert (recorded.samples, recorded.accepted, recorded.words) == (120, True, None)
    selection = read_json(audit.scored["selection"])
    assert selection["clean_accuracy"]["none/weak"] == recorded.clean_accuracy
    assert selection["included"] == ["none/weak", "none/middle", "none/strong"] and not selection["excluded"]


def test_another_accuracy_than_the_published_one_stops_the_run_or_is_recorded():
    with pytest.raises(InputError, match=r"weak\.parquet: .*published 10\.00%.*correct the model's entry"):
        check(published=0.1, samples="full")
    recorded = check(published=0.1, samples="full", on_failure="exclude")
    assert not recorded.accepted
    assert "published 10.00%" in recorded.words


def test_the_published_accuracy_binds_only_on_the_samples_it_was_published_on():
    uncompared = check(published=0.1, samples=None)
    assert uncompared.accepted and uncompared.words.startswith("published accuracy 0.1 not compared")
    measured = check().clean_accuracy
    assert not check(published=measured + 0.05, samples="full", on_failure="exclude").accepted
    # On 120 samples of the test set five points are within chance.
    assert check(published=measured + 0.05, samples="subset").accepted


def test_a_model_that_stops_the_run_leaves_no_file(tmp_path):
    audit = three_models(tmp_path)
    audit.checks[1]["gate"] = UNPUBLISHED | {"published": 0.1, "samples": "full"}
    with pytest.raises(InputError, match=r"middle\.parquet: .*published 10\.00%"):
        audit.score()
    assert not [path for name, path in audit.scored.items() if name != "dataset" and path.exists()]


def test_a_refused_model_is_left_out_of_every_table_and_named(tmp_path):
    audit = three_models(tmp_path)
    refused = UNPUBLISHED | {"published": 0.1, "samples": "full", "on_failure": "exclude"}
    audit.checks[1]["gate"] = refused
    selection = audit.score()
    assert selection["included"] == ["none/weak", "none/strong"]
    (excluded,) = selection["excluded"]
    assert excluded["model"] == "none/middle" and "published 10.00%" in excluded["reason"]
    assert set(selection["clean_accuracy"]) == {"none/weak", "none/middle", "none/strong"}
    for name in ("scores", "sweeps", "sensitivity"):
        assert set(read_table(audit.scored[name], CATALOGUE[name])["model"]) == {"weak", "strong"}
    for asked in audit.checks:
        asked["gate"] = refused
    with pytest.raises(
        InputError, match=r"no model of the audit passed.*none/weak: .*none/strong: .*published 10"
    ) as raised:
        audit.score()
    assert "exclude" not in str(raised.value), "which is set already"


def test_models_that_bring_values_per_sample_take_part_without_a_check():
    weak = ModelName.from_columns(WEAK)
    found = selection_of({weak: check()}, [weak, ModelName("toy", "none", "given")])
    assert found["included"] == ["none/weak", "none/given"] and set(found["clean_accuracy"]) == {"none/weak"}


# Logits that are refused


@pytest.mark.parametrize(
    ("identity", "message"),
    [
        ({"model": "strong"}, "its model is 'strong', but 'weak' is expected"),
        ({"dataset_digest": "e"}, "its dataset_digest is 'e', but 'd' is expected"),
    ],
)
def test_logits_of_another_model_and_of_other_data_are_refused(tmp_path, identity, message):
    audit = three_models(tmp_path)
    audit.write_logits("weak", *made_logits(0), **identity)
    with pytest.raises(InputError, match=rf"weak\.parquet: {message}"):
        audit.score()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"samples": 121}, "120 rows, but toy has 121 samples"),
        ({"classes": NAMES[:3]}, "4 logits per row, but 3 class"),
    ],
)
def test_missing_rows_and_other_classes_are_refused(tmp_path, changes, message):
    audit = three_models(tmp_path)
    write_json(audit.manifest, read_json(audit.manifest) | changes)
    with pytest.raises(InputError, match=message):
        audit.score()


def test_probabilities_are_refused_unless_the_model_says_that_it_gives_them(tmp_path):
    audit = three_models(tmp_path)
    logits, labels = made_logits(0)
    odds = np.exp(logits)
    audit.write_logits("weak", odds / odds.sum(axis=1, keepdims=True), labels)
    with pytest.raises(InputError, match=r"weak\.parquet: .*probabilities, not logits"):
        audit.score()
    audit.checks[0]["allow_probabilities"] = True
    assert "none/weak" in audit.score()["included"]


def test_the_score_of_logarithms_of_probabilities_is_that_of_the_logits(audit, tmp_path):
    given = three_models(tmp_path, given=("weak",))
    logits, labels = made_logits(0)
    odds = np.exp(logits.astype(np.float64))
    np.savez(tmp_path / "p.npz", logits=odds / odds.sum(axis=1, keepdims=True), labels=labels)
    given.subject["logits"]["none/weak"] = str(tmp_path / "p.npz")
    given.checks[0]["allow_probabilities"] = "logarithms"
    given.score()
    found, expected = ScoresFile(given.scored["scores"]), ScoresFile(audit.scored["scores"])
    weak = ModelName.from_columns(WEAK)
    np.testing.assert_allclose(
        found.read(weak, "great")["value"], expected.read(weak, "great")["value"], rtol=1e-4, atol=1e-6
    )
    identity = found.identity["logits"]["none/weak"]
    assert identity["allow_probabilities"] == "logarithms" and "logarithms" in identity["outputs"]


def test_logits_of_a_file_are_read_back_as_they_were_scored(tmp_path):
    labels = np.array([0, 1, 1, 0])
    p = np.array([0.2, 0.9, 1.0, 0.0])
    np.savez(tmp_path / "p.npz", logits=p, labels=labels)
    manifest = DatasetManifest(dataset="two", classes=["a", "b"], samples=4, digest="d")
    samples = pd.DataFrame({"label": labels, "sample_id": list("abcd")})
    how = {"model": ModelName.from_columns(WEAK), "allow_probabilities": "logarithms"}
    scored = supplied_logits(tmp_path / "p.npz", manifest, samples, **how).logits
    assert scored.shape == (4, 2) and np.isfinite(scored).all()
    np.testing.assert_array_equal(stored_values(tmp_path / "p.npz", ["a", "b"], logarithms=True), scored)


# Logits of users beside the dataset that they belong to: as many rows as it has samples, of all or of a subset


def test_logits_that_somebody_brings_are_scored_as_those_that_the_workflow_computes(audit, tmp_path):
    given = three_models(tmp_path, given=("weak", "strong"))
    given.score()
    found, expected = ScoresFile(given.scored["scores"]), ScoresFile(audit.scored["scores"])
    for model in (WEAK, MIDDLE, STRONG):
        name = ModelName.from_columns(model)
        assert found.read(name, "great").equals(expected.read(name, "great"))
    about = found.identity["logits"]["none/weak"]
    assert about["checkpoint_sha256"] == sha256_of_file(given.logits["none/weak"])
    assert (about["model"], about["dataset_digest"], about["dtype"]) == ("weak", DIGEST, "float32")


def test_corrected_labels_of_the_dataset_change_what_is_kept_of_a_file_without_labels(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_tables, "WORTH_STORING", -1)
    given = three_models(tmp_path, given=("weak",))
    given.logits = {"none/weak": given.logits["none/weak"]}
    given.models, given.checks = given.models[:1], given.checks[:1]
    given.score()
    corrected = given.labels.copy()
    corrected[:40] = (corrected[:40] + 1) % len(NAMES)
    write_dataset(given.dataset, pd.DataFrame({"sample_id": given.ids, "label": corrected}))
    given.score()
    kept = [read_table(given.scored[name], CATALOGUE[name]) for name in ("sweeps", "sensitivity")]

    shutil.rmtree(tmp_path / "cache")
    given.score()
    for name, frame in zip(("sweeps", "sensitivity"), kept, strict=True):
        assert len(frame) and frame.equals(read_table(given.scored[name], CATALOGUE[name])), name


LABELS = np.arange(200) % 2
LOGITS = np.random.default_rng(0).normal(size=(200, 2)).astype(np.float32)


@pytest.fixture
def given(tmp_path):
    """Function (subset, arrays) -> ModelLogits of a file of these arrays, and the samples of the dataset."""
    np.save(tmp_path / "labels.npy", LABELS)

    def make(subset, **arrays):
        made = tmp_path / "made.json", tmp_path / "made.parquet"
        settings = {"source": "labels", "subset": subset}
        fetch_dataset(settings, ["cat", "dog"], *made, dataset="made", path_to_images=tmp_path / "labels.npy")
        np.savez(tmp_path / "given.npz", **arrays)
        samples = read_table(made[1], DATASET)
        how = {"model": ModelName("made", "none", "weak"), "allow_probabilities": False}
        return supplied_logits(tmp_path / "given.npz", DatasetManifest.read(made[0]), samples, **how), samples

    return make


@pytest.mark.parametrize("others", [{}, {"labels": LABELS}])
def test_logits_of_all_samples_beside_a_subset_are_refused_with_what_to_do(given, others):
    with pytest.raises(InputError, match=r"given\.npz: 200 rows, but made has 100 samples; .*or set subset: null$"):
        given({"samples": 100, "seed": 0}, logits=LOGITS, **others)


def test_logits_of_the_samples_of_a_subset_are_taken(given):
    found, samples = given({"samples": 100, "seed": 0}, logits=LOGITS[:100])
    assert len(samples) == 100
    assert list(found.sample_id) == list(samples["sample_id"]) and list(found.labels) == list(samples["label"])


@pytest.mark.parametrize("arrays", [{"logits": LOGITS[:199]}, {"logits": LOGITS, "labels": LABELS[:199]}])
def test_a_missing_row_is_refused_with_what_to_do(given, arrays):
    with pytest.raises(InputError, match=r"199 rows, but made has 200 samples; give one row per sample, in the order"):
        given(None, **arrays)


def test_labels_of_another_order_are_refused_by_the_first_row_that_differs(given):
    with pytest.raises(InputError, match=r"given\.npz: row 0 has label 1, but made has 0; give the rows in the order"):
        given(None, logits=LOGITS, labels=1 - LABELS)


def test_logits_without_rows_are_refused_for_their_shape(given):
    with pytest.raises(InputError, match=r"logits have shape \(\)"):
        given(None, logits=np.float32(1))
