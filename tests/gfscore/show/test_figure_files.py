"""Figures of an audit as files."""

from pathlib import Path

from gfscore.audit.audit_folder import AuditFolder
from gfscore.show.figure_files import DrawnAudit, draw_by_processes
from gfscore.workflow.audit_steps import subject
from gfscore.workflow.configuration import resolved_configuration
from gfscore.workflow.plan import Run
from helpers.finished_audits import AUDIT, finished_audit


def test_several_processes_draw_from_samples(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    finished_audit(page=False)
    audit = Run(resolved_configuration(["config.yaml"], {}).config).audits[AUDIT]
    drawn_audit = DrawnAudit(
        folder=AuditFolder(Path(audit.folder), AUDIT),
        subject=subject(audit),
        fp_lambda=0.25,
        scores=f"results/scores/{AUDIT}.parquet",
        dataset=audit.dataset.samples,
    )
    draw_by_processes(drawn_audit, tmp_path / "figures", threads=2)
    drawn = {path.stem for path in (tmp_path / "figures").glob("*.svg")}
    # Each process has charts of tables; that of the score draws one from samples.
    assert {"class_heatmap_clean", "class_heatmap_great-softmax", "rdi_concentration_great-softmax"} <= drawn
