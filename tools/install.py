"""Install packages of requirements.lock, each file checked by its hash, where the Python that runs this keeps its own.

    python tools/install.py                               all that is not installed yet, for `make setup`
    python tools/install.py numpy==2.4.6 ...              these alone, for the environments of envs/
    python tools/install.py requirements.validators.lock  all of another lock, for `make validators`

Nothing is looked for beyond the lock, which is complete. On Linux torch comes in two builds: TORCH_BUILD=cpu or cuda
chooses, by default the one that is installed, else CUDA's where there is an NVIDIA driver. What pip says is kept in
install.log of the environment; here a line now and then says how far it is, and a dot every few seconds that it goes
on. uv is used where it is there. Needs nothing but Python.
"""

import ctypes
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements.lock"

CPU_BUILDS = {
    "torch": "https://download.pytorch.org/whl/cpu/torch/",
    "torchvision": "https://download.pytorch.org/whl/cpu/torchvision/",
}
"""Packages and PyTorch's page of builds of each alone; the registry has none for the CPU alone on Linux."""

OF_THE_REGISTRY = "TORCH_BUILD=cuda takes the builds of the registry, in place of those on PyTorch's own pages"
"""Remedy where a build for the CPU cannot be had."""

REPLACED = "DO NOT MATCH THE HASHES"
"""What pip says of a file that is another than the lock pins."""

FOREIGN_TORCHVISION = """\
torchvision is the registry's build: PyTorch's page of its CPU builds could not be reached. Its compiled part does not
load beside torch for the CPU; gfscore makes up for that, but a plain `import torchvision` elsewhere fails."""

ACCELERATOR = re.compile(r"nvidia-|cuda-|triton")
"""Packages that torch's CUDA build needs and its CPU build does not."""

BUILDS = {
    "cpu": "torch for the CPU alone; on a machine for GPU jobs write TORCH_BUILD=cuda",
    "cuda": "torch with CUDA, several GB; without a GPU write TORCH_BUILD=cpu",
    "registry": "torch as the registry has it",
}
"""Builds of torch, and what is said of each."""

LOG = Path(sys.prefix, "install.log")
"""What pip or uv says, of the last installation."""

TICK = 8.0
"""Seconds between two signs of life; every third is a line that says how far it is."""

LINES_OF_A_FAILURE = 15

BACK_END = "setuptools"
FROM_SOURCE = ("connection-pool", "jsonpath-rw")
"""The packages that are built here, because there is no wheel of them, and what builds them; Snakemake requires the
first, mlcroissant, a validator, the second."""


def entries(text: str) -> tuple[str, dict[str, str]]:
    """Options for pip at the head of a lock; then its entries by name, with marker and hashes as pip reads them."""
    head, *found = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)
    return head, {entry.split("==")[0]: entry for entry in found}


def install(options: str, wanted: str, *more: str, remedy: str = "run it again once that is mended") -> None:
    """Let pip or uv install some entries of a lock; exits with the last lines of the log and the remedy at a refusal.

    `more`: options of pip.
    """
    if ask(options, wanted, *more):
        end = "".join(f"  {line}\n" for line in LOG.read_text(errors="replace").splitlines()[-LINES_OF_A_FAILURE:])
        sys.exit(f"{end}error: nothing of this step was installed; {remedy}. All that was said: {LOG}")


