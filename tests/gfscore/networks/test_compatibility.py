import subprocess
import sys
from importlib import metadata
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from gfscore.core.errors import InputError
from gfscore.networks import compatibility

pytestmark = pytest.mark.seconds(10)

PACKAGE = Path(__file__).resolve().parents[3] / "workflow_scripts"

OFFLINE = """
import socket, sys
def refuse(*_, **__):
    raise AssertionError("the network was asked")
socket.socket.connect = socket.getaddrinfo = refuse
from gfscore.networks.compatibility import import_robustbench, import_torchvision
"""


def run(code):
    """Run code in a fresh interpreter: what is tested is the first import."""
    done = subprocess.run(
        [sys.executable, "-c", OFFLINE + code],
        env={"PYTHONPATH": str(PACKAGE)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done


def test_networks_of_a_package_that_imports_torchvision_are_built_first_thing_and_its_own_run():
    run(
        """
from gfscore.networks.callables import build_architecture
assert "torchvision" not in sys.modules
assert type(build_architecture("timm.models.resnet:resnet18", {})).__name__ == "ResNet"
assert import_torchvision() is import_torchvision()
import torch, torchvision
torch.set_num_threads(1)
with torch.inference_mode():
    assert torchvision.models.resnet18().eval()(torch.rand(1, 3, 32, 32)).shape == (1, 1000)
"""
    )


def test_robustbench_imports_twice_offline_silently_and_leaves_no_stand_in():
    done = run(
        """
from importlib.util import find_spec
absent = find_spec("autoattack") is None
robustbench = import_robustbench()
assert robustbench is import_robustbench()
assert not absent or not {"autoattack", "autoattack.state"} & sys.modules.keys()
from robustbench.loaders import make_custom_dataset
import json
names = robustbench.loaders.pkg_resources.resource_filename("robustbench.loaders", "helper_files/imagenet_test_image_ids.txt")
assert len(open(names).readlines()) == 5000
"""
    )
    assert "Warning" not in done.stderr


def test_a_compiled_part_that_loads_is_left_alone(monkeypatch):
    import torch

    monkeypatch.delitem(sys.modules, "torchvision", raising=False)
    monkeypatch.setattr(compatibility, "_compiled_library_loads", lambda: True)
    monkeypatch.setattr(compatibility, "import_module", ModuleType)
    monkeypatch.setattr(torch.library, "define", lambda *_: pytest.fail("declared without need"))
    assert compatibility.import_torchvision().__name__ == "torchvision"


def test_a_torchvision_that_needs_another_mend_is_named_with_the_torch_it_wants(monkeypatch):
    def fails(_):
        raise RuntimeError("operator torchvision::new_one does not exist")

    monkeypatch.delitem(sys.modules, "torchvision", raising=False)
    monkeypatch.setattr(compatibility, "_compiled_library_loads", lambda: True)
    monkeypatch.setattr(compatibility, "import_module", fails)
    with pytest.raises(InputError, match=r"torchvision 0\.28.*new_one.*requires torch.*requirements\.lock"):
        compatibility.import_torchvision()


@pytest.mark.parametrize("name", compatibility.CHECKED)
def test_a_release_that_was_not_checked_is_refused(monkeypatch, name):
    installed = metadata.version
    monkeypatch.setattr(metadata, "version", lambda asked: "99.1" if asked == name else installed(asked))
    with pytest.raises(InputError, match=rf"{name} 99\.1 is installed.*{name}==.*survey_robustbench"):
        compatibility.import_robustbench()


def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch):
    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    with pytest.raises(InputError, match=r"robustbench is not installed; run make setup"):
        compatibility.import_robustbench()


def test_files_of_an_older_robustbench_under_the_same_release_are_noticed(monkeypatch):
    older = SimpleNamespace(utils=SimpleNamespace(), __file__="robustbench/__init__.py")
    monkeypatch.delitem(sys.modules, "robustbench", raising=False)
    monkeypatch.setattr(compatibility, "import_torchvision", lambda: None)
    monkeypatch.setattr(
        compatibility, "import_module", lambda name: older if name == "robustbench" else ModuleType(name)
    )
    with pytest.raises(InputError, match="torchattacks"):
        compatibility.import_robustbench()
