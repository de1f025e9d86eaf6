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


def drawn(folder):
    return len(list((folder / "figures").glob("*.svg")))


def test_page_holds_every_figure_and_provenance(tmp_path):
    page = build(synthetic_audit(models=2, per_class=20), tmp_path)
    assert page.count("<figure>") == page.count("<svg ") == drawn(tmp_path) == 13
    for text in ("An audit", "c" * 64, "d" * 64, "none/model_1", "2.13.0", "digest of the model set"):
        assert text in page
    assert f"gfscore (report)</th><td><code>{version_in_words(software())}</code>" in page
    assert str(tmp_path) not in page
    assert "architectures/" not in page


def test_code_of_networks_of_ones_own_stands_beside_their_checkpoints(tmp_path):
    audit = synthetic_audit(models=1, per_class=20, measures=("clean",))
    page = build(audit, tmp_path, architecture_sha256="a" * 64)
    heading = "<summary>Code of networks in architectures/, SHA-256</summary>"
    assert page.index("<summary>Checkpoints, SHA-256</summary>") < page.index(heading)
    assert f'<th scope="row">none/model_0</th><td><code>{"a" * 64}' in page[page.index(heading) :]


def test_audit_without_temperature_search(tmp_path):
    page = build(synthetic_audit(models=2, per_class=20, measures=("clean",)), tmp_path)
    assert page.count("<figure>") == drawn(tmp_path) == 5
    assert "digest of the model set" not in page
