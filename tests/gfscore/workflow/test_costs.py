import re
import time
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from gfscore.audit.costs import FROM_LOGITS, cost_table
from gfscore.audit.step_params import JobRecord
from gfscore.core.files import read_json, write_json
from gfscore.core.identity import MODEL as MODEL_PATH
from gfscore.networks import devices, passes
from gfscore.workflow.audit_steps import job_records
from gfscore.workflow.jobs import cost_file, logged_job, recorded_cost
from gfscore.workflow.plan import Run
from helpers.configurations import shipped_configuration

ROOT = Path(__file__).resolve().parents[3]
MODEL = {"dataset": "d", "threat": "none", "model": "m"}
SCORES = pd.DataFrame(
    {
        "dataset": "d",
        "threat": "none",
        "model": "m",
        "measure": ["great", "great", "great"],
        "calibration": ["none", "none", "likelihood"],
        "n": [4, 5, 9],
    }
)


def test_a_job_that_works_counts_processor_time_and_one_that_sleeps_does_not(tmp_path):
    with recorded_cost(tmp_path / "busy.json"):
        end = time.process_time() + 0.2
        while time.process_time() < end:
            pass
    with recorded_cost(tmp_path / "idle.json"):
        time.sleep(0.2)
    busy, idle = read_json(tmp_path / "busy.json"), read_json(tmp_path / "idle.json")
    assert busy["cpu_s"] >= 0.19 > idle["cpu_s"]
    assert min(busy["wall_s"], idle["wall_s"]) >= 0.19
    assert busy["gpu_s"] == 0
    assert 10 < busy["peak_memory_mib"] < 100_000


def test_a_job_counts_the_part_of_a_gpu_while_it_holds_it(tmp_path, monkeypatch):
    monkeypatch.setattr(devices, "GPU_SHARE", devices.GpuShare())
    monkeypatch.setattr(devices, "hold_percent", lambda names, percent, folder: 0)
    monkeypatch.setattr(devices.torch.cuda, "device_count", lambda: 0)
    monkeypatch.setattr(devices.torch.cuda, "set_device", lambda index: None)
    monkeypatch.setattr(devices.torch.cuda, "mem_get_info", lambda: (1 << 33, 1 << 33))
    monkeypatch.setattr(devices.torch.cuda, "set_per_process_memory_fraction", lambda share: None)
    with recorded_cost(tmp_path / "cost.json"):
        # Until a part is free, for instance.
        time.sleep(0.4)
        devices.GPU_SHARE.hold(25)
        time.sleep(0.2)
    cost = read_json(tmp_path / "cost.json")
    assert 0.05 <= cost["gpu_s"] <= (cost["wall_s"] - 0.4) / 4


def test_a_job_that_fails_records_nothing(tmp_path):
    with pytest.raises(ValueError, match="oops"), recorded_cost(tmp_path / "cost.json"):
        raise ValueError("oops")
    assert not (tmp_path / "cost.json").exists()


def test_the_record_stands_where_the_log_does(tmp_path, monkeypatch):
    assert str(cost_file("results/logs/step/a/b.log")) == "results/costs/step/a/b.json"
    assert cost_file("elsewhere/b.log") is None
    monkeypatch.chdir(tmp_path)
    with logged_job("results/logs/step/a.b/c.log"):
        pass
    assert read_json("results/costs/step/a.b/c.json")["wall_s"] >= 0


def recorded(records):
    """Rows of the table costs without their nulls."""
    return [
        row.dropna().to_dict() for _, row in cost_table([JobRecord(**record) for record in records], SCORES).iterrows()
    ]


def test_rows_say_what_is_not_recorded_and_how_many_samples_were_measured(tmp_path):
    write_json(tmp_path / "a.json", {"wall_s": 2.0, "cpu_s": 3.0, "gpu_s": 0.0, "peak_memory_mib": 50.0})
    records = [
        {"step": "measure_model", **MODEL, "measure": "great", "path": str(tmp_path / "a.json")},
        {"step": "extract_logits", **MODEL, "measure": None, "path": str(tmp_path / "absent.json")},
        {"step": "score_models", **MODEL, "measure": "great", "path": str(tmp_path / "a.json")},
    ]
    measured, extracted, scored = recorded(records)
    assert measured == {**MODEL, "step": "measure_model", "measure": "great", "samples": 9} | {
        "wall_s": 2.0,
        "cpu_s": 3.0,
        "gpu_s": 0.0,
        "peak_memory_mib": 50.0,
    }
    assert extracted == {**MODEL, "step": "extract_logits"}
    # Of all models at once, so that none has a time of its own, whatever stands in its place.
    assert scored == {**MODEL, "step": "score_models", "measure": "great", "samples": 9, "forwards": 0, "backwards": 0}


def test_jobs_on_a_half_of_the_data_have_no_number_of_samples_from_the_whole(tmp_path):
    half = MODEL | {"dataset": "d-judging"}
    record = {"step": "measure_model", **half, "measure": "great", "path": str(tmp_path / "absent.json")}
    assert recorded([record]) == [{**half, "step": "measure_model", "measure": "great"}]


def test_passes_are_recorded_where_some_were_counted_and_0_only_where_no_image_is_shown(tmp_path, monkeypatch):
    monkeypatch.setattr(passes, "_counts", Counter())
    with recorded_cost(tmp_path / "without.json"):
        pass
    passes.add({"forwards": 5, "backwards": 1})
    with recorded_cost(tmp_path / "counted.json"):
        passes.add({"forwards": 7, "backwards": 2})
    paths = {"measure_model": "counted", "score_models": "absent", "train_model": "without"}
    paths |= {"import_samples": "without", "extract_logits": "absent"}
    records = [
        {"step": step, **MODEL, "measure": "great", "path": str(tmp_path / f"{name}.json")}
        for step, name in paths.items()
    ]
    counts = {row["step"]: row.get("forwards") for row in recorded(records)}
    unknown = dict.fromkeys(["train_model", "import_samples", "extract_logits"])
    assert counts == {"measure_model": 7, "score_models": 0, **unknown}
    assert read_json(tmp_path / "counted.json")["backwards"] == 2


def test_costs_are_looked_for_where_the_rules_let_their_jobs_write_them():
    run = Run(shipped_configuration())
    rules = "".join(path.read_text() for path in (ROOT / "rules").glob("*.smk"))
    logs = [log.removeprefix("results/logs/") for log in re.findall(r'f?"(results/logs/[^"]+)\.log"', rules)]
    logs = [log.replace("{MODEL}", MODEL_PATH).replace("{ZOO_MODEL}", "{dataset}/{threat}/{model}") for log in logs]
    known = [re.sub(r"\{+\w+\}+", "[^/]+", log) for log in logs]
    records = job_records(run.audits["digits"])
    assert {record.step for record in records} > {"train_model", "extract_logits", "project_attributes"}
    assert {record.step for record in records if record.measure == "clean"} == {FROM_LOGITS}
    for record in records:
        if record.step == FROM_LOGITS:
            continue
        path = record.path.removeprefix("results/costs/").removesuffix(".json")
        assert any(re.fullmatch(pattern, path) for pattern in known), path
