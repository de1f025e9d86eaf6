"""The verdict on an audit as an exit status, for pipelines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gfscore.audit.samples import ScoresFile
from gfscore.audit.verdicts.verdict import Verdict, read_verdict
from gfscore.core.digests import sha256_of_file
from gfscore.core.errors import InputError
from gfscore.core.files import read_json
from gfscore.core.identity import MODEL, label_of
from gfscore.core.names import shell_word, without_queries
from gfscore.networks.architecture_files import describe_network
from gfscore.tables.parquet_tables import read_attributes, read_identity
from gfscore.workflow import layout, plan
from gfscore.workflow.configuration import configured
from gfscore.workflow.replaced_files import fetched_models, reads_files
from gfscore.workflow.resolved_file import origins, resolved_configuration

SAMPLES = "results/samples/"
"""Where the values per sample of each measure are."""

DEMO = ("config.yaml",)
"""Files of the configuration that make audit runs by default."""


def current_verdict(audit: str) -> Verdict:
    """Verdict on an audit of results/.

    Raises InputError, naming the file, unless every file that it rests on is as it was when the audit was judged: the
    results, and the files of users behind them (networks, their code, images, attributes, generators, logits and
    values per sample). All are read and hashed. Also for rules that the audit's file states otherwise by now.
    """
    folder = Path(f"results/audits/{audit}")
    if not folder.is_dir():
        raise InputError(
            f"{folder}: no such audit in this folder; run make audit first, or go to where its results are"
        )
    verdict = read_verdict(folder / "verdict.json")
    verdict.require_current(folder / "verdict.json")
    config = resolved_configuration(folder / "config.yaml", audit)
    _require_stated(config, audit, folder / "config.yaml")
    _require_given_values(config, audit, verdict)
    _require_networks(config, audit, verdict)
    _require_images(config, audit)
    return verdict


def judge_anew(audit: str) -> str:
    """What to do where an audit of results/ is not current: the command that runs its own configuration again."""
    stated = origins(Path(f"results/audits/{audit}/config.yaml").read_text(encoding="utf-8"))
    files = DEMO if stated is None else tuple(stated[0])
    if files == DEMO:
        return "run make audit, to judge anew"
    if len(files) == 1:
        return f"run make audit CONFIG={shell_word(files[0])}, to judge anew"
    return f"run snakemake with --configfile {' '.join(map(shell_word, files))}, to judge anew"


# ---- what is asked ----


def _require_stated(config: Mapping[str, Any], audit: str, path: Path) -> None:
    stated = origins(path.read_text(encoding="utf-8"))
    if stated is None:
        raise InputError(f"{path}: of an earlier version; {judge_anew(audit)}")
    files, given = stated
    gone = [file for file in files if not Path(file).is_file()]
    if gone:
        print(f"{gone[0]}: not there any more, so what it states was not compared with the verdict")
        return
    where = files[-1]
    try:
        now = configured(files, {**given, "run": [audit]}, thorough=False).config
    except InputError as error:
        raise InputError(
            f"{error}\nSo the verdict on {audit} may rest on other rules; correct it, and {judge_anew(audit)}"
        ) from error
    before, after = dict(_values(_asked(config, audit))), dict(_values(_asked(now, audit)))
    for place in dict.fromkeys([*after, *before]):
        if before.get(place) != after.get(place):
            raise InputError(
                f"{where}: {place} is {_shown(after.get(place))} by now, but {audit} was judged with "
                f"{_shown(before.get(place))}; {judge_anew(audit)}, or restore the file"
            )


def _asked(config: Mapping[str, Any], audit: str) -> dict[str, Any]:
    # What the verdict depends on: no titles, and no measures that no rule judges.
    dataset = plan.dataset_of(config, audit)
    models = plan.models_of(config, audit)
    return {
        "gate": config["audits"][audit]["gate"],
        "dataset": without_queries({"name": dataset, **config["datasets"][dataset]}),
        "models": without_queries({label_of(model): plan.entry_of(config, **model) for model in models}),
        "measures": plan.judged_subject_of(config, audit)["measures"],
        "intervals": config["intervals"],
        "fp_lambda": config["disparity"]["fp_lambda"],
    }


def _values(data: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    # Every value below mappings and lists with its place, "gate > 0 > at_least".
    if isinstance(data, Mapping):
        items: Any = data.items()
    elif isinstance(data, list):
        items = enumerate(data)
    else:
        yield place, data
        return
    for key, value in items:
        yield from _values(value, f"{place} > {key}" if place else str(key))


def _shown(value: Any) -> str:
    return "not given" if value is None else repr(value)


# ---- files ----


def _require_given_values(config: Mapping[str, Any], audit: str, verdict: Verdict) -> None:
    scored = ScoresFile(f"results/scores/{audit}.parquet").identity["logits"]
    for model in plan.models_of(config, audit):
        entry = plan.entry_of(config, **model)
        if entry["source"] == "logits":
            digest = scored[label_of(model)]["checkpoint_sha256"] if label_of(model) in scored else None
        elif entry["source"] == "samples":
            digest = _digest_of_given_samples(verdict, model)
        else:
            continue
        if digest is not None:
            _require_digest(entry["path"], digest, audit)


def _digest_of_given_samples(verdict: Verdict, model: Mapping[str, str]) -> str | None:
    end = f"/{MODEL.format(**model)}.parquet"
    for file in verdict.made_from:
        if file.startswith(SAMPLES) and file.endswith(end):
            digest: str = read_identity(file)["checkpoint_sha256"]
            return digest
    return None


def _require_networks(config: Mapping[str, Any], audit: str, verdict: Verdict) -> None:
    for manifest, entry in fetched_models(config, [audit]).items():
        if manifest not in verdict.made_from:
            raise InputError(f"{manifest}: not among what {audit} was judged on; {judge_anew(audit)}")
        checkpoint = read_json(manifest)
        fetched_again = f"download it again by adding -R {manifest} to the command"
        again = fetched_again if plan.is_downloaded(entry) else judge_anew(audit)
        for file in checkpoint["files"]:
            _require_digest(file["path"], file["sha256"], audit, missing=f"put it back, or {again}")
        _require_code(checkpoint, audit)
    for model in plan.models_of(config, audit):
        judged = verdict.models.get(label_of(model))
        if judged and plan.entry_of(config, **model)["source"] in plan.FITTED:
            weights = str(layout.checkpoint_file(config, **model, extension="safetensors"))
            remedy = f"delete it and {judge_anew(audit)}"
            _require_digest(weights, str(judged.checkpoint_sha256), audit, remedy=remedy)


def _require_code(manifest: Mapping[str, Any], audit: str) -> None:
    recorded = {file["path"]: file["sha256"] for file in manifest.get("architecture_files", [])}
    if not recorded:
        return
    present = describe_network(manifest["architecture"]).get("architecture_files", [])
    now = {file["path"]: file["sha256"] for file in present}
    for path in sorted(recorded.keys() | now.keys()):
        if recorded.get(path) != now.get(path):
            raise InputError(f"{path}: not the code that {audit} was judged on; {judge_anew(audit)}")


def _require_images(config: Mapping[str, Any], audit: str) -> None:
    # Imported late: a gate on logits alone opens no image.
    from gfscore.images.manifests import open_again

    for task in plan.tasks_of(config, audit):
        manifest = f"results/datasets/{task}.json"
        if reads_files(read_json(manifest)):
            _, changed = open_again(manifest)
            if changed is not None:
                raise InputError(f"{changed}: not the images that {audit} was judged on; {judge_anew(audit)}")
    generator = layout.generator_manifest(config, audit)
    if generator:
        described = read_json(str(generator)).get("generator")
        if isinstance(described, dict) and "path" in described:
            _require_digest(described["path"], described["sha256"], audit)
    _require_attributes(config, audit)


def _require_attributes(config: Mapping[str, Any], audit: str) -> None:
    # Of rules about groups alone: their file has no digest in results/, so its values are read again.
    table = layout.gate_attributes(config, audit)
    if not table:
        return
    from gfscore.images.attribute_values import Dataset, attributes_of
    from gfscore.images.manifests import open_described

    def opened(name: str) -> Dataset:
        images, manifest = open_described(f"results/datasets/{name}.json")
        return Dataset(manifest, images)

    settings = config["datasets"][plan.dataset_of(config, audit)]["attributes"]
    reference = settings.get("fixed_on")
    frame, _, _ = attributes_of(settings, opened(plan.dataset_of(config, audit)), reference and opened(reference))
    if not frame.equals(read_attributes(str(table))[0][list(frame.columns)].astype(object)):
        where = settings.get("path") or table
        raise InputError(f"{where}: not the attributes that {audit} was judged on; {judge_anew(audit)}")


def _require_digest(
    path: str, digest: str, audit: str, *, remedy: str | None = None, missing: str | None = None
) -> None:
    try:
        same = sha256_of_file(path) == digest
    except OSError as error:
        raise InputError(
            f"{path}: {audit} was judged on it, and it cannot be read ({error.strerror}); "
            f"{missing or f'put it back, or {judge_anew(audit)}'}"
        ) from error
    if not same:
        raise InputError(f"{path}: not the file that {audit} was judged on; {remedy or judge_anew(audit)}")
