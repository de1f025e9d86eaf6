"""Bundles: writing an audit into one folder that can be handed on, and checking such a folder from it alone."""

import io
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path, PurePosixPath

import pandas as pd

from gfscore.audit.samples import SampleList
from gfscore.audit.verdicts.declines import ReleaseFile
from gfscore.audit.verdicts.verdict import read_verdict
from gfscore.core.digests import CHECKSUMS
from gfscore.core.errors import InputError
from gfscore.core.files import naming_target, read_json, umask
from gfscore.core.mappings import without
from gfscore.core.names import printable
from gfscore.core.numbers import counted
from gfscore.networks.checkpoint_files import model_digest
from gfscore.show.audit_charts import file_name
from gfscore.show.charts import CHARTS
from gfscore.show.figure_files import NOT_DRAWN
from gfscore.tables.parquet_tables import read_identity, read_table
from gfscore.tables.table import DATASET
from gfscore.workflow.audit_check import faults_of_audit
from gfscore.workflow.bundling import PARTS
from gfscore.workflow.bundling.contents import (
    SIGNATURE,
    Bundle,
    Files,
    Json,
    NetworkFiles,
    cost_files,
    files_of_audit,
    image_file,
    logit_files,
    name_of,
    network_files,
    other_digests,
    read_statement,
    require_signed,
    sign,
    signing_key,
    statement_of,
    write_statement,
)
from gfscore.workflow.bundling.evidence import PIXELS, EvidenceCheck, Report, evidence_files, no_report, write_evidence
from gfscore.workflow.bundling.recomputed import Recomputed, other_software, other_time_or_version, reason_not_to_draw
from gfscore.workflow.plan import PlannedAudit
from gfscore.workflow.resolved_file import audit_folder, read_planned_audit
from gfscore.workflow.user_files import STATEMENT

SIGNED = "signature"


# ---- writing ----


def write_bundle(
    audit: str,
    target: Path | str,
    *,
    parts: Collection[str] = (),
    key: Path | str | None = None,
    report: Report = no_report,
) -> list[str]:
    """Copy an audit of results/ into a new folder.

    The folder is there whole or not at all, and only if verify_bundle accepts it.

    Parameters
    ----------
    audit : str
        Name of a finished audit.
    target : path
        New folder.
    parts : collection of str
        Parts of PARTS that it gets besides the audit.
    key : path or None
        Key of SSH that signs the statement.
    report : callable
        Takes sentences on how far long work is.

    Returns
    -------
    list of str
        What the audit has none of, or cannot be written, as sentences.

    Raises
    ------
    InputError
        Naming file and remedy, where the folder exists, a file of the audit is missing, its verdict rests on other
        files than there are by now, or what it says does not follow from its values.
    """
    target, folder = Path(target), audit_folder(audit)
    if target.exists() or target.is_symlink():
        raise InputError(f"{target}: exists; remove it, or name another folder with --to")
    if not (folder / "config.yaml").is_file() or not (folder / "verdict.json").is_file():
        raise InputError(f"{folder}: no finished audit; run make audit in this folder first")
    planned = read_planned_audit(folder / "config.yaml", audit)
    read_verdict(folder / "verdict.json").require_current(folder / "verdict.json")

    files = files_of_audit(planned)
    for name, path in cost_files(planned).items():
        if Path(path).is_file():
            files[name] = path
    messages = []
    for part in parts:
        if part == "proofs":
            continue
        files_of_part = _files_of(part, planned)
        files.update(files_of_part)
        if not files_of_part:
            messages.append(f"{part}: the audit has none that could be copied ({PARTS[part]})")

    target.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
    try:
        with naming_target(target):
            _copy(files, draft)
            if "proofs" in parts and not write_evidence(draft, planned, messages.append):
                messages.append(f"proofs: the audit has no certificates and no counterexamples ({PARTS['proofs']})")
            write_statement(Bundle.read(draft), planned)
        if key:
            sign(draft / STATEMENT, key)
        faults = verify_bundle(draft, report=report).faults
        if faults:
            raise InputError(f"{folder}: {faults[0]}; run make audit, which makes again what is not as it was made")
        # mkdtemp makes folders for the owner only.
        draft.chmod(0o777 & ~umask())
        draft.rename(target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return messages


def _copy(files: Files, folder: Path) -> None:
    for name, path in files.items():
        if not Path(path).is_file():
            raise InputError(f"{path}: missing; run make audit to make it again")
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, folder / name)


