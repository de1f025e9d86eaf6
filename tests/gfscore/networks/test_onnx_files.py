"""ONNX models whose tensors are stored in files beside them: read, checked, and identified by all of their files."""

import os
import shutil

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from gfscore.core.digests import sha256_of_file
from gfscore.core.errors import InputError
from gfscore.networks.checkpoint_files import describe_checkpoint, model_digest
from gfscore.networks.classifier import open_classifier
from gfscore.networks.onnx_content import read_model, tensors_of
from gfscore.networks.onnx_files import MESSAGES, data_files, model_files

IMAGES = np.random.default_rng(0).random((5, 3, 8, 8), dtype=np.float32)
RAW = {"image_shape": [3, 8, 8], "channel_order": "rgb", "value_range": 1, "mean": None, "std": None, "output": None}
IDENTITY = {"dataset": "z", "threat": "none", "model": "M"}
SIZE, HIDDEN, CLASSES = 192, 6, 4


def model_with(place="initializer"):
    """Two layers from images (n, 3, 8, 8) to 4 classes; the weights of the second stand at a `place`."""
    rng = np.random.default_rng(2)
    first = numpy_helper.from_array(rng.normal(size=(SIZE, HIDDEN)).astype(np.float32), "first")
    second = numpy_helper.from_array(rng.normal(size=(HIDDEN, CLASSES)).astype(np.float32), "second")
    given = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 3, 8, 8])
    made = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", CLASSES])
    nodes = [
        helper.make_node("Flatten", ["image"], ["flat"]),
        helper.make_node("MatMul", ["flat", "first"], ["hidden"]),
    ]
    functions, initializers = [], [first]
    last = helper.make_node("MatMul", ["hidden", "second"], ["logits"])
    if place == "initializer":
        initializers.append(second)
        nodes.append(last)
    elif place == "attribute":
        nodes += [helper.make_node("Constant", [], ["second"], value=second), last]
    elif place == "branch":
        output = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", CLASSES])
        body = helper.make_graph([last], "body", [], [output], [second])
        other = helper.make_graph([last], "other", [], [output], [second])
        initializers.append(numpy_helper.from_array(np.array(True), "flag"))
        nodes.append(helper.make_node("If", ["flag"], ["logits"], then_branch=body, else_branch=other))
    elif place == "function":
        inner = [helper.make_node("Constant", [], ["second"], value=second), last]
        opset = helper.make_opsetid("", 18)
        functions.append(helper.make_function("own", "Last", ["hidden"], ["logits"], inner, [opset]))
        nodes.append(helper.make_node("Last", ["hidden"], ["logits"], domain="own"))
    graph = helper.make_graph(nodes, "g", [given], [made], initializers)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, functions=functions, opset_imports=opsets, ir_version=9)


def stored(path, model, *, names=("net.onnx.data",), gap=0):
    """Write a model with the values of its large tensors in files beside it, in turn."""
    contents = {name: b"" for name in names}
    tensors = [tensor for tensor in tensors_of(model) if len(tensor.raw_data) > 8]
    for number, tensor in enumerate(tensors):
        name = names[number % len(names)]
        contents[name] += b"\0" * gap
        place = {"location": name, "offset": str(len(contents[name])), "length": str(len(tensor.raw_data))}
        contents[name] += tensor.raw_data
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in place.items():
            tensor.external_data.add(key=key, value=value)
    for name, content in contents.items():
        path.with_name(name).write_bytes(content)
    path.write_bytes(model.SerializeToString())


def edited(path, key, value, *, name="first"):
    """Give a tensor another location, offset or length."""
    model = onnx.load(path, load_external_data=False)
    for tensor in tensors_of(model):
        if tensor.name == name:
            for entry in tensor.external_data:
                if entry.key == key:
                    entry.value = value
    path.write_bytes(model.SerializeToString())


def settings_of(path, **more):
    return {"source": "onnx", "path": str(path), "url": None, "sha256": None, "gradients": True, **RAW, **more}


def manifest_of(path, *, record=False, **more):
    return describe_checkpoint(settings_of(path, **more), identity=IDENTITY, record=record)


def logits_of(manifest):
    return open_classifier(manifest, image_shape=[3, 8, 8], classes=CLASSES).logits(IMAGES)


# ---- what is read ----


