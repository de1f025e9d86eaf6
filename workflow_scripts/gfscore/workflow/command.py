"""The command gfscore: audits of own files, remedies, verdicts as an exit status, audits compared, and bundles."""

import argparse
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from gfscore import VERSION
from gfscore.core.errors import InputError
from gfscore.core.names import harmless, printable, shell_word
from gfscore.workflow.adjusting import command as adjusting
from gfscore.workflow.bundling import PARTS
from gfscore.workflow.new_audit import command as new_audit
from gfscore.workflow.running import INTERRUPTED

STATES = {"PASS": 0, "FAIL": 1, "INCONCLUSIVE": 2}
"""Exit status of the gate by verdict."""

REFUSED = 1
"""Exit status of verify for an inconsistent folder."""

ERROR = 3
"""Exit status of every command that could not do what it is for."""

BUNDLES = Path("results/bundles")

GATE = """\
Stop a pipeline unless an audit in results/ passes. Every file that the verdict rests on is read and hashed first.

exit status:
  0  PASS; or INCONCLUSIVE where the rules that are undecided say on_inconclusive: pass
  1  FAIL
  2  INCONCLUSIVE
  3  no verdict, or one that rests on other files than there are now

examples:
  gfscore gate digits
  gfscore gate digits --junit gate.xml
"""

COMPARE = """\
Say what changed between two audits of the same data, of two releases of a model, say. For each model, measure and
class: better or worse where the interval of the change, sample by sample, excludes 0. For each model, measure and
statistic: better or worse where the intervals of the two audits are disjoint. EARLIER and LATER are names of audits in
results/, folders that gfscore bundle made, or results/audits/NAME of another place. Two audits of one model each are
compared whatever the models are called; of more, those that have the same name.

exit status:
  0  nothing is worse, as far as the intervals tell
  1  something is worse
  3  audits that cannot be compared

examples:
  gfscore compare digits digits-retrained
  gfscore compare release-1 release-2 --page compare.html
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
from the values per sample; scores, from logits where they are there; certificates and counterexamples, where the bundle
was made --with proofs. Without a signature that you trust this shows consistency, not origin: whoever can compute can
make a consistent folder.

exit status:
  0  consistent
  1  refused
  3  no such folder

examples:
  gfscore verify digits-2026-11
  gfscore verify digits-2026-11 --require logits --allowed-signers signers --identity audits@example.org
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    arguments : sequence of str or None
        Arguments; None for the arguments of the process.

    Returns
    -------
    int
        Exit status.
    """
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except (InputError, MemoryError, OSError) as error:
        return _error(_in_words(error))
    except KeyboardInterrupt:
        _error("interrupted; what is finished stays, and the same command goes on")
        return INTERRUPTED
    except Exception:
        # Python's own status, 1, would be taken for a verdict.
        traceback.print_exc()
        return ERROR


def _in_words(error: Exception) -> str:
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, MemoryError):
        return "not enough memory; use a machine with more"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'the disk'}: {error.strerror}; mend that, or name another folder"

    from gfscore.networks.outputs import first_line

    if isinstance(error, OSError):
        # Errors of libraries, such as gzip.BadGzipFile, which name neither a file nor an error of the system.
        return f"a file cannot be read or written: {first_line(error)}"
    return f"{type(error).__name__}: {first_line(error)}"


def _error(message: str) -> int:
    print(f"error: {harmless(message)}", file=sys.stderr)
    return ERROR


# ---- options ----


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
    audit = commands.add_parser(
        "audit", help="models and data of your own, audited", description=new_audit.DESCRIPTION, formatter_class=form
    )
    new_audit.add_options(audit)

    adjust = commands.add_parser(
        "adjust", help="a network with a remedy for weak classes", description=adjusting.DESCRIPTION,
        formatter_class=form,
    )  # fmt: skip
    adjusting.add_options(adjust)

    gate = commands.add_parser("gate", help="the verdict as an exit status", description=GATE, formatter_class=form)
    gate.set_defaults(run=_gate)
    gate.add_argument("audit", metavar="AUDIT")
    gate.add_argument("--junit", type=Path, metavar="FILE", help="the verdict as JUnit XML too, a test of each rule")

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
    compare.add_argument("--csv", type=Path, metavar="FILE", help="every statistic, with its bounds, as CSV")
    compare.add_argument("--page", type=Path, metavar="FILE", help="classes, statistics and verdicts on one page")

    bundle = commands.add_parser(
        "bundle", help="an audit as one folder, to hand on", description=BUNDLE, formatter_class=form
    )
    bundle.set_defaults(run=_bundle)
    bundle.add_argument("audit", metavar="AUDIT")
    bundle.add_argument("--to", type=Path, metavar="FOLDER", help="new folder; by default results/bundles/AUDIT")
    parts = "; ".join(f"{part}: {description}" for part, description in PARTS.items())
    bundle.add_argument("--with", dest="parts", nargs="+", choices=PARTS, default=[], metavar="PART", help=parts)
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


# ---- commands; what they compute with is imported late, so that the help is there at once ----


def _gate(options: argparse.Namespace) -> int:
    from gfscore.show.exports.junit import write_junit, write_junit_error
    from gfscore.workflow.gate import current_verdict

    try:
        verdict = current_verdict(options.audit)
    except Exception as error:
        if options.junit:
            # Otherwise the report of an earlier run would be taken for this one's.
            write_junit_error(options.audit, _in_words(error), options.junit)
        raise
    if options.junit:
        write_junit(options.audit, verdict, options.junit)
    print(harmless(f"{options.audit}: {verdict.sentence}"))
    judged_by = verdict.software.get("version")
    if judged_by != VERSION:
        _report(f"judged by gfscore {judged_by}, this is {VERSION}: run make audit for a verdict of this version")
    return STATES[verdict.verdict] if verdict.stops else 0


def _compare(options: argparse.Namespace) -> int:
    from gfscore.workflow.comparing import compare

    return compare(options)


def _bundle(options: argparse.Namespace) -> int:
    from gfscore.workflow.bundling.bundles import write_bundle

    target = options.to or BUNDLES / options.audit
    for message in write_bundle(options.audit, target, parts=options.parts, key=options.sign, report=_report):
        print(message)
    verify = f".venv/bin/gfscore verify {shell_word(str(target))}"
    print(f"{printable(target)}: written and checked; check it again with: {verify}")
    return 0


def _report(words: str) -> None:
    # Not among the lines that pipelines read.
    print(harmless(words), file=sys.stderr)


def _verify(options: argparse.Namespace) -> int:
    from gfscore.core.numbers import counted
    from gfscore.workflow.bundling.bundles import verify_bundle

    if (options.allowed_signers is None) != (options.identity is None):
        raise InputError("--allowed-signers and --identity belong together; give both")
    verification = verify_bundle(
        options.folder,
        required=options.require,
        allowed_signers=options.allowed_signers,
        identity=options.identity,
        report=_report,
    )
    for message in verification.checked.values():
        print(f"checked      {printable(message)}")
    for message in verification.unchecked.values():
        print(f"not checked  {printable(message)}")
    for message in verification.faults:
        print(f"REFUSED      {printable(message)}")
    if verification.faults:
        print(f"Refused: {counted(len(verification.faults), 'fault')}.")
        return REFUSED
    print(f"Consistent. The verdict in it: {printable(verification.sentence)}")
    if "signature" not in verification.checked:
        print("Nobody whom you named has signed it: this shows consistency, not origin.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
