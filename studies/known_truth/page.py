"""The page "Which measure recovers the truth", as Markdown."""

import math

from studies.known_truth import cases, planted
from studies.known_truth.classifiers import TWINS
from studies.markdown import table

MARKS = ("<!-- bounds: made from the real networks -->", "<!-- end of bounds -->")
"""Lines around the part that needs data of others; it is kept when they are not there."""

GRADIENT_BASED = ("PGD", "minimal l_inf distance")
"""Measures whose failure the signs of masking are meant to show."""

INTRODUCTION = f"""\
# Which measure recovers the truth

On real networks nobody knows how robust a class is, so a measure can only be compared with another. Here every [kind
of measure](measures.md) is run on a classifier whose robustness is known, to help you judge how far to trust it.

The classifier predicts the brightest of K rows of a small image. Its l2 and l_inf distances to the decision boundary,
the radius of its smoothed version and its probability of changing under noise follow from formulas, which the tests
check against images on either side of the boundary and against simulation. Every image is classified correctly. Each
class has its own mean l2 distance, {planted.WEAKEST_OTHER} to {planted.STRONGEST}; that of the *weak class* is only
{planted.WEAK}.

The same decisions can come with other logits. Each *twin* below decides as the plain classifier does on every image,
so all distances and probabilities are the same:

{{twins}}
A measure of robustness ought to give all twins the same values, rank the classes by their distance, and find the weak
class. Adversarial measures use an l_inf radius of {cases.EPS}, smoothing a noise of sigma = {cases.SIGMA}. The
probabilistic measure, at kappa = {cases.KAPPA}, asks whether at most that share of random neighbours changes. Square
has {cases.SQUARE["queries"]} queries, fewer than the thousands that it usually gets, and misses examples for that.

![Class values of six measures against the planted distance](images/known-truth.png)
"""

SUMMARY = """\
## What it shows

- **Clean accuracy and corruptions say little.** Brightness and contrast change nothing here; Gaussian noise shows the
  weak class, but leaves the others near 1 in no reliable order.
- **The GREAT score ranks the classes of the plain twin and is not a distance.** With ten times the logits it exceeds
  the true distance of every image. With logits surer of the weak class only, that class is no longer the lowest. The
  classifier is as robust as before in both cases.
- **Gradient attacks are exact where gradients are informative, and blind where they are not.** PGD follows the
  log-odds of the true class, and minimal-norm attacks its margin; neither goes through the softmax, so they are exact
  on the saturated twin too, whose cross-entropy has no gradient left. Where the gradient is 0 everywhere, on the last
  two twins, all of them overstate robustness.
- **The warnings appear.** Two signs give the blind attacks away: Square, which needs no gradients, breaks samples
  that they left; and samples of several classes survive at l_inf 0.5, where every ball holds the same grey image.
  Values with such a warning are no evidence of robustness.
- **Certificates and sequential tests see decisions only**, so their values are identical for all twins. Certified
  radii never exceed the true ones here, and stay below them: the draws are few, and with more than two classes they
  ignore how the remaining probability is shared between the other classes. The tests of the probabilistic measure
  leave images near kappa undecided, which count as not robust.
- **None is complete.** One radius, or one kappa, ties all classes that lie far below or far above it.

What this does not show: real networks are not linear, and attacks on them are harder. These classifiers can refute a
measure, or an implementation of it; they cannot prove that one works everywhere.

The tables below give, for K = 10, 3 and 2, first whether a measure found the weak class: ✓ where that class alone has
the lowest value, ✗ where not. Beside it stands Spearman's correlation of class values with true distances, or *all
equal* where the classes do not differ.
"""

FOOTER = "Made by `studies/write_known_truth_page.py`; a test fails when this file and the computed numbers differ.\n"


