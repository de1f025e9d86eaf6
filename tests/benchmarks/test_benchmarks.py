"""The benchmarks: that they start, are documented, and measure what they say (not how fast this machine is)."""

import json
import os
import subprocess
import sys
from functools import partial

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from torch import nn

from workflow.conftest import ROOT

pytestmark = pytest.mark.seconds(50)

BENCHMARKS = ROOT / "benchmarks"

IMPORT_ALL = """
import sys
sys.path.insert(0, sys.argv[1])
import run
for name in sys.argv[2:]:
    __import__(name)
print(*run.BENCHMARKS)
"""


@pytest.fixture(scope="module")
def names():
    """Names of all benchmarks, told by a process that has imported every module of theirs as run.py does."""
    modules = [path.stem for path in sorted(BENCHMARKS.glob("*.py")) if path.stem != "run"]
    command = [sys.executable, "-c", IMPORT_ALL, str(BENCHMARKS), *modules]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.fixture
def gpu(monkeypatch):
    """The module benchmarks/gpu.py."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import gpu

    return gpu


def test_every_module_is_imported_and_every_benchmark_documented(names):
    """A module that no longer fits the package, or a benchmark without a line in the README, is noticed."""
    table = (BENCHMARKS / "README.md").read_text()
    assert [name for name in names if f"| `{name}` |" not in table] == []


def test_the_process_whose_memory_is_measured_reads_and_sweeps_logits(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import scores

    assert scores.memory(np.eye(6, 3, dtype=np.float32), np.arange(6) % 3)["ratio"] > 0


def test_marked_files_of_a_large_audit_leave_nothing_to_do(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import dag_scale

    assert [row["name"].rpartition(", ")[2] for row in dag_scale.measure(2)] == ["dry run", "nothing to do"]


def test_results_are_of_known_benchmarks(names):
    """Every figure that the repository keeps belongs to a benchmark that still exists, and can be missed or met."""
    results = json.loads((BENCHMARKS / "results.json").read_text())
    assert {row["benchmark"] for row in results} <= set(names)
    assert all(row["ratio"] > 0 for row in results)


def test_the_attacks_that_the_results_speak_of_are_as_strong_as_the_libraries():
    """Strength, unlike time, is no matter of the machine: a weaker attack must not be recorded in passing."""
    results = json.loads((BENCHMARKS / "results.json").read_text())
    strengths = [row for row in results if row["unit"] in ("times as strong", "times as near")]
    assert [row["name"] for row in strengths if row["ratio"] < row["target"]] == []


def test_the_readme_shows_what_the_results_hold(monkeypatch):
    """The table of the README is that of results.json, and says what was missed."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from measured import put_into, table

    readme, rows = (BENCHMARKS / "README.md").read_text(), json.loads((BENCHMARKS / "results.json").read_text())
    assert put_into(readme, rows) == readme
    short = {"benchmark": "b", "unit": "times as fast", "target": 2, "ratio": 1.5, "name": "search"}
    met, free = short | {"ratio": 2345.6}, short | {"target": None}
    many = [short | {"ratio": 3 + place, "name": f"attack {place}"} for place in range(8)]
    assert table([short, met, free]).splitlines()[2:] == [
        "| `b` | search | **1.5 times as fast, missed** | 2 |",
        "| `b` | search | 2,346 times as fast | 2 |",
        "| `b` | search | 1.5 times as fast |  |",
    ]
    assert table([short, *many]).splitlines()[2:] == [
        "| `b` | 9 comparisons, the least: search | **1.5 to 10 times as fast, missed by 1** | 2 |"
    ]
    with pytest.raises(ValueError, match="no lines"):
        put_into("# Benchmarks\n", rows)


def test_what_a_machine_cannot_measure_stays(tmp_path, names):
    """Without a GPU the figures of one that another machine measured are kept."""
    path = tmp_path / "results.json"
    path.write_text(json.dumps([{"benchmark": "gpu", "ratio": 2.0}]))
    command = [sys.executable, BENCHMARKS / "run.py", "gpu", "--output", path]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env=os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    )
    assert "gpu: this machine cannot measure it" in done.stdout
    assert json.loads(path.read_text()) == [{"benchmark": "gpu", "ratio": 2.0}]


def test_gpu_rows_of_a_linear_network(gpu):
    """The comparison itself, on a network whose work is known, with the processor in place of the device."""
    network = nn.Sequential(nn.Flatten(), nn.Linear(12, 5))
    assert gpu.operations_per_image(network, torch.rand(3, 2, 2)) == 2 * 12 * 5
    rows = list(
        gpu.compare("linear", lambda: network, (3, 2, 2), 64, device="cpu", precisions=["float32", "bfloat16"], side=64)
    )
    assert [row["target"] for row in rows] == [1, None, 1, None]
    assert all(row["ratio"] > 0 for row in rows)
    assert all("bfloat16" in row["name"] for row in rows[2:])


def test_gpu_baseline_gives_the_same_logits(gpu):
    """The plain loop computes what the workflow computes, so that only time differs."""
    network = nn.Sequential(nn.Flatten(), nn.Linear(12, 5)).eval()
    pixels = torch.rand(300, 3, 2, 2, generator=torch.Generator().manual_seed(0)).numpy()
    images = gpu.from_arrays(pixels, [0] * 300, sample_id=range(300), preprocessing="")
    ours = gpu.extract_logits(network, images, device="cpu")[2]
    assert abs(ours - gpu.plain(network, pixels, "cpu")).max() < 1e-6


