"""The page of evidence: current, complete in clauses, and naming nothing that audits do not have."""

import pytest

from gfscore.measures import KINDS
from gfscore.show.charts import CHARTS
from gfscore.workflow.catalogue import CATALOGUE
from gfscore.workflow.plan import Run
from gfscore.workflow.targets import EXPORTS, audit_results
from gfscore.workflow.user_files import STATEMENT
from helpers.configurations import completed, written
from write_evidence_page import FRAMEWORKS, PAGE, items, page, rows

ROWS = [pytest.param(row, id=f"{row['framework']}, {row['clause']}") for row in rows()]
EVIDENCE = ("tables", "charts", "files")


@pytest.fixture(scope="module")
def files():
    """Files of an audit, of its exports and of a bundle."""
    audit = Run(completed(written())).audits["digits"]
    names = {path.removeprefix(f"{audit.folder}/") for path in audit_results(audit)}
    return names | {f"exports/{name}" for name in EXPORTS} | {STATEMENT}


def test_committed_page_is_the_generated_one():
    assert PAGE.read_text(encoding="utf-8") == page(), "run tools/write_evidence_page.py"


@pytest.mark.parametrize("row", ROWS)
def test_every_table_column_figure_file_and_kind_exists(row, files):
    for item in items(row["tables"]):
        table, _, columns = item.partition(": ")
        assert columns and set(columns.split()) <= set(CATALOGUE[table].column_names), item
    assert all(CHARTS[chart].figure for chart in items(row["charts"]))
    assert set(items(row["files"])) <= files
    assert set(items(row["needs"])) <= set(KINDS)


@pytest.mark.parametrize("row", ROWS)
def test_what_is_shown_rests_on_evidence_and_every_clause_says_what_is_left_open(row):
    assert row["framework"] in FRAMEWORKS and row["about"] and row["does_not_show"]
    assert bool(row["shows"]) == any(row[name] for name in EVIDENCE)


def test_no_clause_of_the_parts_that_the_page_is_about_is_left_out():
    clauses = {row["clause"] for row in rows() if row["framework"].startswith("NIST")}
    assert clauses == {f"2.{number}" for number in range(1, 14)}
    of_act = " ".join(row["clause"] for row in rows() if row["framework"].startswith("EU"))
    assert all(f"15({paragraph})" in of_act for paragraph in (1, 3, 4, 5))
    of_iso = [row["clause"].split()[0] for row in rows() if row["framework"].startswith("ISO")]
    assert {"5.2", "5.3", "5.4", "5.5", "5.6"} <= set(of_iso)
    assert len(rows()) == len({(row["framework"], row["clause"]) for row in rows()})
