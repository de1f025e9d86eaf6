"""The report page: complete, honest about what the data do not show, self-contained, and safe with any name."""

import re
from functools import cache
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest

from gfscore.audit.audit_tables import AuditTables
from gfscore.show.charts import CHARTS
from gfscore.show.charts.declaration import Subject
from gfscore.show.drawing import drawing_of, drawings
from gfscore.show.report import report_rows
from gfscore.show.report.errors import errors_views
from gfscore.show.report.page import TEMPLATES, render_report
from gfscore.show.report.report_rows import against_robust_accuracy
from gfscore.show.report.similarities import similarity_views
from gfscore.show.words import takeaways
from gfscore.statistics.scale import SCALE
from gfscore.tables.parquet_tables import frame_of
from gfscore.workflow.catalogue import CATALOGUE
from made import gate_rule
from made_errors import error_tables, falsification_table
from synthetic import LAM, synthetic_audit

HOSTILE_MODELS = ["<script>alert(1)</script>", "$x_1$", "</svg><b>'\"", "a" * 90, "{{ 7*7 }}"]
HOSTILE_CLASSES = ["<img src=x onerror=alert(1)>", "</table>", '"quoted"', "&amp;", "日本語", *map(str, range(5))]
VOID = {"meta", "br", "wbr", "img", "input", "hr", "link"}
GREAT_ONLY = ("great-softmax",)
SECTIONS = ("verdict", "audited", "ranking", "classes", "disparity", "agreement", "glossary", "limits", "provenance")


