"""An audit as a research object that can be deposited and cited."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gfscore.core.files import read_json
from gfscore.show.exports.crate import write_crate
from gfscore.workflow.audit_check import require_unchanged_audit
from gfscore.workflow.jobs import logged_job


def export_crate(
    path_to_verdict: Path | str,
    path_to_folder: Path | str,
    *,
    root: Path | str,
    audit: str,
    title: str,
    config: Mapping[str, Any],
    workflow: Sequence[str],
    inputs: Sequence[str],
    outputs: Sequence[str],
) -> None:
    """Write a Workflow Run RO-Crate of the audit into a folder; its time is that of verdict.json.

    `root` is the folder that the other paths are relative to: those of the files of the `workflow`, of the `inputs`
    (manifests) and of the `outputs`. `config` is the configuration, what the command line changed included. Raises
    InputError for an audit whose files are not as the workflow wrote them: the crate gives each a digest of its own.
    """
    require_unchanged_audit(Path(path_to_verdict).parent)
    write_crate(
        path_to_folder,
        root=root,
        workflow=workflow,
        config=config,
        inputs=inputs,
        outputs=[path_to_verdict, *outputs],
        audit=audit,
        title=title,
        sentence=read_json(path_to_verdict)["sentence"],
        finished=Path(path_to_verdict).stat().st_mtime,
    )


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        export_crate(
            snakemake.input.verdict,
            snakemake.output.folder,
            root=".",
            audit=snakemake.wildcards.audit,
            title=snakemake.params.title,
            config=snakemake.params.config,
            workflow=list(snakemake.input.workflow),
            inputs=list(snakemake.input.manifests),
            outputs=list(snakemake.input.results),
        )
