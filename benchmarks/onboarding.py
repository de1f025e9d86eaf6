"""From files of one's own to a verdict: python benchmarks/onboarding.py [--cases N | --only TEXT] [--output FILE].

Each case is one call of gfscore audit on two cores, in a fresh copy of the repository whose environment is there, with
500 real CIFAR-10 images (10,000 where the data are CIFAR's own files). What is timed ends with the page. The table of
docs/your-own-model.md is written from the same figures.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), *(str(HERE.parent / folder) for folder in ("workflow_scripts", "tests"))]

import numpy as np
import onnxruntime
import pyarrow.parquet as pq
import torch
from dag_scale import copy_of_the_repository
from safetensors.torch import load_file

from gfscore.networks.compatibility import import_torchvision
from gfscore.tables.parquet_tables import read_identity, read_logits
from helpers import inputs_of_people as people
from helpers import own_files

import_torchvision()

import timm
import transformers

DATA = Path(os.environ.get("GFSCORE_TEST_DATA", HERE.parents[1] / "shared" / "data"))
GUIDE = HERE.parent / "docs/your-own-model.md"
BEGIN, END = "<!-- onboarding: written by benchmarks/onboarding.py -->\n", "<!-- end of onboarding -->\n"
LONGEST = 300
"""Seconds that a case may take."""

ENOUGH = 20
"""Least number of attacked images of the smallest class."""

COUNT = 500
"""Images of the data, but for CIFAR's own files."""


@dataclass(frozen=True)
class Case:
    """A kind of model, a kind of data, and what is typed after gfscore audit.

    `write`: function of tests/inputs_of_people.py that writes the files and returns what plain code answers; None for
    the files of tests/own_files.py.
    """

    model: str
    data: str
    typed: str
    write: Callable | None = None


KW = "mean=0.485/0.456/0.406,std=0.225/0.225/0.225"
RESNET = "std_resnet20.pth images --architecture residual.py:resnet20 --preprocessing imagenet"
DICT = "weights.pth images --architecture with_dict.py:build"
CASES = [
    Case("ONNX, any batch", "class folders", "net.onnx images"),
    Case("ONNX, batch of 1", "Parquet", "fixed.onnx images.parquet"),
    Case("ONNX, channels last", "CSV and a flat folder", "last.onnx flat"),
    Case("ONNX of VNN-COMP 2021", "class folders", f"cifar_base_kw.onnx images --preprocessing {KW}"),
    Case("TorchScript", ".npz", "script.pt images.npz --trust-code"),
    Case("torch.export", "class folders", "program.pt2 images --trust-code"),
    Case("weights and a Python file", ".npz", "weights.pth images.npz --architecture my_networks.py:marabou"),
    Case("ResNet-20 and a Python file", "class folders", RESNET),
    Case("folder of timm", "Parquet", "hub images.parquet"),
    Case("folder of transformers", "class folders", "vit images"),
    Case("two ONNX files", "CSV and a flat folder", "net.onnx last.onnx flat/labels.csv"),
    Case("ONNX, any batch", "CIFAR's own files", "net.onnx cifar10"),
    Case("logits with labels", "none", "logits.npz"),
    Case("logits of two models", ".npz", "many.npz images.npz"),
    Case("ONNX and its data file, by torch", "class folders", "net.onnx images", people.onnx_by_todays_exporter),
    Case(
        "ONNX that ends in Softmax, channels last", "class folders", "net.onnx images",
        people.onnx_ending_in_softmax_with_channels_last,
    ),
    Case(
        "ONNX of an average of two networks", "class folders", "net.onnx images --probabilities",
        people.onnx_of_an_average_of_two,
    ),
    Case("ONNX with one sigmoid", "two class folders", "net.onnx kinds", people.onnx_with_one_sigmoid),
    Case("Python file that returns a dict", "class folders", DICT, people.python_file_with_a_dict),
    Case("ONNX in float16", "class folders", "net.onnx images", people.onnx_in_half_precision),
    Case(
        "ONNX, names in lines with numbers", "class folders", "net.onnx images --labels names.txt",
        people.names_in_lines_with_numbers,
    ),
    Case("ONNX of 1,000 classes", "folders of 10 of them", "net.onnx val", people.ten_of_a_thousand),
    Case("ONNX, any batch", ".npz as MedMNIST has it", "net.onnx data.npz", people.arrays_as_medmnist_has_them),
    Case("ONNX, any batch", "CSV as Kaggle has it", "net.onnx data", people.csv_as_kaggle_has_it),
    Case("ONNX, any batch", "photographs that are turned", "net.onnx photos", people.photographs_that_are_turned),
]  # fmt: skip


