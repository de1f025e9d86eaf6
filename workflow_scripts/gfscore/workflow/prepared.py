"""Processes of steps that are forked from one that has imported what they import already.

Importing torch takes longer than most measures of a small network, importing pandas and scipy longer than the tables of
a small audit. A run on one machine starts two servers, one with torch and one without. A step that asks for a server
(`run_prepared`, its first statement) is executed by a fork of it, with the arguments, folder, environment and output of
the process that Snakemake started, which waits. Before it forks, the server imports the module of the step, and thereby
what no step before has imported there. Each step remains a process of its own: killed with the one that waits, and
failing alone. No fork shares a GPU's context, since the servers use none.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

FOLDER = "GFSCORE_PREPARED"
"""Environment variable with the folder of the servers' sockets."""

WITH_TORCH, WITHOUT_TORCH = "with-torch", "without-torch"
"""Names of the servers, and of their sockets."""

THREADS = "OMP_NUM_THREADS"
"""Environment variable that Snakemake sets to the threads of a step."""

TRACING = "torch._inductor.config"
"""What torch imports when it first traces a network. It may look for GPUs, which no fork could use after that."""

STREAMS = (0, 1, 2)


# The step that Snakemake started


def run_prepared(script: Mapping[str, Any], server: str = WITH_TORCH) -> None:
    """Let a server of this run, if there is one, execute a script of Snakemake, and end with its exit status.

    Parameters
    ----------
    script : mapping
        Globals of the script. Where Snakemake did not start it, as in tests, nothing happens.
    server : str
        WITH_TORCH, or WITHOUT_TORCH for a step that imports no torch.
    """
    folder = os.environ.get(FOLDER)
    if not folder or "snakemake" not in script:
        return
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(f"{folder}/{server}")
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

    # As the fork ended: by an exit status, or by a signal, whose negative number it is.
    code = int(reply) if reply else -signal.SIGKILL
    if code < 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


# The servers


def start_servers(*, tracing: bool = False) -> list[subprocess.Popen[bytes]]:
    """Start the servers of this run, which end with this process; their folder is in the environment of all steps.

    Parameters
    ----------
    tracing : bool
        Whether networks will be traced, as searches for proofs do, and by no fork that uses a GPU.
    """
    folder = Path(tempfile.mkdtemp(prefix="gfscore-prepared-"))
    os.environ[FOLDER] = str(folder)
    with_torch = _start_server(folder / WITH_TORCH, *([TRACING] if tracing else []))
    return [with_torch, _start_server(folder / WITHOUT_TORCH)]


def _start_server(path: Path, *modules: str) -> subprocess.Popen[bytes]:
    # It imports the modules with those of its first step.
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    # One thread: a fork has no other thread than the one that forks.
    one_thread = {name: "1" for name in (THREADS, "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    server = subprocess.Popen(
        [sys.executable, "-m", "gfscore.workflow.prepared", str(listener.fileno()), *modules],
        stdin=subprocess.PIPE,
        pass_fds=[listener.fileno()],
        env={**os.environ, **one_thread},
    )
    listener.close()
    # Closes the pipe, as the system does where this process is killed, and waits.
    atexit.register(server.communicate)
    return server


@dataclass(frozen=True)
class Request:
    """Request of a step that waits for a fork.

    Parameters
    ----------
    connection : socket
        Where it waits for the exit status.
    streams : list of int
        Its standard streams.
    arguments : list of str
        Its sys.argv.
    folder : str
        Its current folder.
    environment : dict
        Its environment.
    """

    connection: socket.socket
    streams: list[int]
    arguments: list[str]
    folder: str
    environment: dict[str, str]

    @classmethod
    def received(cls, connection: socket.socket) -> Request:
        """Read the request of a connection."""
        _, streams, _, _ = socket.recv_fds(connection, 1, len(STREAMS))
        with connection.makefile() as file:
            return cls(connection, streams, **json.loads(file.readline()))

    @property
    def step(self) -> str:
        """Name of the step, a module: Snakemake calls its copy of the script <random>.<step>.py."""
        return Path(self.arguments[0]).stem.rpartition(".")[2]


def serve(listener: socket.socket, modules: Sequence[str]) -> None:
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
            try:
                request = Request.received(connection)
            except (OSError, ValueError):
                # The process that asked was killed meanwhile.
                connection.close()
                continue
            _import_for(request.step, modules)
            process = os.fork()
            if process == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                signal.signal(signal.SIGINT, interruption)
                for other in (listener, *running.values()):
                    other.close()
                _run(request)
            for stream in request.streams:
                os.close(stream)
            running[process] = connection
        if sys.stdin in ready:
            path = Path(listener.getsockname())
            path.unlink(missing_ok=True)
            # The folder, once it is empty.
            with suppress(OSError):
                path.parent.rmdir()
            return


def _import_for(step: str, modules: Sequence[str]) -> None:
    if step in sys.modules:
        return
    # What cannot be imported is for the fork to say.
    for name in ("snakemake.script", step, *modules):
        with suppress(Exception):
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


def _run(request: Request) -> NoReturn:
    code = 1
    try:
        # Output, folder, environment, arguments and threads of the process that asked.
        for stream, target in zip(request.streams, STREAMS, strict=True):
            os.dup2(stream, target)
            os.close(stream)
        os.chdir(request.folder)
        os.environ.clear()
        os.environ.update(request.environment)
        del os.environ[FOLDER]
        sys.argv = request.arguments
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(int(os.environ.get(THREADS, "1")))

        threading.Thread(target=_end_with, args=(request.connection,), daemon=True).start()
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


def _end_with(connection: socket.socket) -> None:
    # Ends this process when the one that asked has ended.
    connection.recv(1)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2:])
