"""What the profiles make of an audit: which steps run at once, and what each asks of the machine."""

import json
import os
import re
from collections import defaultdict

import pytest
import yaml

from helpers.processes import forked_snakemake
from workflow.conftest import ROOT, TWO_MODELS

pytestmark = [pytest.mark.workflow, pytest.mark.seconds(40)]

PROFILES = sorted(path.parent.name for path in (ROOT / "profiles").glob("*/config.yaml"))
LETTERS = "abcdefghij"
RECORDED = {"classes": list(LETTERS)}
ON_A_GPU = """
models:
  digits:
    none:
      ERM: {training: {device: cuda}}
      PGD_mixer: {training: {method: PGD, device: cuda}}
"""


@pytest.fixture(scope="module")
def asked_for(fresh_copy, tmp_path_factory):
    """Function: the (threads, resources) that a dry run with some options gives each job, by step.

    `gpus`: as on a machine that has so many of 80 GB, and a torch for CUDA.
    """
    repository, machine = fresh_copy(), tmp_path_factory.mktemp("machine")
    (repository.path / "on_a_gpu.yaml").write_text(ON_A_GPU)
    place_results(repository.path)

    def planned(*options, gpus=0, **torch):
        environment = os.environ | pretended_gpus(machine, gpus, **torch)
        done = forked_snakemake(["--dry-run", *options], folder=repository.path, environment=environment)
        assert done.returncode == 0, done.stdout[-3000:]
        planned.said = done.stdout
        jobs = defaultdict(list)
        for step, job in re.findall(r"^ *rule (\w+):\n((?: +\w+: .*\n)+)", done.stdout, flags=re.MULTILINE):
            threads = re.search(r"^ +threads: (\d+)", job, flags=re.MULTILINE)
            resources = dict(re.findall(r"(\w+)=([^ ,\n]+)", re.search("resources: (.*)", job)[1]))
            jobs[step].append((int(threads[1]) if threads else 1, resources))
        return jobs

    return planned


def place_results(repository):
    """Results of earlier steps on the sizes of which the device of later ones depends: of digits, and of photographs.

    small.yaml evaluates the first, large.yaml the second. Only a dry run may follow, since the files hold nothing.
    """
    for name, shape, size, samples in (("small", [1, 8, 8], 190_000, 900), ("large", [3, 32, 32], 146_000_000, 10_000)):
        images = repository / f"{name}.npz"
        images.touch()
        weights = repository / f"{name}.onnx"
        with weights.open("wb") as file:
            file.truncate(size)
        manifest = repository / f"results/datasets/{name}.json"
        manifest.parent.mkdir(parents=True, exist_ok=True)
        manifest.write_text(json.dumps(RECORDED | {"dataset": name, "image_shape": shape, "samples": samples}))
        model = repository / f"results/checkpoints/{name}/none/net.json"
        model.parent.mkdir(parents=True, exist_ok=True)
        model.write_text(json.dumps({"path": weights.name}))
        (repository / f"{name}.yaml").write_text(
            f"datasets: {{{name}: {{path: {images.name}, classes: {list(LETTERS)}}}}}\n"
            f"models: {{{name}: {{none: {{net: {{path: {weights.name}, gradients: true}}}}}}}}\n"
            f"audits: {{{name}: {{dataset: {name}, models: [{name}/none/net], measures: [clean, great-softmax, "
            f"adversarial-linf]}}}}\nrun: [{name}]\n"
        )

    (repository / "no_gradients.yaml").write_text(
        "models: {small: {none: {net: {gradients: false}}}}\naudits: {small: {measures: [clean, great-softmax]}}\n"
    )

    (repository / "backbone.safetensors").touch()
    (repository / "probe.yaml").write_text(
        "models: {small: {none: {probe: {train_on: digits-train, path: backbone.safetensors, architecture: resnet18, "
        "image_shape: [1, 8, 8], mean: null, std: null}}}}\n"
        "audits: {small: {models: [small/none/probe], measures: [clean, great-softmax]}}\n"
    )


def pretended_gpus(folder, count, *, cuda="13.0", driver="580.95.05"):
    """Variables of an environment with so many pretended GPUs, and a torch for a version of CUDA, None for the CPU.

    That torch holds no more than the file that says what it was built for, so only a dry run may follow.
    """
    if not count:
        return {}
    program = folder / "nvidia-smi"
    lines = [
        f"echo '{index}, GPU-{index}, {driver}, Default, Disabled, 81559, NVIDIA H100'\n" for index in range(count)
    ]
    program.write_text("#!/bin/sh\n" + "".join(lines))
    program.chmod(0o755)
    torch = folder / "torch"
    torch.mkdir(exist_ok=True)
    (torch / "__init__.py").touch()
    built_for = f"'{cuda}'" if cuda else "None"
    (torch / "version.py").write_text(f"__version__ = '2.13.0'\ncuda: Optional[str] = {built_for}\n")
    path = [str(folder), os.environ["PATH"]]
    return {"PATH": os.pathsep.join(path), "PYTHONPATH": str(folder)}


