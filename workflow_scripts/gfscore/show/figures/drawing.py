"""The figures of an audit as files, drawn by several processes."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gfscore.audit.audit_tables import read_audit_tables
from gfscore.core.files import read_json
from gfscore.projection.mappers.pictures import read_pictures
from gfscore.show.figures.audit import figures_of_audit, parts_of_figures
from gfscore.show.figures.saving import save_figure

if TYPE_CHECKING:
    from gfscore.audit.inputs import AuditInputs
    from gfscore.audit.measured import Measured

DRAWN_FROM = "great"
"""Kind of measure whose samples figures draw from."""


def draw_by_processes(files: Mapping[str, Any], path_to_folder: Path | str, *, threads: int, **settings: Any) -> None:
    """Write every figure of an audit as <folder>/<name>.svg, .pdf and .png, by up to `threads` processes.

    Takes the arguments of draw_figures except `parts`, and prints what is drawn. The files do not depend on the number
    of processes. Raises RuntimeError when another process fails, whose own error stands on stderr.
    """
    parts = parts_of_figures(settings["measures"])
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
    inputs: AuditInputs | None = None,
    seed: int = 0,
) -> Iterator[str]:
    """Write the figures of some parts of an audit (see parts_of_figures), and yield the name of each.

    `files` maps what read_audit_tables takes, and selection (models.json) and pictures (those of the mapper), where
    there are any, to paths;
    `measures` maps each measure to its settings, `fp_lambda` is lambda of FP. `inputs` are AuditInputs for the figures
    that draw from samples, with the `seed` of the draws.
    """
    tables = read_audit_tables(files, audit=audit)
    measured = _measured_by_measure(inputs) if inputs else None
    pictures = read_pictures(files["pictures"]) if files.get("pictures") else None
    guessing = read_json(files["selection"])["guessing"] if files.get("selection") else ()
    drawn_from: dict[str, Any] = {
        "measured": measured,
        "seed": seed,
        "pictures": pictures,
        "parts": parts,
        "guessing": guessing,
    }
    for name, figure in figures_of_audit(tables, measures=measures, fp_lambda=fp_lambda, **drawn_from):
        save_figure(figure, Path(path_to_folder) / name)
        yield name


def _measured_by_measure(inputs):
    # Measured of every model at T = 1 by measure, for the attack-free scores of an audit.
    found: dict[str, list[Measured]] = {
        name: [] for name, settings in inputs.measures.items() if settings["kind"] == DRAWN_FROM
    }
    for item in inputs.uncalibrated(found):
        found[item.key["measure"]].append(item)
    return found
