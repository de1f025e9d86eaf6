"""Files that are exchanged after a run: the gate names them, and the next run judges anew, or names them as well."""

import os
from pathlib import Path

import numpy as np
import pytest
import yaml

from gfscore.core.files import read_json
from gfscore.workflow.command import main
from helpers.configurations import place_network
from workflow.conftest import rules_in

pytestmark = [pytest.mark.workflow, pytest.mark.seconds(50)]

CLASSES = ("cat", "dog", "frog")
SHAPE = (3, 8, 8)
OWN = ("--configfile", "audits/own.yaml", "--", "audit")
STATES = {"PASS": 0, "FAIL": 1, "INCONCLUSIVE": 2}


def write_graph(path, *, seed):
    """An ONNX file of two layers, above 1 MiB, whose size does not depend on its weights."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    rng, size, width = np.random.default_rng(seed), int(np.prod(SHAPE)), 1500
    weights = {"first": rng.normal(size=(size, width)), "second": rng.normal(size=(width, len(CLASSES)))}
    given = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", *SHAPE])
    made = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", len(CLASSES)])
    nodes = [
        helper.make_node("Flatten", ["image"], ["flat"]),
        helper.make_node("MatMul", ["flat", "first"], ["hidden"]),
        helper.make_node("MatMul", ["hidden", "second"], ["logits"]),
    ]
    initial = [numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()]
    graph = helper.make_graph(nodes, "g", [given], [made], initial)
    path.parent.mkdir(exist_ok=True)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


def write_images(folder):
    """Ten images of each class, one of which is a link to a file elsewhere; the other one there is not used."""
    from PIL import Image

    rng = np.random.default_rng(0)
    for name in (*CLASSES, "elsewhere"):
        for number in range(10 if name in CLASSES else 2):
            path = folder / f"{'images/' if name in CLASSES else ''}{name}/{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(path)
    (folder / "images/dog/0.png").unlink()
    (folder / "images/dog/0.png").symlink_to("../../elsewhere/0.png")


@pytest.fixture(scope="module")
def judged_once(fresh_copy):
    """A copy with an audit of an ONNX file and of weights with their code, on a folder of images."""
    repository = fresh_copy()
    write_images(repository.path)
    write_graph(repository.path / "mine/net.onnx", seed=0)
    weights = place_network(repository.path, "Network", image_shape=SHAPE, classes=len(CLASSES))
    models = {"graph": {"path": "mine/net.onnx"}, "weights": weights}
    gate = [{"measure": "clean", "at_least": 0.9}]
    asked = {
        "datasets": {"own": {"path": "images"}},
        "models": {"own": {"none": models}},
        "audits": {"own": {"dataset": "own", "measures": ["clean"], "gate": gate}},
    }
    (repository.path / "audits").mkdir(exist_ok=True)
    (repository.path / "audits/own.yaml").write_text(yaml.safe_dump(asked, sort_keys=False))
    repository.snakemake(*OWN)
    return repository


@pytest.fixture
def judged(judged_once, tmp_path, monkeypatch):
    """A copy of it that the test may change, as working folder."""
    copy = judged_once.copy_to(tmp_path / "copy")
    monkeypatch.chdir(copy.path)
    return copy


def with_times_of(change, path):
    """Change a file, and set its time of modification back."""
    before = path.stat()
    change()
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    return before.st_size == path.stat().st_size


def other_graph():
    path = Path("mine/net.onnx")
    assert with_times_of(lambda: write_graph(path, seed=1), path), "of the same size"


def other_image():
    path = Path("images/cat/1.png")
    with_times_of(lambda: path.write_bytes(Path("elsewhere/1.png").read_bytes()), path)


def cut_image():
    path = Path("images/frog/2.png")
    path.write_bytes(path.read_bytes()[:-20])


def another_target():
    Path("images/dog/0.png").unlink()
    Path("images/dog/0.png").symlink_to("../../elsewhere/1.png")


def other_code():
    path = Path("architectures/layers.py")
    path.write_text(f"{path.read_text()}\n# changed\n")


def other_rule():
    path = Path("audits/own.yaml")
    path.write_text(path.read_text().replace("at_least: 0.9", "at_least: 0.0"))


def other_arithmetic():
    path = Path("audits/own.yaml")
    path.write_text(f"{path.read_text()}inference: {{precision: bfloat16}}\n")


CHANGES = {
    "an ONNX file of the same size and time": (other_graph, "mine/net.onnx", "fetch_checkpoint"),
    "weights deleted": (lambda: Path("checkpoints/Network.pt").unlink(), "checkpoints/Network.pt", "fetch_checkpoint"),
    "code of a network": (other_code, "architectures/layers.py", "fetch_checkpoint"),
    "an image of the same time": (other_image, "images/cat/1.png", "fetch_dataset"),
    "an image cut off": (cut_image, "images/frog/2.png", "fetch_dataset"),
    "an image deleted": (lambda: Path("images/frog/3.png").unlink(), "images/frog/3.png", "fetch_dataset"),
    "a link to another image": (another_target, "images/dog/0.png", "fetch_dataset"),
    "a rule": (other_rule, "audits/own.yaml", "judge_audit"),
    "the arithmetic of logits": (other_arithmetic, "audits/own.yaml", "extract_logits"),
}


@pytest.mark.parametrize(("change", "file", "step"), CHANGES.values(), ids=CHANGES)
def test_the_gate_names_what_was_exchanged_and_the_next_run_reads_it_again(judged, capsys, change, file, step):
    assert main(["gate", "own"]) == STATES[read_json("results/audits/own/verdict.json")["verdict"]]
    change()
    capsys.readouterr()
    assert main(["gate", "own"]) == 3
    said = capsys.readouterr().err
    assert file in said and "make audit" in said
    rules, _ = judged.planned(*OWN)
    assert rules[step] and rules["judge_audit"]


@pytest.mark.parametrize("change", [other_image, other_rule])
def test_after_the_next_run_the_gate_judges_what_is_there(judged, change):
    change()
    judged.snakemake(*OWN)
    verdict = read_json("results/audits/own/verdict.json")
    assert main(["gate", "own"]) == (STATES[verdict["verdict"]] if verdict["stops"] else 0)
    assert judged.planned(*OWN)[0] == {}


def test_pages_and_exports_of_an_earlier_verdict_do_not_stay_beside_a_new_one(judged):
    folder = Path("results/audits/own")
    made_of_verdict = [folder / "report.html", folder / "exports/latex/clean.tex", Path("results/index.html")]
    for path in made_of_verdict:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("PASS")
    other_rule()
    judged.snakemake(*OWN)
    assert not any(path.exists() for path in made_of_verdict)
    assert (folder / "previous/exports/latex/clean.tex").is_file() and (folder / "previous/report.html").is_file()


def test_another_network_is_refused_until_it_is_meant_and_then_judged(judged):
    other_graph()
    refused = judged.snakemake(*OWN, check=False)
    assert refused.returncode != 0 and "mine/net.onnx" in refused.text
    Path("mine/net.onnx.sha256").unlink()
    rules = rules_in(judged.snakemake(*OWN).text)
    assert rules["fetch_checkpoint"] == rules["extract_logits"] == rules["judge_audit"] == 1
    assert main(["gate", "own"]) in (0, 1, 2)


def test_missing_images_stop_the_next_run_by_name_and_cost_nothing_once_they_are_back(judged):
    Path("images").rename("taken")
    assert main(["gate", "own"]) == 3
    refused = judged.snakemake(*OWN, check=False)
    assert refused.returncode != 0 and "images" in refused.text
    Path("taken").rename("images")
    rules, _ = judged.planned(*OWN)
    assert not {"fetch_dataset", "extract_logits", "score_models"} & set(rules)


def test_the_same_content_with_other_times_runs_nothing_again(judged):
    for path in [*Path("images").rglob("*.png"), Path("architectures/layers.py")]:
        os.utime(path)
    assert main(["gate", "own"]) in (0, 1, 2)
    assert judged.planned(*OWN)[0] == {}


def test_a_file_of_the_audit_that_is_gone_is_said(judged, capsys):
    Path("audits/own.yaml").unlink()
    assert main(["gate", "own"]) in (0, 1, 2)
    assert "audits/own.yaml" in capsys.readouterr().out