def write_files(folder):
    """Write every file that the cases without a function of their files name."""
    own_files.write_all(folder, DATA)
    shutil.copy(DATA / "verification/cifar_base_kw.onnx", folder)
    shutil.copy(DATA / "cifar10/models/std_resnet20.pth", folder)
    network = (HERE.parent / "tests/architectures/cifar.py").read_text()
    (folder / "residual.py").write_text(f"{network}\n\ndef resnet20():\n    return ResNet(blocks=3)\n")


def reference(model, folder):
    """Accuracy of a model on its data by plain code, without the package's way of opening it; None for logits."""
    x, y = own_files.real_images(DATA)
    pixels = x.astype(np.float32) / 255
    if model == "cifar_base_kw.onnx":
        session = onnxruntime.InferenceSession(folder / model)
        mean, std = (np.reshape(values, (3, 1, 1)) for values in ([0.485, 0.456, 0.406], [0.225, 0.225, 0.225]))
        images = ((pixels - mean) / std).astype(np.float32)
        name = session.get_inputs()[0].name
        logits = np.concatenate([session.run(None, {name: image[None]})[0] for image in images])
    else:
        with torch.inference_mode():
            logits = _network(model, folder)(torch.from_numpy(pixels)).numpy()
    return float((logits.argmax(axis=1) == y).mean())


def _network(model, folder):
    if model == "hub":
        network = timm.create_model("test_byobnet", num_classes=10).eval()
        network.load_state_dict(load_file(folder / "hub/model.safetensors"))
        mean, std = (torch.tensor(network.default_cfg[name]).reshape(3, 1, 1) for name in ("mean", "std"))
        return lambda images: network((images - mean) / std)
    if model == "vit":
        network = transformers.ViTForImageClassification.from_pretrained(folder / "vit").eval()
        return lambda images: network(pixel_values=images * 2 - 1).logits
    if model == "std_resnet20.pth":
        space = {}
        exec((folder / "residual.py").read_text(), space)
        network = space["resnet20"]().eval()
        stored = torch.load(folder / model, map_location="cpu", weights_only=True)["state_dict"]
        network.load_state_dict({name.removeprefix("module."): value for name, value in stored.items()}, strict=False)
        facts = json.loads((DATA / "cifar10/models/models.json").read_text())["std_resnet20"]["normalisation"]
        mean, std = (torch.tensor(facts[name]).reshape(3, 1, 1) for name in ("mean", "std"))
        return lambda images: network((images - mean) / std)
    return own_files.network(DATA)


def measure(cases):
    """Rows for benchmarks/results.json, and for the guide's table."""
    with tempfile.TemporaryDirectory() as name:
        files = Path(name) / "files"
        real = people.material(DATA, Path(name) / "material", COUNT)
        if any(case.write is None for case in cases):
            write_files(files)
        for number, case in enumerate(cases):
            folder = Path(name) / str(number)
            folder.mkdir()
            copy_of_the_repository(folder)
            if case.write:
                people.place_material(real, folder)
                accuracy = case.write(real, folder).accuracy
            else:
                for path in files.iterdir():
                    (folder / path.name).symlink_to(path)
                accuracy = reference(case.typed.split()[0], files) if "cifar10" not in case.typed else None
            yield _timed(case, folder, accuracy)


