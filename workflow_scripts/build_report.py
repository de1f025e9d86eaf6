"""The page of an audit: one self-contained file."""

from gfscore.workflow.prepared import WITHOUT_TORCH, run_prepared

run_prepared(globals(), WITHOUT_TORCH)

from collections.abc import Iterable
from pathlib import Path

from gfscore.audit.audit_folder import AuditFolder
from gfscore.audit.step_params import TrainedModel
from gfscore.core.digests import write_checksummed
from gfscore.measures import named_measures
from gfscore.show.page.report import PageSettings, page_of_folder
from gfscore.workflow.jobs import logged_job


def build_report(
    folder: AuditFolder,
    path_to_page: Path | str,
    settings: PageSettings,
    *,
    sweeps: Path | str | None = None,
    pictures: Iterable[Path | str] = (),
) -> None:
    """Write report.html from an audit's tables and verdict, its table of sweeps and the pictures of its mappers.

    Raises InputError for a verdict on other files than there are now.
    """
    folder.verdict().require_current(folder.verdict_file)
    page = page_of_folder(folder, settings, sweeps=sweeps, pictures=pictures)
    write_checksummed(path_to_page, page, files=folder.files())


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        inputs, params = snakemake.input, snakemake.params
        build_report(
            AuditFolder(Path(inputs.verdict).parent, snakemake.wildcards.audit),
            snakemake.output.page,
            PageSettings(
                title=params.title,
                measures=named_measures(params.measures),
                models=[TrainedModel(**model) for model in params.models],
                fp_lambda=params.fp_lambda,
                published_samples=params.published_samples,
            ),
            sweeps=inputs.sweeps,
            pictures=inputs.pictures,
        )
