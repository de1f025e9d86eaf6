"""Rows of the table class_shares: decisions about probabilistic robustness, counted per class."""

from gfscore.probabilistic.decisions import class_shares
from gfscore.probabilistic.thresholds import threshold


def share_rows(key, samples, class_names, *, settings, confidence):
    """Rows of class_shares of one model and probabilistic measure: classes, then all samples.

    Takes the samples table, K names, the measure's settings and the confidence of the corrected bounds.
    """
    given = (samples["state"].to_numpy(), samples["label"].to_numpy(), class_names)
    levels = {"alpha_test": settings["alpha"], "alpha_ci": 1 - confidence}
    corrected, printed = (class_shares(*given, **levels, form=form) for form in ("corrected", "paper"))
    table = corrected.assign(paper_low=printed["low"], paper_high=printed["high"])
    shared = {"confidence": confidence, "kappa": threshold(settings["kappa"]), "alpha": settings["alpha"]}
    return [{**key, **row, **shared} for row in table.to_dict("records")]
