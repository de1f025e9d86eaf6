"""One measure of one model: every kind that is computed from logits alone."""

import pandas as pd

from gfscore.measures import kind_of
from gfscore.measures.samples import table_of
from gfscore.tables.parquet_tables import read_identity, read_logits, write_table
from gfscore.workflow.jobs import logged_job


def score_logits(path_to_logits, path_to_samples, *, model, measure, settings):
    """Write the samples table of one model and measure; `settings` are its entry in config.yaml, with its kind.

    `model` is a mapping with dataset, threat, model. The other settings stand in the table's metadata.
    """
    sample_id, label, logits = read_logits(path_to_logits, expect=model)
    kind = kind_of(settings)
    table = table_of(kind.name)
    columns = {"sample_id": sample_id, "label": label, **kind.load()(logits, label, settings=settings)}
    frame = pd.DataFrame(columns)[table.column_names]
    own = {key: value for key, value in settings.items() if key != "kind"}
    write_table(path_to_samples, table, frame, identity=read_identity(path_to_logits) | {"measure": measure} | own)


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        model = dict(snakemake.wildcards)
        measure = model.pop("measure")
        score_logits(
            snakemake.input.logits,
            snakemake.output.samples,
            model=model,
            measure=measure,
            settings=snakemake.params.settings,
        )