@pytest.mark.parametrize("names", [("net.onnx.data",), ("net.onnx_data",), ("first", "onnx__MatMul_12 (b)")])
@pytest.mark.parametrize("place", ["initializer", "attribute", "branch", "function"])
@pytest.mark.parametrize("gradients", [False, True])
def test_tensors_are_read_wherever_they_stand(tmp_path, monkeypatch, names, place, gradients):
    whole = tmp_path / "whole.onnx"
    onnx.save(model_with(place), whole)
    path = tmp_path / "net.onnx"
    stored(path, model_with(place), names=names, gap=4)
    # Values of a file of that name in the working directory are none of the model's.
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in names:
        shutil.copy(tmp_path / name, elsewhere / name)
        (elsewhere / name).write_bytes(b"\0" * (elsewhere / name).stat().st_size)
    monkeypatch.chdir(elsewhere)
    assert [file.name for file in model_files(path)] == ["net.onnx", *sorted(names)]
    expected = logits_of(manifest_of(whole, gradients=False))
    if gradients and place == "function":
        with pytest.raises(InputError, match=r"net\.onnx: onnx2fx .*gradients: false"):
            logits_of(manifest_of(path, gradients=True))
        return
    found = logits_of(manifest_of(path, gradients=gradients))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4 * np.abs(expected).max())


def test_the_light_reader_knows_every_field_that_leads_to_a_tensor():
    known = {}
    waiting = [onnx.ModelProto.DESCRIPTOR]
    leads = {"TensorProto", "StringStringEntryProto"}
    messages = {}
    while waiting:
        message = waiting.pop()
        if message.name not in messages:
            messages[message.name] = {
                field.number: field.message_type for field in message.fields if field.message_type is not None
            }
            waiting += messages[message.name].values()
    # Messages through which a tensor with values in files can be reached.
    while True:
        more = {name for name, fields in messages.items() if any(inner.name in leads for inner in fields.values())}
        if more <= leads:
            break
        leads |= more
    without = {"StringStringEntryProto"}
    for name in leads:
        fields = {number: inner.name for number, inner in messages[name].items() if inner.name in leads}
        entries = {n: inner for n, inner in fields.items() if inner not in without or name == "TensorProto"}
        known[name] = entries
    # Other tensors' entries are notes on a graph, an operator or the model (`metadata_props`), not places.
    known["TensorProto"] = {13: "StringStringEntryProto"}
    for name, fields in MESSAGES.items():
        assert fields.items() <= known[name].items(), name
    for name in known.keys() & MESSAGES.keys():
        missed = {n: inner for n, inner in known[name].items() if inner in MESSAGES and n not in MESSAGES[name]}
        assert not missed, name


