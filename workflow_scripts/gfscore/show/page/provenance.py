"""Where the numbers of a page come from: digests and versions of its files and of its verdict."""

from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

import pandas as pd

from gfscore.audit.audit_folder import AuditFolder
from gfscore.audit.verdicts.verdict import Verdict
from gfscore.core import numbers
from gfscore.core.names import printable, printable_all
from gfscore.core.software import software, version_in_words
from gfscore.show.page.elements import MODEL, Detail, TableView, named, table_of
from gfscore.tables.parquet_tables import read_identity

PACKAGES = ("numpy", "scipy", "pandas", "pyarrow", "matplotlib", "jinja2")
"""Packages that draw a page."""

SHARED = ("dataset", "dataset_digest", "preprocessing", "outputs", "conversion", "dtype", "device", "torch")
"""Entries of the identities of logits that are shown."""

COMMIT_LETTERS = 10
DIGEST_LETTERS = 12
"""Letters of a commit and of a digest where there is no room for all."""


# ---- files ----


def provenance_of(folder: AuditFolder) -> dict[str, dict[str, str]]:
    """Names and values by heading: dataset, checkpoints and versions that the class scores of an audit name."""
    scores = read_identity(folder.table_file("class_scores"))
    identities = scores.get("made_from", [])

    audited = {"audit": scores.get("audit", "")}
    for name in SHARED:
        values = {str(identity[name]) for identity in identities if name in identity}
        common_values = ", ".join(sorted(values))
        if common_values:
            audited[name.replace("_", " ")] = common_values
    audited.setdefault("dataset digest", scores.get("dataset_digest", ""))
    digests = {calibration.models_digest for calibration in folder.calibrations().values()}
    if digests:
        audited["digest of the model set"] = ", ".join(sorted(digests))
    for name, words in versions().items():
        audited[f"{name} (report)"] = words

    headings = {"Data and versions": audited}
    # SHA-256 of the code by model; digests of checkpoints are in verdict.json.
    architectures = {}
    for identity in identities:
        if "architecture_sha256" in identity:
            architectures[f"{identity['threat']}/{identity['model']}"] = identity["architecture_sha256"]
    if architectures:
        headings["Code of networks in architectures/, SHA-256"] = architectures
    return headings


def versions() -> dict[str, str]:
    """Versions of gfscore and of PACKAGES."""
    result = {"gfscore": version_in_words(software())}
    for package in PACKAGES:
        try:
            result[package] = version(package)
        except PackageNotFoundError:
            result[package] = "not installed"
    return result


# ---- verdict ----


def time_of(verdict: Verdict) -> str:
    """When it was judged: "24 November 2026, 16:48 UTC"."""
    return time_in_words(verdict.time)


def time_in_words(time: str) -> str:
    """A time in ISO format: "24 November 2026, 16:48 UTC"."""
    return f"{datetime.fromisoformat(time).astimezone(UTC):%-d %B %Y, %H:%M} UTC"


def version_of(verdict: Verdict) -> str:
    """What judged it, with the first letters of the commit: "gfscore 0.1.0, commit 58e2f89c01"."""
    short = dict(verdict.software)
    if short["commit"]:
        short["commit"] = str(short["commit"])[:COMMIT_LETTERS]
    return f"{short['name']} {version_in_words(short)}"


def data_of(verdict: Verdict) -> str:
    """The first letters of the digest of its dataset."""
    return verdict.dataset.digest[:DIGEST_LETTERS]


def remarks_of(verdict: Verdict) -> list[str]:
    """Sentences on samples that no class has, that have no value, or that repeat an image; each once."""
    return printable_all(verdict.remarks)


def basis_of(verdict: Verdict) -> Detail:
    """What the verdict rests on, by digests."""
    dataset = verdict.dataset
    terms = [
        ("Judged", time_of(verdict)),
        ("By", f"{verdict.software['name']} {version_in_words(verdict.software)}"),
        ("Dataset", f"{printable(dataset.name)}, {numbers.count(dataset.rows)} rows"),
        ("Digest of the dataset", printable(dataset.digest)),
    ]
    release = verdict.last_release
    if release is not None:
        judged = f"{printable(release.audit)}, judged {time_in_words(release.judged)} by gfscore {release.version}"
        terms.append(("Last release", judged))
        terms.append(("Statement of its bundle, SHA-256", printable(release.statement_sha256)))
    summary = "What the verdict rests on: version, data, checkpoints and samples"
    return Detail(summary, terms=terms, table=_models(verdict))


def _models(verdict: Verdict) -> TableView:
    expected_samples = {}
    for rule in verdict.rules:
        for judged in rule.models:
            if judged.samples:
                expected_samples[judged.label, rule.measure] = judged.samples.expected

    rows = []
    for label, model in verdict.models.items():
        samples = []
        settings = []
        for name, measure in model.measures.items():
            count = f"{printable(name)}: {numbers.count(measure.samples)}"
            expected = expected_samples.get((label, name), measure.samples)
            if expected != measure.samples:
                count += f" of {numbers.count(expected)}"
            samples.append(count)
            settings.append(f"{printable(name)}: {measure.settings_sha256[:DIGEST_LETTERS]}")
        row = {
            "label": label,
            "samples": ", ".join(samples),
            "settings": ", ".join(settings),
            "checkpoint": model.checkpoint_sha256,
        }
        rows.append(row)
    columns = [
        MODEL,
        named("Samples with a value, by measure", "samples"),
        named("Settings of measures, SHA-256", "settings"),
        named("Checkpoint or given file, SHA-256", "checkpoint"),
    ]
    frame = pd.DataFrame(rows, columns=["label", "samples", "settings", "checkpoint"])
    return table_of(frame, "Models judged", "verdict", columns, most=max(1, len(frame)))
