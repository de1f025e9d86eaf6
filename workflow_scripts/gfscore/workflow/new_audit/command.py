"""gfscore audit: from files to a verdict. Writes audits/NAME.yaml, and runs Snakemake on it."""

from __future__ import annotations

import argparse
import difflib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import fields
from json import loads
from pathlib import Path
from typing import Any

from gfscore.core.errors import InputError
from gfscore.core.names import harmless, on_one_line, printable, require_utf8, shell_word
from gfscore.workflow.config_files import parsed
from gfscore.workflow.jobs import set_job_variables
from gfscore.workflow.new_audit.request import DEFAULTS, Request

FOLDER = Path("audits")
MOST_RADII = 3

MAKE = {
    "AUDIT": "--name", "ARCHITECTURE": "--architecture", "PREPROCESSING": "--preprocessing", "LABELS": "--labels",
    "ARRAYS": "--arrays", "VALUE_RANGE": "--value-range", "IMAGE_FOLDER": "--image-folder",
    "ORIENTATION": "--orientation", "NORM": "--norm", "EPS": "--eps", "SIZE": "--size", "MINUTES": "--minutes",
    "OUTPUT": "--output", "PROBABILITIES": "--probabilities", "DEVICE": "--device", "TRUST_CODE": "--trust-code",
    "FORCE": "--force",
}  # fmt: skip
"""Options by Make's variables."""

FLAGS = ("PROBABILITIES", "TRUST_CODE", "FORCE")
"""Those of them that take no value."""

