import weakref
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.stats import spearmanr

from gfscore.audit.calibration import attack_free, rank_objectives
from gfscore.audit.calibration.evidence import ModelEvidence
from gfscore.audit.calibration.temperature_search import Stretches, optimum, two_phase_grid
from gfscore.audit.calibration.temperatures import calibrate
from gfscore.audit.calibration_results import as_json, read_calibrations
from gfscore.audit.settings import OBJECTIVES, TemperatureGrid
from gfscore.core.errors import InputError
from gfscore.core.files import write_json
from gfscore.statistics.classes import class_values, split_samples
from gfscore.statistics.curves import sweep_class_scores
from gfscore.statistics.margins import predictions
from helpers.samples import logits_and_labels

SEARCH = TemperatureGrid(low=0.01, high=10.0, coarse_step=0.1, fine_step=0.001, fine_radius=0.1)
SHARED = [name for name in OBJECTIVES if name != "likelihood"]


def evidence(index, *, k=4, distance=None):
    distance = (5 - index) ** 2 / 50 if distance is None else distance
    logits, labels = logits_and_labels(index, n=200, k=k, scale=1.0, signal=2.5 - 0.3 * index)
    logits *= 1 + index
    curves = sweep_class_scores(logits, labels, k, activation="sigmoid", low=SEARCH.low, high=SEARCH.high)
    correct = predictions(logits, labels) == labels
    half = split_samples(np.arange(200), labels, share=0.5, rng=np.random.default_rng(0))
    return ModelEvidence(
        name=f"none/{index}",
        curves=curves,
        class_accuracy=class_values(correct, labels, k).mean,
        attack_distance=distance,
        report_curves=curves,
        clean_accuracy=float(correct.mean()),
        report_distance=distance,
        robust_accuracy=index / 10,
        checkpoint=f"c{index}",
        dataset_digest="d",
        read_parts=lambda: tuple((logits[part], labels[part]) for part in (half, ~half)),
    )


MODELS = [evidence(index) for index in range(5)]


def calibrated(objectives=OBJECTIVES, models=MODELS, **changes):
    given = {"measure": "great", "settings": SEARCH, "stability_window": 0.05, "permutations": 99} | changes
    return calibrate(models, objectives, **given)


@pytest.fixture(scope="module")
def found():
    return calibrated()


def test_the_logits_of_one_model_at_a_time_are_in_memory(found):
    read = []

    def read_parts(model):
        assert all(logits() is None for logits in read)
        parts = model.read_parts()
        read.extend(weakref.ref(logits) for logits, _ in parts)
        return parts

    watched = [replace(model, read_parts=partial(read_parts, model)) for model in MODELS]
    results, _ = calibrated(["likelihood"], watched)
    assert results["likelihood"] == found[0]["likelihood"]
    assert len(read) == 2 * len(MODELS)


def test_every_objective_says_how_it_was_searched(found):
    results, _ = found
    assert {name: result.search for name, result in results.items()} == {
        **dict.fromkeys(SHARED, "exact"),
        "likelihood": "minimisation",
    }


def test_the_papers_grid_finds_no_more_than_the_exact_search(found):
    results, _ = found
    for name in SHARED:
        assert results[name].paper_grid.best <= results[name].best + 1e-12
        assert SEARCH.low <= results[name].paper_grid.t_star <= SEARCH.high
    assert results["likelihood"].paper_grid is None


def test_the_curve_holds_the_optimum_and_every_step(found):
    results, rows = found
    for name in SHARED:
        curve = [(row["temperature"], row["value"]) for row in rows.to_dict("records") if row["objective"] == name]
        temperatures, values = np.array(curve).T
        assert temperatures[[0, -1]].tolist() == [SEARCH.low, SEARCH.high]
        assert (np.diff(temperatures) >= 0).all()
        assert values.max() == pytest.approx(results[name].best, abs=1e-12)
        ends = {end for stretch in results[name].stretches for end in stretch}
        assert ends <= set(temperatures)


def test_an_objective_draws_the_same_whatever_else_is_searched():
    name = "within_model_class_accuracy"
    # Ten classes: their orders are drawn. Of accuracies by chance, about any share of them reaches the search's best.
    rng = np.random.default_rng(0)
    models = [replace(evidence(index, k=10), class_accuracy=rng.random(10)) for index in range(3)]
    alone = calibrated([name], models)[0][name]
    assert alone.permutation.method == "random orders"
    assert alone == calibrated(["ranking_stability", name], models)[0][name]
    assert alone.permutation != calibrated([name], models, seed=1)[0][name].permutation


