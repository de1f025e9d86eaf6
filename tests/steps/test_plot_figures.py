"""The step plot_figures."""

from dataclasses import replace
from multiprocessing import active_children

import pytest

from gfscore.audit.audit_folder import AuditFolder
from gfscore.core.digests import changed_files
from gfscore.core.errors import InputError
from gfscore.show import figure_files
from helpers.synthetic_audits import synthetic_audit
from plot_figures import plot_figures

pytestmark = pytest.mark.seconds(20)


def test_one_process_and_several_write_the_same_figures_as_svg_pdf_and_png(tmp_path):
    audit = synthetic_audit(models=2, per_class=20, measures=("great-softmax",))
    drawn = audit.drawn(tmp_path)
    for threads in (1, 2):
        plot_figures(drawn, tmp_path / f"by_{threads}", threads=threads)
    one, two = ({path.name: path.read_bytes() for path in (tmp_path / f"by_{n}").iterdir()} for n in (1, 2))
    assert one == two
    assert changed_files(tmp_path / "by_1") == []
    for figure in ("class_heatmap_great-softmax", "class_profiles_great-softmax", "calibration_curves"):
        assert {f"{figure}.svg", f"{figure}.pdf", f"{figure}.png"} <= set(one)


def test_an_audit_without_a_search_for_temperatures_has_no_figure_of_one(tmp_path):
    audit = synthetic_audit(models=2, per_class=20, measures=("clean",))
    plot_figures(audit.drawn(tmp_path), tmp_path / "figures")
    figures = {path.stem for path in (tmp_path / "figures").glob("*.svg")}
    assert "class_heatmap_clean" in figures and "calibration_curves" not in figures


def test_a_process_that_ends_early_fails_the_step(tmp_path):
    audit = synthetic_audit(models=2, per_class=20, measures=("clean", "great-softmax"), calibrated=False)
    drawn = audit.drawn(tmp_path)
    # A folder in the place of a figure: it cannot be written.
    (tmp_path / "figures/class_heatmap_great-softmax.svg").mkdir(parents=True)
    with pytest.raises(RuntimeError, match="the process that drew great-softmax ended with status 1"):
        plot_figures(drawn, tmp_path / "figures", threads=3)


def test_an_interruption_leaves_no_process_that_goes_on_drawing(tmp_path, monkeypatch):
    audit = synthetic_audit(models=2, per_class=20, measures=("great-softmax",))
    drawn = audit.drawn(tmp_path)

    def interrupted(*_, **__):
        assert active_children()
        raise KeyboardInterrupt

    monkeypatch.setattr(figure_files, "draw_figures", interrupted)
    with pytest.raises(KeyboardInterrupt):
        plot_figures(drawn, tmp_path / "figures", threads=2)
    assert active_children() == []


def test_tables_of_another_audit_are_refused(tmp_path):
    audit = synthetic_audit(models=2, per_class=20, measures=("clean",))
    drawn = replace(audit.drawn(tmp_path), folder=AuditFolder(tmp_path, "other"))
    with pytest.raises(InputError, match=r"\w+\.parquet: its audit is 'synthetic', but 'other' is expected"):
        plot_figures(drawn, tmp_path / "figures")
    assert not (tmp_path / "figures").exists()
