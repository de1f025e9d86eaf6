"""Rows of the ledger that are measured on networks of others: intervals, ties, costs and the command that runs."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from studies.reference import real_network_measurements
from studies.reproduction import classwise_networks, ledger
from studies.reproduction.claims import REFUTED
from studies.reproduction.real_networks import CHECKPOINTS, COMMAND, average, networks

ROOT = Path(__file__).parents[2]

ROWS = {
    *("CW3", "CW4", "CW5", "CW6", "CW7", "CW8", "CW9", "EB7", "GF23", "GF26", "GF27", "GF28", "GF29"),
    *("MA5", "MA6", "PF11"),
}

INTERVAL = re.compile(r"\([-+]?[\d.,]+%? to [-+]?[\d.,]+%?\)")


@pytest.fixture(scope="module")
def claims():
    return {claim.key: claim for claim in ledger()}


def test_every_row_names_its_command_its_images_and_its_interval(claims):
    for own in (claims[key] for key in ROWS):
        assert f"`{COMMAND}` computes it again" in own.note
        assert " images" in own.note or " faces" in own.note
        assert INTERVAL.search(own.ours) or "interval is " in own.note or "no interval" in own.note, own.key


def test_no_other_row_is_of_real_networks(claims):
    assert {key for key, claim in claims.items() if "audit_real_networks" in claim.note} == ROWS


def test_the_command_of_the_ledger_is_complete():
    """It gets as far as an option that does not exist; the data are found from the folder in which audits run."""
    data, python, *given = shlex.split(COMMAND)
    assert data == "GFSCORE_TEST_DATA=../shared/data" and python == ".venv/bin/python"
    here = {"cwd": ROOT, "capture_output": True, "text": True}
    told = subprocess.run([sys.executable, *given, "--nothing"], check=False, **here)
    assert told.returncode == 2 and "unrecognized arguments: --nothing" in told.stderr
    environment = os.environ | {"GFSCORE_TEST_DATA": "../shared/data"}
    for folder, module in (("studies", "audit_real_networks"), ("benchmarks", "real_measures")):
        reads = f"import sys; sys.path[:0] = ['{folder}']; import {module}; print({module}.DATA)"
        told = subprocess.run([sys.executable, "-c", reads], env=environment, check=True, **here)
        assert told.stdout.strip() == str((ROOT / "../shared/data").resolve())


def test_GF28_calibration_does_not_make_the_score_rank_real_networks_by_robustness(claims):
    rows = {(row["activation"], row["objective"]): row for row in real_network_measurements()["calibrations"]}
    table = networks(CHECKPOINTS)
    clean, attacked = ([average(own, name) for own in table.values()] for name in ("recall", "attacked_recall"))
    for activation, rho in (("softmax", -0.44), ("sigmoid", -0.81)):
        scores = [rows[activation, "clean"]["scores"][name] for name in table]
        assert spearmanr(scores, attacked).statistic == pytest.approx(rho, abs=0.005)
        at_one = [average(own, f"great_{activation}") for own in table.values()]
        best = rows[activation, "clean"]["best"]
        assert spearmanr(scores, clean).statistic == pytest.approx(best) and best > spearmanr(at_one, clean).statistic
        assert spearmanr(at_one, attacked).statistic <= rows[activation, "attacked"]["best"] < 0
    assert claims["GF28"].verdict == claims["GF29"].verdict == REFUTED


def test_GF29_sign_of_the_relation_on_real_networks_depends_on_the_metric(claims):
    ours = claims["GF29"].ours
    assert "RDI: softmax -0.24" in ours and "sigmoid +0.80" in ours and "NRGC: -0.98" in ours and ", -0.88" in ours


def test_ties_of_classes_are_said(claims):
    """Attacks leave four ResNets nothing of 7 or 8 classes, and one network's errors gather in two classes alike."""
    assert "cat alone least in 13 of 17 (50% to 93%) and tied in 4" in claims["CW7"].ours
    assert "deer alone least in 0 of 17 (0% to 20%) and tied in 3" in claims["CW7"].ours
    assert "most errors in cat alone in 5 of 17 (10% to 56%) and tied in 1" in claims["CW7"].ours
    assert "under attack (l_inf 2/255) in 13 of 17 (50% to 93%) and tied in 4" in claims["GF26"].ours


def test_bootstrap_of_the_ledger_is_the_same_each_time(claims):
    again = {claim.key: claim for claim in ledger()}
    assert all(claims[key].ours == again[key].ours for key in ROWS)


def test_times_of_the_ledger_are_those_of_the_benchmarks(claims):
    measured = json.loads((ROOT / "benchmarks" / "results.json").read_text(encoding="utf-8"))
    ratio = {row["name"].split()[-1]: row["ratio"] for row in measured if row["name"].startswith("cost of the attack-")}
    factors = [1 / value for value in ratio.values()]
    assert f"{min(factors):.0f} to {max(factors):.0f} times as fast as six measures" in claims["GF23"].ours
    assert claims["GF23"].verdict == REFUTED and max(factors) < 1000
    test, attack = ratio["probabilistic-linf"], ratio["adversarial-linf"]
    assert f"{attack / test:.1f} times the time of attacks" in claims["EB7"].ours and claims["EB7"].verdict == REFUTED
    said = (ROOT / "configs/exact-binomial-cifar10.yaml").read_text(encoding="utf-8")
    assert "87 to 144 s each for the draws" in said
    assert [round(seconds / 50 / (5 / 1017), -1) for seconds in (87, 144)] == [350, 590]


def test_MA6_costs_are_those_of_the_page_on_measures(claims):
    rows = [line.split(" | ") for line in (ROOT / "docs" / "measures.md").read_text(encoding="utf-8").splitlines()]
    cost = {row[0].removeprefix("| "): float(row[4]) for row in rows if len(row) == 8 and row[2].isdigit()}
    costs = [cost[measure] for measure in ("adversarial-linf", "minimal-l2", "certified-l2")]
    assert costs == sorted(costs)
    assert "{:.1f}, {:.1f} and {:.1f} ([Measures]".format(*costs) in claims["MA6"].note


def test_the_sign_flip_test_of_a_mean_difference_by_hand():
    assert classwise_networks.sign_flip_p([0.3, 0.1, 0.2]) == 2 / 8
    # Sums of signs times (3, 1): 4, 2, -2, -4; two of four reach 4, all reach 2.
    assert classwise_networks.sign_flip_p([0.3, 0.1]) == 0.5
    assert classwise_networks.sign_flip_p([0.3, -0.1]) == classwise_networks.sign_flip_p([0.4, np.nan]) == 1
    assert np.isnan(classwise_networks.sign_flip_p([np.nan]))


def test_the_sign_flip_test_of_few_and_of_many_networks_is_of_level_alpha():
    rng = np.random.default_rng(0)
    for size in (6, 20):
        p = np.array([classwise_networks.sign_flip_p(rng.normal(size=size), draws=499) for _ in range(300)])
        assert 0.01 <= np.mean(p <= 0.1) <= 0.15
    assert classwise_networks.sign_flip_p(np.full(20, 0.1), draws=499) < 0.01
