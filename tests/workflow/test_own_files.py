"""From files of one's own to a verdict, by the one command of README."""

import json
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch
import yaml

from gfscore.measures.samples import table_of
from gfscore.tables.parquet_tables import read_identity, read_logits, read_table
from gfscore.workflow.catalogue import CATALOGUE
from helpers import own_files

pytestmark = [pytest.mark.workflow, pytest.mark.seconds(150)]


@pytest.fixture(scope="module")
def repository(fresh_copy, real_data):
    """A copy with files of a user in it, and the environment of these tests."""
    made = fresh_copy()
    own_files.write_data(made.path / "mine", real_data, count=200)
    own_files.write_models(made.path / "mine", real_data)
    return made


def test_one_command_leads_from_files_to_a_verdict_and_a_second_one_finds_nothing_to_do(repository):
    ours = ("MODEL=mine/net.onnx", "DATA=mine/images")
    code, said = repository.make("audit", *ours)
    assert code == 0, said
    verdict = json.loads(repository.read("results/audits/net/verdict.json"))
    assert verdict["verdict"] in said and "results/audits/net/report.html" in said
    rests = next(iter(verdict["models"].values()))["measures"]
    assert {name: own["samples"] for name, own in rests.items()} == {"clean": 200, "adversarial-linf-8of255": 200}
    assert "onnx2fx 0.0.1; logits within" in repository.read("results/audits/net/report.html")
    identity = read_identity(repository.path / "results/logits/net/none/net.parquet")
    assert identity["conversion"].startswith("by onnx2fx")
    # Some classes have fewer than 20 of 200 images.
    assert "fewer than 20 samples" in " ".join(said.split())
    code, said = repository.make("audit", *ours)
    assert code == 0 and "Nothing to do" in said


def test_a_larger_subset_measures_only_what_is_new(repository):
    def attacked(per_class):
        attack = {
            "kind": "adversarial",
            "eps": "8/255",
            "attacks": [{"name": "fgsm"}],
            "subset": {"per_class": per_class},
        }
        asked = {
            "datasets": {"fixed": {"source": "npz", "path": "mine/images.npz"}},
            "models": {"fixed": {"Linf": {"fixed": {"source": "onnx", "path": "mine/fixed.onnx", "gradients": True}}}},
            "measures": {"attacked": attack},
            "audits": {"fixed": {"dataset": "fixed", "measures": ["clean", "attacked"]}},
        }
        (repository.path / "fixed.yaml").write_text(yaml.safe_dump(asked, sort_keys=False))
        rules = repository.ran("--configfile", "fixed.yaml", "--", "results/samples/attacked/fixed/Linf/fixed.parquet")
        log = repository.read("results/logs/measure_model/attacked/fixed/Linf/fixed.log")
        samples = read_table(
            repository.path / "results/samples/attacked/fixed/Linf/fixed.parquet", table_of("adversarial")
        )
        return rules, log, len(samples)

    rules, _, few = attacked(5)
    assert rules["measure_model"] == 1 and few == 50
    rules, log, more = attacked(10)
    assert rules["measure_model"] == 1 and "extract_logits" not in rules
    assert more == 100 and "50 samples" in log and "50 more measured before" in log


def test_a_refusal_writes_nothing(repository):
    before = {path for path in repository.path.rglob("*") if ".snakemake" not in path.parts}
    code, said = repository.make("audit", "MODEL=mine/script.pt", "DATA=mine/images.npz")
    assert code != 0
    assert said.count("error:") == 1 and "TRUST_CODE=1" in said
    after = {path for path in repository.path.rglob("*") if ".snakemake" not in path.parts}
    assert {path for path in after - before if "__pycache__" not in path.parts} == set()


# ---- networks that return something else than logits (n, K) ----


@pytest.fixture(scope="module")
def others(repository, real_data):
    """Networks with one output behind a head and with several, folders of two classes, a file of probabilities.

    Returns logits and labels by the name of the data that they are of.
    """
    folder = repository.path / "mine"
    network, binary = own_files.network(real_data), own_files.binary_network(real_data)
    own_files.write_onnx(binary, folder / "sigmoid.onnx", head="Sigmoid")
    own_files.write_several(folder, real_data)
    # A file that imports torchvision before anything else did, and says how images are prepared.
    definition = (folder / "several.py").read_text()
    transform = "TRANSFORM = torchvision.transforms.CenterCrop(32)"
    (folder / "several.py").write_text(f"import torchvision\n{definition}\n\n{transform}\n")
    own_files.write_two_classes(folder)
    (folder / "two-classes/deer").mkdir()
    for name in ("airplane", "frog"):
        shutil.copytree(folder / "images" / name, folder / "two" / name)
    x, y = own_files.real_images(real_data, 200)
    images = torch.from_numpy(x.astype(np.float32) / 255)
    with torch.inference_mode():
        logits, z = network(images).numpy(), binary(images).numpy()
        probabilities = network(images).softmax(1).numpy()
    np.savez(folder / "probabilities.npz", logits=probabilities, labels=y)

    pair = [own_files.CLASSES.index(name) for name in ("airplane", "frog")]
    pair_rows = np.concatenate([np.flatnonzero(y == label) for label in pair])
    two_rows = np.concatenate([np.flatnonzero(y == label) for label in (0, 1)])
    return {
        "two": (np.hstack([np.zeros_like(z), z])[pair_rows], np.searchsorted(pair, y[pair_rows])),
        "two-classes": (logits[np.ix_(two_rows, [0, 1, 4])], y[two_rows]),
        "all": (logits, y),
    }


