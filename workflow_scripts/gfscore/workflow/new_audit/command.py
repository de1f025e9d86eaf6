"""gfscore audit: from files to a verdict. Writes audits/NAME.yaml, and runs Snakemake on it."""

import argparse
import difflib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from gfscore.core.errors import InputError
from gfscore.core.files import write_text
from gfscore.core.names import harmless, on_one_line, printable, require_utf8, shell_word
from gfscore.core.settings import NAME_FORM, as_number
from gfscore.images.dataset_source import LARGEST_SIDE
from gfscore.workflow.config_files import read_file
from gfscore.workflow.jobs import set_job_variables
from gfscore.workflow.new_audit import audit_file
from gfscore.workflow.new_audit.paths import require_paths
from gfscore.workflow.new_audit.request import DEFAULTS, Inspection, Request
from gfscore.workflow.running import require_writable, run_workflow

FOLDER = Path("audits")
MOST_RADII = 3
LARGEST_RADII = {"linf": 1.0, "l2": 1e3}

LONGEST = 1e5
"""Minutes of an audit."""

LONGEST_LINE = 200
"""Characters of the last line of a process that died."""

MAKE = {
    "AUDIT": "--name", "ARCHITECTURE": "--architecture", "PREPROCESSING": "--preprocessing", "LABELS": "--labels",
    "ARRAYS": "--arrays", "VALUE_RANGE": "--value-range", "IMAGE_FOLDER": "--image-folder",
    "ORIENTATION": "--orientation", "NORM": "--norm", "EPS": "--eps", "SIZE": "--size", "MINUTES": "--minutes",
    "OUTPUT": "--output", "PROBABILITIES": "--probabilities", "DEVICE": "--device", "TRUST_CODE": "--trust-code",
    "FORCE": "--force",
}  # fmt: skip
"""Options by Make's variables."""

FLAGS = ("PROBABILITIES", "TRUST_CODE", "FORCE")
"""Variables whose options take no value: they are set by a word of ON, and not by one of OFF."""

ON = ("1", "yes", "true", "on")
OFF = ("", "0", "no", "false", "off")

DESCRIPTION = """\
Audit models of your own on data of your own. Looks at both, says what was found, writes audits/NAME.yaml and runs it;
results/audits/NAME/report.html is the page. A second time the file that stands there is run as it is.

MODEL  .onnx; .pth, .pt or .safetensors with --architecture; TorchScript and .pt2 with --trust-code; a folder with
       config.json and weights, of timm or transformers; a timm or torchvision name with weights on this machine; a
       folder of these; or logits: .npz, .parquet, .csv
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
    """Add the options of the command."""

    def run_parsed(arguments: argparse.Namespace) -> int:
        if arguments.of_make:
            arguments = parser.parse_args(_words_of_make(), arguments)
        return run(arguments)

    parser.set_defaults(run=run_parsed)
    add_request_options(parser)
    parser.add_argument("--of-make", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--force", action="store_true", help="look again, and replace audits/NAME.yaml")
    add_running_options(parser)


def add_running_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say whether and how an audit is run."""
    parser.add_argument("--dry-run", action="store_true", help="write the file, run nothing")
    parser.add_argument(
        "--cores",
        type=int,
        default=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2,
        help="cores to use, by default %(default)d",
    )


