"""What a few lines stand for: defaults, derived names, and where each value comes from."""

import hashlib
import json
import subprocess
import sys

import pytest
import yaml

from gfscore.core.errors import InputError
from gfscore.measures import KINDS, complete
from gfscore.measures.names import entry_named, name_of
from gfscore.workflow.config_files import Mark, marked
from gfscore.workflow.configuration import resolved_configuration
from gfscore.workflow.plan import Run
from gfscore.workflow.resolved_file import configuration_of, flow, origins, rendered
from gfscore.workflow.resolving import resolve
from helpers.configurations import DEMO, FILES, ROOT, completed, shipped_configuration, written

DIGITS = "datasets:\n  d:\n    source: digits\n"
MODEL = "models:\n  d:\n    Linf:\n      Mine:\n        path: mine.pt\n        architecture: architectures.mine:small\n"


def from_text(*texts):
    """The complete configuration of pieces of YAML."""
    config = {}
    for text in texts:
        config |= yaml.safe_load(text)
    return completed(config)


# ---- what is left out ----


def test_what_a_model_a_dataset_and_an_audit_leave_out_is_filled_in():
    audit = "audits:\n  mine:\n    dataset: d\n    models: [d/Linf/Mine]\n"
    config = from_text(MODEL, DIGITS, audit)
    model = config["models"]["d"]["Linf"]["Mine"]
    assert model["source"] == "torch" and model["mean"] is None and model["clean_accuracy_tolerance"] == 0.005
    assert config["datasets"]["d"]["models_of"] == "d"
    found = config["audits"]["mine"]
    assert found["title"] == "Mine" and found["measures"] == ["clean", "great-softmax", "adversarial-linf-8of255"]
    assert found["calibration"]["measure"] == "great-softmax" and found["groups"] is found["projection"] is None
    (rule,) = found["gate"]
    assert (rule["measure"], rule["statistic"], rule["at_least"]) == ("clean", "wcr", 0.5)
    assert config["run"] == ["mine"]


@pytest.mark.parametrize(
    ("entry", "source"),
    [
        ({"path": "x.pt", "architecture": "a.b:c"}, "torch"),
        ({"path": "x.safetensors", "architecture": "resnet18"}, "timm"),
        ({"path": "x.pt", "architecture": "vit", "train_on": "train"}, "probe"),
        ({"path": "x.onnx"}, "onnx"),
        ({"path": "x.pt2", "trust_pickle": True, "sha256": "0" * 64}, "program"),
        ({"path": "x.npz"}, "logits"),
        ({"path": "x.tsv.gz"}, "samples"),
        ({"train_on": "train", "training": {"method": "PGD"}}, "trained"),
    ],
)
def test_a_model_is_recognised_by_what_its_entry_holds(entry, source):
    config = completed(
        {
            "datasets": {"d": {"source": "digits"}, "train": {"source": "digits", "split": "train"}},
            "models": {"d": {"none": {"X": entry}}},
            "audits": {"a": {"dataset": "d", "measures": ["clean"]}},
        }
    )
    found = config["models"]["d"]["none"]["X"]
    assert found["source"] == source
    assert found.get("evaluate_on") in (None, "d") and ("evaluate_on" in found) == ("train_on" in entry)


@pytest.mark.parametrize(
    ("entry", "source"),
    [
        ({"path": "x.npz"}, "npz"),
        ({"path": "x.parquet"}, "parquet"),
        ({"path": "x.csv"}, "labels"),
        ({"path": "data/x"}, "image_folder"),
        ({"variant": "cifar100"}, "cifar"),
        ({"task": "Smiling"}, "celeba"),
        ({"path": "data/c", "corruption": "fog", "severity": 1}, "corrupted"),
        ({"fitted_on": "d"}, "generated"),
    ],
)
def test_a_dataset_is_recognised_by_what_its_entry_holds(entry, source):
    config = from_text(DIGITS, MODEL, "audits: {a: {dataset: d}}") | {"run": ["a"]}
    config["datasets"]["own"] = entry
    assert completed(config)["datasets"]["own"]["source"] == source


def test_classes_are_known_where_the_source_or_the_data_of_a_generator_know_them():
    datasets = shipped_configuration()["datasets"]
    assert datasets["digits-generated"]["classes"] == datasets["digits"]["classes"] == list("0123456789")
    assert datasets["cifar10"]["classes"][3] == "cat" and datasets["imagenet"]["classes"] is None