@given(st.binary(max_size=200))
def test_the_light_reader_finds_nothing_in_other_bytes(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("other") / "net.onnx"
    path.write_bytes(content)
    try:
        assert all(file.parent == path.parent for file in data_files(path))
    except InputError as error:
        assert "net.onnx" in str(error)


def test_a_file_of_zeros_is_given_up_at_once(tmp_path):
    path = tmp_path / "net.onnx"
    with path.open("wb") as file:
        file.truncate(2**33)
    assert data_files(path) == []


# ---- what identifies a model ----


def test_a_model_in_one_file_is_identified_by_that_file(tmp_path):
    path = tmp_path / "net.onnx"
    onnx.save(model_with(), path)
    manifest = manifest_of(path)
    assert manifest["sha256"] == sha256_of_file(path)
    assert manifest["files"] == [{"path": str(path), "sha256": sha256_of_file(path)}]


@pytest.mark.parametrize("changed", ["net.onnx", "a.bin", "b.bin"])
def test_every_file_is_part_of_the_identity(tmp_path, changed):
    path = tmp_path / "net.onnx"
    stored(path, model_with(), names=("b.bin", "a.bin"))
    before = manifest_of(path)
    files = [path, tmp_path / "a.bin", tmp_path / "b.bin"]
    assert before["files"] == [{"path": str(file), "sha256": sha256_of_file(file)} for file in files]
    assert before["sha256"] == model_digest("onnx", [sha256_of_file(file) for file in files])
    assert before["sha256"] not in [file["sha256"] for file in before["files"]]
    # Bytes behind the last tensor count as well: they are part of a file that is used.
    with (tmp_path / changed).open("ab") as file:
        file.write(b"\x72\x00" if changed == "net.onnx" else b"\0")
    assert manifest_of(path)["sha256"] != before["sha256"]


def test_a_file_that_is_replaced_is_refused_by_its_name(tmp_path):
    path = tmp_path / "net.onnx"
    stored(path, model_with())
    manifest = manifest_of(path, record=True)
    data = tmp_path / "net.onnx.data"
    content = bytearray(data.read_bytes())
    content[100] ^= 1
    data.write_bytes(content)
    with pytest.raises(InputError, match=r"net\.onnx\.data: sha256 is .* expected"):
        logits_of(manifest)
    with pytest.raises(InputError, match=r"net\.onnx\.data: sha256 is .* recorded in net\.onnx\.data\.sha256"):
        manifest_of(path)


def test_a_file_that_was_never_checked_is_not_read(tmp_path):
    path = tmp_path / "net.onnx"
    stored(path, model_with())
    manifest = manifest_of(path)
    manifest["files"] = manifest["files"][:1]
    with pytest.raises(InputError, match=r"net\.onnx\.data: is not among the files"):
        logits_of(manifest)


# ---- what is refused ----


def missing(path):
    path.with_name("net.onnx.data").unlink()


def too_short(path):
    data = path.with_name("net.onnx.data")
    data.write_bytes(data.read_bytes()[:-1])


def empty(path):
    path.with_name("net.onnx.data").write_bytes(b"")


def pointer_of_git(path):
    path.with_name("net.onnx.data").write_bytes(b"version https://git-lfs.github.com/spec/v1\n" + b" " * 9000)


def link(path):
    data = path.with_name("net.onnx.data")
    data.rename(path.with_name("moved"))
    data.symlink_to("moved")


def folder(path):
    missing(path)
    path.with_name("net.onnx.data").mkdir()


def pipe(path):
    missing(path)
    os.mkfifo(path.with_name("net.onnx.data"))


def twice(path):
    model = onnx.load(path, load_external_data=False)
    model.graph.initializer[0].external_data.add(key="location", value="other")
    path.write_bytes(model.SerializeToString())


def inside_too(path):
    model = onnx.load(path, load_external_data=False)
    model.graph.initializer[0].data_location = TensorProto.DEFAULT
    path.write_bytes(model.SerializeToString())


def text(path):
    model = onnx.load(path, load_external_data=False)
    model.graph.initializer[0].data_type = TensorProto.STRING
    path.write_bytes(model.SerializeToString())


REFUSED = {
    "missing": (missing, r"net\.onnx: .*'first' .*another file, net\.onnx\.data, .*save_as_external_data=False"),
    "too short": (too_short, r"net\.onnx\.data: has 4,703 bytes, .*'second' .*net\.onnx"),
    "empty": (empty, r"net\.onnx\.data: "),
    "pointer": (pointer_of_git, r"net\.onnx\.data: .*git lfs pull"),
    "link": (link, r"net\.onnx\.data: .*a link"),
    "folder": (folder, r"net\.onnx\.data: "),
    "pipe": (pipe, r"net\.onnx\.data: "),
    "two places": (twice, r"net\.onnx: .*'first'"),
    "inside and outside": (inside_too, r"net\.onnx: .*'first'"),
    "text": (text, r"net\.onnx: .*'first'"),
    "offset below 0": (lambda path: edited(path, "offset", "-1"), r"net\.onnx\.data: .*'first'.*-1"),
    "offset behind the end": (
        lambda path: edited(path, "offset", "4704"),
        r"net\.onnx\.data: has 4,704 bytes.*'first'",
    ),
    "offset that is no number": (lambda path: edited(path, "offset", "x"), r"net\.onnx: .*'first'.*'x'"),
    "other length": (lambda path: edited(path, "length", "4"), r"net\.onnx: .*'first' has 4 bytes.*needs 4,608"),
}
ELSEWHERE = [
    *(
        "../net.onnx.data",
        "sub/net.onnx.data",
        "/etc/hostname",
        "..",
        ".",
        "",
        "net.onnx",
        "a\\b",
        "C:w",
        "a\0b",
        "{x}",
    ),
    "*/_ORT_MEM_ADDR_/*",
]


@pytest.mark.parametrize("case", REFUSED)
def test_files_that_do_not_fit_are_refused_by_file_and_value(tmp_path, case):
    change, message = REFUSED[case]
    path = tmp_path / "net.onnx"
    stored(path, model_with())
    change(path)
    with pytest.raises(InputError, match=message):
        manifest_of(path)
    assert not list(tmp_path.glob("*.sha256"))


@pytest.mark.parametrize("name", ELSEWHERE)
def test_files_of_other_folders_are_refused(tmp_path, name):
    (tmp_path / "in" / "sub").mkdir(parents=True)
    path = tmp_path / "in" / "net.onnx"
    stored(path, model_with())
    for other in (tmp_path, tmp_path / "in" / "sub"):
        shutil.copy(path.with_name("net.onnx.data"), other)
    edited(path, "location", name)
    for read in (manifest_of, read_model):
        with pytest.raises(InputError, match=r"net\.onnx: .*save_as_external_data=False"):
            read(path)


def test_a_link_that_is_swapped_in_is_not_followed(tmp_path):
    path = tmp_path / "net.onnx"
    stored(path, model_with())
    manifest = manifest_of(path)
    link(path)
    with pytest.raises(InputError, match=r"net\.onnx\.data: .*a link"):
        logits_of(manifest)
