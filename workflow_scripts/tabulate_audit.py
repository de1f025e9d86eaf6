"""Every table of an audit, from the values of its models per sample, which are read once."""

from collections.abc import Mapping
from typing import Any

from gfscore.audit.tabulation import tabulate
from gfscore.audit.values import AuditValues
from gfscore.core.files import write_json
from gfscore.tables.csv_files import write_table_and_csv
from gfscore.tables.parquet_tables import frame_of
from gfscore.workflow.catalogue import CATALOGUE
from gfscore.workflow.jobs import logged_job


def tabulate_audit(
    subject: Mapping[str, Any],
    given: Mapping[str, Any],
    made: Mapping[str, Any],
    *,
    audit: str,
    settings: Mapping[str, Any],
) -> None:
    """Write the tables of TABULATED, calibration.json and comparison.json; `made` holds their paths by name.

    Takes what plan.subject_of says, and `given`, the paths that AuditValues needs with those of: the `manifest` of the
    dataset, `sweeps`, `manifests` of trained checkpoints, and where there are any the manifest of the `generator`,
    `attributes`, and the manifests of `mappers` with `projections`, one per mapper, task and model, and what
    projection_layout.task_files names. `settings` are what
    layout.table_settings says. Tables that the audit does not measure for get no rows, and say so (`measured`).
    """
    for tables, beside in tabulate(AuditValues.from_params(subject, given), given, audit=audit, settings=settings):
        for name, content in beside.items():
            write_json(made[f"{name}_json"], content)
        for name, (rows, identity) in tables.items():
            write_table_and_csv(made[name], CATALOGUE[name], frame_of(CATALOGUE[name], rows), identity=identity)
            if identity["measured"]:
                print(f"{name}: {len(rows):,} rows")


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        tabulate_audit(
            snakemake.params.subject,
            snakemake.input,
            snakemake.output,
            audit=snakemake.wildcards.audit,
            settings=snakemake.params.settings,
        )