def test_settings_that_a_zoo_shares_stand_once_and_arguments_are_replaced_as_a_whole():
    mixer = {"training": {"method": "PGD", "architecture": "patch_mixer", "arguments": {"patch": 2}}}
    zoo = shipped_configuration(models={"digits": {"none": {"Mixer": mixer}}})["models"]["digits"]["none"]
    assert {entry["train_on"] for entry in zoo.values()} == {"digits-train"}
    assert zoo["PGD"]["training"]["arguments"] == {"width": 16, "pool": 4}
    assert zoo["Mixer"]["training"]["arguments"] == {"patch": 2}


def test_a_training_perturbs_within_the_radius_of_its_attack_unless_it_says_otherwise():
    def threat(method, **training):
        attack = {"eps": "8/255", "norm": "l2"}
        entry = {"train_on": "train", "training": {"method": method, **training}, "attack": attack}
        datasets = {"d": {"source": "digits"}, "train": {"source": "digits", "split": "train"}}
        config = {"datasets": datasets, "models": {"d": {"none": {"X": entry}}}}
        found = completed(config | {"audits": {"a": {"dataset": "d"}}})["models"]["d"]["none"]["X"]
        return found["training"]["threat"]

    eps = 8 / 255
    assert threat("ERM") is None and threat("PRL") == {"norm": "l2", "eps": eps}
    assert threat("FGSM") == {"norm": "l2", "eps": eps, "step_size": 1.25 * eps}
    assert threat("PGD") == {"norm": "l2", "eps": eps, "step_size": eps / 4, "steps": 7}
    assert threat("PGD", threat={"eps": 0.1, "steps": 3})["step_size"] == 0.025


def test_models_of_robustbench_need_no_entry_and_an_entry_of_ones_own_says_what_differs():
    audits = {"a": {"dataset": "cifar10", "models": ["cifar10/L2/Ding2020MMA", "cifar10/L2/*"]}}
    config = {"datasets": {"cifar10": {"source": "cifar"}}, "audits": audits}
    found = completed(config)["audits"]["a"]
    assert found["models"][0] == "cifar10/L2/Ding2020MMA" and len(found["models"]) == 21 == len(set(found["models"]))
    assert found["measures"][-1] == "adversarial-l2-0.5"
    config["models"] = {"cifar10": {"L2": {"Ding2020MMA": {"source": "robustbench", "sha256": "0" * 64}}}}
    own = completed(config)["models"]["cifar10"]["L2"]["Ding2020MMA"]
    assert own["published_clean_accuracy"] == 0.8802 and own["sha256"] == "0" * 64 and own["model"] == "Ding2020MMA"


def test_files_that_an_audit_names_become_models_by_their_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "net.npy").write_text(folder)
    audits = {"a": {"dataset": "d", "models": ["one/net.npy", "two/net.npy", "b.onnx"]}}
    config = completed({"datasets": {"d": {"source": "digits"}}, "audits": audits})
    digest = hashlib.sha256(b"two").hexdigest()[:4]
    assert config["audits"]["a"]["models"] == ["d/none/net", f"d/none/net-{digest}", "d/none/b"]
    assert config["models"]["d"]["none"][f"net-{digest}"]["path"] == "two/net.npy"
    assert config["audits"]["a"]["measures"] == ["clean", "great-softmax"]


@pytest.mark.parametrize("dataset", [["d"], {}, None])
def test_a_dataset_that_is_no_name_is_refused_by_its_key(dataset):
    with pytest.raises(InputError, match="audits: a: dataset: "):
        completed(
            {"datasets": {"d": {"source": "digits"}}, "audits": {"a": {"dataset": dataset, "models": ["b.onnx"]}}}
        )


# ---- measures by their settings ----


def test_measures_are_named_by_their_settings_or_say_them_by_their_name():
    inline = [{"kind": "adversarial", "eps": "4/255"}, {"kind": "minimal", "subset": {"samples": 9}}]
    audit = {"dataset": "d", "measures": ["clean", *inline, "great-sigmoid-of-softmax", "certified-0.5"]}
    config = completed(yaml.safe_load(DIGITS + MODEL) | {"audits": {"a": audit}})
    names = config["audits"]["a"]["measures"]
    assert names[1] == "adversarial-linf-4of255" and names[2].startswith("minimal-l2-") and len(names[2]) == 15
    assert config["measures"]["adversarial-linf-4of255"]["eps"] == 4 / 255
    assert config["measures"]["great-sigmoid-of-softmax"]["activation"] == "sigmoid-of-softmax"
    assert config["measures"]["certified-0.5"]["smoothing"]["sigma"] == 0.5