def asked_for(repository, *words):
    """What the command says of the audit whose file it writes."""
    code, said = repository.gfscore("audit", *words, "--dry-run")
    assert code == 0, said
    return said


def judged(repository, name):
    """The verdict of an audit, which is run up to its page; figures, the costliest, are left out."""
    repository.snakemake("--configfile", f"audits/{name}.yaml", "--", f"results/audits/{name}/report.html")
    return json.loads(repository.read(f"results/audits/{name}/verdict.json"))


def require_logits(repository, name, model, expected):
    """Logits that a run extracted, and the accuracy that it says, are those of the network; returns their identity."""
    logits, labels = expected
    file = repository.path / f"results/logits/{name}/none/{model}.parquet"
    _, found_labels, found = read_logits(file)
    np.testing.assert_array_equal(found_labels, labels)
    np.testing.assert_allclose(found, logits, rtol=1e-4, atol=1e-3)
    require_accuracy(repository, name, expected)
    return read_identity(file)


def require_accuracy(repository, name, expected):
    logits, labels = expected
    accuracy = (logits.argmax(axis=1) == labels).mean()
    models = json.loads(repository.read(f"results/audits/{name}/models.json"))
    assert list(models["clean_accuracy"].values()) == pytest.approx([accuracy], abs=1e-9)


def test_logits_of_a_head_of_one_output_lead_to_a_verdict(repository, others):
    asked_for(repository, "mine/sigmoid.onnx", "mine/two", "--preprocessing=none", "--minutes=1")
    (model,) = judged(repository, "sigmoid")["models"].values()
    assert "adversarial-linf-8of255" in model["measures"]
    identity = require_logits(repository, "sigmoid", "sigmoid", others["two"])
    words = "logits before the sigmoid"
    assert words in identity["outputs"] and words in repository.read("results/audits/sigmoid/report.html")


def test_two_classes_of_one_output_among_several_and_an_empty_class_folder_lead_to_a_verdict_that_does_not_pass(
    repository, others
):
    said = asked_for(
        repository, "mine/several.pth", "mine/two-classes", "--architecture=mine/several.py:with_features",
        "--labels=mine/names.json", "--preprocessing=none", "--minutes=1", "--name=two",
    )  # fmt: skip
    assert "3 of 10 outputs" in said and "none in deer" in said
    file = repository.path / "audits/two.yaml"
    written = file.read_text()
    assert "outputs: [0, 1, 4]" in written
    # Both classes with samples pass this rule for certain.
    file.write_text(re.sub(r"gate: \[.*\]", "gate: [{measure: clean, at_least: 0.3}]", written))
    verdict = judged(repository, "two")
    assert (repository.path / "results/samples/adversarial-linf-8of255/two/none/several.parquet").is_file()
    require_logits(repository, "two", "several", others["two-classes"])

    assert verdict["verdict"] == "INCONCLUSIVE"
    assert re.search(r"deer[^<]*no samples", repository.read("results/audits/two/report.html"))
    scores = read_table(repository.path / "results/audits/two/class_scores.parquet", CATALOGUE["class_scores"])
    empty = scores[(scores["class_name"] == "deer") & (scores["measure"] == "clean")].iloc[0]
    assert empty["n"] == 0 and np.isnan(empty["value"]) and (empty["low"], empty["high"]) == (0, 1)


def test_every_step_that_opens_a_network_builds_it_where_nothing_else_imported_torchvision(repository, others):
    """Their imports come first, as in a job."""
    (repository.path / "architectures").mkdir(exist_ok=True)
    shutil.copy(repository.path / "mine/several.py", repository.path / "architectures/several.py")
    program = (
        "import sys, extract_logits, measure_model, train_model, draw_samples, project_attributes; "
        "assert 'torchvision' not in sys.modules; "
        "from gfscore.networks.callables import build_architecture; "
        "build_architecture('architectures.several:with_features', {}); assert 'torchvision' in sys.modules"
    )
    environment = os.environ | {"PYTHONPATH": str(repository.path / "workflow_scripts")}
    subprocess.run([sys.executable, "-P", "-c", program], cwd=repository.path, env=environment, check=True)


def test_a_file_of_probabilities_leads_to_a_verdict_that_verify_computes_again(repository, others):
    code, said = repository.make("audit", "MODEL=mine/probabilities.npz")
    assert code != 0 and "PROBABILITIES=1" in said and not (repository.path / "audits/probabilities.yaml").exists()
    asked_for(repository, "mine/probabilities.npz", "--probabilities")
    judged(repository, "probabilities")
    require_accuracy(repository, "probabilities", others["all"])
    page = repository.read("results/audits/probabilities/report.html")
    assert "logarithms of the model&#39;s probabilities" in page and "no score by a sigmoid" in page
    for target in ("bundle", "verify"):
        code, said = repository.make(target, "AUDIT=probabilities")
        assert code == 0, said
