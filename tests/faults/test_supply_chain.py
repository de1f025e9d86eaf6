"""What is installed: pinned, checked by hash, of known licences, and nothing else is imported."""

import ast
import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import packages_distributions, version
from pathlib import Path

import pytest

import install
import licences
import lock

pytestmark = pytest.mark.seconds(40)

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "workflow_scripts"
PERMISSIVE = re.compile(
    r"MIT|BSD|ISC License|Apache|PSF|Python Software Foundation|MPL|Mozilla|Zlib|CC0|0BSD|BSL-1\.0|Public Domain"
)


@pytest.fixture(scope="module")
def pins():
    """Version of every package that this system installs, by name."""
    return dict(licences.pins())


def test_every_package_is_pinned_by_hash_and_installed_as_pinned(pins):
    options, locked = install.entries((ROOT / "requirements.lock").read_text())
    assert {"--require-hashes", "--only-binary :all:", "--no-binary connection-pool"} < set(options.splitlines())
    assert all(re.fullmatch(r"[a-z0-9-]+==[\w.]+( ; .+)?", lock.pin_of(entry)) for entry in locked.values())
    assert all(lock.hashes_of(entry) for entry in locked.values())
    # A local build of torch, for the CPU say, is the same release.
    installed = {name: version(name).split("+")[0] for name in pins}
    assert installed == pins


# ---- installing ----


def wheel(folder, version, content):
    """Write a wheel of a module `six`; returns its SHA-256."""
    folder.mkdir(exist_ok=True)
    path = folder / f"six-{version}-py3-none-any.whl"
    about = f"six-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("six.py", content)
        archive.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: six\nVersion: {version}\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")
    return hashlib.sha256(path.read_bytes()).hexdigest()


def set_up(clone, offered, search_path=None):
    """Run `make setup` where nothing is found but the files of a folder: whether it succeeded, six.py, what it said."""
    environment = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(offered)}
    environment |= {"UV_NO_INDEX": "1", "UV_FIND_LINKS": str(offered), "PATH": search_path or os.environ["PATH"]}
    done = subprocess.run(
        ["make", "setup"], cwd=clone, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    (module,) = [*clone.glob(".venv/lib/*/site-packages/six.py")] or [None]
    return done.returncode == 0, module and module.read_text(), done.stdout + done.stderr


@pytest.mark.parametrize("uv", [False, True])
def test_a_replaced_package_is_refused(tmp_path, uv):
    """A version with a local part satisfies `six==1.17.0`, and pip prefers it."""
    clone = tmp_path / "clone"
    (clone / "tools").mkdir(parents=True)
    for name in ("Makefile", "tools/install.py"):
        shutil.copy(ROOT / name, clone / name)
    subprocess.run([sys.executable, "-m", "venv", clone / ".venv"], check=True)
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("sh", "make", "python3", "dirname", "getconf", "sed", "env", *(["uv"] if uv else [])):
        found = shutil.which(name) or Path(sys.executable).with_name(name)
        (tools / name).symlink_to(found)
    path = str(tools)
    honest = wheel(tmp_path / "honest", "1.17.0", "honest")
    entry = f"six==1.17.0 \\\n    --hash=sha256:{honest}\n"
    (clone / "requirements.lock").write_text(lock.HEAD + entry)
    for replaced in ("1.17.0", "1.17.0+anything"):
        of_replaced = wheel(tmp_path / replaced, replaced, "replaced")
        *found, text = set_up(clone, tmp_path / replaced, path)
        assert found == [False, None]
    # The reason is shown; uv says no more than that.
    assert "hash" in text.lower() and (uv or (honest in text and of_replaced in text))
    assert "hash" in (clone / ".venv/install.log").read_text().lower()
    *found, text = set_up(clone, tmp_path / "honest", path)
    assert found == [True, "honest"]
    # Nothing is looked for again while the lock stays as it is.
    assert set_up(clone, tmp_path / "nowhere", path)[:2] == (True, "honest")


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("", "0 of 3 packages found"),
        ("Collecting a==1\n  Downloading a-1.whl (9 MB)\nIgnoring b: markers\n", "2 of 3 packages found, now b"),
        ("Collecting a==1\nInstalling collected packages: pytest, No_such\n", "1 of 2 packages unpacked"),
    ],
)
def test_a_long_installation_says_how_far_it_is(said, expected):
    assert install.progress(said, 3) == expected


