"""gfscore adjust: from files to a network with offsets of its classes. Runs an audit with a remedy, and writes it."""

from __future__ import annotations

import argparse
import copy
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from gfscore.core.digests import sha256_of_file
from gfscore.core.errors import InputError
from gfscore.core.files import LOGIT_ENDINGS, read_json, require_free, write_text
from gfscore.core.names import printable
from gfscore.core.numbers import interval, number
from gfscore.networks.offset_settings import Objective
from gfscore.networks.sources.transformers import CONFIGURATION, WEIGHT_FILES, WEIGHTS
from gfscore.workflow.adjusting.remedy_entry import REMEDY, with_remedy
from gfscore.workflow.config_files import read_file
from gfscore.workflow.new_audit import command as new_audit
from gfscore.workflow.new_audit.audit_file import attacked_audits
from gfscore.workflow.remedies import RemedySettings
from gfscore.workflow.running import run_workflow

if TYPE_CHECKING:
    import pandas as pd

    from gfscore.networks.adjusted_files.writing import AdjustedModel

RESULTS = Path("results/adjusted")

OBJECTIVES = get_args(Objective)

STRENGTHS = RemedySettings().strengths
"""Shares of the offsets that are measured; the one that is written is added."""

MOST_LOSS = RemedySettings().most_loss
"""Robust accuracy, mean over the classes, that offsets may cost."""

NO_REMEDY = 1
"""Exit status where no offsets serve better than none."""

SHOWN_IMAGES = 16
"""Images on which a written network is compared with the original."""

DESCRIPTION = """\
Look for a remedy, and write the network with it: one number per class added to the logits, chosen under attack on half
of the images of each class, judged on the other half under attacks that see it. Weak classes gain, strong ones pay;
features become no more robust. Adds `remedy` to audits/NAME.yaml, which it writes as gfscore audit does, and runs it;
results/audits/NAME/report.html shows what was gained. The network is written in the format that it came in.

MODEL and DATA as for gfscore audit; the model must have gradients. To logits, which cannot be attacked, --offsets adds
those that were chosen on their network.

exit status:
  0  the network is written
  1  no offsets serve better than none, and nothing is written
  3  refused, or a step failed

examples:
  gfscore adjust net.onnx images/
  gfscore adjust weights.pth images.npz --architecture my_networks.py:small --objective floor --floor 0.3
  gfscore adjust net.onnx images/ --strength 0.5 --to net-fair.onnx
  gfscore adjust logits.npz --offsets results/offsets/net-choosing/Linf/net/worst_class-0123abcd.json
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.set_defaults(run=run)
    new_audit.add_request_options(parser)
    parser.add_argument(
        "--objective", choices=OBJECTIVES, default=OBJECTIVES[0],
        help="what the offsets serve: the worst class; the smallest difference between best and worst class; or the "
        "mean, where every class reaches --floor",
    )  # fmt: skip
    parser.add_argument("--floor", type=float, metavar="F", help="robust accuracy that every class must reach")
    parser.add_argument(
        "--most-loss", type=float, default=MOST_LOSS, metavar="L",
        help=f"what the mean may lose for the worst class, or for a smaller difference; by default {MOST_LOSS}",
    )  # fmt: skip
    parser.add_argument(
        "--strength", type=float, default=1.0, metavar="S", help="share of the offsets that is added, up to 1; half "
        "of them costs the mean less than half",
    )  # fmt: skip
    parser.add_argument("--to", type=Path, metavar="PATH", help="where the network goes; by default results/adjusted/")
    parser.add_argument(
        "--offsets", type=Path, metavar="FILE", help="of logits: the offsets, which an earlier run chose"
    )
    parser.add_argument("--force", action="store_true", help="replace what stands there")
    new_audit.add_running_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Carry the command out; returns the exit status."""
    remedy = remedy_of(arguments)
    if arguments.offsets is not None:
        return _adjust_logits(arguments)

    path = new_audit.written_audit(arguments, force=False)
    audit = path.stem
    sections = read_file(path)
    targets = targets_of(sections, audit, arguments.to)
    for target in targets.values():
        require_free(target, overwrite=arguments.force)
    if sections["audits"][audit].get(REMEDY) != remedy:
        write_text(path, with_remedy(path.read_text(encoding="utf-8"), audit, remedy, where=path))
        print(f"{printable(path)}: {REMEDY} written")
    if arguments.dry_run:
        print(f"Run it with: {shlex.join(['make', 'audit', f'CONFIG={path}'])}")
        return 0

    status = run_workflow(["--configfile", str(path)], cores=arguments.cores)
    if status:
        return status

    written = 0
    for remedied in remedied_models(audit, strength=arguments.strength):
        remedied.print_changes()
        if remedied.is_empty:
            print("  no offsets serve better than none; nothing is written")
            continue
        model = remedied.write(targets[remedied.label], overwrite=arguments.force)
        written += 1
        print(f"  network         {printable(model.path)}, sha256 {model.sha256}")
        print(f"                  the offsets are {printable(model.method)}")
        if model.code:
            print(f"                  its architecture is in {printable(model.code)}")
        print(f"  audit it        {' '.join(audit_command(model.path, model.code, arguments))}")
        print("                  best on images that no offsets were chosen on")
    return 0 if written else NO_REMEDY


