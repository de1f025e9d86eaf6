"""Every measure from logits of every model of an audit, once its logits have passed the checks."""

from gfscore.workflow.prepared import WITHOUT_TORCH, run_prepared

run_prepared(globals(), WITHOUT_TORCH)

from collections.abc import Mapping, Sequence
from pathlib import Path

from gfscore.audit.audit_files import AuditFiles
from gfscore.audit.calibration.evidence import SWEEPS
from gfscore.audit.checks import selection_of
from gfscore.audit.samples import write_scores
from gfscore.audit.scoring import LogitCheck, check_and_score
from gfscore.audit.sensitivity import SENSITIVITY
from gfscore.audit.settings import TemperatureRange
from gfscore.audit.step_params import LogitChanges
from gfscore.audit.values import AuditSubject
from gfscore.core.dataset_manifest import DatasetManifest
from gfscore.core.files import write_json
from gfscore.tables.csv_files import write_table_and_csv
from gfscore.tables.parquet_tables import FrameCache, write_table
from gfscore.workflow.jobs import logged_job


def score_models(
    files: AuditFiles,
    outputs: Mapping[str, str],
    *,
    audit: str,
    subject: AuditSubject,
    checks: Sequence[LogitCheck],
    temperatures: TemperatureRange,
    changes: LogitChanges,
    cache: Path | str = "results/cache",
) -> None:
    """Write models.json, and the tables scores, sweeps and sensitivity of an audit.

    Parameters
    ----------
    files : AuditFiles
        Manifest, dataset and code.
    outputs : mapping of str to path
        Files to write: selection, scores, sweeps, sensitivity.
    audit : str
        Name of the audit.
    subject : AuditSubject
    checks : sequence of LogitCheck
        One for each model with logits.
    temperatures : TemperatureRange
        Range that is searched.
    changes : LogitChanges
    cache : path
        Folder that keeps what takes long.

    Raises
    ------
    InputError
        For logits that cannot be audited.
    """
    scored = check_and_score(
        files,
        subject=subject,
        checks=checks,
        temperatures=temperatures,
        changes=changes,
        cache=FrameCache(cache, code=files.code),
    )
    manifest = DatasetManifest.read(files.manifest)
    write_json(outputs["selection"], selection_of(scored.checks, subject.models))
    identity = {"audit": audit, "dataset_digest": manifest.digest}
    write_scores(
        outputs["scores"],
        scored.samples,
        identity={**identity, "classes": manifest.classes, "logits": scored.identities},
    )
    write_table(outputs["sweeps"], SWEEPS, scored.sweeps, identity=identity)
    write_table_and_csv(
        outputs["sensitivity"],
        SENSITIVITY,
        scored.sensitivity,
        identity={"audit": audit, "measured": len(scored.sensitivity) > 0},
    )


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        score_models(
            AuditFiles.from_inputs(snakemake.input),
            snakemake.output,
            audit=snakemake.wildcards.audit,
            subject=AuditSubject.parse(snakemake.params.subject),
            checks=[LogitCheck.parse(check) for check in snakemake.params.checks],
            temperatures=TemperatureRange(**snakemake.params.temperatures),
            changes=LogitChanges(**snakemake.params.changes),
        )
