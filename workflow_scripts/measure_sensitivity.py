"""How the score moves when a constant is added to every logit, which changes no prediction and no probability."""

import numpy as np

from gfscore.jobs import logged_job
from gfscore.margins import scores
from gfscore.measured import included, label_of
from gfscore.tables import frame_of, read_logits, write_csv_beside, write_table


def measure_sensitivity(paths_to_logits, path_to_selection, path_to_table, *, audit, models, measures, shifts):
    """Write the sensitivity table: the aggregate of every great variant at T = 1 under each of the `shifts`."""
    rows = []
    selected = included(path_to_selection)
    for model, path in zip(models, paths_to_logits, strict=True):
        if label_of(model) not in selected:
            continue
        _, labels, logits = read_logits(path, expect=model)
        for name, settings in measures.items():
            if settings["kind"] != "great":
                continue
            for shift in shifts:
                shifted = logits.astype(np.float64) + shift
                value = float(scores(shifted, labels, activation=settings["activation"]).mean())
                rows.append({**model, "measure": name, "shift": float(shift), "value": value})
    frame = frame_of("sensitivity", rows)
    write_table(path_to_table, "sensitivity", frame, identity={"audit": audit})
    write_csv_beside(path_to_table, frame)


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        audit = snakemake.wildcards.audit
        given = snakemake.input
        measure_sensitivity(given.logits, given.selection, snakemake.output.table, audit=audit, **snakemake.params)
