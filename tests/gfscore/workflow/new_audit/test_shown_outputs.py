"""Models that return something else than logits (n, K): what is taken of it, what is said, and what is refused."""

import shutil
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import yaml

from gfscore.core.errors import InputError
from gfscore.workflow.configuration import resolved_configuration
from gfscore.workflow.new_audit.inspection import inspect
from gfscore.workflow.new_audit.request import Request
from helpers import own_files

pytestmark = pytest.mark.usefixtures("project")

PAIR = ("airplane", "frog")


class RoundsPixels(torch.nn.Module):
    """A network of whole pixels, whose gradients are 0."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, images):
        return self.network((255 * images).round() / 255)


class ImagesOfCalibration:
    """What onnxruntime sets the ranges of a quantised graph by."""

    def __init__(self, images):
        self.batches = iter([{"images": images}])

    def get_next(self):
        return next(self.batches, None)


@pytest.fixture(scope="module")
def mine(tmp_path_factory, real_data):
    """Images of ten classes and of two, and the trained network in files that do not return its logits alone."""
    folder = tmp_path_factory.mktemp("mine")
    own_files.write_data(folder, real_data, count=300)
    for name in PAIR:
        shutil.copytree(folder / "images" / name, folder / "two" / name)
    network, binary = own_files.network(real_data), own_files.binary_network(real_data, *PAIR)
    for head in ("Softmax", "LogSoftmax", "Sigmoid"):
        own_files.write_onnx(network, folder / f"{head}.onnx", head=head)
    own_files.write_onnx(binary, folder / "one.onnx")
    own_files.write_onnx(binary, folder / "one_sigmoid.onnx", head="Sigmoid")
    own_files.write_onnx(network, folder / "features.onnx", features=True)
    own_files.write_several(folder, real_data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        example = torch.zeros(2, 3, 32, 32)
        softmax = torch.nn.Sequential(*network, torch.nn.Softmax(1))
        torch.jit.trace(softmax, example).save(folder / "softmax.pt")
        sigmoid = torch.nn.Sequential(*binary, torch.nn.Sigmoid())
        torch.jit.trace(sigmoid, example).save(folder / "one_sigmoid.pt")
        torch.jit.trace(RoundsPixels(network), example).save(folder / "rounded.pt")
        shapes = ({0: torch.export.Dim("n")},)
        torch.export.save(torch.export.export(softmax, (example,), dynamic_shapes=shapes), folder / "softmax.pt2")
    return folder


@pytest.fixture(scope="module")
def accuracy(mine, real_data):
    """Accuracy of the network on all images and of the binary one on those of two classes, by plain code."""
    x, y = own_files.real_images(real_data, 300)
    images = torch.from_numpy(x.astype(np.float32) / 255)
    with torch.inference_mode():
        right = own_files.network(real_data)(images).argmax(1).numpy() == y
        z = own_files.binary_network(real_data, *PAIR)(images).numpy()[:, 0]
    first, second = map(own_files.CLASSES.index, PAIR)
    rows = np.isin(y, (first, second))
    of_pair = (z[rows] > 0) == (y[rows] == second)
    return {"images": f"{right.mean():.1%}", "two": f"{of_pair.mean():.1%}"}


def looked_at(model, data, **options):
    return inspect(Request((str(model),), str(data), **{"preprocessing": "none", **options}), lambda line: None)


def entry_of(found):
    """Settings of the only model that was written, after all checks of a configuration."""
    Path(f"{found.name}.yaml").write_text(found.text)
    for new, old in found.copies.items():
        shutil.copy(old, new)
    resolved_configuration([f"{found.name}.yaml"], {}, thorough=True)
    (models,) = yaml.safe_load(found.text)["models"][found.name].values()
    (entry,) = models.values()
    return entry


def code(mine, project, name):
    """Options for a function of several.py, which stands in architectures/ as the process that looks would see it."""
    shutil.copy(mine / "several.py", project / "architectures/several.py")
    return {"architecture": f"{mine}/several.py:{name}"}


# ---- heads ----


@pytest.mark.parametrize(
    ("model", "head"),
    [("Softmax.onnx", "softmax"), ("LogSoftmax.onnx", "log_softmax"), ("Sigmoid.onnx", "sigmoid"),
     ("softmax.pt2", "softmax")],
)  # fmt: skip
def test_logits_are_taken_before_the_head_of_a_graph(mine, accuracy, model, head):
    found = looked_at(mine / model, mine / "images", trust_code=True)
    assert entry_of(found)["head"] == head
    assert any(accuracy["images"] in line for line in found.lines)
    assert any(line.startswith("outputs") and head in line and "300 images" in line for line in found.lines)
    assert "adversarial-linf-8of255" in found.text


def test_probabilities_that_a_graph_makes_its_logits_of_need_no_option(mine):
    with pytest.raises(InputError, match=r"--probabilities: no model here"):
        looked_at(mine / "Softmax.onnx", mine / "images", probabilities=True)


# ---- probabilities alone ----


def test_logarithms_of_probabilities_are_taken_where_they_are_asked_for(mine, accuracy):
    with pytest.raises(
        InputError, match=r"softmax\.pt: .*probabilities, not logits.*--probabilities .*PROBABILITIES=1"
    ):
        looked_at(mine / "softmax.pt", mine / "images", trust_code=True)
    found = looked_at(mine / "softmax.pt", mine / "images", trust_code=True, probabilities=True)
    assert entry_of(found)["allow_probabilities"] == "logarithms"
    assert any(accuracy["images"] in line for line in found.lines)
    assert any(line.startswith("outputs") and "logarithms" in line for line in found.lines)


def test_logarithms_of_independent_sigmoids_are_no_logits(mine, project):
    for probabilities in (False, True):
        with pytest.raises(InputError, match=r"several\.pth: .*outputs of a sigmoid.*before the sigmoid"):
            looked_at(
                mine / "several.pth", mine / "images", probabilities=probabilities, **code(mine, project, "sigmoids")
            )


def test_a_network_in_python_may_give_probabilities(mine, project, accuracy):
    options = code(mine, project, "probabilities")
    found = looked_at(mine / "several.pth", mine / "images", probabilities=True, **options)
    assert entry_of(found)["allow_probabilities"] == "logarithms"
    assert any(accuracy["images"] in line for line in found.lines)


# ---- gradients ----


def test_attacks_are_left_out_where_gradients_vanish(mine, accuracy):
    found = looked_at(mine / "rounded.pt", mine / "images", trust_code=True)
    assert any("no gradients: they are 0 on all of 8 images" in line for line in found.lines)
    assert any(accuracy["images"] in line for line in found.lines)
    assert "adversarial" not in found.text


def test_a_quantised_graph_that_is_converted_to_what_fails_is_audited_without_attacks(mine, real_data, tmp_path):
    from onnxruntime.quantization import QuantFormat, quantize_static

    own_files.write_onnx(own_files.network(real_data), tmp_path / "net.onnx")
    x, _ = own_files.real_images(real_data, 300)
    images = ImagesOfCalibration(x.astype(np.float32) / 255)
    quantised = tmp_path / "quantised.onnx"
    quantize_static(tmp_path / "net.onnx", quantised, images, quant_format=QuantFormat.QDQ, per_channel=True)
    found = looked_at(quantised, mine / "images")
    assert any("no gradients: onnx2fx" in line for line in found.lines)
    assert entry_of(found)["source"] == "onnx" and "adversarial" not in found.text


# ---- one output ----


@pytest.mark.parametrize(
    ("model", "settings"),
    [
        ("one.onnx", {}),
        ("one_sigmoid.onnx", {"head": "sigmoid"}),
        ("one_sigmoid.pt", {"allow_probabilities": "logarithms"}),
    ],
)
def test_one_output_is_enough_for_two_classes(mine, accuracy, model, settings):
    options = {"trust_code": True, "probabilities": "allow_probabilities" in settings}
    found = looked_at(mine / model, mine / "two", **options)
    entry = entry_of(found)
    assert {key: entry.get(key) for key in ("head", "allow_probabilities")} == {
        "head": None, "allow_probabilities": None, **settings,
    }  # fmt: skip
    assert any(accuracy["two"] in line and "right" in line for line in found.lines)
    assert any("one output" in line for line in found.lines)
    assert "adversarial-linf-8of255" in found.text


def test_one_sigmoid_is_told_from_a_logit(mine):
    with pytest.raises(InputError, match=r"one_sigmoid\.pt: .*output of a sigmoid.*--probabilities"):
        looked_at(mine / "one_sigmoid.pt", mine / "two", trust_code=True)


def test_one_output_of_the_first_class_is_told_by_its_answers(mine, tmp_path):
    for old, new in zip(PAIR, ("second", "first"), strict=True):
        shutil.copytree(mine / "two" / old, tmp_path / "swapped" / new)
    with pytest.raises(InputError, match=r"one\.onnx: answers fit .*another order of the classes"):
        looked_at(mine / "one.onnx", tmp_path / "swapped")
    found = looked_at(mine / "one.onnx", tmp_path / "swapped", labels="second,first")
    assert entry_of(found)["outputs"] == [1, 0]


def test_one_output_is_not_enough_for_ten_classes(mine):
    with pytest.raises(InputError, match=r"one\.onnx: has one output, .* 10 \(airplane"):
        looked_at(mine / "one.onnx", mine / "images")


# ---- several outputs ----


def test_of_several_outputs_the_one_that_fits_the_classes_is_taken(mine, project, accuracy):
    for model, options in (("features.onnx", {}), ("several.pth", code(mine, project, "with_features"))):
        found = looked_at(mine / model, mine / "images", **options)
        assert entry_of(found)["output"] == "scores"
        assert any(accuracy["images"] in line for line in found.lines)
        assert any(line.startswith("outputs") and "scores (n, 10)" in line for line in found.lines)


def test_where_several_outputs_fit_the_run_stops_with_both_and_the_option(mine, project, accuracy):
    options = code(mine, project, "with_probabilities")
    with pytest.raises(InputError, match=r"several\.pth: 2 of .* 0 \(n, 10\), 1 \(n, 10\); add --output .*OUTPUT="):
        looked_at(mine / "several.pth", mine / "images", **options)
    found = looked_at(mine / "several.pth", mine / "images", output="0", **options)
    assert entry_of(found)["output"] == 0
    assert any(accuracy["images"] in line for line in found.lines)
    with pytest.raises(InputError, match=r"probabilities, not logits.*--probabilities"):
        looked_at(mine / "several.pth", mine / "images", output="1", **options)


def test_where_no_output_fits_the_run_stops_with_all_of_them(mine):
    with pytest.raises(InputError, match=r"features\.onnx: none of its 2 .* 2 classes: .*\(n, 64\), scores \(n, 10\)"):
        looked_at(mine / "features.onnx", mine / "two")


def test_an_output_that_does_not_exist_is_refused_with_those_that_do(mine):
    for model in ("features.onnx", "Softmax.onnx"):
        with pytest.raises(InputError, match=r"no output 'logits'; it has .*scores \(n, 10\).*--output"):
            looked_at(mine / model, mine / "images", output="logits")


# ---- files of logits ----


@pytest.fixture(scope="module")
def answers():
    """Labels of two classes, and one logit of the second."""
    rng = np.random.default_rng(0)
    labels = np.arange(200) % 2
    return labels, rng.normal(size=200) + 2 * (2 * labels - 1)


def of_file(path, **options):
    return inspect(Request((str(path),), None, **options), lambda line: None)


@pytest.mark.parametrize("suffix", [".npz", "_flat.npz", ".csv", ".parquet"])
def test_one_column_of_logits_is_enough_for_two_classes(project, answers, suffix):
    labels, z = answers
    path = project / f"file{suffix}"
    if suffix.endswith(".npz"):
        np.savez(path, logits=z if "flat" in suffix else z[:, None], labels=labels)
    elif suffix == ".csv":
        pd.DataFrame({"score": z, "label": labels}).to_csv(path, index=False)
    else:
        pd.DataFrame({"score": z, "label": labels}).to_parquet(path)
    found = of_file(path)
    assert not {"allow_probabilities", "head"} & set(entry_of(found))
    assert any(f"{((z > 0) == labels).mean():.1%}" in line for line in found.lines)


def test_one_column_of_probabilities_needs_the_option(project, answers):
    labels, z = answers
    path = project / "file.csv"
    pd.DataFrame({"malignant": 1 / (1 + np.exp(-z)), "label": labels}).to_csv(path, index=False)
    with pytest.raises(InputError, match=r"file\.csv: .*output of a sigmoid.*--probabilities"):
        of_file(path)
    found = of_file(path, probabilities=True)
    assert entry_of(found)["allow_probabilities"] == "logarithms"
    assert any(f"{((z > 0) == labels).mean():.1%}" in line and "logarithms" in line for line in found.lines)


def test_probabilities_of_every_class_need_the_option(project):
    labels = np.arange(90) % 3
    odds = np.exp(np.random.default_rng(0).normal(size=(90, 3)) + 2 * np.eye(3)[labels])
    np.savez(project / "p.npz", logits=odds / odds.sum(axis=1, keepdims=True), labels=labels)
    with pytest.raises(InputError, match=r"p\.npz: .*probabilities, not logits.*--probabilities"):
        of_file(project / "p.npz")
    found = of_file(project / "p.npz", probabilities=True)
    assert entry_of(found)["allow_probabilities"] == "logarithms"
    assert any(f"{(odds.argmax(axis=1) == labels).mean():.1%}" in line for line in found.lines)


def test_options_without_use_for_logits_are_refused(project, answers):
    labels, z = answers
    np.savez(project / "z.npz", logits=z[:, None], labels=labels)
    with pytest.raises(InputError, match=r"--probabilities: no model here"):
        of_file(project / "z.npz", probabilities=True)
    with pytest.raises(InputError, match=r"--output: logits have no use for it"):
        of_file(project / "z.npz", output="0")
