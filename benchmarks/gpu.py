"""What a GPU does for the project, in parts of at most two minutes: python benchmarks/gpu.py [--part NAME ...].

Without --part all parts run, each in a process of its own that ends at its time limit: ten minutes together. Rows go to
gpu.json by the name of the device and of the part; those of other devices and parts stay, and a part that is stopped
keeps the rows that it had. Times are by the clock, since the device works meanwhile. A trial on the processor is a
hundredth in size, with small networks, and plans the audits only:

    python benchmarks/gpu.py --device cpu --scale 0.01 --output trial.json
"""

import argparse
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE), str(ROOT / "workflow_scripts")]

import foolbox
import numpy as np
import torch
from pyautoattack.autopgd_base import APGDAttack
from timing import row
from torch.utils.flop_counter import FlopCounterMode

from gfscore.attacks.ball_attacks import auto_pgd, pgd
from gfscore.attacks.goals import LOG_ODDS
from gfscore.attacks.minimal_norm import deepfool, fmn
from gfscore.attacks.search import on_device
from gfscore.core.files import write_text
from gfscore.images.image_set import from_arrays
from gfscore.measures import KINDS
from gfscore.networks.classifier import from_network
from gfscore.networks.compatibility import import_robustbench, import_torchvision
from gfscore.networks.inference import extract_logits
from gfscore.networks.precision import reproducible_arithmetic, search_precision, tensor_float
from gfscore.statistics.draws import Draws, seeds_of_samples

RESULTS, GUIDE = HERE / "gpu.json", ROOT / "docs/cluster.md"
BEGIN, END = "<!-- gpu: made by benchmarks/gpu.py -->\n", "<!-- end of gpu -->\n"

PRECISIONS = ("float32", "tf32", "bfloat16")

PLAIN_BATCH = 128
"""Images per batch of the paper's loop."""

MATRIX = 8192
"""Side of the square matrices whose product shows what the device can do."""


def _wide_resnet(depth, width):
    import_robustbench()
    module = import_module("robustbench.model_zoo.architectures.wide_resnet")
    return module.WideResNet(depth=depth, widen_factor=width)


def _of_torchvision(name):
    return getattr(import_torchvision().models, name)()


NETWORKS = {
    "WideResNet-28-10, 3x32x32": (partial(_wide_resnet, 28, 10), (3, 32, 32), 4_096),
    "WideResNet-70-16, 3x32x32": (partial(_wide_resnet, 70, 16), (3, 32, 32), 1_024),
    "ResNet-50, 3x224x224": (partial(_of_torchvision, "resnet50"), (3, 224, 224), 2_048),
    "WideResNet-50-2, 3x224x224": (partial(_of_torchvision, "wide_resnet50_2"), (3, 224, 224), 1_024),
}
"""Name -> function that builds it, shape of the images, how many: about half a minute in all precisions, where a
GPU does 20 tera-operations a second in float32."""


def plain(network, pixels, device):
    """Logits as the paper computes them: batches of float32 arrays, moved to the device and back one by one."""
    with torch.no_grad():
        starts = range(0, len(pixels), PLAIN_BATCH)
        batches = (torch.from_numpy(pixels[start : start + PLAIN_BATCH]).to(device) for start in starts)
        return np.concatenate([network(batch).cpu().numpy() for batch in batches])


def operations_per_image(network, image):
    """Floating-point operations of one forward pass, a product and a sum counted as two."""
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        network(image[None])
    return counter.get_total_flops()


def products_per_second(precision, device, *, side=MATRIX):
    """Floating-point operations per second of a product of square matrices in a precision."""
    kind = torch.bfloat16 if precision == "bfloat16" else torch.float32
    left, right = (torch.rand(side, side, device=device, dtype=kind) for _ in range(2))

    def multiply():
        # Read back, so that the product is finished.
        return float((left @ right)[0, 0])

    with tensor_float(precision == "tf32"):
        return 2 * side**3 / by_the_clock(multiply)


