"""Attack-free margin score of every sample, at T = 1."""

import pandas as pd

from gfscore.statistics.margins import predictions, scores
from gfscore.tables.parquet_tables import read_identity, read_logits, write_table
from gfscore.workflow.jobs import logged_job


def score_margins(path_to_logits, path_to_samples, *, model, measure, activation):
    """Write the samples table of one great variant; `activation` is a key of margins.ACTIVATIONS."""
    sample_id, label, logits = read_logits(path_to_logits, expect=model)
    frame = pd.DataFrame(
        {
            "sample_id": sample_id,
            "label": label,
            "prediction": predictions(logits, label),
            "value": scores(logits, label, activation=activation),
            "censored": False,
        }
    )
    identity = read_identity(path_to_logits) | {"measure": measure, "activation": activation}
    write_table(path_to_samples, "samples", frame, identity=identity)


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        model = dict(snakemake.wildcards)
        measure = model.pop("measure")
        activation = snakemake.params.activation
        score_margins(
            snakemake.input.logits,
            snakemake.output.samples,
            model=model,
            measure=measure,
            activation=activation,
        )
