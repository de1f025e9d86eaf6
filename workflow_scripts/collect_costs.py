"""What every value of an audit cost: time, memory, GPU."""

from gfscore.audit.audit_writing import write_audit_tables
from gfscore.audit.tables import TABLES
from gfscore.tables.parquet_tables import read_table
from gfscore.workflow.costs import cost_rows
from gfscore.workflow.jobs import logged_job


def collect_costs(path_to_class_scores, path_to_table, *, audit, records):
    """Write the table costs; `records` are those of `layout.cost_records`, of which each may be absent."""
    class_scores = read_table(path_to_class_scores, TABLES["class_scores"], expect={"audit": audit})
    write_audit_tables({"costs": path_to_table}, {"costs": cost_rows(records, class_scores)}, audit=audit)


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        collect_costs(
            snakemake.input.class_scores,
            snakemake.output.table,
            audit=snakemake.wildcards.audit,
            records=snakemake.params.records,
        )