def by_the_clock(function, repeats=3):
    """Least seconds that a function takes, after one call that is not counted."""
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def compare(name, build, shape, count, *, device, precisions=PRECISIONS, side=MATRIX):
    """Rows on one network: in each precision images per second beside the plain loop, and beside the ceiling."""
    network = build().eval().to(device)
    pixels = np.random.default_rng(0).random((count, *shape), dtype=np.float32)
    images = from_arrays(pixels, np.zeros(count, dtype=np.int64), sample_id=np.arange(count), preprocessing="")
    # The first use of the GPU too: what it reads then holds for all that follows.
    with reproducible_arithmetic():
        work = operations_per_image(network, torch.from_numpy(pixels[0]).to(device))
        slow = count / by_the_clock(partial(plain, network, pixels, device))
    for precision in precisions:
        how = {"device": device, "precision": precision}
        fast = count / by_the_clock(partial(extract_logits, network, images, **how))
        ceiling = products_per_second(precision, device, side=side) / work
        yield row(
            f"logits on a GPU, {name}, {precision}",
            fast / slow,
            f"{count:,} images, {fast:,.0f} per second; plain loop in float32 {slow:,.0f}",
            target=1,
            unit="of the plain loop's throughput",
        )
        yield row(
            f"logits on a GPU, {name}, {precision}, beside products of matrices",
            fast / ceiling,
            f"{work / 1e9:.2f} GFLOP per image; a product of {side} x {side} matrices is worth {ceiling:,.0f} images "
            "per second",
            unit="of the ceiling",
        )


def rows():
    """Logits of every network, where there is a GPU."""
    if torch.cuda.is_available():
        for name, (build, shape, count) in NETWORKS.items():
            yield from compare(name, build, shape, count, device="cuda")


# ---- parts ----


@dataclass(frozen=True)
class Size:
    """How much a part computes: device, share of the full numbers of images, and side of matrices."""

    device: str = "cuda"
    scale: float = 1.0

    @property
    def small(self) -> bool:
        """Whether networks are small stand-ins, and audits are planned only."""
        return self.scale < 1

    def images(self, count: int) -> int:
        """Number of images, of `count` at full size."""
        return max(4, round(count * self.scale))


@dataclass(frozen=True)
class Part:
    """Part of the benchmark: its time limit in seconds, and the function that yields its rows."""

    seconds: int
    rows: Callable[[Size], Iterator[dict]]


STEPS, EPS = 10, 1e-6
"""Gradient steps of an attack, in a ball so small that no image falls and every step is done."""


def logits(size, *, network):
    """Logits of one network in every precision that the device has."""
    build, shape, count = NETWORKS[network]
    if size.small:
        build, shape = partial(_wide_resnet, 10, 1), (3, 32, 32)
    side = 256 if size.small else MATRIX
    precisions = [name for name in PRECISIONS if size.device == "cuda" or name != "tf32"]
    yield from compare(network, build, shape, size.images(count), device=size.device, precisions=precisions, side=side)


def attacked_network(size):
    """WideResNet-28-10, images (n, 3, 32, 32), and the labels that it gives them."""
    torch.manual_seed(0)
    network = (_wide_resnet(10, 1) if size.small else _wide_resnet(28, 10)).eval().to(size.device)
    network.requires_grad_(False)
    pixels = np.random.default_rng(0).random((size.images(128), 3, 32, 32), dtype=np.float32)
    with torch.no_grad():
        labels = network(torch.from_numpy(pixels).to(size.device)).argmax(1).cpu().numpy().astype(np.int64)
    return network, pixels, labels


def measured(network, pixels, labels, *, attack, search, eps=EPS):
    """Columns of the measure `adversarial` by one attack, searched in a given arithmetic."""
    classifier = replace(from_network(network), search=search)
    settings = {"norm": "linf", "eps": eps, "attacks": [attack], "seed": 0}
    seeds = seeds_of_samples(0, "adversarial", np.arange(len(pixels)))
    kind = KINDS["adversarial"]
    return kind.load()(classifier, pixels, labels, settings=kind.parse(settings), seeds=seeds)


PGD = {"name": "pgd", "steps": STEPS, "step_size": EPS / 8, "restarts": 1}
AUTO_PGD = {"name": "apgd-ce", "steps": STEPS, "restarts": 1}


FEW = 8
"""Images of which the waits of an attack are counted."""


def waits(run, device):
    """How often the host waits for the device in a function; never for the processor."""
    if device == "cpu":
        run()
        return 0
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            run()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return sum("synchronizing" in str(warning.message) for warning in caught)


