"""Every table of an audit, from the values of its models per sample, which are read once."""

from gfscore.workflow.prepared import WITHOUT_TORCH, run_prepared

run_prepared(globals(), WITHOUT_TORCH)

from collections.abc import Mapping

from gfscore.audit.audit_files import AuditFiles
from gfscore.audit.step_params import TableSettings
from gfscore.audit.tables import TABLES
from gfscore.audit.tabulation import tabulate
from gfscore.audit.values import AuditValues
from gfscore.core.files import write_json
from gfscore.tables.csv_files import write_table_and_csv
from gfscore.workflow.jobs import logged_job


def tabulate_audit(
    audit_values: AuditValues,
    files: AuditFiles,
    written: Mapping[str, str],
    *,
    audit: str,
    settings: TableSettings,
) -> None:
    """Write the tables of TABULATED, calibration.json and comparison.json.

    Parameters
    ----------
    audit_values : AuditValues
        Values of the audit.
    files : AuditFiles
    written : mapping of str to path
        Files to write: tables by name, calibration_json and comparison_json.
    audit : str
        Name of the audit.
    settings : TableSettings
    """
    for group in tabulate(audit_values, files, audit=audit, settings=settings):
        for name, content in group.documents.items():
            write_json(written[f"{name}_json"], content)
        for name, frame in group.frames.items():
            write_table_and_csv(written[name], TABLES[name], frame, identity=group.identities[name])
            if group.identities[name]["measured"]:
                print(f"{name}: {len(frame):,} rows")


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        tabulate_audit(
            AuditValues.from_params(snakemake.params.subject, snakemake.input),
            AuditFiles.from_inputs(snakemake.input),
            snakemake.output,
            audit=snakemake.wildcards.audit,
            settings=TableSettings(**snakemake.params.settings),
        )
