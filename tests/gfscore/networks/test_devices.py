"""Parts of GPUs that jobs hold: how many run at once, who waits, and what a killed job leaves."""

import multiprocessing
import signal
import sys
import time
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from gfscore.core.errors import InputError
from gfscore.networks import devices
from gfscore.networks.classifier import from_network
from gfscore.networks.devices import WEIGHTS, GpuShare, device_of, hold_device, hold_percent, move_to, out_of_memory

FORK = multiprocessing.get_context("fork")


class Holder:
    """A process that holds so many percent of one of some GPUs, and says which.

    It is forked, since a Python of its own would import torch for a second.
    """

    def __init__(self, percent, names, folder):
        self.output, said = FORK.Pipe(duplex=False)
        self.process = FORK.Process(target=self._hold, args=(percent, names, folder, said))
        self.process.start()
        said.close()

    @staticmethod
    def _hold(percent, names, folder, said):
        sys.stdout = SimpleNamespace(write=said.send, flush=lambda: None)
        print(hold_percent(names, percent, folder=folder), end="")
        signal.pause()

    def line(self):
        """What it says next: that it waits, or the number of the GPU."""
        words = self.output.recv()
        while words.isspace():
            words = self.output.recv()
        return words

    def end(self):
        self.process.kill()
        self.process.join()


@pytest.fixture
def start_holder(tmp_path):
    """Function: a holder of so many percent of one of the GPUs of these names."""
    holders = []

    def start(percent, *names):
        holders.append(Holder(percent, names, tmp_path / "locks"))
        return holders[-1]

    yield start
    for holder in holders:
        holder.end()


def test_jobs_share_gpus_up_to_their_whole_the_one_with_most_free_first(start_holder):
    for parts, index in ((10, "0"), (10, "1"), (50, "0"), (30, "1"), (60, "1"), (40, "0")):
        assert start_holder(parts, "one", "two").line() == index


def test_a_killed_job_releases_its_part(start_holder, tmp_path):
    holder = start_holder(100, "only")
    assert holder.line() == "0"
    holder.end()
    assert hold_percent(["only"], 100, folder=tmp_path / "locks") == 0


def test_what_does_not_fit_waits_and_says_so(start_holder):
    first = start_holder(50, "only")
    assert first.line() == "0"
    second = start_holder(51, "only")
    assert "waiting for 51%" in second.line()
    first.end()
    assert second.line() == "0"


def test_a_large_part_is_not_kept_waiting_by_small_ones_that_come_later(start_holder):
    first = start_holder(50, "only")
    assert first.line() == "0"
    large = start_holder(100, "only")
    assert "waiting" in large.line()
    small = start_holder(10, "only")
    assert "waiting" in small.line()
    first.end()
    assert large.line() == "0"
    large.end()
    assert small.line() == "0"


def test_a_waiting_job_that_is_killed_lets_the_next_one_wait(start_holder):
    first = start_holder(100, "only")
    assert first.line() == "0"
    waiting = start_holder(100, "only")
    assert "waiting" in waiting.line()
    next_one = start_holder(10, "only")
    assert "waiting" in next_one.line()
    waiting.end()
    first.end()
    assert next_one.line() == "0"


def test_no_lock_stays_behind_an_attempt_that_failed(start_holder):
    assert start_holder(70, "only").line() == "0"
    waiting = start_holder(40, "only")
    assert "waiting" in waiting.line()
    waiting.end()
    assert start_holder(30, "only").line() == "0"


def test_locks_that_another_could_steer_are_refused(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "locks").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="belongs to another user"):
        hold_percent(["one"], 1, folder=tmp_path / "locks")
    (tmp_path / "elsewhere" / "one.0").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="one"):
        hold_percent(["one"], 1, folder=tmp_path / "elsewhere")
    assert not (tmp_path / "victim").exists()


# ---- what torch is told ----


@pytest.fixture
def two_gpus(monkeypatch, tmp_path):
    """Torch that sees two GPUs of 10 GiB; a list of the calls that set its device and memory."""
    calls = []
    monkeypatch.setattr(devices, "lock_folder", lambda: tmp_path / "locks")
    cuda = {
        "device_count": lambda: 2,
        "get_device_properties": lambda index: SimpleNamespace(uuid=f"gpu-{index}"),
        "mem_get_info": lambda: (10 << 30, 10 << 30),
        "set_device": lambda index: calls.append(("device", index)),
        "set_per_process_memory_fraction": lambda share: calls.append(("share", round(share, 2))),
    }
    for name, function in cuda.items():
        monkeypatch.setattr(torch.cuda, name, function)
    return calls


