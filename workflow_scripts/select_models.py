"""Which models of an audit take part: all whose logits passed the gate."""

from gfscore.audit.checks import REMEDY
from gfscore.audit.measured import label_of
from gfscore.core.errors import InputError
from gfscore.core.files import read_json, write_json
from gfscore.workflow.jobs import logged_job


def select_models(paths_to_checks, path_to_selection, *, models):
    """Write which of `models` are included and which are excluded, with the reason that their check gives.

    Of those included, `warned` says what their checks warn of, and `guessing` which may be guessing.

    A check belongs to a model with logits; models that bring values per sample have none and are included.
    """
    checks = {label_of(check): check for check in map(read_json, paths_to_checks)}
    refused = {label: check["words"] for label, check in checks.items() if not check["accepted"]}
    accepted = {label: check for label, check in checks.items() if check["accepted"]}
    selection = {
        "included": [label_of(model) for model in models if label_of(model) not in refused],
        "excluded": [{"model": label, "reason": words} for label, words in refused.items()],
        "warned": [
            {"model": label, "reason": words} for label, check in accepted.items() for words in check["warnings"]
        ],
        "guessing": [label for label, check in accepted.items() if not check["better_than_guessing"]],
    }
    if not selection["included"]:
        reasons = "; ".join(f"{label}: {words}" for label, words in refused.items())
        raise InputError(f"no model of the audit passed the gate on published accuracy ({reasons}). {REMEDY}")
    write_json(path_to_selection, selection)


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        select_models(snakemake.input.checks, snakemake.output.selection, models=snakemake.params.models)
