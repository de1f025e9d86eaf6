"""Figures of an audit as files."""

from gfscore.audit.table_names import TABLES_OF_AUDIT
from gfscore.show.charts.declaration import SCORE
from gfscore.show.figure_files import draw_by_processes
from gfscore.workflow.configuration import configured
from gfscore.workflow.plan import Run
from helpers.finished_audits import AUDIT, finished_audit


def test_several_processes_draw_from_samples(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    finished_audit(page=False)
    audit = Run(configured(["config.yaml"], {}).config).audits[AUDIT]
    files = {name: f"{audit.folder}/{name}.parquet" for name in TABLES_OF_AUDIT if name != "costs"}
    files |= {f"{name}_json": f"{audit.folder}/{name}.json" for name in ("calibration", "comparison")}
    files |= {"selection": f"{audit.folder}/models.json"}
    files |= {"scores": f"results/scores/{AUDIT}.parquet", "dataset": audit.dataset.samples}
    measures = audit.measure_entries()
    scores = {name: entry for name, entry in measures.items() if entry["kind"] == SCORE}
    draw_by_processes(
        files,
        tmp_path / "figures",
        threads=2,
        audit=AUDIT,
        measures=measures,
        fp_lambda=0.25,
        sampled=audit.subject() | {"measures": scores},
    )
    drawn = {path.stem for path in (tmp_path / "figures").glob("*.svg")}
    # Each process has charts of tables; that of the score draws one from samples.
    assert {"class_heatmap_clean", "class_heatmap_great-softmax", "rdi_concentration_great-softmax"} <= drawn
