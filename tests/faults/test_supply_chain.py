"""What is installed: pinned, with recorded hashes, of known licences, and nothing else is imported."""

import ast
import importlib.util
import re
import subprocess
import sys
from importlib.metadata import packages_distributions, version
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "workflow_scripts"
PERMISSIVE = re.compile(
    r"MIT|BSD|Apache|PSF|Python Software Foundation|MPL|Mozilla|Zlib|CC0|0BSD|BSL-1\.0|Public Domain"
)


def tool(name):
    """Module of a file in tools/."""
    specification = importlib.util.spec_from_file_location(name, ROOT / f"tools/{name}.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pins():
    """Version of every package that this system installs, by name."""
    return dict(tool("licences").pins())


def test_every_package_is_pinned_and_installed_as_pinned(pins):
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    assert all(re.fullmatch(r"[a-z0-9-]+==[\w.]+( ; .+)?", line) for line in lines)
    # A local build of torch, for the CPU say, is the same release.
    installed = {name: version(name).split("+")[0] for name in pins}
    assert installed == pins


def test_every_pin_has_recorded_hashes():
    recorded = {}
    for line in (ROOT / "requirements.hashes").read_text().splitlines():
        pin, digest = re.fullmatch(r"(\S+==\S+) sha256:([0-9a-f]{64})", line).groups()
        recorded.setdefault(pin, set()).add(digest)
    locked = {line.split(" ")[0] for line in (ROOT / "requirements.lock").read_text().splitlines()}
    assert recorded.keys() == locked


def test_ci_compares_the_hashes_of_what_would_be_installed(monkeypatch):
    """`make lint` asks the package index for them; here both sides are given."""
    assert re.search(r"^lint:.*?tools/lock\.py --check", (ROOT / "Makefile").read_text(), re.MULTILINE | re.DOTALL)
    assert re.search(r"^make lint$", (ROOT / ".ci/run").read_text(), re.MULTILINE)
    lock = tool("lock")
    recorded = {tuple(line.split(" sha256:")) for line in lock.HASHES.read_text().splitlines()}
    monkeypatch.setattr(lock, "compile_pins", lambda *_: lock.LOCK.read_text())
    monkeypatch.setattr(lock, "fetched_hashes", lambda: recorded)
    assert not [problem for problem in lock.check() if "sha256" in problem or "records no hash" in problem]
    other = ("numpy==0.0", "0" * 64)
    monkeypatch.setattr(lock, "fetched_hashes", lambda: recorded | {other})
    assert any("numpy==0.0" in problem and "does not record" in problem for problem in lock.check())


def test_every_licence_is_listed_and_permits_use():
    done = subprocess.run(
        [sys.executable, "tools/licences.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = (ROOT / "requirements.licences").read_text().splitlines()
    refused = [line for line in lines if not PERMISSIVE.search(line.split(" ", maxsplit=1)[1])]
    assert refused == []


def test_the_package_imports_nothing_but_python_itself_and_what_is_pinned(pins):
    distributions = packages_distributions()
    foreign = set()
    for path in SCRIPTS.rglob("*.py"):
        for name in imported(path):
            own = (SCRIPTS / name).is_dir() or (SCRIPTS / f"{name}.py").is_file() or (ROOT / name).is_dir()
            if not own and name not in sys.stdlib_module_names:
                packages = {re.sub(r"[-_.]+", "-", one).lower() for one in distributions.get(name, [])}
                if not packages & pins.keys():
                    foreign.add((name, str(path.relative_to(ROOT))))
    assert foreign == set()


def imported(path):
    """First parts of the names of all modules that a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module.split(".")[0]


def test_what_the_security_page_names_exists():
    page = (ROOT / "SECURITY.md").read_text()
    named = re.findall(r"`((?:gfscore|tools|tests|rules)/[\w/.]+)`", page) + re.findall(r"`(requirements\.\w+)`", page)
    assert {"requirements.lock", "requirements.hashes", "requirements.licences", "tests/faults"} <= set(named)
    for name in named:
        assert (ROOT / name).exists() or (SCRIPTS / name).exists(), name