def _timed(case, folder, plain_accuracy):
    # `plain_accuracy` by plain code, None where there is none.
    typed = case.typed
    environment = os.environ | {"PYTHONPATH": str(folder / "workflow_scripts")}
    command = [sys.executable, "-P", "-m", "gfscore.workflow.command", "audit", *typed.split(), "--cores", "2"]
    started = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    taken = time.perf_counter() - started
    if done.returncode:
        raise SystemExit(f"{typed}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    verdict = json.loads(next(folder.glob("results/audits/*/verdict.json")).read_text())
    accuracy = _accuracy(folder)
    wanted = None if accuracy is None else plain_accuracy
    attacked = _attacked(folder)
    if wanted is not None and abs(accuracy - wanted) > 1e-9:
        raise SystemExit(f"{typed}: accuracy {accuracy}, {wanted} by plain code")
    if attacked is not None and attacked < ENOUGH:
        raise SystemExit(f"{typed}: {attacked} images of a class attacked, fewer than {ENOUGH}")
    shown = "" if wanted is None else f", {accuracy:.1%} right as by plain code"
    return {
        "name": f"onboarding: {case.model}; {case.data}",
        "ratio": LONGEST / taken,
        "target": 1,
        "unit": "seconds wanted over seconds needed",
        "detail": f"gfscore audit {typed}: {taken:.0f} s to {verdict['verdict']}{shown}",
        "case": {
            "model": case.model, "data": case.data, "typed": typed, "seconds": taken, "accuracy": accuracy,
            "reference": wanted, "attacked": attacked,
        },
    }  # fmt: skip


def _accuracy(folder):
    # Of the first model whose logits were computed.
    for path in sorted(folder.glob("results/logits/*/*/*.parquet")):
        _, labels, logits = read_logits(path)
        return float((logits.argmax(axis=1) == labels).mean())
    return None


def _attacked(folder):
    for path in sorted(folder.glob("results/samples/adversarial-*/*/*/*.parquet")):
        assert read_identity(path)["measure"].startswith("adversarial")
        labels = pq.read_table(path, columns=["label"])["label"].to_numpy()
        return int(np.bincount(labels).min())
    return None


def table(rows):
    """Markdown table of the cases."""
    lines = ["| model | data | `gfscore audit ...` | seconds | accuracy (by plain code) | attacked of a class |"]
    lines += ["| --- | --- | --- | ---: | ---: | ---: |"]
    for row in rows:
        case = row["case"]
        known = "" if case["reference"] is None else f" ({case['reference']:.1%})"
        accuracy = "as given" if case["accuracy"] is None else f"{case['accuracy']:.1%}{known}"
        attacked = "none" if case["attacked"] is None else f"{case['attacked']:,} or more"
        cells = [case["model"], case["data"], f"`{case['typed']}`", f"{case['seconds']:.0f}", accuracy, attacked]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def rows():
    """Yield all cases, which are put into the guide once they are measured."""
    found = []
    for row in measure(CASES):
        found.append(row)
        yield row
    text = GUIDE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    GUIDE.write_text(f"{before}{BEGIN}\n{table(found)}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, help="the first so many alone, and no table")
    parser.add_argument("--only", help="cases whose kinds or command hold this text, and no table")
    parser.add_argument("--output", type=Path, help="where the rows go, as JSON")
    given = parser.parse_args()
    some = CASES[: given.cases]
    if given.only:
        some = [case for case in some if given.only in f"{case.model}; {case.data}; {case.typed}"]
    made = list(measure(some) if len(some) < len(CASES) else rows())
    for row in made:
        print(f"{row['name']}: {row['detail']}")
    if given.output:
        given.output.write_text(json.dumps(made), encoding="utf-8")