def test_a_mistake_in_the_settings_of_a_measure_is_listed_once_beside_those_of_the_audit():
    inline = [{"kind": "adversarial", "epss": 0.1}, {"kind": "minimal"}]
    audit = {"dataset": "d", "measures": inline, "titel": "Mine"}
    with pytest.raises(InputError) as refused:
        completed(yaml.safe_load(DIGITS + MODEL) | {"audits": {"a": audit}})
    mistakes = str(refused.value).splitlines()[1:]
    assert len(mistakes) == 2 and "'epss'" in mistakes[0] and "'titel'" in mistakes[1]


SETTINGS = [
    {"kind": "adversarial", "eps": 0.15},
    {"kind": "adversarial", "eps": 0.15, "attacks": [{"name": "pgd"}]},
    {"kind": "adversarial", "norm": "l2", "eps": 0.15},
    {"kind": "certified", "largest_radius": 4.0},
    {"kind": "certified", "smoothing": {"sigma": 4.0}},
    {"kind": "probabilistic", "perturbation": {"family": "gaussian", "sigma": 0.2}},
    {"kind": "probabilistic", "perturbation": {"family": "l2_ball", "eps": 0.2}},
    {"kind": "probabilistic", "kappa": "SIL2"},
    {"kind": "corruption", "severities": [1]},
    *({"kind": kind} for kind in KINDS),
]


def test_other_settings_have_another_name_and_a_name_without_a_digest_says_them_all():
    names = [name_of(entry) for entry in SETTINGS]
    assert len(set(names)) == len({json.dumps(complete(entry)) for entry in SETTINGS}) == len(names)
    said = {name: entry_named(name) for name in names}
    assert all(complete(entry) == complete(said[name_of(entry)]) for entry in SETTINGS if said[name_of(entry)])
    assert all(said[kind] for kind in map(name_of, ({"kind": kind} for kind in KINDS)))
    for name in ("adversarial-linf", "adversarial-linf-0.150", "great", "cleaner", "", "certified-"):
        assert entry_named(name) is None


# ---- what is left of the first edition ----


def test_an_explicit_configuration_is_its_own_completion(config):
    assert completed(config) == config


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_written_configuration_of_an_audit_makes_the_same_audit(path, tmp_path):
    resolution = resolved_configuration([path], {}, thorough=False)
    for audit in resolution.config["audits"]:
        text = rendered(resolution, audit)
        assert text == rendered(resolved_configuration([path], {}, thorough=False), audit)
        (tmp_path / "again.yaml").write_text(text)
        again = resolved_configuration([tmp_path / "again.yaml"], {}, thorough=False).config
        assert again["run"] == [audit] and part_of(again, audit) == part_of(resolution.config, audit)


def test_what_exports_state_is_not_in_it(tmp_path):
    texts = set()
    for exports in ("", "exports: {author: {name: Ada Lovelace}}\n"):
        audits = "audits:\n  mine: {dataset: d, models: [d/Linf/Mine]}\n"
        (tmp_path / "given.yaml").write_text(DIGITS + MODEL + exports + audits)
        texts.add(rendered(resolved_configuration([tmp_path / "given.yaml"], {}, thorough=False), "mine"))
    assert len(texts) == 1


def test_data_that_only_train_are_written_without_the_zoo_of_theirs(tmp_path):
    trained = "      T:\n        train_on: other\n        training: {method: ERM}\n"
    text = (
        DIGITS
        + "  other: {source: digits, split: train}\n"
        + MODEL
        + trained
        + MODEL.removeprefix("models:\n").replace("  d:", "  other:")
        + "audits:\n  mine: {dataset: d, models: [d/Linf/T]}\n"
    )
    (tmp_path / "given.yaml").write_text(text)
    resolution = resolved_configuration([tmp_path / "given.yaml"], {}, thorough=False)
    assert resolution.config["datasets"]["other"]["models_of"] == "other"
    (tmp_path / "again.yaml").write_text(rendered(resolution, "mine"))
    again = resolved_configuration([tmp_path / "again.yaml"], {}, thorough=False).config
    assert [again["datasets"][name]["models_of"] for name in ("d", "other")] == ["d", None]
    assert part_of(again, "mine") == part_of(resolution.config, "mine")


