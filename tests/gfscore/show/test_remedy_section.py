"""What the page says of a remedy: one picture in a section of its own, and a few words beside the verdict."""

import re

import pytest

from gfscore.audit.findings.words import in_words
from gfscore.audit.remedies.findings import HELPS, NOT_SHOWN, finding_of, remedies_in_short
from gfscore.show.charts import CHARTS
from helpers.pages import audit_for_page, page_of
from helpers.synthetic_audits import ADVERSARIAL, ATTACKED, remedied, subject_of

SIZES = {"models": 2, "classes": 3, "per_class": 20, "permutations": 19, "calibrated": False}


def audit(*, at_least, gain=0.3):
    return audit_for_page(**SIZES, at_least=at_least, with_remedy={"gain": gain, "per_class": 200})


def part(text, start, end):
    found = re.search(f"{start}.*?{end}", text, flags=re.DOTALL)
    return found.group() if found else ""


def verdict_of(text):
    return part(text, '<section class="verdict', "</section>")


def section_of(text):
    return part(text, '<section class="part" id="help">', "</section>")


@pytest.mark.parametrize(("gain", "kind"), [(0.3, HELPS), (0.02, NOT_SHOWN)])
def test_a_model_that_fails_has_its_remedy_beside_the_verdict(gain, kind):
    made = audit(at_least=1.2, gain=gain)
    rows = remedies_in_short(made.tables.named("remedy_models"), made.tables.named("remedy_classes"))
    finding = finding_of(rows.iloc[0])
    assert finding.kind == kind
    text = page_of(made)
    words = in_words(f"{finding.kind}_in_short", finding.subject, finding.numbers, None)
    assert 'href="#help"' in verdict_of(text) and words in verdict_of(text)
    # The finding is the title of the section's picture, and is written nowhere else.
    assert f"<figcaption>{finding.sentence}</figcaption>" in section_of(text)
    assert text.count(f">{finding.sentence}") == 1


def test_a_model_that_passes_has_its_remedy_in_the_section_alone():
    text = page_of(audit(at_least=0.0))
    assert 'href="#help"' not in verdict_of(text) and "<figcaption>" in section_of(text)


def test_models_whose_long_names_begin_and_end_alike_have_panels_of_their_own():
    names = [f"cifar10_resnet_pgd_{run}_epoch_0100" for run in "ab"]
    subject = subject_of(remedied(names, ["cat", "dog"]), ATTACKED, measures={ATTACKED: ADVERSARIAL})
    models_of_panels = CHARTS["remedy"].data(subject).groupby("panel")["name"].unique()
    assert sorted(map(list, models_of_panels)) == [[names[0]], [names[0]], [names[1]], [names[1]]]


def test_an_audit_without_a_remedy_has_no_such_section():
    assert not section_of(page_of(audit_for_page(**SIZES, at_least=1.2)))