def test_the_value_at_one_is_the_objective_at_one(found):
    results, _ = found
    for name in SHARED:
        assert results[name].at_one <= results[name].best
    agreement = results["cross_model_accuracy"].agreement["clean accuracy"]
    assert results["cross_model_accuracy"].at_one == pytest.approx(agreement.before)
    assert results["cross_model_accuracy"].best == pytest.approx(agreement.after)


def test_on_a_grid_too_the_value_at_one_is_the_objective_at_one(monkeypatch):
    monkeypatch.setattr(rank_objectives, "MOST_RANKED", 3)
    models = [evidence(index, k=12) for index in range(3)]
    curves, accuracy = [model.curves for model in models], np.array([model.class_accuracy for model in models])
    window = {"delta": 0.05, "low": SEARCH.low, "high": SEARCH.high}
    functions = {
        "within_model_class_accuracy": attack_free.within_model_class_accuracy(curves, accuracy),
        "ranking_stability": attack_free.ranking_stability(curves, **window),
        "ranking_stability_endpoints": attack_free.ranking_stability(curves, **window, endpoints_only=True),
    }
    results, rows = calibrated(list(functions), models)
    for name, function in functions.items():
        at_one = function(np.array([1.0]))[0]
        assert results[name].search == "grid"
        assert results[name].at_one == pytest.approx(at_one, abs=1e-12)
        drawn = {row["temperature"]: row["value"] for row in rows.to_dict("records") if row["objective"] == name}
        assert drawn[1.0] == results[name].at_one
        # What the paper finds stays what its own grid finds.
        temperatures, values = two_phase_grid(function, SEARCH)
        found = optimum(Stretches.at(temperatures), values)
        assert results[name].paper_grid.t_star == found.stretches[0][0]
        assert results[name].paper_grid.best == pytest.approx(found.best, abs=1e-12)
    within = functions["within_model_class_accuracy"]([0.91, 1.0])
    assert within[0] != within[1]


def test_the_file_gives_what_was_written(found, tmp_path):
    write_json(tmp_path / "calibration.json", as_json(found[0]))
    assert read_calibrations(tmp_path / "calibration.json") == found[0]


@pytest.mark.parametrize("most_ranked", [3, 100])
@pytest.mark.parametrize("name", ["cross_model_accuracy", "within_model_class_accuracy"])
def test_equal_accuracies_leave_no_optimum(name, most_ranked, monkeypatch):
    monkeypatch.setattr(rank_objectives, "MOST_RANKED", most_ranked)
    models = [evidence(index) for index in range(3)]
    for model in models:
        model.class_accuracy[:] = 0.5
    result = calibrated([name], models)[0][name]
    assert "undefined" in result.undefined and "tied" in result.undefined
    assert result.t_star is None
    assert result.permutation is None


def test_the_attack_distance_objective_ranks_by_distances_and_reports_its_agreement(found):
    results, _ = found
    result = results["attack_distance"]
    assert result.agreement["attack distance"].after == pytest.approx(result.best)
    assert result.agreement["attack distance"].before == pytest.approx(result.at_one)
    assert result.best >= result.at_one
    # What no score is needed for: clean accuracy alone, against the very distances that the objective ranks by.
    clean, distances = ([getattr(model, name) for model in MODELS] for name in ("clean_accuracy", "attack_distance"))
    assert result.baseline["clean accuracy alone vs attack distance"] == pytest.approx(
        spearmanr(clean, distances).statistic
    )


def test_a_model_without_distances_leaves_the_objective_undefined_and_its_agreement_out():
    models = [*MODELS[:4], evidence(4, distance=float("nan"))]
    with pytest.raises(InputError, match="name a measure of kind minimal in l2"):
        calibrated(["attack_distance"], models)
    results, _ = calibrated(["cross_model_accuracy"], models)
    assert set(results["cross_model_accuracy"].agreement) == {"clean accuracy", "robust accuracy"}
    assert set(results["cross_model_accuracy"].baseline) == {"clean accuracy alone vs robust accuracy"}