def add_request_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what is audited: models, data, and how they are read."""
    parser.add_argument("files", nargs="*", metavar="MODEL ... DATA", help="models, then data")
    parser.add_argument("--name", help="name of the audit; by default that of the model's file")
    parser.add_argument("--architecture", metavar="WHAT", help="timm:NAME, torchvision:NAME or FILE.py:FUNCTION")
    parser.add_argument(
        "--preprocessing",
        metavar="HOW",
        help="none, imagenet, cifar10, half, caffe or mean=M/M/M,std=S/S/S, and bgr and 255 where they apply: "
        "imagenet,bgr",
    )
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
        "--eps",
        metavar="RADII",
        help="up to three radii, separated by commas, the gate's first: 8/255,4/255; by default 8/255 in linf and 0.5 "
        "in l2, for images below 32 pixels 0.1 and 1.0",
    )
    parser.add_argument("--size", type=int, metavar="PIXELS", help="side of the images; by default what the model says")
    parser.add_argument(
        "--orientation",
        choices=["stored", "exif"],
        help="read images as they are stored, or turned by their EXIF orientation; by default what surely fits better",
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=DEFAULTS["minutes"],
        help="what the audit may take, by default %(default)g: the samples follow from it",
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


def run(arguments: argparse.Namespace) -> int:
    """Carry the command out; returns the exit status."""
    path = written_audit(arguments, force=arguments.force)
    if arguments.dry_run:
        print(f"Run it with: {shlex.join(['make', 'audit', f'CONFIG={path}'])}")
        return 0

    status = run_workflow(["--configfile", str(path)], cores=arguments.cores)
    if status:
        return status
    # After FAIL, the command that looks for a remedy, where the audit has attacks and no remedy yet.
    from gfscore.audit.verdicts.verdict import read_verdict

    sections = read_file(path)
    for name in audit_file.attacked_audits(sections):
        has_remedy = "remedy" in sections["audits"][name]
        if not has_remedy and read_verdict(f"results/audits/{name}/verdict.json").verdict == "FAIL":
            print(f"\nWhat would help? .venv/bin/{' '.join(typed_command(arguments, name='adjust'))}")
    return status


def written_audit(arguments: argparse.Namespace, *, force: bool) -> Path:
    """File of the audit that the options of `add_request_options` ask for.

    A file that the same options wrote before is returned unchanged, edits included; else, or with `force`, models and
    data are inspected, and the file is written.

    Raises
    ------
    InputError
        For what cannot be audited, and without `force` for another file of this name.
    """
    if not Path("Snakefile").is_file():
        raise InputError(f"{Path.cwd()}: no Snakefile here; run gfscore in the folder of the project")
    require_writable(Path())
    request = request_of(arguments)
    command = " ".join(typed_command(arguments))
    if not force:
        for path in sorted(FOLDER.glob("*.yaml")):
            with path.open(encoding="utf-8", errors="replace") as file:
                first_line = file.readline().rstrip("\n")
            if first_line == f"# Written by: {command}":
                print(f"{printable(path)}: run as it stands; --force (make: FORCE=1) looks at the files again")
                return path

    require_paths(request)
    inspection = inspected(request)
    for line in inspection.lines:
        print(on_one_line(line), flush=True)
    return _write(inspection, command, force=force)


def typed_command(arguments: argparse.Namespace, *, name: str = "audit") -> list[str]:
    """Words of a command as they were typed, for a shell, without what changes nothing in the file of the audit."""
    words = ["gfscore", name, *arguments.files]
    for option, value in vars(arguments).items():
        # The others change nothing in the file of the audit, or stand elsewhere in the command.
        if option not in DEFAULTS or value in (None, False, DEFAULTS[option]):
            continue
        words.append(f"--{option.replace('_', '-')}")
        if option == "minutes":
            words.append(f"{value:g}")
        elif value is not True:
            words.append(str(value))
    return [shell_word(word) for word in words]


def request_of(arguments: argparse.Namespace) -> Request:
    """Request that the options make; raises InputError for what no file is needed to refuse."""
    if not arguments.files:
        raise InputError("name a model and its data: gfscore audit net.onnx images/")
    for word in (*arguments.files, arguments.architecture, arguments.labels, arguments.preprocessing):
        require_utf8(word or "", where="gfscore audit")
    models = arguments.files
    data = None
    if len(models) > 1:
        *models, data = arguments.files
    radii = tuple(text.strip() for text in (arguments.eps or "").split(",") if text.strip())
    _require_radii(radii, arguments.eps, arguments.norm)
    if not 0 < arguments.minutes < LONGEST:
        raise InputError(f"--minutes {arguments.minutes:g}: give the minutes that the audit may take")
    if arguments.size is not None and not 1 <= arguments.size <= LARGEST_SIDE:
        raise InputError(f"--size {arguments.size}: give the side of the images in pixels, 1 to {LARGEST_SIDE}")
    if arguments.name and not NAME_FORM.fullmatch(arguments.name):
        raise InputError(f"--name {arguments.name}: use letters, digits and . _ + -")
    return Request(
        models=tuple(models),
        data=data,
        name=arguments.name,
        architecture=arguments.architecture,
        preprocessing=arguments.preprocessing,
        labels=arguments.labels,
        norm=arguments.norm,
        arrays=arguments.arrays,
        value_range=arguments.value_range,
        image_folder=arguments.image_folder,
        eps=radii,
        size=arguments.size,
        orientation=arguments.orientation,
        minutes=arguments.minutes,
        trust_code=arguments.trust_code,
        output=arguments.output,
        probabilities=arguments.probabilities,
        device=arguments.device,
    )


def _require_radii(radii: Sequence[str], option: str | None, norm: str) -> None:
    if len(set(radii)) < len(radii):
        raise InputError(f"--eps {option}: a radius stands twice; give each once")
    if len(radii) > MOST_RADII:
        raise InputError(f"--eps {option}: {len(radii)} radii; give up to {MOST_RADII}, and more in the audit's file")
    largest = LARGEST_RADII[norm]
    for radius in radii:
        try:
            value = float(as_number(radius))
        except ValueError as error:
            raise InputError(f"--eps {radius}: no number; give one, or a fraction such as 8/255") from error
        if not 0 < value <= largest:
            raise InputError(f"--eps {radius}: pixels are in [0, 1]; give a radius such as 8/255")


def _words_of_make() -> list[str]:
    # The command that Make's variables stand for, which it passes by the environment, so that no shell reads them.
    words = []
    for variable, option in MAKE.items():
        value = os.environ.get(variable, "")
        if variable in FLAGS:
            word = value.strip().lower()
            if word not in (*ON, *OFF):
                raise InputError(f"{variable}={value}: neither yes nor no; write {variable}=1, or leave it out")
            if word in ON:
                words.append(option)
        elif value:
            words.append(f"{option}={value}")
    words.append("--")
    # Several models are separated by blanks, which a single file may have in its name.
    models = os.environ.get("MODEL", "")
    words += [models] if Path(models).exists() else shlex.split(models)
    data = os.environ.get("DATA", "")
    if data:
        words.append(data)
    return words


def inspected(request: Request) -> Inspection:
    """Result of the inspection of a request in a process of its own; raises InputError with what it refuses."""
    models = ", ".join(map(printable, request.models))
    print(f"Looking at {models} and {printable(request.data or 'its labels')}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        reply = Path(folder, "reply.json")
        command = [sys.executable, "-P", "-m", "gfscore.workflow.new_audit.inspection", str(reply)]
        set_job_variables()
        process = subprocess.run(command, input=request.to_json(), text=True, stderr=subprocess.PIPE, check=False)
        if not reply.is_file():
            lines = (process.stderr or "").strip().splitlines() or ["it said nothing"]
            end = "was killed, usually as memory ran out" if process.returncode < 0 else "ended by itself"
            raise InputError(
                f"{', '.join(request.models)}: the process that looked at it {end} ({lines[-1][:LONGEST_LINE]})"
            )
        values = json.loads(reply.read_text(encoding="utf-8"))
    if "error" in values:
        raise InputError(values["error"])
    return Inspection(**values)


def _write(inspection: Inspection, command: str, *, force: bool) -> Path:
    path = FOLDER / f"{inspection.name}.yaml"
    text = f"# Written by: {command}\n{inspection.text}"
    if path.is_file() and not force:
        old = path.read_text(encoding="utf-8", errors="replace")
        if _without_comments(old) != _without_comments(text):
            before, after = old.splitlines(), text.splitlines()
            lines = difflib.unified_diff(before, after, str(path), "as it would be", lineterm="", n=0)
            print(harmless("\n".join(lines)))
            raise InputError(
                f"{path}: stands already, and would change as shown; make audit CONFIG={shell_word(str(path))} runs it "
                "as it stands, gfscore audit --force (make: FORCE=1) replaces it, and --name gives another name"
            )

    for new_path, file in inspection.copies.items():
        target = Path(new_path)
        content = Path(file).read_bytes()
        if target.is_file() and target.read_bytes() == content:
            continue
        if target.is_file() and not force:
            raise InputError(
                f"{target}: another file of this name stands there; rename {file}, or add --force (make: FORCE=1)"
            )
        target.parent.mkdir(exist_ok=True)
        shutil.copyfile(file, target)
        print(f"{printable(target)}: copied from {printable(file)}, which may be edited without effect from now on")
    FOLDER.mkdir(exist_ok=True)
    write_text(path, text)
    print(f"{printable(path)}: written; edit it to change what is measured and judged", flush=True)
    return path


def _without_comments(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.strip().startswith("#")]