@pytest.mark.parametrize("name", ["WideResNet-28-10, 3x32x32", "ResNet-50, 3x224x224"])
def test_gpu_networks_are_the_published_ones(gpu, name):
    """Parameters as the papers count them: 36.5 and 25.6 million."""
    network = gpu.NETWORKS[name][0]()
    millions = sum(value.numel() for value in network.parameters()) / 1e6
    assert millions == pytest.approx({"W": 36.5, "R": 25.6}[name[0]], abs=0.05)


def test_shortest_of_several_calls(gpu):
    """The least time counts, and the first call, which sets things up, does not."""
    calls = []
    assert gpu.by_the_clock(partial(calls.append, None), repeats=3) >= 0
    assert len(calls) == 4


# ---- parts of gpu.py ----


TRIAL = ["--device", "cpu", "--scale", "0.01"]


def gpu_script(*arguments, **environment):
    """What a process that runs benchmarks/gpu.py gives."""
    command = [sys.executable, BENCHMARKS / "gpu.py", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | environment)


def test_parts_of_the_gpu_take_two_minutes_at_most_and_ten_together(gpu):
    limits = [part.seconds for part in gpu.PARTS.values()]
    assert max(limits) <= 120
    assert sum(limits) <= 600


def test_every_gpu_part_runs_on_the_processor_at_a_hundredth_of_its_size(gpu, tmp_path):
    """Audits are planned only; the others compute."""
    size = gpu.Size("cpu", 0.01)
    computed = [name for name in gpu.PARTS if name not in ("onnx", "demo", "two-models")]
    assert {"attacks", "search", "values", "resnet-50"} <= set(computed)
    for name in computed:
        gpu.run_here(name, size, tmp_path / "gpu.json")
    (parts,) = json.loads((tmp_path / "gpu.json").read_text()).values()
    assert list(parts) == computed
    rows = [row for part in parts.values() for row in part]
    # How often the host waits is counted, and the processor waits for no device.
    counts = [row["ratio"] for row in rows if row["unit"] == "waits"]
    assert counts and set(counts) == {0}
    assert all(row["ratio"] > 0 for row in rows if row["unit"] != "waits")


@pytest.mark.parametrize("part", ["two-models", "onnx"])
def test_a_gpu_part_with_an_audit_is_tried_by_its_plan(part, tmp_path, real_data):
    """Of the last 200 images, since each of the two plans looks at all that there are."""
    network, images = "verification/cifar_base_kw.onnx", "cifar10/test_jpeg_10000.parquet"
    for name in (network, images):
        (tmp_path / name).parent.mkdir()
    (tmp_path / network).symlink_to((real_data / network).resolve())
    pq.write_table(pq.read_table(real_data / images).slice(9800), tmp_path / images)
    done = gpu_script("--part", part, *TRIAL, "--output", tmp_path / "gpu.json", GFSCORE_TEST_DATA=str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    (parts,) = json.loads((tmp_path / "gpu.json").read_text()).values()
    assert "planned only" in parts[part][0]["detail"]


def test_rows_of_other_devices_and_parts_are_kept(gpu, tmp_path):
    path = tmp_path / "gpu.json"
    path.write_text(json.dumps({"NVIDIA H100": {"values": [{"ratio": 1}]}, "other": {"search": [{"ratio": 2}]}}))
    gpu.keep(path, "NVIDIA H100", "search", [{"ratio": 3}])
    assert json.loads(path.read_text()) == {
        "NVIDIA H100": {"values": [{"ratio": 1}], "search": [{"ratio": 3}]},
        "other": {"search": [{"ratio": 2}]},
    }


def test_a_part_that_takes_too_long_is_stopped_and_keeps_its_rows(gpu, tmp_path, monkeypatch):
    path = tmp_path / "gpu.json"
    monkeypatch.setitem(gpu.PARTS, "values", gpu.Part(0.01, gpu.values))
    gpu.keep(path, "CPU", "values", [{"ratio": 1}])
    assert not gpu.run_limited("values", gpu.Size("cpu", 0.01), path)
    assert json.loads(path.read_text()) == {"CPU": {"values": [{"ratio": 1}]}}


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--part", "nothing"], "values"),
        (["--part", "values", "--device", "cpu"], "--output"),
        (["--part", "values", "--scale", "2"], "--scale"),
    ],
)
def test_what_gpu_parts_cannot_do_is_refused(gpu, monkeypatch, capsys, arguments, named):
    monkeypatch.setattr(sys, "argv", ["gpu.py", *arguments])
    with pytest.raises(SystemExit, match="2"):
        gpu.main()
    assert named in capsys.readouterr().err


def test_the_guide_shows_what_is_kept_of_gpus(gpu):
    results = json.loads(gpu.RESULTS.read_text()) if gpu.RESULTS.exists() else {}
    guide = gpu.GUIDE.read_text()
    assert gpu.put_into_guide(guide, results) == guide
    row = {"name": "PGD", "ratio": 2.5, "unit": "times as fast", "detail": "128 images", "target": 1}
    assert "| H100 | PGD | 2.5 times as fast (128 images) | 1 |" in gpu.table({"H100": {"attacks": [row]}})
