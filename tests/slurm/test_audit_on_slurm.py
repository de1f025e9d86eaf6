"""An audit of two models on a real SLURM, and what may happen to its jobs.

Runs wait for SLURM most of the time, so those that do not disturb each other go at the same time.
"""

import os
import re
import signal
import subprocess

import pytest

from slurm.runs import PROFILE, documented, job_of

TRAINED = [f"results/trained/digits/none/{model}.json" for model in ("ERM", "PGD")]
LOGITS = "results/logits/digits/none/ERM.parquet"


@pytest.fixture(scope="module")
def whole(site, start, tmp_path_factory):
    """The whole audit: a training is cancelled, and logits have too little memory at the first attempt."""
    run = start(site.copy_to(tmp_path_factory.mktemp("whole") / "copy"), "--set-resources", MEMORY)
    run.cancelled = job_of(run.wait_for_script("train_model"))
    subprocess.run(["scancel", run.cancelled], check=True)
    return run


MEMORY = "extract_logits:mem_mb=350*attempt**3"


@pytest.fixture(scope="module")
def hung(site, start, tmp_path_factory):
    """A training that hangs for its one minute, the least that SLURM limits; what follows has time on a busy machine."""
    copy = site.copy_to(tmp_path_factory.mktemp("hung") / "copy")
    run = start(copy, "--set-resources", "train_model:runtime=attempt**4", "--", TRAINED[0])
    os.kill(run.wait_for_script("train_model"), signal.SIGSTOP)
    return run


@pytest.fixture(scope="module")
def resumed(site, start, whole, hung, tmp_path_factory):
    """Two trainings, of which one was done when Snakemake was killed; then as docs/cluster.md says."""
    copy = site.copy_to(tmp_path_factory.mktemp("resumed") / "copy")
    killed = start(copy, "--", *TRAINED)
    script = killed.wait_for_script("train_model")
    os.kill(script, signal.SIGSTOP)
    interrupted = job_of(script)
    killed.wait(lambda: "Finished jobid" in killed.said(), "a finished training", within=300)
    killed.kill()
    run_id = re.search(r"SLURM run ID: gfscore_(\S+)", killed.said())[1]
    subprocess.run(documented("scancel", run_id=run_id), check=True)
    subprocess.run(documented("--unlock"), cwd=copy.path, check=True)
    run = start(copy, "--", *TRAINED)
    run.finish()
    run.interrupted = interrupted
    return run


def test_after_a_kill_finished_models_are_not_trained_again(resumed):
    trainings = resumed.jobs("train_model")
    interrupted = next(job for job in trainings if job["JobId"] == resumed.interrupted)
    assert interrupted["JobState"] == "CANCELLED"
    again = [job for job in trainings if job["Comment"] == interrupted["Comment"]]
    assert [job["JobState"] for job in again] == ["CANCELLED", "COMPLETED"]
    (other,) = (job for job in trainings if job not in again)
    assert other["JobState"] == "COMPLETED"


def test_the_documented_command_completes_an_audit(whole):
    whole.finish()
    assert "digits: PASS" in whole.said()
    assert (whole.path / "results/audits/digits/report.html").is_file()


def test_steps_on_a_gpu_hold_one_and_small_steps_share_jobs(whole):
    whole.finish()
    done = whole.jobs(state="COMPLETED")
    gpu = [job for job in done if job["Partition"] == "gpu"]
    assert [job["TresPerJob"] for job in gpu] == ["gres:gpu:1"] * 2
    assert {job["NumCPUs"] for job in gpu} == {"4"}
    others = [job for job in done if job not in gpu]
    assert all("TresPerJob" not in job and job["Partition"] == "cpu" for job in others)
    # One job for all steps of the audit after its logits are checked; reading attributes waits for none of them.
    steps = ["train_model", "train_model", "read_attributes", "score_models", "build_report"]
    found = [step for job in others for step in dict.fromkeys(steps) if step in job["Comment"]]
    assert sorted(found) == sorted(steps)
    assert len(others) == len(steps)


def test_a_cancelled_job_is_tried_again_with_more_of_everything(whole):
    whole.finish()
    first = next(job for job in whole.jobs() if job["JobId"] == whole.cancelled)
    assert first["JobState"] == "CANCELLED"
    assert (first["MinMemoryNode"], first["TimeLimit"]) == ("2000M", "01:00:00")
    (second,) = (job for job in whole.jobs(state="COMPLETED") if job["Comment"] == first["Comment"])
    assert (second["MinMemoryNode"], second["TimeLimit"]) == ("4000M", "02:00:00")


def test_a_job_over_its_memory_is_killed_and_tried_again_with_more(whole):
    whole.finish()
    jobs = whole.jobs("extract_logits")
    small, enough = ([job for job in jobs if job["MinMemoryNode"] == memory] for memory in ("350M", "2800M"))
    assert len(small) == len(enough) == 2
    assert {job["JobState"] for job in small} <= {"OUT_OF_MEMORY", "FAILED", "CANCELLED"}
    assert {job["JobState"] for job in enough} == {"COMPLETED"}


def test_logs_of_slurm_are_kept_of_jobs_that_failed(whole):
    whole.finish()
    kept = {path.stem for path in (whole.path / "results/logs/slurm").rglob("*.log")}
    assert kept == {job["JobId"] for job in whole.jobs() if job["JobState"] != "COMPLETED"}


def test_a_second_run_does_nothing(start, whole):
    whole.finish()
    jobs = len(whole.jobs())
    second = start(whole.repository, "--set-resources", MEMORY)
    second.finish()
    assert "Nothing to be done" in second.said()
    assert len(second.jobs()) == jobs


def test_a_hung_job_is_ended_at_its_time_limit_and_tried_again_with_more(hung):
    hung.finish()
    jobs = [(job["JobState"], job["TimeLimit"]) for job in hung.jobs("train_model")]
    assert jobs == [("TIMEOUT", "00:01:00"), ("COMPLETED", "00:16:00")]


def test_a_preempted_job_returns_to_the_queue_and_ends_well(start, resumed, whole, tmp_path):
    """On a site that wants --gres and has several kinds of GPU."""
    whole.finish()  # no other GPU job is to be preempted
    copy = resumed.repository.copy_to(tmp_path / "copy")
    (commented,) = re.findall(r"^# set-resources:\n(?:# .*\n)+", copy.read(PROFILE), flags=re.MULTILINE)
    copy.edit(PROFILE, commented, re.sub("^# ", "", commented, flags=re.MULTILINE))
    run = start(copy, "--", LOGITS)
    run.wait_for_script("extract_logits")
    urgent = ["sbatch", "--partition=urgent", "--gpus=2", "--mem=100", "--output=/dev/null", "--wrap=sleep 3"]
    subprocess.run(urgent, check=True, capture_output=True)
    run.finish()
    (job,) = run.jobs("extract_logits")
    assert (job["Restarts"], job["JobState"]) == ("1", "COMPLETED")
    assert (job["TresPerNode"], job["Features"], "TresPerJob" in job) == ("gres:gpu:1", "a100", False)