def test_torch_gets_the_memory_of_the_part_without_what_cuda_takes_itself(two_gpus, capsys):
    share = GpuShare()
    share.hold(50)
    share.hold(100)  # the first call decides
    assert two_gpus == [("device", 0), ("share", 0.43)]
    assert share.lift_limit(WEIGHTS)
    assert two_gpus[-1] == ("share", 1.0)
    assert "the weights take more than this job's part" in capsys.readouterr().out
    assert not share.lift_limit(WEIGHTS)


def test_a_job_without_a_part_has_a_gpu_for_itself(two_gpus, start_holder):
    assert start_holder(1, "gpu-0", "gpu-1").line() == "0"
    GpuShare().hold()
    assert two_gpus == [("device", 1)]


def test_the_only_gpu_of_a_job_of_slurm_is_not_locked(two_gpus, monkeypatch, tmp_path):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    GpuShare().hold()
    assert two_gpus == [] and not (tmp_path / "locks").exists()


def test_a_training_waits_for_what_another_run_holds_of_the_only_gpu(two_gpus, start_holder, monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    holder = start_holder(10, "gpu-0")
    assert holder.line() == "0"
    monkeypatch.setattr(devices.time, "sleep", lambda _: holder.end())
    GpuShare().hold()
    assert "waiting for 100% of a GPU" in capsys.readouterr().out
    assert two_gpus == [("device", 0)]


def test_holding_a_part_takes_no_time_worth_naming(tmp_path):
    started = time.process_time()
    hold_percent([f"gpu-{number}" for number in range(8)], 100, folder=tmp_path / "locks")
    assert time.process_time() - started < 1


def test_errors_of_other_allocators_are_recognised_and_others_are_not():
    full = "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"
    assert out_of_memory(RuntimeError(full))
    assert out_of_memory(RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"))
    # As cuDNN 9 names it, and as torch does where each algorithm of a convolution wants more than there is.
    assert out_of_memory(RuntimeError("cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"))
    assert out_of_memory(RuntimeError("GET was unable to find an engine to execute this computation"))
    assert out_of_memory(Exception("std::bad_alloc"))
    assert out_of_memory(torch.AcceleratorError("CUDA error: out of memory"))
    assert out_of_memory(RuntimeError("Triton Error [CUDA]: out of memory"))
    assert not out_of_memory(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))


def test_a_gpu_too_small_for_the_weights_is_named_with_the_remedy():
    class Heavy(nn.Flatten):
        def to(self, device):
            raise torch.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(InputError, match=r"net\.onnx: the weights .*device: cpu"):
        move_to(from_network(Heavy()), "cuda", where="net.onnx")


def test_cuda_that_is_asked_for_and_not_there_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match="device is cuda"):
        device_of(from_network(nn.Flatten()), "cuda")


def test_a_gpu_that_was_planned_for_and_is_not_there_is_said(monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert device_of(from_network(nn.Flatten()), "auto", gpu_percent=20) == "cpu"
    assert "planned" in capsys.readouterr().out


@pytest.mark.parametrize(("capability", "used"), [((6, 1), False), ((7, 5), True), ((9, 0), True), ((12, 0), True)])
def test_a_gpu_too_old_for_the_build_of_torch_is_refused_with_the_remedy(capability, used, two_gpus, monkeypatch):
    monkeypatch.setattr(devices, "GPU_SHARE", GpuShare())
    cuda = {
        "is_available": lambda: True,
        "get_device_capability": lambda: capability,
        "get_arch_list": lambda: ["sm_75", "sm_80", "sm_90a", "compute_120"],
        "get_device_name": lambda: "NVIDIA GeForce GTX 1080",
    }
    for name, function in cuda.items():
        monkeypatch.setattr(torch.cuda, name, function)
    if used:
        assert hold_device("auto", gpu_percent=10) == "cuda"
        return
    with pytest.raises(InputError, match=r"GTX 1080 is too old for torch .* 6\.1, .* 7\.5; .*--device cpu"):
        hold_device("auto", gpu_percent=10)


def test_the_automatic_device_is_one_that_exists():
    assert hold_device("auto") == ("cuda" if torch.cuda.is_available() else "cpu")
    assert hold_device("cpu") == "cpu"
