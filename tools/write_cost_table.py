"""Write the table of measured costs into docs/measures.md, from the table `costs` of an audit.

Run from anywhere: `.venv/bin/python tools/write_cost_table.py [COSTS]`; COSTS is results/audits/digits/costs.parquet
unless given.
"""

import argparse
import sys
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
# The package need not be installed: its folder is the one that the workflow's scripts use.
sys.path.insert(0, str(ROOT / "workflow_scripts"))

from gfscore.core.errors import InputError  # noqa: E402
from gfscore.core.files import write_text  # noqa: E402
from gfscore.tables.parquet_tables import read_table  # noqa: E402
from gfscore.workflow.catalogue import CATALOGUE  # noqa: E402
from page_blocks import with_block  # noqa: E402

PAGE = ROOT / "docs" / "measures.md"
COSTS = ROOT / "results" / "audits" / "digits" / "costs.parquet"
LOGITS = "extract_logits"
PASSES = ("forwards", "backwards")


def cost_table(costs):
    """Markdown of a frame of the table costs: per measure, the median over models of what it cost.

    Work that serves several measures stands in one row of its own, the logits. Rows that were not recorded, measures
    without any that was, and jobs on the halves of a remedy are left out. Raises InputError when nothing was recorded.
    """
    # Only on the dataset of the audit is the number of samples known.
    costs = costs[costs["dataset"].isin(costs.loc[costs["samples"].notna(), "dataset"])]
    known = costs[costs["wall_s"].notna() & (costs["measure"].notna() | (costs["step"] == LOGITS))]
    if known.empty:
        raise InputError("the table holds no recorded cost; run the audit again from nothing, then write this table")
    named = known.assign(what=known["measure"].fillna("logits, which clean and great need"))
    per_model = named.groupby(["what", "threat", "model"], sort=False).agg(
        cpu_s=("cpu_s", "sum"),
        peak_memory_mib=("peak_memory_mib", "max"),
        samples=("samples", "max"),
        # Null where one of them was not counted.
        **{name: (name, lambda counts: counts.sum(skipna=False)) for name in PASSES},
    )
    titles = [
        "measure",
        "models",
        "samples",
        "core-seconds per model",
        "core-ms per sample",
        "MiB",
    ]
    titles += ["images passed forward per model", "images differentiated per model"]
    lines = [f"| {' | '.join(titles)} |\n", f"|{' --- |' * len(titles)}\n"]
    for what, rows in per_model.groupby("what", sort=False):
        middle = rows.median()
        each = "" if middle.isna()["samples"] else f"{1000 * middle['cpu_s'] / middle['samples']:.3g}"
        samples = "" if middle.isna()["samples"] else f"{middle['samples']:.0f}"
        seconds = f"{middle['cpu_s']:.3g} | {each} | {middle['peak_memory_mib']:.0f}"
        passes = " | ".join("" if pd.isna(middle[name]) else f"{middle[name]:,.0f}" for name in PASSES)
        lines.append(f"| {what} | {len(rows)} | {samples} | {seconds} | {passes} |\n")
    return "".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write the table of measured costs into docs/measures.md.")
    parser.add_argument("costs", nargs="?", type=Path, default=COSTS, help="table costs.parquet of an audit")
    try:
        table = cost_table(read_table(parser.parse_args().costs, CATALOGUE["costs"]))
        page = with_block(PAGE.read_text(encoding="utf-8"), "costs", table, made_by="write_cost_table")
        write_text(PAGE, page)
    except InputError as error:
        parser.error(str(error))
    print(f"wrote {PAGE.relative_to(ROOT)}")
