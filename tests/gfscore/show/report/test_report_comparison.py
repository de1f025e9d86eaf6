"""The page's sections on models against each other and on what their order depends on."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from gfscore.audit.audit_tables import AuditTables
from gfscore.audit.comparison.rows import tables_of
from gfscore.audit.measured import Measured
from gfscore.audit.table_names import COMPARISONS
from gfscore.show.report.page import render_report
from gfscore.tables.parquet_tables import frame_of
from gfscore.workflow.catalogue import CATALOGUE
from synthetic import LAM, synthetic_audit

SETTINGS = {"confidence": 0.95, "most": 1000, "flips": 99, "seed": 0}
NAMES = ["<b>bold</b>", "plain", "m\u202ereversed"]


def page_of(audit, *, most=1000):
    """Text of the page of a synthetic audit whose models are compared on made values."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(10), 40).astype(np.int32)
    ids = np.array([str(row) for row in range(len(labels))])
    rows, about = {name: [] for name in COMPARISONS}, {}
    for measure, settings in audit.measures.items():
        measured = [
            Measured(
                {**{name: model[name] for name in ("dataset", "threat", "model")}, "measure": measure},
                np.clip(0.2 + 0.3 * index + 0.1 * rng.normal(size=len(labels)), 0, 1),
                labels,
                np.ones(len(labels), dtype=bool),
                ids,
            )
            for index, model in enumerate(audit.models)
        ]
        own, about[measure] = tables_of(
            measured,
            [str(k) for k in range(10)],
            measure_settings=settings,
            settings=SETTINGS | {"most": most},
            fp_lambda=LAM,
        )
        rows = {name: rows[name] + own[name] for name in rows}
    tables = AuditTables(
        audit.class_scores,
        audit.model_summary,
        audit.vulnerability,
        sensitivity=audit.sensitivity,
        comparison=about,
        **{name: frame_of(CATALOGUE[name], found) for name, found in rows.items()},
    )
    return render_report(
        tables,
        audit.verdict,
        {},
        title="Compared",
        measures=audit.measures,
        models=audit.models,
        fp_lambda=LAM,
        provenance={},
    )


def words(page):
    class Words(HTMLParser):
        found = ""

        def handle_data(self, data):
            self.found += f" {data}"

    parser = Words()
    parser.feed(page)
    return re.sub(r"\s+", " ", parser.found)


@pytest.fixture(scope="module")
def audit():
    return synthetic_audit(models=3, model_names=NAMES, calibrated=False)


def test_the_page_shows_ranks_wins_and_pairs(audit):
    page = page_of(audit)
    text = words(page)
    assert page.count('id="comparison"') == 1 and '<a href="#comparison">' in page
    assert "is significantly the best of 3 models" in text
    assert text.count("Win matrix") == 3 and "Wins of second" in text
    assert "The ranking by FP at lambda = 0.5" in text or "No two models change places under FP" in text
    assert "<b>bold</b>" not in page and "\u202e" not in page


def test_the_page_says_when_only_pairs_with_the_best_are_listed(audit):
    text = words(page_of(audit, most=5))
    assert "Every pair with the model of the largest aggregate" in text
    assert "(of 3; all are allowed for)" in text and "Win matrix" not in text


def test_rankings_and_rules_on_a_score_state_their_range_over_the_logits(audit):
    text = words(page_of(audit))
    rankings = text[text.index("Ranking by") if "Ranking by" in text else 0 :]
    assert "Shifting the logits by up to ±8 or scaling them by 0.25 to 4" in rankings
    rule = audit.verdict["rules"][0]
    assert rule["measure"].startswith("great") and "Scale of the logits: When the logits are shifted" in text
    assert "Smallest and largest number of each model over all shifts and scales" in text
