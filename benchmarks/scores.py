"""Speed of the score kernels and of calibration beside a plain loop over samples, on one core but where it says two."""

import multiprocessing
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import baseline
import numpy as np
from timing import in_turns, made_logits, row

from gfscore.audit.calibration.attack_free import cross_model_accuracy
from gfscore.audit.calibration.evidence import ModelEvidence
from gfscore.audit.calibration.temperature_search import two_phase_grid
from gfscore.audit.calibration.temperatures import calibrate
from gfscore.audit.metrics.nrgc import METRIC as NRGC
from gfscore.audit.settings import TemperatureGrid
from gfscore.statistics.classes import class_means, class_values
from gfscore.statistics.curves import CACHED_EXPONENTIALS, class_scores_by_temperature, sweep_class_scores
from gfscore.statistics.margins import predictions, scores
from gfscore.tables.parquet_tables import write_logits

SEARCH = TemperatureGrid(low=0.01, high=10.0, coarse_step=0.1, fine_step=0.001, fine_radius=0.1)
CALLS = 20
SUBSET = 1_000
"""Samples that the loop of the baseline does; its time is scaled up to all of them."""

MODELS = 17
MEMORY_WANTED = 1024
"""MiB of a process that reads 50,000 x 1,000 logits and sweeps them."""


def looped(logits, labels, activation):
    """Class scores by the baseline on a subset, as a function without arguments."""
    part = logits[:SUBSET], labels[:SUBSET]
    return partial(baseline.class_scores, *part, activation=activation, temperature=1.0)


def one_temperature(activation):
    """Class scores of 10,000 x 10 at one temperature, and the least that numpy needs for their definition."""
    logits, labels = made_logits(10_000, 10)

    def ours(rows=slice(None)):
        return class_means(scores(logits[rows], labels[rows], activation=activation), labels[rows], 10)

    np.testing.assert_allclose(ours(slice(SUBSET)), looped(logits, labels, activation)(), rtol=1e-5)
    exponents, margins = -np.abs(logits[:, 0].astype(np.float64)), np.empty(len(labels))
    powers = np.empty((10 if activation == "softmax" else 2, len(labels)))

    def least():
        # Logits class by class in double precision, as the largest of them needs, the exponentials and the class sums.
        copied = logits.T.astype(np.float64, order="C")
        np.exp(copied[: len(powers)], out=powers)
        np.expm1(exponents, out=margins)
        np.bincount(labels, weights=margins, minlength=10)

    # A call is too short for the clock of the processor.
    def repeated(function):
        return lambda: [function() for _ in range(CALLS)]

    loop = looped(logits, labels, activation)
    spent = in_turns({"loop": loop, "ours": repeated(ours), "least": repeated(least)}, repeats=9)
    slow, fast, bare = spent["loop"] * len(labels) / SUBSET, spent["ours"] / CALLS, spent["least"] / CALLS
    # Both cores are measured beside a loop of the same moment: what a core gives changes from second to second.
    moments = [(in_turns({"loop": loop}, repeats=3)["loop"], on_both_cores(repeated(ours)) / CALLS) for _ in range(9)]
    ratio = np.median([one / both for one, both in moments]) * len(labels) / SUBSET
    shared = np.median([both for _, both in moments])
    return row(
        f"class scores at one temperature, {activation}, two models at a time",
        ratio,
        f"10,000 x 10 on 2 cores; ours {1e3 * shared:.2f} ms a model; baseline on {SUBSET:,} samples, scaled to "
        f"{1e3 * slow:.0f} ms. One model at a time {1e3 * fast:.2f} ms, {slow / fast:.0f} times; a copy of the logits, "
        f"the exponentials and the class sums alone {1e3 * bare:.2f} ms, {slow / bare:.0f} times",
        target=150,
    )


