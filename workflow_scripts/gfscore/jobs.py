"""What every job does around its step: a log file, a record of its cost, and a one-line error for bad input."""

import sys
import traceback
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

from gfscore.costs import cost_file, recorded_cost
from gfscore.errors import InputError


@contextmanager
def logged_job(path_to_log):
    """Send what the step prints to its log file; end the process with status 1 and a clear line on an error.

    An InputError is the user's to mend, so its message alone goes to the log and to stderr; any other exception is
    ours, so its traceback goes along. What a successful step cost is recorded (see gfscore.costs).
    """
    path = Path(path_to_log)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", buffering=1) as log:
        try:
            with redirect_stdout(log), redirect_stderr(log), recorded_cost(cost_file(path)):
                yield
        except InputError as error:
            _fail(f"error: {error}", log)
        except Exception:
            _fail(traceback.format_exc(), log)


def _fail(message, log):
    print(message, file=log)
    print(message, file=sys.stderr, flush=True)
    raise SystemExit(1)