def page(suites, bounds):
    """The whole page as Markdown.

    Parameters
    ----------
    suites : dict of int to list of Twin
        Results of run_suite by the number of classes K.
    bounds : str
        What stands between MARKS.
    """
    twins = "".join(f"- *{name}*: {words}\n" for name, words in TWINS.items())
    most = max(suites)
    sections = [INTRODUCTION.format(twins=twins), SUMMARY]
    for classes in sorted(suites, reverse=True):
        sections.append(f"## {classes} classes\n\n{_samples(suites[classes])}\n")
        sections.append(_ranking(suites[classes]))
        if classes == most:
            sections.append(_differences(suites[classes]))
    sections.append(_promises(suites))
    sections.append(_signs(suites[most], most))
    sections.append(BOUNDS)
    sections.append("\n".join([MARKS[0], "", bounds.strip(), "", MARKS[1], ""]))
    sections.append(FOOTER)
    return "\n".join(sections)


BOUNDS = """\
## Proofs and attacks on real networks

Where the truth is unknown, two measures can still contradict each other: a sample that is proven robust in a ball
must not be broken by any attack in it. The table holds three small CIFAR-10 networks that were trained to be provable
at l_inf 2/255. On the first images of the test set, linear bounds (CROWN) stand beside the attacks of this package in
that ball. All proven samples survive, as they must; what is true of samples that survive unproven is not known. The
samples are few, because a proof takes seconds. The attacks are PGD (20 steps, 2 restarts) and the members of
AutoAttack (30 steps, Square with 300 queries); for the last two columns, the nearer of the examples that FMN and
DeepFool find.
"""


def bounds_of(text):
    """The part of an existing page between MARKS; empty where there is none."""
    if MARKS[0] not in text:
        return ""
    return text.split(MARKS[0])[1].split(MARKS[1])[0].strip()


def _samples(twins):
    rows = twins[0].rows
    return f"{rows[0].samples // rows[0].classes} images per class, {rows[0].samples} in all."


def _by_measure(twins, cell):
    rows = []
    for rows_of_measure in zip(*(twin.rows for twin in twins), strict=True):
        rows.append([rows_of_measure[0].measure, *map(cell, rows_of_measure)])
    return table(["", *(twin.name for twin in twins)], rows)


def _ranking(twins):
    words = "Weak class found, and correlation with the true distances:\n\n"
    return words + _by_measure(twins, _rank_cell)


def _rank_cell(row):
    agreement = "all equal" if math.isnan(row.rank_agreement) else f"{row.rank_agreement:+.2f}"
    return f"{'✓' if row.finds_weak else '✗'} {agreement}"


def _differences(twins):
    words = (
        "Mean of value minus truth, in the unit of the measure, and how many values are above (↑) and below (↓) the "
        "truth.\nThe score is held against the l2 distance, which its literature says it bounds. Without arrows the "
        "truth is an\naverage over noise.\n\n"
    )
    return words + _by_measure(twins, _difference_cell)


def _difference_cell(row):
    # Adding zero turns -0.00 into 0.00.
    difference = f"{round(row.difference, 2) + 0:+.2f}"
    return difference if math.isnan(row.above) else f"{difference} ({row.above:.0f}↑ {row.below:.0f}↓)"


def _promises(suites):
    rows = []
    for position, case in enumerate(cases.CASES):
        if case.promise == cases.NOTHING:
            continue
        broken = 0
        samples = 0
        for twins in suites.values():
            # Twins share images and draws, so that only the worst of them counts.
            broken += max(twin.rows[position].broken for twin in twins)
            samples += twins[0].rows[position].samples
        rows.append([case.name, case.promise, f"{broken} of {samples}", str(case.allowed(samples))])
    header = ["", "promised, relative to the truth", "broken, worst twin", "chance explains"]
    words = (
        "What each measure promises of a single value, and how often it broke that, over all K. The last column says "
        "how\nmany broken promises chance explains. The score promises nothing here; its literature promises a lower "
        "bound on the\ndistance, which every ↑ in its rows above breaks.\n\n"
    )
    return f"## Promises\n\n{words}" + table(header, rows)


def _signs(twins, classes):
    rows = []
    for twin in twins:
        for measure in GRADIENT_BASED:
            signs = [sign for sign in twin.signs if sign.measure == measure]
            words = [f"{'proof' if sign.proof else 'suspicion'}: {sign.text}" for sign in signs]
            rows.append([twin.name, measure, "; ".join(words) or "none"])
    words = f"What the package itself says of two measures, without knowing the truth, at K = {classes}:\n\n"
    return f"## Signs of gradient masking\n\n{words}" + table(["twin", "measure", "sign"], rows)