DESCRIPTION = """\
Audit models of your own on data of your own. Looks at both, says what was found, writes audits/NAME.yaml and runs it;
results/audits/NAME/report.html is the page. A second time the file that stands there is run as it is.

MODEL  .onnx; .pth, .pt or .safetensors with --architecture; TorchScript and .pt2 with --trust-code; a folder with
       config.json and model.safetensors; a timm or torchvision name with weights on this machine; a folder of these;
       or logits: .npz, .parquet, .csv
DATA   class folders; images with a CSV file of path and label; arrays of images and labels, .npz or .npy; Parquet with
       image and label; CIFAR's own files. For logits: a file of labels, or none where they hold their labels

exit status:
  0  the audit ran; its verdict is on the page, and gfscore gate NAME asks for it
  3  refused, or a step failed

examples:
  gfscore audit net.onnx images/
  gfscore audit weights.pth images.npz --architecture my_networks.py:small --minutes 20
  gfscore audit logits.npz
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.set_defaults(run=lambda given: run(parser.parse_args(_of_make(), given) if given.of_make else given))
    parser.add_argument("files", nargs="*", metavar="MODEL ... DATA", help="models, then data")
    parser.add_argument("--of-make", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--name", help="name of the audit; by default that of the model's file")
    parser.add_argument("--architecture", metavar="WHAT", help="timm:NAME, torchvision:NAME or FILE.py:FUNCTION")
    parser.add_argument(
        "--preprocessing", metavar="HOW",
        help="none, imagenet, cifar10, half or mean=M/M/M,std=S/S/S, and bgr and 255 where they apply: imagenet,bgr",
    )  # fmt: skip
    parser.add_argument(
        "--labels",
        metavar="NAMES",
        help="names of the outputs, separated by commas or in a file (text, JSON, YAML, CSV); or position",
    )
    parser.add_argument(
        "--arrays", metavar="IMAGES,LABELS", help="names of two arrays of a .npz file or a folder of .npy files"
    )
    parser.add_argument(
        "--value-range", choices=["1", "255", "signed"], help="value of white in arrays; signed: from -1 to 1"
    )
    parser.add_argument("--image-folder", metavar="FOLDER", help="folder that the names in a CSV file count from")
    parser.add_argument(
        "--norm", choices=["linf", "l2"], default=DEFAULTS["norm"], help="norm of the attacks; by default linf"
    )
    parser.add_argument(
        "--eps", metavar="RADII", help="up to three radii, separated by commas, the gate's first: 8/255,4/255"
    )
    parser.add_argument("--size", type=int, metavar="PIXELS", help="side of the images; by default what the model says")
    parser.add_argument(
        "--orientation",
        choices=["stored", "exif"],
        help="read images as they are stored, or turned by their EXIF orientation; by default what surely fits better",
    )
    parser.add_argument(
        "--minutes", type=float, default=DEFAULTS["minutes"], help="what the audit may take: the samples follow from it"
    )
    parser.add_argument(
        "--output", metavar="NAME", help="output with the logits, or its place from 0, where several may be it"
    )
    parser.add_argument(
        "--probabilities", action="store_true", help="take logarithms where a model gives probabilities alone"
    )
    parser.add_argument(
        "--device", choices=["auto", "cpu", "cuda"], default=DEFAULTS["device"],
        help="where the models run; by default a GPU where it saves time",
    )  # fmt: skip
    parser.add_argument("--trust-code", action="store_true", help="open TorchScript and .pt2, which are code")
    parser.add_argument("--force", action="store_true", help="look again, and replace audits/NAME.yaml")
    parser.add_argument("--dry-run", action="store_true", help="write the file, run nothing")
    parser.add_argument(
        "--cores", type=int, default=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2
    )


def run(given: argparse.Namespace) -> int:
    """Carry the command out; returns the exit status."""
    if not Path("Snakefile").is_file():
        raise InputError(f"{Path.cwd()}: no Snakefile here; run gfscore audit in the folder of the project")
    request = request_of(given)
    command = " ".join(map(shell_word, ["gfscore", "audit", *_words(given)]))
    standing = _standing(command, given)
    if standing is None:
        found = inspected(request)
        for line in found["said"]:
            print(on_one_line(line), flush=True)
        standing = _written(found, command, force=given.force)
    if given.dry_run:
        print(f"Run it with: {shlex.join(['make', 'audit', f'CONFIG={standing}'])}")
        return 0
    from gfscore.workflow.running import run_workflow

    return run_workflow(["--configfile", str(standing)], cores=given.cores)


def request_of(given: argparse.Namespace) -> Request:
    """Request that the options make; raises InputError for what no file is needed to refuse."""
    from gfscore.core.settings import NAME_FORM, as_number
    from gfscore.images.dataset_source import LARGEST_SIDE

    if not given.files:
        raise InputError("name a model and its data: gfscore audit net.onnx images/")
    for word in (*given.files, given.architecture, given.labels, given.preprocessing):
        require_utf8(word or "", where="gfscore audit")
    *models, data = given.files if len(given.files) > 1 else [given.files[0], None]
    radii = tuple(part.strip() for part in (given.eps or "").split(",") if part.strip())
    if len({*radii}) < len(radii):
        raise InputError(f"--eps {given.eps}: a radius stands twice; give each once")
    if len(radii) > MOST_RADII:
        raise InputError(
            f"--eps {given.eps}: {len(radii)} radii; give up to {MOST_RADII}, and more in the audit's file"
        )
    for radius in radii:
        try:
            value = float(as_number(radius))
        except ValueError as error:
            raise InputError(f"--eps {radius}: no number; give one, or a fraction such as 8/255") from error
        if not 0 < value <= (1 if given.norm == "linf" else 1e3):
            raise InputError(f"--eps {radius}: pixels are in [0, 1]; give a radius such as 8/255")
    if not 0 < given.minutes < 1e5:
        raise InputError(f"--minutes {given.minutes:g}: give the minutes that the audit may take")
    if given.size is not None and not 1 <= given.size <= LARGEST_SIDE:
        raise InputError(f"--size {given.size}: give the side of the images in pixels, 1 to {LARGEST_SIDE}")
    if given.name and not NAME_FORM.fullmatch(given.name):
        raise InputError(f"--name {given.name}: use letters, digits and . _ + -")
    options = {field.name for field in fields(Request)} - {"models", "data", "eps"}
    return Request(tuple(models), data, eps=radii, **{option: getattr(given, option) for option in options})


def _of_make() -> list[str]:
    # The command that Make's variables stand for, which it passes by the environment, so that no shell reads them.
    said = {name: os.environ.get(name, "") for name in ("MODEL", "DATA", *MAKE)}
    # Several models are separated by blanks, which a single file may have in its name.
    models = [said["MODEL"]] if Path(said["MODEL"]).exists() else shlex.split(said["MODEL"])
    options = [
        option if name in FLAGS else f"{option}={said[name]}"
        for name, option in MAKE.items()
        if said[name] and not (name in FLAGS and said[name] == "0")
    ]
    return [*options, "--", *models, *filter(None, [said["DATA"]])]


def _words(given: argparse.Namespace) -> list[str]:
    # The command as it was typed, without what changes nothing in the file.
    shown = dict(vars(given))
    words = list(shown.pop("files"))
    for option, value in shown.items():
        if option in ("run", "of_make", "force", "dry_run", "cores") or value in (None, False, DEFAULTS.get(option)):
            continue
        words += [
            f"--{option.replace('_', '-')}",
            *([] if value is True else [f"{value:g}" if option == "minutes" else str(value)]),
        ]
    return words


def _standing(command, given):
    # File that this very command wrote before, unless it is to be written anew.
    if given.force:
        return None
    first = f"# Written by: {command}"
    for path in sorted(FOLDER.glob("*.yaml")):
        with path.open(encoding="utf-8", errors="replace") as file:
            if file.readline().rstrip("\n") == first:
                print(f"{printable(path)}: run as it stands; --force (make: FORCE=1) looks at the files again")
                return path
    return None


def inspected(request: Request) -> Mapping[str, Any]:
    """What `inspecting` found, in a process of its own; raises InputError with what it refuses."""
    print(
        f"Looking at {', '.join(map(printable, request.models))} and {printable(request.data or 'its labels')}",
        flush=True,
    )
    with tempfile.TemporaryDirectory() as folder:
        reply = Path(folder, "reply.json")
        command = [sys.executable, "-P", "-m", "gfscore.workflow.new_audit.inspection", str(reply)]
        set_job_variables()
        done = subprocess.run(command, input=request.text(), text=True, stderr=subprocess.PIPE, check=False)
        if not reply.is_file():
            last = (done.stderr or "").strip().splitlines()[-1:] or ["it said nothing"]
            how = "was killed, usually as memory ran out" if done.returncode < 0 else "ended by itself"
            raise InputError(f"{', '.join(request.models)}: the process that looked at it {how} ({last[0][:200]})")
        found: Mapping[str, Any] = loads(reply.read_text(encoding="utf-8"))
    if "error" in found:
        raise InputError(found["error"])
    return found


def _without_comments(text):
    return [line for line in text.splitlines() if not line.strip().startswith("#")]


def _written(found, command, *, force):
    from gfscore.core.files import write_text

    path = FOLDER / f"{found['name']}.yaml"
    text = f"# Written by: {command}\n{found['text']}"
    if parsed(text, str(path)) != found["sections"]:
        raise InputError(
            f"{path}: not written, as it would be read otherwise than meant; rename the files of models and data so "
            "that their names hold letters, digits and . _ + - alone"
        )
    if path.is_file() and not force:
        old = path.read_text(encoding="utf-8", errors="replace")
        if _without_comments(old) != _without_comments(text):
            lines = difflib.unified_diff(
                old.splitlines(), text.splitlines(), str(path), "as it would be", lineterm="", n=0
            )
            print(harmless("\n".join(lines)))
            raise InputError(
                f"{path}: stands already, and would change as shown; add --force (make: FORCE=1), or --name"
            )
    for new, old in found["copies"].items():
        target, content = Path(new), Path(old).read_bytes()
        if target.is_file() and target.read_bytes() != content and not force:
            raise InputError(
                f"{target}: another file of this name stands there; rename {old}, or add --force (make: FORCE=1)"
            )
        target.parent.mkdir(exist_ok=True)
        if not (target.is_file() and target.read_bytes() == content):
            shutil.copyfile(old, target)
            print(f"{printable(target)}: copied from {printable(old)}, which may be edited without effect from now on")
    FOLDER.mkdir(exist_ok=True)
    write_text(path, text)
    print(f"{printable(path)}: written; edit it to change what is measured and judged", flush=True)
    return path
