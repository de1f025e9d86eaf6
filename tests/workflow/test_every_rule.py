"""Every rule without a network, one model of it again, and what follows the logits without torch; the results agree."""

import functools
import http.server
import json
import os
import re
import subprocess
import sys
import threading

import numpy as np
import pytest
import yaml

from gfscore.tables.parquet_tables import read_table
from gfscore.workflow.catalogue import CATALOGUE
from gfscore.workflow.jobs import VARIABLES
from helpers.configurations import place_graph, place_logits, place_network, place_radii, place_transformer, small_audit
from helpers.networks import place_generator
from helpers.processes import observations, observing, step_of
from workflow.conftest import TWO_MODELS

pytestmark = [pytest.mark.workflow, pytest.mark.seconds(250)]

OPTIONS = ("--configfile", "config.yaml", "configs/digits-generated.yaml", TWO_MODELS)
ONLY = ("--config", "run=[digits]")
FOREIGN = "foreign.yaml"
WITHOUT_NETWORK = ("unshare", "--net")
SHAPE, CLASSES = (3, 32, 32), 10
# gate reads verdict.json and nothing else, and fails on purpose; import_release needs an earlier run's bundle
EXEMPT = {"fetch_dataset", "fetch_checkpoint", "gate", "import_release"}


@pytest.fixture(scope="module")
def isolated():
    """Command that runs another where no network is, not even the machine's own; empty where it is not permitted."""
    done = subprocess.run([*WITHOUT_NETWORK, "true"], capture_output=True, check=False)
    return () if done.returncode else WITHOUT_NETWORK


