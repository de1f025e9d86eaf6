"""Fair timing on a shared machine: processor time, one function after the other in turns, median of the turns."""

import time

import numpy as np

LOGITS_SEED = 0


def in_turns(functions, *, repeats=5):
    """Median processor time in seconds of each function of a mapping, by name; all are called once in every turn."""
    times = {name: [] for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            start = time.process_time()
            function()
            times[name].append(time.process_time() - start)
    return {name: float(np.median(spent)) for name, spent in times.items()}


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
