import numpy as np
import pytest
from matplotlib.figure import Figure

from gfscore.show import drawing


@pytest.mark.parametrize("ends", [(0.65, 0.78), (0.7, 0.7), (0.1, 10.0), (1e-3, 1e3)])
def test_a_logarithmic_axis_has_numbers_whatever_its_range(ends):
    """Between 0.65 and 0.78 there is no round one."""
    axes = Figure().add_subplot()
    drawing.numbers(axes.xaxis, "temperature", np.array(ends), log=True)
    ticks = axes.get_xticks()
    low, high = axes.get_xlim()
    assert len(ticks) and all(low <= tick <= high for tick in ticks)
