"""The six sections of the page: each a question, one picture, a few sentences, and closed details with all else."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from gfscore.audit.findings.finding import FindingInWords
from gfscore.core.names import enumeration
from gfscore.show.page.elements import Detail
from gfscore.show.page.sections.contents import Contents, DrawnChart
from gfscore.show.page.sections.groups import of_groups
from gfscore.show.page.sections.making import of_making
from gfscore.show.page.sections.results import of_certainty, of_classes, of_models
from gfscore.show.page.sections.trust import of_trust

QUESTIONS = {
    "which": "Which model?",
    "class": "Which class?",
    "sure": "How sure?",
    "trust": "Can the attack-free score be trusted?",
    "whom": "For whom?",
    "how": "How was it done?",
}
"""Question of each section, by its id."""

SAID_BY = {
    "groups_differ": "group_scores",
    "weakest_class": "class_heatmap",
    "no_weakest_class": "class_heatmap",
    "score_refuted": "score_against_distance",
    "order_reversed": "measure_agreement",
    "calibration_fails": "calibration_curves",
}
"""Kinds of findings to the chart whose title says the same: beside that picture they would be said twice."""

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
    makers = {
        "which": of_models, "class": of_classes, "sure": of_certainty, "trust": of_trust, "whom": of_groups,
        "how": of_making,
    }  # fmt: skip
    found = []
    for name, question in QUESTIONS.items():
        details = [detail for detail in makers[name](contents) if detail is not None]
        charts = [chart for chart in contents.charts if chart.chart.section == name]
        own = {"which": "which.html", "class": "class.html", "sure": "sure.html" if contents.paired else None}.get(name)
        first = [*(chart for chart in charts if chart.subject.measure == contents.measure), *charts, None][0]
        picture = None if own in ("which.html", "sure.html") else first
        drawn = _of_charts([chart for chart in charts if chart is not picture])
        findings = [finding for finding in contents.verdict.findings if finding.section == name]
        sentences = [words for words in sentences_beside(picture, findings) if words not in contents.shown]
        undrawn = [chart.sentence for chart in contents.undrawn if chart.chart.section == name]
        if details or drawn or picture or own or undrawn:
            sentences = [*sentences[:MOST_SENTENCES], *undrawn]
            found.append(Section(name, question, sentences, own, picture, [*drawn, *details]))
    return found


def sentences_beside(picture: DrawnChart | None, findings: Iterable[FindingInWords]) -> list[str]:
    """Sentences of findings but for what the picture's own title says."""

    def says(finding: FindingInWords) -> bool:
        about = finding.subject.get("score", finding.subject.get("measure"))
        if picture is None or SAID_BY.get(finding.kind) != picture.chart.name:
            return False
        return picture.subject.measure in (None, about)

    return [finding.sentence for finding in findings if not says(finding)]


def _of_charts(charts):
    # One line for each kind of chart, whatever the number of measures.
    by_title: dict[str, list[DrawnChart]] = {}
    for chart in charts:
        by_title.setdefault(chart.chart.title, []).append(chart)
    return [Detail(f"{title}{_measures(own)}: {own[0].chart.question}", charts=own) for title, own in by_title.items()]


def _measures(charts):
    names = [chart.subject.measure for chart in charts if chart.subject.measure]
    if len(names) > MOST_NAMED:
        return f", {len(names)} measures"
    return f", {enumeration(names)}" if names else ""
