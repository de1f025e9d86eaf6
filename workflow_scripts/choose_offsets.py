"""Choose class offsets of one model, under attacks that see them, on the half of the data that is meant for it."""

from gfscore.workflow.prepared import run_prepared

run_prepared(globals())

from typing import cast

from gfscore.core.files import read_json, write_json
from gfscore.measures import kind_of
from gfscore.measures.adversarial import Adversarial
from gfscore.measures.job import MeasuringJob, open_job, searching_in
from gfscore.measures.progress import remove_progress
from gfscore.networks.offset_settings import OffsetSettings
from gfscore.networks.precision import FULL
from gfscore.remedies import offsets
from gfscore.workflow.jobs import logged_job


def choose_offsets(job: MeasuringJob, settings: OffsetSettings, *, search: str = FULL) -> None:
    """Write the offsets of one model and how they were chosen, as OffsetFile of gfscore.networks.offset_files.

    Parameters
    ----------
    job : MeasuringJob
        The model, the dataset, the measure whose attacks search, and the file to write.
    settings : OffsetSettings
        Objective, rounds and seed.
    search : str
        Setting `inference: search`.
    """
    opened = open_job(job)
    classifier = searching_in(search, opened)
    choice = offsets.choose_offsets(
        classifier,
        opened.images,
        settings=settings,
        attack=cast(Adversarial, job.settings),
        batch_size=job.batch_size,
        device=opened.device,
        rows=opened.rows,
        where=job.weights,
        folder=job.progress,
        identity={**opened.identity, "choosing": settings.model_dump_json(), "version": job.version},
    )
    print(*choice.words(settings), sep="\n")
    classes = read_json(job.dataset)["classes"]
    record = choice.file(settings=settings, measure=job.measure, classes=classes, identity=opened.identity)
    write_json(job.output, record.model_dump())
    remove_progress(job.progress)


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        attack = kind_of(snakemake.params.attack).parse(snakemake.params.attack)
        choose_offsets(
            MeasuringJob.from_snakemake(snakemake, measure=snakemake.params.measure, settings=attack),
            OffsetSettings.model_validate(snakemake.params.settings),
            search=snakemake.resources.search,
        )