def waits_of_steps(network, x, y, device):
    """Rows: how often the host waits in a step of each attack, none of which fools an image."""
    draws = Draws.of(seeds_of_samples(0, "adversarial", np.arange(len(x))), x.device)
    in_ball = {"ball": {"norm": "linf", "eps": EPS}, "draws": draws, "restarts": 1}
    by_distance = {"norm": "l2", "largest_distance": 3.0}
    searches = {
        "PGD": partial(pgd, network, x, y, step_size=EPS / 8, **in_ball),
        "Auto-PGD": partial(auto_pgd, network, x, y, goal=LOG_ODDS, **in_ball),
        # Steps that stay before the boundary, so that no image is done.
        "DeepFool": partial(deepfool, network, x, y, overshoot=-0.999, **by_distance),
        "FMN": partial(fmn, network, x, y, **by_distance),
    }
    for name, run in searches.items():
        shorter, longer = (waits(partial(run, steps=steps), device) for steps in (STEPS, 2 * STEPS))
        yield row(
            f"waits for the device in a step of {name}", (longer - shorter) / STEPS,
            f"{longer} in {2 * STEPS} steps, {shorter} in {STEPS}", unit="waits",
        )  # fmt: skip


def attacks(size):
    """PGD beside bare passes in float32, PGD and Auto-PGD beside libraries as they come."""
    network, pixels, labels = attacked_network(size)
    _, x, y = on_device(from_network(network), pixels, labels)
    wait = torch.cuda.synchronize if size.device == "cuda" else float

    def bare():
        for _ in range(STEPS):
            points = x.clone().requires_grad_()
            loss = torch.nn.functional.cross_entropy(network(points), y, reduction="sum")
            torch.autograd.grad(loss, points)
        wait()

    def ours_in_float32():
        draws = Draws.of(seeds_of_samples(0, "adversarial", np.arange(len(x))), x.device)
        options = {key: value for key, value in PGD.items() if key != "name"}
        pgd(network, x, y, ball={"norm": "linf", "eps": EPS}, draws=draws, **options)
        wait()

    with reproducible_arithmetic():
        passes, ours = by_the_clock(bare, 2), by_the_clock(ours_in_float32, 2)
        search = search_precision("auto", from_network(network), device=size.device)
        searching = {
            attack["name"]: by_the_clock(partial(measured, network, pixels, labels, attack=attack, search=search), 2)
            for attack in (PGD, AUTO_PGD)
        }
        yield from waits_of_steps(network, x[:FEW], y[:FEW], size.device)
    model = foolbox.PyTorchModel(network, bounds=(0, 1), device=size.device)
    library = foolbox.attacks.LinfPGD(abs_stepsize=EPS / 8, steps=STEPS, random_start=True)

    def by_foolbox():
        library.run(model, x, foolbox.criteria.Misclassification(y), epsilon=EPS)
        wait()

    auto = APGDAttack(network, norm="Linf", eps=EPS, n_iter=STEPS, loss="ce", seed=0, device=size.device)

    def by_pyautoattack():
        auto.perturb(x, y)
        wait()

    detail = f"{len(x)} images, {STEPS} steps"
    yield row(
        "PGD in float32 beside bare passes", passes / ours, f"{detail}, {ours:.3g} s", target=1 / 1.1,
        unit="of the rate of bare forward and backward passes",
    )  # fmt: skip
    theirs = by_the_clock(by_foolbox, 2)
    taken = searching["pgd"]
    yield row(f"PGD, searched in {search}, beside foolbox", theirs / taken, f"{detail}, {taken:.3g} s", target=1)
    theirs, taken = by_the_clock(by_pyautoattack, 2), searching["apgd-ce"]
    yield row(
        f"Auto-PGD, searched in {search}, beside pyautoattack", theirs / taken, f"{detail}, {taken:.3g} s", target=1
    )


def search(size):
    """The default search beside that in float32, and the share of samples that both judge alike."""
    network, pixels, labels = attacked_network(size)
    precision = search_precision("auto", from_network(network), device=size.device)
    with reproducible_arithmetic():
        times = {}
        for name in ("float32", precision):
            function = partial(measured, network, pixels, labels, attack=PGD, search=name)
            times[name] = by_the_clock(function, 2)
        yield row(
            f"search in {precision} beside float32, PGD", times["float32"] / times[precision],
            f"{len(pixels)} images, {times[precision]:.3g} s", target=5, unit="times as fast",
        )  # fmt: skip
        attack = {**PGD, "step_size": None}
        values = []
        for name in ("float32", precision):
            values.append(measured(network, pixels, labels, attack=attack, search=name, eps=1 / 255)["value"])
    yield row(
        f"robust accuracy searched in {precision} beside float32", 1 - abs(values[0].mean() - values[1].mean()),
        f"{values[1].mean():.4f} beside {values[0].mean():.4f}", target=0.998, unit="1 - difference",
    )  # fmt: skip


