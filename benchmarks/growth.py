"""Time and memory of the score stage against samples, classes and models: python benchmarks/growth.py draws the figure.

Slopes on logarithmic axes say how fast each grows: 1 is proportional. Exact calibration compares all pairs of models,
and may grow with their square.
"""

import argparse
import json
import sys
import time
import tracemalloc
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "workflow_scripts"), str(HERE.parent)]

import matplotlib as mpl

mpl.use("Agg")

import numpy as np
from matplotlib import pyplot as plt
from timing import made_logits, row

from gfscore.audit.calibration.attack_free import aggregate_accuracy, cross_model_accuracy
from gfscore.audit.calibration.rank_objectives import cross_model_accuracy as exact_objective
from gfscore.audit.calibration.temperature_search import two_phase_grid
from gfscore.audit.metrics.nrgc import METRIC as NRGC
from gfscore.audit.settings import TemperatureGrid
from gfscore.show.drawing.theme import ACCENT, CONTRAST
from gfscore.statistics.classes import class_values
from gfscore.statistics.curves import sweep_class_scores
from gfscore.statistics.margins import scores
from studies.drawing import drawing

FIGURE = HERE.parent / "docs/images/growth.png"
LINES = ((ACCENT, "o"), (CONTRAST, "s"), ("#009e73", "^"), ("#cc79a7", "D"))
SEARCH = TemperatureGrid(low=0.1, high=3.0, coarse_step=0.1, fine_step=0.001, fine_radius=0.1)
SIZES = {
    "samples": (1_000, 10_000, 100_000, 1_000_000),
    "classes": (10, 100, 1_000, 10_000),
    "models": (10, 100, 2_000),
    "models, exact": (10, 50, 200),
}
LARGEST_SLOPE = {"samples": 1, "classes": 1, "models": 1, "models, exact": 2}
TOLERATED = 0.15
"""By how much a measured slope may exceed what the work must grow by, since small sizes fit the cache."""


def score_and_sweep(n, k):
    """Function that scores n x k logits and sweeps them over the temperatures, softmax."""
    logits, labels = made_logits(n, k)

    def run():
        NRGC.compute(class_values(scores(logits, labels, activation="softmax"), labels, k).mean)
        sweep_class_scores(logits, labels, k, activation="softmax", low=SEARCH.low, high=SEARCH.high)

    return run


def many_curves(count):
    """Curves and class accuracies of so many models, 10 classes."""
    curves, accuracy = [], []
    for seed in range(count):
        logits, labels = made_logits(200, 10, seed)
        curves.append(sweep_class_scores(logits, labels, 10, activation="sigmoid", low=SEARCH.low, high=SEARCH.high))
        accuracy.append(class_values((logits.argmax(axis=1) == labels), labels, 10).mean)
    return curves, np.array(accuracy)


def grid_search(count):
    """Function that calibrates so many models over the paper's grid."""
    objective = cross_model_accuracy(*many_curves(count))
    return lambda: two_phase_grid(objective, SEARCH)


def exact_search(count):
    """Function that finds every temperature at which so many models change their order."""
    curves, accuracy = many_curves(count)
    assert np.isfinite(aggregate_accuracy(curves, accuracy)).all()
    return lambda: exact_objective(curves, accuracy, SEARCH)


WORK = {
    "samples": lambda size: score_and_sweep(size, 10),
    # The same samples for every number of classes.
    "classes": lambda size: score_and_sweep(2_000, size),
    "models": grid_search,
    "models, exact": exact_search,
}


def measure(work, *, repeats):
    """Shortest processor time in seconds and peak of allocated memory in MiB."""
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times), peak


def slope(sizes, values):
    """Slope on logarithmic axes over the upper half of the sizes, where fixed costs no longer show."""
    half = slice(len(sizes) // 2 - 1, None)
    return float(np.polyfit(np.log(sizes[half]), np.log(values[half]), 1)[0])


def measured():
    """Sizes, seconds and MiB of each kind of growth, by its name."""
    found = {}
    for name, sizes in SIZES.items():
        # Neither time nor memory counts what is loaded on first use.
        WORK[name](sizes[0])()
        pairs = [measure(WORK[name](size), repeats=2 if size < 1_000 else 1) for size in sizes]
        found[name] = np.array(sizes), *np.array(pairs).T
    return found


def draw(found, path):
    """Time and memory against each size, with slopes in the legend."""
    with drawing():
        figure, axes = plt.subplots(1, 2, figsize=(9.5, 4.6), layout="constrained")
        for axis, column, title in zip(
            axes, (1, 2), ("Processor time, s", "Peak of allocated memory, MiB"), strict=True
        ):
            for (name, columns), (colour, marker) in zip(found.items(), LINES, strict=True):
                label = f"{name}: slope {slope(columns[0], columns[column]):.2f}"
                axis.plot(columns[0], columns[column], color=colour, marker=marker, label=label)
            axis.set(xscale="log", yscale="log", xlabel="samples, classes or models")
            axis.set_title(title)
            for side in (axis.xaxis, axis.yaxis):
                side.set_major_formatter(lambda value, _: f"{value:,.10g}")
            axis.grid(visible=True, which="major")
            axis.minorticks_off()
            axis.legend(loc="upper left", bbox_to_anchor=(0, -0.15), ncols=2)
        figure.savefig(path, dpi=120)
        plt.close(figure)


def rows():
    """Row of each kind of growth; draws the figure."""
    found = measured()
    draw(found, FIGURE)
    for name, (sizes, seconds, memory) in found.items():
        grown, most = slope(sizes, seconds), LARGEST_SLOPE[name]
        ends = f"{seconds[0]:.3g} s and {memory[0]:.3g} MiB to {seconds[-1]:.3g} s and {memory[-1]:.3g} MiB"
        yield row(
            f"growth with {name}",
            (most + TOLERATED) / max(grown, 1e-9),
            f"{sizes[0]:,} to {sizes[-1]:,}: {ends}; slope of time {grown:.2f}, of memory {slope(sizes, memory):.2f}, "
            f"at most {most} needed",
            target=1,
            unit="slope allowed over slope measured",
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    print(json.dumps(list(rows()), indent=1))
