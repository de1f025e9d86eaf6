"""The page of columns: current, and naming every table and every column where it lies."""

from gfscore.workflow.catalogue import CATALOGUE
from write_tables_page import MODELS, PAGE, PLACES, READING, page, with_metrics, with_training_methods


def test_committed_page_is_the_generated_one():
    assert PAGE.read_text(encoding="utf-8") == page(), "run tools/write_tables_page.py"
    reading = READING.read_text(encoding="utf-8")
    assert reading == with_metrics(reading), "run tools/write_tables_page.py"
    models = MODELS.read_text(encoding="utf-8")
    assert models == with_training_methods(models), "run tools/write_tables_page.py"


def test_page_says_where_every_table_lies_and_what_each_column_means():
    sections = {part.split("\n")[0]: part for part in page().split("\n## ")[1:]}
    assert list(sections)[:-1] == list(CATALOGUE)
    assert set(PLACES) < set(CATALOGUE)
    for name, table in CATALOGUE.items():
        assert "`results/" in sections[name].split("\n")[2]
        rows = [line for line in sections[name].splitlines() if line.startswith("| `")]
        columns = (*table.columns, *table.evidence)
        assert len(rows) == len(columns)
        for row, (column, _, meaning) in zip(rows, columns, strict=True):
            assert row.startswith(f"| `{column}` | ")
            # A name said again explains nothing.
            assert meaning not in ("", column)
            assert row.count(" | ") == 2
