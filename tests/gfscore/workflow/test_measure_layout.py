from pathlib import Path

import pytest

from gfscore.audit.agreement.columns import AGREEMENT_COLUMNS
from gfscore.audit.groups.columns import GROUP_COLUMNS
from gfscore.audit.projections.columns import PROJECTION_COLUMNS
from gfscore.audit.table_names import MEASURE_TABLES
from gfscore.workflow.layout import audit_results
from gfscore.workflow.measure_layout import NEEDS, measure_table, measure_tables
from shipped_configuration import shipped_configuration

ROOT = Path(__file__).resolve().parents[3]


OF_DISTANCES = {"radius_curves", "class_distances", "log_rank_tests", "masking_signs"}


@pytest.fixture
def config():
    return shipped_configuration()


def tables_with(config, measures):
    config["audits"]["digits"] |= {"groups": None, "projection": None}
    config["audits"]["digits"]["measures"] = measures
    return set(measure_tables(config, "digits"))


def test_every_table_has_columns_and_a_condition():
    names = [name for tables in MEASURE_TABLES.values() for name in tables]
    assert set(names) == set(AGREEMENT_COLUMNS) | set(GROUP_COLUMNS) | set(PROJECTION_COLUMNS) == set(NEEDS)


@pytest.mark.parametrize(
    ("measures", "expected"),
    [
        (["clean"], set()),
        (["clean", "great-softmax"], {"measure_agreement"}),
        (["minimal-l2"], OF_DISTANCES),
        (["great-softmax", "minimal-l2"], {"measure_agreement", "falsification", *OF_DISTANCES}),
        (["certified-l2"], {"radius_curves", "refutations"}),
        (["probabilistic-linf"], {"class_shares"}),
    ],
)
def test_an_audit_has_the_tables_that_its_measures_suffice_for(config, measures, expected):
    assert tables_with(config, measures) == expected


def test_other_norms_refute_no_score_and_certificates_without_attack_are_not_counted(config):
    config["measures"]["minimal-l2"]["norm"] = "linf"
    assert "falsification" not in tables_with(config, ["great-softmax", "minimal-l2"])
    config["measures"]["certified-l2"]["smoothing"]["sandwich"] = None
    assert tables_with(config, ["certified-l2"]) == {"radius_curves"}
    config["measures"]["imported"] = {"kind": "certified", "largest_radius": 1.0}
    assert tables_with(config, ["imported"]) == {"radius_curves"}


def test_groups_are_compared_where_the_audit_names_attributes(config):
    assert {"group_scores", "group_metrics"} <= set(measure_tables(config, "digits"))
    assert not {"group_scores", "group_metrics"} & tables_with(config, ["clean"])


def test_training_methods_need_two_of_them(config):
    config["measures"]["adversarial"] = {"kind": "adversarial"}
    measures = ["clean", "adversarial", "probabilistic-linf"]
    assert "training_methods" in tables_with(config, measures)
    config["audits"]["digits"]["models"] = ["digits/none/ERM"]
    assert "training_methods" not in tables_with(config, measures)


def test_results_name_what_there_is_and_reports_read_nothing_else(config):
    config["audits"]["digits"]["measures"] = ["clean", "probabilistic-linf"]
    results = audit_results(config, "digits")
    assert (
        "results/audits/digits/class_shares.parquet" in results and "results/audits/digits/class_shares.csv" in results
    )
    assert measure_table(config, "digits", table="class_shares") in results
    assert measure_table(config, "digits", table="refutations") == []
