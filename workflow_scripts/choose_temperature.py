"""Temperatures of one audit, by every named objective."""

import pandas as pd

from gfscore.audit.calibration.evidence import read_all_evidence
from gfscore.audit.calibration.temperature_search import SearchSettings
from gfscore.audit.calibration.temperatures import Resampling, calibrate
from gfscore.audit.tables import TABLES
from gfscore.core.files import write_json
from gfscore.tables.parquet_tables import write_table_and_csv
from gfscore.workflow.jobs import logged_job


def choose_temperature(
    files,
    path_to_table,
    path_to_summary,
    *,
    audit,
    measure,
    objectives,
    search,
    stability_window,
    resampling,
    seed,
    split,
    **models,
):
    """Write calibration.parquet (searched curves) and calibration.json (T* and rank agreements per objective).

    `files`, `models` (models and published), `split` and `seed` are those of `read_all_evidence`; `search` are the
    fields of SearchSettings, `resampling` those of Resampling but its seed.
    """
    evidence = read_all_evidence(files, seed=seed, split=split, **models)
    results, rows = calibrate(
        evidence,
        objectives,
        settings=SearchSettings(**search),
        stability_window=stability_window,
        resampling=Resampling(**resampling, seed=seed),
        split=split,
    )
    frame = pd.DataFrame(rows, columns=["objective", "temperature", "value"])
    frame.insert(0, "measure", measure)
    write_table_and_csv(path_to_table, TABLES["calibration"], frame, identity={"audit": audit})
    write_json(path_to_summary, {name: {"measure": measure, **result} for name, result in results.items()})


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        output = snakemake.output
        choose_temperature(
            snakemake.input, output.table, output.summary, audit=snakemake.wildcards.audit, **snakemake.params
        )
