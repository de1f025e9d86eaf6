"""The section on how the audit was done: cost, meanings, limits, provenance, downloads."""

from collections.abc import Collection, Iterator

from gfscore.audit.metrics import METRICS
from gfscore.audit.table_names import MEASURE_TABLES
from gfscore.audit.tables import AuditTables
from gfscore.core import numbers
from gfscore.core.names import printable
from gfscore.show.page.elements import MEASURE, Detail, counted, named, terms_of, text, valued
from gfscore.show.page.provenance import basis_of
from gfscore.show.page.sections.contents import Contents
from gfscore.statistics.logits import LOGARITHMS_TAKEN

TEMPERATURE = (
    "A temperature divides the logits before the activation. It changes the score but not the classifier, so a "
    "calibrated score is as good as the objective that chose it. The gate uses T = 1."
)


CALIBRATION = (
    "The GF-Score paper says that calibration by its Eq. 8 (score and clean accuracy over models) raises the agreement "
    "with robust accuracy on CIFAR-10 from 0.662 to 0.871. By its own tables it falls to 0.515, clean accuracy alone "
    "reaches 0.863, and its temperature does not maximise Eq. 8 (H1, H3, H4)."
)
"""What of the source paper's claim on calibration does not reproduce."""

REFUTED = {
    "great": "the GREAT score is no certified radius (H7), and whether more robust models are less fair depends on the "
    "measure of disparity (H6)",
    "probabilistic": "a test that is repeated after every neighbour errs more often than its level says (EB4), and the "
    "printed interval leaves out the draw of the samples (EB3)",
    "adversarial": "adversarial accuracy by the published pseudo-code counts a wrong answer that the attack turns "
    "right (MA1)",
    "minimal": "the published pseudo-code takes a search that gave up for a distance (MA2)",
    "certified": "a smoothing certificate says nothing about the network before smoothing (MA3), and votes that choose "
    "a class cannot certify it too (MA4)",
    "errors": "the printed class accuracy of ten equal classes is 0.9 for one that is never recognised (CW2)",
    "groups": "the printed equalized odds and average odds of a perfect classifier are not 0 (PF5)",
    "projection": "the printed Deviation is impossible by its own formula (PF2), and the printed Coupling is 0 both "
    "when all dimensions matter alike and when one has all the influence (PF6)",
}
"""What a page shows -> what of the papers about it is refuted, with the numbers of the claims in the ledger."""


ATTACKS = {"adversarial", "minimal", "targeted"}
"""Kinds of measures that attack images."""

DOWNLOADS = (
    "class_scores",
    "model_summary",
    "vulnerability",
    "comparisons",
    "model_comparisons",
    "confusions",
    "class_errors",
    "similarities",
    "sensitivity",
    "calibration",
    *MEASURE_TABLES,
)
"""Tables of an audit, each a CSV file in the folder of the page where the audit has rows of it."""


def of_making(contents: Contents) -> Iterator[Detail | None]:
    """Details on how the audit was done."""
    yield _costs(contents)

    meanings_of_measures = []
    for name, named_measure in contents.measures.items():
        measure = named_measure.description
        meaning = f"{measure.title}: {measure.unit}, higher is better. {measure.explanation}"
        meanings_of_measures.append((printable(name), meaning))
    yield Detail("What each measure means", terms=meanings_of_measures)

    meanings_of_metrics = []
    for metric in METRICS.values():
        meaning = metric.explanation
        if "lam" in metric.needs:
            meaning += f" Here lambda is {contents.fp_lambda:g}."
        meanings_of_metrics.append((metric.title, meaning))
    yield Detail("What each metric means", terms=meanings_of_metrics)

    kinds = {measure.kind.name for measure in contents.measures.values()}
    outputs = contents.provenance.get("Data and versions", {}).get("outputs", "")
    limits = limits_of(contents.tables, kinds, outputs=outputs)
    yield Detail("Limits: what this page does not say", text=limits)

    excluded = [(printable(remark.model), text(remark.reason)) for remark in contents.verdict.excluded]
    if excluded:
        yield Detail("Models left out, and why", terms=excluded)

    yield basis_of(contents.verdict)
    for heading, values in contents.provenance.items():
        yield Detail(f"Provenance: {heading}", terms=terms_of(values))

    links = [("verdict.json", "verdict.json"), ("config.yaml", "config.yaml"), ("figures/", "figures")]
    for table in DOWNLOADS:
        if len(contents.tables.named(table)):
            links.append((f"{table}.csv", f"{table}.csv"))
    yield Detail("Downloads: every table of this audit", links=links)


