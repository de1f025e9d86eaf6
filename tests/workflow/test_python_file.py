"""A Python file of a user's own that imports torchvision first: every step that opens the network builds it."""

import json
import os
import subprocess
import sys

import pytest

from helpers import own_files

pytestmark = pytest.mark.workflow

FILE = f"import torchvision\n{own_files.DEFINITION}\n\nTRANSFORM = torchvision.transforms.CenterCrop(32)\n"


@pytest.fixture(scope="module")
def repository(fresh_copy, real_data):
    """A copy with weights, images and such a file, in which gfscore audit was run on them: `said` is what it said."""
    made = fresh_copy()
    own_files.write_data(made.path, real_data, count=200)
    own_files.write_models(made.path, real_data)
    (made.path / "vision.py").write_text(FILE)
    command = [sys.executable, "-P", "-m", "gfscore.workflow.command", "audit", "weights.pth", "images.npz"]
    command += ["--architecture", "vision.py:marabou", "--minutes", "1", "--cores", "2"]
    environment = os.environ | {"PYTHONPATH": str(made.path / "workflow_scripts")}
    done = subprocess.run(command, cwd=made.path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    made.said = done.stdout
    return made


def test_the_look_the_logits_and_the_attacks_have_the_network(repository):
    assert "% of 200 images right" in repository.said
    assert (repository.path / "results/logits/weights/Linf/weights.parquet").is_file()
    assert (repository.path / "results/samples/adversarial-linf-8of255/weights/Linf/weights.parquet").is_file()
    (model,) = json.loads(repository.read("results/audits/weights/verdict.json"))["models"].values()
    assert set(model["measures"]) == {"clean", "adversarial-linf-8of255"}


@pytest.mark.parametrize(
    "script", ["extract_logits", "measure_model", "train_probe", "draw_samples", "project_attributes"]
)
def test_the_network_is_built_where_nothing_else_imported_torchvision(repository, script):
    """In a process of its own for each script, whose imports come first, as in a job."""
    program = (
        f"import {script}, sys; assert 'torchvision' not in sys.modules; "
        "from gfscore.networks.callables import build_architecture; "
        "build_architecture('architectures.vision:marabou', {}); assert 'torchvision' in sys.modules"
    )
    environment = os.environ | {"PYTHONPATH": str(repository.path / "workflow_scripts")}
    subprocess.run([sys.executable, "-P", "-c", program], cwd=repository.path, env=environment, check=True)
