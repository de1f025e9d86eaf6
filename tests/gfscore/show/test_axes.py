import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from gfscore.show import drawing
from gfscore.show.audit_charts import draw_chart
from gfscore.show.charts import CHARTS
from gfscore.show.drawing.layout import new_figure


@pytest.mark.parametrize("ends", [(0.65, 0.78), (0.7, 0.7), (0.1, 10.0), (1e-3, 1e3)])
def test_a_logarithmic_axis_has_numbers_whatever_its_range(ends):
    """Between 0.65 and 0.78 there is no round one."""
    axes = Figure().add_subplot()
    drawing.numbers(axes.xaxis, "temperature", np.array(ends), log=True)
    ticks = axes.get_xticks()
    low, high = axes.get_xlim()
    assert len(ticks) and all(low <= tick <= high for tick in ticks)


@pytest.mark.parametrize(
    ("highest", "value_range", "end"),
    [
        (0.3, (0, 1), 0.4),
        (0.6, (0, 1), 1),
        (250, (0, np.inf), 400),
        (0, (0, 1), 1),
        (np.nan, (0, 1), 1),
        (0, (0, np.inf), 1),
        (np.nan, (0, np.inf), 1),
        (0, (0, 0), 1),
    ],
)
def test_the_outer_circle_of_a_radar_is_at_a_value_above_zero(highest, value_range, end):
    assert drawing.outer_circle(highest, value_range) == pytest.approx(end)


def test_radars_of_a_measure_without_an_end_are_drawn_where_every_value_is_zero():
    frame = pd.DataFrame({"model": "A", "class": ["a", "b", "c"], "value": 0.0, "most": 0.0, "low": 0.0, "high": 0.0})
    frame = frame.assign(mean=0.0, range_low=0.0, range_high=np.inf)
    figure = new_figure()
    draw_chart(CHARTS["class_profiles"], frame, {}, figure)
    assert "1" in {text.get_text() for text in figure.texts}
