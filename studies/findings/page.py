"""The page docs/findings.md."""

from studies.findings import numbers
from studies.findings.pictures import order_picture, predictors_picture, shared_picture
from studies.markdown import table
from studies.reproduction.classwise_networks import predictors_of_targeted_success
from studies.reproduction.real_networks import COMMAND, TARGETED, interval_words, networks

TITLES = {
    "findings-order": "The attack-free score orders classes as attacks do, but ranks undefended networks first",
    "findings-shared": "Most of what makes a class weak is common to all networks",
    "findings-predictors": "False positives tell where targeted attacks lead; recall tells which class falls",
}
"""Name of each picture -> its finding."""

COLUMNS = {"great_softmax": "softmax score", "great_sigmoid": "sigmoid score", "recall": "undisturbed accuracy"}
"""What is compared with the outcome of attacks, and its words."""

SHARED = (
    ("published-logits", "clean", "published networks, undisturbed"),
    ("real-checkpoints", "clean", "checkpoints, undisturbed"),
    ("real-checkpoints", "attacked", "checkpoints that keep 10%, under attack"),
)
"""Audit, measure and words of the shares in common."""


def pictures():
    """The figures of the page by name."""
    drawn = (order_picture, shared_picture, predictors_picture)
    return {name: draw(title) for draw, (name, title) in zip(drawn, TITLES.items(), strict=True)}


def page():
    """The whole page as Markdown, computed from what was measured."""
    return "\n".join([INTRODUCTION.format(command=COMMAND), _order(), _shared(), _predictors(), FOOTER])


INTRODUCTION = """\
# Three findings on real networks

Three questions that the [source papers](what-reproduces.md) leave open, put to 25 CIFAR-10 networks that others
published: **17 checkpoints** of five families (four ResNets, five CNN-A, three provable ones of Wong and Kolter, two of
ERAN, three of Marabou), audited here on 1,017 test images, and the logits of **8 large networks** on all 10,000. The
checkpoints are small but for the ResNets; ten are trained against attacks, for l_inf 2/255, the radius of all attacks
here. Attacks are PGD, then Auto-PGD with two losses, 20 steps each: what survives them may still fall to others.

Intervals are at 95%. Networks of a family share authors, architecture and recipe, so an interval is a bootstrap that
draws whole families; with five of them it is rather too narrow than too wide. What holds for these networks need not
hold for large robust ones. This makes everything anew, in five minutes on two cores, from files that are not shipped
here (`GFSCORE_TEST_DATA` names their folder):

```text
{command}
```
"""

FOOTER = (
    "Made by `studies/write_findings_page.py` from `studies/reference/real_networks.csv` and `.json`; a test fails "
    "when this file and those numbers differ.\n"
)


def _picture(name):
    return f"## {TITLES[name]}\n\n![{TITLES[name]}](images/{name}.png)\n"


def _order():
    accurate = len(numbers.standing())
    lead = interval_words(numbers.class_advantage("great_softmax", "recall"), "+")
    undefended = [attacked for name, (_, attacked) in numbers.accuracies().items() if name.startswith("std_resnet")]
    low, high = min(undefended), max(undefended)
    classes = [interval_words(numbers.class_agreement(column)) for column in COLUMNS]
    models = [interval_words(numbers.model_agreement(column)) for column in COLUMNS]
    robust = [interval_words(numbers.model_agreement(column, robust_only=True)) for column in COLUMNS]
    rows = [
        ["classes, mean over networks", *classes],
        ["networks, all 17", *models],
        ["networks, the 10 trained against attacks", *robust],
    ]
    return f"""{_picture("findings-order")}
Rank correlation with what survives the attacks:

{table(["order of", *COLUMNS.values()], rows)}
- **Classes.** On the {accurate} networks that keep at least 10% of the images, the order of the classes by softmax
  score is nearly that under attack. So is that by plain recall: the score's correlation less that of recall is {lead}.
- **Networks.** The four highest scores are those of the four ResNets, trained without defence, which keep {low:.1%} to
  {high:.1%} of the images. The score ranks confidence: over all 17 its correlation with robustness is negative here, as
  that of accuracy is, and families are too few to say what it is elsewhere, or among networks trained alike.
- So: read the score class by class within one network, as one reads recall, and never across networks of different
  training.
"""


def _shared():
    rows = []
    for audit, measure, words in SHARED:
        row = numbers.shared(audit, measure)
        share = interval_words((row["value"], row["low"], row["high"]))
        rows.append([words, str(row["networks"]), str(row["families"]), f"{row['images']:,}", share])
    return f"""{_picture("findings-shared")}
The share of the variance between classes that networks of *different* families have in common: covariances of class
recalls over the geometric means of their variances, over all pairs of networks of different families. All networks see
the same images, so that hard images alone make them alike; this is taken off without bias, and the intervals draw
images and families anew.

{table(["recall", "networks", "families", "images", "share in common"], rows)}
- The eight published networks, of eight architectures and one laboratory, count as eight families: what makes one of
  their classes weak is common to them, without a rest that 10,000 images could show. (Where
  little is left, taking off the noise may give more than 1.)
- Checkpoints of other authors, sizes and kinds of training have most of it in common too, undisturbed and under attack.
  What is left, by the intervals up to two fifths, is training's and architecture's part.
- These are CIFAR-10's ten classes; another data set may differ.
"""


def count_of(better, robust):
    """Of the networks trained against attacks, or of the others, how many are among `better`, as "k of n"."""
    names = [name for name in networks(TARGETED) if numbers.trained_against_attacks(name) == robust]
    return f"{len(set(names) & set(better))} of the {len(names)}"


def _predictors():
    rows = []
    for definition, words in numbers.DEFINITIONS.items():
        *means, p = predictors_of_targeted_success(definition)
        rows.append([words, *(interval_words(mean, "+") for mean in means), f"{p:.3f}"])
    better = numbers.better_by_cfps()
    errors, recall = map(interval_words, numbers.untargeted_predictors())
    return f"""{_picture("findings-predictors")}
Rank correlation over the ten classes with the success of targeted attacks towards a class, mean over the 13
checkpoints that are no ResNets; p is of a sign-flip test of the difference, as if networks were independent:

{table(["success", "CFPS", "1 - recall", "difference", "p"], rows)}
- **Where a targeted attack leads**, CFPS, the share of undisturbed errors that land in a class, tells better than
  1 - recall. Part of it is that both sides count the same undisturbed errors: beyond those, both correlations are
  lower, and the difference may be none. CFPS is the better one on {count_of(better, True)} networks
  trained against attacks, and on {count_of(better, False)} others (Marabou).
- **Which class falls** to untargeted attacks, recall tells: its correlation with recall under attack is
  {recall}.
  Where the errors land then, CFPS tells: {errors} with CFPS under attack, which contains the undisturbed errors too.
  Both on the networks that keep 10%.
- So the two do not compete: a weak class is one that loses its images, a sought-after class one that takes those of
  others. The ResNets are left out: attacks leave less than 1% of their images, so that every class is reached.
"""
