"""The command gfscore: an audit of own files, its verdict as an exit status, two audits compared, and bundles."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from gfscore import VERSION
from gfscore.core.errors import InputError
from gfscore.core.names import harmless, printable
from gfscore.workflow.bundling.parts import PARTS
from gfscore.workflow.new_audit import command as new_audit

STATES = {"PASS": 0, "FAIL": 1, "INCONCLUSIVE": 2}
REFUSED, WORSE, ERROR = 1, 1, 3
AUDITS = Path("results/audits")

GATE = """\
Stop a pipeline unless an audit in results/ passes. Every file that the verdict rests on is read and hashed first.

exit status:
  0  PASS; or INCONCLUSIVE where the rules that are undecided say on_inconclusive: pass
  1  FAIL
  2  INCONCLUSIVE
  3  no verdict, or one that rests on other files than there are now

examples:
  gfscore gate digits
  gfscore gate digits || exit 1
"""

COMPARE = """\
Say what changed between two audits of the same data, of two releases of a model, say: for each model, measure and
statistic, better or worse where the confidence intervals are disjoint. EARLIER and LATER are names of audits in
results/, or folders of audits: results/audits/NAME of another place, audits/NAME of a bundle. Two audits of one model
each are compared whatever the models are called; of more, those that have the same name.

exit status:
  0  nothing is worse, as far as the intervals tell
  1  something is worse
  3  audits that cannot be compared

examples:
  gfscore compare digits digits-retrained
  gfscore compare ../release-1/results/audits/digits digits --csv changes.csv
"""

BUNDLE = """\
Put an audit in results/ into a new folder: its tables, pages, verdict and configuration, the values per sample that it
rests on, and statement.json, which names every file by its SHA-256. The folder is checked before it appears.

exit status:
  0  the folder is there
  3  it is not

examples:
  gfscore bundle digits
  gfscore bundle digits --to digits-2026-11 --with logits networks --sign ~/.ssh/id_ed25519
"""

VERIFY = """\
Check a folder that gfscore bundle made, wherever it came from: digests of all files; verdict and tables, computed again
from the values per sample; scores, from logits where they are there. Without a signature that you trust this shows
consistency, not origin: whoever can compute can make a consistent folder.

exit status:
  0  consistent
  1  refused
  3  no such folder

