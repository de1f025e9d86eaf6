"""An audit in the forms that others read: tables as LaTeX, a card of each model, and a research object to deposit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from gfscore.audit.calibration_results import read_calibrations
from gfscore.audit.tables import TABLES
from gfscore.audit.verdicts.verdict import Verdict, read_verdict
from gfscore.core.files import write_text
from gfscore.measures import NamedMeasure, named_measures
from gfscore.show.exports import ExportSettings
from gfscore.show.exports.crate import write_crate
from gfscore.show.exports.step_runs import recorded_steps
from gfscore.show.exports.tables import (
    calibration_table,
    class_table,
    coupling_table,
    model_cards,
    model_table,
    projection_table,
)
from gfscore.tables.parquet_tables import read_identity, read_table
from gfscore.workflow.audit_check import require_unchanged_audit
from gfscore.workflow.jobs import logged_job


@dataclass(frozen=True, kw_only=True)
class ExportedAudit:
    """A finished audit.

    Parameters
    ----------
    name, title : str
        Name and heading.
    measures : mapping of str to NamedMeasure
        Measures by name.
    fp_lambda : float
        Lambda of FP.
    files : mapping
        Paths of class_scores, model_summary, projection_models, calibrations and verdict.
    """

    name: str
    title: str
    measures: Mapping[str, NamedMeasure]
    fp_lambda: float
    files: Mapping[str, Any]

    def table(self, name: str) -> pd.DataFrame:
        """Rows of one of its tables."""
        return read_table(self.files[name], TABLES[name], expect={"audit": self.name})

    @property
    def verdict(self) -> Verdict:
        """Its verdict."""
        return read_verdict(self.files["verdict"])


def export_audit(audit: ExportedAudit, folders: Mapping[str, Any], **crate: Any) -> None:
    """Write the folders `latex`, `cards` and `crate`; what else the crate holds as `export_crate` takes it."""
    export_tables(audit, Path(folders["latex"]))
    export_cards(audit, Path(folders["cards"]))
    export_crate(audit, Path(folders["crate"]), **crate)


def export_tables(audit: ExportedAudit, folder: Path) -> None:
    """Write tables in LaTeX into a folder.

    <measure>-models.tex and -classes.tex of every measure, -calibration.tex of the calibrated one;
    <mapper>-projection.tex and -coupling.tex of every mapper.
    """
    for mapper, rows in audit.table("projection_models").groupby("mapper", sort=False):
        write_text(folder / f"{mapper}-projection.tex", projection_table(rows))
        write_text(folder / f"{mapper}-coupling.tex", coupling_table(rows))

    scores, summary = audit.table("class_scores"), audit.table("model_summary")
    calibrations = read_calibrations(audit.files["calibrations"])
    calibrated = {calibration.measure for calibration in calibrations.values()}
    for name, named in audit.measures.items():
        models = summary[summary["measure"] == name]
        classes = scores[scores["measure"] == name]
        table = model_table(models, named.description, name=name, fp_lambda=audit.fp_lambda, calibrations=calibrations)
        write_text(folder / f"{name}-models.tex", table)
        write_text(folder / f"{name}-classes.tex", class_table(classes, named.description, name=name))
        if name in calibrated:
            write_text(folder / f"{name}-calibration.tex", calibration_table(calibrations, models, name=name))


def export_cards(audit: ExportedAudit, folder: Path) -> None:
    """Write <threat>__<model>.md into a folder, the evaluation of each model for its card on the Hugging Face Hub."""
    texts = model_cards(
        audit.table("model_summary"),
        audit.measures,
        audit=audit.name,
        title=audit.title,
        digest=read_identity(audit.files["class_scores"])["dataset_digest"],
        classes=audit.table("class_scores")["class_index"].nunique(),
        findings=[finding.sentence for finding in audit.verdict.findings],
    )
    for model, text in texts.items():
        write_text(folder / f"{model}.md", text)


def export_crate(
    audit: ExportedAudit,
    folder: Path,
    *,
    config: Mapping[str, Any],
    workflow: Sequence[str],
    inputs: Sequence[str],
    outputs: Sequence[str],
    stated: ExportSettings,
) -> None:
    """Write a Provenance Run Crate of the audit into a folder; its date is that of verdict.json.

    Parameters
    ----------
    audit : ExportedAudit
    folder : Path
    config : mapping
        Configuration of the run, with what the command line changed.
    workflow, inputs, outputs : sequence of str
        Files of the workflow, manifests of data and models, and results besides the verdict, relative to the current
        folder.
    stated : ExportSettings
        What the configuration states of author, publisher and licence.

    Raises
    ------
    InputError
        For an audit whose files are not as the workflow wrote them: the crate gives each a digest of its own.
    """
    verdict = Path(audit.files["verdict"])
    require_unchanged_audit(verdict.parent)
    results = [str(verdict), *outputs]
    write_crate(
        folder,
        root=".",
        workflow=workflow,
        config=config,
        inputs=inputs,
        outputs=results,
        steps=recorded_steps([*inputs, *results], root=Path()),
        stated=stated,
        audit=audit.name,
        title=audit.title,
        sentence=audit.verdict.sentence,
        finished=verdict.stat().st_mtime,
    )


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        inputs, params = snakemake.input, snakemake.params
        export_audit(
            ExportedAudit(
                name=snakemake.wildcards.audit,
                title=params.title,
                measures=named_measures(params.measures),
                fp_lambda=params.fp_lambda,
                files=inputs,
            ),
            snakemake.output,
            config=params.config,
            workflow=list(inputs.workflow),
            inputs=list(inputs.manifests),
            outputs=list(inputs.results),
            stated=ExportSettings(**params.config["exports"]),
        )
