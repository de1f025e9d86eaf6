"""Which figures an audit has: those whose tables have the data."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gfscore.core.class_names import readable_classes
from gfscore.core.identity import UNCALIBRATED
from gfscore.measures import measure_of
from gfscore.show.figures import profiles, projections, radii, targets, traversals, vulnerability
from gfscore.show.figures.concentration import rdi_concentration
from gfscore.show.figures.confusions import confusion_figures
from gfscore.show.figures.corruptions import corruption_by_class
from gfscore.show.figures.disparities import disparity_bars, score_against_rdi
from gfscore.show.figures.distances import score_against_distance
from gfscore.show.figures.errors import false_positive_shares, has_errors
from gfscore.show.figures.fairness import group_metric_heatmap
from gfscore.show.figures.groups import group_class_heatmap, group_score_plot
from gfscore.show.figures.heatmap import class_heatmap
from gfscore.show.figures.reranking import fp_reranking
from gfscore.show.figures.shifts import logit_shift_sensitivity
from gfscore.show.figures.similarity import similarity_matrix
from gfscore.show.figures.temperature import calibration_curves
from gfscore.show.words.sensitivity_words import shifted

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from gfscore.audit.audit_tables import AuditTables
    from gfscore.audit.measured import Measured

FEWEST_TO_RANK = 2
ATTACKED = "adversarial"
"""Kind of measure whose groups are drawn beside those of the scores; all others stand in the tables."""


WHOLE = "the whole audit"
"""Part of an audit's figures that belongs to no measure."""


def parts_of_figures(measures: Iterable[str]) -> list[str]:
    """Parts that an audit's figures come in, which several processes may share: its measures, then WHOLE."""
    return [*measures, WHOLE]


def figures_of_audit(
    tables: AuditTables,
    *,
    measures: Mapping[str, Mapping[str, Any]],
    fp_lambda: float,
    measured: Mapping[str, Sequence[Measured]] | None = None,
    seed: int = 0,
    pictures: Mapping[str, NDArray[Any]] | None = None,
    parts: Iterable[str] | None = None,
    guessing: Collection[str] = (),
) -> Iterator[tuple[str, Figure]]:
    """Yield (name, Figure) for every figure of an audit, scores at T = 1.

    Takes AuditTables, the settings of each measure, and lambda of FP. `measured` maps measures to a list of Measured,
    one per model, for the figures that draw from samples, with the `seed` of the draws; `pictures` are those of
    the audit's mapper, arrays by name (see gfscore.projection.mappers.description), or
    None; `parts` limits the figures to some of
    parts_of_figures; `guessing` are the labels of models that may be guessing. Figures of one measure are
    named <figure>_<measure>.
    """
    for part in parts_of_figures(measures) if parts is None else parts:
        if part == WHOLE:
            yield from _of_whole(tables, measures, pictures)
        else:
            samples = (measured or {}).get(part)
            of_values = {"fp_lambda": fp_lambda, "guessing": guessing}
            for name, figure in _of_measure(tables, part, measures, of_values, measured=samples, seed=seed):
                yield f"{name}_{part}", figure


def _of_measure(tables, measure, measures, of_values, *, measured, seed):
    settings, meaning = measures[measure], measure_of(measures[measure])
    yield "class_heatmap", class_heatmap(_readable(tables.of("class_scores", measure)), meaning)
    # Disparity is drawn for the scores that the audit is about; its numbers stand in the tables for every measure.
    scored = measure in ({name for name, its in measures.items() if its["kind"] == "great"} or measures)
    if scored:
        yield from _of_values(tables, measure, meaning, **of_values)
    yield from _of_errors(tables, measure, meaning)
    yield from _of_attacks(tables, measure, meaning, measures=measures)
    if scored or settings["kind"] == ATTACKED:
        yield from _of_groups(tables, measure, meaning)
    metrics = _rows(tables, "group_metrics", measure)
    if len(metrics):
        yield "group_metrics", group_metric_heatmap(metrics)
    if scored and measured:
        confidence = float(tables.of("class_scores", measure)["confidence"].iloc[0])
        yield "rdi_concentration", rdi_concentration(measured, meaning, confidence=confidence, seed=seed)


def _of_whole(tables, measures, pictures):
    if tables.calibration_results:
        models = len(tables.of("model_summary", next(iter(measures))))
        yield "calibration_curves", calibration_curves(tables.calibration, tables.calibration_results, models=models)
    if tables.sensitivity is not None and len(tables.sensitivity):
        yield "logit_shift_sensitivity", logit_shift_sensitivity(shifted(tables.sensitivity))
    yield from _of_projections(tables.measures, pictures)


