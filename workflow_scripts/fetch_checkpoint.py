"""Make sure that a checkpoint is in place and whole, and record what it is."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gfscore.core import digests
from gfscore.core.files import read_json, write_json
from gfscore.networks.checkpoint_files import describe_checkpoint
from gfscore.workflow.jobs import logged_job


def fetch_checkpoint(settings: Mapping[str, Any], path_to_manifest: Path | str, *, identity: Mapping[str, str]) -> None:
    """Write the manifest (JSON) of the checkpoint of one model entry; a missing file is downloaded from its url.

    `settings` holds the entry's source, path, url, sha256 and that source's own keys, `identity` dataset (the zoo),
    threat and model. Raises InputError, naming file and remedy, for a file that cannot be had or must not be used.
    """
    write_json(path_to_manifest, describe_checkpoint(settings, identity=identity))


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        fetch_checkpoint(snakemake.params.settings, snakemake.output.manifest, identity=snakemake.params.identity)
        # For the planning of later runs.
        for file in read_json(snakemake.output.manifest)["files"]:
            digests.cached_sha256(file["path"])