def values(size):
    """Values of measures on the device beside those on the processor."""
    torch.manual_seed(0)
    network = _wide_resnet(10, 1).eval()
    pixels = np.random.default_rng(0).random((size.images(64), 3, 32, 32), dtype=np.float32)
    with torch.no_grad():
        labels = network(torch.from_numpy(pixels)).argmax(1).numpy().astype(np.int64)
    entries = {
        "adversarial": {"norm": "linf", "eps": 1 / 255, "attacks": [{**PGD, "step_size": None}]},
        "targeted": {"norm": "linf", "eps": 1 / 255, "steps": STEPS, "step_size": None, "restarts": 1},
        "minimal": {"norm": "l2", "largest_distance": 3.0, "bisection_steps": 12, "attacks": [{"name": "fmn"}]},
    }
    for kind, settings in entries.items():
        columns = {}
        for device in ("cpu", size.device):
            seeds = seeds_of_samples(0, kind, np.arange(len(pixels)))
            how = {"settings": KINDS[kind].parse({**settings, "seed": 0}), "seeds": seeds}
            with reproducible_arithmetic():
                columns[device] = KINDS[kind].load()(from_network(network.to(device)), pixels, labels, **how)["value"]
        difference = np.abs(columns["cpu"] - columns[size.device])
        yield row(
            f"values of {kind} beside the processor's", (difference <= 1e-3).mean(),
            f"{len(difference)} values, largest difference {difference.max():.1e}", target=0.998,
            unit="of the values within 0.001",
        )  # fmt: skip


TWO_MODELS = ("gfscore.workflow.running", "--configfile", "config.yaml", "tests/workflow/two_models.yaml")
DEMO = ("gfscore.workflow.running",)


def audit(size, *, name, command, statuses=(0,)):
    """A run with the GPU beside the same with `CUDA_VISIBLE_DEVICES=`, each in a fresh copy of the repository."""
    seconds = {}
    only = ", planned only" if size.small else ""
    for devices in (None, ""):
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "repository"
            skipped = shutil.ignore_patterns("results", ".git", ".snakemake", ".venv*", ".gpu", "__pycache__")
            shutil.copytree(ROOT, copy, ignore=skipped)
            environment = os.environ | {"PYTHONPATH": "workflow_scripts"}
            if devices is not None or size.device == "cpu":
                environment["CUDA_VISIBLE_DEVICES"] = ""
            planned = ["--dry-run"] if size.small else []
            start = time.perf_counter()
            done = subprocess.run(
                [sys.executable, "-P", "-m", *command, "--cores", str(os.cpu_count()), *planned],
                cwd=copy, env=environment, capture_output=True, text=True, check=False,
            )  # fmt: skip
            seconds[devices] = time.perf_counter() - start
        if done.returncode not in statuses:
            raise SystemExit(f"{name}: status {done.returncode}\n{(done.stdout + done.stderr)[-2000:]}")
        if devices is None:
            # At once: the other run may not come to its end.
            yield row(f"{name}, start to end", seconds[None], f"{os.cpu_count()} cores{only}", unit="seconds")
    yield row(
        f"{name} beside the same without a GPU", seconds[""] / seconds[None],
        f"{seconds[None]:.0f} s, {seconds['']:.0f} s without{only}", target=1, unit="times as fast",
    )  # fmt: skip


def onnx_file(size):
    """An ONNX file and CIFAR-10's test images, those of the test data, to a verdict."""
    data = Path(os.environ.get("GFSCORE_TEST_DATA") or os.environ.get("DATA") or ROOT.parent / "shared/data")
    files = [data / "verification/cifar_base_kw.onnx", data / "cifar10/test_jpeg_10000.parquet"]
    missing = [str(file) for file in files if not file.exists()]
    if missing:
        raise SystemExit(f"onnx: no {', '.join(missing)}; GFSCORE_TEST_DATA names the folder with the test data")
    command = ("gfscore.workflow.command", "audit", *map(str, files), "--preprocessing", "imagenet")
    # By the verdict: PASS, FAIL, INCONCLUSIVE.
    yield from audit(size, name="ONNX file", command=command, statuses=(0, 1, 2))


