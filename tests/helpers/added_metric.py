"""An audit of made logits by the package that is found first, written to a folder: python tests/helpers/added_metric.py FOLDER.

For tests that add a metric to a copy of the package: what the copy makes of it stands in the files.
"""

import sys
from pathlib import Path

from gfscore.audit.metrics import BOUNDED
from gfscore.audit.model_summary import MODEL_SUMMARY
from gfscore.audit.verdicts.gate_rules import REFUSED_METRICS, STATISTICS, statistic_of
from gfscore.core.files import write_json, write_text
from gfscore.measures import named_measures
from gfscore.show.exports.cards import model_cards
from gfscore.tables.csv_files import write_table_and_csv
from helpers.configurations import gate_rule
from helpers.pages import audit_for_page, page_of
from write_tables_page import page

MEASURE = "great-softmax"


def write_audit(folder):
    """Write table, verdict, page, model card and docs of an audit whose gate has a rule on every metric."""
    rules = [
        gate_rule(MEASURE, statistic=metric.name, **{statistic_of(metric.name).direction: 0.1}) for metric in BOUNDED
    ]
    made = audit_for_page(models=2, classes=4, per_class=20, permutations=19, rules=rules, measures=("clean", MEASURE))
    audit = made.audit
    write_table_and_csv(folder / "model_summary.parquet", MODEL_SUMMARY, audit.model_summary, identity={})
    audit.verdict.write(folder / "verdict.json")
    write_json(folder / "gate.json", {"statistics": STATISTICS, "refused": REFUSED_METRICS})
    write_text(folder / "report.html", page_of(made))
    cards = model_cards(
        audit.model_summary,
        named_measures(audit.measures),
        audit="made",
        title="Made",
        digest="d",
        classes=4,
        fp_lambda=0.5,
    )
    write_text(folder / "card.md", cards["none__model_0"])
    write_text(folder / "tables.md", page())


if __name__ == "__main__":
    write_audit(Path(sys.argv[1]))
