"""Stop a release pipeline when an audit fails, or is undecided under a rule that stops then."""

from gfscore.workflow.prepared import WITHOUT_TORCH, run_prepared

run_prepared(globals(), WITHOUT_TORCH)

from collections.abc import Mapping
from pathlib import Path

from gfscore.audit.verdicts.verdict import Verdict
from gfscore.core.errors import InputError
from gfscore.workflow.gate import current_verdict
from gfscore.workflow.jobs import logged_job


def gate(verdicts: Mapping[str, Verdict]) -> None:
    """Raise InputError, quoting the verdicts, by their paths, when one of them stops: see `stops`."""
    for path, verdict in verdicts.items():
        print(f"{path}: {verdict.sentence}")
    stopped = [f"{path}: {verdict.sentence}" for path, verdict in verdicts.items() if verdict.stops]
    if stopped:
        raise InputError("the gate stays closed\n" + "\n".join(stopped))


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        gate({path: current_verdict(Path(path).parent.name) for path in snakemake.input.verdicts})
