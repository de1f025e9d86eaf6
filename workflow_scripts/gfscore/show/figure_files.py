"""The figures of an audit as files, drawn by several processes."""

import signal
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any

from gfscore.audit.tables import read_audit_tables
from gfscore.audit.values import AuditValues, SampleValues
from gfscore.core.files import read_json, write_text
from gfscore.measures import named_measures
from gfscore.projection.mappers.pictures import read_all_pictures
from gfscore.show.audit_charts import UndrawnChart, drawings, file_name, leaving_out_failures, parts_of
from gfscore.show.charts.declaration import SCORE, Subject
from gfscore.show.drawing.saving import save_figure

NOT_DRAWN = ".not-drawn.txt"
"""End of the name of a file that says why there is no figure of that name."""


def draw_by_processes(files: Mapping[str, Any], path_to_folder: Path | str, *, threads: int, **settings: Any) -> None:
    """Write every figure of an audit as <folder>/<name>.svg, .pdf and .png, and print what is drawn and what is not.

    The files do not depend on the number of processes.

    Parameters
    ----------
    files, path_to_folder
        As draw_figures has them.
    threads : int
        Largest number of processes.
    **settings
        Arguments of draw_figures except `parts`.

    Raises
    ------
    RuntimeError
        If another process fails, whose own error stands on stderr.
    """
    parts = parts_of(settings["measures"])
    shares = [parts[start::threads] for start in range(min(threads, len(parts)))]
    # Started afresh, since not every system lets a process that has threads be forked.
    context = get_context("spawn")
    processes = []
    for share in shares[1:]:
        arguments = {**settings, "parts": share}
        process = context.Process(target=_draw_in_process, args=(files, path_to_folder), kwargs=arguments, daemon=True)
        process.start()
        processes.append(process)

    try:
        for name in draw_figures(files, path_to_folder, **settings, parts=shares[0]):
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


def _draw_in_process(files: Mapping[str, Any], path_to_folder: Path | str, **settings: Any) -> None:
    # In a process that ends when the one that started it is gone. That one tells of an interruption.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    parent = parent_process()
    assert parent is not None  # this is not the main process
    for _ in draw_figures(files, path_to_folder, **settings):
        if not parent.is_alive():
            return


def draw_figures(
    files: Mapping[str, Any],
    path_to_folder: Path | str,
    *,
    audit: str,
    measures: Mapping[str, Mapping[str, Any]],
    fp_lambda: float,
    parts: Sequence[str],
    sampled: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> Iterator[str]:
    """Write figures of an audit, and yield the name of each.

    A figure whose drawing fails is left out, and the text file <name>.not-drawn.txt says why.

    Parameters
    ----------
    files : mapping of str to path
        What read_audit_tables reads, and, where there are any, selection (models.json), a list of the mappers'
        pictures, and with `sampled` what AuditValues reads.
    path_to_folder : path
    audit : str
        Name of the audit that the files must be of.
    measures : mapping
        Settings of each measure by name.
    fp_lambda : float
        Lambda of FP.
    parts : sequence of str
        Parts of the audit that are drawn (gfscore.show.audit_charts.parts_of).
    sampled : mapping, optional
        Params of the AuditSubject for the figures that draw from samples. Plain values, since each process reads the
        samples itself.
    seed : int
        Seed of the draws.
    """
    guessing: Sequence[str] = ()
    if files.get("selection"):
        guessing = read_json(files["selection"])["guessing"]
    values: dict[str, list[SampleValues]] = {}
    if sampled:
        values = _values_by_score(AuditValues.from_params(sampled, files))
    subject = Subject(
        tables=read_audit_tables(files, audit=audit),
        measures=named_measures(measures),
        fp_lambda=fp_lambda,
        guessing=guessing,
        measured=values,
        pictures=read_all_pictures(files.get("pictures") or ()),
        seed=seed,
    )
    folder = Path(path_to_folder)
    undrawn: list[UndrawnChart] = []
    for drawing in drawings(subject, parts=parts, undrawn=undrawn):
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


def _values_by_score(audit_values: AuditValues) -> dict[str, list[SampleValues]]:
    # Of every model at T = 1, for the attack-free scores of an audit.
    values: dict[str, list[SampleValues]] = {measure.name: [] for measure in audit_values.subject.of_kind(SCORE)}
    for of_model in audit_values.uncalibrated(values):
        values[of_model.measure.name].append(of_model)
    return values
