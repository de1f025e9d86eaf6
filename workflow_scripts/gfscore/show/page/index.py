"""The page that links the audits of a run: verdict, worst class and date of each."""

from collections.abc import Mapping

from gfscore.audit.verdicts.verdict import ModelVerdict, RuleVerdict, Verdict
from gfscore.core.names import printable
from gfscore.core.numbers import number
from gfscore.show.page import provenance
from gfscore.show.page.first_screen import WORST_CLASS
from gfscore.show.page.html import environment, text_of


def render_index(verdicts: Mapping[str, Verdict], *, titles: Mapping[str, str]) -> str:
    """The page as text, from the verdict on each audit and its title, by its name."""
    audits = [_audit(name, titles[name], verdict) for name, verdict in verdicts.items()]
    return environment().get_template("index.html").render(audits=audits, style=text_of("page.css"))


def _audit(name: str, title: str, verdict: Verdict) -> dict[str, object]:
    models = 0
    best = "–"
    if verdict.rules:
        rule = verdict.rules[0]
        models = len(rule.models)
        (shown,) = (model for model in rule.models if model.key == verdict.shown_model)
        best = f"{_statistic(rule, shown)} {number(shown.value)} ({printable(shown.model)})"
    return {
        "name": name,
        "title": title,
        "verdict": verdict.verdict,
        "models": models,
        "best": best,
        "judged": [provenance.time_of(verdict), provenance.version_of(verdict)],
        "data": f"{printable(verdict.dataset.name)}, {provenance.data_of(verdict)}…",
        "remarks": provenance.remarks_of(verdict),
        "finding": verdict.findings[0].sentence if verdict.findings else "",
    }


def _statistic(rule: RuleVerdict, model: ModelVerdict) -> str:
    # The worst class by its name, since its number alone says little.
    if rule.statistic == WORST_CLASS and model.worst_class is not None:
        return f"worst class {printable(model.worst_class)},"
    return f"{rule.title}:"
