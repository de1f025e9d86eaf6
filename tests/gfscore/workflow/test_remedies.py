"""What the setting `remedy` of an audit stands for: halves of its data, models with offsets, and their files."""

from copy import deepcopy

import pytest
import yaml

from gfscore.workflow.audit_steps import deposited_inputs, job_records
from gfscore.workflow.config_files import Mark, marked
from gfscore.workflow.plan import Run
from gfscore.workflow.resolved_file import configuration_of
from gfscore.workflow.resolving import resolve
from gfscore.workflow.targets import sample_results
from helpers.configurations import completed, refusal

TRAINED = {"train_on": "train", "training": {"method": "ERM"}}
OFFSETS = {"of": "none/X", "choose_on": "half", "measure": "attack"}


@pytest.fixture
def small():
    """An audit with a remedy of two trained models."""
    return {
        "datasets": {
            "data": {"source": "digits", "models_of": "zoo", "published_accuracy": "full"},
            "train": {"source": "digits", "split": "train"},
            "half": {"source": "digits", "half": "choosing", "models_of": "zoo"},
        },
        "models": {
            "zoo": {"defaults": TRAINED, "none": {"X": {}, "Y": {}}},
        },
        "measures": {"attack": {"kind": "adversarial", "eps": 0.1}, "far": {"kind": "minimal"}},
        "audits": {
            "a": {
                "dataset": "data",
                "models": ["zoo/none/X", "zoo/none/Y"],
                "measures": ["clean", "attack"],
                "remedy": {},
            }
        },
    }


def test_a_remedy_stands_for_two_halves_and_a_model_for_each_strength(small):
    config = completed(small)
    halves = [config["datasets"][f"data-{half}"] for half in ("choosing", "judging")]
    assert [entry["half"] for entry in halves] == ["choosing", "judging"]
    assert {entry["published_accuracy"] for entry in halves} == {"subset"}
    remedy = config["audits"]["a"]["remedy"]
    assert (remedy["models"], remedy["measure"]) == (["zoo/none/X", "zoo/none/Y"], "attack")

    run = Run(config)
    x, y = run.audits["a"].remedies
    assert x.original.name.path == "data-judging/none/X"
    assert list(x.adjusted) == [0.25, 0.5, 0.75, 1]
    for strength, model in x.adjusted.items():
        assert model.entry["strength"] == strength
        assert model.name.dataset == "data-judging"
        assert model.offsets.model.name.path == "data-choosing/none/X"
        # Offsets take no files of their own.
        assert (model.manifest, model.weights) == (x.original.manifest, x.original.weights)
        assert model.gives == "gradients"
    assert {model.offsets.file for model in x.adjusted.values()} == {x.offsets}
    assert x.offsets != y.offsets
    assert run.classifier_files(x.judged)["offsets"] == x.offsets


def test_an_audit_asks_for_the_files_of_its_remedies(small):
    audit = Run(completed(small)).audits["a"]
    x, _ = audit.remedies
    files = audit.remedy_files()
    assert files["remedy_offsets"][0] == x.offsets
    assert files["remedy_logits"][:2] == [x.original.logits, x.judged.logits]
    assert files["remedy_samples"][:5] == [model.samples("attack") for model in x.models]
    needed = sample_results(audit)
    for paths in files.values():
        assert set(paths) <= set(needed)
    assert {"results/datasets/data-judging.json", "results/datasets/data-choosing.json"} <= set(needed)
    paths = [record.path for record in job_records(audit)]
    assert f"results/costs/choose_offsets/{x.planned_offsets.stem}.json" in paths
    assert len(set(paths)) == len(paths)


def test_strengths_share_a_choice_that_other_attacks_or_objectives_do_not(small):
    def files(changes, **settings):
        config = deepcopy(small)
        config["measures"]["attack"] |= changes
        config["audits"]["a"]["remedy"] = settings
        return [remedy.offsets for remedy in Run(completed(config)).audits["a"].remedies]

    assert files({}) == files({}, strengths=[1, 0.1])
    others = [files({}), files({"eps": 0.2}), files({}, objective="rdi"), files({}, rounds=3), files({}, seed=1)]
    assert len({tuple(paths) for paths in others}) == len(others)


