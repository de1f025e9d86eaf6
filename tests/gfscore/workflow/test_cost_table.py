"""The table of measured costs, and the page that it goes into."""

import importlib.util
from pathlib import Path

import pandas as pd
import pytest

from gfscore.core.errors import InputError
from gfscore.measures import KINDS
from page_blocks import with_block

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "measures.md"


@pytest.fixture(scope="module")
def tool():
    specification = importlib.util.spec_from_file_location("write_cost_table", ROOT / "tools" / "write_cost_table.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def costs(*rows):
    columns = ["dataset", "threat", "model", "measure", "step", "wall_s", "cpu_s", "peak_memory_mib", "samples"]
    columns += ["forwards", "backwards"]
    return pd.DataFrame([("d", "none", *row) for row in rows], columns=columns)


def test_the_median_over_models_of_the_sum_over_steps(tool):
    frame = costs(
        ("a", "minimal", "measure_model", 2.0, 4.0, 100.0, 200, 9000, 400),
        ("b", "minimal", "measure_model", 4.0, 6.0, 300.0, 200, 5000, 800),
        ("b", "minimal", "another", 2.0, 2.0, 50.0, 200, 2000, 0),
        ("a", None, "extract_logits", 1.0, 1.0, 80.0, None, 210, 0),
        ("a", None, "train_model", 99.0, 99.0, 80.0, None, None, None),
        ("a", "clean", "score_models", None, None, None, 200, None, None),
        ("a", "certified", "import_samples", 1.0, 1.0, 80.0, 200, None, None),
    )
    lines = tool.cost_table(frame).splitlines()
    # Model a: 4 core-seconds; b: 8; the median, 6, over 200 samples makes 30 ms.
    assert lines[2] == "| minimal | 2 | 200 | 6 | 30 | 200 | 8,000 | 600 |"
    assert lines[3] == "| logits, which clean and great need | 1 |  | 1 |  | 80 | 210 | 0 |"
    # What was not counted stays empty.
    assert lines[4] == "| certified | 1 | 200 | 1 | 5 | 80 |  |  |"
    assert len(lines) == 5


def test_a_remedy_is_no_cost_of_its_measure(tool):
    audited = costs(
        ("a", "minimal", "measure_model", 2.0, 4.0, 100.0, 200, 9000, 400),
        ("a", None, "extract_logits", 1.0, 1.0, 80.0, None, 210, 0),
    )
    remedies = costs(
        ("a", "minimal", "choose_offsets", 2.0, 4.0, 100.0, None, 9000, 400),
        ("a", "minimal", "measure_model", 2.0, 4.0, 100.0, None, 9000, 400),
        ("a+x1", "minimal", "measure_model", 2.0, 4.0, 100.0, None, 9000, 400),
        ("a+x1", None, "extract_logits", 1.0, 1.0, 80.0, None, 210, 0),
    )
    remedies["dataset"] = "d-judging"
    assert tool.cost_table(pd.concat([audited, remedies])) == tool.cost_table(audited)


def test_a_table_without_records_is_refused(tool):
    with pytest.raises(InputError, match="no recorded cost"):
        tool.cost_table(costs(("a", "minimal", "measure_model", None, None, None, 200, None, None)))


def test_the_page_has_the_marks_and_keeps_everything_around_them():
    text = PAGE.read_text(encoding="utf-8")
    written = with_block(text, "costs", "| a |\n", made_by="write_cost_table")
    assert with_block(written, "costs", "| a |\n", made_by="write_cost_table") == written
    before, _, rest = text.partition("<!-- costs: made by tools/write_cost_table.py -->\n")
    after = rest.partition("<!-- end of costs -->\n")[2]
    assert before and after and written.startswith(before) and written.endswith(after)
    with pytest.raises(InputError, match="lacks the lines"):
        with_block("nothing", "costs", "", made_by="write_cost_table")


def test_the_page_names_every_kind_of_measure():
    text = PAGE.read_text(encoding="utf-8")
    assert [kind for kind in KINDS if f"| `{kind}`" not in text and f", `{kind}` |" not in text] == []
