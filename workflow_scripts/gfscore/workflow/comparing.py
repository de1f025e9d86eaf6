"""The command gfscore compare: what changed between two audits of the same data, in words, as CSV and as a page."""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd

from gfscore.audit.audit_changes import audit_changes, different_settings
from gfscore.audit.class_changes import BETTER, COLUMNS, UNDECIDED, WORSE, class_changes
from gfscore.audit.values import AuditValues
from gfscore.audit.verdicts.verdict import Verdict, read_verdict
from gfscore.core.dataset_manifest import DatasetManifest, resolve_label_error_rates
from gfscore.core.digests import sha256_of_file
from gfscore.core.errors import InputError
from gfscore.core.files import write_text
from gfscore.core.names import printable
from gfscore.core.numbers import interval, number, span
from gfscore.show.page.comparison import Side, render_comparison
from gfscore.tables.csv_files import csv_text
from gfscore.workflow.bundling.contents import Bundle, name_of, other_digests, read_statement
from gfscore.workflow.bundling.releases import IRRELEVANT, same_models, values_below
from gfscore.workflow.plan import PlannedAudit
from gfscore.workflow.resolved_file import read_planned_audit
from gfscore.workflow.user_files import STATEMENT

AUDITS = Path("results/audits")

REMEDY = "name bundles, or audits below a results/ that holds them"


@dataclass(frozen=True)
class ComparedAudit:
    """One of two audits that are compared.

    Parameters
    ----------
    folder : Path
        Its tables, verdict and configuration: audits/<audit> of a bundle, or of results/.
    """

    folder: Path

    @classmethod
    def named(cls, name: str) -> ComparedAudit:
        """Audit of results/ by its name, or of the folder of an audit or of a bundle, whose files must be as stated."""
        path = Path(name)
        if (path / STATEMENT).is_file():
            bundle = Bundle.read(path)
            for fault in other_digests(bundle, read_statement(bundle.path(STATEMENT))):
                raise InputError(f"{printable(path)}: {printable(fault)}; take the bundle from where it was handed out")
            return cls(path / "audits" / bundle.audit)
        folder = path if os.sep in name else AUDITS / name
        if not folder.is_dir():
            raise InputError(f"{printable(folder)}: no such audit; {REMEDY}")
        return cls(folder)

    @property
    def root(self) -> Path:
        """Folder in which everything stands as below results/."""
        return self.folder.parents[1]

    @property
    def has_values(self) -> bool:
        """Whether its values per sample are there, not its tables alone."""
        scores = self.root / name_of(f"results/scores/{self.folder.name}.parquet")
        return scores.is_file() and (self.folder / "config.yaml").is_file()

    @cached_property
    def audit(self) -> PlannedAudit:
        """Audit of its resolved configuration."""
        return read_planned_audit(self.folder / "config.yaml", self.folder.name)

    @cached_property
    def verdict(self) -> Verdict:
        """Its verdict."""
        return read_verdict(self.folder / "verdict.json")

    @cached_property
    def values(self) -> AuditValues:
        """Its values per sample."""
        return values_below(self.root, self.audit)

    def label_error_rates(self) -> list[float] | None:
        """Shares of wrong labels of its data."""
        dataset = self.audit.dataset
        generator = dataset.generator_manifest
        return resolve_label_error_rates(
            dataset.settings.label_error_rate,
            self.root / name_of(dataset.manifest),
            self.root / name_of(generator) if isinstance(generator, str) else None,
        )

    def side(self) -> Side:
        """Its title, verdict and the digest of its bundle's statement, which the page shows."""
        statement = self.root / STATEMENT
        digest = sha256_of_file(statement) if statement.is_file() else None
        return Side(self.audit.title, self.verdict, digest)


