"""What is refused of a configuration: each mistake names its place, its value, what is near, and a remedy."""

import copy
import re
import sys

import pytest

from gfscore.audit.verdicts.gate_rules import STATISTICS, statistic_of
from gfscore.core.errors import InputError, unknown_name
from gfscore.workflow.config_files import marked, merge
from gfscore.workflow.configuration import check_case
from gfscore.workflow.resolution import Draft
from helpers.configurations import completed, refusal, written

TORCH = {"path": "a.pt", "architecture": "torchvision.models:resnet18"}
RULE = {"measure": "great-softmax", "at_least": 0.3}
FALSIFIED = {"measure": "great-softmax", "statistic": "falsification_rate", "at_most": 0.2}
DECLINE = {"measure": "great-softmax", "statistic": "decline", "at_most": 0.1}


def paths_of(data, path=()):
    """Every mapping of nested mappings and lists, as a path."""
    if isinstance(data, dict):
        yield path
    for key, value in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        yield from paths_of(value, (*path, key))


def part_of(data, path):
    for key in path:
        data = data[key]
    return data


def test_an_unknown_key_is_refused_at_every_level(config):
    """No section takes a key that nobody reads, except where keys are names or arguments of others."""
    sections = {(name,) for name in ("audits", "datasets", "measures", "mappers", "models")}
    names = {*sections, ("models", "digits"), ("models", "digits", "none")}
    tried = 0
    for path in paths_of(config):
        of_demo = path[:1] in [("great",), ("measures",), ("mappers",), ()] or "digits" in path
        if path in names or path[-1:] == ("arguments",) or not of_demo:
            continue
        changed = copy.deepcopy(config)
        part_of(changed, path)["zzz"] = 1
        assert "'zzz' is unknown" in refusal(changed), path
        tried += 1
    assert tried > 50


ENTRY = ("models", "digits", "none", "PGD")
SET = ("datasets", "digits")
AUDIT = ("audits", "digits")
BALL = ("measures", "probabilistic-linf", "perturbation")


def laid(changes):
    """The demo as it is written but without its remedy, with changes by path."""
    config = written()
    del config["audits"]["digits"]["remedy"]
    for path, value in changes.items():
        part = config
        for key in path[:-1]:
            part = part.setdefault(key, {}) if isinstance(part, dict) else part[key]
        part[path[-1]] = value
    return config


