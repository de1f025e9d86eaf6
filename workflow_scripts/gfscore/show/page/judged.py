"""When a verdict was judged, by which version, and of which data, checkpoints and samples."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pandas as pd

from gfscore.core import numbers
from gfscore.core.names import printable
from gfscore.core.software import version_in_words
from gfscore.show.page.tables import MODEL, Detail, TableView, named, table_of

COMMIT, DIGEST = 10, 12
"""Letters of them where there is no room for all."""


def time_of(verdict: Mapping[str, Any]) -> str:
    """When it was judged: "24 November 2026, 16:48 UTC"."""
    return f"{datetime.fromisoformat(verdict['time']).astimezone(UTC):%-d %B %Y, %H:%M} UTC"


def version_of(verdict: Mapping[str, Any]) -> str:
    """What judged it, with the commit as far as it is needed to tell it: "gfscore 0.1.0, commit 58e2f89c01"."""
    by = verdict["software"]
    return f"{by['name']} {version_in_words(by | {'commit': by['commit'] and by['commit'][:COMMIT]})}"


def data_of(verdict: Mapping[str, Any]) -> str:
    """The first letters of the digest of its dataset."""
    return str(verdict["dataset"]["digest"])[:DIGEST]


def remarks_of(verdict: Mapping[str, Any]) -> list[str]:
    """Sentences on samples that no class has, that have no value, or that repeat an image; each once."""
    names = ("without_samples", "missing", "repeated")
    return list(dict.fromkeys(printable(rule[name]) for rule in verdict["rules"] for name in names if rule.get(name)))


def basis_of(verdict: Mapping[str, Any]) -> Detail:
    """What the verdict rests on, by digests."""
    data, by = verdict["dataset"], verdict["software"]
    terms = [
        ("Judged", time_of(verdict)),
        ("By", f"{by['name']} {version_in_words(by)}"),
        ("Dataset", f"{printable(data['name'])}, {numbers.count(data['rows'])} rows"),
        ("Digest of the dataset", printable(data["digest"])),
    ]
    return Detail(
        "What the verdict rests on: version, data, checkpoints and samples", terms=terms, table=_models(verdict)
    )


def _models(verdict: Mapping[str, Any]) -> TableView:
    # Of every measure that a rule judges: samples with a value, and of how many where these are fewer.
    expected = {
        (f"{model['threat']}/{model['model']}", rule["measure"]): model["samples"]["expected"]
        for rule in verdict["rules"]
        for model in rule["models"]
        if model["samples"]
    }
    rows = []
    for label, own in verdict["models"].items():
        samples, settings = [], []
        for name, found in own["measures"].items():
            of = expected.get((label, name), found["samples"])
            fewer = f" of {numbers.count(of)}" if of != found["samples"] else ""
            samples.append(f"{printable(name)}: {numbers.count(found['samples'])}{fewer}")
            settings.append(f"{printable(name)}: {found['settings_sha256'][:DIGEST]}")
        words = {"samples": ", ".join(samples), "settings": ", ".join(settings)}
        rows.append({"label": label, "checkpoint": own["checkpoint_sha256"]} | words)
    columns = [
        MODEL,
        named("Samples with a value, by measure", "samples"),
        named("Settings of measures, SHA-256", "settings"),
        named("Checkpoint or given file, SHA-256", "checkpoint"),
    ]
    frame = pd.DataFrame(rows, columns=["label", "samples", "settings", "checkpoint"])
    return table_of(frame, "Models judged", "verdict", columns, most=max(1, len(frame)))