def compare(options: argparse.Namespace) -> int:
    """Run the command.

    Parameters
    ----------
    options : Namespace
        earlier, later, calibration, csv and page.

    Returns
    -------
    int
        1 where something is worse, else 0.

    Raises
    ------
    InputError
        For audits that cannot be compared.
    """
    earlier, later = ComparedAudit.named(options.earlier), ComparedAudit.named(options.later)
    changes = audit_changes(earlier.folder, later.folder, calibration=options.calibration)
    if options.csv:
        write_text(options.csv, csv_text(changes))

    for row in changes[changes["verdict"].isin([BETTER, WORSE])].itertuples():
        statistic = printable(f"{row.threat}/{row.model}, {row.measure}, {row.statistic}")
        # With the intervals, since the value of open samples is that of their smallest values alone.
        before = f"{number(row.first)} ({interval(row.first_low, row.first_high)})"
        after = f"{number(row.second)} ({interval(row.second_low, row.second_high)})"
        print(f"{row.verdict:6}  {statistic}: {before}, then {after}")
    verdicts = changes["verdict"].fillna("without a verdict: no interval, or in one audit only")
    print(f"Statistics of models: {_counted(verdicts)}")
    _print_missing(changes, options.earlier, "first")
    _print_missing(changes, options.later, "second")

    classes = _classes(earlier, later, required=options.page is not None)
    for row in classes[classes["verdict"] != UNDECIDED].itertuples():
        name = printable(f"{row.threat}/{row.model}, {row.measure}, class {row.class_name}")
        values = f"{span(row.first, row.first_most)}, then {span(row.second, row.second_most)}"
        print(f"{row.verdict:6}  {name}: {values}, a change of {interval(row.low, row.high)}")
    if len(classes):
        print(f"Classes, sample by sample: {_counted(classes['verdict'])}")

    if options.page:
        if classes.empty:
            raise InputError(
                "no measure has the same settings in both audits; measure both with the same, and compare then"
            )
        models = same_models(later.values.included, earlier.values.included)
        page = render_comparison(
            earlier.side(),
            later.side(),
            classes=classes,
            statistics=changes,
            models={model.label: earlier_model.label for model, earlier_model in models.items()},
            measures=later.audit.measures,
            confidence=later.audit.run.settings.intervals.confidence,
        )
        write_text(options.page, page)

    reached = {*changes["verdict"].dropna(), *classes["verdict"]}
    if not {BETTER, WORSE, UNDECIDED} & reached:
        raise InputError("no statistic of the two audits can be compared; measure both with the same settings")
    return 1 if WORSE in reached else 0


# ---- classes ----


def _classes(earlier: ComparedAudit, later: ComparedAudit, *, required: bool) -> pd.DataFrame:
    # Changes of classes by paired samples; none where the values of one of the audits are not there.
    for compared in (earlier, later):
        if not compared.has_values:
            message = f"{printable(compared.folder)}: values per sample are not beside it, so classes"
            if required:
                raise InputError(f"{message} cannot be compared; {REMEDY}")
            print(f"{message} were not compared; {REMEDY}")
            return pd.DataFrame(columns=COLUMNS)

    same_measures = []
    for name, measure in later.audit.measures.items():
        before = earlier.audit.measures.get(name)
        if before and not different_settings(before.entry(), measure.entry(), irrelevant=IRRELEVANT):
            same_measures.append(name)
    manifest = DatasetManifest.read(later.root / name_of(later.audit.dataset.manifest))
    return class_changes(
        earlier.values,
        later.values,
        manifest.classes,
        pairs=same_models(later.values.included, earlier.values.included),
        measures=same_measures,
        intervals=later.audit.run.settings.intervals,
        label_error_rates=later.label_error_rates(),
    )


# ---- words ----


def _print_missing(changes: pd.DataFrame, audit: str, column: str) -> None:
    # Models that one of the audits lacks: no statistic of theirs has a value in the column of that audit.
    is_missing = changes[column].isna().groupby([changes["threat"], changes["model"]]).all()
    if is_missing.any():
        names = [printable("/".join(name)) for name in is_missing[is_missing].index]
        print(f"Not in {printable(audit)}: {', '.join(names)}")


def _counted(verdicts: pd.Series) -> str:
    # How often each verdict was reached.
    counts = [f"{count} {verdict}" for verdict, count in verdicts.value_counts().items()]
    return "; ".join(counts)