def test_halves_of_generated_samples_are_of_one_draw(small):
    small["datasets"]["drawn"] = {"source": "generated", "fitted_on": "train", "models_of": "zoo"}
    small["audits"]["a"]["dataset"] = "drawn"
    for entry in small["models"]["zoo"]["none"].values():
        entry["evaluate_on"] = "train"
    audit = Run(completed(small)).audits["a"]
    assert {half.generated_images for half in audit.halves} == {audit.dataset.generated_images}
    assert {half.generator_manifest for half in audit.halves} == {audit.dataset.generator_manifest}


def test_other_audits_are_as_without_the_remedy(small):
    small["audits"]["b"] = {"dataset": "data", "models": ["zoo/none/*"]}
    small["audits"]["c"] = {"dataset": "data"}
    config = completed(small)
    del small["audits"]["a"]["remedy"]
    without = completed(small)
    for name in ("b", "c"):
        assert config["audits"][name] == without["audits"][name]
        mine = [sample_results(Run(these).audits[name]) for these in (config, without)]
        assert mine[0] == mine[1]


def test_a_resolved_configuration_resolves_to_itself(small):
    first = configuration_of(Run(completed(small)).audits["a"])
    again = resolve(marked(yaml.safe_load(yaml.safe_dump(first)), Mark("config.yaml"))).config
    assert configuration_of(Run(again).audits["a"]) == first


def test_a_model_with_offsets_may_be_written(small):
    small["models"]["zoo"]["none"]["Z"] = {**OFFSETS, "strength": 0.5, "objective": "floor", "floor": 0.2}
    small["datasets"]["other"] = {"source": "digits", "half": "judging", "models_of": "zoo"}
    small["audits"] = {"a": {"dataset": "other", "models": ["zoo/none/Z"], "measures": ["clean", "attack"]}}
    audit = Run(completed(small)).audits["a"]
    (model,) = audit.models
    assert model.offsets.file.startswith("results/offsets/half/none/X/floor-")
    assert model.offsets.file in sample_results(audit)
    assert model.training_datasets == ["train", "data"]
    assert "results/trained/zoo/none/X.json" in deposited_inputs(audit)
    # Without a measure that the audit names, its configuration still says how the offsets are chosen.
    small["audits"]["a"]["measures"] = ["clean"]
    assert list(configuration_of(Run(completed(small)).audits["a"])["measures"]) == ["clean", "attack"]


@pytest.mark.parametrize(
    ("remedy", "words"),
    [
        ({"models": ["zoo/none/Q"]}, "remedy: models: 0: model of the audit 'zoo/none/Q' is unknown"),
        ({"measure": "far"}, "remedy: measure: measure of the audit of kind adversarial 'far' is unknown"),
        ({"objective": "floor"}, "remedy: floor: is missing"),
        ({"floor": 0.3}, "remedy: floor: objective worst_class has no floor"),
        ({"strengths": []}, "remedy: strengths: [] is too short"),
        ({"class_weights": [1, 2]}, "remedy: class_weights: 2 weights for 10 classes"),
        ({"objective": "fair"}, "remedy: objective: value 'fair' is unknown"),
    ],
)
def test_a_remedy_that_cannot_be_is_refused_where_it_stands(small, remedy, words):
    small["audits"]["a"]["remedy"] = remedy
    assert words in refusal(small)