@pytest.fixture
def commands(monkeypatch, tmp_path):
    """Calls of pip that an installation would make: pairs of a command and the names that it installs."""
    calls = []

    def run(command, packages):
        names = [*install.entries(Path(command[-1]).read_text())[1]]
        assert len(names) == packages
        calls.append((command, names))
        return 0

    monkeypatch.setattr(install, "run", run)
    monkeypatch.setattr(install, "LOG", tmp_path / "install.log")
    monkeypatch.setattr(install.sys, "platform", "linux")
    return calls


@pytest.mark.parametrize("build", ["cpu", "cuda"])
def test_only_torch_and_torchvision_may_come_from_pytorch(commands, monkeypatch, build):
    monkeypatch.setenv("TORCH_BUILD", build)
    pins = [lock.pin_of(entry).split(" ")[0] for entry in install.entries(lock.LOCK.read_text())[1].values()]
    install.main(pins)
    *alone, (_, rest) = commands
    assert [names for _, names in alone] == [["setuptools"], ["connection-pool"], ["torch"], ["torchvision"]]
    assert "--no-build-isolation" in alone[1][0]
    assert "snakemake" in rest
    assert any(map(install.ACCELERATOR.match, rest)) == (build == "cuda")
    for command, names in commands:
        assert "--no-deps" in command
        elsewhere = {option for option in command if "://" in str(option)}
        pages = {install.CPU_BUILDS[name] for name in names if name in install.CPU_BUILDS and build == "cpu"}
        assert elsewhere == pages
        assert ("--no-index" in command) == bool(elsewhere)


# ---- torchvision for the CPU: a stand-in for PyTorch's page, and one for the registry ----