def ask(options: str, wanted: str, *more: str) -> int:
    """Exit code of pip or uv for some entries of a lock; `more`: options of pip."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "requirements.txt")
        file.write_text(options + wanted, encoding="utf-8")
        return run([*installer(more), "--requirement", file], len(entries(wanted)[1]))


def install_torch(options: str, wanted: dict[str, str], build: str) -> None:
    """Install torch and torchvision, as far as they are among the entries by name, in a build of BUILDS."""
    if build != "cpu":
        for entry in wanted.values():
            # `==` would be content with an installed CPU build, `===` is not.
            install(options, entry.replace("==", "===", 1))
        return
    if "torch" in wanted:
        install(options, cpu_build(wanted["torch"]), *from_page("torch"), remedy=OF_THE_REGISTRY)
    if "torchvision" in wanted:
        install_torchvision_for_cpu(options, wanted["torchvision"])


def install_torchvision_for_cpu(options: str, wanted: str) -> None:
    """Install torchvision from PyTorch's page; where no page offers that build, the registry's, which is said.

    A build that is offered but has another hash is refused.
    """
    start = LOG.stat().st_size
    if not ask(options, cpu_build(wanted), *from_page("torchvision")):
        print("torchvision for the CPU, from PyTorch's page", flush=True)
        return
    said = LOG.read_bytes()[start:].decode(errors="replace")
    if REPLACED in said:
        # Once more, for its last lines and the remedy.
        install(options, cpu_build(wanted), *from_page("torchvision"), remedy=OF_THE_REGISTRY)
        return
    install(options, wanted)
    print(FOREIGN_TORCHVISION, flush=True)


def cpu_build(entry: str) -> str:
    """Entry of a lock that asks for the build for the CPU alone."""
    return re.sub(r"==([\d.]+)", r"==\1+cpu", entry, count=1)


def from_page(name: str) -> list[str]:
    """Options of pip that look at PyTorch's page of a package alone, beside what a user's settings add."""
    return ["--no-index", "--find-links", CPU_BUILDS[name], "--retries", "2"]


def installer(more: tuple[str, ...]) -> list[str | Path]:
    """Command of uv where it is on the search path, else of pip, with options of pip.

    Of pip too where there are links: those that a user's settings of pip add, to a mirror say, are unknown to uv.
    """
    uv = shutil.which("uv")
    if uv is None or "--find-links" in more:
        # -I: packages of PYTHONPATH, or of the user outside this environment, do not count as installed.
        # Not compiled: most modules are never imported, and those that are compile themselves the first time.
        command = [sys.executable, "-I", "-m", "pip", "install", "--disable-pip-version-check", "--no-deps"]
        return [*command, "--no-compile", "--progress-bar", "off", *more]
    of_uv = ["--no-cache" if option == "--no-cache-dir" else option for option in more]
    # No settings of the folder or the user, which could name other places.
    command = [uv, "pip", "install", "--no-config", "--no-progress", "--python", sys.executable]
    return [*command, "--no-deps", "--link-mode", "copy", *of_uv]


def run(command: list[str | Path], packages: int) -> int:
    """Exit code of a command, whose output goes to the log while lines and dots say how far it is."""
    with LOG.open("ab") as log:
        start, ticks = log.tell(), 0
        with subprocess.Popen(command, stdout=log, stderr=log) as running:
            while True:
                try:
                    code = running.wait(timeout=TICK)
                    print("\n" if ticks else "", end="", flush=True)
                    return code
                except subprocess.TimeoutExpired:
                    said = LOG.read_bytes()[start:].decode(errors="replace")
                    line = ("\n  " if ticks else "  ") + progress(said, packages)
                    print(" ." if ticks % 3 else line, end="", flush=True)
                    ticks += 1


def progress(said: str, packages: int) -> str:
    """How far pip is with so many packages: it names each that it looks at, then is silent while it unpacks them."""
    fetched, unpacking, names = said.partition("Installing collected packages:")
    if unpacking:
        coming = {normalised(name) for name in names.partition("\n")[0].split(",")}
        folders = Path(sysconfig.get_path("purelib")).glob("*.dist-info")
        there = {normalised(folder.name.split("-")[0]) for folder in folders}
        one = f": {min(coming)}" if len(coming) == 1 else ""
        return f"{len(coming & there)} of {len(coming)} packages unpacked{one}"
    seen = re.findall(r"^(?:Collecting|Requirement already satisfied:|Ignoring) ([\w.-]+)", fetched, flags=re.MULTILINE)
    return f"{len(set(seen))} of {packages} packages found" + (f", now {seen[-1]}" if seen else "")


def normalised(name: str) -> str:
    """Name of a package as a lock writes it."""
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def chosen_build() -> str:
    """Build of torch to install: cpu, cuda, or registry where there is but one."""
    if sys.platform != "linux":
        return "registry"
    build = os.environ.get("TORCH_BUILD") or installed_build() or ("cuda" if has_nvidia_driver() else "cpu")
    if build not in {"cpu", "cuda"}:
        sys.exit(f"error: TORCH_BUILD is {build!r}; give cpu or cuda")
    return build


def installed_build() -> str | None:
    """Build of torch that this environment has, None without torch."""
    try:
        return "cpu" if metadata.version("torch").endswith("+cpu") else "cuda"
    except metadata.PackageNotFoundError:
        return None


def has_nvidia_driver() -> bool:
    """Whether the library that comes with the driver can be loaded."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


