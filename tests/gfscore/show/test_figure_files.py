"""Figures of an audit as files."""

from gfscore.audit.table_names import TABLES_OF_AUDIT
from gfscore.show.charts.declaration import SCORE
from gfscore.show.figure_files import draw_by_processes
from gfscore.workflow.configuration import configured
from gfscore.workflow.plan import Run
from helpers.finished_audits import AUDIT, finished_audit


def test_several_processes_draw_from_samples(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    finished_audit()
    audit = Run(configured(["config.yaml"], {}).config).audits[AUDIT]
    files = {name: f"{audit.folder}/{name}.parquet" for name in TABLES_OF_AUDIT if name != "costs"}
    files |= {f"{name}_json": f"{audit.folder}/{name}.json" for name in ("calibration", "comparison")}
    files |= {"selection": f"{audit.folder}/models.json"}
    files |= {"scores": f"results/scores/{AUDIT}.parquet", "dataset": audit.dataset.samples}
    measures = audit.measure_entries()
    scores = {name: entry for name, entry in measures.items() if entry["kind"] == SCORE}
    settings = {
        "audit": AUDIT,
        "measures": measures,
        "fp_lambda": 0.25,
        "sampled": audit.subject() | {"measures": scores},
    }
    for threads in (1, 2):
        draw_by_processes(files, tmp_path / f"by_{threads}", threads=threads, **settings)
    one, two = ({path.name: path.read_bytes() for path in (tmp_path / f"by_{n}").iterdir()} for n in (1, 2))
    assert one == two
    assert "logit_shift_sensitivity.svg" in one
