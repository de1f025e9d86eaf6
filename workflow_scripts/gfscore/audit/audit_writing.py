"""Writing tables of an audit, each with its CSV."""

from gfscore.audit.tables import TABLES
from gfscore.tables.parquet_tables import frame_of, write_table_and_csv


def write_audit_tables(paths, rows, *, audit, identity=None):
    """Write tables of an audit, each with its CSV: `paths` and `rows` (lists of mappings) by the tables' names.

    `identity` is what the files say of themselves beside the audit's name.
    """
    for table, found in rows.items():
        about = {"audit": audit} | (identity or {})
        write_table_and_csv(paths[table], TABLES[table], frame_of(TABLES[table], found), identity=about)