def _costs(contents: Contents) -> Detail | None:
    costs = contents.costs
    if costs is None or costs["wall_s"].isna().all():
        return None
    by_step = costs.groupby(["step", costs["measure"].fillna("")], sort=False)
    sums = by_step[["wall_s", "cpu_s", "gpu_s", "forwards", "backwards"]].sum(min_count=1)
    sums["memory"] = by_step["peak_memory_mib"].max()
    rows = sums.reset_index().sort_values("wall_s", ascending=False)
    columns = [
        named("Step", "step"),
        MEASURE,
        valued("Seconds", "wall_s"),
        valued("CPU seconds", "cpu_s"),
        valued("GPU seconds", "gpu_s"),
        valued("Memory, MiB", "memory"),
        counted("Forward passes", "forwards"),
        counted("Gradients", "backwards"),
    ]
    return contents.table_details("What it cost, step by step, over all models", rows, "costs", "Costs", columns)


# ---- limits ----


def limits_of(tables: AuditTables, kinds: Collection[str], *, outputs: str = "") -> list[str]:
    """Limits of an audit, in sentences.

    Parameters
    ----------
    tables : AuditTables
    kinds : collection of str
        Kinds of its measures.
    outputs : str
        What logits of its models are made of, by their identity.
    """
    limits = _limits_of_measures(tables, kinds, outputs)
    limits.append("The bounds are confidence, not proof. They concern the mean over a class, not any single image.")
    limits.append(
        "Samples are taken as independent draws from each class. Near-duplicates, frames of one video, or data that "
        "the model has seen make the bounds too narrow."
    )
    rates = tables.class_scores["label_error_rate"].dropna()
    if len(rates):
        share = numbers.number(float(rates.max()))
        limits.append(f"The bounds allow for a share of {share} wrong labels per class, as stated.")
    else:
        limits.append("Labels are assumed right: a wrong label counts as a sample of the class it names.")
    limits.append("Nothing here extends to other data, other disturbances or classes that were not audited.")
    if tables.calibration_results:
        limits.append(
            "Temperatures were chosen on the audited samples, so that rows at a calibrated temperature carry no "
            "bounds; calibrated scores of different sets of models do not compare."
        )

    # References to the papers behind the measures and the tables that the page shows.
    subjects = set(kinds)
    for subject, table in (("errors", "class_errors"), ("groups", "group_scores"), ("projection", "projection_models")):
        if len(tables.named(table)):
            subjects.add(subject)
    claims = [claim for subject, claim in REFUTED.items() if subject in subjects]
    if claims:
        limits.append(
            "Not everything that the source papers say reproduces. It bears on this page that "
            f"{'; '.join(claims)}. Every claim beside our number stands in docs/what-reproduces.md of the repository."
        )
    return limits


def _limits_of_measures(tables: AuditTables, kinds: Collection[str], outputs: str) -> list[str]:
    limits = []
    if "great" in kinds:
        limits.append(
            "The score is not a certificate: it measures how far the true class leads in the output, not how far an"
            " image must move to be misclassified. Dividing the logits by a constant changes the score and leaves "
            "the classifier as it is, and undefended networks often score above adversarially trained ones."
        )
    if LOGARITHMS_TAKEN in outputs:
        limits.append(
            "Where a model gives probabilities alone, its logits are their logarithms. They do not tell the size of "
            "the model's own logits, so no score by a sigmoid is shown of it. Where a probability was rounded to 0 or "
            "1, attacks by gradients are weaker than on the model's own logits."
        )
    if "certified" in kinds:
        limits.append(
            "Certified radii hold for the smoothed classifier, not for the one before smoothing, and each with the "
            "confidence of its own test. A class mean of radii certifies no single image."
        )
    if ATTACKS.intersection(kinds):
        limits.append("An attack that finds nothing proves nothing: a stronger one may leave less.")
    if set(kinds) == {"clean"}:
        limits.append("Clean accuracy says nothing about robustness: it is measured on undisturbed samples.")
    if len(tables.named("projection_models")):
        limits.append("Projections depend on the mapper: another encoder, seed or beta moves other things.")
    return limits
