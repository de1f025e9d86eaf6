"""Where the numbers of a page come from: digests and versions of its files and of its verdict."""

from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pandas as pd

from gfscore.audit.verdicts.verdict import Verdict
from gfscore.core import numbers
from gfscore.core.files import read_json
from gfscore.core.names import printable
from gfscore.core.software import software, version_in_words
from gfscore.show.page.elements import MODEL, Detail, TableView, named, table_of
from gfscore.tables.parquet_tables import read_identity

PACKAGES = ("numpy", "scipy", "pandas", "pyarrow", "matplotlib", "jinja2")
SHARED = ("dataset", "dataset_digest", "preprocessing", "outputs", "conversion", "dtype", "device", "torch")


def provenance_of(files: Mapping[str, str | Path]) -> dict[str, dict[str, Any]]:
    """Headings mapped to names and values, for render_report.

    Takes the mapping of paths that build_report takes: class_scores, whose metadata name dataset, checkpoints and
    versions, and calibration_json.
    """
    scores = read_identity(files["class_scores"])
    identities = scores.get("made_from", [])
    shared = {
        name.replace("_", " "): ", ".join(sorted({str(identity[name]) for identity in identities if name in identity}))
        for name in SHARED
    }
    audited = {"audit": scores.get("audit", ""), **{name: value for name, value in shared.items() if value}}
    audited.setdefault("dataset digest", scores.get("dataset_digest", ""))
    calibration = read_json(files["calibration_json"]) if files.get("calibration_json") else {}
    if calibration:
        digests = {result["models_digest"] for result in calibration.values()}
        audited["digest of the model set"] = ", ".join(sorted(digests))
    # Those of checkpoints are in verdict.json.
    code = {
        f"{identity['threat']}/{identity['model']}": identity["architecture_sha256"]
        for identity in identities
        if "architecture_sha256" in identity
    }
    drawn_by = {f"{name} (report)": words for name, words in versions().items()}
    headings = {"Data and versions": audited | drawn_by}
    return headings | ({"Code of networks in architectures/, SHA-256": code} if code else {})


def versions() -> dict[str, str]:
    """Version of gfscore, and those of PACKAGES, which draw a page."""
    return {"gfscore": version_in_words(software()), **{name: _installed(name) for name in PACKAGES}}


def _installed(package):
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


# ---- verdict ----


COMMIT, DIGEST = 10, 12
"""Letters of them where there is no room for all."""


def time_of(verdict: Verdict) -> str:
    """When it was judged: "24 November 2026, 16:48 UTC"."""
    return f"{datetime.fromisoformat(verdict.time).astimezone(UTC):%-d %B %Y, %H:%M} UTC"


def version_of(verdict: Verdict) -> str:
    """What judged it, with the commit as far as it is needed to tell it: "gfscore 0.1.0, commit 58e2f89c01"."""
    by = dict(verdict.software)
    if by["commit"]:
        by["commit"] = str(by["commit"])[:COMMIT]
    return f"{by['name']} {version_in_words(by)}"


def data_of(verdict: Verdict) -> str:
    """The first letters of the digest of its dataset."""
    return verdict.dataset.digest[:DIGEST]


def remarks_of(verdict: Verdict) -> list[str]:
    """Sentences on samples that no class has, that have no value, or that repeat an image; each once."""
    return [printable(remark) for remark in verdict.remarks]


def basis_of(verdict: Verdict) -> Detail:
    """What the verdict rests on, by digests."""
    data, by = verdict.dataset, verdict.software
    terms = [
        ("Judged", time_of(verdict)),
        ("By", f"{by['name']} {version_in_words(by)}"),
        ("Dataset", f"{printable(data.name)}, {numbers.count(data.rows)} rows"),
        ("Digest of the dataset", printable(data.digest)),
    ]
    return Detail(
        "What the verdict rests on: version, data, checkpoints and samples", terms=terms, table=_models(verdict)
    )


def _models(verdict: Verdict) -> TableView:
    # Of every measure that a rule judges: samples with a value, and of how many where these are fewer.
    expected = {}
    for rule in verdict.rules:
        for judged_model in rule.models:
            if judged_model.samples:
                expected[judged_model.label, rule.measure] = judged_model.samples.expected

    rows = []
    for label, model in verdict.models.items():
        samples = []
        settings = []
        for name, measure in model.measures.items():
            whole = expected.get((label, name), measure.samples)
            fewer = f" of {numbers.count(whole)}" if whole != measure.samples else ""
            samples.append(f"{printable(name)}: {numbers.count(measure.samples)}{fewer}")
            settings.append(f"{printable(name)}: {measure.settings_sha256[:DIGEST]}")
        rows.append(
            {
                "label": label,
                "samples": ", ".join(samples),
                "settings": ", ".join(settings),
                "checkpoint": model.checkpoint_sha256,
            }
        )
    columns = [
        MODEL,
        named("Samples with a value, by measure", "samples"),
        named("Settings of measures, SHA-256", "settings"),
        named("Checkpoint or given file, SHA-256", "checkpoint"),
    ]
    frame = pd.DataFrame(rows, columns=["label", "samples", "settings", "checkpoint"])
    return table_of(frame, "Models judged", "verdict", columns, most=max(1, len(frame)))