def rules():
    """Text of every rule, by name."""
    found = {}
    for path in (ROOT / "rules").glob("*.smk"):
        parts = re.split(r"^rule (\w+):\n", path.read_text(), flags=re.MULTILINE)
        found |= dict(zip(parts[1::2], parts[2::2], strict=True))
    return found


@pytest.mark.parametrize("profile", PROFILES)
def test_every_profile_plans_the_audits_of_config(asked_for, profile):
    assert asked_for("--profile", f"profiles/{profile}")["extract_logits"]


DEMO = ("--cores", "8", "--configfile", "config.yaml")
STEPS_OF_MODELS = ("extract_logits", "measure_model")


def test_small_networks_run_on_the_cpu_beside_a_gpu_with_the_cores_that_they_have_without(asked_for):
    without, beside = asked_for(*DEMO, "small.yaml"), asked_for(*DEMO, "small.yaml", gpus=1)
    for step in STEPS_OF_MODELS:
        assert len(beside[step]) == len(without[step])
        assert {resources["device"] for _, resources in beside[step]} == {"cpu"}
        assert {resources["gpu_percent"] for _, resources in beside[step]} == {"0"}
        assert sorted(threads for threads, _ in beside[step]) == sorted(threads for threads, _ in without[step])
    assert {resources["device"] for _, resources in without["measure_model"]} == {"cpu"}


def test_jobs_of_large_networks_take_a_part_of_the_gpu_and_few_cores(asked_for):
    jobs = asked_for(*DEMO, "large.yaml", gpus=1)
    for step in STEPS_OF_MODELS:
        for threads, resources in jobs[step]:
            assert resources["device"] == "auto" and threads == 2
            assert 0 < int(resources["gpu_percent"]) < 50


def test_the_configuration_decides_over_the_rule(asked_for):
    for device, percent in (("cpu", {"0"}), ("cuda", {"1"})):
        jobs = asked_for(*DEMO, "small.yaml", "--config", f"inference={{device: {device}}}", gpus=1)
        assert {resources["device"] for _, resources in jobs["extract_logits"]} == {device}
        assert {resources["gpu_percent"] for _, resources in jobs["extract_logits"]} == percent


def test_a_profile_may_say_the_part_of_a_job(asked_for):
    jobs = asked_for(*DEMO, "large.yaml", "--set-resources", "measure_model:gpu_percent=30", gpus=1)
    assert {resources["gpu_percent"] for _, resources in jobs["measure_model"]} == {"30"}


def test_before_its_images_are_known_a_job_says_no_device(asked_for):
    jobs = asked_for("--cores", "8", "--configfile", "config.yaml", gpus=1)
    assert {resources["device"] for _, resources in jobs["extract_logits"]} == {"<TBD>"}


def test_a_torch_for_the_cpu_leaves_the_gpu_alone_and_says_so(asked_for):
    jobs = asked_for(*DEMO, "large.yaml", gpus=1, cuda=None)
    assert {resources["gpu_percent"] for _, resources in jobs["measure_model"]} == {"0"}
    assert "TORCH_BUILD=cuda" in asked_for.said


def test_a_driver_too_old_for_torch_is_said_in_one_line_with_the_remedy(asked_for):
    asked_for(*DEMO, "small.yaml", gpus=1, driver="470.82.01")
    (line,) = [line for line in asked_for.said.splitlines() if "470.82.01" in line]
    assert "inference" in line and "cpu" in line
    asked_for(*DEMO, "small.yaml", "--config", "inference={device: cpu}", gpus=1, driver="470.82.01")


def test_cuda_that_is_not_there_stops_a_run_before_anything_is_trained(fresh_copy):
    repository = fresh_copy()
    (repository.path / "on_a_gpu.yaml").write_text(ON_A_GPU)
    hidden = {"CUDA_VISIBLE_DEVICES": ""}
    done = repository.snakemake("--configfile", "config.yaml", "on_a_gpu.yaml", check=False, environment=hidden)
    assert done.returncode != 0
    assert "digits/none/ERM: training: device is cuda" in done.text
    assert not list(repository.path.glob("results/trained/**/*.json"))
    assert not (repository.path / "results/datasets").exists()


def test_a_training_on_the_gpu_has_it_for_itself(asked_for):
    jobs = asked_for(*DEMO, TWO_MODELS, "on_a_gpu.yaml", gpus=2)["train_model"]
    assert [(threads, resources["gpu_percent"]) for threads, resources in jobs] == [(2, "100")] * 2


def test_a_probe_uses_no_gpu_that_the_plan_does_not_know(asked_for):
    for gpus, device, percent in ((0, "cpu", "0"), (1, "auto", "100")):
        ((_, resources),) = asked_for(*DEMO, "small.yaml", "probe.yaml", gpus=gpus)["train_model"]
        assert (resources["device"], resources["gpu_percent"]) == (device, percent)


