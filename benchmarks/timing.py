"""Fair timing on a shared machine: processor time, one function after the other in turns, medians of the turns."""

import time

import numpy as np

LOGITS_SEED = 0


def turns(functions, *, repeats=5, seconds=0, clock=time.process_time):
    """Time in seconds of each function of a mapping, by name, one mapping per turn.

    All are called once in every turn, in alternating order, for at least `repeats` turns and `seconds`: a core's speed
    changes from second to second, and the calls of a turn see about the same one.
    """
    times, end = [], time.perf_counter() + seconds
    while len(times) < repeats or time.perf_counter() < end:
        order = list(functions.items())[:: -1 if len(times) % 2 else 1]
        times.append({name: spent(function, clock) for name, function in order})
    return times


def spent(function, clock=time.process_time):
    """Time in seconds of one call of a function without arguments."""
    start = clock()
    function()
    return clock() - start


def in_turns(functions, **how):
    """Median time in seconds of each function of a mapping, by name; `how` as for `turns`."""
    times = turns(functions, **how)
    return {name: float(np.median([turn[name] for turn in times])) for name in functions}


def median_ratio(ratios):
    """Median of the ratios of all turns and its standard error, from their quartiles."""
    low, middle, high = np.quantile(ratios, [0.25, 0.5, 0.75])
    # Of normal ratios: the quartiles lie 1.35 deviations apart, and a median's error is 1.25 times a mean's.
    return float(middle), float(1.25 * (high - low) / 1.35 / np.sqrt(len(ratios)))


def made_logits(n, k, seed=LOGITS_SEED):
    """Logits (n, k) float32 of a classifier that is right on about three samples in four, and labels (n,)."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n, dtype=np.int32) % k
    logits = rng.standard_normal(size=(n, k), dtype=np.float32)
    # The largest of k - 1 normal rivals grows with k.
    logits[np.arange(n), labels] += 2.5 if k <= 10 else np.sqrt(2 * np.log(k)) + 0.2
    return logits, labels


def row(name, ratio, detail, *, target=None, unit="times as fast as the baseline"):
    """Row of results.json."""
    return {"name": name, "ratio": float(ratio), "target": target, "unit": unit, "detail": detail}
