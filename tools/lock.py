"""Make or check requirements.lock, requirements.validators.lock and the lists of packages in envs/.

    python tools/lock.py              what pyproject.toml asks for, at the pinned versions where it allows them
    python tools/lock.py --upgrade    at the newest versions
    python tools/lock.py --check      what CI runs: the files follow from pyproject.toml, no hash is foreign

All follow from pyproject.toml. requirements.lock is the single truth for `make`, for envs/ and for CI: a file for pip,
with the hashes of all builds of each version. The other lock is of the foreign readers that tests use, and of nothing
else. tools/install.py installs both.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from install import CPU_BUILDS, FROM_SOURCE, entries

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements.lock"
VALIDATORS = ROOT / "requirements.validators.lock"
PYTHON = "3.11"

HEAD = f"""\
# Written by tools/lock.py from pyproject.toml; tools/install.py installs it.
--require-hashes
--only-binary :all:
--no-binary {FROM_SOURCE[0]}
"""
HEAD_OF_VALIDATORS = HEAD.replace(*FROM_SOURCE)

CPU_HASHES = {"torch": ("2.13.0", {
    "cp311-cp311-manylinux_2_28_x86_64": "6746dbcbeb526eb61330b76b41ff1b4eb848951103a892eeb080dfa2b264667b",
    "cp312-cp312-manylinux_2_28_x86_64": "4ca4a9394b0c771238a4f73590fdbbc4debad85ed0fa63d026ae1b085da7d6e2",
    "cp313-cp313-manylinux_2_28_x86_64": "3fbf9c9d1f3c10c2d59d04aca426dee9ccc6ceb32d255c61e93acc3b4f75fae6",
    "cp311-cp311-manylinux_2_28_aarch64": "84453b69508ec79902f899c5ed9495acb9e2bbe9fda5f1d5d6f19e3c3842e1a7",
    "cp312-cp312-manylinux_2_28_aarch64": "6f307c2c32d764ffc6ff6893b801fad6d4752f3e67966cb8abf1843427c02604",
    "cp313-cp313-manylinux_2_28_aarch64": "0b8f7d0423027ae8b90c7977c627f3379f325363a08224dffad9b4b2d684a83d",
}), "torchvision": ("0.28.0", {
    "cp311-cp311-manylinux_2_28_x86_64": "1dad604dfc0177ecebe0891bd9701fe2c62ec3f7819a247be541b3fb6effee99",
    "cp312-cp312-manylinux_2_28_x86_64": "b545d46f4d2f9d30381281cf22874bfe1d32a8a7b0ee8396fccde89f30c6a9d9",
    "cp313-cp313-manylinux_2_28_x86_64": "c6373ec4c2f922e89f45ac91889404d312ba29a31f205b0ad9a725a3894ca246",
    "cp311-cp311-manylinux_2_28_aarch64": "22958193d72444ed7cbcc665ba4821a31e5279f9c4d1ad08520918b30896b78a",
    "cp312-cp312-manylinux_2_28_aarch64": "2f768c4f6d5adf6d5535061fd69ec44827608bac0e96e12114942a6fdfce1107",
    "cp313-cp313-manylinux_2_28_aarch64": "879ae6d4e2e3651582fb7187eafd535601cb5d019595d47e2c874262a000e88e",
})}  # fmt: skip
"""Version, and the SHA-256 of the CPU builds on PyTorch's pages, which are not in the registry, by package."""

ENVIRONMENTS = {"analysis": ["report"], "torch": ["models", "attacks"]}
"""Extras of pyproject.toml that each environment of envs/ is made of."""


def resolved(extras: list[str], *options: str | Path, kept: str = "") -> dict[str, str]:
    """Entries of pins for extras of pyproject.toml, by name: one version for every system and Python.

    `kept` are lines of pins whose versions stay where pyproject.toml allows them.
    """
    uv = str(Path(sys.executable).with_name("uv"))
    command = [uv, "pip", "compile", "pyproject.toml", "--universal", "--fork-strategy", "fewest"]
    command += ["--python-version", PYTHON, "--generate-hashes", "--only-binary", ":all:"]
    for name in FROM_SOURCE:
        command += ["--no-binary", name]
    for extra in extras:
        command += ["--extra", extra]
    command += ["--no-emit-index-url", "--no-emit-find-links", "--no-annotate", "--no-header", "--quiet"]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "requirements.lock")
        file.write_text(kept, encoding="utf-8")
        subprocess.run(
            [*command, *options, "--output-file", file], cwd=ROOT, check=True, capture_output=True, text=True
        )
        found = entries(file.read_text(encoding="utf-8"))[1]
    for name in CPU_HASHES.keys() & found.keys():
        found[name] = with_cpu_builds(name, found[name])
    return found