examples:
  gfscore verify digits-2026-11
  gfscore verify digits-2026-11 --require logits --allowed-signers signers --identity audits@example.org
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with these arguments, or those of the process; returns the exit status."""
    given = _parser().parse_args(arguments)
    try:
        return int(given.run(given))
    except InputError as error:
        return _error(str(error))
    except MemoryError:
        return _error("not enough memory; use a machine with more")
    except OSError as error:
        return _error(f"{error.filename or 'the disk'}: {error.strerror}; mend that, or name another folder")
    except Exception:
        # Python's own status, 1, would be taken for a verdict.
        traceback.print_exc()
        return ERROR


def _error(words):
    print(f"error: {harmless(words)}", file=sys.stderr)
    return ERROR


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        # 2 would be taken for a verdict.
        self.print_usage(sys.stderr)
        sys.exit(_error(message))


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="gfscore", description=__doc__)
    parser.add_argument("--version", action="version", version=VERSION)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    form = argparse.RawDescriptionHelpFormatter
    new = commands.add_parser(
        "audit", help="models and data of your own, audited", description=new_audit.DESCRIPTION, formatter_class=form
    )
    new_audit.add_options(new)
    gate = commands.add_parser("gate", help="the verdict as an exit status", description=GATE, formatter_class=form)
    gate.set_defaults(run=_gate)
    gate.add_argument("audit", metavar="AUDIT")
    compare = commands.add_parser(
        "compare", help="what changed between two audits", description=COMPARE, formatter_class=form
    )
    compare.set_defaults(run=_compare)
    compare.add_argument("earlier", metavar="EARLIER")
    compare.add_argument("later", metavar="LATER")
    compare.add_argument(
        "--calibration", default="none", metavar="OBJECTIVE",
        help="scores at the temperature that this objective chose in both audits; by default at T = 1",
    )  # fmt: skip
    compare.add_argument("--csv", type=Path, metavar="FILE", help="every row, with its bounds, as CSV")
    bundle = commands.add_parser(
        "bundle", help="an audit as one folder, to hand on", description=BUNDLE, formatter_class=form
    )
    bundle.set_defaults(run=_bundle)
    bundle.add_argument("audit", metavar="AUDIT")
    bundle.add_argument("--to", type=Path, metavar="FOLDER", help="new folder; by default results/bundles/AUDIT")
    whats = "; ".join(f"{part}: {words}" for part, words in PARTS.items())
    bundle.add_argument("--with", dest="parts", nargs="+", choices=PARTS, default=[], metavar="PART", help=whats)
    bundle.add_argument("--sign", type=Path, metavar="KEY", help="private key of SSH that signs statement.json")
    verify = commands.add_parser(
        "verify", help="check a folder that was handed on", description=VERIFY, formatter_class=form
    )
    verify.set_defaults(run=_verify)
    verify.add_argument("folder", type=Path, metavar="FOLDER")
    verify.add_argument(
        "--require", nargs="+", choices=[*PARTS, "signature"], default=[], metavar="PART",
        help=f"refuse a folder in which one of these could not be checked: {', '.join(PARTS)}, signature",
    )  # fmt: skip
    verify.add_argument(
        "--allowed-signers", type=Path, metavar="FILE", help="whose keys you trust, as ssh-keygen takes"
    )
    verify.add_argument("--identity", metavar="NAME", help="who of these must have signed")
    return parser


def _gate(given):
    from gfscore.workflow.gate import current_verdict

    verdict = current_verdict(given.audit)
    print(harmless(f"{given.audit}: {verdict.sentence}"))
    return STATES[verdict.verdict] if verdict.stops else 0


def _compare(given):
    from gfscore.audit.audit_changes import audit_changes
    from gfscore.core.files import write_text
    from gfscore.core.numbers import number
    from gfscore.tables.csv_files import csv_text

    earlier, later = (Path(a) if os.sep in a else AUDITS / a for a in (given.earlier, given.later))
    changes = audit_changes(earlier, later, calibration=given.calibration)
    if given.csv:
        write_text(given.csv, csv_text(changes))
    for row in changes[changes["verdict"].isin(["better", "worse"])].itertuples():
        what = f"{row.threat}/{row.model}, {row.measure}, {row.statistic}"
        print(f"{row.verdict:6}  {printable(what)}: {number(row.first)}, then {number(row.second)}")
    counts = changes["verdict"].fillna("without a verdict: no interval, or in one audit only").value_counts()
    print("; ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    for audit, missing in ((given.earlier, changes["first"].isna()), (given.later, changes["second"].isna())):
        lacking = missing.groupby([changes["threat"], changes["model"]]).all()
        if lacking.any():
            names = ", ".join(printable("/".join(name)) for name in lacking[lacking].index)
            print(f"Not in {printable(audit)}: {names}")
    if not {"better", "worse", "undecided"} & set(counts.index):
        raise InputError("no statistic of the two audits can be compared; measure both with the same settings")
    return WORSE if "worse" in counts else 0


def _bundle(given):
    from gfscore.workflow.bundling.writing import write_bundle

    target = given.to or Path("results/bundles") / given.audit
    for words in write_bundle(given.audit, target, parts=given.parts, key=given.sign):
        print(words)
    print(f"{printable(target)}: written and checked; check it again with: gfscore verify {printable(target)}")
    return 0


def _verify(given):
    from gfscore.core.numbers import counted
    from gfscore.workflow.bundling.verifying import verify_bundle

    if (given.allowed_signers is None) != (given.identity is None):
        raise InputError("--allowed-signers and --identity belong together; give both")
    found = verify_bundle(
        given.folder, required=given.require, allowed_signers=given.allowed_signers, identity=given.identity
    )
    for mark, lines in (
        ("checked    ", found.checked.values()),
        ("not checked", found.unchecked.values()),
        ("REFUSED    ", found.faults),
    ):
        for line in lines:
            print(f"{mark}  {printable(line)}")
    if found.faults:
        print(f"Refused: {counted(len(found.faults), 'fault')}.")
        return REFUSED
    print(f"Consistent. The verdict in it: {printable(found.sentence)}")
    if "signature" not in found.checked:
        print("Nobody whom you named has signed it: this shows consistency, not origin.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
