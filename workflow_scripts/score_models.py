"""Every measure from logits of every model of an audit, once its logits have passed the checks."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gfscore.audit.calibration.evidence import SWEEPS
from gfscore.audit.checks import selection_of
from gfscore.audit.samples import write_scores
from gfscore.audit.scoring import score
from gfscore.audit.sensitivity import SENSITIVITY
from gfscore.audit.values import AuditSubject
from gfscore.core.files import read_json, write_json
from gfscore.tables.csv_files import write_table_and_csv
from gfscore.tables.parquet_tables import FrameCache, write_table
from gfscore.workflow.jobs import logged_job


def score_models(
    given: Mapping[str, Any],
    made: Mapping[str, Any],
    *,
    audit: str,
    subject: Mapping[str, Any],
    checks: Sequence[Mapping[str, Any]],
    temperatures: Mapping[str, float],
    changes: Mapping[str, Any],
    cache: Path | str = "results/cache",
) -> None:
    """Write models.json, and the tables scores, sweeps and sensitivity of an audit; `made` holds their paths.

    `given` holds paths: `manifest` and table of the `dataset`, and the files of `code`. `subject` is that
    of PlannedAudit, `checks` are its logit_checks, `temperatures` the
    ends low and high of the searched range, `changes` the shifts and scales of the logits, and lam, lambda of FP. What
    takes long is kept in the folder `cache`. Raises InputError for logits that cannot be audited.
    """
    how: dict[str, Any] = {"subject": subject, "checks": checks, "temperatures": temperatures, "changes": changes}
    scored = score(given, **how | {"subject": AuditSubject.parse(subject)}, kept=FrameCache(cache, code=given["code"]))
    manifest = read_json(given["manifest"])
    write_json(made["selection"], selection_of(scored.checks, subject["models"]))
    about = {"audit": audit, "dataset_digest": manifest["digest"]}
    identity = {**about, "classes": manifest["classes"], "logits": scored.identities}
    write_scores(made["scores"], scored.parts, identity=identity)
    write_table(made["sweeps"], SWEEPS, scored.sweeps, identity=about)
    about = {"audit": audit, "measured": len(scored.sensitivity) > 0}
    write_table_and_csv(made["sensitivity"], SENSITIVITY, scored.sensitivity, identity=about)


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        settings = {name: value for name, value in snakemake.params.items() if name != "state"}
        score_models(snakemake.input, snakemake.output, audit=snakemake.wildcards.audit, **settings)
