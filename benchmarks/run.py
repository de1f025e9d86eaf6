"""Speed side by side in one run: python benchmarks/run.py writes benchmarks/results.json.

Ratios, not seconds: each figure is the baseline's time divided by ours on the same machine in the same run, so higher
is better. A slow baseline runs on a stated subset and is scaled up.
"""

import argparse
import json
import os
import platform
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "workflow_scripts")]

import baseline
import numpy as np

from gfscore.calibration import cross_model_accuracy
from gfscore.classes import class_values
from gfscore.curves import sweep_class_scores
from gfscore.disparity import nrgc
from gfscore.margins import predictions, scores
from gfscore.model_evidence import ModelEvidence
from gfscore.temperature_search import SearchSettings, two_phase_grid
from gfscore.temperatures import Resampling, calibrate

SEARCH = SearchSettings(low=0.01, high=10.0, coarse_step=0.1, fine_step=0.001, fine_radius=0.1)


def made_logits(n, k, seed):
    """Logits (n, k) float32 of a classifier that is right on about three samples in four, and labels (n,)."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n, dtype=np.int32) % k
    logits = rng.normal(size=(n, k)).astype(np.float32)
    logits[np.arange(n), labels] += 2.5
    return logits, labels


def seconds(function, *, repeats=5):
    """Shortest of several runs, in seconds, and the function's result."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = function()
        times.append(time.perf_counter() - start)
    return min(times), result


def one_temperature(activation):
    """Class scores of 10,000 x 10 at one temperature."""
    logits, labels = made_logits(10_000, 10, seed=0)
    subset = slice(0, 2_000)
    slow, expected = seconds(
        lambda: baseline.class_scores(logits[subset], labels[subset], activation=activation, temperature=1.0), repeats=1
    )
    values = scores(logits[subset], labels[subset], activation=activation)
    np.testing.assert_allclose(class_values(values, labels[subset], 10).mean, expected, rtol=1e-5)
    fast, _ = seconds(lambda: class_values(scores(logits, labels, activation=activation), labels, 10).mean)
    return {
        "name": f"class scores at one temperature, {activation}",
        "ratio": slow * 5 / fast,
        "target": None,
        "detail": f"10,000 x 10; ours {1e3 * fast:.2f} ms; baseline on 2,000 samples x 5 = {1e3 * slow * 5:.0f} ms",
    }


def calibration():
    """Cross-model calibration of 17 models x 10,000 x 10 over the paper's two-phase grid, from the logits."""
    models = [made_logits(10_000, 10, seed) for seed in range(17)]
    accuracy = np.array([class_values(predictions(*pair) == pair[1], pair[1], 10).mean for pair in models])

    def ours():
        curves = [sweep_class_scores(*pair, 10, activation="sigmoid", low=0.01, high=10.0) for pair in models]
        return two_phase_grid(cross_model_accuracy(curves, accuracy), SEARCH)

    fast, (temperatures, _) = seconds(ours, repeats=3)
    evaluations = len(temperatures)
    whole = plain_seconds(models[0]) * 17 * evaluations
    return {
        "name": "calibration over the two-phase grid",
        "ratio": whole / fast,
        "target": None,
        "detail": f"17 x 10,000 x 10, {evaluations} temperatures; ours {fast:.2f} s; baseline on 2,000 samples "
        f"of one model at one temperature, scaled to {whole:.0f} s",
    }


def exact_calibration():
    """Every rank objective of 17 models x 10,000 x 10, searched exactly with its uncertainty, from the logits."""
    models = [made_logits(10_000, 10, seed) for seed in range(17)]
    objectives = ["cross_model_accuracy", "within_model_class_accuracy", "ranking_stability"]
    resampling = Resampling(bootstrap=999, confidence=0.95, permutations=9_999, seed=0)

    def evidence(index, logits, labels):
        curves = sweep_class_scores(logits, labels, 10, activation="sigmoid", low=SEARCH.low, high=SEARCH.high)
        accuracy = class_values(predictions(logits, labels) == labels, labels, 10)
        measured = (curves, accuracy.mean, curves, accuracy.aggregate, index / 17)
        return ModelEvidence(f"none/{index}", *measured, "", "", held_out=(), report=())

    def ours():
        known = [evidence(index, *pair) for index, pair in enumerate(models)]
        return calibrate(known, objectives, settings=SEARCH, stability_window=0.05, resampling=resampling)

    fast, _ = seconds(ours, repeats=3)
    evaluations = len(SEARCH.coarse()) + len(SEARCH.fine(5.0))
    whole = plain_seconds(models[0]) * 17 * evaluations
    return {
        "name": "exact calibration by three rank objectives",
        "ratio": whole / fast,
        "target": None,
        "detail": f"17 x 10,000 x 10 with bootstrap and permutations; ours {fast:.2f} s; baseline only scores the "
        f"{evaluations} temperatures of the two-phase grid, scaled to {whole:.0f} s",
    }


def plain_seconds(pair):
    """Seconds that the baseline takes for the class scores of one model at one temperature, from 2,000 samples."""
    logits, labels = pair
    slow, _ = seconds(
        lambda: baseline.class_scores(logits[:2_000], labels[:2_000], activation="sigmoid", temperature=2.0), repeats=1
    )
    return slow * len(labels) / 2_000


def gini():
    """Gini coefficient of 1,000 class values."""
    values = np.random.default_rng(0).random(1_000)
    slow, expected = seconds(lambda: baseline.gini(values.tolist()), repeats=1)
    fast, result = seconds(lambda: nrgc(values), repeats=50)
    np.testing.assert_allclose(result, expected, rtol=1e-12)
    return {
        "name": "Gini coefficient of 1,000 classes",
        "ratio": slow / fast,
        "target": None,
        "detail": f"ours {1e6 * fast:.0f} us; baseline {slow:.2f} s",
    }


def main():
    """Run every comparison, print a table and write results.json."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=HERE / "results.json", help="where the figures go")
    output = parser.parse_args().output
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}, numpy {np.__version__}"
    results = []
    for compare in (
        lambda: one_temperature("sigmoid"),
        lambda: one_temperature("softmax"),
        calibration,
        exact_calibration,
        gini,
    ):
        result = compare()
        results.append({**result, "unit": "times as fast as the baseline", "machine": machine})
        target = f"(target {result['target']})" if result["target"] else ""
        print(f"{result['name']}: {result['ratio']:.0f} times as fast {target}\n    {result['detail']}", flush=True)
    output.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
