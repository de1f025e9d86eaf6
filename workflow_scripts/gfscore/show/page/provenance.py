"""Where the numbers of a report come from: digests and versions out of the identity metadata of its files."""

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from gfscore.core.files import read_json
from gfscore.core.software import software, version_in_words
from gfscore.tables.parquet_tables import read_identity

PACKAGES = ("numpy", "scipy", "pandas", "pyarrow", "matplotlib", "jinja2")
SHARED = ("dataset", "dataset_digest", "preprocessing", "outputs", "conversion", "dtype", "device", "torch")


def provenance(files: Mapping[str, str | Path]) -> dict[str, dict[str, Any]]:
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
