"""Evaluation results of every model of an audit, for its card on the Hugging Face Hub."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gfscore.audit.tables import TABLES
from gfscore.audit.verdicts.verdict import read_verdict
from gfscore.core.files import write_text
from gfscore.show.exports.cards import model_cards
from gfscore.tables.parquet_tables import read_identity, read_table
from gfscore.workflow.jobs import logged_job


def export_cards(
    path_to_scores: Path | str,
    path_to_summary: Path | str,
    path_to_verdict: Path | str,
    path_to_folder: Path | str,
    *,
    audit: str,
    title: str,
    measures: Mapping[str, Mapping[str, Any]],
) -> None:
    """Write <folder>/<threat>__<model>.md for every model, with the findings of verdict.json."""
    summary = read_table(path_to_summary, TABLES["model_summary"], expect={"audit": audit})
    classes = read_table(path_to_scores, TABLES["class_scores"], expect={"audit": audit})["class_index"].nunique()
    digest = read_identity(path_to_scores)["dataset_digest"]
    findings = [finding.sentence for finding in read_verdict(path_to_verdict).findings]
    of_audit = {"audit": audit, "title": title, "digest": digest, "classes": classes, "findings": findings}
    cards = model_cards(summary, measures, **of_audit)
    for name, card in cards.items():
        write_text(Path(path_to_folder) / f"{name}.md", card)


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        export_cards(
            snakemake.input.class_scores,
            snakemake.input.model_summary,
            snakemake.input.verdict,
            snakemake.output.folder,
            audit=snakemake.wildcards.audit,
            **snakemake.params,
        )
