"""The figures of an audit as files, drawn by several processes."""

import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from multiprocessing import get_context, parent_process
from pathlib import Path

from gfscore.audit.audit_folder import AuditFolder
from gfscore.audit.values import AuditSubject, AuditValues, SampleValues
from gfscore.core.files import write_text
from gfscore.core.mappings import by_name
from gfscore.core.settings import PlainSettings
from gfscore.projection.mappers.pictures import read_all_pictures
from gfscore.show.audit_charts import UndrawnChart, drawings, file_name, leaving_out_failures, parts_of
from gfscore.show.charts.declaration import SCORE, Subject
from gfscore.show.drawing.saving import save_figure

NOT_DRAWN = ".not-drawn.txt"
"""End of the name of a file that says why there is no figure of that name."""


@dataclass(frozen=True, kw_only=True)
class DrawnAudit:
    """Where the figures of an audit come from: paths and plain values, which processes can hand to each other.

    Parameters
    ----------
    folder : AuditFolder
        Its tables and calibrations.
    subject : mapping
        Params of its AuditSubject.
    fp_lambda : float
        Lambda of FP.
    scores, dataset : path, optional
        Tables of those names; without, there are no figures that draw from samples.
    pictures : sequence of path
        Pictures of its mappers.
    seed : int
        Seed of the draws.
    """

    folder: AuditFolder
    subject: PlainSettings
    fp_lambda: float
    scores: Path | str | None = None
    dataset: Path | str | None = None
    pictures: Sequence[Path | str] = ()
    seed: int = 0

    def read(self) -> Subject:
        """Subject that the charts are made from, read from files."""
        subject = AuditSubject.parse(self.subject)
        # Of every model at T = 1, for the attack-free scores.
        values_by_score: dict[str, list[SampleValues]] = {}
        if self.scores is not None and self.dataset is not None:
            scores = by_name(subject.of_kind(SCORE))
            audit_values = AuditValues(
                subject=replace(subject, measures=scores),
                selection=self.folder.selection_file,
                dataset=self.dataset,
                scores=self.scores,
            )
            for name in scores:
                values_by_score[name] = list(audit_values.uncalibrated([name]))

        return Subject(
            tables=self.folder.tables(),
            measures=subject.measures,
            fp_lambda=self.fp_lambda,
            guessing=self.folder.guessing(),
            left_out=self.folder.left_out(),
            measured=values_by_score,
            pictures=read_all_pictures(self.pictures),
            seed=self.seed,
        )


def draw_by_processes(audit: DrawnAudit, path_to_folder: Path | str, *, threads: int) -> None:
    """Write every figure of an audit as <folder>/<name>.svg, .pdf and .png, and print what is drawn and what is not.

    The files do not depend on the number of processes.

    Parameters
    ----------
    audit : DrawnAudit
    path_to_folder : path
    threads : int
        Largest number of processes.

    Raises
    ------
    RuntimeError
        If another process fails, whose own error stands on stderr.
    """
    parts = parts_of(audit.subject["measures"])
    shares = [parts[start::threads] for start in range(min(threads, len(parts)))]
    # Started afresh, since not every system lets a process that has threads be forked.
    context = get_context("spawn")
    processes = []
    for share in shares[1:]:
        process = context.Process(target=_draw_in_process, args=(audit, path_to_folder, share), daemon=True)
        process.start()
        processes.append(process)

    try:
        for name in draw_figures(audit, path_to_folder, parts=shares[0]):
            print(f"{name}: drawn")
        for share, process in zip(shares[1:], processes, strict=True):
            process.join()
            if process.exitcode:
                raise RuntimeError(f"the process that drew {', '.join(share)} ended with status {process.exitcode}")
            print(f"{', '.join(share)}: drawn by another process")
        for path in sorted(Path(path_to_folder).glob(f"*{NOT_DRAWN}")):
            print(path.read_text(encoding="utf-8").rstrip())
    finally:
        # After an error or an interruption none may go on writing.
        for process in processes:
            process.terminate()
            process.join()


def _draw_in_process(audit: DrawnAudit, path_to_folder: Path | str, parts: Sequence[str]) -> None:
    # In a process that ends with its parent, which reports an interruption.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    parent = parent_process()
    assert parent is not None  # this is not the main process
    for _ in draw_figures(audit, path_to_folder, parts=parts):
        if not parent.is_alive():
            return


def draw_figures(audit: DrawnAudit, path_to_folder: Path | str, *, parts: Sequence[str]) -> Iterator[str]:
    """Write figures of an audit, and yield the name of each.

    A figure whose drawing fails is left out, and the text file <name>.not-drawn.txt says why.

    Parameters
    ----------
    audit : DrawnAudit
    path_to_folder : path
    parts : sequence of str
        Parts of the audit that are drawn (gfscore.show.audit_charts.parts_of).
    """
    folder = Path(path_to_folder)
    undrawn: list[UndrawnChart] = []
    for drawing in drawings(audit.read(), parts=parts, undrawn=undrawn):
        if not drawing.chart.figure:
            continue
        saved = False
        with leaving_out_failures(drawing.chart, drawing.subject, undrawn):
            save_figure(drawing.figure(), folder / drawing.name)
            saved = True
        if saved:
            yield drawing.name

    for missing in undrawn:
        if missing.chart.figure:
            name = file_name(missing.chart, missing.measure)
            write_text(folder / f"{name}{NOT_DRAWN}", f"{missing.sentence}\n")
