"""How robustness falls with the radius, class by class, by attacks and by certificates."""

from gfscore.audit.agreement.radius_rows import curve_rows, distance_rows, log_rank_row, refutation_row
from gfscore.audit.audit_writing import write_audit_tables
from gfscore.audit.measured import AuditInputs, read_samples, row_generator
from gfscore.core.files import read_json
from gfscore.workflow.jobs import logged_job


def trace_radii(inputs, path_to_manifest, paths, *, audit, confidence, permutations, seed):
    """Write radius_curves, class_distances, log_rank_tests and refutations, whose paths `paths` holds by these names.

    Takes AuditInputs, the manifest of the dataset, the confidence of the bounds, and the number and seed of the
    shuffles of the log-rank test.
    """
    names = read_json(path_to_manifest)["classes"]
    rows = {"radius_curves": [], "class_distances": [], "log_rank_tests": [], "refutations": []}
    for model, own in inputs.paths():
        for measure, settings in inputs.measures.items():
            kind, key = settings["kind"], {**model, "measure": measure}
            if kind not in ("minimal", "certified"):
                continue
            samples = read_samples(own[measure], model, measure, kind)
            rows["radius_curves"] += curve_rows(key, samples, names, settings=settings, confidence=confidence)
            if kind == "minimal":
                rows["class_distances"] += distance_rows(key, samples, names)
                shuffles = {"permutations": permutations, "rng": row_generator(seed, key)}
                rows["log_rank_tests"].append(log_rank_row(key, samples, len(names), **shuffles))
            elif settings.get("smoothing", {}).get("sandwich") is not None:
                rows["refutations"].append(refutation_row(key, samples, alpha=settings["smoothing"]["alpha"]))
    write_audit_tables(paths, rows, audit=audit)


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        given, settings = snakemake.input, snakemake.params
        trace_radii(
            AuditInputs.of(settings.subject, given),
            given.manifest,
            snakemake.output,
            audit=snakemake.wildcards.audit,
            confidence=settings.confidence,
            permutations=settings.permutations,
            seed=settings.seed,
        )
