"""Clean correctness of every sample."""

import pandas as pd

from gfscore.statistics.margins import predictions
from gfscore.tables.parquet_tables import read_identity, read_logits, write_table
from gfscore.workflow.jobs import logged_job


def score_predictions(path_to_logits, path_to_samples, *, model, measure):
    """Write the samples table of the measure clean: value 1 where the prediction is the label, else 0."""
    sample_id, label, logits = read_logits(path_to_logits, expect=model)
    prediction = predictions(logits, label)
    frame = pd.DataFrame(
        {
            "sample_id": sample_id,
            "label": label,
            "prediction": prediction,
            "value": (prediction == label).astype(float),
            "censored": False,
        }
    )
    write_table(path_to_samples, "samples", frame, identity=read_identity(path_to_logits) | {"measure": measure})


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        model = dict(snakemake.wildcards)
        measure = model.pop("measure")
        score_predictions(snakemake.input.logits, snakemake.output.samples, model=model, measure=measure)
