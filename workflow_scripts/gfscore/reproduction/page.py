"""The page "What reproduces and what does not", as Markdown."""

from gfscore.reproduction import ledger
from gfscore.reproduction.claims import REFUTED, REPRODUCED, UNTESTABLE, VERDICTS

PAPERS = {
    "GF-Score": "A. Shah, K. Visavadiya, M. Padala: *GF-Score: Certified Class-Conditional Robustness Evaluation with "
    "Fairness Guarantees*. H1 to H12 are the places where the paper's own tables, code or result files contradict it.",
    "Exact binomial": "The paper that adds an exact binomial test of probabilistic robustness to TorchAttacks "
    "(library `precise-robustness`).",
    "Measurement algorithms": "*Robustness measurement algorithms*, section 26.3.1 of the AI Security Blog's handbook, "
    "6 October 2025.",
    "Class-wise analysis": "T. Medi, J. Grabinski, M. Keuper: *Towards Class-wise Robustness Analysis*.",
    "Projection fairness": "*Is the Fairness Metric Truly Fair?*, anonymous submission under review.",
}
"""Short name of each source, in the order of the page -> what it is."""

MARKS = {REPRODUCED: "✓ reproduced", REFUTED: "✗ refuted", UNTESTABLE: "○ untestable here"}

INTRODUCTION = """\
# What reproduces and what does not

Five sources stand behind this project. This page puts each of their claims that can be checked beside the number that \
we get for it. Our numbers are computed, at the time this page is made, from the tables printed in the papers, from \
the RobustBench leaderboard, or by the functions of this package; the tests assert them. {reproduced} means that our \
number agrees with the claim to the precision printed; {refuted} means that it does not, or that the paper contradicts \
itself; {untestable} means that checking needs trained networks, attacks, data or files that are not part of this \
package, and the note says which. A refuted claim is a statement about that sentence or formula, not about the paper \
as a whole. Shares and percentages stand as each paper prints them; rho is Spearman's rank correlation; T is the \
temperature that divides the logits; B is sqrt(pi/2), the largest possible score.
"""

FOOTER = "Made by `tools/write_reproduction_page.py`; a test fails when this file and the computed numbers differ.\n"


def page():
    """The whole page as Markdown, computed from the ledger."""
    claims = ledger()
    marks = {"reproduced": REPRODUCED, "refuted": REFUTED, "untestable": UNTESTABLE}
    parts = [INTRODUCTION.format(**{name: f"**{MARKS[verdict]}**" for name, verdict in marks.items()})]
    parts.append(_overview(claims))
    for paper, source in PAPERS.items():
        parts.append(_section(paper, source, [claim for claim in claims if claim.paper == paper]))
    return "\n".join([*parts, FOOTER])


def _overview(claims):
    counts = {
        paper: [sum(claim.paper == paper and claim.verdict == verdict for claim in claims) for verdict in VERDICTS]
        for paper in PAPERS
    }
    rows = [[paper, *map(str, row)] for paper, row in counts.items()]
    total = [str(sum(column)) for column in zip(*counts.values(), strict=True)]
    return _table(["Source", *(MARKS[verdict] for verdict in VERDICTS)], [*rows, ["All", *total]])


def _section(paper, source, claims):
    rows = [[c.key, c.claim, c.claimed, c.ours, MARKS[c.verdict]] for c in claims]
    table = _table(["No.", "Claim", "The source's number", "Our number", "Verdict"], rows)
    notes = "".join(f"- **{c.key}** {c.note}\n" for c in claims if c.note)
    return f"## {paper}\n\n{source}\n\n{table}\nNotes\n\n{notes}"


def _table(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |\n" for line in lines)
