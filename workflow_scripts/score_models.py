"""Every measure from logits of every model of an audit, once its logits have passed the checks."""

import pandas as pd

from gfscore.audit.checks import selection_of
from gfscore.audit.comparison.sensitivity import with_places
from gfscore.audit.model_logits import read_model_logits
from gfscore.audit.scores_file import write_scores
from gfscore.audit.scoring import Scoring
from gfscore.audit.summary_tables import SENSITIVITY
from gfscore.audit.tables import TABLES
from gfscore.core.files import read_json, write_json
from gfscore.core.identity import label_of
from gfscore.measures import from_logits
from gfscore.tables.csv_export import write_table_and_csv
from gfscore.tables.kept_frames import KeptFrames
from gfscore.tables.parquet_tables import frame_of, read_table, write_table
from gfscore.tables.table import DATASET
from gfscore.workflow.jobs import logged_job


def score_models(given, made, *, audit, subject, checks, temperatures, changes, cache="results/cache"):
    """Write models.json, and the tables scores, sweeps and sensitivity of an audit; `made` holds their paths.

    `given` holds paths: `manifest` and `samples` of the dataset, and the files of `code`. `subject` is what
    plan.subject_of says, `checks` what is asked of the logits of each model (plan.logit_checks), `temperatures` the
    searched range (low, high), `changes` the shifts and scales of the logits, and lam, lambda of FP. What takes long is
    kept in the folder `cache`. Raises InputError for logits that cannot be audited.
    """
    manifest = read_json(given["manifest"])
    samples = read_table(given["samples"], DATASET, expect={"dataset_digest": manifest["digest"]})
    scoring = Scoring(
        class_names=manifest["classes"],
        measures={name: entry for name, entry in subject["measures"].items() if from_logits(entry)},
        calibrated=subject["calibrated_measure"],
        temperatures=temperatures,
        changes=changes,
        kept=KeptFrames(cache, code=given["code"]),
    )
    # One model after the other, so that logits stand in memory once.
    for asked in checks:
        model, path = asked["model"], subject["logits"][label_of(asked["model"])]
        how = {"model": model, "allow_probabilities": asked["allow_probabilities"]}
        found = read_model_logits(path, manifest, samples, given=label_of(model) in subject["given"], **how)
        scoring.add(model, found, gate=asked["gate"], source=path)
    write_json(made["selection"], selection_of(scoring.checks, subject["models"]))
    about = {"audit": audit, "dataset_digest": manifest["digest"]}
    identity = {**about, "classes": manifest["classes"], "logits": scoring.identities}
    write_scores(made["scores"], scoring.parts, identity=identity)
    swept = pd.concat(scoring.sweeps) if scoring.sweeps else frame_of(TABLES["sweeps"], [])
    write_table(made["sweeps"], TABLES["sweeps"], swept, identity=about)
    about = {"audit": audit, "measured": any(len(rows) for rows in scoring.sensitivity)}
    write_table_and_csv(made["sensitivity"], SENSITIVITY, with_places(scoring.sensitivity), identity=about)


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        settings = {name: value for name, value in snakemake.params.items() if name != "state"}
        score_models(snakemake.input, snakemake.output, audit=snakemake.wildcards.audit, **settings)