@pytest.mark.parametrize(
    ("path", "value", "facts"),
    [
        # keys and names, with the nearest known one
        (("grate",), {}, ["section 'grate'", "'great'"]),
        (("great", "stability_windw"), 0.1, ["great: stability_windw", "'stability_window'"]),
        (("intervals", "method"), "hoefding", ["intervals: method", "'hoeffding'"]),
        ((*AUDIT, "models", 0), "digits/none/PGDD", ["audits: digits: models", "'digits/none/PGDD'", "'digits/none/PGD'"]),
        ((*AUDIT, "models", 0), "cifar10/L2/*", ["is of another zoo", "'digits'"]),
        ((*AUDIT, "models", 0), "cifar10/L", ["'cifar10/L' is unknown"]),
        ((*AUDIT, "measures", 1), "great-softmx", ["audits: digits: measures", "'great-softmax'"]),
        ((*AUDIT, "measures", 1), "adversarial-linf-8of25", ["'adversarial-linf-8of255'"]),
        ((*AUDIT, "dataset"), "digts", ["audits: digits: dataset", "'digits'"]),
        ((*AUDIT, "dataset"), "digits-train", ["names no models_of"]),
        ((*AUDIT, "projection"), "digits-va", ["audits: digits: projection", "'digits-vae'"]),
        ((*ENTRY, "training", "method"), "PGDD", ["models: digits/none/PGD: training: method", "'PGD'"]),
        ((*ENTRY, "train_on"), "digits-trian", ["train_on", "'digits-train'"]),
        ((*ENTRY, "source"), "torh", ["source 'torh'", "'torch'"]),
        (("models", "digits", "Linff"), {}, ["threat 'Linff'", "'Linf'"]),
        ((*SET, "source"), "digit", ["datasets: digits: source", "'digits'"]),
        ((*SET, "models_of"), "digts", ["models_of", "'digits'"]),
        (("measures", "minimal-l2", "kind"), "minmal", ["measures: minimal-l2: kind", "'minimal'"]),
        (("mappers", "digits-vae", "kind"), "beta_va", ["'beta_vae'"]),
        ((*BALL, "family"), "linf", ["perturbation: family", "'linf_ball'"]),
        (("measures", "adversarial-linf", "attacks", 0, "name"), "pgdd", ["attacks: 0: name", "'pgd'"]),
        (("measures", "minimal-l2", "attacks", 0), {"name": "fmn", "stps": 4}, ["attacks: 0: stps", "'steps'"]),
        (("run",), ["digts"], ["run", "'digits'"]),
        # names that would leave the folder or the page
        *(
            (("audits", name), {"dataset": "digits"}, ["may contain only letters"])
            for name in ("../up", "a/b", "a b", "<b>", "$(x)", "'", "", ".hidden", "-rf", "a" * 101, "a\n")
        ),
        # values of another type, form or size
        (("inference", "batch_size"), 0, ["inference: batch_size: 0 ", "at least 1"]),
        (("disparity", "permutations"), 999.0, ["write 999"]),
        (("disparity", "permutations"), True, ["true", "an integer"]),
        (("disparity", "permutations"), 10**12, ["1000000000000", "at most 1000000"]),
        (("intervals", "confidence"), 95, ["95 is above 1", "0.95"]),
        (("intervals", "confidence"), 0.05, ["intervals: confidence: ", "0.05", "0.95"]),
        (("great", "temperatures"), {"low": 2}, ["low < 1 < high"]),
        (("great", "temperatures"), {"coarse_step": 1e-9}, ["coarse_step", "100,000"]),
        ((*SET, "classes"), [0, 1], ["classes: 0: 0 is not a string", "quotes"]),
        ((*SET, "classes"), {"0": "cat"}, ["classes", "a list"]),
        ((*SET, "classes"), ["a", "a"], ["repeated"]),
        ((*SET, "classes"), ["cat", "cat\u200b"], ["differ in blanks"]),
        ((*SET, "subset"), 100, ["subset: 100", "a mapping"]),
        ((*SET, "label_error_rate"), "x", ["label_error_rate", "from_generator"]),
        ((*SET, "label_error_rate"), [0.1, 0.2, 0.3], ["3 rates for 10 classes"]),
        ((*SET, "label_error_rate"), "from_generator", ["label_error_rate", "source `generated`"]),
        (
            SET,
            {"source": "digits", "published_accuracy": "full", "subset": {"samples": 100}},
            ["published_accuracy", "`subset` and `half` leave some of the samples; write subset"],
        ),
        ((*SET, "test_share"), None, ["test_share: null", "a number"]),
        ((*SET, "test_share"), "1/0", ["divides by zero"]),
        ((*SET, "digest"), "A" * 63, ["not a SHA-256 digest of 64"]),
        ((*SET, "path"), "x", ["key 'path' is unknown"]),
        (("datasets", "own"), {"path": "x"}, None),
        (("datasets", "own"), {"path": "x", "preprocessing": {"method": "squash", "size": 30_000}}, ["30000", "8192"]),
        (
            ("datasets", "own"),
            {"path": "x", "preprocessing": {"method": "center_crop", "resize": 100}},
            ["100 is below the crop of 224"],
        ),
        (("datasets", "own"), {"path": "x", "preprocessing": {"method": "sqush"}}, ["'squash'"]),
        (("datasets", "own"), {"path": "x", "preprocessing": {"size": 3}}, ["preprocessing: method", "missing"]),
        (("datasets", "own"), {"path": "x.zip"}, ["source", "missing", "npz"]),
        *(
            (("datasets", "own"), {"source": "npz", "path": path}, ["datasets: own: path"])
            for path in (256 * "a", "a/" * 3000, "a\0b", "\ud800")
        ),
        (("datasets", "own"), {"path": "{x}"}, ["contains braces"]),
        (("datasets", "own"), {"source": "image_csv", "path": "x", "images": "{x}"}, ["own: images", "contains braces"]),
        ((*AUDIT, "last_release"), {"bundle": "{x}"}, ["digits: last_release: bundle", "contains braces"]),
        (("models", "own"), {"none": {"X": {"path": "a.pt"}}}, ["architecture", "missing"]),
        (("models", "own"), {"none": {"X": TORCH | {"mean": 0.5}}}, ["mean: 0.5", "a list"]),
        (("models", "own"), {"none": {"X": TORCH | {"sha256": "0G" * 32}}}, ["not a SHA-256"]),
        (("models", "own"), {"none": {"X": TORCH | {"trust_pickle": True}}}, ["trust_pickle", "sha256"]),
        (("models", "own"), {"none": {"X": TORCH | {"mean": [125, 123, 114]}}}, ["mean: 125", "value_range: 255"]),
        (("models", "own"), {"none": {"X": TORCH | {"mean": [300, 1, 1], "value_range": 255}}}, ["300 exceeds"]),
        (("models", "own"), {"none": {"X": TORCH | {"url": "https://me:secret@example.org/m.pt"}}}, ["url"]),
        (("models", "own"), {"none": {"X": TORCH | {"url": "ftp://example.org/m.pt"}}}, ["url"]),
        (("models", "own"), {"none": {"X": TORCH | {"url": "https://example.org/a@b.pt?token=1"}}}, None),
        (("models", "own"), {"none": {"X": {"foo": 1}}}, ["source", "missing"]),
        (("models", "own"), {"none": {"X": {"train_on": "digits-train", "training": {"method": "ERM"}}}}, ["evaluate_on"]),
        (("models", "digits", "defaults"), 5, ["models: digits: defaults: 5", "a mapping"]),
        (("audits",), {}, ["no audit"]),
        ((*AUDIT, "gate"), [], ["audits: digits: gate"]),
        ((*AUDIT, "gate"), None, ["audits: digits: gate: null"]),
        ((*AUDIT, "models"), ["digits/none/ERM"] * 2, ["models: 'digits/none/ERM' stands more than once"]),
        (("run",), ["digits", "digits"], ["'digits' is listed more than once"]),
        # what does not fit together
        ((*AUDIT, "measures"), ["great-softmax"], ["gate: 0: measure", "adversarial-linf"]),
        ((*AUDIT, "calibration"), {"measure": "clean"}, ["'clean' has no temperature"]),
        ((*AUDIT, "calibration"), {"measure": "great-sigmoid-of-softmax"}, ["'great-sigmoid-of-softmax'"]),
        ((*ENTRY, "training", "coefficients"), {"beta": 6}, ["key 'beta'"]),
        ((*ENTRY, "training", "threat"), {"restarts": 6}, ["key 'restarts'"]),
        (("models", "digits", "none", "ERM", "training", "threat"), {"eps": 0.1}, ["threat", "null"]),
        (("measures", "minimal-l2", "attacks"), [{"name": "carlini-wagner"}], None),
        (("measures", "certified-l2", "largest_radius"), 1, ["largest_radius", "give one"]),
        # distances in steps of a byte, with their share of white
        (("measures", "adversarial-linf", "eps"), 8, ["measures: adversarial-linf: eps: an l_inf distance of 8", "8/255"]),
        (("measures", "adversarial-linf", "eps"), 8.5, ["l_inf distance of 8.5", "a number up to 1"]),
        (("measures", "adversarial-linf", "attacks"), [{"name": "pgd", "step_size": 8}], ["step_size", "8/255"]),
        (("measures", "targeted-linf", "step_size"), 8, ["measures: targeted-linf: step_size", "8/255"]),
        ((*BALL, "eps"), 8, ["perturbation: eps", "8/255"]),
        (("measures", "minimal-l2"), {"kind": "minimal", "norm": "linf", "largest_distance": 8}, ["8/255"]),
        ((*ENTRY, "training", "threat"), {"eps": 8}, ["models: digits/none/PGD: training: threat: eps", "8/255"]),
        ((*ENTRY, "attack"), {"step_size": 2}, ["attack: step_size", "2/255"]),
        (("measures", "adversarial-linf"), {"kind": "adversarial", "norm": "l2", "eps": 8}, None),
        ((*BALL,), {"family": "l2_ball", "eps": 8}, None),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_place_and_what_to_write(path, value, facts):
    config = laid({path: value})
    if facts is None:
        completed(config)
        return
    text = refusal(config)
    assert not [fact for fact in facts if fact not in text], text


def test_all_mistakes_are_listed_at_once_in_the_order_of_the_file():
    names = [f"key_{letter}" for letter in "hgfedcba"]
    text = refusal(laid({("great", name): 1 for name in names} | {("inference", "batch_size"): 0}))
    assert re.findall("(key_[a-h]) ?:", text) == names and "batch_size" in text


@pytest.mark.parametrize(
    ("rules", "facts"),
    [
        ([RULE | {"measure": "great-softmx"}], ["gate: 0: measure", "'great-softmax'"]),
        ([RULE | {"measure": "great-softmax-of-sigmoid"}], ["gate: 0: measure"]),
        ([RULE | {"statistic": "wrc"}], ["'wcr'"]),
        ([RULE | {"statistic": "ihdi"}], ["ihdi has no bounds"]),
        ([RULE | {"at_most": 0.3}], ["one threshold"]),
        ([{"measure": "clean"}], ["one threshold"]),
        ([RULE | {"at_least": 1.3}], ["at_least: 1.3", "0 to 1.25331"]),
        ([{"measure": "great-softmax", "statistic": "nrgc", "at_most": 0.95}], ["0.95", "0 to 0.9"]),
        ([RULE | {"statistic": "fp", "at_least": -0.7}], ["-0.7", "-0.626657 to 1.25331"]),
        ([RULE | {"statistic": "class"}], ["name a class"]),
        ([RULE | {"class": "3"}], ["name a class"]),
        ([RULE | {"statistic": "class", "class": "33"}], ["class '33'", "'3'"]),
        ([RULE | {"looks": {"planned": 2, "this": 3}}], ["looks", "2 were planned"]),
        ([RULE | {"on_inconclusive": "go"}], ["on_inconclusive", "'go'"]),
        ([RULE | {"attribute": "loops"}], ["gate: 0: attribute"]),
        ([FALSIFIED, FALSIFIED | {"class": "3"}], None),
        ([FALSIFIED | {"measure": "clean"}], ["'clean' is no attack-free score"]),
        ([FALSIFIED | {"at_most": 1.5}], ["1.5", "0 to 1"]),
        ([FALSIFIED | {"class": "33"}], ["class '33'", "'3'"]),
        ([{"measure": "great-softmax", "statistic": "group_gap", "attribute": "slant", "at_most": 0.3}], None),
        ([{"measure": "great-softmax", "statistic": "group_gap", "attribute": "size", "at_most": 0.3}], ["'size'"]),
        ([{"measure": "great-softmax", "statistic": "group_gap", "at_most": 0.3}], ["an attribute"]),
        ([{"measure": "great-softmax", "statistic": "group_gap", "attribute": "slant", "at_most": 1.3}], ["1.3"]),
        ([DECLINE], ["gate: 0: statistic", "last_release"]),
        (
            [
                {"measure": "great-softmax", "statistic": name, statistic_of(name).direction: 0.5, "confidence": 0.9}
                for name in STATISTICS
                if name not in ("class", "falsification_rate", "group_gap", "decline")
            ],
            None,
        ),
    ],
)
def test_a_gate_rule_says_one_thing_that_can_be_judged(rules, facts):
    config = laid({(*AUDIT, "gate"): rules})
    if facts is None:
        completed(config)
    else:
        text = refusal(config)
        assert not [fact for fact in facts if fact not in text], text


@pytest.mark.parametrize("statistic", STATISTICS)
def test_a_gate_that_would_pass_the_worse_classifier_is_refused(statistic):
    less = statistic in ("rdi", "nrgc", "falsification_rate", "group_gap", "decline")
    direction, other = ("at_most", "at_least") if less else ("at_least", "at_most")
    text = refusal(laid({(*AUDIT, "gate"): [{"measure": "great-softmax", "statistic": statistic, other: 0.1}]}))
    assert f"{statistic} of great-softmax" in text and f"give its threshold as {direction}" in text


def test_a_falsification_rate_needs_distances_in_l2_and_right_labels():
    demo = {(*AUDIT, "gate"): [FALSIFIED], (*AUDIT, "groups"): None}
    text = refusal(laid({**demo, (*AUDIT, "measures"): ["clean", "great-softmax"]}))
    assert "one measure of kind minimal with norm l2" in text
    text = refusal(laid({**demo, (*SET, "label_error_rate"): 0.01}))
    assert "'digits' has a label_error_rate" in text


def test_a_decline_is_since_a_release_that_some_rule_compares_with():
    release = {(*AUDIT, "last_release"): {"bundle": "last-release"}}
    completed(laid({**release, (*AUDIT, "gate"): [DECLINE]}))
    text = refusal(laid(release))
    assert "last_release" in text and "statistic: decline" in text
    text = refusal(laid({**release, (*AUDIT, "gate"): [DECLINE | {"at_most": 1.3}]}))
    assert "-1.25331 to 1.25331" in text


def case_mistakes(config):
    """Mistakes of a complete configuration whose names differ only in case."""
    draft = Draft(marked(config, None), config)
    check_case(draft)
    return draft.mistakes


def test_names_that_differ_in_case_alone_are_refused_together(config):
    for section, name, other in [
        ("audits", "digits", "Digits"),
        ("datasets", "digits", "DIGITS"),
        ("measures", "clean", "Clean"),
        ("mappers", "digits-vae", "digits-VAE"),
        ("models", "digits", "Digits"),
    ]:
        config[section][other] = config[section][name]
        text = refusal(config)
        assert f"{name!r} and {other!r} differ only in case" in text and f"{section}: {other}" in text
        del config[section][other]
    entry = config["models"]["digits"]["none"]["ERM"]
    config["models"]["digits"]["none"]["erm"] = entry
    assert "'ERM' and 'erm' differ only in case" in refusal(config)
    # RobustBench's models need no entry, so their names are there as well; one that takes their place is meant.
    config["models"]["digits"]["none"].pop("erm")
    config["models"]["cifar10"]["L2"] = {"wu2020adversarial": entry}
    text = refusal(config)
    assert "models: cifar10/L2/wu2020adversarial: 'wu2020adversarial' and 'Wu2020Adversarial' differ only" in text
    assert "rename 'wu2020adversarial'" in text
    config["models"]["cifar10"]["L2"] = {"Wu2020Adversarial": entry}
    assert not case_mistakes(config)
    config["models"]["CIFAR10"] = config["models"].pop("cifar10")
    (mistake,) = case_mistakes(config)
    assert mistake.key_path == ("models", "CIFAR10") and "'CIFAR10' and 'cifar10' differ only" in mistake.message


@pytest.mark.parametrize(
    ("source", "measure", "served"),
    [
        ({"path": "a.npy"}, "clean", True),
        ({"path": "a.npy"}, "corruption", False),
        ({"path": "a.onnx"}, "corruption", True),
        ({"path": "a.onnx"}, "adversarial-linf", False),
        ({"path": "a.tsv"}, "clean", True),
        ({"path": "a.tsv"}, "great-softmax", False),
        ({"path": "a.tsv"}, "certified-l2", False),
        (TORCH, "adversarial-linf", True),
    ],
)
def test_a_measure_that_a_source_cannot_serve_is_refused(source, measure, served):
    asked = {
        ("models", "own"): {"none": {"X": source}},
        ("datasets", "own"): {"source": "digits", "models_of": "own"},
        ("audits", "own"): {"dataset": "own", "measures": ["clean", measure][measure == "clean" :]},
    }
    if served:
        completed(laid(asked))
    else:
        text = refusal(laid(asked))
        assert "audits: own: measures" in text and "none/X" in text and measure in text


@pytest.mark.parametrize(
    ("changes", "fact"),
    [
        ({"budget": 100}, "needs 377 draws without a change"),
        ({"test": "repeated_exact", "alpha": 0.3}, "decides wrongly with a probability of up to"),
    ],
)
def test_a_test_that_can_decide_nothing_is_refused_in_an_audit_that_runs(changes, fact, monkeypatch):
    config = written()
    config["measures"]["probabilistic-linf"] |= changes
    assert fact in refusal(config)
    # A job trusts the run that started it, and a run asks about its own audits.
    completed(config, thorough=False)
    completed(config | {"run": ["other"], "audits": {**config["audits"], "other": {"dataset": "digits"}}})
    # Where Snakemake stands alone, the step itself finds such a test.
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    monkeypatch.delitem(sys.modules, "gfscore.statistics.sequential_tests")
    completed(config)


@pytest.mark.parametrize("activation", ["softmax", "sigmoid-of-softmax", "sigmoid", "softmax-of-sigmoid"])
def test_scores_of_sigmoids_are_refused_of_models_that_give_probabilities(activation):
    model = {"path": "a.npz", "allow_probabilities": "logarithms"}
    changes = {
        ("models", "own"): {"none": {"X": model}},
        ("datasets", "own"): {"source": "labels", "path": "y.npy", "classes": ["a", "b"], "models_of": "own"},
        ("measures", "mine"): {"kind": "great", "activation": activation},
        ("audits", "own"): {"dataset": "own", "measures": ["clean", "mine"]},
    }
    if activation.endswith("softmax"):
        completed(laid(changes))
    else:
        text = refusal(laid(changes))
        assert "audits: own: measures" in text and "none/X" in text and activation in text


def test_unknown_lists_what_exists_when_nothing_is_near():
    assert unknown_name("model", "zzz", ["a", "b"]) == "model 'zzz' is unknown; known: a, b"
    assert unknown_name("model", "zzz", []) == "model 'zzz' is unknown; known: none"


def test_mistakes_of_files_laid_over_one_another_name_file_and_line(tmp_path):
    from gfscore.workflow.configuration import resolved_configuration

    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    first.write_text("datasets:\n  d: {source: digits}\naudits:\n  a:\n    dataset: d\n    models: [d/none/X]\n")
    second.write_text("models:\n  d:\n    none:\n      X:\n        path: x.npy\n        toleranc: 1\n")
    with pytest.raises(InputError) as refused:
        resolved_configuration([first, second], {"intervals": {"confidence": 95}})
    text = str(refused.value)
    assert f"{second}, line 6: models: d/none/X: toleranc" in text and "--config: intervals: confidence" in text
    assert merge(marked({"a": {"b": 1}}, None), marked({"a": {"c": 2}}, None)) == {"a": {"b": 1, "c": 2}}
