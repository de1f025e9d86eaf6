"""The figures of an audit as files, drawn by several processes."""

import signal
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any

from gfscore.audit.tables import read_audit_tables
from gfscore.audit.values import AuditValues, SampleValues
from gfscore.core.files import read_json, write_text
from gfscore.projection.mappers.pictures import read_all_pictures
from gfscore.show.audit_charts import UndrawnChart, drawings, file_name, leaving_out_failures, parts_of
from gfscore.show.charts.declaration import SCORE, Subject
from gfscore.show.drawing.saving import save_figure

NOT_DRAWN = ".not-drawn.txt"
"""End of the name of a file that says why there is no figure of that name."""


def draw_by_processes(files: Mapping[str, Any], path_to_folder: Path | str, *, threads: int, **settings: Any) -> None:
    """Write every figure of an audit as <folder>/<name>.svg, .pdf and .png, by up to `threads` processes.

    Takes the arguments of draw_figures except `parts`, and prints what is drawn and what is not. The files do not
    depend on the number of processes. Raises RuntimeError when another process fails, whose own error stands on stderr.
    """
    parts = parts_of(settings["measures"])
    shares = [parts[start::threads] for start in range(min(threads, len(parts)))]
    arguments = files, path_to_folder
    # Started afresh, since not every system lets a process that has threads be forked.
    process = partial(get_context("spawn").Process, target=_draw_beside, args=arguments, daemon=True)
    others = [process(kwargs=settings | {"parts": share}) for share in shares[1:]]
    for other in others:
        other.start()
    try:
        for name in draw_figures(*arguments, **settings, parts=shares[0]):
            print(f"{name}: drawn")
        for share, other in zip(shares[1:], others, strict=True):
            other.join()
            if other.exitcode:
                raise RuntimeError(f"the process that drew {', '.join(share)} ended with status {other.exitcode}")
            print(f"{', '.join(share)}: drawn by another process")
        for path in sorted(Path(path_to_folder).glob(f"*{NOT_DRAWN}")):
            print(path.read_text(encoding="utf-8").rstrip())
    finally:
        # After an error or an interruption none may go on writing.
        for other in others:
            other.terminate()
            other.join()


def _draw_beside(files, path_to_folder, **settings):
    # In a process of its own, which ends when the one that started it is gone. That one tells of an interruption.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    parent = parent_process()
    assert parent is not None  # this is a process of its own
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
    inputs: AuditValues | None = None,
    seed: int = 0,
) -> Iterator[str]:
    """Write the figures of some parts of an audit (see gfscore.show.audit_charts.parts_of), and yield the name of each.

    `files` maps what read_audit_tables takes, and selection (models.json) and pictures (those of the mappers), where
    there are any, to paths; `measures` maps each measure to its settings, `fp_lambda` is lambda of FP. `inputs` are
    AuditValues for the figures that draw from samples, with the `seed` of the draws. A figure whose drawing fails is
    left out, and the text file <name>.not-drawn.txt says why.
    """
    subject = Subject(
        tables=read_audit_tables(files, audit=audit),
        measures=measures,
        fp_lambda=fp_lambda,
        guessing=read_json(files["selection"])["guessing"] if files.get("selection") else (),
        measured=_measured_by_measure(inputs) if inputs else {},
        pictures=read_all_pictures(files.get("pictures") or ()),
        seed=seed,
    )
    folder, undrawn = Path(path_to_folder), list[UndrawnChart]()
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


def _measured_by_measure(inputs):
    # SampleValues of every model at T = 1 by measure, for the attack-free scores of an audit.
    found: dict[str, list[SampleValues]] = {measure.name: [] for measure in inputs.subject.of_kind(SCORE)}
    for item in inputs.at_one(found):
        found[item.measure.name].append(item)
    return found
