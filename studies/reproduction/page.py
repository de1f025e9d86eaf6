"""The page "What reproduces and what does not", as Markdown."""

from collections import Counter

from studies.markdown import table
from studies.reproduction import ledger
from studies.reproduction.claims import REFUTED, REPRODUCED, UNTESTABLE, VERDICTS
from studies.reproduction.references import REFERENCES, cited

PAPERS = {
    "GF-Score": """\
A. Shah, K. Visavadiya, M. Padala: *GF-Score: Certified Class-Conditional Robustness Evaluation with Fairness
Guarantees*. It takes the mean GREAT score (an attack-free margin of the true class) class by class, measures how
unequal the classes are, and chooses a temperature T, by which logits are divided, without attacks
("self-calibration"). H1 to H12 are claims that its own tables, or the code and result files that its authors
published, contradict; of those that are marked untestable, the files are not shipped here and the note says what they
show.

RDI is the best class minus the worst, NRGC the Gini coefficient of the classes, WCR the worst class, FP the class
mean minus lambda times RDI ([more](reading-an-audit.md#from-classes-to-one-number)). B is sqrt(pi/2), the largest
possible score.""",
    "Exact binomial": """\
The paper that adds an exact binomial test of probabilistic robustness to TorchAttacks (library `precise-robustness`).
An input is robust when at most a share kappa of its random neighbours is classified otherwise; neighbours are drawn
until a test with error rate alpha decides. P(z) is the share of robust inputs, P(w) that of inputs which pass the
test, k'/n' the same share among n' inputs that were tested. ERM, MART and PRL are training methods: plain,
adversarial and for probabilistic robustness.""",
    "Measurement algorithms": """\
*Robustness measurement algorithms*, section 26.3.1 of the AI Security Blog's handbook, 6 October 2025: pseudo-code
for adversarial accuracy, minimal perturbations and randomized smoothing.""",
    "Class-wise analysis": """\
T. Medi, J. Grabinski, M. Keuper: *Towards Class-wise Robustness Analysis*: which classes robust CIFAR-10 networks get
wrong, and which class the errors land in. CFPS is the share of all errors that land in a class, CWA the accuracy of a
class, err the share of samples that are misclassified, K the number of classes.""",
    "Projection fairness": """\
*Is the Fairness Metric Truly Fair?*, anonymous submission under review. It moves one attribute of a face until the
prediction changes. Tolerance (Tol) is how far that is, Deviation (Dev) half the difference between the two
directions, Coupling how unequally the attributes matter; [Projection](projection.md) has them as computed here. DP,
EOpp, EOdd and AOdd are the usual [differences between groups](groups.md).""",
}
"""Short name of each source, in the order of the page -> what it is."""

MARKS = {REPRODUCED: "✓ reproduced", REFUTED: "✗ refuted", UNTESTABLE: "○ untestable here"}

INTRODUCTION = """\
# What reproduces and what does not

This project builds on five sources ([References](#references)). For readers who want to rely on one of them, this page
puts its claims beside the numbers that we get. In short:

- **The GREAT score is not a certified radius** (H7). Calibrating it as published lowers its agreement with
  RobustBench on CIFAR-10 (H1), where clean accuracy alone ranks the models better (H4). On 17 real checkpoints no
  temperature makes it rank them by what survives attacks (GF28).
- **"More robust models are less fair"** holds by a metric that grows with the score; by a metric without scale the
  sign is the opposite one (H6, GF29).
- **A test that is repeated after every neighbour** errs far more often than its level says (EB4).
- **The published pseudo-code** misjudges robustness (MA1, MA2), and a smoothing certificate says nothing about the
  network that was smoothed (MA3).
- **The printed class accuracy** is 0.9 for a class that is never recognised (CW2), and a cosine near 1 between the
  predictions of two networks says nothing (CW4).
- **The printed Deviation** is impossible by its own formula in every cell (PF2).

What was counted in, or follows from, the printed tables of the GF-Score paper is right for the most part (GF1 to
GF16).

| verdict | meaning |
| --- | --- |
| {reproduced} | our number agrees to the precision printed, or the claimed relation holds; ties are noted |
| {refuted} | it does not, or the source contradicts itself; said of the claim, not of the whole source |
| {untestable} | it takes networks, attacks, data or files of the source that this package lacks; the note says which |

"Our number" is computed when this page is made, from the tables printed in the papers, from the RobustBench
leaderboard, by the functions of this package, or from audits of real networks: the logits of 8 published CIFAR-10
networks, 17 published CIFAR-10 checkpoints of 5 families, and two classifiers of real faces, trained here. Such a row
says how a claim fares on networks that its source never saw. It names networks, images, interval and the command that
computes it again, from files that are not shipped here (their folder is `GFSCORE_TEST_DATA`). Where a note says
"stated" or "unrounded", it quotes the authors' published files, which are not shipped here; no test checks it.
Shares and percentages stand as each source prints them; rho is Spearman's rank correlation.
"""

FURTHER = """\
The five sources, then the papers whose methods are implemented. A year or a title that is missing is not stated in the
copies at hand. Further methods are named by author and year where the code uses them. `CITATION.cff` lists the same.
"""

FOOTER = "Made by `studies/write_reproduction_page.py`; a test fails when this file and the computed numbers differ.\n"


def page():
    """The whole page as Markdown, computed from the ledger."""
    claims = ledger()
    introduction = INTRODUCTION.format(
        reproduced=f"**{MARKS[REPRODUCED]}**", refuted=f"**{MARKS[REFUTED]}**", untestable=f"**{MARKS[UNTESTABLE]}**"
    )
    sections = [introduction, _overview(claims)]
    for paper, source in PAPERS.items():
        claims_of_paper = [claim for claim in claims if claim.paper == paper]
        sections.append(_section(paper, source, claims_of_paper))
    return "\n".join([*sections, _references(), FOOTER])


def _overview(claims):
    counts = Counter((claim.paper, claim.verdict) for claim in claims)
    totals = Counter(claim.verdict for claim in claims)
    rows = []
    for paper in PAPERS:
        rows.append([paper, *(str(counts[paper, verdict]) for verdict in VERDICTS)])
    rows.append(["All", *(str(totals[verdict]) for verdict in VERDICTS)])
    return table(["Source", *(MARKS[verdict] for verdict in VERDICTS)], rows)


def _section(paper, source, claims):
    rows = [[c.key, c.claim, c.claimed, c.ours, MARKS[c.verdict]] for c in claims]
    claimed = table(["No.", "Claim", "The source's number", "Our number", "Verdict"], rows)
    notes = "".join(f"- **{c.key}** {c.note}\n" for c in claims if c.note)
    return f"## {paper}\n\n{source}\n\n{claimed}\nNotes\n\n{notes}"


def _references():
    rows = [[cited(reference), reference.taken] for reference in REFERENCES]
    return f"## References\n\n{FURTHER}\n{table(['Source', 'What is taken from it'], rows)}"
