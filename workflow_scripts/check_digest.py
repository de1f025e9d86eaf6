"""Refuse data that have another digest than config.yaml pins, without reading them again."""

from pathlib import Path

from gfscore.core.digests import require_pinned
from gfscore.core.files import read_json, write_json
from gfscore.workflow.jobs import logged_job


def check_digest(path_to_manifest: Path | str, path_to_check: Path | str, *, pinned: str | None) -> None:
    """Write the digest of the dataset that a manifest describes; raises InputError unless it is the pinned one."""
    manifest = read_json(path_to_manifest)
    remedy = "correct `digest`, or delete that manifest if the data have changed since, and run again"
    require_pinned(manifest["digest"], pinned, where=path_to_manifest, remedy=remedy)
    write_json(path_to_check, {"dataset": manifest["dataset"], "digest": manifest["digest"]})


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        check_digest(snakemake.input.manifest, snakemake.output.check, pinned=snakemake.params.pinned)