def remedy_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """The setting `remedy` that the options ask for; InputError for options that do not fit together."""
    floor, strength = arguments.floor, arguments.strength
    if (arguments.objective == "floor") != (floor is not None):
        raise InputError("--objective floor and --floor belong together; give both, or neither")
    if floor is not None and not 0 < floor < 1:
        raise InputError(f"--floor {floor:g}: give the robust accuracy that every class must reach, between 0 and 1")
    if not 0 < strength <= 1:
        raise InputError(f"--strength {strength:g}: give a share of the offsets, above 0 and up to 1")
    if not 0 < arguments.most_loss <= 1:
        raise InputError(
            f"--most-loss {arguments.most_loss:g}: give the robust accuracy that the mean may lose, above 0"
        )
    remedy: dict[str, Any] = {"objective": arguments.objective}
    if floor is None:
        remedy["most_loss"] = arguments.most_loss
    else:
        remedy["floor"] = floor
    if strength not in STRENGTHS:
        remedy["strengths"] = sorted({*STRENGTHS, strength})
    return remedy


# The audit


def targets_of(sections: Mapping[str, Any], audit: str, to: Path | None) -> dict[str, Path]:
    """Main file to write for each model of an audit, by its label threat/model.

    Parameters
    ----------
    sections : mapping
        Configuration of the audit.
    audit : str
        Its name.
    to : Path or None
        File or folder that the user names; None for RESULTS.

    Raises
    ------
    InputError
        For an audit without attacks, and for a place that does not fit the models.
    """
    if audit not in attacked_audits(sections):
        raise InputError(
            f"audits/{audit}.yaml: has no attack, under which offsets could be chosen; name a model with gradients, or "
            "give it more --minutes; to logits, add those of their network by --offsets"
        )
    dataset = sections["audits"][audit]["dataset"]
    targets = {}
    for threat, models in sections["models"][dataset].items():
        for model, entry in models.items():
            targets[f"{threat}/{model}"] = _target_of(model, Path(entry["path"]), audit, to)
    if to is not None and len(targets) > 1:
        raise InputError(f"--to {to}: names one place for {len(targets)} models; adjust them one by one")
    return targets


def _target_of(model: str, path: Path, audit: str, to: Path | None) -> Path:
    in_folder = path.name in WEIGHT_FILES and path.with_name(CONFIGURATION).is_file()
    if in_folder:
        return (to or RESULTS / audit / f"{model}-adjusted") / WEIGHTS
    if to is None:
        return RESULTS / audit / f"{model}-adjusted{path.suffix}"
    if to.suffix != path.suffix or to.is_dir():
        raise InputError(f"--to {to}: {path.name} is written as a file that ends in {path.suffix}; name one")
    return to


# The result


@dataclass(frozen=True)
class RemediedModel:
    """A model of a finished audit with its remedy.

    Attributes
    ----------
    label : str
        Name within the audit, threat/model.
    manifest, dataset : str
        Paths of the manifests of the model and of the audit's dataset.
    strength : float
        Share of the offsets that is written.
    changes : Series
        Row of the table remedy_models, on the whole offsets.
    classes : DataFrame
        Rows of the table remedy_classes, on the whole offsets, in label order.
    curve : DataFrame
        Rows of the table remedy_curve, by strength.
    """

    label: str
    manifest: str
    dataset: str
    strength: float
    changes: pd.Series
    classes: pd.DataFrame
    curve: pd.DataFrame

    @property
    def is_empty(self) -> bool:
        """Whether no class has an offset."""
        return bool((self.classes["offset"] == 0).all())

    def print_changes(self) -> None:
        """Print what the remedy changed on the judging half, in a few lines."""
        changes = self.changes
        print(f"\n{printable(self.label)}, {changes['measure']}, {changes['n']:,} samples that chose nothing")
        if self.strength == 1:
            self._print_whole()
        else:
            self._print_share()
            # Only the whole offsets are compared with none sample by sample.
            print("  whether the worst class gains is judged of strength 1 alone:")
        if not changes["helps"]:
            print("  no gain of the worst class is shown: its lower bound is not above 0")
        elif self.strength != 1:
            print(f"  it gains, surely by {interval(changes['worst_low'], changes['worst_high'])}")

    def _print_whole(self) -> None:
        changes = self.changes
        for key, words in {"worst": "worst class", "mean": "mean", "clean": "clean", "rdi": "best less worst"}.items():
            before, after, low, high = (changes[f"{key}_{end}"] for end in ("before", "after", "low", "high"))
            print(f"  {words:16}{number(before)} to {number(after)}, surely by {interval(low, high)}")
        moved = self.classes.sort_values("change", ascending=False)
        gaining = []
        losing = []
        for row in moved.itertuples():
            change = f"{row.class_name} {row.change:+.2f}"
            if row.low > 0:
                gaining.append(change)
            if row.high < 0:
                losing.append(change)
        print(f"  surely gain     {printable(', '.join(gaining) or 'none')}")
        print(f"  surely pay      {printable(', '.join(losing) or 'none')}")
        # NaN where the gate has no rule about this measure.
        if isinstance(changes["verdict_before"], str):
            print(f"  verdict         {changes['verdict_before']}, then {changes['verdict_after']}")

    def _print_share(self) -> None:
        points = self.curve.set_index("strength")
        for strength in (0, self.strength, 1):
            point = points.loc[strength]
            values = []
            for key, words in {"worst": "worst class", "mean": "mean"}.items():
                bounds = interval(point[f"{key}_low"], point[f"{key}_high"])
                values.append(f"{words} {number(point[key])} ({bounds})")
            print(f"  strength {strength:<7g}{', '.join(values)}")

    def write(self, target: Path, *, overwrite: bool) -> AdjustedModel:
        """Write the network; InputError as gfscore.networks.adjusted_files.writing.write_adjusted."""
        import numpy as np

        from gfscore.images.manifests import open_described
        from gfscore.networks.adjusted_files.writing import write_adjusted
        from gfscore.networks.batch_invariance import spread_over

        images, _ = open_described(self.dataset)
        shown = images.select(spread_over(len(images), SHOWN_IMAGES))
        return write_adjusted(
            read_json(self.manifest),
            self.strength * self.classes["offset"].to_numpy(np.float64),
            target,
            images=np.concatenate(list(shown.batches(SHOWN_IMAGES))),
            overwrite=overwrite,
        )


