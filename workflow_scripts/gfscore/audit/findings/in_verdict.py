"""Findings inside verdict.json, and the verdict's sentence where attacks say otherwise than what the gate judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gfscore.audit.findings.finding import Finding
from gfscore.audit.findings.making import findings_of

if TYPE_CHECKING:
    from gfscore.audit.audit_tables import AuditTables

BESIDE = ("passing_model_falls", "no_attack", "few_samples")
"""Kinds of findings that a verdict is not read without: it rests on less than an attack, or on few samples."""


def with_findings(
    verdict: Mapping[str, Any], tables: AuditTables, measures: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Contents of verdict.json with the findings of the audit.

    Where the gate rests on a weaker evidence than the audit holds, `sentence` ends with what the stronger one says;
    where it rests on few samples, with that.
    Takes AuditTables and the settings of every measure of the audit.
    """
    findings = as_data(findings_of(tables, verdict, measures))
    sentence = " ".join([verdict["sentence"], *(f"But {lowered(words)}." for words in beside(findings))])
    return {**verdict, "sentence": sentence, "findings": findings}


def beside(findings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Sentences that belong beside the verdict, of findings as verdict.json holds them."""
    return [
        finding["sentence"]
        for finding in findings
        if finding["kind"] in BESIDE and finding["subject"].get("attack_free", True)
    ]


def lowered(sentence: str) -> str:
    """Sentence as it goes on behind "But": a first word of the template in small letters, a name as it is."""
    of_template = sentence.startswith(("No ", "All ", "Both ", "The only "))
    return sentence[:1].lower() + sentence[1:] if of_template else sentence


def as_data(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """Findings as plain data for JSON, each with its section and its sentence."""
    return [
        {
            "kind": finding.kind,
            "section": finding.section,
            "rank": finding.rank,
            "subject": dict(finding.subject),
            "numbers": dict(finding.numbers),
            "confidence": finding.confidence,
            "sentence": finding.sentence,
        }
        for finding in findings
    ]


def first_findings(worded: Sequence[Mapping[str, Any]], most: int) -> list[Mapping[str, Any]]:
    """The `most` findings that stand first: the first of each rank, then the next ones, in the order of rank.

    Takes what as_data returns.
    """
    seen: list[int] = []
    place = []
    for position, finding in enumerate(worded):
        place.append((seen.count(finding["rank"]), position))
        seen.append(finding["rank"])
    chosen = sorted(sorted(range(len(worded)), key=lambda position: place[position])[:most])
    return [worded[position] for position in chosen]
