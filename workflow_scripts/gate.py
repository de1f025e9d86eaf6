"""Stop a release pipeline when an audit fails, or is undecided under a rule that stops then."""

from gfscore.audit.verdicts.evidence import require_current
from gfscore.core.errors import InputError
from gfscore.core.files import read_json
from gfscore.workflow.jobs import logged_job


def gate(paths_to_verdicts):
    """Raise InputError, quoting the verdicts, when one of them stops: see `stops` in verdict.json.

    So too for a verdict that rests on other files than there are now.
    """
    verdicts = {path: read_json(path) for path in paths_to_verdicts}
    for path, verdict in verdicts.items():
        require_current(verdict, source=path)
    for path, verdict in verdicts.items():
        print(f"{path}: {verdict['sentence']}")
    stopped = [f"{path}: {verdict['sentence']}" for path, verdict in verdicts.items() if verdict["stops"]]
    if stopped:
        raise InputError("the gate stays closed\n" + "\n".join(stopped))


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        gate(snakemake.input.verdicts)
