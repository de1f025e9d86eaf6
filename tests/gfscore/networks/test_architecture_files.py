"""Which files make a network of architectures/, and their digest."""

import subprocess

import pytest

from gfscore.core.errors import InputError
from gfscore.networks.architecture_files import FOLDER_VARIABLE, describe_network, network_files, require_network
from gfscore.networks.callables import resolve

NAME = "architectures.nets:small"


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes files of architectures/, beside one that nothing imports; none of them may run."""
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "architectures"))

    def write(**texts):
        for name, text in {"unused": "", **texts}.items():
            path = tmp_path / "architectures" / f"{name.replace('-', '/')}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{text}\nraise RuntimeError('it ran')\n")

    return write


def found(tmp_path, name=NAME):
    return [path.relative_to(tmp_path / "architectures").as_posix() for path in network_files(name)]


@pytest.mark.parametrize(
    "statement",
    [
        "from architectures.helper import make",
        "from architectures import helper as h",
        "import torch, architectures.helper",
        "from .helper import *",
        "from . import helper",
        "def small():\n    from .helper import make",
        "from \\\n    architectures.helper import (\n    make,  # why\n)",
        "import importlib\nimportlib.import_module('architectures.helper')",
        "import sys\nsys.path.insert(0, 'architectures')\nimport helper",
    ],
)
def test_every_form_of_import_is_followed(statement, write, tmp_path):
    write(nets=statement, helper="from .deeper import more", deeper="import torch, timm.layers")
    assert found(tmp_path) == ["deeper.py", "helper.py", "nets.py"]


def test_packages_on_the_way_are_run_by_an_import_and_belong_to_it(write, tmp_path):
    write(
        __init__="from . import unused",
        nets="from architectures.family.blocks import block",
        **{
            "family-__init__": "from .common import scale",
            "family-common": "",
            "family-blocks": "from .parts import part\nfrom ..shared import width\nfrom .... import unused",
            "family-parts-__init__": "",
            "family-parts-part": "",
            "family-unused": "",
            "shared": "",
        },
    )
    package = [f"family/{name}.py" for name in ("__init__", "blocks", "common", "parts/__init__", "parts/part")]
    assert found(tmp_path) == [*package, "nets.py", "shared.py"]
    assert found(tmp_path, "architectures.family:net") == ["family/__init__.py", "family/common.py"]


def test_files_that_import_each_other(write, tmp_path):
    write(nets="from . import helper", helper="from . import nets, helper")
    assert found(tmp_path) == ["helper.py", "nets.py"]


def test_networks_of_packages_have_no_such_file(write, tmp_path):
    write(torchvision="")
    for name in ("torchvision.models:resnet18", "architectures:net", "architectures.absent:net"):
        assert found(tmp_path, name) == []
        assert describe_network(name) == {}


@pytest.mark.parametrize("text", ["x = 1\ndef broken(:\n    pass", "x = 1\nx = '\0'", "x = 1\nx = 'ÿ'", "-" * 10**5])
def test_what_is_no_python_is_watched_and_named_when_the_network_is_built(text, write, tmp_path):
    write(nets="from . import helper")
    (tmp_path / "architectures/helper.py").write_text(text, encoding="latin-1")
    assert found(tmp_path) == ["helper.py", "nets.py"]
    with pytest.raises(InputError, match=r"architectures\.nets cannot be imported \(.*correct the file"):
        resolve(NAME)


def test_the_digest_follows_names_and_contents_of_all_files(write, tmp_path, monkeypatch):
    digests = set()
    for helper, more in (("1", {}), ("2", {}), ("1; from . import late", {"late": ""})):
        write(nets="from . import helper", helper=helper, **more)
        digests.add(describe_network(NAME)["architecture_sha256"])
    (tmp_path / "architectures/late.py").rename(tmp_path / "architectures/later.py")
    write(nets="from . import helper", helper="1; from . import later")
    digests.add(describe_network(NAME)["architecture_sha256"])
    assert len(digests) == 4
    before = describe_network(NAME)
    write(unused="changed")
    assert describe_network(NAME) == before
    # Wherever the folder is.
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(FOLDER_VARIABLE)
    assert describe_network(NAME) == before


def test_the_digest_is_that_of_sha256sum(write, tmp_path):
    write(nets="from . import helper", helper="")
    described = describe_network(NAME)
    paths = [file["path"] for file in described["architecture_files"]]
    assert paths == ["architectures/helper.py", "architectures/nets.py"]
    lines = subprocess.run(["sha256sum", *paths], cwd=tmp_path, capture_output=True, check=True).stdout
    whole = subprocess.run(["sha256sum"], input=lines, capture_output=True, check=True).stdout
    assert whole.decode().split()[0] == described["architecture_sha256"]


def test_code_that_changed_since_the_manifest_is_refused(write, tmp_path):
    write(nets="from . import helper", helper="1")
    manifest = {"architecture": NAME, **describe_network(NAME)}
    require_network(manifest)
    write(nets="from . import helper", helper="2")
    with pytest.raises(
        InputError, match=r"^architectures/helper\.py: differs from the code of .*run the same command again"
    ):
        require_network(manifest)
    require_network({"architecture": NAME})
    require_network({"architecture": "torchvision.models:resnet18"})
