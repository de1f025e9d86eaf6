"""The page of findings: what its sentences say holds of the numbers kept, and both are of one make."""

from pathlib import Path

import numpy as np
import pytest

from studies.findings import numbers
from studies.findings.page import TITLES, page
from studies.reproduction.real_networks import CHECKPOINTS, TARGETED, networks

DOCS = Path(__file__).parents[2] / "docs"


def test_committed_page_is_the_generated_one():
    assert (DOCS / "findings.md").read_text(encoding="utf-8") == page(), "run studies/write_findings_page.py"


def test_every_finding_has_its_picture():
    for name in TITLES:
        assert (DOCS / "images" / f"{name}.png").stat().st_size > 10_000


@pytest.mark.parametrize("column", ["great_softmax", "great_sigmoid", "recall"])
def test_agreement_over_classes_is_the_mean_of_all_networks(column):
    each = [own[column].rank().corr(own["attacked_recall"].rank()) for own in numbers.standing().values()]
    value, low, high = numbers.class_agreement(column)
    assert len(each) == 13 and value == pytest.approx(np.mean(each), abs=1e-6)
    assert min(each) <= low <= value <= high <= max(each)


def test_networks_that_fall_to_attacks_are_left_out_of_the_orders_of_classes():
    left_out = set(networks(CHECKPOINTS)) - set(numbers.standing())
    assert left_out == {name for name, (_, attacked) in numbers.accuracies().items() if attacked < 0.1}
    assert all(name.startswith("std_resnet") for name in left_out)


def test_false_positives_tell_where_attacks_lead_on_every_network_trained_against_them():
    robust = {name for name in networks(TARGETED) if numbers.trained_against_attacks(name)}
    assert robust <= set(numbers.better_by_cfps()) and len(robust) == 10


def test_the_undefended_networks_have_the_highest_scores_and_fall():
    scores = {name: numbers.average(own, "great_softmax") for name, own in networks(CHECKPOINTS).items()}
    highest = sorted(scores, key=scores.get)[-4:]
    assert all(name.startswith("std_resnet") for name in highest)
    assert max(numbers.accuracies()[name][1] for name in highest) < 0.01
