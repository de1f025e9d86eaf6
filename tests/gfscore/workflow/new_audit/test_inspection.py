"""Inspection of real files: what is found, what is written, and what is refused."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from torch import nn

from gfscore.core.errors import InputError
from gfscore.images import encoded
from gfscore.workflow.configuration import resolved_configuration
from gfscore.workflow.new_audit.inspection import inspect
from gfscore.workflow.new_audit.request import Request
from helpers import own_files

ACCURACY = "57.4%"
"""Of the network on its 500 images, as its logits have it."""

pytestmark = [pytest.mark.usefixtures("project"), pytest.mark.seconds(50)]


def looked_at(*files, **options):
    """Inspection of files, the last of which are the data unless `data` is given."""
    *models, data = [str(file) for file in files]
    if "data" in options:
        models, data = [*models, data], options.pop("data")
    return inspect(Request(tuple(models), data, **options), lambda line: None)


def entries(found):
    """Settings of models, of the dataset, and of the audit that were written, after all checks of a configuration."""
    Path(f"{found.name}.yaml").write_text(found.text)
    for new, old in found.copies.items():
        shutil.copy(old, new)
    resolved_configuration([f"{found.name}.yaml"], {}, thorough=True)
    written = yaml.safe_load(found.text)
    (models,) = written["models"][found.name].values()
    return models, written["datasets"][found.name], written["audits"][found.name]


# ---- what is found ----

MODELS = {
    "net.onnx": {},
    "fixed.onnx": {},
    "last.onnx": {},
    "script.pt": {"trust_code": True},
    "program.pt2": {"trust_code": True},
    "weights.pth": {"architecture": "my_networks.py:marabou"},
    "checkpoint.tar": {"architecture": "my_networks.py:marabou"},
}


@pytest.mark.parametrize("model", MODELS)
def test_every_kind_of_model_file_is_the_same_network(own, model):
    options = dict(MODELS[model])
    if "architecture" in options:
        options["architecture"] = f"{own}/{options['architecture']}"
    found = looked_at(own / model, own / "images", **options)
    assert any(ACCURACY in line for line in found.lines)
    assert any("not normalised" in line for line in found.lines)
    models, _, audit = entries(found)
    (entry,) = models.values()
    assert not {"mean", "std", "channel_order", "value_range", "outputs"} & set(entry)
    assert audit["measures"] == ["clean", "great-softmax", "adversarial-linf-8of255", "minimal-l2"]
    assert audit["gate"][0]["measure"] == "adversarial-linf-8of255"


@pytest.mark.parametrize(
    ("data", "source"),
    [
        ("images", "image_folder"),
        ("images.npz", "npz"),
        ("images.parquet", "parquet"),
        ("flat", "image_csv"),
        ("flat/labels.csv", "image_csv"),
        ("cifar10", "cifar"),
    ],
)
def test_every_kind_of_data_is_found(own, data, source):
    found = looked_at(own / "net.onnx", own / data)
    _, dataset, _ = entries(found)
    assert dataset["source"] == source
    assert any(("62.6%" if source == "cifar" else ACCURACY) in line for line in found.lines) or source == "cifar"


def test_a_folder_of_timm_says_everything(own):
    found = looked_at(own / "hub", own / "images")
    models, _, _ = entries(found)
    assert models["hub"]["architecture"] == "test_byobnet" and models["hub"]["mean"] == [0.485, 0.456, 0.406]
    assert any("names in the model's files" in line for line in found.lines)
    assert any("pretrained_cfg in config.json, checked" in line for line in found.lines)


def test_a_folder_of_transformers_says_everything_and_its_classes_may_stand_in_another_order(own, tmp_path):
    shutil.copytree(own / "images", tmp_path / "renamed")
    (tmp_path / "renamed/airplane").rename(tmp_path / "renamed/zz airplane")
    shutil.copytree(own / "vit", tmp_path / "vit")
    about = json.loads((tmp_path / "vit/config.json").read_text())
    about["id2label"]["0"] = "ZZ_Airplane"
    (tmp_path / "vit/config.json").write_text(json.dumps(about))
    models, _, _ = entries(looked_at(tmp_path / "vit", tmp_path / "renamed"))
    assert models["vit"]["source"] == "transformers" and models["vit"]["mean"] == [0.5] * 3
    assert models["vit"]["outputs"] == [*range(1, 10), 0]


def test_logits_are_one_model_or_many(own):
    found = looked_at(own / "logits.npz", data=None)
    models, dataset, audit = entries(found)
    assert list(models) == ["logits"] and dataset["source"] == "labels" and audit["gate"][0]["measure"] == "clean"
    assert any(ACCURACY in line for line in found.lines)
    models, _, _ = entries(looked_at(own / "many.npz", own / "images.npz"))
    assert {name: entry["member"] for name, entry in models.items()} == {"mine": "mine", "theirs": "theirs"}


def test_a_file_of_names_names_the_columns_of_logits(own, tmp_path):
    (tmp_path / "names.txt").write_text("".join(f"{k}: {name}\n" for k, name in enumerate(own_files.CLASSES)))
    _, dataset, _ = entries(looked_at(own / "logits.npz", data=None, labels=str(tmp_path / "names.txt")))
    assert dataset["classes"] == list(own_files.CLASSES)


def test_names_in_the_metadata_of_an_onnx_file_are_those_of_its_outputs(own, tmp_path):
    import onnx

    graph = onnx.load(own / "net.onnx")
    entry = graph.metadata_props.add()
    entry.key, entry.value = "names", str(dict(enumerate(own_files.CLASSES)))
    onnx.save(graph, tmp_path / "named.onnx")
    for name in ("truck", "airplane", "ship"):
        shutil.copytree(own / "images" / name, tmp_path / "three" / name)
    found = looked_at(tmp_path / "named.onnx", tmp_path / "three", preprocessing="none")
    models, _, _ = entries(found)
    assert models["named"]["outputs"] == [0, 8, 9]
    assert any("3 of 10 outputs, by the names in the model's files" in line for line in found.lines)


def test_a_table_with_a_column_per_class_names_them(tmp_path):
    import pandas as pd

    logits = np.random.default_rng(0).normal(size=(60, 3)) + 2 * np.eye(3)[np.arange(60) % 3]
    frame = pd.DataFrame(logits, columns=["cat", "dog", "NA"])
    frame.assign(label=np.arange(60) % 3).to_csv(tmp_path / "table.csv", index=False)
    _, dataset, _ = entries(looked_at(tmp_path / "table.csv", data=None))
    assert dataset["classes"] == ["cat", "dog", "NA"]


@pytest.mark.parametrize("name", ["text.npz", "text.parquet"])
def test_labels_as_text_beside_an_array_of_logits_are_numbers_or_named_with_the_true_number_of_classes(tmp_path, name):
    import pandas as pd

    labels = np.arange(60) % 3
    logits = np.random.default_rng(0).normal(size=(60, 3)) + 2 * np.eye(3)[labels]

    def write(texts):
        if name.endswith(".npz"):
            np.savez(tmp_path / name, logits=logits, labels=texts)
        else:
            pd.DataFrame({"logits": list(logits), "label": texts}).to_parquet(tmp_path / name)

    write(labels.astype(str))
    assert any("60 samples, 3 classes" in line for line in looked_at(tmp_path / name, data=None).lines)
    write(np.array(["cat", "dog", "frog"])[labels])
    with pytest.raises(InputError, match=r"row 0 is 'cat', none of the 3 classes"):
        looked_at(tmp_path / name, data=None)
    assert looked_at(tmp_path / name, data=None, labels="cat,dog,frog").lines


def test_a_folder_and_several_names_are_several_models(own, tmp_path):
    (tmp_path / "models").mkdir()
    for name in ("net.onnx", "last.onnx"):
        shutil.copy(own / name, tmp_path / "models" / name)
    found = looked_at(tmp_path / "models", own / "fixed.onnx", own / "images.npz")
    models, _, _ = entries(found)
    assert list(models) == ["last", "net", "fixed"] and found.name == "images"


def test_radii_norm_and_minutes_are_as_asked(own, monkeypatch):
    # The samples follow from the quickest pass, which shows on a machine that others share in many tries alone.
    monkeypatch.setattr("gfscore.workflow.new_audit.shown_images.MEASURING", 1.0)
    found = looked_at(own / "net.onnx", own / "images.npz", eps=("4/255", "0.01"), minutes=0.6)
    written = yaml.safe_load(found.text)["measures"]
    assert list(written) == ["adversarial-linf-4of255", "adversarial-linf-0.01", "minimal-l2"]
    found = looked_at(own / "fixed.onnx", own / "images.npz", norm="l2", minutes=0.6)
    written = yaml.safe_load(found.text)["measures"]
    assert written["adversarial-l2-0.5"]["subset"]["per_class"] < 20
    # What it is attacked with says nothing of what it was made robust against.
    assert list(yaml.safe_load(found.text)["models"]["fixed"]) == ["none"]
    assert any("--minutes" in line for line in found.lines)


def test_attacks_that_would_take_too_long_are_left_out_with_what_they_would_take(own, monkeypatch):
    monkeypatch.setattr("gfscore.workflow.new_audit.shown_images._seconds_of_a_pass", lambda *_: 10.0)
    found = looked_at(own / "net.onnx", own / "images.npz", minutes=5)
    _, _, audit = entries(found)
    assert audit["measures"] == ["clean", "great-softmax"] and audit["gate"][0]["measure"] == "clean"
    assert any("--minutes" in line for line in found.lines)


def test_images_are_brought_to_the_size_that_the_model_states_or_the_user_asks_for(own, tmp_path):
    from PIL import Image

    for number, path in enumerate(sorted((own / "images").rglob("*.png"))):
        target = tmp_path / "sizes" / path.parent.name / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        Image.open(path).resize((40 + number % 3, 40)).save(target)
    found = looked_at(own / "net.onnx", tmp_path / "sizes", preprocessing="none")
    _, dataset, _ = entries(found)
    assert dataset["preprocessing"] == {"method": "center_crop", "resize": 32, "size": 32}
    with pytest.raises(InputError, match=r"weights\.pth|images of several sizes.*--size"):
        looked_at(own / "script.pt", tmp_path / "sizes", trust_code=True)


def test_images_of_another_size_than_the_models_are_decoded_in_its_size_alone(own, tmp_path, monkeypatch):
    from PIL import Image

    for path in (own / "images").rglob("*.png"):
        target = tmp_path / "larger" / path.parent.name / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        Image.open(path).resize((40, 40)).save(target)
    decode, decoded = encoded.prepare, []

    def counted(content, preprocessing, *, name):
        decoded.append(preprocessing.method)
        return decode(content, preprocessing, name=name)

    monkeypatch.setattr(encoded, "prepare", counted)
    looked_at(own / "net.onnx", tmp_path / "larger", preprocessing="none")
    # The first image says the size; all are checked, and those that are shown decoded once more.
    assert decoded.count("none") == 1 and decoded.count("center_crop") < 2 * 500 + 50


def test_weights_of_ones_own_for_a_network_of_timm_may_be_for_images_of_another_size(own, tmp_path):
    shutil.copy(own / "hub/model.safetensors", tmp_path / "mine.safetensors")
    options = {"architecture": "timm:test_byobnet"}
    arrays = looked_at(tmp_path / "mine.safetensors", own / "images.npz", **options)
    folders = looked_at(tmp_path / "mine.safetensors", own / "images", **options)
    for found in (arrays, folders):
        assert "its files say center_crop to 160 pixels" in found.lines[0] and "not what is done" in found.lines[0]
        assert any("images of 32x32" in line for line in found.lines)


def test_what_files_say_of_the_size_and_what_else_is_done_is_said(own, tmp_path):
    from PIL import Image

    shutil.copytree(own / "hub", tmp_path / "hub")
    about = json.loads((tmp_path / "hub/config.json").read_text())
    about["pretrained_cfg"]["crop_pct"] = 0.875
    (tmp_path / "hub/config.json").write_text(json.dumps(about))
    note = "its files say center_crop to 32 pixels after a resize to 36 (bicubic), which is not what is done here"
    assert note in looked_at(tmp_path / "hub", own / "images").lines[0]
    assert "its files say" not in looked_at(own / "hub", own / "images").lines[0]

    for path in (own / "images").rglob("*.png"):
        target = tmp_path / "larger" / path.parent.name / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        Image.open(path).resize((36, 36), Image.Resampling.BICUBIC).save(target)
    vit, hub = (line for line in looked_at(own / "vit", own / "hub", tmp_path / "larger").lines if "model  " in line)
    assert "its files say" not in vit
    assert "center_crop to 32 pixels after a resize to 32 (bicubic), which is not what is done here" in hub


# ---- mistakes that were planted ----


@pytest.fixture(scope="module")
def planted(own, tmp_path_factory, real_data):
    """Folder of networks with one mistake each, as TorchScript, and of data with theirs."""
    folder = tmp_path_factory.mktemp("planted")
    network = own_files.network(real_data)
    mean, std = (
        torch.tensor(values).reshape(3, 1, 1) for values in ([0.4914, 0.4822, 0.4465], [0.2471, 0.2435, 0.2616])
    )
    before = {
        "bgr": lambda x: x.flip(1),
        "white255": lambda x: x / 255,
        "half": lambda x: x * 0.5 + 0.5,
        "cifar": lambda x: x * std + mean,
    }
    after = {
        "softmax": lambda y: y.softmax(1),
        "sigmoid": lambda y: y.sigmoid(),
        "shuffled": lambda y: y[:, [3, 7, 1, 0, 9, 2, 5, 4, 8, 6]],
        "swapped": lambda y: y[:, [0, 1, 2, 5, 4, 3, 6, 7, 9, 8]],
        "dense": lambda y: y[:, :, None, None].expand(-1, -1, 4, 4),
    }

    class Planted(nn.Module):
        def __init__(self, before=None, after=None):
            super().__init__()
            self.network, self.before, self.after = network, before or (lambda x: x), after or (lambda y: y)

        def forward(self, x):
            return self.after(self.network(self.before(x)))

    made = {name: Planted(before=change) for name, change in before.items()}
    made |= {name: Planted(after=change) for name, change in after.items()}
    for name, module in made.items():
        torch.jit.trace(module.eval(), torch.zeros(2, 3, 32, 32)).save(folder / f"{name}.pt")
    x, y = own_files.real_images(real_data)
    np.savez(folder / "shuffled.npz", x=x, y=np.random.default_rng(0).permutation(y))
    np.savez(folder / "three.npz", x=x[:3], y=y[:3])
    np.savez(folder / "one_class.npz", x=x[y == 0], y=y[y == 0])
    shutil.copytree(own / "images/cat", folder / "single/cat")
    shutil.copytree(own / "images", folder / "broken")
    (folder / "broken/cat/9999.png").write_bytes(b"\x89PNG and no more")
    shutil.copytree(own / "images", folder / "unknown")
    (folder / "unknown/cat").rename(folder / "unknown/unicorn")
    shutil.copytree(own / "vit", folder / "raw")
    about = json.loads((folder / "raw/preprocessor_config.json").read_text())
    about |= {"do_normalize": False, "do_rescale": False}
    (folder / "raw/preprocessor_config.json").write_text(json.dumps(about))
    return folder


@pytest.mark.parametrize(
    ("model", "expected"),
    [("bgr", {"channel_order": "bgr"}), ("half", {"mean": [0.5] * 3, "std": [0.5] * 3})],
)
def test_preprocessing_that_is_clearly_best_is_found(planted, own, model, expected):
    models, _, _ = entries(looked_at(planted / f"{model}.pt", own / "images.npz", trust_code=True))
    assert expected.items() <= models[model].items()


@pytest.mark.parametrize(("model", "option"), [("white255", "none,255"), ("cifar", "imagenet|cifar10")])
def test_preprocessing_that_fits_about_as_well_as_another_is_asked_for(planted, own, model, option):
    with pytest.raises(InputError, match=rf"(?s)fit about equally well.*57\.4%.*PREPROCESSING=({option})"):
        looked_at(planted / f"{model}.pt", own / "images.npz", trust_code=True)
    chosen = {"white255": "none,255", "cifar": "cifar10"}[model]
    found = looked_at(planted / f"{model}.pt", own / "images.npz", trust_code=True, preprocessing=chosen)
    assert any(ACCURACY in line and "right" in line for line in found.lines)


@pytest.mark.parametrize(
    ("model", "data", "message"),
    [
        ("planted/shuffled.pt", "own/images.npz", r"answers fit .*another order .*57\.4% after"),
        ("planted/swapped.pt", "own/images", r"another order of the classes.*cat -> dog, dog -> cat"),
        ("planted/softmax.pt", "own/images.npz", r"probabilities, not logits.*before the softmax"),
        ("planted/sigmoid.pt", "own/images.npz", r"outputs of a sigmoid"),
        ("planted/dense.pt", "own/images.npz", r"returns shape \(2, 10, 4, 4\)"),
        (
            "planted/raw",
            "own/images",
            r"stated by preprocessor_config\.json gives .*another way surely more.*what is stated, none,255",
        ),
        ("own/net.onnx", "planted/shuffled.npz", r"no more than by guessing.*--labels"),
        ("own/net.onnx", "planted/three.npz", r"three\.npz: no sample of class"),
        ("own/net.onnx", "planted/one_class.npz", r"one_class\.npz: 1 class "),
        ("own/net.onnx", "planted/single", r"single: holds one class folder, cat"),
        ("own/net.onnx", "planted/broken", r"9999\.png: not a whole image"),
        ("own/vit", "planted/unknown", r"1 of 10 classes .*unicorn"),
        ("own/net.onnx", "planted/nothing", r"nothing: there is no such file or folder"),
        ("own/gone.onnx", "own/images", r"gone\.onnx: there is no such file"),
        ("own/weights.pth", "own/images", r"weights\.pth: holds weights.*ARCHITECTURE="),
        ("resnet5", "own/images", r"resnet5: no such file, and no network of timm"),
        ("resnet50", "own/images", r"resnet50: its weights are not on this machine.*pretrained=True"),
        ("own/images", "own/images", r"images: a folder without models"),
    ],
)
def test_what_is_wrong_is_said_in_one_message(planted, own, model, data, message):
    def path(name):
        folder, _, rest = name.partition("/")
        return {"planted": planted, "own": own}[folder] / rest if rest else name

    with pytest.raises(InputError, match=f"(?s){message}"):
        looked_at(path(model), path(data), trust_code=True)
    # Nothing is left beside files of the user.
    assert not [*own.rglob("*.sha256"), *planted.rglob("*.sha256")]


def test_preprocessing_that_is_asked_for_is_taken_with_a_word_where_another_is_surely_better(own):
    found = looked_at(own / "net.onnx", own / "images.npz", preprocessing="imagenet")
    assert any("as asked, although none is surely better" in line for line in found.lines)
    found = looked_at(own / "net.onnx", own / "images.npz", preprocessing="none")
    assert any(line.endswith("not normalised: as asked") for line in found.lines)


def test_class_folders_that_are_numbers_count_as_numbers(own, tmp_path):
    for number, name in enumerate(own_files.CLASSES):
        # 8, 9, 10, 11, ..., which sorted as text begin with 10.
        shutil.copytree(own / "images" / name, tmp_path / f"numbers/{number + 8}")
    _, dataset, _ = entries(looked_at(own / "net.onnx", tmp_path / "numbers"))
    assert dataset["folders"] == [str(number) for number in range(8, 18)]


@pytest.mark.parametrize(
    ("files", "options", "message"),
    [
        (("logits.npz",), {"eps": ("8/255",)}, r"--eps: logits have no use"),
        (("many.npz", "images.npz"), {"labels": "a,b"}, r"--labels: logits have no use"),
        (("logits.npz",), {"arrays": "x,y"}, r"--arrays: logits have no use"),
        (("logits.npz",), {"value_range": "255"}, r"--value-range: logits have no use"),
        (("logits.npz",), {"image_folder": "images"}, r"--image-folder: logits have no use"),
        (("net.onnx", "images.npz"), {"architecture": "timm:resnet18"}, r"--architecture timm:resnet18: no model here"),
        (("script.pt", "images.npz"), {}, r"script\.pt: is TorchScript.*TRUST_CODE=1"),
    ],
)
def test_options_that_cannot_apply_and_code_without_trust_are_refused(own, files, options, message):
    paths = [own / file for file in files]
    with pytest.raises(InputError, match=message):
        looked_at(*paths, **options) if len(paths) > 1 else looked_at(*paths, data=None, **options)


def test_what_data_cannot_be_is_said(own, tmp_path, real_data):
    x, y = own_files.real_images(real_data)
    np.savez(tmp_path / "from_one.npz", x=x, y=y + 1)
    (tmp_path / "two").mkdir()
    for name in "ab":
        (tmp_path / f"two/{name}.csv").write_text("path,label\n")
    (tmp_path / "nested").mkdir()
    shutil.copytree(own / "images", tmp_path / "nested/test")
    for data, message in (
        ("from_one.npz", r"Labels count from 0.*subtract 1"),
        ("two", r"2 CSV files \(a\.csv, b\.csv\)"),
        ("nested", r"folders of folders.*nested/test"),
    ):
        with pytest.raises(InputError, match=message):
            looked_at(own / "net.onnx", tmp_path / data)


def test_a_pickle_with_code_is_refused_unopened(own, tmp_path):
    class Evil:
        def __reduce__(self):
            return (open, (str(tmp_path / "it-ran"), "w"))

    torch.save({"weights": Evil()}, tmp_path / "evil.pth")
    with pytest.raises(InputError, match=r"evil\.pth: refused, nothing in it was run"):
        looked_at(tmp_path / "evil.pth", own / "images.npz", architecture=f"{own}/my_networks.py:marabou")
    assert not (tmp_path / "it-ran").exists()
