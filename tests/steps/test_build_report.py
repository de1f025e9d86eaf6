"""The step build_report, with the provenance it collects."""

from build_report import build_report
from gfscore.core.checksummed import require_checksum
from gfscore.core.software import software, version_in_words
from plot_figures import plot_figures
from synthetic import AUDIT, LAM, synthetic_audit

IDENTITY = {
    "dataset": "toy",
    "threat": "none",
    "dataset_digest": "d" * 64,
    "checkpoint_sha256": "c" * 64,
    "torch": "2.13.0",
    "device": "cpu",
    "dtype": "float32",
}


def build(audit, folder, **identity):
    made_from = [{**IDENTITY, **identity, "model": model["model"]} for model in audit.models]
    files = audit.write(folder, made_from=made_from)
    plot_figures(files, folder / "figures", audit=AUDIT, measures=audit.measures, fp_lambda=LAM)
    build_report(
        files | {"figures": folder / "figures"},
        folder / "report.html",
        audit=AUDIT,
        title="An audit",
        measures=audit.measures,
        models=audit.models,
        published_samples=None,
        fp_lambda=LAM,
        contact=None,
    )
    require_checksum(folder / "report.html")
    return (folder / "report.html").read_text(encoding="utf-8")


def shown(page, summary):
    """What stands in the closed details of a page whose summary begins like this."""
    start = page.index(f"<details><summary>{summary}")
    return page[start : page.index("</details>", start)]


def test_page_holds_charts_and_provenance(tmp_path):
    page = build(synthetic_audit(models=2, per_class=20), tmp_path)
    assert page.count("data-chart") >= len(list((tmp_path / "figures").glob("*.svg"))) == 13
    versions = shown(page, "Provenance: Data and versions")
    for text in ("An audit", "d" * 64, "none/model_1", "2.13.0", version_in_words(software())):
        assert text in page
    assert "digest of the model set" in versions
    checkpoints = shown(page, "Provenance: Checkpoints, SHA-256")
    assert checkpoints.count("c" * 64) == 2 and "none/model_0" in checkpoints
    assert str(tmp_path) not in page
    assert "architectures/" not in page


def test_code_of_networks_of_ones_own_stands_beside_their_checkpoints(tmp_path):
    audit = synthetic_audit(models=1, per_class=20, measures=("clean",))
    page = build(audit, tmp_path, architecture_sha256="a" * 64)
    assert "a" * 64 in page[page.index("<summary>Provenance: Checkpoints, SHA-256</summary>") :]


def test_audit_without_temperature_search(tmp_path):
    page = build(synthetic_audit(models=2, per_class=20, measures=("clean",)), tmp_path)
    assert page.count("data-chart") >= len(list((tmp_path / "figures").glob("*.svg"))) > 0
    assert "digest of the model set" not in page