def test_each_value_says_where_it_comes_from(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(written()), encoding="utf-8")
    resolution = resolved_configuration([path], {"intervals": {"confidence": 0.9}}, thorough=False)
    lines = rendered(resolution, "digits").splitlines()
    assert f"    dataset: digits # {path}" in lines
    assert "  confidence: 0.9 # --config" in lines and "  method: betting # default" in lines
    assert f"          method: PGD # {path}" in lines and f"        train_on: digits-train # {path}" in lines
    assert f"      - name: pgd # {path}" in lines and "        restarts: 1 # default" in lines
    assert sum(line.endswith(" # default") for line in lines) > 200


def test_files_that_values_come_from_are_listed_whatever_their_names(tmp_path):
    names = ("base.yaml", "mine # 2.yaml", "unused.yaml")
    base, mine, unused = (tmp_path / name for name in names)
    base.write_text(yaml.safe_dump(written()), encoding="utf-8")
    mine.write_text("audits: {digits: {title: Mine}}\n")
    unused.write_text("datasets: {unused: {source: digits}}\n")
    text = rendered(resolved_configuration([base, mine, unused], {}, thorough=False), "digits")
    named = origins(text)
    assert named.files == [str(base), str(mine)]


def test_an_address_is_written_without_its_query(tmp_path):
    entry = {"path": "x.onnx", "url": "https://example.org/x.onnx?token=secret"}
    audits = {"a": {"dataset": "d", "measures": ["clean"]}}
    config = {"datasets": {"d": {"source": "digits"}}, "models": {"d": {"none": {"X": entry}}}, "audits": audits}
    text = rendered(resolve(marked(config, Mark("mine.yaml"))), "a")
    assert "https://example.org/x.onnx?..." in text and "secret" not in text


def test_settings_are_parsed_without_anything_heavy():
    """Every run and every job on a cluster reads them."""
    code = (
        "import sys; from gfscore.workflow.configuration import resolved_configuration; resolved_configuration(['config.yaml'], {}, thorough=False);"
        "print([name for name in ('numpy', 'pandas', 'torch', 'scipy', 'pyarrow', 'jsonschema') if name in sys.modules])"
    )
    environment = {"PYTHONPATH": str(ROOT / "workflow_scripts")}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, check=True)
    assert done.stdout.decode().strip() == "[]"


def test_the_schema_of_editors_is_that_of_the_settings():
    done = subprocess.run([sys.executable, "tools/write_config_schema.py", "--check"], cwd=ROOT, check=False)
    assert done.returncode == 0


def test_the_schema_of_editors_accepts_what_is_shipped_and_refuses_unknown_keys():
    from jsonschema import Draft202012Validator

    schema = Draft202012Validator(json.loads((ROOT / "rules/schemas/config.schema.json").read_text()))
    for path in FILES:
        assert not [error.message for error in schema.iter_errors(yaml.safe_load(path.read_text()))], path
        assert not [
            error.message for error in schema.iter_errors(resolved_configuration([path], {}, thorough=False).config)
        ], path
    for place in (("measures", "corruption"), ("datasets", "digits"), ("audits", "digits"), ("models", "digits"), ()):
        config = yaml.safe_load(DEMO.read_text())
        part = config
        for step in place:
            part = part[step]
        part["zzz"] = {}
        assert list(schema.iter_errors(config)), place


@pytest.mark.parametrize(
    "value",
    [
        "plain",
        "8/255",
        "no",
        "1",
        "a b",
        "é",
        "a\nb",
        "a\rb",
        "a\x85b",
        "a\u2028b",
        "\U0001f600",
        'quoted "x"',
        "",
        "\x07",
    ],
)
def test_a_value_in_one_line_is_read_back_by_yaml(value):
    for data in (value, [value, {value: value}], {"eps": 1e-05, value: [0.5, None, True]}):
        text = flow(data)
        assert yaml.safe_load(text) == data
        assert "\n" not in text and (text.isprintable() or value.isprintable())


def part_of(config, audit):
    return configuration_of(Run(config).audits[audit])
