"""The step plot_figures."""

from multiprocessing import active_children

import pytest

from gfscore.core.digests import changed_files
from gfscore.core.errors import InputError
from gfscore.show import figure_files
from helpers.synthetic_audits import AUDIT, LAM, synthetic_audit
from plot_figures import plot_figures


def test_writes_every_figure_as_svg_pdf_and_png(tmp_path):
    audit = synthetic_audit(models=2, per_class=20, measures=("great-softmax",))
    plot_figures(audit.write(tmp_path), tmp_path / "figures", audit=AUDIT, measures=audit.measures, fp_lambda=LAM)
    names = sorted(path.name for path in (tmp_path / "figures").iterdir())
    assert len(names) == 3 * 7 + 1
    assert changed_files(tmp_path / "figures") == []
    assert "class_heatmap_great-softmax.svg" in names
    assert "calibration_curves.png" in names


def test_audit_without_temperature_search(tmp_path):
    audit = synthetic_audit(models=2, per_class=20, measures=("clean",))
    plot_figures(audit.write(tmp_path), tmp_path / "figures", audit=AUDIT, measures=audit.measures, fp_lambda=LAM)
    assert len(list((tmp_path / "figures").iterdir())) == 3 * 5 + 1


def test_several_processes_write_the_same_files_as_one(tmp_path):
    audit = synthetic_audit(models=2, per_class=20, measures=("great-softmax",))
    files, settings = audit.write(tmp_path), {"audit": AUDIT, "measures": audit.measures, "fp_lambda": LAM}
    for threads in (1, 2):
        plot_figures(files, tmp_path / f"by_{threads}", **settings, threads=threads)
    one, two = ({path.name: path.read_bytes() for path in (tmp_path / f"by_{n}").iterdir()} for n in (1, 2))
    assert one == two
    assert {"calibration_curves.pdf", "class_profiles_great-softmax.png"} <= set(one)


def test_a_process_that_ends_early_fails_the_step(tmp_path):
    audit = synthetic_audit(models=2, per_class=20, measures=("clean", "great-softmax"), calibrated=False)
    files, settings = audit.write(tmp_path), {"audit": AUDIT, "measures": audit.measures, "fp_lambda": LAM}
    broken = settings["measures"] | {"great-softmax": {"kind": "no such kind"}}
    with pytest.raises(RuntimeError, match="the process that drew great-softmax ended with status 1"):
        plot_figures(files, tmp_path / "figures", **settings | {"measures": broken}, threads=3)


def test_an_interruption_leaves_no_process_that_goes_on_drawing(tmp_path, monkeypatch):
    audit = synthetic_audit(models=2, per_class=20, measures=("great-softmax",))
    files, settings = audit.write(tmp_path), {"audit": AUDIT, "measures": audit.measures, "fp_lambda": LAM}

    def interrupted(*_, **__):
        assert active_children()
        raise KeyboardInterrupt

    monkeypatch.setattr(figure_files, "draw_figures", interrupted)
    with pytest.raises(KeyboardInterrupt):
        plot_figures(files, tmp_path / "figures", **settings, threads=2)
    assert active_children() == []


def test_tables_of_another_audit_are_refused(tmp_path):
    audit = synthetic_audit(models=2, per_class=20, measures=("clean",))
    files = audit.write(tmp_path)
    with pytest.raises(InputError, match=r"\w+\.parquet: its audit is 'synthetic', but 'other' is expected"):
        plot_figures(files, tmp_path / "figures", audit="other", measures=audit.measures, fp_lambda=LAM)
    assert not (tmp_path / "figures").exists()
