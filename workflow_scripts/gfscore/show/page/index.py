"""The page that links the audits of a run: verdict, worst class and date of each."""

from collections.abc import Mapping

from gfscore.audit.verdicts.verdict import WORST_CLASS, Verdict
from gfscore.core.labels import readable_class
from gfscore.core.names import printable
from gfscore.core.numbers import span
from gfscore.show.page.html import environment, text_of
from gfscore.show.page.provenance import data_of, remarks_of, time_of, version_of


def render_index(verdicts: Mapping[str, Verdict], *, titles: Mapping[str, str]) -> str:
    """The page as text.

    Parameters
    ----------
    verdicts : mapping of str to Verdict
        By the name of the audit.
    titles : mapping of str to str
        Title of each audit.
    """
    audits = []
    for name, verdict in verdicts.items():
        models = 0
        best = "–"
        if verdict.rules:
            rule = verdict.rules[0]
            models = len(rule.models)
            (shown_model,) = (model for model in rule.models if model.key == verdict.shown_model)
            statistic = f"{rule.title}:"
            if rule.statistic == WORST_CLASS and shown_model.worst_class is not None:
                # By its name, since the number of the worst class alone says little.
                statistic = f"worst class {printable(readable_class(shown_model.worst_class))},"
            value = span(shown_model.value, shown_model.value_most, rule.range[1])
            best = f"{statistic} {value} ({printable(shown_model.model)})"
        row = {
            "name": name,
            "title": titles[name],
            "verdict": verdict.verdict,
            "models": models,
            "best": best,
            "judged": (time_of(verdict), version_of(verdict)),
            "data": f"{printable(verdict.dataset.name)}, {data_of(verdict)}…",
            "remarks": remarks_of(verdict),
            "finding": verdict.findings[0].sentence if verdict.findings else "",
        }
        audits.append(row)
    return environment().get_template("index.html").render(audits=audits, style=text_of("page.css"))
