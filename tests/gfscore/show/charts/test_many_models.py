"""Charts of more models than an eye tells apart: what is drawn of them, and that findings stay those of all."""

import numpy as np
import pandas as pd
import pytest

from gfscore.audit.sensitivity import lambda_swaps
from gfscore.show.audit_charts import MOST_ROWS, drawing_of
from gfscore.show.charts import CHARTS, calibration_curves
from helpers.synthetic_audits import GREAT, MODEL, drawn_of, scores_of, subject_of

MODELS = 130
NAMES = [f"m{index:03d}" for index in range(MODELS)]


def drawing(name, tables, **settings):
    about = None if CHARTS[name].about == "audit" else GREAT
    return drawing_of(CHARTS[name], subject_of(tables, about, **settings))


@pytest.fixture(scope="module")
def summary():
    rng = np.random.default_rng(3)
    rows = pd.DataFrame(MODEL | {"model": NAMES, "measure": GREAT, "calibration": "none"})
    return rows.assign(class_mean=rng.uniform(size=MODELS), rdi=rng.uniform(size=MODELS))


def test_print_has_the_first_rows_and_says_so_while_the_page_has_all():
    values = np.linspace(0.9, 0.1, MODELS)[:, None] * [1.0, 0.5, 0.7]
    found = drawing("class_heatmap", {"class_scores": scores_of(values.tolist())})
    order = found.frame["model"].drop_duplicates().tolist()
    assert found.printed_frame["model"].drop_duplicates().tolist() == order[:MOST_ROWS]
    assert f"first {MOST_ROWS} of {MODELS}" in found.note_of(found.printed_frame)
    assert found.page_frame["model"].drop_duplicates().tolist() == order
    assert found.note_of(found.page_frame) == found.words.note
    few = drawing("class_heatmap", {"class_scores": scores_of(values[:MOST_ROWS].tolist())})
    assert few.printed_frame["model"].nunique() == MOST_ROWS and few.note_of(few.printed_frame) == few.words.note


def test_lines_of_the_re_ranking_are_of_the_best_and_its_finding_of_all(summary):
    pairs = lambda_swaps(summary["class_mean"].to_numpy(), summary["rdi"].to_numpy())
    swaps = pd.DataFrame({"dataset": "toy", "measure": GREAT, "fp_lambda": [lam for lam, _, _ in pairs]})
    found = drawing("fp_reranking", {"model_summary": summary, "lambda_swaps": swaps})
    fp = (summary["class_mean"] - found.subject.fp_lambda * summary["rdi"]).to_numpy()
    assert set(found.frame["model"]) == set(np.array(NAMES)[np.argsort(-fp)[:30]])
    before, after = (np.argsort(np.argsort(-column)) for column in (summary["class_mean"].to_numpy(), fp))
    assert found.finding.numbers["models"] == MODELS and found.finding.numbers["moved"] == (before != after).sum()


def test_lines_of_draws_are_those_that_end_highest():
    scores = scores_of([[0.5, 0.6, 0.7]] * 40)
    few, many = (
        drawing("rdi_concentration", {"class_scores": scores}, measured={GREAT: drawn_of(NAMES[:count], 3)})
        for count in (30, 40)
    )
    assert few.frame["line"].nunique() == many.frame["line"].nunique() == 31
    assert many.frame["models"].eq(40).all() and many.finding.numbers["found"] >= few.finding.numbers["found"]


def test_lines_of_changed_logits_are_of_the_models_that_move_most():
    parts = [
        pd.DataFrame(MODEL | {"model": name, "measure": GREAT, "shift": [0.0, 5.0], "scale": 1.0}).assign(
            value=[1.0, 1.0 - place / 1000]
        )
        for place, name in enumerate(NAMES)
    ]
    tables = {"sensitivity": pd.concat(parts, ignore_index=True), "class_scores": scores_of([[0.5, 0.6]])}
    found = drawing("logit_shift_sensitivity", tables)
    assert set(found.frame["model"]) == set(NAMES[-30:])
    assert found.finding.numbers["move"] == pytest.approx((MODELS - 1) / 1000)


def test_a_curve_of_many_points_keeps_its_ends_its_extremes_its_best_and_what_is_shaded():
    t = np.geomspace(0.1, 10, 50_000)
    value = np.sin(40 * np.log(t))
    part = pd.DataFrame({"temperature": t, "value": value, "best": False, "optimal": (t > 2) & (t < 2.0005)})
    part.loc[777, "best"] = True
    kept = calibration_curves.thinned(part)
    assert len(kept) <= 2 * calibration_curves.BINS + 10 and kept["temperature"].is_monotonic_increasing
    assert {0, 777, len(t) - 1, part["value"].idxmax(), part["value"].idxmin()} <= set(kept.index)
    shaded = part[part["optimal"]].index
    assert {shaded[0], shaded[-1], shaded[0] - 1, shaded[-1] + 1} <= set(kept.index)
    pd.testing.assert_frame_equal(calibration_curves.thinned(part[:100]), part[:100])