def _parts():
    parts = {}
    for network in NETWORKS:
        short = network.partition(",")[0].lower()
        parts[short] = Part(60 if "70-16" in short else 40, partial(logits, network=network))
    parts["attacks"] = Part(50, attacks)
    parts["search"] = Part(40, search)
    parts["values"] = Part(50, values)
    parts["two-models"] = Part(80, partial(audit, name="two-model audit", command=TWO_MODELS))
    parts["onnx"] = Part(80, onnx_file)
    parts["demo"] = Part(120, partial(audit, name="demo", command=DEMO))
    return parts


PARTS = _parts()
"""All parts by name, the short ones first; their limits are ten minutes together."""


# ---- results ----


def device_name(device):
    """Name by which results are kept: the GPU's, or that of the processor's architecture."""
    if device == "cuda":
        return torch.cuda.get_device_name()
    return f"CPU ({platform.machine()})"


def keep(path, device, part, part_rows):
    """Write the rows of one part on one device; those of other parts and devices stay."""
    results = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    results.setdefault(device, {})[part] = part_rows
    write_text(path, json.dumps(results, indent=2) + "\n")


def table(results):
    """Markdown table of the rows of all devices."""
    lines = ["| device | what | measured | wanted |", "| --- | --- | --- | --- |"]
    for device, parts in results.items():
        for part_rows in parts.values():
            for entry in part_rows:
                wanted = "" if entry["target"] is None else f"{entry['target']:.3g}"
                value = f"{entry['ratio']:.3g} {entry['unit']} ({entry['detail']})"
                lines.append(f"| {device} | {entry['name']} | {value} | {wanted} |")
    if len(lines) == 2:
        return "No figures are kept yet: `python benchmarks/gpu.py`, on a machine with a GPU, writes them here.\n"
    return "\n".join(lines) + "\n"


def put_into_guide(guide, results):
    """Text of docs/cluster.md with the table between its two marks."""
    before, _, rest = guide.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table(results)}\n{END}{after}"


def run_here(name, size, output):
    """Run one part in this process, and keep each row as soon as it is there."""
    part_rows = []
    for entry in PARTS[name].rows(size):
        part_rows.append(entry)
        keep(output, device_name(size.device), name, part_rows)
        print(f"{entry['name']}: {entry['ratio']:.3g} {entry['unit']}\n    {entry['detail']}", flush=True)


def run_limited(name, size, output):
    """Run one part in a process of its own until its time limit; whether it came to its end."""
    command = [sys.executable, __file__, "--part", name, "--in-process", "--device", size.device]
    command += ["--scale", str(size.scale), "--output", str(output)]
    process = subprocess.Popen(command, start_new_session=True)
    try:
        status = process.wait(timeout=PARTS[name].seconds)
    except subprocess.TimeoutExpired:
        # Its group: an audit has processes of its own.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        print(f"{name}: stopped after {PARTS[name].seconds} s", flush=True)
        return False
    if status:
        print(f"{name}: ended with status {status}", flush=True)
    return status == 0


def main():
    """Run the parts that are asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="parts: " + ", ".join(f"{name} ({part.seconds} s)" for name, part in PARTS.items()),
    )  # fmt: skip
    parser.add_argument("--part", action="append", choices=PARTS, metavar="NAME", help="a part, may be repeated")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu for a trial")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full size")
    parser.add_argument("--output", type=Path, default=RESULTS, help="where the rows go")
    parser.add_argument("--in-process", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if not 0 < given.scale <= 1:
        parser.error(f"--scale {given.scale:g}: give a share above 0, at most 1")
    if given.device == "cuda" and not torch.cuda.is_available():
        parser.error("torch finds no CUDA device; --device cpu --scale 0.01 --output FILE tries the parts without one")
    if given.output == RESULTS and (given.device == "cpu" or given.scale < 1):
        parser.error("a trial is kept in a file of its own: give --output FILE")
    size, names = Size(given.device, given.scale), given.part or list(PARTS)
    if given.in_process:
        for name in names:
            run_here(name, size, given.output)
        return
    stopped = [name for name in names if not run_limited(name, size, given.output)]
    if given.output == RESULTS and RESULTS.exists():
        results = json.loads(RESULTS.read_text(encoding="utf-8"))
        write_text(GUIDE, put_into_guide(GUIDE.read_text(encoding="utf-8"), results))
    if stopped:
        raise SystemExit(f"not finished: {', '.join(stopped)}")


if __name__ == "__main__":
    main()
