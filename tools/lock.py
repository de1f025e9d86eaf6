"""Make or check requirements.lock, requirements.hashes and envs/*.yaml from pyproject.toml.

    python tools/lock.py            newest versions that pyproject.toml allows, pinned
    python tools/lock.py --check    what CI runs: the files agree, and what pip would fetch has a recorded hash

requirements.lock is the single truth for `make`, for the pip sections of envs/ and for CI. Hashes are recorded beside
it and checked here, not enforced at install, because the CPU and the CUDA build of torch are different files.
"""

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK, HASHES = ROOT / "requirements.lock", ROOT / "requirements.hashes"
PYTHON = "3.11"

# torch's CUDA build pins these exactly itself; listed here they would burden machines without a GPU.
ACCELERATOR = re.compile(r"^(nvidia-|cuda-|triton)")

ENVIRONMENTS = {
    "analysis": (["report"], "Cheap steps: logits to report. No torch."),
    "torch": (["attacks"], "Steps that touch images or weights."),
}


def compile_pins(extras, *options):
    """Pins of the extras of pyproject.toml, as printed by uv: no index hosts, one version for every Python."""
    chosen = [part for extra in extras for part in ("--extra", extra)]
    uv = Path(sys.executable).with_name("uv")
    command = [uv, "pip", "compile", "pyproject.toml", *chosen, "--universal", "--fork-strategy", "fewest"]
    command += ["--python-version", PYTHON, "--no-emit-index-url", "--no-emit-find-links", "--no-annotate"]
    command += ["--no-header", "--quiet", *options]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    # A local CPU build of torch is the same release as the one every user gets.
    return re.sub(r"^torch==([\d.]+)\+cpu", r"torch==\1", done.stdout, flags=re.MULTILINE)


def pins_of(text):
    """Requirement lines without hashes and without the accelerator packages."""
    lines = (line.split(" \\")[0].strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith(("--hash", "#")) and not ACCELERATOR.match(line)]


def recorded_hashes(text):
    """Set of (name==version, sha256) in uv's output with hashes."""
    found, pin = set(), None
    for line in text.splitlines():
        if not line.startswith(" "):
            pin = line.split(" ")[0]
        for digest in re.findall(r"--hash=sha256:([0-9a-f]{64})", line):
            found.add((pin, digest))
    return {(pin, digest) for pin, digest in found if not ACCELERATOR.match(pin)}


def fetched_hashes():
    """Set of (name==version, sha256) of the files that pip would install on this machine."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--no-deps", "--quiet"]
    command += ["--disable-pip-version-check", "--report", "-", "--requirement", str(LOCK)]
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    found = set()
    for item in report["install"]:
        name = re.sub(r"[-_.]+", "-", item["metadata"]["name"]).lower()
        version = item["metadata"]["version"].split("+")[0]
        found.add((f"{name}=={version}", item["download_info"]["archive_info"]["hashes"]["sha256"]))
    return found


def environment(name):
    """Text of envs/<name>.yaml: conda brings Python and pip, pip brings the pins."""
    extras, purpose = ENVIRONMENTS[name]
    pins = pins_of(compile_pins(extras, "--constraint", str(LOCK)))
    lines = [f"# {purpose} Written by tools/lock.py from requirements.lock.", "channels:", "  - conda-forge"]
    lines += ["dependencies:", f"  - python ={PYTHON}", "  - pip", "  - pip:"]
    return "\n".join([*lines, *(f'      - "{pin}"' for pin in pins)]) + "\n"


def write():
    """Resolve anew and write every file."""
    resolved = compile_pins(["dev"], "--upgrade", "--generate-hashes")
    LOCK.write_text("\n".join(pins_of(resolved)) + "\n")
    hashes = recorded_hashes(resolved) | fetched_hashes()
    HASHES.write_text("".join(f"{pin} sha256:{digest}\n" for pin, digest in sorted(hashes)))
    for name in ENVIRONMENTS:
        (ROOT / f"envs/{name}.yaml").write_text(environment(name))


def check():
    """Return what is wrong, one line each."""
    problems = []
    pins = {line.split(" ")[0] for line in LOCK.read_text().splitlines()}
    known = {tuple(line.split(" sha256:")) for line in HASHES.read_text().splitlines()}
    problems += [f"requirements.hashes records no hash of {pin}" for pin in sorted(pins - {pin for pin, _ in known})]
    problems += [
        f"pip would fetch {pin} with sha256 {digest}, which requirements.hashes does not record"
        for pin, digest in sorted(fetched_hashes() - known)
    ]
    try:
        current = pins_of(compile_pins(["dev"], "--constraint", str(LOCK)))
        if {line.split(" ")[0] for line in current} != pins:
            problems.append("requirements.lock does not follow from pyproject.toml")
        for name in ENVIRONMENTS:
            if (ROOT / f"envs/{name}.yaml").read_text() != environment(name):
                problems.append(f"envs/{name}.yaml does not follow from requirements.lock")
    except subprocess.CalledProcessError as error:
        problems.append(f"requirements.lock does not satisfy pyproject.toml: {error.stderr.strip()}")
    return problems


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 when something disagrees")
    if parser.parse_args().check:
        found = check()
        print("\n".join(found) or "requirements.lock, requirements.hashes and envs/ agree")
        sys.exit(bool(found))
    write()
