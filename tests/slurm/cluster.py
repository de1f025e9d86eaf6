"""A SLURM cluster of one node: Debian's own daemons, started by hand in a folder and stopped again."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

PROGRAMS = ("slurmctld", "slurmd", "sbatch", "squeue", "munged", "setpriv", "pgrep")
PACKAGES = "slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge"

# The jobs' own srun reads its configuration here and nowhere else: the plugin takes SLURM_CONF from their environment.
CONFIGURATION = Path("/etc/slurm")
MARK = "# Written by tests/slurm/cluster.py\n"

CPUS, GPUS = 8, 2

# Every process of a job carries it in its environment, so that those of these tests are told from all others.
NAME = f"test{os.getpid()}"


def why_not():
    """What keeps a cluster from starting here, in words; None where nothing does."""
    if os.name != "posix" or os.geteuid() != 0:
        return "SLURM's daemons are started as root here"
    if missing := [name for name in PROGRAMS if shutil.which(name) is None]:
        return f"{', '.join(missing)} not found: apt-get install --no-install-recommends {PACKAGES}"
    present = CONFIGURATION / "slurm.conf"
    if present.exists() and not present.read_text().startswith(MARK):
        return f"{present} is that of another cluster"
    return None


@contextmanager
def cluster():
    """Run a cluster with partitions cpu, gpu and urgent (which preempts gpu) as long as the block runs.

    Raises RuntimeError, quoting the daemons, when the node does not become idle.
    """
    with ExitStack() as stack:
        # Not pytest's folder, which only its owner enters: munged runs as another user.
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="slurm-test-")))
        folder.chmod(0o755)
        for name, text in configuration(folder).items():
            (CONFIGURATION / name).write_text(MARK + text)
            stack.callback((CONFIGURATION / name).unlink)
        for index in range(GPUS):
            subprocess.run(["mknod", folder / f"gpu{index}", "c", "1", "3"], check=True)
        stack.enter_context(daemon(munge(folder), folder / "munged.out", user="munge"))
        wait_for(folder / "munge/socket")
        stack.enter_context(daemon(["slurmctld", "-D", "-i"], folder / "slurmctld.out"))
        stack.enter_context(daemon(["slurmd", "-D"], folder / "slurmd.out"))
        stack.callback(end_jobs)
        wait_until_idle(folder)
        yield


@contextmanager
def daemon(command, log, *, user="root"):
    """A process in the foreground, which ends with the block, or with this process however that ends."""
    # The kernel tells it of its parent's death, so that a killed test run leaves no daemon either.
    setpriv = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--pdeathsig=TERM"]
    with log.open("w") as out:
        process = subprocess.Popen([*setpriv, *command], stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def munge(folder):
    """Command of a munge daemon with its own key, beside any that the machine has."""
    (folder / "munge").mkdir(mode=0o755)
    key = folder / "munge/key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    for path in (folder / "munge", key):
        shutil.chown(path, "munge", "munge")
    names = {"key-file": key, "pid-file": folder / "munge/pid", "seed-file": folder / "munge/seed"}
    names |= {"log-file": folder / "munge/log", "socket": folder / "munge/socket"}
    options = [f"--{name}={path}" for name, path in names.items()]
    return ["munged", "--foreground", *options]


def configuration(folder):
    """SLURM's configuration files, by name: no accounting, memory enforced by polling, requeueing preemption."""
    host = socket.gethostname().split(".")[0]
    slurm = f"""
ClusterName={NAME}
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort=46817
SlurmdPort=46818
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
# cred_expire is also how long a preempted job waits before it starts again
AuthInfo=socket={folder}/munge/socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=256
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
AccountingStorageType=accounting_storage/none
# finished jobs stay in squeue, which is all that the plugin sees
MinJobAge=3600
KillWait=2
OverTimeLimit=0
ReturnToService=2
SchedulerParameters=sched_interval=1,bf_interval=2
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
GresTypes=gpu
# more processors and memory than the machine may have: what jobs ask for is kept account of, and they use little
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs={CPUS} RealMemory=100000 Gres=gpu:{GPUS} Features=a100
PartitionName=cpu Nodes={host} Default=YES PriorityTier=1 PreemptMode=off
PartitionName=gpu Nodes={host} PriorityTier=1
PartitionName=urgent Nodes={host} PriorityTier=10 PreemptMode=off
"""
    gres = f"NodeName={host} Name=gpu File={folder}/gpu[0-{GPUS - 1}]\n"
    return {"slurm.conf": slurm, "gres.conf": gres, "cgroup.conf": "CgroupPlugin=cgroup/v1\n"}


def end_jobs():
    """Cancel every job; wait until the node has none and no process of a job is left."""
    subprocess.run(["scancel", "--user=root"], check=True)
    deadline = time.monotonic() + 60
    while (
        subprocess.run(["squeue", "--noheader"], capture_output=True, text=True, check=True).stdout or daemons_of_jobs()
    ):
        if time.monotonic() > deadline:
            raise RuntimeError("jobs are still there 60 s after scancel")
        time.sleep(0.2)
    # proctrack/linuxproc loses sight of a process whose parent has ended; clusters have control groups for that.
    for number in processes_of_jobs():
        os.kill(number, signal.SIGKILL)


def daemons_of_jobs():
    """Numbers of SLURM's own processes that hold a job; they outlast its place in the queue a little."""
    found = subprocess.run(["pgrep", "--exact", "slurmstepd"], capture_output=True, text=True, check=False)
    return found.stdout.split()


def processes_of_jobs():
    """Numbers of processes that jobs of this cluster started."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"SLURM_CLUSTER_NAME={NAME}" in (process / "environ").read_text(errors="replace").split("\0"):
                yield int(process.name)
        except OSError:  # it has ended meanwhile
            continue


def wait_for(path):
    deadline = time.monotonic() + 10
    while not path.exists():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{path} did not appear within 10 s")
        time.sleep(0.1)


def wait_until_idle(folder):
    deadline = time.monotonic() + 30
    while True:
        state = subprocess.run(["sinfo", "--noheader", "--format=%T"], capture_output=True, text=True, check=False)
        if state.returncode == 0 and set(state.stdout.split()) == {"idle"}:
            return
        if time.monotonic() > deadline:
            logs = "\n".join(path.read_text()[-2000:] for path in sorted(folder.glob("*.out")))
            raise RuntimeError(f"the node is not idle after 30 s: {state.stdout}{state.stderr}\n{logs}")
        time.sleep(0.2)
