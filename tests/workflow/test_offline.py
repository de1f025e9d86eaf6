"""`snakemake inputs` is all that needs a network: after it, every other rule runs where there is none."""

import functools
import http.server
import os
import re
import subprocess
import sys
import threading

import numpy as np
import pytest
import yaml

from foreign_models import place_graph, place_logits, place_network, place_radii, place_transformer
from observing import observations, observing, step_of
from small_audits import small_audit, trained_for_one_epoch

pytestmark = pytest.mark.workflow

OVERLAY = "offline.yaml"
OPTIONS = ("--configfile", OVERLAY)
WITHOUT_NETWORK = ("unshare", "--net")
SHAPE, CLASSES = (3, 32, 32), 10
# gate reads verdict.json and nothing else, and fails on purpose
EXEMPT = {"fetch_dataset", "fetch_checkpoint", "gate"}


@pytest.fixture(scope="module")
def isolated():
    """Command that runs another where no network is, not even the machine's own."""
    done = subprocess.run([*WITHOUT_NETWORK, "true"], capture_output=True, text=True, check=False)
    if done.returncode:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"unshare --net is not permitted: {done.stderr}")
    return WITHOUT_NETWORK


@pytest.fixture
def server(tmp_path):
    """Folder of files to download, and their address."""
    folder = tmp_path / "served"
    folder.mkdir()
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield folder, f"http://127.0.0.1:{serving.server_port}"
        serving.shutdown()


