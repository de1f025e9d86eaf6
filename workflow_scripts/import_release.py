"""Values per sample of the last release, with which the gate of an audit compares."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gfscore.audit.verdicts.declines import write_release
from gfscore.core.dataset_manifest import DatasetManifest
from gfscore.core.identity import ModelName
from gfscore.measures import named_measures
from gfscore.workflow.bundling.releases import values_for
from gfscore.workflow.jobs import logged_job


def import_release(
    path_to_manifest: Path | str, path_to_values: Path | str, *, audit: str, release: Mapping[str, Any]
) -> None:
    """Write the table release_values from the bundle of an earlier release, once that is verified.

    Parameters
    ----------
    path_to_manifest : path
        Manifest of the dataset of the audit.
    path_to_values : path
        File to write.
    audit : str
        Name of the audit.
    release : mapping
        Bundle and model of the earlier release, models and measures that are compared: audit_steps.release_params.
    """
    manifest = DatasetManifest.read(path_to_manifest)
    values, source = values_for(
        release["bundle"],
        models=[ModelName.from_columns(columns) for columns in release["models"]],
        measures=list(named_measures(release["measures"]).values()),
        dataset_digest=manifest.digest,
        classes=manifest.classes,
        model=release["model"],
    )
    write_release(path_to_values, values, audit=audit, dataset_digest=manifest.digest, source=source)
    for later, earlier in source.models.items():
        print(f"{later} is compared with {earlier} of {source.audit}, judged {source.judged} by {source.version}")


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        import_release(
            snakemake.input.manifest,
            snakemake.output.values,
            audit=snakemake.wildcards.audit,
            release=snakemake.params.release,
        )
