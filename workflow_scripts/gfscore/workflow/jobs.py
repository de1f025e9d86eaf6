"""What every job does around its step: a log file, a record of its cost, and a one-line error for bad input."""

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


@contextmanager
def logged_job(path_to_log: Path | str) -> Iterator[None]:
    """Send what the step prints to its log file; end the process with status 1 and a clear line on an error.

    An InputError is the user's to mend, and so is a disk that takes no more (NO_ROOM): the message alone goes to the
    log and to stderr. Any other exception is ours, so its traceback goes along. An interruption (Ctrl-C) is one line,
    and the process still ends by its signal. What a successful step cost is recorded (see gfscore.workflow.costs).
    """
    path, interruptions = Path(path_to_log), _noted_interruptions()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        log = _Log(path.open("wb"), encoding="utf-8", errors="backslashreplace", line_buffering=True)
    except OSError as error:
        _fail(_described(error, path))
    # Not `with`: closing a log on a full disk raises, and would hide what happened.
    try:
        with redirect_stdout(log), redirect_stderr(log), recorded_cost(cost_file(path)):
            yield
    except (Exception, KeyboardInterrupt) as error:
        # Of either kind: libraries that are interrupted in the middle of something raise errors of their own.
        if not (interruptions or isinstance(error, KeyboardInterrupt)):
            _fail(_described(error, path), log)
        _tell(f"interrupted, see {path}; run the same command again to go on", log)
        # As a shell expects. Python would do so too, after its traceback, unless some library runs code at exit.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.raise_signal(signal.SIGINT)
    _close(log)


def _noted_interruptions() -> list[int]:
    # List that every interruption (SIGINT) is added to; empty for ever where the signal is ignored, as under nohup.
    noted: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        noted.append(number)
        signal.default_int_handler(number, frame)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, note)
    return noted


class _Log(io.TextIOWrapper):
    """Text file in which names from outside steer no terminal that shows it."""

    def write(self, text: str) -> int:
        """As every text file does."""
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
        f"error: {where}: {os.strerror(error.errno)}; make room, or the folder writable, and run the same command again"
    )


def _fail(message: str, log: TextIO | None = None) -> NoReturn:
    _tell(message, log)
    raise SystemExit(1)


def _tell(message: str, log: TextIO | None) -> None:
    # First here: where the disk is full the log takes nothing more.
    print(harmless(message), file=sys.stderr, flush=True)
    if log is not None:
        with suppress(OSError):
            print(message, file=log)
        _close(log)


def _close(log: TextIO) -> None:
    with suppress(OSError):
        log.close()
