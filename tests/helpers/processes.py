"""What a piece of work takes and what jobs load, a Snakemake that starts quickly, and a stand-in for conda."""

import asyncio
import atexit
import io
import json
import multiprocessing
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tracemalloc
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path


@contextmanager
def most_memory():
    """A list whose only entry is the most memory, in bytes, that was taken within, for numpy's arrays and all else."""
    found = []
    tracemalloc.start()
    try:
        yield found
        found.append(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()


FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    [
        "snakemake.cli",
        "snakemake_executor_plugin_slurm",
        "snakemake.report.html_reporter",
    ]
)


def forked_snakemake(options, *, folder, environment):
    """Run Snakemake in a fork of a process that has imported it, and nothing of gfscore; a CompletedProcess.

    Its import takes longer than a plan, of which the tests make hundreds.
    """
    descriptor, name = tempfile.mkstemp(prefix="snakemake-")
    os.close(descriptor)
    process = FORKS.Process(target=_run_snakemake, args=(list(map(str, options)), str(folder), dict(environment), name))
    process.start()
    process.join()
    said = Path(name).read_text(encoding="utf-8", errors="replace")
    Path(name).unlink()
    return subprocess.CompletedProcess(options, process.exitcode, stdout=said)


def _run_snakemake(options, folder, environment, output):
    descriptor = os.open(output, os.O_WRONLY | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(descriptor, stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    # As `python -m snakemake` has it: the folder, PYTHONPATH, and what Python comes with; nothing of these tests.
    installed = [path for path in sys.path if path.startswith((sys.prefix, sys.base_prefix))]
    sys.path[:] = [folder, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep)), *installed]
    sys.argv = ["snakemake", *options]
    try:
        import_module("snakemake.cli").main()
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()


OBSERVER = Path(__file__).parent / "observer"


def observing(folder):
    """Environment variables that make every Python of a run leave an observation in the folder, which is made."""
    Path(folder).mkdir(parents=True)
    return {"PYTHONPATH": str(OBSERVER), "GFSCORE_OBSERVATIONS": str(folder)}


def observe_in(prefix):
    """The same for one environment, where PYTHONPATH is of no use: Snakemake unsets it for jobs under conda."""
    (packages,) = Path(prefix).glob("lib/python3.*/site-packages")
    # By another name, since some systems have a sitecustomize of their own, which comes first.
    shutil.copy(OBSERVER / "sitecustomize.py", packages / "observer_of_jobs.py")
    (packages / "observer_of_jobs.pth").write_text("import observer_of_jobs\n")


def observations(folder):
    """What every Python of the run left: mappings with argv, prefix, executable, modules, variables, network."""
    return [json.loads(path.read_text()) for path in sorted(Path(folder).glob("*.json"))]


def step_of(observation):
    """Name of the step that a Python ran, None for others: Snakemake calls its copy <random>.<step>.py."""
    name = Path(observation["argv"][0]).name.split(".")
    return name[-2] if len(name) == 3 and "snakemake/scripts" in observation["argv"][0] else None


STAND_IN = Path(__file__).parent / "conda/stand_in.py"
ACTIVATE = """\
export CONDA_PREFIX="$1"
export PATH="$1/bin:$PATH"
"""


def make_conda(base, *, channel="conda-forge"):
    """Write everything under `base`; returns the environment variables that put it to use."""
    from rattler.index import index_fs

    folder = base / "channels" / channel
    add_package(folder, "python", platform.python_version())
    add_package(folder, "pip", "26.0", depends=["python"])
    asyncio.run(index_fs(folder))
    (base / "bin").mkdir()
    (base / "bin/activate").write_text(ACTIVATE)
    executable = base / "bin/conda"
    executable.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{STAND_IN}" "$@"\n')
    executable.chmod(0o755)
    return {"STAND_IN_BASE": str(base), "PATH": f"{base / 'bin'}:{os.environ['PATH']}"}


def add_package(folder, name, version, *, depends=()):
    """Write a package without content, for every platform, into a channel."""
    index = {"name": name, "version": version, "build": "0", "build_number": 0, "subdir": "noarch", "noarch": "generic"}
    index |= {"depends": list(depends), "timestamp": 1_700_000_000_000}
    files = {"info/index.json": index, "info/paths.json": {"paths": [], "paths_version": 1}}
    (folder / "noarch").mkdir(parents=True, exist_ok=True)
    with tarfile.open(folder / f"noarch/{name}-{version}-0.tar.bz2", "w:bz2") as archive:
        for path, content in files.items():
            data = json.dumps(content).encode()
            info = tarfile.TarInfo(path)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