def _of_values(tables, measure, meaning, *, fp_lambda, guessing):
    scores, summary, ranking = (tables.of(name, measure) for name in PER_MEASURE)
    scores, ranking = _readable(scores), _readable(ranking)
    if vulnerability.drawable(ranking):
        yield "class_vulnerability", vulnerability.class_vulnerability(ranking, scores, meaning)
    yield "score_against_rdi", score_against_rdi(summary, meaning)
    yield "disparity_bars", disparity_bars(summary, meaning, fp_lambda=fp_lambda, guessing=guessing)
    if profiles.drawable(scores):
        yield "class_profiles", profiles.class_profiles(scores, meaning)
    if tables.lambda_swaps is not None and len(summary) >= FEWEST_TO_RANK:
        swaps = tables.lambda_swaps[tables.lambda_swaps["measure"] == measure]
        yield "fp_reranking", fp_reranking(summary, swaps, meaning, fp_lambda=fp_lambda)


def _of_errors(tables, measure, meaning):
    if tables.class_errors is not None:
        errors = tables.class_errors[tables.class_errors["measure"] == measure]
        together, apart = errors[errors["corruption"].isna()], errors[errors["corruption"].notna()]
        if has_errors(together):
            yield "cfps", false_positive_shares(together, meaning, independent=apart.empty)
        if tables.confusions is not None and len(together):
            confusions = tables.confusions[tables.confusions["measure"] == measure]
            yield from confusion_figures(confusions, together, meaning)
        if len(apart):
            yield "corruption_by_class", corruption_by_class(apart, meaning)
    if tables.similarities is not None:
        similar = tables.similarities[tables.similarities["measure"] == measure]
        if len(similar):
            yield "similarity", similarity_matrix(similar)


def _of_attacks(tables, measure, meaning, *, measures):
    curves = _rows(tables, "radius_curves", measure)
    if len(curves):
        kind = {"minimal": "survival", "certified": "certified_accuracy"}[curves["kind"].iloc[0]]
        scores = tables.of("class_scores", measure)
        yield kind, radii.model_curves(curves, meaning, scores)
        if radii.drawable(curves):
            yield f"{kind}_by_class", radii.class_curves(curves, meaning, scores)
    cells, reached = (_rows(tables, name, measure) for name in ("target_matrix", "target_success"))
    if len(cells) and targets.drawable(reached):
        yield "target_matrix", targets.target_success_matrix(cells, reached, meaning)
    claims = _rows(tables, "falsification", measure)
    for distances, rows in claims[claims["calibration"] == UNCALIBRATED].groupby("distances", sort=False):
        found = measure_of(measures[distances])
        # The name tells apart audits with several measures of distance.
        name = "score_against_distance" if claims["distances"].nunique() == 1 else f"score_against_{distances}"
        yield name, score_against_distance(rows, found)


def _of_groups(tables, measure, meaning):
    scores = _rows(tables, "group_scores", measure)
    if len(scores) and (scores["n"] > 0).any():
        yield "group_scores", group_score_plot(scores, meaning)
        yield "group_classes", group_class_heatmap(scores, meaning)


def _of_projections(tables, pictures):
    scores, effects = tables.get("projection_scores"), tables.get("projection_effects")
    if scores is None or scores.empty:
        return
    yield "projection_tolerance", projections.tolerance_by_dimension(scores)
    yield "projection_effects", projections.effects_of_dimensions(effects)
    if pictures is not None:
        mapper = scores["mapper"].iloc[0]
        if len(pictures["originals"]):
            yield "mapper_reconstructions", traversals.reconstructions(pictures, mapper=mapper)
        attributes = projections.of_attributes(effects)
        yield "mapper_traversals", traversals.traversals(pictures, mapper=mapper, attributes=attributes)


def _rows(tables, name, measure):
    table = tables.measures.get(name)
    if table is None:
        import pandas as pd

        return pd.DataFrame(columns=["calibration", "distances"])
    return table[table["measure"] == measure].reset_index(drop=True)


def _readable(frame):
    # Tables of 1,000 classes name them by codes that only a machine reads.
    names = frame.drop_duplicates("class_index").set_index("class_index")["class_name"]
    readable = dict(zip(names.index, readable_classes(names), strict=True))
    return frame.assign(class_name=frame["class_index"].map(readable))


PER_MEASURE = ("class_scores", "model_summary", "vulnerability")