class Page(HTMLParser):
    """Parsed page: whether tags nest, the tags, attributes and visible text of it."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.words = [], [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.words.append(data)

    @property
    def text(self):
        return re.sub(r"\s+", " ", " ".join(self.words))


def tables_of(audit, **errors):
    return AuditTables(
        audit.class_scores,
        audit.model_summary,
        audit.vulnerability,
        audit.calibration,
        audit.calibration_results,
        audit.sensitivity,
        **errors,
    )


def render(audit, *, errors=None, **changes):
    tables = tables_of(audit, **(errors or {}))
    subject = Subject(tables, audit.measures, LAM)
    drawn = {drawing.name: drawing.svg() for drawing in drawings(subject) if drawing.chart.figure}
    settings = {
        "title": "A synthetic audit",
        "measures": audit.measures,
        "models": audit.models,
        "fp_lambda": LAM,
        "provenance": {"Data and versions": {"dataset digest": "d" * 64}},
    } | changes
    return render_report(tables, audit.verdict, drawn, **settings)


def in_short(page):
    """Text of that section of a page."""
    return Page(page[page.index('<section class="short"') : page.index("<nav")]).text


@cache
def ordinary():
    return synthetic_audit(models=4, per_class=40)


@pytest.fixture(scope="module")
def page():
    return render(ordinary())


@pytest.fixture(scope="module")
def hostile_page():
    audit = synthetic_audit(
        models=5, per_class=20, model_names=HOSTILE_MODELS, class_names=HOSTILE_CLASSES, measures=GREAT_ONLY
    )
    title = "<u>title</u> & $x$"
    return render(audit, title=title, contact="<a@b>")


def test_page_is_well_formed_and_complete(page):
    parsed = Page(page)
    ids = [value for _, name, value in parsed.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    assert set(SECTIONS) <= set(ids)
    assert {"calibration", "sensitivity"} <= set(ids)
    order = [page.index(f'id="{name}"') for name in SECTIONS]
    assert order == sorted(order)
    targets = {value[1:] for tag, name, value in parsed.attributes if tag == "a" and name == "href"}
    assert targets <= set(ids)


def test_page_needs_no_network(page, hostile_page):
    for text in (page, hostile_page):
        assert not re.search(r"https?:|@import|url\((?!#)", re.sub(r"data:image/png;base64,[^\"]+", "", text))
        loaded = [
            (tag, value)
            for tag, name, value in Page(text).attributes
            if name in ("src", "href", "srcset", "data", "action") and not value.startswith(("#", "data:image/png"))
        ]
        assert loaded == []
        assert "default-src 'none'" in text


def test_page_works_without_scripts_and_shows_focus(page):
    parsed = Page(page)
    assert not [name for _, name, _ in parsed.attributes if name.startswith("on")]
    without = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    assert Page(without).text == parsed.text
    assert ":focus-visible" in page
    assert "prefers-color-scheme: dark" in page
    assert "@media print" in page


def test_names_are_escaped_everywhere(hostile_page):
    parsed = Page(hostile_page)
    assert parsed.tags.count("script") == 1
    assert {"u", "b"}.isdisjoint(parsed.tags)
    assert "img" not in parsed.tags
    assert "<u>title</u> & $x$" in parsed.text
    assert "<img src=x onerror=alert(1)>" in parsed.text
    assert "{{ 7*7 }}" in parsed.text
    assert "<a@b>" in parsed.text


def test_verdict_is_a_word_a_shape_and_the_rule(page):
    verdict = ordinary().verdict
    strip = Page(page[page.index('<section id="verdict"') : page.index('<section class="short"')]).text
    assert verdict["verdict"] in strip
    assert re.search(r"[✓✕?] " + verdict["verdict"], strip)
    assert verdict["rules"][0]["words"] in strip
    passed = sum(model["verdict"] == "PASS" for model in verdict["rules"][0]["models"])
    assert f"{passed} of 4 pass" in strip


def test_in_short_says_that_no_attack_was_run():
    audit = synthetic_audit(models=2, per_class=20, calibrated=False, measures=GREAT_ONLY)
    assert in_short(render(audit)).count("This audit ran no attack on its images") == 1


def test_the_verdict_says_that_attacks_refute_the_score_that_it_judges():
    audit = synthetic_audit(models=3, per_class=20, calibrated=False, at_least=0.1, measures=GREAT_ONLY)
    # Which measure found the distances changes nothing here, and these audits have few.
    identity = audit.model_summary[["threat", "model"]].to_dict("list") | {"distances": "great-softmax"}
    table = falsification_table([1.0, 0.9, 0.2], [0.5, 0.5, 0.5]).assign(**identity)
    refuted = render(audit, errors={"measures": {"falsification": table}})
    known, unknown = Page(refuted).text, Page(render(audit)).text
    warning = "What the rule does not look at: Attacks refute the mean score of 2 of 3 models"
    assert known.count(warning) == 1
    assert known.index(warning) < known.index("In short")
    # Once is enough, and "In short" stays short.
    assert "Attacks refute" not in in_short(refuted)
    assert "What the rule does not look at" not in unknown
    audit.verdict["rules"][0]["statistic"] = "falsification_rate"
    judged = render(audit, errors={"measures": {"falsification": table}})
    assert "What the rule does not look at" not in Page(judged).text
    assert "Attacks refute the mean score of 2 of 3 models" in in_short(judged)


def test_every_kind_of_figure_has_its_place():
    """Each name of a figure but its measure stands in a template."""
    templates = "".join(path.read_text() for path in TEMPLATES.glob("*.html"))
    assert [chart.name for chart in CHARTS.values() if chart.figure and chart.name not in templates] == []


@pytest.mark.parametrize("planned", [1, 2])
def test_undecided_models_say_what_would_settle_them(planned):
    rules = [gate_rule("great-softmax", at_least=0.5, looks={"planned": planned, "this": 1})]
    audit = synthetic_audit(models=2, per_class=20, calibrated=False, rules=rules, measures=GREAT_ONLY)
    undecided = [model for model in audit.verdict["rules"][0]["models"] if model["verdict"] == "INCONCLUSIVE"]
    assert undecided
    strip = Page(render(audit)).text
    for model in undecided:
        # Without a look left, samples added to these may not be asked.
        more = "in a new audit" if planned == 1 else f"({model['further_samples_needed']:,} more in all)"
        assert f"{model['model']}: about {model['samples_needed_per_class']:,} samples per class {more}" in strip


RULE = {"statistic": "wcr", "class": None, "attribute": None}
OPEN = {"classes_without_samples": [], "samples_needed_per_class": None, "further_samples_needed": None}


@pytest.mark.parametrize(
    ("rule", "model", "words"),
    [
        ({}, {}, "no number of samples that could be planned"),
        ({}, {"classes_without_samples": list("abcde")}, "samples of class a, b, c and 2 more"),
        ({"attribute": "Male"}, {"classes_without_samples": ["yes"]}, "samples of group yes"),
        ({}, {"samples_needed_per_class": 1200}, "about 1,200 samples per class in a new audit"),
        (
            {"attribute": "Male"},
            {"samples_needed_per_class": 90, "further_samples_needed": 7},
            "about 90 samples per group (7 more in all)",
        ),
        (
            {"statistic": "falsification_rate"},
            {"samples_needed_per_class": 90, "further_samples_needed": 7},
            "about 90 correctly classified samples (7 more in all)",
        ),
    ],
)
def test_remedy_of_an_undecided_model_in_words(rule, model, words):
    assert report_rows.remedy(OPEN | model, RULE | rule) == words


def test_every_number_of_the_ranking_is_printed_rounded_the_safe_way(page):
    from gfscore.core.numbers import lower_bound, number, upper_bound

    table = Page(page[page.index('<table class="sortable ranking">') :].split("</table>")[0] + "</table>").text
    for row in ordinary().of("model_summary").to_dict("records"):
        for name in ("value", "class_mean", "rdi", "nrgc", "wcr", "fp"):
            highest = 0.9 if name == "nrgc" else SCALE
            low, high = (row[f"{'value_alone' if name == 'value' else name}_{end}"] for end in ("low", "high"))
            bounds = f"{lower_bound(low)} to {upper_bound(high, highest=highest)}"
            assert f"{number(row[name])} {bounds}" in re.sub(r"\s+", " ", table), name
        assert number(row["robust_accuracy"]) in table
    assert "PGD, linf 0.15, 20 steps" in page
    assert "to 1.26" not in table


def test_findings_of_the_figures_head_the_page(page):
    short = Page(page[page.index('<section class="short"') : page.index("<nav")]).text
    subject = Subject(tables_of(ordinary()), ordinary().measures, LAM)
    for name, measure in (("class_heatmap", "great-softmax"), ("calibration_curves", None)):
        assert drawing_of(CHARTS[name], subject.about(measure)).finding.sentence in short


def test_calibration_warnings_are_in_plain_words():
    audit = synthetic_audit(models=4, per_class=40, measures=GREAT_ONLY)
    result = audit.calibration_results["cross_model_accuracy"]
    result["edge"] = True
    result["baseline"] = {"clean accuracy alone vs robust accuracy": 0.9}
    result["agreement"]["robust accuracy"] = {"before": 0.8, "after": 0.5}
    text = Page(render(audit)).text
    assert "Optimum at the end of the search (cross-model accuracy" in text
    assert "Clean accuracy alone ranks the models by robust accuracy at least as well (Spearman +0.900)" in text
    assert "Calibration lowers the agreement with robust accuracy: cross-model accuracy" in text
    assert "Only 4 models are compared: a random order reaches a rank correlation of 0.9 or more" in text
    assert "+0.800" in text
    assert "+0.500" in text


def test_where_nothing_agrees_with_robust_accuracy_every_objective_is_named():
    audit = synthetic_audit(models=4, per_class=40, measures=GREAT_ONLY)
    for place, result in enumerate(audit.calibration_results.values()):
        result["baseline"]["clean accuracy alone vs robust accuracy"] = -0.6
        result["agreement"]["robust accuracy"] = {"before": -0.9, "after": -0.6 + 0.1 * place}
    text = Page(render(audit)).text
    sentence = text[text.index("Neither clean accuracy alone") :].split(" ranks the models")[0]
    titles = [takeaways.OBJECTIVES[name] for name in audit.calibration_results]
    assert len(titles) > 1 and all(name in sentence for name in titles)


def test_clean_accuracy_alone_is_held_against_attack_distances_too():
    audit = synthetic_audit(models=4, per_class=40, measures=GREAT_ONLY)
    for result in audit.calibration_results.values():
        result["baseline"]["clean accuracy alone vs attack distance"] = 0.777
        result["agreement"]["attack distance"] = {"before": 0.666, "after": 0.555}
    page = render(audit)
    text = Page(page).text
    assert "Clean accuracy alone ranks the models by attack distance at least as well (Spearman +0.777)" in text
    assert "Calibration lowers the agreement with attack distance: cross-model accuracy" in text
    cells = page[page.index('aria-label="Calibration objectives"') :].split("</table>")[0]
    assert "Attack distance</th>" in cells and "Clean alone, distance</th>" in cells
    objectives = len(audit.calibration_results)
    assert [cells.count(f">{value}<") for value in ("+0.666", "+0.555", "+0.777")] == [objectives] * 3
    for result in audit.calibration_results.values():
        del result["baseline"]["clean accuracy alone vs attack distance"], result["agreement"]["attack distance"]
    assert (
        "distance" not in Page(render(audit)).text.split("Calibration of the temperature")[-1].split("Sensitivity")[0]
    )


def test_errors_by_class_show_recall_cfps_strong_and_weak_classes_and_the_mean_confusion():
    tables = error_tables(models=3, classes=4, taken=(3, 1))
    found = SimpleNamespace(class_errors=tables["class_errors"], confusions=tables["confusions"])
    view = errors_views(found, ["clean", "great"])["clean"]
    assert set(errors_views(found, ["clean", "great"])) == {"clean"}
    # Class c3 is always called another one.
    weakest = view["rows"][0]
    assert (weakest["name"], weakest["recall"], weakest["strong"], weakest["weak"]) == ("c3", 0, 0, 3)
    own = tables["class_errors"].groupby("class_name")[["cfps", "recall"]].mean()
    assert {row["name"]: row["cfps"] for row in view["rows"]} == pytest.approx(own["cfps"].to_dict())
    assert sum(row["cfps_relative"] for row in view["rows"]) == pytest.approx(4)
    assert np.diag(view["confusion"]) == pytest.approx(own["recall"].sort_index().to_numpy())
    many = error_tables(models=1, classes=21, per_class=3)
    found = SimpleNamespace(class_errors=many["class_errors"], confusions=many["confusions"])
    assert errors_views(found, ["clean"])["clean"]["confusion"] is None
    assert errors_views(SimpleNamespace(class_errors=None), ["clean"]) == {}


def test_the_page_lists_errors_by_class():
    audit = synthetic_audit(models=2, per_class=20, measures=("clean",))
    errors = error_tables(models=2, classes=3, names=["<b>", "second"])
    errors = {name: errors[name] for name in ("class_errors", "confusions")}
    page = render(audit, errors=errors)
    listed = page[page.index('aria-label="Errors by class under clean"') :].split("</table>")[0]
    assert "Strong in</th>" in listed and "CFPS times K</th>" in listed and listed.count("<tr>") == 4
    assert page.count('aria-label="Mean confusion matrix under clean"') == 1
    assert "Errors by class" not in render(audit)


def agreement_table(agreements, names):
    """Table similarities of pairs of models: agreement on all samples, then on each class, by chance .2 less."""
    rows = [
        {"dataset": "toy", "measure": "clean", "first": first, "second": second, "similarity": "agreement"}
        | {"class_index": k, "class_name": None if k is None else names[k], "n": 0 if np.isnan(value) else 30 + i}
        | {"value": value, "baseline": value - 0.2, "p_value": 0.01}
        for i, ((first, second), values) in enumerate(agreements.items())
        for k, value in zip([None, *range(len(names))], values, strict=True)
    ]
    rows.append(rows[0] | {"similarity": "kappa", "value": 0.0})
    return frame_of(CATALOGUE["similarities"], rows)


NO = float("nan")
PAIRS = {
    ("a", "b"): [0.7, 0.9, 0.5, NO, 0.8],
    ("a", "c"): [0.6, 0.8, 0.6, NO, 0.3],
    ("b", "c"): [0.8, 0.7, 0.4, NO, 1.0],
}


def test_the_classes_on_which_models_agree_least_are_named_over_all_pairs_and_for_each():
    found = SimpleNamespace(similarities=agreement_table(PAIRS, ["cat", "dog", "elk", "fox"]))
    assert set(similarity_views(found, ["clean", "great"])) == {"clean"}
    view = similarity_views(found, ["clean"])["clean"]
    # Means over pairs: cat .8, dog .5, fox .7; no pair has samples of elk.
    assert [row["name"] for row in view["classes"]] == ["dog", "fox", "cat", "elk"]
    assert [row["value"] for row in view["classes"]] == pytest.approx([0.5, 0.7, 0.8, NO], nan_ok=True)
    assert [row["least"] and row["least"]["second"] + row["least"]["first"] for row in view["classes"]] == [
        "cb", "ca", "cb", None,
    ]  # fmt: skip
    assert view["classes"][1]["least"]["value"] == 0.3 and view["classes"][1]["least"]["n"] == 31
    assert view["classes"][1]["least"]["as_low"] == 1
    assert [row["value"] for row in view["pairs"]] == [0.6, 0.7, 0.8]
    assert [item["name"] for item in view["pairs"][0]["least"]] == ["fox", "dog", "cat"]
    assert view["sentence"] == (
        "Models agree least on dog: two of them give 0.500 of its samples the same prediction on average, by chance 0.300"
    )
    equal = {pair: [0.5, 0.5, 0.9] for pair in PAIRS}
    tied = similarity_views(SimpleNamespace(similarities=agreement_table(equal, ["cat", "dog"])), ["clean"])["clean"]
    assert [row["least"]["as_low"] for row in tied["classes"]] == [3, 3]
    assert similarity_views(SimpleNamespace(similarities=None), ["clean"]) == {}


def test_one_pair_and_ties_read_as_a_sentence():
    def sentence(values):
        found = SimpleNamespace(similarities=agreement_table({("none/a", "none/b"): values}, ["1", "2", "3"]))
        return similarity_views(found, ["clean"])["clean"]["sentence"]

    assert sentence([0.5, 0.4, 0.9, 0.4]) == (
        "none/a and none/b agree least on class 1 and 1 more: both give 0.400 of their samples the same prediction, "
        "by chance 0.200"
    )
    assert sentence([0.5, 0.5, 0.5, 0.5]).startswith(
        "none/a and none/b agree on every class equally: both give 0.500 of"
    )


def test_many_classes_and_pairs_are_listed_at_both_ends():
    names = [f"c{k}" for k in range(101)]
    pairs = {(f"m{i}", "other"): [i / 200, *(np.arange(101) / 101)] for i in range(101)}
    view = similarity_views(SimpleNamespace(similarities=agreement_table(pairs, names)), ["clean"])["clean"]
    for rows, left_out in (("classes", "classes_left_out"), ("pairs", "pairs_left_out")):
        assert len(view[rows]) == 24 and view[left_out] == 77


def test_the_page_lists_agreement_by_class_and_pair_with_any_name():
    audit = synthetic_audit(models=2, per_class=20, measures=("clean",))
    pairs = {("none/<b>", "none/{{ 7*7 }}"): [0.7, 0.9, 0.5, NO, 0.8]}
    page = render(audit, errors={"similarities": agreement_table(pairs, HOSTILE_CLASSES[:4])})
    text = Page(page).text
    assert "Numbers: none/<b> and none/{{ 7*7 }} agree least on </table>: both give 0.500 of its samples" in text
    for name, rows in (("Agreement by class", 5), ("Agreement of pairs of models", 2)):
        listed = page[page.index(f'aria-label="{name} under clean"') :].split("</table>")[0]
        assert listed.count("<tr>") == rows
    assert "no samples" in text and "Agreement by class" not in render(audit)


def test_disagreeing_metrics_and_opposed_accuracy_are_pointed_out():
    audit = synthetic_audit(models=9, per_class=20, calibrated=False, measures=GREAT_ONLY)
    summary = audit.model_summary
    summary["rdi"] = summary["value"].rank() / 10
    summary["nrgc"] = summary["rdi_over_mean"] = 1 - summary["value"].rank() / 10
    summary["robust_accuracy"] = 1 - summary["value"] / 2
    page = render(audit)
    text = Page(page).text
    assert "The metrics disagree." in text
    assert "great-softmax orders the models against their robust accuracy (Spearman −1.00)" in text
    reversed_order = "The order of the models by great-softmax is nearly the reverse of their order under attack"
    assert reversed_order in in_short(page)
    summary["nrgc"] = summary["rdi_over_mean"] = summary["rdi"]
    summary["robust_accuracy"] = summary["value"] / 2
    text = Page(render(audit)).text
    assert "The metrics disagree." not in text
    assert "orders the models against" not in text


def test_one_of_many_measures_against_robust_accuracy_may_be_chance():
    def view(name, rho, p):
        return SimpleNamespace(name=name, agreements=[{}, {"rho": rho, "p_two_sided": p}])

    others = [view(f"m{k}", 0.1, 0.5) for k in range(4)]
    assert against_robust_accuracy([view("a", -0.8, 0.03), *others]) == []
    assert against_robust_accuracy([view("a", -0.8, 0.03), view("b", 1.0, None)]) == [("a", -0.8)]
    assert against_robust_accuracy([view("a", -0.9, 0.01), *others]) == [("a", -0.9)]
    assert against_robust_accuracy([view("a", 0.9, 0.001), *others]) == []


def test_class_without_samples_is_named():
    audit = synthetic_audit(models=2, per_class=20, empty_class=3, calibrated=False, measures=GREAT_ONLY)
    text = Page(render(audit)).text
    assert "no samples of 3" in text
    assert "no samples: left out of every metric, and never a pass; it may be the weakest" in text
    known = audit.class_scores["n"] > 0
    for end in ("low", "high"):
        audit.class_scores.loc[known, end] = audit.class_scores.loc[known, "value"]
    # The empty class beside the weakest one, however sure that is.
    assert "may be the weakest class: 2 of 10" in Page(render(audit)).text
    assert not re.search(r"\bnan\b", text, re.IGNORECASE)


def test_all_zero_scores_and_missing_objectives():
    text = Page(render(synthetic_audit(models=3, per_class=20, all_wrong=True, measures=GREAT_ONLY))).text
    assert "n/a" in text
    assert "no optimum:" in text


def test_one_model_and_only_clean_accuracy():
    audit = synthetic_audit(models=1, per_class=20, measures=("clean",))
    text = render(audit)
    assert 'id="calibration"' not in text
    assert 'id="sensitivity"' not in text
    assert "1 model ·" in Page(text).text


def test_one_model_is_not_ranked():
    text = render(synthetic_audit(models=1, per_class=20, measures=("clean", "great-softmax")))
    page = Page(text)
    assert "<h2>The model</h2>" in text and "<h2>Ranking</h2>" not in text
    for said in ("Ranking by", "Models compared", "Rank agreement", "too few to show", "Over models", ". ."):
        assert said not in page.text, said


def test_unknown_robust_accuracy_is_not_a_number():
    audit = synthetic_audit(models=3, per_class=20, calibrated=False, measures=GREAT_ONLY)
    audit.model_summary["robust_accuracy"] = np.nan
    audit.model_summary["robust_accuracy_source"] = None
    page = render(audit)
    text = Page(page).text
    assert "Robust accuracy is not known for these models" in text
    assert ">n/a<" not in page
    assert "Share classified correctly under the attack" not in text
    assert not re.search(r"\bnan\b", text, re.IGNORECASE)


def ranking_verdicts(text, measure):
    """Verdict of each model in the ranking by one measure, in the order of the table."""
    table = text[text.index(f'aria-label="Ranking by {measure}"') :].split("</table>")[0]
    return re.findall(r'class="badge (\w+)"', table[table.index("<tbody>") :])


def test_headline_ranking_shows_each_verdict_over_all_rules():
    lenient = gate_rule("great-softmax", at_least=0.001)
    strict = gate_rule("clean", at_least=1.01)
    options = {
        "models": 2,
        "per_class": 400,
        "calibrated": False,
        "measures": ("clean", "great-softmax"),
    }
    text = render(synthetic_audit(**options, rules=[lenient, strict]))
    assert ranking_verdicts(text, "great-softmax") == ["fail", "fail"]
    assert ranking_verdicts(text, "clean") == ["fail", "fail"]
    assert "Verdict: over all 2 rules, on great-softmax, clean." in Page(text).text
    text = render(synthetic_audit(**options, rules=[lenient]))
    assert ranking_verdicts(text, "great-softmax") == ["pass", "pass"]
    assert ranking_verdicts(text, "clean") == []
    text = render(synthetic_audit(**options, rules=[strict]))
    assert ranking_verdicts(text, "great-softmax") == ["fail", "fail"]
    assert "Verdict: over the rule, on clean." in Page(text).text


def test_models_left_out_are_named_with_their_reason():
    excluded = [{"model": "Linf/<b>Bad</b>", "reason": "measured clean accuracy 40.00%, published 94.00%"}]
    audit = synthetic_audit(models=2, per_class=20, measures=("clean",), excluded=excluded)
    page = render(audit)
    for section in ("verdict", "audited"):
        part = Page(page[page.index(f'<section id="{section}"') :].split("</section>")[0] + "</section>").text
        assert "Left out" in part, section
        assert "Linf/<b>Bad</b>" in part, section
        assert excluded[0]["reason"] in part, section
    assert "Left out" not in Page(render(synthetic_audit(models=2, per_class=20, measures=("clean",)))).text
    del audit.verdict["excluded"]
    assert "Left out" not in Page(render(audit)).text


def test_warnings_of_models_stand_above_the_rules_and_beside_their_equality():
    warned = [{"model": "none/model_0", "reason": "may be guessing (clean accuracy <0.1>)"}]
    options = {"models": 3, "per_class": 40, "measures": GREAT_ONLY}
    page = render(synthetic_audit(**options, warned=warned, guessing=["none/model_0", "none/model_1"]))
    verdict = Page(page[page.index('<section id="verdict"') :].split("</section>")[0] + "</section>").text
    warning = f"none/model_0: {warned[0]['reason']}."
    assert verdict.index(warning) < verdict.index("Rule:")
    assert warning not in Page(render(synthetic_audit(**options))).text


def test_stretches_and_spread_of_temperatures_are_told_apart():
    audit = synthetic_audit(models=4, per_class=40, measures=GREAT_ONLY)
    audit.calibration_results["ranking_stability"] |= {
        "t_star": 0.02,
        "interval": [0.01, 0.041],
        "stretches": [[0.01, 0.041], [1, 1], [2, 3], [5, 5]],
    }
    page = render(audit)
    own = audit.calibration_results["likelihood"]["t_star_by_model"].values()
    cells = page[page.index('aria-label="Calibration objectives"') :].split("</table>")[0]
    assert "<td>0.01 to 0.041 and 3 more stretches</td>" in cells
    assert f"<td>{min(own):.3g} to {max(own):.3g} over models</td>" in cells


def test_warning_about_an_accuracy_that_runs_against_robust_accuracy():
    audit = synthetic_audit(models=4, per_class=40, measures=GREAT_ONLY)
    for result in audit.calibration_results.values():
        result["baseline"] = {"clean accuracy alone vs robust accuracy": -0.487}
        result["agreement"]["robust accuracy"] = {"before": -0.8, "after": -0.5}
    text = Page(render(audit)).text
    assert "Neither clean accuracy alone (Spearman −0.487) nor the score calibrated by cross-model accuracy," in text
    assert "ranks the models like robust accuracy." in text
    assert "at least as well" not in text


def test_limits_say_on_which_samples_the_temperature_was_chosen():
    """All of them, by likelihood half of them, or others than those that report it."""
    audit = synthetic_audit(models=4, per_class=40, measures=GREAT_ONLY)
    text = Page(render(audit)).text
    assert "T* was chosen on the audited samples, by likelihood on half of them." in text
    del audit.calibration_results["likelihood"]
    text = Page(render(audit)).text
    assert "T* was chosen on the audited samples . Calibrated scores use all samples" in text
    for result in audit.calibration_results.values():
        result["split"] = {"share": 0.5, "seed": 0}
    text = Page(render(audit)).text
    assert "T* was chosen on one part of the samples and is reported on the other" in text
    assert "carry no bounds" not in text
    assert "half of them" not in text


@pytest.fixture(scope="module")
def certified():
    audit = synthetic_audit(models=3, per_class=40, measures=("clean", "certified"))
    audit.model_summary["robust_accuracy"] = np.nan
    audit.model_summary["robust_accuracy_source"] = None
    audit.models = [{**model, "method": None, "architecture": None} for model in audit.models]
    return render(audit)


def test_certified_radii_without_any_score(certified):
    text = Page(certified).text
    assert 'id="calibration"' not in certified
    assert 'id="sensitivity"' not in certified
    assert certified.index("Ranking by certified") < certified.index("Ranking by clean")
    assert "Certified radii hold for the smoothed classifier," in text
    assert "each with the confidence of its own test" in text
    assert "2 measures" not in text
    for words in (
        "GREAT",
        "T = 1",
        "The score is not a certificate",
        "T*",
        "1.2533",
        "calibrat",
        "Method, architecture",
    ):
        assert words not in text, words
    assert not re.search(r"\b(nan|None)\b", text)
    # Pairs of models may lack a p-value.
    assert ">n/a<" not in certified.split('<section id="comparison"')[0]


def test_clean_accuracy_alone_is_not_called_robust():
    text = Page(render(synthetic_audit(models=2, per_class=20, measures=("clean",)))).text
    assert "Clean accuracy says nothing about robustness." in text
    assert "Certified radii hold" not in text
    assert "The score is not a certificate" not in text


def test_published_accuracies_and_models_without_description():
    audit = synthetic_audit(models=3, per_class=20, calibrated=False, measures=GREAT_ONLY)
    summary = audit.model_summary
    summary["robust_accuracy_source"] = "published"
    summary["published_robust_accuracy"] = summary["robust_accuracy"]
    audit.models = [{**model, "method": None, "architecture": None} for model in audit.models]
    text = Page(render(audit)).text
    assert "Robust accuracy: as published." in text
    assert "Published robust accuracy" in text
    assert "Published clean accuracy" not in text
    assert "compared with nothing" not in text
    summary["published_clean_accuracy"] = 0.9
    assert "compared with nothing" in Page(render(audit)).text
    assert "compared with nothing" not in Page(render(audit, published_samples="full")).text
    assert "Method, architecture" not in text
    assert "None" not in text


def test_samples_that_differ_between_models_are_given_as_a_range():
    audit = synthetic_audit(models=2, per_class=20, calibrated=False, measures=("clean",))
    audit.class_scores.loc[audit.class_scores["model"] == "model_1", "n"] = 15
    text = Page(render(audit)).text
    assert "150 to 200 samples, 15 to 20 per class" in text


def test_label_errors_are_said():
    audit = synthetic_audit(models=2, per_class=20, calibrated=False, measures=("clean",))
    assert "Labels are assumed right." in Page(render(audit)).text
    audit.class_scores["label_error_rate"] = 0.0123
    text = Page(render(audit)).text
    assert "the bounds allow for a label-error rate of 0.0123 in each class" in text
    assert "The label-error rate allowed for, at most 0.0123 per class, is stated or estimated, not proven." in text
    assert "Labels are assumed right." not in text


def test_thousand_classes_stay_small_and_listed_at_both_ends():
    audit = synthetic_audit(models=3, classes=1000, per_class=3, calibrated=False, permutations=19, measures=GREAT_ONLY)
    text = render(audit)
    assert len(text) < 400_000
    assert "976 classes between both ends are in class_scores.csv" in Page(text).text


def test_page_is_the_same_on_every_run():
    audit = synthetic_audit(models=2, per_class=20, measures=GREAT_ONLY)
    assert render(audit) == render(audit)


def test_size_of_an_ordinary_page(page):
    assert len(page.encode()) < 1_000_000


def test_limits_and_calibration_name_what_of_the_papers_does_not_reproduce(page):
    text = Page(page).text
    limits = text[text.rindex("The bounds are confidence, not proof.") :]
    assert "It bears on this page that the GREAT score is no certified radius (H7)" in limits
    assert "docs/what-reproduces.md" in limits
    # Measures that the audit lacks.
    assert "MA3" not in text and "EB4" not in text
    assert "By its own tables it falls to 0.515" in text


def test_a_page_about_clean_accuracy_alone_names_no_claim():
    assert "source papers say" not in render(synthetic_audit(models=2, per_class=20, measures=("clean",)))
