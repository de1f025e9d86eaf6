"""The sections of the page: each a question, one picture, a few sentences, and closed details with all else."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gfscore.audit.findings.finding import FindingInWords
from gfscore.core.names import enumeration
from gfscore.show.page.elements import Detail
from gfscore.show.page.sections.contents import Contents, DrawnChart
from gfscore.show.page.sections.groups import of_groups
from gfscore.show.page.sections.making import of_making
from gfscore.show.page.sections.remedies import of_remedies
from gfscore.show.page.sections.results import of_certainty, of_classes, of_models
from gfscore.show.page.sections.trust import of_trust

QUESTIONS = {
    "which": "Which model?",
    "class": "Which class?",
    "sure": "How sure?",
    "trust": "Can the attack-free score be trusted?",
    "whom": "For whom?",
    "help": "What would help?",
    "how": "How was it done?",
}
"""Question of each section, by its id."""

DETAILS = {
    "which": of_models,
    "class": of_classes,
    "sure": of_certainty,
    "trust": of_trust,
    "whom": of_groups,
    "help": of_remedies,
    "how": of_making,
}
"""Function that makes the details of each section, by its id."""

CONTROLS = {"which": "which.html", "class": "class.html", "sure": "sure.html"}
"""Template of the controls of a section, by its id; the controls of the section "sure" choose a pair of models."""

SAID_BY = {
    "groups_differ": "group_scores",
    "weakest_class": "class_heatmap",
    "no_weakest_class": "class_heatmap",
    "score_refuted": "score_against_distance",
    "calibration_fails": "calibration_curves",
    "calibration_useless": "calibration_curves",
}
"""Chart whose title repeats a finding, by the kind of the finding; beside that chart its sentence is left out."""

MOST_SENTENCES = 3
MOST_NAMED = 3


@dataclass(frozen=True)
class Section:
    """One section: id, question, sentences, template of its controls and own picture, or a chart, and details."""

    id: str
    question: str
    sentences: list[str] = field(default_factory=list)
    controls: str | None = None
    chart: DrawnChart | None = None
    details: list[Detail] = field(default_factory=list)


def sections_of(contents: Contents) -> list[Section]:
    """The sections that an audit has anything for."""
    sections = []
    for name, question in QUESTIONS.items():
        controls = CONTROLS.get(name)
        if name == "sure" and not contents.paired:
            controls = None
        charts = [chart for chart in contents.charts if chart.chart.section == name]
        picture = None
        # These controls have a picture of tracks.
        if controls not in ("which.html", "sure.html"):
            picture = _first_chart(charts, contents.measure)
        details = _chart_details([chart for chart in charts if chart is not picture])
        for detail in DETAILS[name](contents):
            if detail is not None:
                details.append(detail)

        findings = [finding for finding in contents.verdict.findings if finding.section == name]
        sentences = []
        for sentence in sentences_beside(picture, findings):
            if sentence not in contents.screen_sentences:
                sentences.append(sentence)
        undrawn = [chart.sentence for chart in contents.undrawn if chart.chart.section == name]
        if details or picture or controls or undrawn:
            sentences = sentences[:MOST_SENTENCES] + undrawn
            sections.append(Section(name, question, sentences, controls, picture, details))
    return sections


def _first_chart(charts: Sequence[DrawnChart], measure: str) -> DrawnChart | None:
    for chart in charts:
        if chart.subject.measure == measure:
            return chart
    return charts[0] if charts else None


def sentences_beside(picture: DrawnChart | None, findings: Iterable[FindingInWords]) -> list[str]:
    """Sentences of findings, without those that the title of the section's picture repeats."""
    sentences = []
    for finding in findings:
        measure = finding.subject.get("score", finding.subject.get("measure"))
        in_title = picture is not None and (
            finding.sentence == picture.words.title
            or (SAID_BY.get(finding.kind) == picture.chart.name and picture.subject.measure in (None, measure))
        )
        if not in_title:
            sentences.append(finding.sentence)
    return sentences


def _chart_details(charts: Iterable[DrawnChart]) -> list[Detail]:
    # One line for each kind of chart, whatever the number of measures.
    by_title: dict[str, list[DrawnChart]] = {}
    for chart in charts:
        by_title.setdefault(chart.chart.title, []).append(chart)

    details = []
    for title, charts_of_title in by_title.items():
        measures = [chart.subject.measure for chart in charts_of_title if chart.subject.measure]
        subject = title
        if len(measures) > MOST_NAMED:
            subject = f"{title}, {len(measures)} measures"
        elif measures:
            subject = f"{title}, {enumeration(measures)}"
        details.append(Detail(f"{subject}: {charts_of_title[0].chart.question}", charts=charts_of_title))
    return details
