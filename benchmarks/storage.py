"""Size and reading time of logits in Parquet beside compressed .npz."""

import tempfile
from pathlib import Path

import numpy as np
from timing import in_turns, made_logits, row

from gfscore.tables.parquet_tables import read_logits, write_logits

WANTED = {10: 1.3, 1_000: 2.0}
"""Times as fast to read as .npz, by number of classes."""


def _read_npz(path):
    with np.load(path) as file:
        return [file[name] for name in ("sample_id", "label", "logits")]


def compare(n, k):
    """Rows on size and reading of n x k logits."""
    logits, labels = made_logits(n, k)
    names = [f"{index:06d}" for index in range(n)]
    with tempfile.TemporaryDirectory() as folder:
        ours, other = Path(folder) / "logits.parquet", Path(folder) / "logits.npz"
        write_logits(ours, sample_id=names, label=labels, logits=logits, identity={})
        np.savez_compressed(other, sample_id=np.array(names), label=labels, logits=logits)
        read = {"ours": lambda: read_logits(ours), "npz": lambda: _read_npz(other)}
        np.testing.assert_array_equal(read_logits(ours)[2], _read_npz(other)[2])
        spent = in_turns(read, repeats=31 if k == 10 else 7)
        size, size_npz = ours.stat().st_size, other.stat().st_size
    what = f"{n:,} x {k:,} with names and labels"
    yield row(
        f"size of logits, {k:,} classes",
        size_npz / size,
        f"{what}; Parquet {size / 1e6:.2f} MB, compressed .npz {size_npz / 1e6:.2f} MB",
        target=1,
        unit="times as small as compressed .npz",
    )
    yield row(
        f"reading of logits, {k:,} classes",
        spent["npz"] / spent["ours"],
        f"{what}; {1e3 * spent['ours']:.1f} ms, compressed .npz {1e3 * spent['npz']:.1f} ms",
        target=WANTED[k],
        unit="times as fast as compressed .npz",
    )


def rows():
    """Every comparison of this module."""
    yield from compare(10_000, 10)
    yield from compare(10_000, 1_000)
