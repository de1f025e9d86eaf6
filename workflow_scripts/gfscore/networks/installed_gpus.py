"""The GPUs of this machine, and whether the installed torch can use them, for the plan of a run.

Imports nothing heavy: torch is not imported, only the file that says what it was built for.
"""

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from shutil import which

QUERY = (
    "--query-gpu=index,uuid,driver_version,compute_mode,mig.mode.current,memory.total,name",
    "--format=csv,noheader,nounits",
)
"""Options of nvidia-smi: a line for each GPU, memory in MiB."""

TIMEOUT_S = 20
"""Seconds that nvidia-smi may take."""

OLDEST_DRIVERS = {11: (450, 80), 12: (525, 60), 13: (580, 65)}
"""Oldest driver for the libraries of each major version of CUDA. Source: NVIDIA, CUDA Compatibility, minor versions."""

VISIBLE_DEVICES = "CUDA_VISIBLE_DEVICES"
"""Environment variable that hides GPUs from CUDA."""

DRIVER = Path("/proc/driver/nvidia/version")
"""File that Linux has where the driver of NVIDIA is loaded."""

NO_GPU = f"this machine has no GPU that nvidia-smi shows ({VISIBLE_DEVICES} may hide it)"


@dataclass(frozen=True)
class Gpu:
    """One GPU.

    Attributes
    ----------
    name : str
    memory_mb : int or None
        Memory in megabytes. None where a job has to take all of it: it is unknown, that of a slice (MIG) is another, or
        its compute mode allows one process at a time.
    driver : str
        Version of its driver.
    """

    name: str
    memory_mb: int | None
    driver: str = ""


@dataclass(frozen=True)
class InstalledGpus:
    """GPUs that torch can use.

    Attributes
    ----------
    usable : tuple of Gpu
    reason : str
        In a sentence why torch can use none of the GPUs of the machine.
    driver_too_old : bool
        Whether that is because of the driver, which only its owner can renew.
    """

    usable: tuple[Gpu, ...] = ()
    reason: str = ""
    driver_too_old: bool = False


@dataclass(frozen=True)
class TorchBuild:
    """Version of torch, and of CUDA that it was built for.

    Attributes
    ----------
    version : str
        Version of torch.
    cuda : str or None
        Version of CUDA, None for the CPU alone.
    """

    version: str
    cuda: str | None


def installed_gpus() -> InstalledGpus:
    """GPUs of this machine that the installed torch can use; the programs that come with the driver are run once."""
    return _installed_gpus(os.environ.get(VISIBLE_DEVICES))


@cache
def _installed_gpus(visible: str | None) -> InstalledGpus:
    program = which("nvidia-smi")
    if program is None:
        if not DRIVER.exists():
            return InstalledGpus()
        return InstalledGpus(
            reason="NVIDIA's driver is loaded, but nvidia-smi is not on the PATH, so that no GPU is used; a container "
            "has it with NVIDIA_DRIVER_CAPABILITIES=compute,utility"
        )
    try:
        reply = subprocess.run(
            [program, *QUERY], capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return InstalledGpus(reason=f"nvidia-smi does not answer ({error}), so that no GPU is used")
    if reply.returncode:
        lines = (reply.stdout + reply.stderr).strip().splitlines()
        first = lines[0][:200] if lines else "it says nothing"
        return InstalledGpus(reason=f"nvidia-smi fails ({first}), so that no GPU is used")
    gpus = visible_gpus(reply.stdout, visible)
    if not gpus:
        return InstalledGpus()
    return usable_gpus(gpus, torch_build())


def visible_gpus(reply: str, visible: str | None) -> list[Gpu]:
    """GPUs that programs see.

    Parameters
    ----------
    reply : str
        Output of nvidia-smi with the options QUERY.
    visible : str or None
        Value of CUDA_VISIBLE_DEVICES: numbers or uuids; None for all GPUs.
    """
    gpus: dict[str, Gpu] = {}
    uuids: dict[str, str] = {}
    for line in reply.splitlines():
        fields = [field.strip() for field in line.split(",", maxsplit=6)]
        if len(fields) < 7:
            continue
        index, uuid, driver, mode, slices, memory, name = fields
        shared = memory.isdigit() and not mode.startswith("Exclusive") and slices != "Enabled"
        gpus[index] = Gpu(name, int(memory) if shared else None, driver)
        uuids[uuid] = index
    if visible is None:
        return list(gpus.values())

    # As CUDA reads it: what stands behind a name that it does not know is ignored, and a GPU named twice hides all.
    selected: dict[str, Gpu] = {}
    for word in visible.split(","):
        index = word.strip()
        if index.startswith("MIG-"):
            # A slice of a GPU, whose memory is not that of the GPU. A process sees one slice only.
            driver = next((gpu.driver for gpu in gpus.values()), "")
            return list(selected.values()) or [Gpu(index, None, driver)]
        if index.startswith("GPU-"):
            # The beginning of a uuid names its GPU.
            indices = [number for uuid, number in uuids.items() if uuid.startswith(index)]
            index = indices[0] if indices else ""
        if index in selected:
            return []
        if index not in gpus:
            break
        selected[index] = gpus[index]
    return list(selected.values())


def torch_build() -> TorchBuild | None:
    """Build of the installed torch; None where none is installed, as where conda makes the environments of the jobs."""
    spec = find_spec("torch")
    file = Path(spec.origin).with_name("version.py") if spec and spec.origin else None
    if file is None or not file.is_file():
        return None
    values: dict[str, str] = dict(re.findall(r"^(\w+)[^=\n]*= '([^']*)'", file.read_text(), flags=re.MULTILINE))
    return TorchBuild(values.get("__version__", ""), values.get("cuda"))


def usable_gpus(gpus: Sequence[Gpu], build: TorchBuild | None) -> InstalledGpus:
    """The GPUs if a build of torch can use them, else why not; None counts as a build that can."""
    name = gpus[0].name
    if build is None:
        return InstalledGpus(tuple(gpus))
    if build.cuda is None:
        return InstalledGpus(
            reason=f"{name} is not used: torch {build.version} is a build for the CPU; for one that uses it: "
            "make setup TORCH_BUILD=cuda"
        )
    major = int(build.cuda.partition(".")[0])
    oldest = OLDEST_DRIVERS.get(major)
    driver = tuple(map(int, re.findall(r"\d+", gpus[0].driver)[:2]))
    # Where the driver has no number, torch finds out.
    if oldest and driver and driver < oldest:
        needed = ".".join(map(str, oldest))
        return InstalledGpus(
            reason=f"{name}: driver {gpus[0].driver} is too old for torch {build.version}, which needs {needed} or "
            f"newer (CUDA {build.cuda}); renew the driver, or run on the CPU with inference: {{device: cpu}} "
            "in the configuration (gfscore audit: --device cpu)",
            driver_too_old=True,
        )
    return InstalledGpus(tuple(gpus))
