"""Class scores of one model over the whole temperature range."""

import numpy as np
import pandas as pd

from gfscore.audit.tables import TABLES
from gfscore.core.files import read_json
from gfscore.statistics.classes import class_means
from gfscore.statistics.curves import sweep_class_scores
from gfscore.statistics.margins import predictions
from gfscore.tables.parquet_tables import read_identity, read_logits, write_table
from gfscore.workflow.jobs import logged_job


def sweep_temperatures(path_to_logits, path_to_manifest, path_to_sweep, *, model, activation, low, high):
    """Write the sweep table of one model and great variant, from T = low to T = high."""
    _, label, logits = read_logits(path_to_logits, expect=model)
    classes = len(read_json(path_to_manifest)["classes"])
    curves = sweep_class_scores(logits, label, classes, activation=activation, low=low, high=high)
    points = len(curves.temperatures)
    accuracy = class_means(predictions(logits, label) == label, label, classes)
    frame = pd.DataFrame(
        {
            "temperature": np.repeat(curves.temperatures, classes),
            "class_index": np.tile(np.arange(classes, dtype=np.int32), points),
            "n": np.tile(curves.n, points),
            "value": curves.values.ravel(),
            "accuracy": np.tile(accuracy, points),
        }
    )
    write_table(
        path_to_sweep, TABLES["sweep"], frame, identity=read_identity(path_to_logits) | {"activation": activation}
    )


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        model = dict(snakemake.wildcards)
        del model["measure"]
        sweep_temperatures(
            snakemake.input.logits,
            snakemake.input.manifest,
            snakemake.output.sweep,
            model=model,
            activation=snakemake.params.activation,
            low=snakemake.params.low,
            high=snakemake.params.high,
        )
