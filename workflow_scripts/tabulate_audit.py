"""Every table of an audit, from the values of its models per sample, which are read once."""

from gfscore.audit.calibration.sweeps import read_sweeps
from gfscore.audit.inputs import AuditInputs
from gfscore.audit.table_names import TABULATED
from gfscore.audit.tabulation import Tabulation
from gfscore.core.files import read_json, write_json
from gfscore.tables.csv_export import write_table_and_csv
from gfscore.tables.parquet_tables import frame_of
from gfscore.workflow.catalogue import CATALOGUE
from gfscore.workflow.jobs import logged_job


def tabulate_audit(subject, given, made, *, audit, settings):
    """Write the tables of TABULATED, calibration.json and comparison.json; `made` holds their paths by name.

    Takes what plan.subject_of says, and `given`, the paths that AuditInputs needs with those of: the `manifest` of the
    dataset, `sweeps`, `manifests` of trained checkpoints, and where there are any the manifest of the `generator`,
    `attributes`, and the manifest of the `mapper` with `projections`, one per model. `settings` are what
    layout.table_settings says. Tables that the audit does not measure for get no rows, and say so (`measured`).
    """
    inputs, manifest = AuditInputs.of(subject, given), read_json(given["manifest"])
    tabulation = Tabulation.read(inputs, given, manifest["classes"], settings)
    shared = {"audit": audit, "dataset_digest": manifest["digest"]}
    # What another audit must share for its numbers to be compared with these.
    about = {"measures": inputs.measures, "fp_lambda": settings["disparity"]["fp_lambda"]}
    identities = {"class_scores": {"made_from": inputs.sources()}, "model_summary": about}
    waiting = dict.fromkeys(TABULATED)

    def write(name, rows, *, measured):
        table = CATALOGUE[name]
        identity = {**shared, "measured": measured, **identities.get(name, {})}
        write_table_and_csv(made[name], table, frame_of(table, rows), identity=identity)
        del waiting[name]

    for tables, beside in tabulation.tables(read_sweeps(given["sweeps"], audit=audit)):
        for name, content in beside.items():
            write_json(made[f"{name}_json"], content)
        for name, rows in tables.items():
            write(name, rows, measured=True)
            print(f"{name}: {len(rows):,} rows")
    for name in tuple(waiting):
        write(name, [], measured=False)


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        tabulate_audit(
            snakemake.params.subject,
            snakemake.input,
            snakemake.output,
            audit=snakemake.wildcards.audit,
            settings=snakemake.params.settings,
        )