@pytest.fixture
def no_network(isolated):
    if not isolated:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"{' '.join(WITHOUT_NETWORK)} is not permitted")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Folder of files to download, and their address."""
    folder = tmp_path_factory.mktemp("served")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield folder, f"http://127.0.0.1:{serving.server_port}"
        serving.shutdown()


@pytest.fixture(scope="module")
def first(fresh_copy, isolated, server, tmp_path_factory):
    """`snakemake inputs`, then every other rule where no network is; `.rules` that ran there, `.seen` of their jobs."""
    repository = fresh_copy()
    options, targets = (*OPTIONS, FOREIGN), configure(repository, *server)
    repository.snakemake(*options, "--", "inputs")
    assert (repository.path / "checkpoints/Network-fetched.pt").is_file()
    seen = tmp_path_factory.mktemp("seen") / "jobs"
    repository.rules = repository.ran(*options, *ONLY, "--", *targets, within=isolated, environment=observing(seen))
    repository.seen = observations(seen)
    return repository


@pytest.fixture(scope="module")
def second(first, tmp_path_factory):
    """A copy in which one model was made anew, `.before`; then the rest, `.after`, without a torch to import."""
    repository = first.copy_to(tmp_path_factory.mktemp("second") / "copy")
    options = (*OPTIONS, FOREIGN, *ONLY)
    files = computed_with_torch(repository, "ERM")
    repository.before = repository.ran(*options, "-R", "results/trained/digits/none/ERM.safetensors", "--", *files)
    blocked = tmp_path_factory.mktemp("blocked")
    (blocked / "torch.py").write_text("raise ImportError('torch is not for cheap steps')")
    # Figures are compared byte for byte in the tests of their step.
    options = (*options, "--forcerun", "score_models", "--omit-from", "plot_figures")
    repository.after = repository.ran(*options, environment={"PYTHONPATH": str(blocked)})
    return repository


def computed_with_torch(repository, model):
    """What of a model torch is needed for: logits, measures that show it images, and projections."""
    files = (repository.path / "results").glob(f"*/**/digits/none/{model}.parquet")
    return sorted(str(path.relative_to(repository.path)) for path in files)


# ---- without a network ----


@pytest.mark.usefixtures("no_network")
def test_there_is_no_network_where_the_jobs_run(isolated):
    code = "import socket; socket.create_connection(('127.0.0.1', 9), timeout=1)"
    done = subprocess.run([*isolated, sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "Network is unreachable" in done.stderr


@pytest.mark.usefixtures("no_network")
def test_every_rule_but_inputs_runs_without_a_network(first):
    assert rules_to_run(first) - set(first.rules) == set()
    assert {step_of(one) for one in first.seen} >= set(first.rules)
    assert [(step_of(one), one["network"]) for one in first.seen if one["network"]] == []
    fetching = {step_of(one) for one in first.seen if "gfscore.networks.downloads" in one["modules"]}
    assert fetching <= {"fetch_checkpoint"}


def test_every_job_keeps_the_memory_that_it_frees(first):
    assert all(VARIABLES.keys() <= set(one["variables"]) for one in first.seen if step_of(one))


# ---- without torch ----


def test_steps_of_the_environment_without_torch_load_none(first):
    environments = first.environments_of_rules()
    cheap = [one for one in first.seen if environments.get(step_of(one)) == "analysis"]
    assert {"score_models", "tabulate_audit", "plot_figures"} <= {step_of(one) for one in cheap}
    assert {step_of(one) for one in cheap if "torch" in one["modules"]} == set()


def test_everything_after_the_logits_runs_without_torch(second):
    assert second.before["train_model"] == second.before["extract_logits"] == second.before["project_attributes"] == 1
    assert second.before["measure_model"] == 4
    environments = second.environments_of_rules()
    assert {environments[rule] for rule in second.after} == {"analysis"}
    cheap = {"tabulate_audit", "judge_audit", "build_report"}
    assert cheap | {"score_models"} <= set(second.after) and not cheap & set(second.before)


# ---- what both have made ----


DATED = ("verdict.json", "report.html", "index.html")
"""Files that say when the verdict was judged."""


def test_a_model_made_anew_and_all_that_follows_give_the_same_files(first, second):
    names = sorted(
        path.relative_to(second.path)
        for path in (second.path / "results").rglob("*")
        if path.is_file()
        and not {"logs", "costs", "cache", "previous"} & {*path.parts, path.stem}
        and path.name not in DATED
    )
    assert len(names) > 30
    assert len([name for name in names if name.parent.name == "digits" and name.suffix == ".parquet"]) > 20
    differing = [name for name in names if (first.path / name).read_bytes() != (second.path / name).read_bytes()]
    assert not differing
    verdicts = [json.loads(run.read("results/audits/digits/verdict.json")) for run in (first, second)]
    for verdict in verdicts:
        del verdict["time"], verdict["checksum"]
    assert verdicts[0] == verdicts[1]


def test_the_conditional_mapper_is_used(first):
    """It is trained, moves the attributes of the audited digits, and its figures and numbers reach the report."""
    manifest = json.loads(first.read("results/mappers/digits-conditional.json"))
    categories = manifest["categories"]
    assert {name: len(values) for name, values in categories.items()} == {"stroke_mass": 3, "slant": 3}
    moved = {f"{name}={value}" for name, values in categories.items() for value in values}
    scores = read_table(first.path / "results/audits/digits/projection_scores.parquet", CATALOGUE["projection_scores"])
    assert set(scores["mapper"]) == {"digits-conditional"} and set(scores["model"]) == {"ERM", "PGD_mixer"}
    assert moved < set(scores["dimension"])
    assert scores.loc[scores["n"] > 0, "tolerance"].between(0, 1).all()
    # A digit made bold has more ink: the conditions do what they are called.
    effects = {(effect["dimension"], effect["trait"]): effect["shift"] for effect in manifest["effects"]}
    assert effects["stroke_mass=bold", "brightness"] > effects["stroke_mass=thin", "brightness"]
    assert (first.path / "results/audits/digits/figures/mapper_traversals.png").stat().st_size > 1000
    assert "stroke_mass=bold" in first.read("results/audits/digits/report.html")


# ---- models of every other source ----


def configure(repository, served, address):
    """Lay models that are not trained here over the audit of two models; returns what to ask for."""
    config = repository.config()
    generator = np.random.default_rng(0)
    labels = np.repeat(np.arange(CLASSES), 2)
    for name in ("few", "train"):
        np.savez(repository.path / f"{name}.npz", x=generator.random((20, *SHAPE), dtype=np.float32), y=labels)
    few = {
        "source": "npz", "path": "few.npz", "value_range": 1, "channels": "first",
        "classes": [str(k) for k in range(CLASSES)], "models_of": "few", "published_accuracy": None,
        "label_error_rate": None, "subset": None, "digest": None, "attributes": None,
    }  # fmt: skip
    transformer = place_transformer(repository.path, "Transformer", classes=CLASSES)
    fitted = {"source": "probe", "train_on": "train", "evaluate_on": "few", "penalty": 1.0, "iterations": 50}
    models = {
        "Network": fetched(repository.path, served, address),
        "Transformer": transformer,
        "Probe": transformer | fitted,
        "Graph": place_graph(repository.path, "Graph", image_shape=SHAPE, classes=CLASSES),
        "Given": place_logits(repository.path, "Given", labels=labels, classes=CLASSES),
    }
    place_robustbench(repository.path)
    generator_settings = place_generator(repository.path, "weights")
    overlay = {
        "run": ["digits", "foreign", "leaderboard", "radii"],
        "datasets": {
            "few": few,
            "train": few | {"path": "train.npz", "models_of": None},
            "few-leaderboard": few | {"models_of": "cifar10"},
            "few-radii": few | {"models_of": "radii"},
            "drawn": {"source": "generator_file", "classes": ["a", "b", "c"], "generator": generator_settings},
        },
        "models": {
            "few": {"none": models},
            "radii": {"L2": {"Radii": place_radii(repository.path, "Radii", labels=labels)}},
        },
        "measures": {"certified-elsewhere": {"kind": "certified", "largest_radius": 4.0}},
        "audits": {
            "foreign": small_audit(config, dataset="few", models=[f"few/none/{name}" for name in models]),
            "leaderboard": small_audit(config, dataset="few-leaderboard", models=["cifar10/Linf/Wong2020Fast"]),
            "radii": small_audit(
                config, dataset="few-radii", models=["radii/L2/Radii"], measures=["certified-elsewhere"]
            ),
        },
    }
    (repository.path / FOREIGN).write_text(yaml.safe_dump(overlay, sort_keys=False))
    # Of the other sources the scores are enough: what follows is the same for all.
    foreign = [f"results/scores/{audit}.parquet" for audit in ("foreign", "leaderboard")]
    foreign += ["results/samples/certified-elsewhere/few-radii/L2/Radii.parquet"]
    targets = re.findall(r"^rule (\w+):", repository.read("Snakefile"), flags=re.MULTILINE)
    return [
        *(name for name in targets if name != "inputs"),
        *(f"results/generated/{name}.json" for name in ("digits-generated", "drawn")),
        *foreign,
    ]


def fetched(folder, served, address):
    """Entry of a checkpoint that lies on a server."""
    entry = place_network(folder, "Network", image_shape=SHAPE, classes=CLASSES)
    (folder / entry["path"]).rename(served / "Network.pt")
    return entry | {"path": "checkpoints/Network-fetched.pt", "url": f"{address}/Network.pt"}


def place_robustbench(folder):
    """Random weights where RobustBench's are put by hand."""
    import torch

    from gfscore.networks.robustbench_models import define

    path = folder / "checkpoints/cifar10/Linf/Wong2020Fast.pt"
    path.parent.mkdir(parents=True)
    torch.save(define(dataset="cifar10", threat="Linf", model="Wong2020Fast").state_dict(), path)


def rules_to_run(repository):
    """Rules with a script, but those that fetch."""
    rules = "".join(path.read_text() for path in (repository.path / "rules").glob("*.smk"))
    return {*re.findall(r"^rule (\w+):", rules, flags=re.MULTILINE)} - EXEMPT
