"""Findings of an audit: what refutes the verdict stands first, and no two statements contradict each other."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from gfscore.audit.calibration.evidence import ROBUST, alone
from gfscore.audit.calibration_results import Calibration, Correlations
from gfscore.audit.findings.finding import (
    DIFFERS,
    OPEN,
    RANKED,
    REFUTES,
    REMEDY,
    WEAKEST,
    Finding,
    FindingInWords,
    first_findings,
)
from gfscore.audit.findings.templates import TEMPLATES
from gfscore.audit.findings.words import FAILURES, SENTENCES
from gfscore.audit.tables import AuditTables
from gfscore.audit.verdicts.findings import (
    findings_of,
    qualifying_sentences,
    with_findings,
)
from gfscore.audit.verdicts.verdict import ModelRemark, ModelVerdict, RuleVerdict, Verdict, evidence_interval_of
from gfscore.core.labels import classes_of
from gfscore.measures import named_measures
from gfscore.show.page.first_screen import settling
from gfscore.show.run_output import MOST_LINES, last_words
from gfscore.statistics.margins import SCALE
from gfscore.statistics.proportions import lower_mean_shares
from helpers.synthetic_audits import synthetic_audit

SCORE, ATTACK = "great-softmax", "attack"
MORE_SAMPLES = {"samples_needed_per_class": None, "open_samples": None, "classes_without_samples": []}
ENTRIES = {SCORE: {"kind": "great", "activation": "softmax"}, ATTACK: {"kind": "adversarial", "eps": 0.1}}
MEASURES = named_measures(ENTRIES)


def disagreeing(models=6, *, judged=SCORE):
    """An audit whose score is highest for the models that attacks break most, and the contents of its verdict.

    Class 0 is the weakest; accuracy under attack runs from 0.05 to 0.8. The gate judges the score, or the attack at 0.3.
    """
    names = [f"model_{index}" for index in range(models)]
    rows, classes = [], []
    for index, name in enumerate(names):
        for measure, value in ((SCORE, 1.0 - 0.1 * index), (ATTACK, 0.05 + 0.75 * index / (models - 1))):
            model = {"dataset": "d", "threat": "none", "model": name, "measure": measure, "calibration": "none"}
            bounds = {"value_alone_low": value - 0.04, "value_alone_high": value + 0.04, "confidence": 0.95}
            known = {"robust_accuracy": np.nan, "robust_accuracy_source": None, "accuracy": 0.9}
            rows.append(model | {"value": value, "rdi": 0.2, "nrgc": 0.1, "rdi_over_mean": 0.2} | bounds | known)
            for k in range(4):
                own = value * (0.8 if k == 0 else 1.0)
                ends = {
                    "low": max(0.0, own - 0.01),
                    "high": own + 0.01,
                    "confidence": 0.95,
                    "n": 50,
                    "n_missing": 0,
                    "accuracy": 0.9,
                }
                ends |= {"value_most": own, "interval": "clopper_pearson", "label_error_rate": np.nan}
                classes.append(model | {"class_index": k, "class_name": f"class-{k}", "value": own} | ends)
    tables = AuditTables(pd.DataFrame(classes), pd.DataFrame(rows), pd.DataFrame())
    threshold, chosen = (0.2, rows[::2]) if judged == SCORE else (0.3, rows[1::2])
    verdicts = []
    for row in chosen:
        worst = 0.8 * row["value"]
        word = "PASS" if worst - 0.02 >= threshold else "FAIL"
        verdicts.append(model_verdict(row["model"], word, worst))
    return tables, verdict_of(verdicts, judged, threshold)


def model_verdict(name, word, value):
    ends = {"value": value, "low": value - 0.02, "high": value + 0.02}
    return ModelVerdict.model_construct(threat="none", model=name, verdict=word, **ends, **MORE_SAMPLES)


def verdict_of(models, measure=ATTACK, threshold=0.3):
    rule = {"measure": measure, "statistic": "wcr", "direction": "at_least", "threshold": threshold}
    rule = RuleVerdict.model_construct(**rule, confidence=0.95, words="a rule", attribute=None, models=models)
    word = "FAIL" if any(model.verdict == "FAIL" for model in models) else "PASS"
    return Verdict.model_construct(verdict=word, sentence=f"{word}: so.", rules=[rule], excluded=[])


def test_where_score_and_attacks_disagree_the_verdict_says_what_attacks_say():
    tables, verdict = disagreeing()
    told = with_findings(verdict, tables, MEASURES)
    first, second = told.findings[:2]
    assert told.verdict == "PASS"
    assert (first.kind, first.subject["model"]) == ("passing_model_falls", "model_0")
    assert first.numbers["accuracy"] == pytest.approx(0.05) and first.confidence == 0.95
    assert first.sentence in told.sentence
    assert second.kind == "order_reversed"
    assert second.numbers["rho"] == pytest.approx(-1)
    assert qualifying_sentences(told.findings) == [first.sentence]


def test_the_lowest_accuracy_under_attack_is_bounded_for_all_models_and_attacks_among_which_it_is_the_lowest():
    tables, verdict = disagreeing()
    verdict.excluded.append(ModelRemark(model="none/other", reason="so"))
    lowest = tables.class_scores[
        (tables.class_scores["measure"] == ATTACK) & (tables.class_scores["model"] == "model_0")
    ]
    survivors = int(np.rint(lowest["n"] * lowest["value"]).sum())
    found = {finding.kind: finding for finding in findings_of(tables, verdict, MEASURES)}
    expected = 1 - lower_mean_shares(lowest["n"].sum() - survivors, lowest["n"].sum(), alpha=0.05 / 7)
    assert found["passing_model_falls"].numbers["high"] == pytest.approx(expected)


def test_a_gate_on_the_attack_itself_is_contradicted_by_nothing():
    tables, verdict = disagreeing(judged=ATTACK)
    told = with_findings(verdict, tables, MEASURES)
    (qualification,) = qualifying_sentences(told.findings)
    assert qualification == next(item.sentence for item in told.findings if item.kind == "passes_on_attacks")
    assert "passing_model_falls" not in {finding.kind for finding in told.findings}
    assert told.findings[0].kind == "order_reversed"


@pytest.mark.parametrize(("smallest", "said"), [(19, True), (20, False), (0, False)])
def test_a_verdict_on_classes_of_few_samples_says_so(smallest, said):
    tables, verdict = disagreeing(judged=ATTACK)
    tables.class_scores.loc[tables.class_scores["class_index"] == 2, "n"] = smallest
    told = with_findings(verdict, tables, MEASURES)
    found = [finding for finding in told.findings if finding.kind == "few_samples"]
    assert [finding.numbers["least"] for finding in found] == ([smallest] if said else [])
    assert all(finding.numbers["count"] == 1 and finding.sentence in told.sentence for finding in found)


def test_findings_stand_by_rank_and_the_first_ones_are_of_different_ranks():
    tables, verdict = disagreeing()
    worded = [FindingInWords.of(finding) for finding in findings_of(tables, verdict, MEASURES)]
    ranks = [finding.rank for finding in worded]
    assert ranks == sorted(ranks)
    first = first_findings(worded, 3)
    assert first[0].rank == REFUTES
    assert WEAKEST in [finding.rank for finding in first]
    assert [worded.index(finding) for finding in first] == sorted(worded.index(finding) for finding in first)


def test_the_weakest_class_is_that_of_the_model_shown_with_its_distance_to_the_next():
    tables, verdict = disagreeing(judged=ATTACK)
    found = {finding.kind: finding for finding in findings_of(tables, verdict, MEASURES)}
    weakest = found["weakest_class"]
    assert verdict.shown_model == ("none", "model_5")
    assert weakest.subject["model"] == "model_5" and weakest.subject["class"] == classes_of(tables.class_scores)[0]
    assert weakest.numbers["gap"] == pytest.approx(0.2 * 0.8)
    assert weakest.numbers["suspects"] == 1 and weakest.numbers["times"] == 6


def test_what_is_weakest_is_said_with_the_measure_that_says_so():
    tables, verdict = disagreeing(judged=ATTACK)
    for kind in ("weakest_class", "no_weakest_class"):
        finding = next(item for item in findings_of(tables, verdict, MEASURES) if item.kind == "weakest_class")
        assert ATTACK in Finding(kind, finding.subject, finding.numbers, finding.confidence).sentence


def test_a_class_without_samples_is_not_counted_among_those_that_may_be_the_weakest():
    tables, verdict = disagreeing()
    scores = tables.class_scores
    scores.loc[scores["class_index"] == 2, ["n", "value", "low", "high"]] = [0, np.nan, 0.0, 1.2533]
    found = {finding.kind: finding for finding in findings_of(tables, verdict, MEASURES)}
    assert found["classes_without_samples"].numbers == {"count": 1, "classes": 4}
    assert found["classes_without_samples"].sentence.endswith("no samples, and it may be the weakest class")
    assert (found["weakest_class"].numbers["suspects"], found["weakest_class"].numbers["classes"]) == (1, 3)
    assert "surely the weakest measured (95% confidence)" in found["weakest_class"].sentence


def test_samples_without_a_value_do_not_count_in_findings():
    tables, verdict = disagreeing()
    scores = tables.class_scores
    scores.loc[scores["class_index"] == 0, "n_missing"] = 50
    scores.loc[scores["class_index"] == 2, "n_missing"] = 35
    found = {finding.kind: finding for finding in findings_of(tables, verdict, MEASURES)}
    assert found["classes_without_samples"].numbers == {"count": 1, "classes": 4}
    assert (found["few_samples"].numbers["count"], found["few_samples"].numbers["least"]) == (1, 15)
    kind = "weakest_class" if "weakest_class" in found else "no_weakest_class"
    assert found[kind].subject["class"] != classes_of(scores)[0]


def test_two_classes_that_score_lowest_are_level():
    tables, verdict = disagreeing()
    alike = tables.class_scores["class_index"] == 0
    ends = ["value", "value_most", "low", "high"]
    tables.class_scores.loc[tables.class_scores["class_index"] == 1, ends] = tables.class_scores.loc[
        alike, ends
    ].to_numpy()
    found = {finding.kind: finding for finding in findings_of(tables, verdict, MEASURES)}
    assert "level with class" in found["weakest_class"].sentence


def test_of_classes_that_are_all_level_none_alone_scores_lowest():
    audit = synthetic_audit(models=1, classes=4, per_class=30, all_wrong=True, calibrated=False)
    tables = AuditTables(audit.class_scores, audit.model_summary, audit.vulnerability)
    found = {finding.kind: finding for finding in findings_of(tables, audit.verdict, audit.named)}
    assert "class 0 (tied with 3 others) scores lowest by" in found["no_weakest_class"].sentence


@pytest.mark.parametrize("settled", [False, True])
@pytest.mark.parametrize(("high", "kind"), [(0.75, "no_weakest_class"), (0.4, "weakest_class")])
def test_a_class_with_open_samples_is_named_with_both_ends_of_its_value(high, kind, settled):
    tables, verdict = disagreeing()
    scores = tables.class_scores
    # Nothing is proven of two classes, and attacks leave less of the second; a third is known to be better. Or something
    # is proven of the first, so that the second is the weakest whatever open samples are worth.
    for index, least, most in ((0, 0.35 if settled else 0.0, 0.7), (1, 0.0, 0.3)):
        columns = ["value", "value_most", "low", "high"]
        scores.loc[scores["class_index"] == index, columns] = [least, most, 0.0, high]
    scores.loc[scores["class_index"] > 1, ["value", "value_most", "low", "high"]] = [0.6, 0.6, 0.5, 0.7]
    found = {finding.kind: finding for finding in findings_of(tables, verdict, MEASURES)}
    assert found[kind].subject["class"] == classes_of(scores)[1]
    assert ("0 to 0.300" if settled else "0, at most 0.300") in found[kind].sentence
    assert (FAILURES.lower() in found[kind].sentence.lower()) != settled
    assert "below" not in found[kind].sentence and "level with" not in found[kind].sentence


def test_findings_on_smallest_values_say_that_undecided_samples_count_as_failures():
    tables, verdict = disagreeing()
    summary = tables.model_summary
    # Models with a higher mean are less equal by RDI, more by NRGC.
    summary["rdi"] = 0.1 * summary["value"]
    summary["nrgc"] = 0.5 - 0.1 * summary["value"]
    for most in (0.0, 0.1):
        tables.class_scores["value_most"] = tables.class_scores["value"] + most
        found = {finding.kind: finding.sentence for finding in findings_of(tables, verdict, MEASURES)}
        starts = {
            "passing_model_falls": "model_0 passes, yet",
            "order_reversed": "the order of",
            "metrics_disagree": "whether robustness costs",
        }
        for kind, start in starts.items():
            assert found[kind].lower().startswith(f"{FAILURES if most else ''}{start}".lower())
        assert ("But undecided samples counted" in with_findings(verdict, tables, MEASURES).sentence) == (most > 0)


def test_an_audit_without_attacks_says_so_and_undecided_models_what_they_need():
    audit = synthetic_audit(models=2, classes=3, per_class=10, at_least=0.9, calibrated=False)
    tables = AuditTables(audit.class_scores, audit.model_summary, audit.vulnerability)
    kinds = [finding.kind for finding in findings_of(tables, audit.verdict, audit.named)]
    assert kinds[0] == "no_attack"
    undecided = len(audit.verdict.rules[0].models_with("INCONCLUSIVE"))
    found = [finding for finding in findings_of(tables, audit.verdict, audit.named) if finding.rank == OPEN]
    assert undecided > 0
    assert [(finding.kind, finding.numbers["count"]) for finding in found] == [
        ("few_samples", 3),
        ("undecided_models", undecided),
    ]


def test_undecided_models_of_several_rules_say_which_rule_their_samples_would_settle():
    first = {"measure": "great-sigmoid", "at_least": 0.5}
    audit = synthetic_audit(models=2, classes=3, per_class=10, rules=[first, first | {"statistic": "value"}])
    tables = AuditTables(audit.class_scores, audit.model_summary, audit.vulnerability)
    found = [item for item in findings_of(tables, audit.verdict, audit.named) if item.kind == "undecided_models"]
    assert len(found) == 2
    for place, finding in enumerate(found, start=1):
        assert f"undecided by rule {place} of 2 (" in finding.sentence


def test_a_class_without_samples_is_what_would_settle_undecided_models():
    audit = synthetic_audit(models=2, classes=4, per_class=30, empty_class=2, calibrated=False)
    tables = AuditTables(audit.class_scores, audit.model_summary, audit.vulnerability)
    found = {finding.kind: finding for finding in findings_of(tables, audit.verdict, audit.named)}
    # As the page says beside the verdict.
    assert settling(audit.verdict.rules[0]) == "it takes samples of every class"
    assert found["undecided_models"].sentence.endswith(": it takes samples of every class")


def test_models_that_have_samples_of_every_class_need_more_of_them():
    audit = synthetic_audit(models=2, classes=4, per_class=8, lacking_class=2, at_least=0.6, calibrated=False)
    tables = AuditTables(audit.class_scores, audit.model_summary, audit.vulnerability)
    (found,) = (item for item in findings_of(tables, audit.verdict, audit.named) if item.kind == "undecided_models")
    lacking, other = audit.verdict.rules[0].models_with("INCONCLUSIVE")
    assert lacking.classes_without_samples and not lacking.samples_needed_per_class
    needed = f"about {other.samples_needed_per_class:,} samples per class"
    assert settling(audit.verdict.rules[0]) == (
        f"for 1 of them it takes samples of every class; {needed} of a new audit would settle 1 of them"
    )
    assert found.sentence.endswith(f": for 1 of them it takes samples of every class; {needed} would settle 1 of them")


def test_that_no_difference_can_be_shown_is_a_finding():
    tables, verdict = disagreeing()
    wide = tables.class_scores.assign(low=0.0, high=SCALE)
    found = findings_of(AuditTables(wide, tables.model_summary, tables.vulnerability), verdict, MEASURES)
    (finding,) = (finding for finding in found if finding.kind == "no_weakest_class")
    # No bound beyond the end of the range.
    assert finding.sentence.endswith("(0 to 1.2533)")


def test_the_shown_model_is_the_best_that_passes_else_the_best_undecided():
    failing = model_verdict("best", "FAIL", 0.9)
    undecided = model_verdict("undecided", "INCONCLUSIVE", 0.5)
    passing = model_verdict("passing", "PASS", 0.4)
    empty = model_verdict("empty", "PASS", float("nan"))
    assert verdict_of([failing, undecided]).shown_model == ("none", "undecided")
    assert verdict_of([failing, undecided, empty, passing]).shown_model == ("none", "passing")


def test_a_gate_on_attacks_says_what_is_proven_of_the_models_that_pass():
    tables, verdict = disagreeing(judged=ATTACK)
    evidence = {"proof": {"kind": "proven", "eps": 0.1}, "band": {"kind": "robust", "eps": 0.1}}
    measures = named_measures(ENTRIES | evidence)
    attacked = tables.model_summary[tables.model_summary["measure"] == ATTACK]
    proven = attacked.assign(measure="band", wcr=0.5 * attacked["value"])
    with_proofs = AuditTables(tables.class_scores, pd.concat([tables.model_summary, proven]), tables.vulnerability)
    (found,) = (item for item in findings_of(with_proofs, verdict, measures) if item.kind == "passes_on_attacks")
    passing = [model.model for model in verdict.rules[0].models_with("PASS")]
    expected = proven[proven["model"].isin(passing)]["wcr"]
    assert found.subject == {"measure": ATTACK, "interval": "band"} and found.numbers["passing"] == len(passing) > 1
    assert (found.numbers["least"], found.numbers["most"]) == (expected.min(), expected.max())

    (without,) = (item for item in findings_of(tables, verdict, MEASURES) if item.kind == "passes_on_attacks")
    assert without.subject["interval"] is without.numbers["least"] is None


def test_a_proof_of_another_ball_or_of_other_samples_is_no_evidence_beside_an_attack():
    ball = {"norm": "linf", "eps": 0.1}
    measures = {"attack": {"kind": "adversarial", **ball}, "proof": {"kind": "proven", **ball}}
    assert evidence_interval_of("attack", named_measures(measures)) is None
    measures |= {"other": {"kind": "adversarial", "eps": 0.2}, "few": measures["attack"] | {"subset": {"samples": 2}}}
    measures["band"] = {"kind": "robust", **ball}
    members = [name for name in measures if evidence_interval_of(name, named_measures(measures)) == "band"]
    assert members == ["attack", "proof", "band"]


def test_refuted_certificates_of_two_measures_are_two_findings():
    tables, verdict = disagreeing()
    row = {"dataset": "d", "threat": "none", "n": 100, "attacked": 60, "within_chance": False}
    rows = [row | {"model": "model_0", "measure": name, "refuted": count} for name, count in (("one", 7), ("two", 9))]
    rows.append(rows[0] | {"model": "model_1", "refuted": 8})
    rows.append(rows[0] | {"model": "model_2", "refuted": 0, "within_chance": True})
    tables.others["refutations"] = pd.DataFrame(rows)
    found = [item for item in findings_of(tables, verdict, MEASURES) if item.kind == "certificates_refuted"]
    counts = {item.subject["measure"]: (item.numbers["refuted"], item.numbers["n"]) for item in found}
    assert counts == {"one": (15, 120), "two": (9, 60)}


def test_a_model_under_two_threats_is_told_from_itself():
    tables, _ = disagreeing(models=2)
    for frame in (tables.class_scores, tables.model_summary):
        frame["threat"] = frame["model"].map({"model_0": "linf", "model_1": "l2"})
        frame["model"] = "A"
    undecided = model_verdict("A", "INCONCLUSIVE", 0.3)
    verdict = verdict_of([undecided.model_copy(update={"threat": threat}) for threat in ("linf", "l2")])
    sign = {"dataset": "d", "threat": "l2", "model": "A", "measure": ATTACK, "proof": True, "count": 3, "n": 9}
    tables.others["masking_signs"] = pd.DataFrame([sign])
    found = {item.kind: item for item in findings_of(tables, verdict, MEASURES)}
    assert sorted(found["undecided_models"].subject["models"]) == ["l2/A", "linf/A"]
    assert found["gradients_masked"].subject["model"] == "l2/A"


@pytest.mark.parametrize(("proof", "said"), [(True, "certainly failed on 3 of 9 samples"), (False, "may be masked")])
def test_attacks_that_failed_do_not_prove_that_gradients_are_masked(proof, said):
    subject, numbers = {"model": "A", "measure": ATTACK, "proof": proof}, {"count": 3, "n": 9, "models": 1}
    sentence = Finding("gradients_masked", subject, numbers).sentence
    assert said in sentence and " is masked" not in sentence


def test_that_calibration_fails_is_said_of_the_temperatures_that_were_chosen():
    numbers = {"after": 0.5, "before": 0.6, "alone": 0.7, "tied_objectives": 0}
    sentence = Finding("calibration_fails", {"measure": SCORE, "objective": "likelihood"}, numbers).sentence
    assert sentence.startswith("No calibration makes")


@pytest.mark.parametrize(("known", "said"), [(4, False), (5, True)])
def test_calibration_fails_only_where_models_are_enough_to_show_a_ranking(known, said):
    findings = findings_of_calibration(before=0.6, after=0.5, accuracy_alone=0.7, known=known)
    assert ("calibration_fails" in findings) is said


def findings_of_calibration(*, before, after, accuracy_alone, known=6):
    """Findings by kind of an audit of 6 models with two objectives of that agreement with robust accuracy."""
    tables, verdict = disagreeing(models=6)
    # Models of which no robust accuracy is known show nothing.
    places = tables.model_summary["model"].str.removeprefix("model_").astype(int)
    robust_accuracy = pd.Series(0.1 * places).where(places < known)
    calibration = Calibration(
        measure=SCORE,
        agreement={ROBUST: Correlations(before=before, after=after)},
        baseline={alone(ROBUST): accuracy_alone},
        models_digest="0" * 64,
    )
    summary = tables.model_summary.assign(robust_accuracy=robust_accuracy)
    results = {"likelihood": calibration, "attack_distance": calibration}
    calibrated = replace(tables, model_summary=summary, calibration_results=results)
    return {item.kind: item for item in findings_of(calibrated, verdict, MEASURES)}


def test_a_calibration_that_ranks_the_models_in_reverse_is_not_compared_with_what_is_worse():
    findings = findings_of_calibration(before=-0.6, after=-0.2, accuracy_alone=-0.5)
    assert "calibration_fails" not in findings
    assert "\N{MINUS SIGN}0.200 at best" in findings["calibration_useless"].sentence
    assert not {"calibration_fails", "calibration_useless"} & set(
        findings_of_calibration(before=-0.6, after=0.2, accuracy_alone=-0.5)
    )


def test_objectives_that_fail_alike_are_said_to_be_tied():
    findings = findings_of_calibration(before=0.5, after=0.5, accuracy_alone=0.3)
    sentence = findings["calibration_fails"].sentence
    assert "better than both" in sentence and "by likelihood (tied with 1 other);" in sentence


def test_a_rate_of_refuted_scores_is_of_the_correct_samples():
    numbers = {"least": 0.5, "most": 1.0, "refuted": 0, "models": 2}
    sentence = Finding("score_refuted", {"score": SCORE, "distances": "minimal-l2"}, numbers, 0.95).sentence
    assert sentence.endswith("comes nearer on 0.500 to 1.00 of the correct samples")


def test_the_terminal_says_it_in_at_most_twelve_lines():
    tables, verdict = disagreeing()
    lines = last_words("digits", with_findings(verdict, tables, MEASURES), page="results/audits/digits/report.html")
    assert len(lines) <= MOST_LINES
    assert lines[-1].endswith("results/audits/digits/report.html")
    assert sum("model_0 passes" in line for line in lines) == 1


def test_the_terminal_says_what_the_verdict_rests_on_once():
    tables, verdict = disagreeing(judged=ATTACK)
    complete = with_findings(verdict, tables, MEASURES)
    words = " ".join(" ".join(last_words("digits", complete)).split())
    sentences = qualifying_sentences(complete.findings)
    assert sentences and all(words.count(sentence[1:]) == 1 for sentence in sentences)


def test_every_kind_has_a_rank_a_section_and_words():
    assert TEMPLATES.keys() < RANKED.keys() < SENTENCES.keys()
    assert {rank for rank, _ in RANKED.values()} == {REFUTES, WEAKEST, DIFFERS, OPEN, REMEDY}


def test_every_finding_is_one_sentence_without_a_full_stop():
    for judged in (SCORE, ATTACK):
        tables, verdict = disagreeing(judged=judged)
        for finding in findings_of(tables, verdict, MEASURES):
            assert finding.sentence and not finding.sentence.endswith(".")


@pytest.mark.parametrize("stated", [None, "PGD-20"])
def test_that_no_measure_attacks_does_not_deny_what_checkpoints_state(stated):
    tables, verdict = disagreeing()
    summary = tables.model_summary
    summary["robust_accuracy"], summary["robust_accuracy_source"] = (0.1 if stated else np.nan), stated
    own = AuditTables(tables.class_scores[::2], summary[summary["measure"] == SCORE], pd.DataFrame())
    found = {finding.kind: finding for finding in findings_of(own, verdict, named_measures({SCORE: {"kind": "clean"}}))}
    assert found["no_attack"].subject["stated"] == stated
    assert ("passing_model_falls" in found) == (stated is not None)
    assert ("PGD-20" in found["no_attack"].sentence) == (stated is not None)
