"""Calls that may crash, hang or eat the memory: made in forked processes that are watched from outside."""

import multiprocessing
import os
import resource
import signal
import sys
import time
import traceback
from collections import namedtuple
from multiprocessing.connection import wait

import psutil

MEMORY = 2**30
"""Bytes of address space that a call may take beyond what the process has when it starts."""

SECONDS = 20
"""Time of one call, hundreds of times what any needs."""

FORBIDDEN = ("os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen", "socket.connect", "ctypes.dlopen")
"""Events of Python's audit hooks that no reader of a file has a reason for."""

Outcome = namedtuple("Outcome", "item fault result")
"""What became of one call: `fault` is None or says what went wrong, `result` is what the call returned."""


def watched(call, items, *, processes=2):
    """Outcome of `call(item)` for every item, in order.

    A fault is an exception, a death of the process, more than SECONDS or MEMORY, or an attempt to start or reach
    something (FORBIDDEN). One call at a time runs in each process; a process that is lost is replaced.
    """
    waiting, outcomes = list(enumerate(items))[::-1], {}
    workers = [_Worker(call) for _ in range(min(processes, len(waiting)))]
    for worker in workers:
        worker.give(waiting.pop())
    while busy := [worker for worker in workers if worker.task is not None]:
        wait([end for worker in busy for end in (worker.pipe, worker.process.sentinel)], timeout=1)
        for worker in busy:
            if (answer := worker.answer()) is not None:
                number, item = worker.task
                outcomes[number] = Outcome(item, *answer)
                if not worker.process.is_alive():
                    worker.start()
                worker.task = None
                if waiting:
                    worker.give(waiting.pop())
    for worker in workers:
        worker.end()
    return [outcomes[number] for number in sorted(outcomes)]


class _Worker:
    def __init__(self, call):
        self.call, self.task = call, None
        self.start()

    def start(self):
        fork = multiprocessing.get_context("fork")
        self.pipe, theirs = fork.Pipe()
        self.process = fork.Process(target=_serve, args=(self.call, theirs), daemon=True)
        self.process.start()
        theirs.close()

    def give(self, task):
        self.task, self.since = task, time.monotonic()
        self.pipe.send(task[1])

    def answer(self):
        """Fault and result of the current call, or None while it runs."""
        try:
            if self.pipe.poll():
                return self.pipe.recv()
        except (EOFError, ConnectionResetError):
            self.process.join()
        if not self.process.is_alive():
            return f"the process died: exit code {self.process.exitcode}", None
        if time.monotonic() - self.since < SECONDS:
            return None
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.join()
        return f"still running after {SECONDS} s", None

    def end(self):
        # Not by closing the pipe: the processes forked later hold its ends too.
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _serve(call, pipe):
    limit = psutil.Process().memory_info().vms + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    # Nothing that a test prints, and no core file of a crash
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    seen = []
    sys.addaudithook(lambda event, _: seen.append(event) if event in FORBIDDEN else None)
    while True:
        item = pipe.recv()
        seen.clear()
        try:
            answer = None, call(item)
        except BaseException:
            answer = traceback.format_exc(limit=-4), None
        pipe.send((f"it reached for {seen}", None) if seen else answer)
