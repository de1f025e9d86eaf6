"""Temperatures of one audit, by every named objective."""

import pandas as pd

from gfscore.calibration import SearchSettings
from gfscore.evidence import read_evidence
from gfscore.files import write_json
from gfscore.jobs import logged_job
from gfscore.tables import write_csv_beside, write_table
from gfscore.temperatures import calibrate


def choose_temperature(
    paths_to_sweeps,
    paths_to_logits,
    paths_to_manifests,
    path_to_table,
    path_to_summary,
    *,
    audit,
    models,
    measure,
    objectives,
    temperatures,
    stability_window,
    seed,
):
    """Write calibration.parquet (searched curves) and calibration.json (T* and rank agreements per objective).

    The three lists of paths hold one file per entry of `models`; `temperatures` are the fields of SearchSettings.
    """
    evidence = [
        read_evidence(*paths, model=model, seed=seed)
        for model, *paths in zip(models, paths_to_sweeps, paths_to_logits, paths_to_manifests, strict=True)
    ]
    results, rows = calibrate(
        evidence, objectives, settings=SearchSettings(**temperatures), stability_window=stability_window
    )
    frame = pd.DataFrame(rows, columns=["objective", "temperature", "value"])
    frame.insert(0, "measure", measure)
    write_table(path_to_table, "calibration", frame, identity={"audit": audit})
    write_csv_beside(path_to_table, frame)
    write_json(path_to_summary, {name: {"measure": measure, **result} for name, result in results.items()})


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        files = snakemake.input
        choose_temperature(
            files.sweeps,
            files.logits,
            files.manifests,
            snakemake.output.table,
            snakemake.output.summary,
            audit=snakemake.wildcards.audit,
            **snakemake.params,
        )