def on_both_cores(function):
    """Seconds per call of a function that two processes call at once, as the workflow scores two models."""
    calls = 25

    def timed(times, ready):
        ready.wait()
        start = time.perf_counter()
        for _ in range(calls):
            function()
        times.put(time.perf_counter() - start)

    context = multiprocessing.get_context("fork")
    times, ready = context.SimpleQueue(), context.Barrier(2)
    workers = [context.Process(target=timed, args=(times, ready)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        if worker.exitcode:
            raise SystemExit(f"a process that scored ended with exit code {worker.exitcode}")
    return max(times.get() for _ in workers) / (2 * calls)


def grid_calibration():
    """Cross-model calibration of 17 models x 10,000 x 10 over the paper's two-phase grid, from the logits."""
    models = [made_logits(10_000, 10, seed) for seed in range(MODELS)]
    accuracy = np.array([class_means(predictions(*pair) == pair[1], pair[1], 10) for pair in models])

    def ours():
        curves = [sweep_class_scores(*pair, 10, activation="sigmoid", low=0.01, high=10.0) for pair in models]
        return two_phase_grid(cross_model_accuracy(curves, accuracy), SEARCH)

    evaluations = len(ours()[0])
    spent = in_turns({"loop": looped(*models[0], "sigmoid"), "ours": ours})
    slow = spent["loop"] * 10_000 / SUBSET * MODELS * evaluations
    return row(
        "calibration over the two-phase grid",
        slow / spent["ours"],
        f"{MODELS} x 10,000 x 10, {evaluations} temperatures; ours {spent['ours']:.2f} s; baseline on {SUBSET:,} "
        f"samples of one model at one temperature, scaled to {slow:.0f} s",
        target=1_000,
    )


def exact_calibration():
    """Every rank objective of 17 models x 10,000 x 10, searched exactly and tested, from softmax logits."""
    models = [made_logits(10_000, 10, seed) for seed in range(MODELS)]
    objectives = ["cross_model_accuracy", "within_model_class_accuracy", "ranking_stability"]

    def evidence(index, logits, labels):
        curves = sweep_class_scores(logits, labels, 10, activation="softmax", low=SEARCH.low, high=SEARCH.high)
        accuracy = class_values(predictions(logits, labels) == labels, labels, 10)
        measured = (curves, accuracy.mean, np.nan, curves, accuracy.aggregate, np.nan, index / MODELS)
        return ModelEvidence(f"none/{index}", *measured, "", "", read_parts=tuple)

    def ours():
        known = [evidence(index, *pair) for index, pair in enumerate(models)]
        return calibrate(known, objectives, measure="great", settings=SEARCH, stability_window=0.05, permutations=9_999)

    spent = in_turns({"ours": ours}, repeats=3)["ours"]
    return row(
        "exact calibration by three rank objectives",
        2 / spent,
        f"{MODELS} x 10,000 x 10, softmax, from the logits, with permutations; {spent:.2f} s of 2 s wanted on one core",
        target=1,
        unit="seconds wanted over seconds needed",
    )


def many_classes():
    """Class scores of 50,000 x 1,000 over 110 temperatures, and the bare exponentials that they take."""
    logits, labels = made_logits(50_000, 1_000)
    temperatures = np.linspace(0.01, 10, 110)
    right = int((predictions(logits, labels) == labels).sum())
    chunk = np.random.default_rng(0).uniform(-30, 0, CACHED_EXPONENTIALS)
    chunks = right * 1_000 // CACHED_EXPONENTIALS

    def ours():
        return class_scores_by_temperature(logits, labels, 1_000, activation="softmax")(temperatures)

    def exponentials():
        out = np.empty_like(chunk)
        for _ in range(chunks):
            np.exp(chunk, out=out)

    spent = in_turns({"loop": looped(logits, labels, "softmax"), "exponentials": exponentials, "ours": ours}, repeats=3)
    slow, bare = spent["loop"] * 50_000 / SUBSET * 110, spent["exponentials"] * 110
    detail = f"50,000 x 1,000, {right / 50_000:.0%} right; ours {spent['ours']:.1f} s"
    fast = row(
        "softmax sweep over 110 temperatures",
        slow / spent["ours"],
        f"{detail}; baseline on {SUBSET:,} samples at one temperature, scaled to {slow:.0f} s",
        target=40,
    )
    near = row(
        "softmax sweep beside its exponentials",
        bare / spent["ours"],
        f"{detail}; exponentials of the samples that are right {bare:.1f} s",
        target=1 / 1.5,
        unit="bare time over time needed",
    )
    return [fast, near, memory(logits, labels)]


MEASURED = """
import resource, sys
from gfscore.statistics.curves import sweep_class_scores
from gfscore.tables.parquet_tables import read_logits
_, labels, logits = read_logits(sys.argv[1])
sweep_class_scores(logits, labels, logits.shape[1], activation="softmax", low=0.01, high=10.0)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def memory(logits, labels):
    """Peak memory of a process that reads the logits from their table and sweeps them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "logits.parquet"
        write_logits(path, sample_id=np.arange(len(labels)), label=labels, logits=logits, identity={})
        command = [sys.executable, "-c", MEASURED, str(path)]
        package = Path(__file__).resolve().parent.parent / "workflow_scripts"
        done = subprocess.run(command, env={"PYTHONPATH": str(package)}, check=True, capture_output=True, text=True)
    peak = float(done.stdout)
    return row(
        "memory of a softmax sweep",
        MEMORY_WANTED / peak,
        f"50,000 x 1,000 read from Parquet, {peak:.0f} MiB of {MEMORY_WANTED} MiB wanted",
        target=1,
        unit="memory wanted over memory needed",
    )


def gini():
    """Gini coefficient of 1,000 class values."""
    values = np.random.default_rng(0).random(1_000)
    np.testing.assert_allclose(NRGC.compute(values), baseline.gini(values.tolist()), rtol=1e-12)
    listed = values.tolist()
    functions = {"loop": lambda: baseline.gini(listed), "ours": lambda: [NRGC.compute(values) for _ in range(500)]}
    spent = in_turns(functions, repeats=3)
    fast = spent["ours"] / 500
    detail = f"ours {1e6 * fast:.0f} us; baseline {spent['loop']:.2f} s"
    return row("Gini coefficient of 1,000 classes", spent["loop"] / fast, detail, target=1_000)


def rows():
    """Every comparison of this module."""
    yield one_temperature("sigmoid")
    yield one_temperature("softmax")
    yield grid_calibration()
    yield exact_calibration()
    yield gini()
    yield from many_classes()
