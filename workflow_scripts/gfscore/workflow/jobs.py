"""Context of every job: a log file, a record of its cost, and one-line messages for input errors."""

import io
import os
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn, TextIO

from gfscore.core.errors import InputError
from gfscore.core.files import NO_ROOM
from gfscore.core.names import harmless
from gfscore.workflow.costs import cost_file, recorded_cost

DISPLAYED = "GFSCORE_DISPLAYED"
"""Environment variable that tells a job of a run with a display of its own."""


@contextmanager
def logged_job(path_to_log: Path | str) -> Iterator[None]:
    """Redirect output of the step to its log file; on an error, print a message and exit with status 1.

    For an InputError or a full disk (NO_ROOM), which the user can correct, the log and stderr get the message alone;
    for any other exception, a bug, also the traceback. An interruption (Ctrl-C) is reported in one line, and the
    process ends by the signal. The cost of a successful step is recorded, see gfscore.workflow.costs.
    """
    path, interruptions = Path(path_to_log), _record_interruptions()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        log = _Log(path.open("wb"), encoding="utf-8", errors="backslashreplace", line_buffering=True)
    except OSError as error:
        _fail(_described(error, path))
    # Not `with`: closing a log on a full disk raises, which would hide the original error.
    try:
        with redirect_stdout(log), redirect_stderr(log), recorded_cost(cost_file(path)):
            yield
    except (Exception, KeyboardInterrupt) as error:
        # Any exception after an interruption: interrupted libraries may raise their own.
        if not (interruptions or isinstance(error, KeyboardInterrupt)):
            _fail(_described(error, path), log)
        _tell(f"interrupted, see {path}; run the same command again to go on", log)
        # Shells expect an end by the signal. Python does so itself, but prints a traceback and runs exit handlers.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.raise_signal(signal.SIGINT)
    _close(log)


def _record_interruptions() -> list[int]:
    # List to which every SIGINT is appended; stays empty if the signal is ignored, as under nohup.
    noted: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        noted.append(number)
        signal.default_int_handler(number, frame)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, note)
    return noted


class _Log(io.TextIOWrapper):
    """Text file with terminal control sequences escaped, since names from outside may contain them."""

    def write(self, text: str) -> int:
        """Write the escaped text."""
        super().write(harmless(text))
        return len(text)


def _described(error: BaseException, path: Path) -> str:
    if isinstance(error, InputError):
        return f"error: {error}"
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "can't allocate memory" in str(error)):
        return (
            f"error: {path}: out of memory ({str(error) or 'no amount stated'}); run with fewer --cores, give the "
            "measure a smaller batch_size, or the job more mem_mb in the profile, and run the same command again"
        )
    if not isinstance(error, OSError) or error.errno not in NO_ROOM:
        return traceback.format_exc()
    where = error.filename or path
    return (
        f"error: {where}: {os.strerror(error.errno)}; free space or make the folder writable, and run the same command "
        "again"
    )


def _fail(message: str, log: TextIO | None = None) -> NoReturn:
    _tell(message, log)
    raise SystemExit(1)


def _tell(message: str, log: TextIO | None) -> None:
    # stderr first, since a full disk may prevent writing the log. On a line of its own below that of a display.
    above = "\n" if os.environ.get(DISPLAYED) else ""
    print(f"{above}{harmless(message)}", file=sys.stderr, flush=True)
    if log is not None:
        with suppress(OSError):
            print(message, file=log)
        _close(log)


def _close(log: TextIO) -> None:
    with suppress(OSError):
        log.close()