def test_training_on_the_cpu_takes_one_thread_because_the_weights_depend_on_it(asked_for):
    jobs = asked_for("--cores", "8", "--configfile", "config.yaml", TWO_MODELS)["train_model"]
    assert [(threads, resources["gpu"]) for threads, resources in jobs] == [(1, "0")] * 2


def test_what_the_profile_of_a_workstation_shows_as_comments_is_understood(asked_for, tmp_path):
    text = (ROOT / "profiles/workstation-gpu/config.yaml").read_text()
    commented = re.sub(r"^# (resources:|set-resources:|  +\w+:)", r"\1", text, flags=re.MULTILINE)
    settings = yaml.safe_load(commented)
    assert settings["resources"] == {"gpu_percent": 150} and settings["set-resources"].keys() == {*STEPS_OF_MODELS}
    profile = tmp_path / "workstation"
    profile.mkdir()
    (profile / "config.yaml").write_text(commented)
    jobs = asked_for("--profile", str(profile), *DEMO, "large.yaml", gpus=2)
    assert {resources["gpu_percent"] for _, resources in jobs["measure_model"]} <= {"25", "50"}


def test_on_a_cluster_a_model_outside_of_torch_asks_for_no_gpu(asked_for):
    options = "--profile", "profiles/slurm-gpu", "--configfile", "config.yaml", "small.yaml"
    for files, gpus in (((), {"1"}), (("no_gradients.yaml",), {"0"})):
        jobs = asked_for(*options, *files)
        assert {resources["gpu"] for _, resources in jobs["extract_logits"]} == gpus


def test_a_part_of_a_gpu_of_slurm_is_asked_for_with_its_partition():
    """The plugin chooses a partition with GPUs by `gpu` and by gres that name one, not by shards or MPS."""
    folder = ROOT / "profiles/slurm-gpu"
    partitions = yaml.safe_load((folder / "partitions.yaml").read_text())["partitions"]
    asked = re.findall(
        r"""^# +gres: "'(\w+):\d+'"\n# +(\w+): "'(\w+)'"$""", (folder / "config.yaml").read_text(), re.MULTILINE
    )
    named = {gres: (key, partition) for gres, key, partition in asked if gres != "gpu"}
    assert named.keys() == {"shard", "mps"}
    assert all(key == "slurm_partition" and partitions[name]["max_gpu"] for key, name in named.values())


def test_on_a_cluster_every_job_has_memory_and_time_and_more_at_each_attempt(asked_for):
    options = "--profile", "profiles/slurm-gpu", "--configfile", "config.yaml", TWO_MODELS
    first, second = asked_for(*options), asked_for(*options, "--attempt", "2")
    assert first.keys() == second.keys() >= {"train_model", "extract_logits", "score_models", "build_report"}
    for step in first:
        # Jobs of one step may ask for different times, and are listed in no particular order.
        jobs = (sorted(part[step], key=lambda job: int(job[1]["runtime"])) for part in (first, second))
        for (threads, before), (_, after) in zip(*jobs, strict=True):
            # Figures leave half of the cores to the page.
            assert threads == (4 if before.get("gpu") == "1" else 2 if step == "plot_figures" else 1), step
            assert [int(after[name]) for name in ("mem_mb", "runtime")] == [
                2 * int(before[name]) for name in ("mem_mb", "runtime")
            ], step


def test_steps_of_an_audit_share_one_job_on_a_cluster():
    """All of them: a step outside the group, between two that are in it, would make the group wait for itself.

    But for the first one, which may stop the run before an attack, one that is not submitted, and the last one, which
    no step follows.
    """
    of_audits = {name: text for name, text in rules().items() if re.search(r'"results/audits/\{+audit\}', text)}
    for name in ("score_models", "write_configuration", "export_audit"):
        assert "submitted_with" not in of_audits.pop(name)
    assert {"tabulate_audit", "judge_audit", "build_report"} <= set(of_audits)
    assert [name for name, text in of_audits.items() if 'submitted_with("audit")' not in text] == []


def test_a_step_is_small_and_shares_a_job_or_says_what_it_needs():
    local = {name for name, text in rules().items() if "localrule: True" in text}
    assert {"fetch_dataset", "fetch_checkpoint"} <= local
    small = {name for name, text in rules().items() if "group:" in text}
    demanding = {
        name for name, text in rules().items() if "runtime=by_attempt(" in text and "mem_mb=by_attempt(" in text
    }
    assert rules().keys() == local | small | demanding


def test_steps_on_a_gpu_are_those_of_the_list_in_the_profile():
    on_gpu = {name for name, text in rules().items() if re.search(r"^ +gpu=gpus", text, flags=re.MULTILINE)}
    assert [name for name in on_gpu if not re.search(r"threads: cores_of_(model|measure)\n", rules()[name])] == []
    text = (ROOT / "profiles/slurm-gpu/config.yaml").read_text()
    (commented,) = re.findall(r"^# set-resources:\n(?:# .*\n)+", text, flags=re.MULTILINE)
    listed = yaml.safe_load(re.sub("^# ", "", commented, flags=re.MULTILINE))
    assert listed["set-resources"].keys() == on_gpu
