"""Rows of the table class_shares: decisions about probabilistic robustness, counted per class."""

from gfscore.statistics.decisions import class_shares
from gfscore.statistics.error_rates import error_rate
from gfscore.statistics.thresholds import threshold


def share_rows(key, samples, class_names, *, settings, confidence):
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