def test_there_is_no_network_where_the_jobs_run(isolated):
    code = "import socket; socket.create_connection(('127.0.0.1', 9), timeout=1)"
    done = subprocess.run([*isolated, sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "Network is unreachable" in done.stderr


def test_every_rule_but_inputs_runs_without_a_network(fresh_copy, isolated, server, tmp_path):
    repository = fresh_copy()
    targets = configure(repository, *server)
    repository.snakemake(*OPTIONS, "--", "inputs")
    assert (repository.path / "checkpoints/Network-fetched.pt").is_file()

    seen = tmp_path / "seen"
    only = ("--config", "run=[made]")
    ran = repository.ran(*OPTIONS, *only, "--", *targets, within=isolated, environment=observing(seen))
    assert rules_to_run(repository) - set(ran) == set()

    found = observations(seen)
    assert {step_of(one) for one in found} >= set(ran)
    assert [(step_of(one), one["network"]) for one in found if one["network"]] == []
    fetching = {step_of(one) for one in found if "gfscore.models.downloads" in one["modules"]}
    assert fetching <= {"fetch_checkpoint"}


def configure(repository, served, address):
    """Write the overlay: an audit of models trained here, and models of every other source; returns what to ask for."""
    config = repository.config()
    generator = np.random.default_rng(0)
    labels = np.repeat(np.arange(CLASSES), 2)
    np.savez(repository.path / "few.npz", x=generator.random((20, *SHAPE), dtype=np.float32), y=labels)
    few = {
        "source": "npz", "path": "few.npz", "value_range": 1, "channels": "first",
        "classes": [str(k) for k in range(CLASSES)], "models_of": "few", "published_accuracy": None,
        "label_error_rate": None, "subset": None, "digest": None, "attributes": None,
    }  # fmt: skip
    transformer = place_transformer(repository.path, "Transformer", classes=CLASSES)
    fitted = {"source": "probe", "train_on": "few", "evaluate_on": "few", "penalty": 1.0, "iterations": 50}
    models = {
        "Network": fetched(repository.path, served, address),
        "Transformer": transformer,
        "Probe": transformer | fitted,
        "Graph": place_graph(repository.path, "Graph", image_shape=SHAPE, classes=CLASSES),
        "Given": place_logits(repository.path, "Given", labels=labels, classes=CLASSES),
    }
    place_robustbench(repository.path)
    overlay = {
        "run": ["made", "foreign", "leaderboard", "radii"],
        "datasets": {
            "made": config["datasets"]["digits"] | {"models_of": "made", "subset": {"samples": 20, "seed": 0}},
            "few": few,
            "few-leaderboard": few | {"models_of": "cifar10"},
            "few-radii": few | {"models_of": "radii"},
        },
        "models": {
            "made": {"none": trained_for_one_epoch(config, ["ERM", "FGSM"])},
            "few": {"none": models},
            "radii": {"L2": {"Radii": place_radii(repository.path, "Radii", labels=labels)}},
        },
        "mappers": {"digits-vae": {"epochs": 1, "search": {"subset": None}}},
        "measures": {"certified-elsewhere": {"kind": "certified", "largest_radius": 4.0}} | of_few_samples(config),
        "audits": {
            "made": small_audit(
                config, dataset="made", models=["made/none/ERM", "made/none/FGSM"], measures=one_of_each_kind(config)
            )
            | {"groups": config["audits"]["digits"]["groups"] | {"balanced": None}, "projection": "digits-vae"},
            "foreign": small_audit(config, dataset="few", models=[f"few/none/{name}" for name in models]),
            "leaderboard": small_audit(config, dataset="few-leaderboard", models=["cifar10/Linf/Wong2020Fast"]),
            "radii": small_audit(
                config, dataset="few-radii", models=["radii/L2/Radii"], measures=["certified-elsewhere"]
            ),
        },
    }  # fmt: skip
    (repository.path / OVERLAY).write_text(yaml.safe_dump(overlay, sort_keys=False))
    # Of the other sources the logits are enough: what follows is the same for all.
    foreign = [f"results/logits/few/none/{name}.parquet" for name in models]
    foreign += ["results/logits/few-leaderboard/Linf/Wong2020Fast.parquet"]
    foreign += ["results/samples/certified-elsewhere/few-radii/L2/Radii.parquet"]
    targets = re.findall(r"^rule (\w+):", repository.read("Snakefile"), flags=re.MULTILINE)
    return [*(name for name in targets if name != "inputs"), "results/generated/digits-generated.json", *foreign]


def fetched(folder, served, address):
    """Entry of a checkpoint that lies on a server."""
    entry = place_network(folder, "Network", image_shape=SHAPE, classes=CLASSES)
    (folder / entry["path"]).rename(served / "Network.pt")
    return entry | {"path": "checkpoints/Network-fetched.pt", "url": f"{address}/Network.pt"}


def place_robustbench(folder):
    """Random weights where RobustBench's are put by hand."""
    import torch

    from gfscore.zoo.robustbench_models import define

    path = folder / "checkpoints/cifar10/Linf/Wong2020Fast.pt"
    path.parent.mkdir(parents=True)
    torch.save(define(dataset="cifar10", threat="Linf", model="Wong2020Fast").state_dict(), path)


def one_of_each_kind(config):
    """The first measure of every kind, of certified radii the first that is computed here; the calibrated one last."""
    chosen = {}
    for name, settings in config["measures"].items():
        if settings["kind"] != "certified" or "smoothing" in settings:
            chosen.setdefault(settings["kind"], name)
    return [*(name for kind, name in chosen.items() if kind != "great"), "great-softmax"]


def of_few_samples(config):
    """Measures that take a part of the samples take a part of these few."""
    return {
        name: {"subset": {"samples": 10}} for name, settings in config["measures"].items() if settings.get("subset")
    }


def rules_to_run(repository):
    """Rules with a script, but those that fetch, and those of a kind of measure that config.yaml has none of."""
    kinds = {settings["kind"] for settings in repository.config()["measures"].values()}
    names = set()
    for path in (repository.path / "rules").glob("*.smk"):
        for block in re.split(r"^rule ", path.read_text(), flags=re.MULTILINE)[1:]:
            of_kind = re.search(r'names_of_kind\(config, "(\w+)"\)', block)
            if not of_kind or of_kind.group(1) in kinds:
                names.add(block.split(":")[0])
    return names - EXEMPT
