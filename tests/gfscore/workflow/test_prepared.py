"""Steps that are executed by forks of a server: with the surroundings of the process that waits, ending and dying with it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import gfscore
from gfscore.workflow import prepared

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="other systems do not fork what torch was imported in"),
]

BEGINNING = """
import os, sys
snakemake = None
from gfscore.workflow.prepared import run_prepared
run_prepared(globals(), {server!r})
print("torch" in sys.modules, "pandas" in sys.modules, os.getpid(), flush=True)
"""
STEP_OF = {prepared.WITH_TORCH: "extract_logits", prepared.WITHOUT_TORCH: "tabulate_audit"}
"""Name of the script that asks a server, which imports the step of that name."""


@pytest.fixture(scope="module", autouse=True)
def found_packages():
    """As a run sets it for all of its processes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(gfscore.__file__).parents[1]))
        yield


@pytest.fixture(scope="module")
def servers(found_packages):
    processes = prepared.start_servers(tracing=True)
    folder = Path(os.environ[prepared.FOLDER])
    yield
    del os.environ[prepared.FOLDER]
    for process in processes:
        process.communicate()
    assert not folder.exists()


@pytest.fixture
def started(servers, tmp_path):
    """Function that starts a script with a given end; what is running at the end of the test is killed."""
    processes = []

    def start(end, server=prepared.WITH_TORCH, **environment):
        script = tmp_path / f"{len(processes)}.{STEP_OF[server]}.py"
        script.write_text(BEGINNING.format(server=server) + end)
        process = subprocess.Popen(
            [sys.executable, script, "argument"],
            cwd=tmp_path,
            env=os.environ | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def fork_of(process, *, torch=True):
    """Number of the process that executes the step."""
    torch_is_there, pandas_is_there, number = process.stdout.readline().split()
    assert (torch_is_there, pandas_is_there) == (str(torch), "True") and int(number) != process.pid
    return int(number)


def is_alive(number):
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_fork_has_the_surroundings_of_the_process_that_waits(started, tmp_path):
    process = started(
        "import torch\n"
        "print(os.getcwd(), sys.argv[1], os.environ['OWN'], torch.get_num_threads(), __name__)\n"
        "print('said', file=sys.stderr)",
        OWN="own",
        OMP_NUM_THREADS="2",
    )
    fork_of(process)
    out, err = process.stdout.read(), process.stderr.read()
    assert out.split() == [str(tmp_path), "argument", "own", "2", "__main__"]
    assert err == "said\n" and process.wait(timeout=60) == 0


def test_a_fork_traces_networks_without_further_imports(started):
    process = started(f"print({prepared.TRACING!r} in sys.modules)")
    fork_of(process)
    assert process.stdout.read().split() == ["True"]


@pytest.mark.parametrize(
    ("end", "status"),
    [
        ("raise SystemExit(3)", 3),
        ("raise ValueError('wrong')", 1),
        ("os._exit(0)", 0),
        ("os.kill(os.getpid(), 11)", -11),
        ("os.kill(os.getpid(), 9)", -9),
    ],
)
def test_the_process_that_waits_ends_as_its_fork_does_and_another_goes_on(started, end, status):
    other = started("sys.stdin.readline()\nimport time\ntime.sleep(1)")
    process = started(end)
    for step in (other, process):
        fork_of(step)
    _, err = process.communicate(timeout=60)
    assert process.returncode == status
    assert ("wrong" in err) == ("wrong" in end)
    assert other.wait(timeout=60) == 0


def test_a_step_with_tables_is_forked_from_a_server_without_torch(started):
    fork_of(started("import torch"))
    step = started("print(sys.argv[1])", prepared.WITHOUT_TORCH)
    fork_of(step, torch=False)
    assert step.stdout.read() == "argument\n" and step.wait(timeout=60) == 0


def test_a_fork_is_killed_with_the_process_that_waits(started):
    process = started("import time\ntime.sleep(60)")
    number = fork_of(process)
    process.kill()
    deadline = time.monotonic() + 30
    while is_alive(number) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_alive(number)


def test_a_fork_starts_no_other_and_uses_no_gpu(started):
    process = started("import torch\nprint(os.environ.get('GFSCORE_PREPARED'), torch.cuda.is_initialized())")
    fork_of(process)
    assert process.stdout.read().split() == ["None", "False"]


def test_without_a_server_a_step_is_executed_by_its_own_process(started, tmp_path):
    process = started("", GFSCORE_PREPARED=str(tmp_path / "nowhere"))
    torch_is_there, pandas_is_there, number = process.stdout.readline().split()
    assert (torch_is_there, pandas_is_there, int(number)) == ("False", "False", process.pid)
    assert process.wait(timeout=60) == 0


def test_servers_end_with_the_run(tmp_path):
    code = (
        "from gfscore.workflow import prepared\nimport os\n"
        "print(*(server.pid for server in prepared.start_servers()))\nos.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL
    servers = [int(number) for number in done.stdout.split()]
    deadline = time.monotonic() + 30
    while any(map(is_alive, servers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(servers) == 2 and not any(map(is_alive, servers))
