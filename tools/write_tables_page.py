"""Write docs/tables.md, and tables of metrics and training methods in other pages, from what the package declares.

Run from anywhere: `.venv/bin/python tools/write_tables_page.py`.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa

ROOT = Path(__file__).resolve().parents[1]
# The package need not be installed: its folder is the one that the workflow's scripts use.
sys.path.insert(0, str(ROOT / "workflow_scripts"))

from gfscore.audit.metrics import METRICS  # noqa: E402
from gfscore.core.files import write_text  # noqa: E402
from gfscore.networks.training_settings import training_methods  # noqa: E402
from gfscore.tables.table import Table  # noqa: E402
from gfscore.workflow.catalogue import CATALOGUE  # noqa: E402
from page_blocks import with_block  # noqa: E402

PAGE = ROOT / "docs" / "tables.md"
READING = ROOT / "docs" / "reading-an-audit.md"
MODELS = ROOT / "docs" / "add-a-model.md"

INTRODUCTION = """\
# What each column holds

For those who read the tables by program: every table and column that an audit leaves, with its type, and its unit where
it has one. [Reading an audit](reading-an-audit.md) explains the numbers; this page is for looking them up.

Where samples are undecided, numbers count them at their smallest value (as failures) and bounds allow for all their
values, unless a column says otherwise. Shares and accuracies are fractions from 0 to 1, classes are counted from 0, and
a number that does not exist is null (an empty cell in CSV). CSV joins lists by `|`. Tables of `results/audits/<audit>/`
lie there as Parquet and as CSV; one that an audit does not measure for has no rows. A Parquet file repeats in its
metadata, under `gfscore`, the name and version of its table, and what it was made from: a version is raised when the
meaning of a column changes.
"""

FILES = {
    "verdict.json": "`verdict`, its `sentence`, whether it `stops` the target `gate`, the `rules` with each model's "
    "bounds, models `excluded` and why, those `warned` of and those that may be `guessing`, the `findings` in "
    "sentences with their numbers, the `software` that judged and when (`time`), the `dataset`, the checkpoint and "
    "samples of each of the `models`, the `last_release` that declines are since, and the files that it was "
    "`made_from`, with their SHA-256",
    "models.json": "models `included`, those `excluded` with the reason, those `warned` of, those that may be "
    "`guessing`, and each one's `clean_accuracy`",
    "calibration.json": "for each objective: `measure`, `search`, the temperature `t_star` (or `t_star_by_model`) and "
    "how sure it is, the objective there (`best`) and at T = 1 (`at_one`), the rank `agreement` before and after, and "
    "that of clean accuracy alone (`baseline`)",
    "comparison.json": "for each measure: how many `models` there are, whether they are `compared` (if not, the "
    "`reason`), `undecided` values, the number of `classes`, the pairs that are listed (`pairs_listed`; where not "
    "`every_pair`, those with the model `reference`) and corrected for (`pairs_corrected_for`), the joint `confidence`",
}
"""Description of the keys of an audit's JSON files."""

FOOTER = "Made by `tools/write_tables_page.py` from what the package declares; a test fails when the two differ.\n"

PLACES = {
    "logits": "`results/logits/<dataset>/<threat>/<model>.parquet`",
    "attributes": "`results/attributes/<dataset>.parquet`; each attribute has a column of its name, text, null where "
    "unknown",
    "samples": "`results/samples/<measure>/<dataset>/<threat>/<model>.parquet`, of kinds not named below",
    "samples of kind projection": "`results/projections/<mapper>/<dataset>/<threat>/<model>.parquet`",
    "dataset": "`results/datasets/<dataset>.parquet`",
    "scores": "`results/scores/<audit>.parquet`",
    "sweeps": "`results/sweeps/<audit>.parquet`",
    "release_values": "`results/releases/<audit>.parquet`, where a rule of the gate compares with the last release",
}
"""Paths of the tables outside results/audits/."""

KINDS = {
    pa.string(): "text",
    pa.bool_(): "true or false",
    pa.float64(): "float64",
    pa.list_(pa.string()): "list of texts",
    pa.list_(pa.float32()): "list of float32",
    pa.binary(): "bytes",
}


def page() -> str:
    """The page "What each column holds"."""
    return "\n".join([INTRODUCTION, *(_section(name, table) for name, table in CATALOGUE.items()), _files(), FOOTER])


def _section(name: str, table: Table) -> str:
    samples = "`results/samples/<measure>/<dataset>/<threat>/<model>.parquet`, of measures of this kind"
    place = PLACES.get(name) or (samples if name.startswith("samples of kind ") else f"`results/audits/<audit>/{name}`")
    columns = (*table.columns, *table.evidence)
    rows = [(f"`{column}`", KINDS.get(kind, str(kind)), meaning) for column, kind, meaning in columns]
    return f"## {name}\n\n{place}. Version {table.version}.\n\n{_table(('column', 'type', 'meaning'), rows)}"


def _files() -> str:
    rows = [(f"`{name}`", meaning) for name, meaning in FILES.items()]
    return f"## Files beside the tables\n\nIn `results/audits/<audit>/`:\n\n{_table(('file', 'what it holds'), rows)}"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |\n" for line in lines)


def with_metrics(text: str) -> str:
    """The page with the table of the declared metrics."""
    return with_block(text, "metrics", _metrics(), made_by="write_tables_page")


def with_training_methods(text: str) -> str:
    """The page with the table of the declared training methods."""
    return with_block(text, "training methods", _training_methods(), made_by="write_tables_page")


def _metrics() -> str:
    header = ("number", "column", "what it is", "perfect equality", "better", "interval and gate", "source")
    rows = [
        (
            metric.title,
            f"`{metric.name}`",
            metric.explanation,
            "its common value" if metric.at_equality is None else f"{metric.at_equality:g}",
            metric.better,
            "yes" if metric.bounded else "no",
            metric.source,
        )
        for metric in METRICS.values()
    ]
    return _table(header, rows)


def _training_methods() -> str:
    header = ("method", "trains on", "`threat`", "`coefficients` and defaults")
    rows = []
    for method in training_methods().values():
        fields = method.settings.model_fields
        threat = [f"`{name}`" for name in getattr(fields["threat"].annotation, "model_fields", {})]
        coefficients = []
        for name, field in fields["coefficients"].annotation.model_fields.items():
            coefficients.append(f"`{name}: {json.dumps(field.default)}`")
        rows.append(
            (f"`{method.name}`", method.trains_on, ", ".join(threat) or "none", ", ".join(coefficients) or "none")
        )
    return _table(header, rows)


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    write_text(PAGE, page())
    write_text(READING, with_metrics(READING.read_text(encoding="utf-8")))
    write_text(MODELS, with_training_methods(MODELS.read_text(encoding="utf-8")))
    print(f"wrote {', '.join(str(path.relative_to(ROOT)) for path in (PAGE, READING, MODELS))}")