def test_what_offsets_cannot_be_chosen_for_is_refused(small):
    zoo = small["models"]["zoo"]
    zoo["none"] = {name: {**TRAINED} for name in "XY"}
    zoo["none"]["Graph"] = {"path": "x.onnx"}
    zoo["none"]["File"] = {"path": "x.npz"}
    del zoo["defaults"]
    audit = small["audits"]["a"]
    audit["models"] = ["zoo/none/*"]
    audit["measures"] = ["clean", "attack"]
    audit["remedy"] = {"models": ["zoo/none/Graph", "zoo/none/File"]}
    words = refusal(small)
    assert "zoo/none/Graph: gives no gradients" in words and "set gradients: true" in words
    assert "zoo/none/File: gives no gradients (source logits)" in words

    audit["models"] = ["zoo/none/Graph"]
    audit["remedy"] = {}
    assert "no model of the audit gives gradients" in refusal(small)
    audit["models"], audit["measures"] = ["zoo/none/X"], ["clean"]
    assert "the audit has no measure of kind adversarial" in refusal(small)
    audit["measures"], audit["dataset"] = ["attack"], "half"
    assert "'half' is a half already" in refusal(small)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"of": "none/Q"}, "of: model of zoo/none 'Q' is unknown"),
        ({"of": "none/Z"}, "of: none/Z: has offsets itself"),
        ({"choose_on": "nowhere"}, "choose_on: dataset 'nowhere' is unknown"),
        ({"choose_on": "train"}, "choose_on: 'train' has models_of: None"),
        ({"measure": "far"}, "measure: 'far' is of kind minimal"),
        ({"measure": "farther"}, "measure: measure 'farther' is unknown"),
        ({"strength": 0}, "strength: 0 is not above 0"),
    ],
)
def test_a_written_model_with_offsets_that_cannot_be_is_refused(small, changes, words):
    small["models"]["zoo"]["none"]["Z"] = {**OFFSETS, **changes}
    assert f"models: zoo/none/Z: {words}" in refusal(small)


def audit_of_offsets(config, *, choose_on, dataset):
    """The configuration with an audit on one dataset of offsets that are chosen on another."""
    config["models"]["zoo"]["none"]["Z"] = {**OFFSETS, "choose_on": choose_on}
    config["audits"] = {"a": {"dataset": dataset, "models": ["zoo/none/Z"], "measures": ["clean"]}}
    return config


@pytest.mark.parametrize("choose_on", ["data", "half", "other"])
@pytest.mark.parametrize("dataset", ["data", "half", "other"])
def test_offsets_are_not_judged_on_the_samples_that_chose_them(small, choose_on, dataset):
    small["datasets"]["other"] = {"source": "digits", "half": "judging", "models_of": "zoo"}
    config = audit_of_offsets(small, choose_on=choose_on, dataset=dataset)
    if (choose_on, dataset) == ("half", "other"):
        completed(config)
    else:
        words = refusal(config)
        assert f"none/Z are chosen on samples of '{dataset}' ({choose_on})" in words
        assert "half: choosing of these data, and audit the half: judging" in words


@pytest.mark.parametrize("changes", [{"subset": {"every": 2}}, {"preprocessing": {"method": "squash", "size": 8}}])
def test_halves_of_other_parts_of_the_same_data_may_share_samples(small, changes):
    images = {"source": "image_folder", "path": "images", "models_of": "zoo"}
    small["datasets"]["half"] = {**images, "half": "choosing"}
    small["datasets"]["other"] = {**images, "half": "judging", **changes}
    assert "would flatter the model" in refusal(audit_of_offsets(small, choose_on="half", dataset="other"))


@pytest.mark.parametrize(("half", "audited"), [(None, "train"), ("judging", "train"), (None, "offsets")])
def test_models_are_not_judged_on_the_samples_that_trained_them(small, half, audited):
    small["datasets"]["train"] |= {"models_of": "zoo", **({"half": half} if half else {})}
    small["models"]["zoo"]["defaults"] = {**TRAINED, "evaluate_on": "data"}
    name = "X"
    if audited == "offsets":
        name = "Z"
        small["models"]["zoo"]["none"][name] = OFFSETS
    small["datasets"]["audited"] = {"source": "digits", "split": "train", "models_of": "zoo"}
    small["audits"] = {"a": {"dataset": "audited", "models": [f"zoo/none/{name}"], "measures": ["clean"]}}
    assert f"dataset: none/{name} is trained on samples of 'audited' (train_on: train)" in refusal(small)


PARQUET = {"source": "parquet", "path": "rows.parquet"}
FOLDER = {"source": "image_folder", "path": "images"}


