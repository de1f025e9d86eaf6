"""Where the numbers of a report come from: digests and versions out of the identity metadata of its files."""

from importlib.metadata import PackageNotFoundError, version

from gfscore.files import read_json
from gfscore.software import software, version_in_words
from gfscore.tables import read_identity

PACKAGES = ("numpy", "scipy", "pandas", "pyarrow", "matplotlib", "jinja2")
SHARED = ("dataset", "dataset_digest", "preprocessing", "dtype", "device", "torch")


def provenance(files):
    """Headings mapped to names and values, for render_report.

    Takes the mapping of paths that build_report takes: class_scores, and where there are any calibration_json and
    samples, a list of samples files whose metadata name dataset, checkpoint and versions.
    """
    identities = [read_identity(path) for path in files.get("samples") or []]
    scores = read_identity(files["class_scores"])
    shared = {
        name.replace("_", " "): ", ".join(sorted({str(identity[name]) for identity in identities if name in identity}))
        for name in SHARED
    }
    audited = {"audit": scores.get("audit", ""), **{name: value for name, value in shared.items() if value}}
    audited.setdefault("dataset digest", scores.get("dataset_digest", ""))
    if files.get("calibration_json"):
        digests = {result["models_digest"] for result in read_json(files["calibration_json"]).values()}
        audited["digest of the model set"] = ", ".join(sorted(digests))
    checkpoints = {
        f"{identity['threat']}/{identity['model']}": identity["checkpoint_sha256"]
        for identity in identities
        if "checkpoint_sha256" in identity
    }
    versions = {"gfscore": version_in_words(software()), **{name: _installed(name) for name in PACKAGES}}
    headings = {"Data and versions": audited | {f"{name} (report)": words for name, words in versions.items()}}
    return headings | ({"Checkpoints, SHA-256": checkpoints} if checkpoints else {})


def _installed(package):
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
