import numpy as np
import pandas as pd
import pytest

from gfscore.audit.agreement.radii import POINTS, curve_frame
from gfscore.core.identity import ALL
from gfscore.measures import named_measures
from gfscore.measures.certified import Smoothing, provable_radius
from gfscore.measures.certified.radii import radii

SMOOTHING = {"sigma": 0.25, "estimation_samples": 1000, "alpha": 0.001}
CERTIFIED = {"kind": "certified", "smoothing": SMOOTHING}


def curve(values, settings):
    samples = pd.DataFrame({"label": 0, "value": values, "censored": False})
    measure = named_measures({"radii": settings})["radii"]
    rows = curve_frame(samples, ["a", "b"], measure=measure, confidence=0.95)
    return rows[rows["class_index"] == ALL].reset_index(drop=True)


@pytest.mark.parametrize("ulps", [-1, 0, 1])
def test_samples_whose_copies_all_agree_are_certified_to_the_last_radius(ulps):
    # As CERTIFY gives it, and as another processor may round it.
    from gfscore.statistics.proportions import lower_shares

    (radius,) = radii(lower_shares(np.array([1000]), 1000, alpha=0.001), sigma=0.25)
    value = radius if ulps == 0 else np.nextafter(radius, ulps * np.inf)
    rows = curve(np.full(50, value), CERTIFIED)
    assert len(rows) == POINTS
    assert rows["radius"].iloc[-1] == radius < provable_radius(Smoothing(**SMOOTHING))
    assert (rows["share"] == 1).all()
    assert (rows["low"] > 0.9).all()
    almost = curve(np.full(50, radius * (1 - 1e-6)), CERTIFIED)
    assert almost["share"].iloc[-1] == 0


def test_radii_computed_elsewhere_and_distances_end_at_the_stated_largest():
    imported = curve(np.full(9, 1.0), {"kind": "certified", "largest_radius": 1.0})
    assert (imported["radius"].iloc[-1], imported["share"].iloc[-1]) == (1, 1)
    searched = curve(np.full(9, 0.5), {"kind": "minimal", "norm": "l2", "largest_distance": 2.0})
    assert searched["radius"].iloc[-1] == 2


@pytest.mark.parametrize(("settings", "end"), [(CERTIFIED, "low"), ({"kind": "minimal"}, "high")])
def test_curves_allow_for_wrong_labels(settings, end):
    # Of the correctly labelled samples 40% withstand everything, or nothing; wrongly labelled ones the other way.
    measure = named_measures({"radii": settings})["radii"]
    rates = np.array([0.2, 0.1])
    labels = np.repeat([0, 1], 5000)
    place = np.tile(np.arange(5000) / 5000, 2)
    wrong = place < rates[labels]
    robust = place - rates[labels] < 0.4 * (1 - rates[labels])
    robust = wrong | robust if end == "low" else robust & ~wrong
    largest = measure.description.value_range[1]
    samples = pd.DataFrame({"label": labels, "value": robust * largest, "censored": robust})
    known, plain = (
        curve_frame(samples, ["a", "b"], measure=measure, confidence=0.95, **rate)
        for rate in ({"label_error_rates": rates}, {})
    )
    middle = known["radius"].between(0.01 * largest, 0.5 * largest)
    known, plain = known[middle], plain[middle]
    sign = 1 if end == "low" else -1
    assert len(known) and (sign * known[end] <= sign * 0.4).all() and (sign * plain[end] > sign * 0.4).all()
    assert known.drop(columns=end).equals(plain.drop(columns=end))