@pytest.mark.parametrize(
    ("train", "audited", "apart"),
    [
        ({"source": "digits", "split": "train"}, {"source": "digits", "split": "test"}, True),
        ({"source": "digits", "split": "train"}, {"source": "digits", "split": "test", "test_share": 0.8}, False),
        ({"source": "digits", "split": "train"}, {"source": "digits", "split": "test", "seed": 1}, False),
        ({"source": "cifar", "split": "train"}, {"source": "cifar", "split": "test"}, True),
        (PARQUET | {"part": {"name": "train"}}, PARQUET | {"part": {"name": "test"}}, True),
        (PARQUET | {"part": {"name": "train"}}, PARQUET | {"part": {"name": "test", "seed": 1}}, False),
        (PARQUET | {"part": {"name": "train"}}, PARQUET | {"part": {"name": "test", "within": "age"}}, False),
        (PARQUET | {"part": {"name": "train"}}, PARQUET, False),
        (PARQUET, PARQUET | {"part": {"name": "test", "test_share": 0.2}}, False),
        (PARQUET, {"source": "parquet", "path": "other.parquet", "part": {"name": "test"}}, True),
        (FOLDER | {"list": "train.txt"}, FOLDER | {"list": "test.txt"}, True),
        (FOLDER, FOLDER | {"list": "test.txt"}, False),
    ],
)
def test_parts_of_different_splits_share_samples_and_parts_of_one_split_do_not(small, train, audited, apart):
    small["datasets"]["train"] = train
    small["datasets"]["audited"] = audited | {"models_of": "zoo"}
    small["models"]["zoo"]["defaults"] = {**TRAINED, "evaluate_on": "data"}
    small["audits"] = {"a": {"dataset": "audited", "models": ["zoo/none/X"], "measures": ["clean"]}}
    if apart:
        completed(small)
    else:
        assert "none/X is trained on samples of 'audited' (train_on: train)" in refusal(small)


def test_one_half_trains_a_model_and_the_other_judges_it(small):
    small["datasets"]["train"] |= {"half": "choosing"}
    small["datasets"]["rest"] = {"source": "digits", "split": "train", "half": "judging", "models_of": "zoo"}
    small["audits"] = {"a": {"dataset": "rest", "models": ["zoo/none/X"], "measures": ["clean"]}}
    small["models"]["zoo"]["defaults"] = {**TRAINED, "evaluate_on": "data"}
    completed(small)


def test_one_folder_under_two_paths_is_the_same_data(small):
    small["models"]["zoo"]["defaults"] = {**TRAINED, "evaluate_on": "data"}
    for name, path in (("val", "images"), ("test", "./images/")):
        small["datasets"][name] = {"source": "image_folder", "path": path, "models_of": "zoo"}
    assert "would flatter the model" in refusal(audit_of_offsets(small, choose_on="val", dataset="test"))


@pytest.mark.parametrize(
    "entry",
    [
        {"source": "npz", "path": "{}.npz"},
        {"source": "image_folder", "path": "{}"},
        {"source": "generated", "fitted_on": "{}-train"},
    ],
)
def test_offsets_may_be_chosen_on_other_data_of_the_same_form(small, entry):
    small["models"]["zoo"]["defaults"] = {**TRAINED, "evaluate_on": "data"}
    for name in ("val", "test"):
        small["datasets"][f"{name}-train"] = {"source": "digits", "split": "train"}
        settings = {key: value.format(name) for key, value in entry.items()}
        small["datasets"][name] = {**settings, "models_of": "zoo"}
    completed(audit_of_offsets(small, choose_on="val", dataset="test"))


def test_patterns_and_defaults_leave_models_with_offsets_out(small):
    small["models"]["zoo"]["none"]["Z"] = OFFSETS
    small["audits"] = {"a": {"dataset": "data", "models": ["zoo/none/*"]}, "b": {"dataset": "data"}}
    audits = completed(small)["audits"]
    assert audits["a"]["models"] == audits["b"]["models"] == ["zoo/none/X", "zoo/none/Y"]


def test_a_name_that_a_remedy_needs_is_free(small):
    small["datasets"]["data-judging"] = {"source": "digits", "half": "choosing", "models_of": "zoo"}
    assert "datasets: data-judging: a remedy needs this name" in refusal(small)
