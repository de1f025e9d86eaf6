"""Whether a bundle is consistent, for who is handed it alone: what was checked, what could not be, what is wrong."""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from gfscore.core.errors import InputError
from gfscore.core.names import printable
from gfscore.networks.checkpoint_files import model_digest
from gfscore.tables.parquet_tables import read_identity, read_table
from gfscore.tables.table import DATASET
from gfscore.workflow.audit_check import check_audit
from gfscore.workflow.bundling.contents import (
    SIGNATURE,
    STATEMENT,
    Bundle,
    cost_files,
    files_of_audit,
    image_file,
    logit_files,
    network_files,
)
from gfscore.workflow.bundling.page import other_page, other_time_or_version, undrawable
from gfscore.workflow.bundling.recomputed import Recomputed
from gfscore.workflow.bundling.signatures import require_signed, signing_key
from gfscore.workflow.bundling.statement import read_statement, statement_of
from gfscore.workflow.plan import PlannedAudit, Run
from gfscore.workflow.resolved_file import resolved_configuration

SIGNED = "signature"


@dataclass
class Verification:
    """What a check of a bundle found, in sentences: `checked` and `unchecked` by part, and `faults`, each with a file.

    What is checked is without fault. `sentence` is the verdict of the audit, once it has been read.
    """

    checked: dict[str, str] = field(default_factory=dict)
    unchecked: dict[str, str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    sentence: str = ""

    def check(self, part: str, words: str, differences: Callable[[], Iterable[str] | None]) -> None:
        """Add what a check yields, or why it could not be made: whatever is wrong with a file is a fault of the bundle.

        MemoryError is none, and is raised.
        """
        before = len(self.faults)
        try:
            # Steps of the workflow print what a user of their log reads.
            with redirect_stdout(io.StringIO()):
                self.faults += differences() or ()
        except MemoryError:
            raise
        except InputError as error:
            self.faults.append(str(error))
        except Exception as error:
            self.faults.append(f"{part}: cannot be computed from these files ({type(error).__name__}: {error})")
        if len(self.faults) == before:
            self.checked[part] = words


def verify_bundle(
    folder: Path | str,
    *,
    required: Collection[str] = (),
    allowed_signers: Path | str | None = None,
    identity: str | None = None,
) -> Verification:
    """Check a folder that gfscore bundle made, wherever it came from: nothing outside of it is read.

    `required` are parts that must have been checked; with `allowed_signers`, a file in the form of ssh-keygen(1), the
    statement must be signed by `identity`. Raises InputError where there is no folder, or no file of allowed signers.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"{printable(folder)}: no such folder; name one that gfscore bundle made")
    found = Verification()
    try:
        bundle = Bundle.read(folder)
        statement = read_statement(bundle.path(STATEMENT))
    except InputError as error:
        found.faults.append(str(error))
        return _without_folder(found, folder)
    found.check("digests", "every file has the digest of the statement, none is missing, none was added",
                lambda: _changed(bundle, statement))  # fmt: skip
    _check_signature(found, bundle, allowed_signers, identity)
    if found.faults:
        found.unchecked["content"] = "the files are not those of the statement, so nothing was computed from them"
    else:
        _check_content(found, bundle, statement)
    for part in required:
        if part not in found.checked:
            found.faults.append(f"{part}: required, but {found.unchecked.get(part, 'could not be checked')}")
    return _without_folder(found, folder)


def _without_folder(found: Verification, folder: Path) -> Verification:
    found.faults = list(dict.fromkeys(printable(fault.replace(f"{folder}/", "")) for fault in found.faults))
    return found


def _changed(bundle: Bundle, statement: Any) -> Iterable[str]:
    subject = statement["subject"]
    stated = {item["name"]: item["digest"]["sha256"] for item in subject}
    if len(stated) < len(subject):
        yield f"{STATEMENT}: names a file twice"
    known = {name: digest for name, digest in bundle.digests.items() if name not in (STATEMENT, SIGNATURE)}
    files = {name: digest for name, digest in stated.items() if not name.startswith("model:")}
    words = {name: "edited or damaged" for name in known.keys() & files if known[name] != files[name]}
    words |= dict.fromkeys(files.keys() - known, "missing") | dict.fromkeys(known.keys() - files, "added")
    yield from (f"{name}: {word}, as {STATEMENT} says" for name, word in sorted(words.items()))


def _check_signature(
    found: Verification, bundle: Bundle, allowed_signers: Path | str | None, identity: str | None
) -> None:
    statement = bundle.path(STATEMENT)
    if allowed_signers is not None and not Path(allowed_signers).is_file():
        raise InputError(f"{allowed_signers}: no such file; give one in the form of ALLOWED SIGNERS of ssh-keygen(1)")
    if SIGNATURE not in bundle.digests:
        words = "the statement is not signed: consistency, not origin, is shown"
        found.unchecked[SIGNED] = words
        if allowed_signers is not None:
            found.faults.append(f"{SIGNATURE}: missing, so {words}")
        return
    signature = bundle.path(SIGNATURE)
    if allowed_signers is None:
        try:
            key = signing_key(statement, signature)
            words = f"whose key signed the statement, only --allowed-signers and --identity tell ({printable(key)})"
            found.unchecked[SIGNED] = words
        except InputError as error:
            found.faults.append(str(error))
        return
    whose = identity or ""
    signed = partial(require_signed, statement, signature, allowed_signers=allowed_signers, identity=whose)
    found.check(SIGNED, f"the statement is signed by {identity}", signed)


def _check_content(found: Verification, bundle: Bundle, statement: Any) -> None:
    config: dict[str, Any] = {}
    read = partial(resolved_configuration, bundle.path(bundle.of_audit("config.yaml")), bundle.audit)
    found.check("configuration", "the resolved configuration is whole", lambda: config.update(read()))
    if not config:
        return
    audit = Run(config).audits[bundle.audit]
    recomputed = Recomputed(bundle, audit)
    # Proofs and counterexamples, once bundles hold any, are checked here as well: one line and one method for each.
    found.check("files", "the bundle holds what its configuration asks for", lambda: _other_files(bundle, audit))
    found.check("formats", "tables, CSV, pages and JSON files are as they were written, and of one audit",
                lambda: check_audit(bundle.folder / "audits" / bundle.audit, figures=False).faults)  # fmt: skip
    found.check("dataset", "number of samples, classes and labels agree in its manifest and table", recomputed.dataset)
    found.check("labels", "every table of values per sample has the labels of the dataset", recomputed.labels)
    if recomputed.has_logits:
        found.check("logits", "scores, sensitivity and choice of models follow from the logits", recomputed.scores)
    else:
        if audit.logit_files():
            what = "scores, sensitivity and values at chosen temperatures were not computed from logits"
            found.unchecked["logits"] = f"no logits: {what}"
        found.check("selection", "the choice of models follows from their answers", recomputed.selection)
    found.check("tables", "class values, intervals, disparity and all other tables follow from the values per sample",
                recomputed.tables)  # fmt: skip
    found.check("verdict", "the verdict follows, rule by rule, from the values per sample", recomputed.verdict)
    said = partial(_other_statement, bundle, config, statement)
    found.check("statement", "the statement says what the files say", said)
    _check_networks(found, bundle, audit)
    _check_images(found, bundle, audit)
    if any(name.startswith(bundle.of_audit("figures/")) for name in bundle.digests) and "formats" in found.checked:
        found.checked["figures"] = "figures are as checksums.json beside them says"
    else:
        found.unchecked["figures"] = "no figures as files; the pages show them"
    _check_page(found, bundle, audit)
    measured = [measure.name for measure in audit.measures.values() if not measure.from_logits]
    if measured:
        found.unchecked["attacks"] = f"attacks and proofs were not repeated: values per sample of {', '.join(measured)}"
    if "statement" in found.checked:
        found.sentence = statement["predicate"]["verdict"]["sentence"]


def _other_files(bundle: Bundle, audit: PlannedAudit) -> Iterable[str]:
    there = bundle.digests.keys()
    needed = files_of_audit(audit).keys()
    yield from (f"{name}: missing" for name in sorted(needed - there))
    parts = [logit_files(audit).keys(), image_file(audit).keys(), _network_names(bundle, audit)]
    for part in parts:
        if part & there:
            yield from (f"{name}: missing, unlike others of its kind" for name in sorted(part - there))
    figures = bundle.of_audit("figures/")
    known = set(needed).union(cost_files(audit), *parts, (STATEMENT, SIGNATURE))
    for name in sorted(there - known):
        if not (name.startswith(figures) and name.count("/") == figures.count("/")):
            yield f"{name}: belongs to no bundle of this audit"


def _networks(bundle: Bundle, audit: PlannedAudit) -> dict[str, tuple[str, dict[str, str]]]:
    # None of a bundle without manifests, which name the files, or with others than the workflow writes.
    try:
        return network_files(audit, bundle.json)
    except (InputError, LookupError, TypeError, AttributeError):
        return {}


def _network_names(bundle: Bundle, audit: PlannedAudit) -> set[str]:
    return {name for _, files in _networks(bundle, audit).values() for name in files} | {
        manifest.removeprefix("results/") for manifest, _ in _networks(bundle, audit).values()
    } - files_of_audit(audit).keys()


def _check_networks(found: Verification, bundle: Bundle, audit: PlannedAudit) -> None:
    networks = _networks(bundle, audit)
    if not any(name in bundle.digests for _, files in networks.values() for name in files):
        found.unchecked["networks"] = "no networks: that they are the ones that were measured was not checked"
        return

    sources = {model.label: model.source.name for model in audit.models}

    def other_digests() -> Iterable[str]:
        made_from = read_identity(bundle.path(bundle.of_audit("class_scores.parquet")))["made_from"]
        measured = {f"{one['threat']}/{one['model']}": one["checkpoint_sha256"] for one in made_from}
        for label, (manifest, files) in networks.items():
            listed = {
                PurePosixPath(file["path"]).name: file["sha256"] for file in bundle.json(manifest).get("files", [])
            }
            for name in files:
                expected = listed.get(PurePosixPath(name).name)
                if expected is not None and bundle.digests.get(name) != expected:
                    yield f"{name}: not the file that {printable(manifest)} lists"
            digests = [bundle.digests.get(name, "") for name in files]
            if label in measured and model_digest(sources[label], digests) != measured[label]:
                yield f"{next(iter(files))}: not the checkpoint of {label} that was measured"

    found.check("networks", "the checkpoints are those that were measured, by their digests", other_digests)


def _check_images(found: Verification, bundle: Bundle, audit: PlannedAudit) -> None:
    name = next(iter(image_file(audit)), None)
    if name is None or name not in bundle.digests:
        found.unchecked["images"] = "no images: the digest of the dataset was not computed from them"
        return
    dataset = audit.dataset.name

    def other_images() -> Iterable[str]:
        import pandas as pd

        from gfscore.audit.samples import SampleList
        from gfscore.images.manifests import image_digests, open_and_describe

        settings, entry = audit.dataset.image_settings(), audit.dataset.entry
        images, described = open_and_describe(
            settings, bundle.path(name), dataset=dataset, classes=entry["classes"], pinned=entry["digest"]
        )
        manifest = bundle.json(f"datasets/{dataset}.json")
        if described["digest"] != manifest["digest"]:
            yield f"{name}: other images, labels or names than datasets/{dataset}.json says"
        table = read_table(bundle.path(f"datasets/{dataset}.parquet"), DATASET)
        digests: Any = image_digests(images, where=name)
        if list(digests["image_digest"]) != list(table["image_digest"]):
            yield f"{name}: other images than datasets/{dataset}.parquet says"
        if images.decoded is None and list(digests["pixel_digest"]) != list(table["pixel_digest"]):
            yield f"{name}: other pixels than datasets/{dataset}.parquet says"
        # Another version of Pillow may round decoded pixels otherwise, but images that are equal stay equal.
        made = pd.DataFrame({"sample_id": images.sample_id, "label": images.labels, **digests})
        first_of_stored, first_of_made = (SampleList(frame, source=name).first for frame in (table, made))
        if list(first_of_stored) != list(first_of_made):
            yield f"{name}: other images are equal to each other than datasets/{dataset}.parquet says"

    found.check("images", "the dataset has the digest that was computed again from its images", other_images)


def _check_page(found: Verification, bundle: Bundle, audit: PlannedAudit) -> None:
    found.check("verdict on the page", "the page says time and version of its verdict as verdict.json does",
                lambda: other_time_or_version(bundle))  # fmt: skip
    if found.faults:
        found.unchecked["page"] = "the page was not drawn again, since other files are wrong"
        return
    why = undrawable(bundle)
    if why is not None:
        found.unchecked["page"] = f"the page was not drawn again: {why}"
        return
    found.check("page", "the page is what is drawn again from tables, verdict and configuration",
                lambda: other_page(bundle, audit))  # fmt: skip


def _other_statement(bundle: Bundle, config: Mapping[str, Any], statement: Any) -> Iterable[str]:
    made = statement_of(bundle, config)
    for key in dict.fromkeys([*made, *statement]):
        if key not in statement or key not in made or statement[key] != made[key]:
            yield f"{STATEMENT}: its {printable(key)} is not what follows from the other files"
