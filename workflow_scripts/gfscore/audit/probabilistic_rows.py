"""Rows of the table class_shares: decisions about probabilistic robustness, counted per class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gfscore.statistics.decisions import class_shares
from gfscore.statistics.error_rates import error_rate
from gfscore.statistics.thresholds import threshold

if TYPE_CHECKING:
    import pandas as pd

    from gfscore.audit.inputs import AuditInputs


def class_share_rows(
    inputs: AuditInputs, class_names: Sequence[str], *, confidence: float
) -> dict[str, list[dict[str, Any]]]:
    """Rows of class_shares by that name, of every probabilistic measure; nothing without one."""
    chosen = {name: entry for name, entry in inputs.measures.items() if entry["kind"] == "probabilistic"}
    rows = [
        row
        for model, own in inputs.by_model()
        for name, settings in chosen.items()
        for row in share_rows(
            {**model, "measure": name}, own[name], class_names, settings=settings, confidence=confidence
        )
    ]
    return {"class_shares": rows} if chosen else {}


def share_rows(
    key: Mapping[str, Any],
    samples: pd.DataFrame,
    class_names: Sequence[str],
    *,
    settings: Mapping[str, Any],
    confidence: float,
) -> list[dict[str, Any]]:
    """Rows of class_shares of one model and probabilistic measure: classes, then all samples.

    Takes the samples table, K names, the measure's settings and the confidence of the corrected bounds, which allow for
    the rate at which the test errs; the printed ones take it at its level, as the paper does.
    """
    given = (samples["state"].to_numpy(), samples["label"].to_numpy(), class_names)
    alpha, rate = settings["alpha"], error_rate(settings)
    corrected, printed = (
        class_shares(*given, alpha_test=level, alpha_ci=1 - confidence, form=form)
        for level, form in ((rate, "corrected"), (alpha, "paper"))
    )
    table = corrected.assign(paper_low=printed["low"], paper_high=printed["high"])
    shared = {"confidence": confidence, "kappa": threshold(settings["kappa"]), "alpha": alpha, "error_rate": rate}
    return [{**key, **row, **shared} for row in table.to_dict("records")]
