"""A chart that cannot be drawn is left out, and named where it would be; nothing else depends on it."""

from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from gfscore.core.digests import changed_files
from gfscore.show.audit_charts import STRICT, draw_chart
from gfscore.show.charts import CHARTS
from gfscore.show.drawing.layout import arrange, new_figure
from gfscore.show.drawing.saving import svg_of
from helpers.pages import audit_for_page, page_of
from helpers.synthetic_audits import synthetic_audit
from plot_figures import plot_figures


def failing(*_):
    raise ZeroDivisionError("float division by zero\nin two lines")


FAILURES = {"class_heatmap": "data", "class_profiles": "finding", "score_against_rdi": "draw"}
"""Charts, and where each of them fails."""


@pytest.fixture
def broken_charts(monkeypatch):
    """Titles of three charts that fail, each at another place."""
    monkeypatch.delenv(STRICT)
    for name, stage in FAILURES.items():
        monkeypatch.setitem(CHARTS, name, replace(CHARTS[name], **{stage: failing}))
    return {name: CHARTS[name].title for name in FAILURES}


def test_the_other_figures_are_drawn_and_files_say_which_are_missing_and_why(broken_charts, tmp_path, capsys):
    audit = synthetic_audit(models=2, per_class=20, measures=("great-softmax",))
    folder = tmp_path / "figures"
    plot_figures(audit.drawn(tmp_path), folder)
    assert (folder / "disparity_bars_great-softmax.svg").is_file()
    log = capsys.readouterr().out.splitlines()
    for name, title in broken_charts.items():
        (file,) = folder.glob(f"{name}_*")
        assert file.name == f"{name}_great-softmax.not-drawn.txt"
        (line,) = file.read_text().splitlines()
        assert title in line and "great-softmax" in line and "Error" in line
        assert line in log
    assert changed_files(folder) == [], "those files are among the checksums"


def test_the_page_names_them_in_their_sections(broken_charts):
    page = page_of(audit_for_page(models=2, classes=4, per_class=20, permutations=19, measures=("great-softmax",)))
    for title in broken_charts.values():
        assert f"{title} of great-softmax: not drawn" in page and f'data-name="{title}"' not in page
    assert f'data-name="{CHARTS["disparity_bars"].title}"' in page


def test_in_tests_it_is_an_error(monkeypatch):
    monkeypatch.setitem(CHARTS, "class_heatmap", replace(CHARTS["class_heatmap"], data=failing))
    audit = audit_for_page(models=2, classes=4, per_class=20, permutations=19, measures=("great-softmax",))
    with pytest.raises(ZeroDivisionError):
        page_of(audit)


def test_a_full_disk_is_no_defect_of_a_chart(monkeypatch):
    def full(subject):
        raise OSError(28, "No space left on device")

    monkeypatch.delenv(STRICT)
    monkeypatch.setitem(CHARTS, "class_heatmap", replace(CHARTS["class_heatmap"], data=full))
    with pytest.raises(OSError, match="No space left"):
        page_of(audit_for_page(models=2, classes=4, per_class=20, permutations=19, measures=("great-softmax",)))


@pytest.mark.parametrize("distances", [[0.0, 0.0, 0.0], [0.0, 0.02, 0.5], [0.001, 0.02, 0.5]])
def test_a_logarithmic_axis_has_a_place_for_zero(distances):
    """As the distances of RDI are of a model whose class values do not vary."""
    lines = [
        pd.DataFrame({"line": name, "n": [5, 10, 20], "distance": values, "bound": name == "bound", "beyond": 0})
        for name, values in (("bound", [1.0, 0.5, 0.25]), ("model", distances))
    ]
    figure = new_figure()
    draw_chart(CHARTS["rdi_concentration"], pd.concat(lines, ignore_index=True), {"short_unit": "score"}, figure)
    (axes,) = figure.axes
    assert axes.get_yscale() == ("symlog" if 0.0 in distances and any(distances) else axes.get_yscale())
    arrange(figure)
    places = [text.get_position()[1] for text in figure.texts]
    assert len(places) == 2 and np.isfinite(places).all()
    assert "nan" not in ElementTree.tostring(svg_of(figure), encoding="unicode")
