"""The handwritten digits that ship inside scikit-learn."""

import numpy as np

from gfscore.datasets import from_arrays
from gfscore.errors import InputError

SETTINGS = {
    "split": {"description": "Half of the fixed split.", "enum": ["train", "test"]},
    "test_share": {
        "description": "Share of each class in the test half.",
        "type": "number",
        "exclusiveMinimum": 0,
        "exclusiveMaximum": 1,
    },
    "seed": {"$ref": "#/$defs/seed"},
}


def open_source(settings, path=None):
    """1,797 grey 8x8 images of the digits 0 to 9, one half of a fixed split, (n, 1, 8, 8), pixels / 16.

    `settings`: `split` ("train" or "test"), `test_share` in (0, 1), `seed`. The split is stratified: of each
    class the share `test_share`, rounded, is in the test half. `path` is not used. Identifiers
    ("digits-0007") count in scikit-learn's order, which is kept within a half. Source: UCI optical
    recognition of handwritten digits, test part (Alpaydin and Kaynak 1998).
    """
    from sklearn.datasets import load_digits

    split, share = settings["split"], settings["test_share"]
    if split not in ("train", "test"):
        raise InputError(f"digits: split {split!r} is unknown; choose train or test")
    if not 0 < share < 1:
        raise InputError(f"digits: test_share must lie between 0 and 1, got {share!r}")
    data = load_digits()
    chosen = _in_test(data.target, share, settings["seed"]) == (split == "test")
    rows = np.flatnonzero(chosen)
    return from_arrays(
        data.images[rows, None] / 16,
        data.target[rows],
        sample_id=[f"digits-{row:04d}" for row in rows],
        preprocessing="pixels 0..16 divided by 16",
    )


def _in_test(labels, share, seed):
    generator = np.random.default_rng(seed)
    chosen = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        rows = generator.permutation(np.flatnonzero(labels == label))
        chosen[rows[: round(share * len(rows))]] = True
    return chosen
