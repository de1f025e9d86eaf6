"""What a new audit says of the GPUs of its machine, and the devices that it refuses."""

from types import SimpleNamespace

import pytest
import yaml

from gfscore.core.errors import InputError
from gfscore.networks.installed_gpus import Gpu, InstalledGpus
from gfscore.workflow.new_audit import audit_file, inspection
from gfscore.workflow.new_audit.request import Request

H100 = InstalledGpus((Gpu("NVIDIA H100", 81_559, "580.95"),))
NONE = InstalledGpus()
OLD = InstalledGpus(reason="driver 470 is too old for torch; --device cpu", driver_too_old=True)
CPU_BUILD = InstalledGpus(reason="torch is a build for the CPU")
ATTACK = {"adversarial": {"kind": "adversarial", "subset": {"per_class": 2}}}


@pytest.fixture
def opened(tmp_path):
    """Function: a model of so many bytes that was shown images."""

    def model(size, *, gradients=True):
        path = tmp_path / f"net-{size}"
        with path.open("wb") as file:
            file.truncate(size)
        return SimpleNamespace(model=SimpleNamespace(name=path.name, path=path), gradients=gradients)

    return model


def said(model, *, device="auto", installed=H100, shape=(3, 32, 32)):
    how = {"counts": [1000] * 10, "clean": None, "shape": shape}
    return inspection.device_lines([model], ATTACK, device, installed, **how)


def test_a_large_network_runs_on_the_gpu_and_a_tiny_one_on_the_cpu(opened):
    large, search = said(opened(146_000_000))
    assert "NVIDIA H100" in large and "logits, adversarial" in large
    assert "TF32" in search and "float32" in search
    (tiny,) = said(opened(190_000), shape=(1, 8, 8))
    assert "CPU" in tiny and "GPU" not in tiny


def test_jobs_of_one_network_may_run_apart(opened):
    """On 10,000 images one pass each, on 20 of them many."""
    line, _ = inspection.device_lines(
        [opened(1_080_000)], ATTACK, "auto", H100, counts=[100] * 10, clean=None, shape=(3, 32, 32)
    )
    assert "GPU" in line and "for adversarial;" in line and "CPU for the rest" in line


def test_the_option_decides_and_is_named(opened):
    (line,) = said(opened(146_000_000), device="cpu")
    assert "CPU, as --device says" in line
    line, _ = said(opened(190_000), device="cuda", shape=(1, 8, 8))
    assert "GPU (NVIDIA H100)" in line


def test_a_file_outside_of_torch_runs_on_the_cpu(opened):
    (line,) = said(opened(146_000_000, gradients=False))
    assert "GPU (" not in line


def test_without_a_gpu_nothing_is_said_but_why_one_is_not_used(opened):
    assert said(opened(1000), installed=NONE) == []
    (line,) = said(opened(1000), installed=CPU_BUILD)
    assert CPU_BUILD.reason in line


@pytest.mark.parametrize(
    ("device", "installed", "named"),
    [("cuda", NONE, "--device cuda"), ("cuda", CPU_BUILD, "build for the CPU"), ("auto", OLD, "driver 470")],
)
def test_a_device_that_is_not_there_is_refused(device, installed, named):
    with pytest.raises(InputError, match=named):
        inspection.require_device(device, installed)


@pytest.mark.parametrize(("device", "installed"), [("auto", NONE), ("cpu", OLD), ("cuda", H100), ("auto", H100)])
def test_a_device_that_is_there_is_not(device, installed):
    inspection.require_device(device, installed)


def test_it_is_refused_before_a_model_is_opened(monkeypatch, tmp_path):
    monkeypatch.setattr(inspection, "installed_gpus", lambda: NONE)
    monkeypatch.setattr(inspection, "find_models", lambda request: [SimpleNamespace(has_logits_only=False, entry={})])
    with pytest.raises(InputError, match="--device cuda"):
        inspection.inspect(Request(("net.onnx",), str(tmp_path), device="cuda"), print)


def test_the_option_stands_in_the_file_of_the_audit():
    def written(device):
        file = audit_file.NewAudit(name="a", data={}, models=[], measures={}, device=device)
        return yaml.safe_load(file.text())

    assert written("cpu")["inference"] == {"device": "cpu"}
    assert "inference" not in written("auto")