def _files_of(part: str, audit: PlannedAudit) -> Files:
    if part == "logits":
        return logit_files(audit)
    if part == "images":
        # A folder may be called like a file, data/v1.0.
        return {name: path for name, path in image_file(audit).items() if not Path(path).is_dir()}
    files: Files = {}
    if part == "figures":
        for path in sorted(Path(audit.folder, "figures").iterdir()):
            if not path.name.startswith("."):
                files[name_of(str(path))] = str(path)
        return files
    for network in network_files(audit, read_json).values():
        files[name_of(network.manifest)] = network.manifest
        files.update(network.files)
    return files


# ---- verifying ----


@dataclass
class Verification:
    """What a check of a bundle shows, in sentences.

    Attributes
    ----------
    checked : dict of str to str
        Parts without fault.
    unchecked : dict of str to str
        Parts that were not checked, and why.
    faults : list of str
        What is wrong, each sentence with a file.
    sentence : str
        Verdict of the audit, once it has been read.
    """

    checked: dict[str, str] = field(default_factory=dict)
    unchecked: dict[str, str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    sentence: str = ""

    def check(self, part: str, words: str, differences: Callable[[], Iterable[str]]) -> None:
        """Add what a check yields, or why it could not be made: whatever is wrong with a file is a fault of the bundle.

        MemoryError is none, and is raised.
        """
        faults_before = len(self.faults)
        try:
            # Steps of the workflow print what a user of their log reads.
            with redirect_stdout(io.StringIO()):
                self.faults += differences()
        except MemoryError:
            raise
        except InputError as error:
            self.faults.append(str(error))
        except Exception as error:
            self.faults.append(f"{part}: cannot be computed from these files ({type(error).__name__}: {error})")
        if len(self.faults) == faults_before:
            self.checked[part] = words


def verify_bundle(
    folder: Path | str,
    *,
    required: Collection[str] = (),
    allowed_signers: Path | str | None = None,
    identity: str | None = None,
    report: Report = no_report,
) -> Verification:
    """Check a folder that gfscore bundle made, wherever it came from: nothing outside of it is read.

    Parameters
    ----------
    folder : path
    required : collection of str
        Parts that must have been checked.
    allowed_signers : path or None
        File in the form of ssh-keygen(1); with it the statement must be signed.
    identity : str or None
        Who of the allowed signers must have signed.
    report : callable
        Takes sentences on how far long work is.

    Raises
    ------
    InputError
        Where there is no folder, or no file of allowed signers.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"{printable(folder)}: no such folder; name one that gfscore bundle made")
    verification = Verification()
    try:
        bundle = Bundle.read(folder)
        statement = read_statement(bundle.path(STATEMENT))
    except InputError as error:
        verification.faults.append(str(error))
        return _without_folder(verification, folder)
    except OSError as error:
        # Folders in folders may have longer names than the system opens.
        verification.faults.append(f"{folder}: not all of it can be read ({error.strerror}); ask for the bundle again")
        return _without_folder(verification, folder)

    words = "every file has the digest of the statement, none is missing, none was added"
    verification.check("digests", words, partial(other_digests, bundle, statement))
    _check_signature(verification, bundle, allowed_signers, identity)
    if verification.faults:
        reason = "the files are not those of the statement, so nothing was computed from them"
        verification.unchecked["content"] = reason
    else:
        _check_content(verification, bundle, statement, report)
    for part in required:
        if part not in verification.checked:
            reason = verification.unchecked.get(part, "could not be checked")
            verification.faults.append(f"{part}: required, but {reason}")
    return _without_folder(verification, folder)


def _without_folder(verification: Verification, folder: Path) -> Verification:
    faults = [printable(fault.replace(f"{folder}/", "")) for fault in verification.faults]
    verification.faults = list(dict.fromkeys(faults))
    return verification


# ---- statement and signature ----


def _check_signature(
    verification: Verification, bundle: Bundle, allowed_signers: Path | str | None, identity: str | None
) -> None:
    if allowed_signers is not None and not Path(allowed_signers).is_file():
        raise InputError(f"{allowed_signers}: no such file; give one in the form of ALLOWED SIGNERS of ssh-keygen(1)")
    if SIGNATURE not in bundle.digests:
        reason = "the statement is not signed: consistency, not origin, is shown"
        verification.unchecked[SIGNED] = reason
        if allowed_signers is not None:
            verification.faults.append(f"{SIGNATURE}: missing, so {reason}")
        return

    statement, signature = bundle.path(STATEMENT), bundle.path(SIGNATURE)
    try:
        if allowed_signers is None:
            key = printable(signing_key(statement, signature))
            reason = f"whose key signed the statement, only --allowed-signers and --identity tell ({key})"
            verification.unchecked[SIGNED] = reason
        else:
            require_signed(statement, signature, allowed_signers=allowed_signers, identity=identity or "")
            verification.checked[SIGNED] = f"the statement is signed by {identity}"
    except InputError as error:
        verification.faults.append(str(error))


# ---- content ----


def _check_content(verification: Verification, bundle: Bundle, statement: Json, report: Report) -> None:
    audits: dict[str, PlannedAudit] = {}

    def read_configuration() -> list[str]:
        audits[bundle.audit] = read_planned_audit(bundle.audit_path("config.yaml"), bundle.audit)
        return []

    verification.check("configuration", "the resolved configuration is whole", read_configuration)
    if bundle.audit in audits:
        _ContentCheck(verification, bundle, audits[bundle.audit], report).run(statement)


@dataclass(frozen=True)
class _ContentCheck:
    """Check of what the files of a bundle say, by the configuration in it."""

    verification: Verification
    bundle: Bundle
    audit: PlannedAudit
    report: Report

    def run(self, statement: Json) -> None:
        """Make all checks."""
        check = self.verification.check
        recomputed = Recomputed(self.bundle, self.audit)
        check("files", "the bundle holds what its configuration asks for", self.other_files)
        check("formats", "tables, CSV, pages and JSON files are as they were written, and of one audit", self.formats)
        self._check_tables(recomputed)
        check("verdict", "the verdict follows, rule by rule, from the values per sample", recomputed.verdict)
        check("statement", "the statement says what the files say", partial(self.other_statement, statement))
        self._check_networks()
        self._check_images()
        self._check_figures()
        self._check_page(recomputed)
        self._check_evidence()
        self._say_what_is_unchecked()
        if "statement" in self.verification.checked:
            self.verification.sentence = statement["predicate"]["verdict"]["sentence"]

    def _check_tables(self, recomputed: Recomputed) -> None:
        # Values per sample, and what follows from them.
        check, unchecked = self.verification.check, self.verification.unchecked
        check("dataset", "number of samples, classes and labels agree in its manifest and table", recomputed.dataset)
        check("labels", "every table of values per sample has the labels of the dataset", recomputed.labels)
        words = "every such table is of these data, and of the settings and checkpoints of the configuration"
        check("measurements", words, recomputed.measurements)
        if recomputed.has_logits:
            check("logits", "scores, sensitivity and choice of models follow from the logits", recomputed.scores)
        else:
            if logit_files(self.audit):
                values = "scores, sensitivity, falsification and all at chosen temperatures, on the page too,"
                unchecked["logits"] = f"no logits: {values} were not computed from them"
            check("selection", "the choice of models follows from their answers", recomputed.selection)
            if "selection" in self.verification.checked and recomputed.excluded:
                unchecked["excluded"] = f"why {', '.join(recomputed.excluded)} was left out: only logits show it"
        other = "all other tables" if recomputed.has_logits else "all other tables, as far as they need no logits,"
        words = f"class values, intervals, disparity and {other} follow from the values per sample"
        check("tables", words, recomputed.tables)

    def _say_what_is_unchecked(self) -> None:
        # The last release, attacks and proofs, and records that nothing in the bundle contradicts or confirms.
        unchecked = self.verification.unchecked
        release = self.audit.release_values()
        # The verdict names the release, so that where it is as computed again, this can be read.
        if isinstance(release, str) and "verdict" in self.verification.checked:
            source = ReleaseFile(self.bundle.path(release)).source
            unchecked["last release"] = (
                "values of the last release were not compared with its bundle, whose statement has the SHA-256 "
                f"{source.statement_sha256}"
            )
        measured = []
        for measure in self.audit.measures.values():
            proofs_checked = measure.kind.name == "proven" and "proofs" in self.verification.checked
            if not measure.from_logits and not measure.derived and not proofs_checked:
                measured.append(measure.name)
        if measured:
            unchecked["attacks"] = f"attacks and proofs were not repeated: values per sample of {', '.join(measured)}"
        records = {
            "attributes of samples": self.audit.attributes_table(),
            "projections": self.audit.projection_files(),
            "pictures of mappers": self.audit.mappers,
            "offsets of remedies": self.audit.remedy_files(),
            "records of trainings": self.audit.trained_manifests(),
            "times and passes of jobs": self.bundle.digests.keys() & cost_files(self.audit).keys(),
        }
        present = [words for words, items in records.items() if items]
        if present:
            unchecked["records"] = f"taken as they stand in the bundle: {', '.join(present)}"

    def formats(self) -> list[str]:
        """Faults of the files of the audit itself."""
        return faults_of_audit(self.bundle.folder / "audits" / self.bundle.audit, figures=False)

    def other_files(self) -> Iterator[str]:
        """Files that are missing, and those that belong to no bundle of the audit."""
        present = self.bundle.digests.keys()
        needed = files_of_audit(self.audit).keys()
        for name in sorted(needed - present):
            yield f"{name}: missing"

        expected = {*needed, *cost_files(self.audit), STATEMENT, SIGNATURE}
        expected |= evidence_files(self.audit)
        network_names: set[str] = set()
        for network in self._networks.values():
            network_names |= {name_of(network.manifest), *network.files}
        for part in (set(logit_files(self.audit)), set(image_file(self.audit)), network_names - needed):
            expected |= part
            if part & present:
                for name in sorted(part - present):
                    yield f"{name}: missing, unlike others of its kind"
        for name in sorted(present - expected - self._figure_names):
            yield f"{name}: belongs to no bundle of this audit"

    @cached_property
    def _figure_names(self) -> set[str]:
        # Names that the figures of an audit of these measures, and the file of their digests, may have.
        names = {CHECKSUMS}
        for chart in CHARTS.values():
            for measure in (None, *self.audit.measures):
                for ending in (".svg", ".pdf", ".png", NOT_DRAWN):
                    names.add(f"{file_name(chart, measure)}{ending}")
        return {self.bundle.of_audit(f"figures/{name}") for name in names}

    def other_statement(self, statement: Json) -> Iterator[str]:
        """Entries of the statement that do not follow from the files."""
        expected = statement_of(self.bundle, self.audit)
        for key in dict.fromkeys([*expected, *statement]):
            if key not in statement or key not in expected or statement[key] != expected[key]:
                yield f"{STATEMENT}: its {printable(key)} is not what follows from the other files"

    # ---- networks ----

    @cached_property
    def _networks(self) -> dict[str, NetworkFiles]:
        # None of a bundle without manifests, which name the files, or with others than the workflow writes.
        try:
            return network_files(self.audit, self.bundle.json)
        except (InputError, LookupError, TypeError, AttributeError):
            return {}

    def _check_networks(self) -> None:
        present = self.bundle.digests
        for network in self._networks.values():
            if any(name in present for name in network.files):
                words = "the checkpoints are those that were measured, by their digests"
                self.verification.check("networks", words, self.other_networks)
                return
        reason = "no networks: that they are the ones that were measured was not checked"
        self.verification.unchecked["networks"] = reason

    def other_networks(self) -> Iterator[str]:
        """Files of networks that are not those that were measured."""
        sources = read_identity(self.bundle.audit_path("class_scores.parquet"))["made_from"]
        measured = {f"{source['threat']}/{source['model']}": source["checkpoint_sha256"] for source in sources}
        source_of = {model.label: model.source.name for model in self.audit.models}
        for label, network in self._networks.items():
            listed = {}
            for file in self.bundle.json(network.manifest).get("files", []):
                listed[PurePosixPath(file["path"]).name] = file["sha256"]
            for name in network.files:
                digest = listed.get(PurePosixPath(name).name)
                if digest is not None and self.bundle.digests.get(name) != digest:
                    yield f"{name}: not the file that {printable(network.manifest)} lists"
            digests = [self.bundle.digests.get(name, "") for name in network.files]
            if label in measured and model_digest(source_of[label], digests) != measured[label]:
                yield f"{next(iter(network.files))}: not the checkpoint of {label} that was measured"

    # ---- certificates and counterexamples ----

    def _check_evidence(self) -> None:
        verification = self.verification
        evidence = EvidenceCheck(self.bundle, self.audit, self.report)
        # Unreadable tables are faults by now.
        if "labels" not in verification.checked:
            return
        try:
            tables = evidence.tables
        except InputError as error:
            verification.faults.append(str(error))
            return
        if not tables:
            if evidence.has_part:
                verification.faults.append(
                    f"{PIXELS}: there are no certificates and no counterexamples to check with it"
                )
            return
        if not evidence.has_part:
            names = ", ".join(dict.fromkeys(table.measure.name for table, _ in tables))
            verification.unchecked["proofs"] = (
                f"certificates and counterexamples of {names} were not checked, since the bundle holds no networks and "
                "pixels to check them with: ask for one that was made --with proofs"
            )
            return
        verification.check("proofs", "", evidence.faults)
        if "proofs" in verification.checked:
            certificates = counted(evidence.certificates, "certificate")
            points = counted(evidence.points, "counterexample")
            words = f"{certificates} and {points}, by the bounds and points that were computed again"
            total = evidence.number_to_check
            if total and not evidence.left_out:
                verification.checked["proofs"] = words
            else:
                del verification.checked["proofs"]
                if evidence.left_out < total:
                    verification.checked["some proofs"] = words
                verification.unchecked["proofs"] = (
                    f"{evidence.left_out:,} of {total:,} certificates and counterexamples: the bundle lacks their "
                    "pixels or networks"
                )
        for number, words in enumerate(evidence.unchecked):
            verification.unchecked[f"proofs {number}"] = words

    # ---- images, figures and the page ----

    def _check_images(self) -> None:
        names = [name for name in image_file(self.audit) if name in self.bundle.digests]
        if not names:
            reason = "no images: digests, and which samples show one image, were not computed from them"
            self.verification.unchecked["images"] = reason
            return
        words = "the dataset has the digest that was computed again from its images"
        self.verification.check("images", words, partial(self.other_images, names[0]))

    def other_images(self, name: str) -> Iterator[str]:
        """Whether the images differ from the dataset's manifest and table."""
        # Imported late: most bundles hold no images.
        from gfscore.images.encoded import EncodedImages
        from gfscore.images.manifests import image_digests, open_and_describe

        dataset = self.audit.dataset
        images, described = open_and_describe(
            # Corrupted copies lie in a folder outside of the bundle.
            without(dataset.image_settings(), ["corrupted"]),
            self.bundle.path(name),
            dataset=dataset.name,
            classes=dataset.settings.classes,
            pinned=dataset.settings.digest,
        )
        manifest = self.bundle.json(dataset.manifest)
        for key in ("digest", "digest_covers", "image_shape", "preprocessing"):
            if described[key] != manifest.get(key):
                yield f"{name}: other images, labels or names than datasets/{dataset.name}.json says by its {key}"
        table = read_table(self.bundle.path(dataset.samples), DATASET)
        # Another version of Pillow may round decoded pixels otherwise, but images that are equal stay equal.
        frame = pd.DataFrame({"sample_id": images.sample_id, "label": images.labels})
        frame = frame.assign(**image_digests(images, where=name))
        if list(frame["image_digest"]) != list(table["image_digest"]):
            yield f"{name}: other images than datasets/{dataset.name}.parquet says"
        if not isinstance(images, EncodedImages) and list(frame["pixel_digest"]) != list(table["pixel_digest"]):
            yield f"{name}: other pixels than datasets/{dataset.name}.parquet says"
        if list(SampleList(table, source=name).first) != list(SampleList(frame, source=name).first):
            yield f"{name}: other images are equal to each other than datasets/{dataset.name}.parquet says"

    def _check_figures(self) -> None:
        if self._figure_names.isdisjoint(self.bundle.digests):
            self.verification.unchecked["figures"] = "no figures as files; the pages show them"
            return
        if "formats" in self.verification.checked:
            self.verification.checked["figures"] = "figures have the names of charts, and digests of checksums.json"
        self.verification.unchecked["drawings"] = (
            "figures in files were not drawn again: what they show may be anything"
        )

    def _check_page(self, recomputed: Recomputed) -> None:
        verification = self.verification
        words = "the page says time and version of its verdict as verdict.json does"
        verification.check("verdict on the page", words, partial(other_time_or_version, self.bundle))
        if verification.faults:
            verification.unchecked["page"] = "the page was not drawn again, since other files are wrong"
            if "verdict on the page" in verification.checked and other_software(self.bundle):
                words = "whether the version that judged refuses these files as well, which decides"
                verification.unchecked["version"] = f"{words}: {other_software(self.bundle)}"
            return
        reason = reason_not_to_draw(self.bundle)
        if reason:
            verification.unchecked["page"] = f"the page was not drawn again, and may say anything: {reason}"
            return
        words = "the page is what is drawn again from tables, verdict and configuration"
        verification.check("page", words, recomputed.page)
