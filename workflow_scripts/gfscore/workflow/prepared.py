"""Processes of steps that are forked from one that has imported torch already.

Importing torch and pandas takes longer than most measures of a small network. A run on one machine starts a server,
which imports them at its first request; a step that asks for it (`run_prepared`, its first statement) is then executed
by a fork of the server, with the arguments, folder, environment and output of the process that Snakemake started, which
waits. Each step remains a process of its own: killed with the one that waits, and failing alone. No fork shares a GPU's
context, since the server uses none.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

ADDRESS = "GFSCORE_PREPARED"
"""Environment variable with the path of the server's socket."""

THREADS = "OMP_NUM_THREADS"
"""Environment variable that Snakemake sets to the threads of a step."""

IMPORTED = ("snakemake.script", "gfscore.measures.job")
"""What all of these steps import."""

STREAMS = (0, 1, 2)


# The step that Snakemake started


def run_prepared(script: Mapping[str, Any]) -> None:
    """Let the server of this run, if there is one, execute a script of Snakemake, and end with its exit status.

    Parameters
    ----------
    script : mapping
        Globals of the script. Where Snakemake did not start it, as in tests, nothing happens.
    """
    address = os.environ.get(ADDRESS)
    if not address or "snakemake" not in script:
        return
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(address)
    except OSError:
        # The server was killed: this process imports what it needs itself.
        return

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # Ctrl-C reaches the fork too, which says what there is to say.
        signal.signal(signal.SIGINT, lambda *_: None)
    request = {"arguments": sys.argv, "folder": str(Path.cwd()), "environment": dict(os.environ)}
    socket.send_fds(connection, [b" "], STREAMS)
    connection.sendall(json.dumps(request).encode() + b"\n")
    reply = connection.makefile().readline()
    _end(int(reply) if reply else -signal.SIGKILL)


def _end(code: int) -> NoReturn:
    # As the fork ended: by an exit status, or by a signal, whose negative number it is.
    if code < 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


# The server


def start_server() -> subprocess.Popen[bytes]:
    """Start the server of this run, which ends with this process; its address is in the environment of all steps."""
    folder = Path(tempfile.mkdtemp(prefix="gfscore-prepared-"))
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / "steps"))
    listener.listen()
    # One thread: a fork has no other thread than the one that forks.
    one_thread = {name: "1" for name in (THREADS, "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    server = subprocess.Popen(
        [sys.executable, "-m", "gfscore.workflow.prepared", str(listener.fileno())],
        stdin=subprocess.PIPE,
        pass_fds=[listener.fileno()],
        env={**os.environ, **one_thread},
    )
    listener.close()
    os.environ[ADDRESS] = str(folder / "steps")
    # Closes the pipe, as the system does where this process is killed, and waits.
    atexit.register(server.communicate)
    return server


def serve(listener: socket.socket) -> None:
    """Fork for every step that asks, until standard input is closed."""
    # The server outlives an interruption by Ctrl-C, its forks do not, unless it is ignored as under nohup.
    interruption = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ended, note_end = os.pipe()
    os.set_blocking(note_end, False)
    signal.set_wakeup_fd(note_end)
    signal.signal(signal.SIGCHLD, lambda *_: None)

    running: dict[int, socket.socket] = {}
    while True:
        ready, _, _ = select.select([listener, ended, sys.stdin], [], [])
        if ended in ready:
            os.read(ended, 1 << 10)
            _tell_ends(running)
        if listener in ready:
            connection, _ = listener.accept()
            _import_once()
            process = os.fork()
            if process == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                signal.signal(signal.SIGINT, interruption)
                for other in (listener, *running.values()):
                    other.close()
                _run(connection)
            running[process] = connection
        if sys.stdin in ready:
            shutil.rmtree(Path(listener.getsockname()).parent, ignore_errors=True)
            return


def _import_once() -> None:
    if IMPORTED[-1] in sys.modules:
        return
    for name in IMPORTED:
        import_module(name)
    # Objects that no collection touches remain shared with the forks.
    gc.freeze()


def _tell_ends(running: dict[int, socket.socket]) -> None:
    while running:
        process, status = os.waitpid(-1, os.WNOHANG)
        if process == 0:
            return
        # The process that waited may have been killed before.
        with running.pop(process) as connection, suppress(OSError):
            connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())


# The fork


def _run(connection: socket.socket) -> NoReturn:
    code = 1
    try:
        _become(connection)
        threading.Thread(target=_end_with, args=(connection,), daemon=True).start()
        runpy.run_path(sys.argv[0], run_name="__main__")
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _become(connection: socket.socket) -> None:
    # Output, folder, environment, arguments and threads of the process that asked.
    _, streams, _, _ = socket.recv_fds(connection, 1, len(STREAMS))
    for stream, target in zip(streams, STREAMS, strict=True):
        os.dup2(stream, target)
        os.close(stream)
    with connection.makefile() as file:
        request = json.loads(file.readline())
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    del os.environ[ADDRESS]
    sys.argv = request["arguments"]
    import_module("torch").set_num_threads(int(os.environ.get(THREADS, "1")))


def _end_with(connection: socket.socket) -> None:
    # Ends this process when the one that asked has ended.
    connection.recv(1)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