COMMAND = """\
#!/bin/sh
# The command gfscore of the repository that this environment lies in. tools/install.py writes it.
here=$(cd "$(dirname "$0")" && pwd -L)
environment=${here%/*}
# Modules that are imported are compiled once, as the environment was installed without compiling all.
unset PYTHONDONTWRITEBYTECODE
PYTHONPATH="${environment%/*}/workflow_scripts" exec "$environment/bin/python" -P -m gfscore.workflow.command "$@"
"""
"""Finds the repository from where it lies itself, so that a copy of the repository has its own."""


def write_command() -> None:
    """Write the command gfscore into this environment, where it lies in the repository."""
    path, root = Path(sys.prefix, "bin/gfscore"), Path(__file__).absolute().parent.parent
    if root == Path(sys.prefix).parent and not (path.is_file() and path.read_text(encoding="utf-8") == COMMAND):
        path.write_text(COMMAND, encoding="utf-8")
        path.chmod(0o755)


def main(arguments: list[str]) -> None:
    """Install some pins, or all that a lock has unless that was done before, and with all the command gfscore."""
    locks = [ROOT / argument for argument in arguments if argument.endswith(".lock")]
    pins = [argument for argument in arguments if not argument.endswith(".lock")]
    lock = locks[0] if locks else LOCK
    text = lock.read_text(encoding="utf-8")
    options, wanted = entries(text)
    build = chosen_build() if "torch" in wanted else "registry"
    if lock == LOCK and not pins:
        write_command()
    done = Path(sys.prefix, "installed.lock")
    if pins:
        locked = {entry.split()[0]: name for name, entry in wanted.items()}
        unknown = [pin for pin in pins if pin not in locked]
        if unknown:
            sys.exit(f"error: requirements.lock does not pin {', '.join(unknown)}; run make lock")
        wanted = {locked[pin]: wanted[locked[pin]] for pin in pins}
    elif done.is_file() and done.read_text(encoding="utf-8") == text and build in {installed_build(), "registry"}:
        return
    said = f"; {BUILDS[build]}" if "torch" in wanted else ""
    if build == "cpu":
        wanted = {name: entry for name, entry in wanted.items() if not ACCELERATOR.match(name)}
    print(f"Installing {len(wanted)} pinned packages (a minute or two, once){said}; all it says: {LOG}", flush=True)
    LOG.write_text("", encoding="utf-8")
    if BACK_END in wanted:
        install(options, wanted.pop(BACK_END))
    for name in FROM_SOURCE:
        if name in wanted:
            # No wheel from pip's cache, which something else may have built.
            install(options, wanted.pop(name), "--no-build-isolation", "--no-cache-dir")
    install_torch(options, {name: wanted.pop(name) for name in CPU_BUILDS if name in wanted}, build)
    install(options, "".join(wanted.values()))
    if not pins:
        done.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
