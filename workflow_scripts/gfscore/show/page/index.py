"""The page that links the audits of a run: verdict, worst class and date of each."""

from collections.abc import Mapping
from typing import Any

from gfscore.audit.verdicts.verdict import shown_model
from gfscore.core.names import printable
from gfscore.core.numbers import number
from gfscore.show.page import judged
from gfscore.show.page.first_screen import WORST_CLASS
from gfscore.show.page.rendering import environment, text_of


def render_index(verdicts: Mapping[str, Mapping[str, Any]], *, titles: Mapping[str, str]) -> str:
    """The page as text, from the contents of verdict.json and the title of each audit, by its name."""
    audits = [_audit(name, titles[name], verdict) for name, verdict in verdicts.items()]
    return environment().get_template("index.html").render(audits=audits, style=text_of("page.css"))


def _audit(name, title, verdict):
    shown, rule = shown_model(verdict), next(iter(verdict["rules"]), None)
    models = rule["models"] if rule else []
    own: Mapping[str, Any] = next((model for model in models if (model["threat"], model["model"]) == shown), {})
    return {
        "name": name,
        "title": title,
        "verdict": verdict["verdict"],
        "models": len(models),
        "best": f"{_statistic(rule, own)} {number(own['value'])} ({printable(own['model'])})" if rule and own else "–",
        "judged": [judged.time_of(verdict), judged.version_of(verdict)],
        "data": f"{printable(verdict['dataset']['name'])}, {judged.data_of(verdict)}…",
        "remarks": judged.remarks_of(verdict),
        "finding": next((finding["sentence"] for finding in verdict.get("findings", [])), ""),
    }


def _statistic(rule, own):
    # The worst class by its name, since its number alone says little.
    if rule["statistic"] == WORST_CLASS and own["worst_class"] is not None:
        return f"worst class {printable(own['worst_class'])},"
    return f"{rule['title']}:"