PAGE = '<!DOCTYPE html><html><body><a href="{name}">{name}</a></body></html>'


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """An environment with nothing but pip."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    return folder


@pytest.fixture
def vision(tmp_path, monkeypatch, environment):
    """Pages of wheels of `six`, in the place of torchvision's.

    A function of the hashes that a lock pins installs it in an environment; the page of PyTorch and the registry are
    folders.
    """
    page, registry = tmp_path / "page", tmp_path / "registry"
    for folder in (page, registry):
        folder.mkdir()
    for module in environment.glob("lib/*/site-packages/six*"):
        shutil.rmtree(module) if module.is_dir() else module.unlink()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_FIND_LINKS", str(registry))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setattr(install, "LOG", tmp_path / "install.log")
    monkeypatch.setattr(install.sys, "executable", str(environment / "bin/python"))
    monkeypatch.setattr(install.shutil, "which", lambda name: None)
    monkeypatch.setitem(install.CPU_BUILDS, "torchvision", str(page / "index.html"))
    install.LOG.write_text("")

    def installed(*hashes):
        pins = " ".join(f"--hash=sha256:{digest}" for digest in hashes)
        install.install_torchvision_for_cpu("--require-hashes\n--only-binary :all:\n", f"six==1.17.0 {pins}\n")
        (module,) = environment.glob("lib/*/site-packages/six.py")
        return module.read_text()

    return page, registry, installed


def offer(page, version, content):
    """A page that offers one wheel; returns its SHA-256."""
    digest = wheel(page, version, content)
    (page / "index.html").write_text(PAGE.format(name=f"six-{version}-py3-none-any.whl"))
    return digest


def test_torchvision_for_the_cpu_comes_from_the_page(vision, capsys):
    page, registry, installed = vision
    hashes = offer(page, "1.17.0+cpu", "of the page"), wheel(registry, "1.17.0", "of the registry")
    assert installed(*hashes) == "of the page"
    assert "PyTorch's page" in capsys.readouterr().out


def test_without_the_page_it_comes_from_the_registry_and_that_is_said(vision, capsys):
    _, registry, installed = vision
    assert installed(wheel(registry, "1.17.0", "of the registry"), "0" * 64) == "of the registry"
    said = capsys.readouterr().out
    assert "registry" in said and "import torchvision" in said


def test_a_build_of_the_page_with_another_hash_is_refused_although_the_registry_has_one(vision, capsys):
    page, registry, installed = vision
    offer(page, "1.17.0+cpu", "replaced")
    with pytest.raises(SystemExit, match="hash"):
        installed(wheel(registry, "1.17.0", "of the registry"), "0" * 64)


def test_builds_for_the_cpu_are_pinned_for_every_python_and_machine():
    locked = install.entries(lock.LOCK.read_text())[1]
    assert lock.CPU_HASHES.keys() == install.CPU_BUILDS.keys()
    wanted = {(python, machine) for python in ("cp311", "cp312", "cp313") for machine in ("x86_64", "aarch64")}
    for name, (release, builds) in lock.CPU_HASHES.items():
        assert lock.pin_of(locked[name]) == f"{name}=={release}"
        assert set(builds.values()) <= lock.hashes_of(locked[name])
        assert {(tag.split("-")[0], tag.partition("2_28_")[2]) for tag in builds} == wanted


def test_no_other_file_names_a_place_to_install_from():
    command = ["git", "grep", "-lE", r"pypi\.org|pythonhosted\.org|pytorch\.org/whl"]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.split() == [
        "tools/install.py"
    ]


def test_ci_refuses_a_hash_that_the_registry_does_not_have(monkeypatch, tmp_path):
    """`make lint` asks the registry; here its answer is given."""
    assert re.search(r"^lint:.*?tools/lock\.py --check", (ROOT / "Makefile").read_text(), re.MULTILINE | re.DOTALL)
    assert re.search(r"^make lint\b", (ROOT / ".ci/run").read_text(), re.MULTILINE)
    text = lock.LOCK.read_text()
    locks = {"dev": text, "validators": lock.VALIDATORS.read_text()}
    monkeypatch.setattr(lock, "resolved", lambda extras, *_: install.entries(locks[extras[0]])[1])
    monkeypatch.setattr(lock, "post_deploy", lambda name: (ROOT / f"envs/{name}.post-deploy.sh").read_text())
    assert lock.check() == []
    monkeypatch.setattr(lock, "LOCK", tmp_path / "requirements.lock")
    lock.LOCK.write_text(re.sub(r"(?<=^numpy==2.4.6 \\\n    --hash=sha256:).{64}", "0" * 64, text, flags=re.MULTILINE))
    (problem,) = lock.check()
    assert "numpy" in problem


def test_every_licence_is_listed_and_permits_use():
    done = subprocess.run(
        [sys.executable, "tools/licences.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = (ROOT / "requirements.licences").read_text().splitlines()
    refused = [line for line in lines if not PERMISSIVE.search(line.split(" ", maxsplit=1)[1])]
    assert refused == []


OF_THE_USER = {"mlflow"}
"""Libraries that the package takes where somebody has installed them, and never installs."""


def test_the_package_imports_nothing_but_python_itself_and_what_is_pinned(pins):
    distributions = packages_distributions()
    foreign = set()
    for path in SCRIPTS.rglob("*.py"):
        for name in imported(path):
            own = (SCRIPTS / name).is_dir() or (SCRIPTS / f"{name}.py").is_file() or (ROOT / name).is_dir()
            if not own and name not in sys.stdlib_module_names | OF_THE_USER:
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
    assert {"requirements.lock", "requirements.licences", "tools/install.py", "tests/faults"} <= set(named)
    for name in named:
        assert (ROOT / name).exists() or (SCRIPTS / name).exists(), name
