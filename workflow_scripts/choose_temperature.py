"""Temperatures of one audit, by every named objective."""

import pandas as pd

from gfscore.calibration import SearchSettings
from gfscore.evidence import accuracies_of, read_evidence
from gfscore.files import write_json
from gfscore.jobs import logged_job
from gfscore.measured import included, label_of
from gfscore.tables import write_csv_beside, write_table
from gfscore.temperatures import calibrate


def choose_temperature(
    files,
    path_to_table,
    path_to_summary,
    *,
    audit,
    models,
    measure,
    objectives,
    search,
    stability_window,
    published,
    seed,
):
    """Write calibration.parquet (searched curves) and calibration.json (T* and rank agreements per objective).

    `files` holds selection (models.json), sweeps and logits (one path per entry of `models`) and manifests (of the
    checkpoints that record a robust accuracy); `search` are the fields of SearchSettings, `published` the published
    accuracies of each model.
    """
    selected = included(files["selection"])
    accuracies = accuracies_of(models, published, files["manifests"])
    evidence = [
        read_evidence(sweep, logits, model=model, robust_accuracy=known["robust_accuracy"], seed=seed)
        for model, known, sweep, logits in zip(models, accuracies, files["sweeps"], files["logits"], strict=True)
        if label_of(model) in selected
    ]
    results, rows = calibrate(
        evidence, objectives, settings=SearchSettings(**search), stability_window=stability_window
    )
    frame = pd.DataFrame(rows, columns=["objective", "temperature", "value"])
    frame.insert(0, "measure", measure)
    write_table(path_to_table, "calibration", frame, identity={"audit": audit})
    write_csv_beside(path_to_table, frame)
    write_json(path_to_summary, {name: {"measure": measure, **result} for name, result in results.items()})


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        output = snakemake.output
        choose_temperature(
            snakemake.input, output.table, output.summary, audit=snakemake.wildcards.audit, **snakemake.params
        )
