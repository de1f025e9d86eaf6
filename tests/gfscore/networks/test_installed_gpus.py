"""What a machine says of its GPUs, by a pretended nvidia-smi, and which torch can use them."""

import pytest

from gfscore.networks import installed_gpus as module
from gfscore.networks.installed_gpus import (
    Gpu,
    InstalledGpus,
    TorchBuild,
    installed_gpus,
    torch_build,
    usable_gpus,
    visible_gpus,
)

FIRST = "0, GPU-aaaa1111, 580.95.05, Default, Disabled, 81559, NVIDIA H100 80GB HBM3"
SECOND = "1, GPU-bbbb2222, 580.95.05, Default, [N/A], 24564, NVIDIA GeForce RTX 4090"
CUDA_13 = TorchBuild("2.13.0+cu130", "13.0")


@pytest.fixture
def nvidia_smi(tmp_path, monkeypatch):
    """Function: put an nvidia-smi on the PATH that prints some lines and ends with a status."""
    monkeypatch.setattr(module, "torch_build", lambda: CUDA_13)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")

    def place(*lines, status=0):
        program = tmp_path / "nvidia-smi"
        text = "".join(f"echo '{line}'\n" for line in lines)
        program.write_text(f"#!/bin/sh\n{text}exit {status}\n")
        program.chmod(0o755)
        module._installed_gpus.cache_clear()

    yield place
    module._installed_gpus.cache_clear()


def test_gpus_are_read_with_their_memory(nvidia_smi):
    nvidia_smi(FIRST, SECOND)
    first, second = installed_gpus().usable
    assert first == Gpu("NVIDIA H100 80GB HBM3", 81559, "580.95.05")
    assert second.memory_mb == 24564


@pytest.mark.parametrize(
    ("visible", "names"),
    [
        (None, ["first", "second"]), ("", []), ("-1", []), ("1", ["second"]), ("1,0", ["second", "first"]),
        ("0,7,1", ["first"]), ("GPU-bbbb", ["second"]), ("MIG-1234", ["MIG-1234"]),
        # As torch counts them: twice the same is none, and a process sees one slice.
        ("0,0", []), ("GPU-aaaa,0", []), ("MIG-1234,MIG-5678", ["MIG-1234"]), ("1,MIG-1234", ["second"]),
    ],
)  # fmt: skip
def test_cuda_visible_devices_hides_the_others(visible, names):
    reply = "0, GPU-aaaa, 580.95, Default, [N/A], 81559, first\n1, GPU-bbbb, 580.95, Default, [N/A], 24564, second\n"
    assert [gpu.name for gpu in visible_gpus(reply, visible)] == names


def test_a_gpu_of_unknown_memory_has_none(nvidia_smi):
    nvidia_smi("0, GPU-aaaa1111, 580.95.05, Default, [N/A], [N/A], NVIDIA GB10")
    assert installed_gpus().usable == (Gpu("NVIDIA GB10", None, "580.95.05"),)


@pytest.mark.parametrize("modes", ["Exclusive_Process, Disabled", "Default, Enabled"])
def test_a_gpu_that_jobs_cannot_share_by_its_memory_is_taken_whole(modes, nvidia_smi):
    nvidia_smi(FIRST.replace("Default, Disabled", modes))
    assert [gpu.memory_mb for gpu in installed_gpus().usable] == [None]


def test_a_slice_of_a_gpu_is_used_with_the_driver_of_the_machine(nvidia_smi, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-1234")
    nvidia_smi(FIRST)
    assert installed_gpus().usable == (Gpu("MIG-1234", None, "580.95.05"),)
    nvidia_smi(FIRST.replace("580.95.05", "470.82.01"))
    assert installed_gpus().driver_too_old


def test_a_driver_without_a_number_is_left_to_torch():
    assert usable_gpus([Gpu("card", None, "[N/A]")], CUDA_13).usable


def test_a_program_that_fails_is_said_and_no_gpu_is_used(nvidia_smi):
    nvidia_smi("NVIDIA-SMI has failed because it could not communicate with the driver", status=9)
    answer = installed_gpus()
    assert not answer.usable and "NVIDIA-SMI has failed" in answer.reason


def test_a_driver_without_its_program_is_said(nvidia_smi, tmp_path, monkeypatch):
    driver = tmp_path / "version"
    monkeypatch.setattr(module, "DRIVER", driver)
    monkeypatch.setattr(module, "which", lambda program: None)
    assert installed_gpus() == InstalledGpus()
    driver.touch()
    module._installed_gpus.cache_clear()
    assert "nvidia-smi" in installed_gpus().reason


def test_a_program_that_speaks_another_encoding_is_understood(nvidia_smi, tmp_path):
    nvidia_smi(status=9)
    (tmp_path / "nvidia-smi").write_bytes(b"#!/bin/sh\nprintf 'Ger\\344t fehlt'\nexit 9\n")
    assert "nvidia-smi fails (Ger" in installed_gpus().reason


@pytest.mark.parametrize(
    ("driver", "build", "usable"),
    [
        ("580.95.05", CUDA_13, True), ("570.124.06", CUDA_13, False), ("525.60.13", TorchBuild("2.6", "12.4"), True),
        ("470.82.01", TorchBuild("2.6", "12.4"), False), ("470.82.01", TorchBuild("2.0", "11.8"), True),
        ("470.82.01", TorchBuild("3.0", "99.1"), True), ("470.82.01", None, True),
    ],
)  # fmt: skip
def test_a_driver_must_be_new_enough_for_torch(driver, build, usable):
    answer = usable_gpus([Gpu("card", 1000, driver)], build)
    assert bool(answer.usable) == usable
    assert answer.driver_too_old != usable


def test_an_old_driver_is_named_with_what_torch_needs_and_the_remedy():
    reason = usable_gpus([Gpu("card", 1000, "570.124.06")], CUDA_13).reason
    for word in ("570.124.06", "580.65", "2.13.0+cu130", "--device cpu"):
        assert word in reason


def test_a_torch_for_the_cpu_uses_no_gpu_and_says_how_to_get_another():
    answer = usable_gpus([Gpu("card", 1000, "580.95")], TorchBuild("2.13.0+cpu", None))
    assert not answer.usable and not answer.driver_too_old
    assert "TORCH_BUILD=cuda" in answer.reason


def test_the_build_of_torch_is_read_without_importing_it(tmp_path, monkeypatch):
    import torch

    assert torch_build() == TorchBuild(torch.__version__, torch.version.cuda)
    folder = tmp_path / "torch"
    folder.mkdir()
    (folder / "__init__.py").write_text("raise RuntimeError('imported')")
    (folder / "version.py").write_text("__version__ = '2.13.0+cu130'\ncuda: Optional[str] = '13.0'\nhip = None\n")
    spec = type("Spec", (), {"origin": str(folder / "__init__.py")})
    monkeypatch.setattr(module, "find_spec", lambda name: spec)
    assert torch_build() == CUDA_13
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    assert torch_build() is None