def remedied_models(audit: str, *, strength: float) -> list[RemediedModel]:
    """Models of a finished audit that have a remedy, in its order, with the share of the offsets to write."""
    from gfscore.tables.parquet_tables import read_table
    from gfscore.workflow.catalogue import CATALOGUE
    from gfscore.workflow.resolved_file import read_planned_audit

    folder = Path("results/audits", audit)
    planned = read_planned_audit(folder / "config.yaml", audit)
    models = {model.label: model for model in planned.models}
    tables = {}
    for name in ("remedy_models", "remedy_classes", "remedy_curve"):
        table = read_table(folder / f"{name}.parquet", CATALOGUE[name])
        tables[name] = table.assign(label=table["threat"] + "/" + table["model"])

    remedied = []
    for _, changes in tables["remedy_models"].iterrows():
        label = changes["label"]
        classes, curve = (tables[name][tables[name]["label"] == label] for name in ("remedy_classes", "remedy_curve"))
        remedied.append(
            RemediedModel(
                label=label,
                manifest=models[label].manifest,
                dataset=planned.dataset.manifest,
                strength=strength,
                changes=changes,
                classes=classes.sort_values("class_index"),
                curve=curve.sort_values("strength"),
            )
        )
    return remedied


def audit_command(path: Path, code: Path | None, arguments: argparse.Namespace) -> Sequence[str]:
    """Words of the command that audits a written network on the same data, for a shell."""
    options = copy.copy(arguments)
    main_file = path.parent if path.name == WEIGHTS and code is None else path
    options.files = [str(main_file), arguments.files[-1]]
    options.name = None
    if code is not None:
        options.architecture = f"{code}:Adjusted"
    return new_audit.typed_command(options)


# Logits


def _adjust_logits(arguments: argparse.Namespace) -> int:
    import numpy as np

    from gfscore.networks.adjusted_files.logits import write_adjusted_logits
    from gfscore.tables.logit_files import format_of

    path = Path(arguments.files[0]) if arguments.files else Path()
    suffix = format_of(path)
    if suffix is None:
        raise InputError(
            f"--offsets {arguments.offsets}: is for files of logits ({', '.join(LOGIT_ENDINGS)}); leave it out, and "
            "offsets are chosen for the network"
        )
    # Offsets at strength 1, as the step choose_offsets wrote them.
    chosen = read_json(arguments.offsets)
    if not {"offsets", "classes"} <= chosen.keys():
        raise InputError(f"{arguments.offsets}: holds no offsets of classes; name a file of results/offsets/")

    target = arguments.to or RESULTS / f"{path.name.removesuffix(suffix)}-adjusted{suffix}"
    if not target.name.endswith(suffix):
        raise InputError(f"--to {target}: {path.name} is written as a file that ends in {suffix}; name one")

    write_adjusted_logits(
        path,
        arguments.strength * np.array(chosen["offsets"], dtype=np.float64),
        target,
        classes=list(chosen["classes"]),
        member=arguments.output,
        probabilities=arguments.probabilities,
        overwrite=arguments.force,
    )
    print(f"{printable(target)}: written, sha256 {sha256_of_file(target)}")
    return 0
