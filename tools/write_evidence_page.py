"""Write docs/evidence.md from docs/evidence.csv: which number, figure or file of an audit answers which clause.

Run from anywhere: `.venv/bin/python tools/write_evidence_page.py`.
"""

import csv
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# The package need not be installed: its folder is the one that the workflow's scripts use.
sys.path.insert(0, str(ROOT / "workflow_scripts"))

from gfscore.core.files import write_text  # noqa: E402

ROWS = ROOT / "docs" / "evidence.csv"
PAGE = ROOT / "docs" / "evidence.md"

INTRODUCTION = """\
# Which clause an audit speaks to

For whoever writes a conformity file, a safety case or a risk register: which table, figure or file of an audit is
evidence for which clause, and what it leaves open. **An audit shows no conformity with any of these texts.** It
measures an image classifier on data that you chose, against thresholds that you stated; whether a level is enough, and
whether the data are like those of use, is not in it. The same rows, for programs: [evidence.csv](evidence.csv).

Tables are those of [tables.md](tables.md), figures lie in `figures/` and on the page, files in the folder of the audit
or [its bundle](handing-on-an-audit.md). A table is empty, and a figure left out, where the audit has no
[measure of the kind](measures.md) that the row needs.
"""

FRAMEWORKS = {
    "EU AI Act, Article 15": "Regulation (EU) 2024/1689 of 13 June 2024, Article 15, *Accuracy, robustness and "
    "cybersecurity*, which is about high-risk AI systems. The text in the Official Journal is the authentic one; the "
    "second column is a paraphrase. Paragraph 2 asks nothing of providers. An audit is of a model, which is one part "
    "of a system.",
    "ISO/IEC 24029-2:2023": "*Assessment of the robustness of neural networks, Part 2: Methodology for the use of "
    "formal methods*. Of the standard only what is public was used, its scope and its table of contents: numbers and "
    "titles of clauses are the standard's, what is said of each is ours. Its requirements and criteria were not read, "
    "so that none can be claimed to be met.",
    "NIST AI RMF 1.0, MEASURE 2": "NIST AI 100-1 (January 2023), the subcategories of MEASURE 2, *AI systems are "
    "evaluated for trustworthy characteristics*; a voluntary framework, paraphrased here.",
}
"""What each framework is, and how much of its text was used."""

NOT_COVERED = "**not covered**"

FOOTER = """\
Made by `tools/write_evidence_page.py` from `evidence.csv`; a test fails when the two differ, or when a row names what
no audit has.
"""


def rows() -> list[dict[str, str]]:
    """Rows of the table by column; lists within a cell are joined by "; "."""
    with ROWS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def items(cell: str) -> list[str]:
    """Items of a cell."""
    return [item for item in cell.split("; ") if item]


def page() -> str:
    """The page "Which clause an audit speaks to"."""
    parts = [INTRODUCTION]
    for framework, about in FRAMEWORKS.items():
        lines = [f"## {framework}", "", about, ""]
        lines += ["| clause | about | evidence | shows | does not show |", "| --- | --- | --- | --- | --- |"]
        for row in rows():
            if row["framework"] == framework:
                cells = (row["clause"], row["about"], _evidence(row), row["shows"], row["does_not_show"])
                lines.append(f"| {' | '.join(cells)} |")
        parts.append("\n".join(lines) + "\n")
    return "\n".join([*parts, FOOTER])


def _evidence(row: dict[str, str]) -> str:
    words = []
    for item in items(row["tables"]):
        table, _, columns = item.partition(": ")
        words.append(f"`{table}` ({', '.join(columns.split())})")
    charts = items(row["charts"])
    if charts:
        words.append(f"figures {', '.join(f'`{chart}`' for chart in charts)}")
    words += [f"`{file}`" for file in items(row["files"])]
    if not words:
        return NOT_COVERED
    needs = items(row["needs"])
    if needs:
        words.append(f"of measures of kind {', '.join(needs)}")
    return "; ".join(words)


if __name__ == "__main__":
    write_text(PAGE, page())
    print(f"wrote {PAGE.relative_to(ROOT)}")