def with_cpu_builds(name: str, entry: str) -> str:
    """Entry of a package with the hashes of its CPU builds."""
    version, builds = CPU_HASHES[name]
    if pin_of(entry).split(" ")[0] != f"{name}=={version}":
        sys.exit(
            f"error: CPU_HASHES in tools/lock.py has {name} {version}; write there what {CPU_BUILDS[name]} lists now"
        )
    hashes = sorted(hashes_of(entry) | set(builds.values()))
    return " \\\n".join([pin_of(entry), *(f"    --hash=sha256:{digest}" for digest in hashes)]) + "\n"


def pin_of(entry: str) -> str:
    """First line of an entry: name, version and marker."""
    return entry.splitlines()[0].removesuffix(" \\")


def hashes_of(entry: str) -> set[str]:
    """SHA-256 digests of an entry."""
    return set(re.findall(r"--hash=sha256:([0-9a-f]{64})", entry))


def post_deploy(name: str) -> str:
    """Script that fills an environment of envs/. It names versions, so that a new one makes Snakemake run it anew."""
    pins = [pin_of(entry).split(" ")[0] for entry in resolved(ENVIRONMENTS[name], "--constraint", LOCK).values()]
    head = "#!/bin/sh\n# Snakemake runs this in the environment that conda made. Written by tools/lock.py.\n"
    return head + " \\\n  ".join(["exec python -I tools/install.py", *pins]) + "\n"


def write(*, upgrade: bool) -> None:
    """Resolve anew and write every file."""
    for lock, head, extra in ((LOCK, HEAD, "dev"), (VALIDATORS, HEAD_OF_VALIDATORS, "validators")):
        kept = {} if upgrade else entries(lock.read_text(encoding="utf-8"))[1]
        found = resolved([extra], kept="\n".join(map(pin_of, kept.values())))
        lock.write_text(head + "".join(found.values()), encoding="utf-8")
    for name in ENVIRONMENTS:
        (ROOT / f"envs/{name}.post-deploy.sh").write_text(post_deploy(name), encoding="utf-8")


def check() -> list[str]:
    """What is wrong, one line each."""
    problems = check_lock(LOCK, HEAD, "dev") + check_lock(VALIDATORS, HEAD_OF_VALIDATORS, "validators")
    for name in ENVIRONMENTS:
        if (ROOT / f"envs/{name}.post-deploy.sh").read_text(encoding="utf-8") != post_deploy(name):
            problems.append(f"envs/{name}.post-deploy.sh does not follow from requirements.lock")
    return problems


def check_lock(lock: Path, expected_head: str, extra: str) -> list[str]:
    """What is wrong with the lock of an extra of pyproject.toml."""
    head, locked = entries(lock.read_text(encoding="utf-8"))
    problems = [] if head == expected_head else [f"{lock.name} has other options for pip than tools/lock.py writes"]
    try:
        current = resolved([extra], "--constraint", lock)
    except subprocess.CalledProcessError as error:
        return [*problems, f"{lock.name} does not satisfy pyproject.toml: {error.stderr.strip()}"]
    if list(map(pin_of, locked.values())) != list(map(pin_of, current.values())):
        problems.append(f"{lock.name} does not follow from pyproject.toml")
    for name in locked.keys() & current.keys():
        if not hashes_of(locked[name]) or hashes_of(locked[name]) - hashes_of(current[name]):
            problems.append(f"{lock.name} has a hash of {name} that no build of it has, or none")
    return problems


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions")
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 when something disagrees")
    options = parser.parse_args()
    if options.check:
        found = check()
        print("\n".join(found) or "the locks and envs/ follow from pyproject.toml")
        sys.exit(bool(found))
    write(upgrade=options.upgrade)
