"""Single changes to a bundle, as somebody might make them, and the statement on the changed files."""

import base64
import gzip
import json
import random
import shutil
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from gfscore.audit.samples import ScoresFile, write_scores
from gfscore.audit.verdicts.verdict import read_verdict
from gfscore.core.digests import sha256_of_file, without_checksums, write_checksummed, write_digests
from gfscore.core.errors import InputError
from gfscore.core.files import read_json, write_json
from gfscore.core.identity import ModelName
from gfscore.show.page.provenance import time_of
from gfscore.tables.csv_files import write_csv_beside
from gfscore.tables.parquet_tables import read_identity, read_logits, read_table, write_logits, write_table
from gfscore.workflow.bundling.contents import STATEMENT, Bundle, statement_of
from gfscore.workflow.bundling.recomputed import COMPRESSED
from gfscore.workflow.catalogue import CATALOGUE
from gfscore.workflow.config_files import read_configuration
from gfscore.workflow.plan import Run

AUDIT = "audits/toy"
MODELS = ("good", "bad")


def restated(folder):
    """Make every digest anew that speaks of other files: in the verdict, the pages and the statement.

    The statement as far as the files allow; its digests alone where they do not.
    """
    audit = folder / AUDIT
    with suppress(InputError, OSError):
        verdict = read_json(audit / "verdict.json")
        made_from = {path: folder / path.removeprefix("results/") for path in verdict["made_from"]}
        verdict["made_from"] = {path: sha256_of_file(file) for path, file in made_from.items()}
        write_json(audit / "verdict.json", verdict)
    for page in audit.glob("*.html"):
        words = without_checksums(page.read_bytes()).decode(errors="replace")
        write_checksummed(page, words, files=[audit / "verdict.json", audit / "class_scores.parquet"])
    try:
        bundle = Bundle.read(folder)
        configuration = read_configuration([folder / AUDIT / "config.yaml"], {})
        made = statement_of(bundle, Run(configuration).audits[bundle.audit])
    except Exception:
        made = json.loads((folder / STATEMENT).read_text())
        known = {name: digest for name, digest in Bundle.read(folder).digests.items() if name != STATEMENT}
        models = [item for item in made["subject"] if item["name"].startswith("model:")]
        made["subject"] = [{"name": name, "digest": {"sha256": known[name]}} for name in sorted(known)] + models
    (folder / STATEMENT).write_text(json.dumps(made))


def another(value, rng):
    """A value of the same type that differs from this one in a digit, or a letter."""
    if isinstance(value, bool | np.bool_):
        return not value
    if isinstance(value, int | np.integer):
        return int(value) + rng.choice([-1, 1])
    if isinstance(value, float | np.floating):
        if not np.isfinite(value):
            return 1.0
        # Whole numbers may be integers of a column that has gaps.
        step = 1 if float(value).is_integer() else 1e-3 * float(value)
        return float(value) + rng.choice([-1, 1]) * step
    if isinstance(value, list):
        return [another(value[0], rng), *value[1:]] if value else ["more"]
    return "another" if value is None or value is pd.NA else f"{value}s"


def leaves(data, place=()):
    """Places of the values of plain data that are no mappings or lists."""
    if isinstance(data, dict | list) and data:
        for key, value in data.items() if isinstance(data, dict) else enumerate(data):
            yield from leaves(value, (*place, key))
    else:
        yield place


def with_other_leaf(data, rng, *, but=()):
    """Change one value of plain data, none below the keys `but`; returns its place."""
    places = [place for place in leaves(data) if place and place[0] not in but]
    place = rng.choice(places)
    part = data
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = another(part[place[-1]], rng)
    return place


def edited_json(path, rng, *, but=()):
    data = read_json(path)
    place = with_other_leaf(data, rng, but=but)
    write_json(path, data)
    return f"{path.name} {place}"


def edited_frame(frame, rng, columns=None):
    """Change one cell of a table; returns the frame and the place."""
    row, column = rng.randrange(len(frame)), rng.choice(columns or list(frame.columns))
    cell = frame[column].iloc[row]
    # A missing text is read as the number NaN.
    missing_text = isinstance(cell, float) and not pd.api.types.is_numeric_dtype(frame[column])
    value = another(None if missing_text else cell, rng)
    changed = frame.astype({column: object})
    changed.iat[row, list(frame.columns).index(column)] = value
    return changed, f"{column} of row {row}"


def digit_in_a_table(folder, rng):
    """Of the audit: the Parquet file and the CSV beside it are written anew, as the workflow writes them."""
    paths = [path for path in sorted((folder / AUDIT).glob("*.parquet")) if pq.read_metadata(path).num_rows]
    path = rng.choice(paths)
    table, identity = CATALOGUE[path.stem], read_identity(path)
    frame, place = edited_frame(read_table(path, table), rng)
    write_table(path, table, frame, identity=identity)
    write_csv_beside(path, read_table(path, table))
    return f"{path.name}: {place}"


def digit_in_a_csv(folder, rng):
    path = rng.choice([path for path in sorted((folder / AUDIT).glob("*.csv")) if len(path.read_text()) > 400])
    text = path.read_text()
    place = rng.choice([place for place, sign in enumerate(text) if sign.isdigit()])
    path.write_text(text[:place] + str((int(text[place]) + 1) % 10) + text[place + 1 :])
    return f"{path.name}: sign {place}"


def score_of_a_sample(folder, rng):
    path = folder / "scores/toy.parquet"
    file = ScoresFile(path)
    identity = dict(file.identity)
    del identity["table"], identity["table_version"], identity["parts"]
    models = {f"none/{name}": ModelName("toy", "none", name) for name in MODELS}
    parts = [(models[label], measure, file.read(models[label], measure)) for label, measure in file.identity["parts"]]
    chosen = rng.randrange(len(parts))
    model, measure, frame = parts[chosen]
    frame, place = edited_frame(frame, rng, ["value", "label", "prediction", "sample_id"])
    parts[chosen] = (model, measure, frame)
    write_scores(path, parts, identity=identity)
    return f"{path.name}: {place} of {model.classifier}, {measure}"


def digit_of_a_sweep(folder, rng):
    path = folder / "sweeps/toy.parquet"
    frame, place = edited_frame(read_table(path, CATALOGUE["sweeps"]), rng, ["value", "temperature", "n", "accuracy"])
    write_table(path, CATALOGUE["sweeps"], frame, identity=read_identity(path))
    return f"{path.name}: {place}"


def flipped_label(folder, rng):
    path = folder / "datasets/toy.parquet"
    frame = read_table(path, CATALOGUE["dataset"])
    row = rng.randrange(len(frame))
    frame.loc[row, "label"] = (frame["label"][row] + 1) % 3
    write_table(path, CATALOGUE["dataset"], frame, identity=read_identity(path))
    return f"{path.name}: label of row {row}"


def attacked_sample(folder, rng):
    path = folder / f"samples/minimal-l2/toy/none/{rng.choice(MODELS)}.parquet"
    table = CATALOGUE[read_identity(path)["table"]]
    frame, place = edited_frame(read_table(path, table), rng, ["value", "label"])
    write_table(path, table, frame, identity=read_identity(path))
    return f"{path.parent.parent.parent.name}/{path.name}: {place}"


def swapped(folder, rng):
    """Two models exchanged, in their samples tables where there are any, else in their logits."""
    places = [folder / "samples/minimal-l2/toy/none", folder / "logits/toy/none"]
    place = rng.choice([place for place in places if place.is_dir()])
    one, other = sorted(place.iterdir())
    content = one.read_bytes()
    if one.suffix == ".npy" or rng.random() < 0.5:
        one.write_bytes(other.read_bytes())
        other.write_bytes(content)
        return f"{place.parent.parent}: files exchanged"
    # With the names of the models, so that each file says that it is of the other one.
    identities = [read_identity(path) for path in (one, other)]
    if place.parent.parent.name == "logits":
        logits = [read_logits(path) for path in (one, other)]
        for path, (ids, labels, values), identity in zip((other, one), logits, reversed(identities), strict=True):
            write_logits(path, sample_id=ids, label=labels, logits=values, identity=identity)
    else:
        table = CATALOGUE[identities[0]["table"]]
        frames = [read_table(path, table) for path in (one, other)]
        for path, frame, identity in zip((other, one), frames, reversed(identities), strict=True):
            write_table(path, table, frame, identity=identity)
    return f"{place.parent.parent.name}: values exchanged"


def a_logit(folder, rng):
    path = rng.choice(sorted((folder / "logits/toy/none").iterdir()))
    if path.suffix == ".npy":
        logits = np.load(path)
        logits[rng.randrange(len(logits)), rng.randrange(3)] += 0.5
        np.save(path, logits)
    else:
        ids, labels, logits = (np.array(column) for column in read_logits(path))
        logits[rng.randrange(len(logits)), rng.randrange(3)] += 0.5
        write_logits(path, sample_id=ids, label=labels, logits=logits, identity=read_identity(path))
    return f"{path.name}: a logit"


def edited_verdict(folder, rng):
    return edited_json(folder / AUDIT / "verdict.json", rng, but=("software", "time", "version", "commit"))


def edited_choices(folder, rng):
    name = rng.choice(["models", "calibration", "comparison"])
    return edited_json(folder / AUDIT / f"{name}.json", rng)


def edited_manifest(folder, rng):
    return edited_json(folder / "datasets/toy.json", rng, but=("path", "preprocessing", "image_shape", "digest_covers"))


def removed_file(folder, rng):
    path = rng.choice([path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != STATEMENT])
    path.unlink()
    return f"{path.name} removed"


def added_file(folder, rng):
    name = rng.choice(["readme.txt", f"{AUDIT}/more.parquet", "samples/clean/toy/none/third.parquet", ".hidden"])
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("more")
    return f"{name} added"


ASKED = {
    "at_least: 0.1": ["at_least: 0.2", "at_least: 0.01"],
    "at_most: 0.9": ["at_most: 0.8"],
    "confidence: 0.95": ["confidence: 0.9", "confidence: 0.94"],
    "fp_lambda: 0.5": ["fp_lambda: 0.6"],
    "statistic: rdi": ["statistic: nrgc"],
    "permutations: 19": ["permutations: 29"],
    "method: betting": ["method: empirical_bernstein"],
    "seed: 0": ["seed: 1"],
    "activation: softmax": ["activation: sigmoid"],
}
"""Values of the configuration that the results rest on, and others."""


def edited_configuration(folder, rng):
    path = folder / AUDIT / "config.yaml"
    text = "".join(line for line in path.read_text().splitlines(True) if "SHA-256" not in line)
    old = rng.choice([old for old in ASKED if old in text])
    new = rng.choice(ASKED[old])
    write_checksummed(path, text.replace(old, new, 1))
    return f"config.yaml: {new}"


def edited_statement(folder, rng):
    path = folder / STATEMENT
    data = json.loads(path.read_text())
    place = with_other_leaf(data, rng)
    path.write_text(json.dumps(data))
    return f"{STATEMENT} {place}"


# ---- what no result shows ----


def key_that_stands_twice(folder):
    path = folder / AUDIT / "verdict.json"
    path.write_text(path.read_text().replace("{\n", '{\n  "verdict": "PASS",\n', 1))


def note_on_a_verdict(folder):
    path = folder / AUDIT / "verdict.json"
    write_json(path, read_json(path) | {"version": "certified"})


def _rewritten(path, groups, schema):
    with pq.ParquetWriter(path, schema, write_page_checksum=True) as writer:
        for group in groups:
            writer.write_table(group.cast(schema))


def _row_groups(path):
    with pq.ParquetFile(path) as file:
        return [file.read_row_group(group) for group in range(file.num_row_groups)], file.schema_arrow


def more_scores(folder):
    groups, schema = _row_groups(folder / "scores/toy.parquet")
    _rewritten(folder / "scores/toy.parquet", [*groups, groups[0]], schema)


def scores_of_another_model(folder):
    groups, schema = _row_groups(folder / "scores/toy.parquet")
    place = schema.get_field_index("model")
    renamed = groups[0].set_column(place, "model", pa.array(["other"] * len(groups[0])))
    _rewritten(folder / "scores/toy.parquet", [renamed, *groups[1:]], schema)


def page_among_the_figures(folder):
    figures = folder / AUDIT / "figures"
    figures.mkdir()
    (figures / "PASS.html").write_text("<h1>PASS</h1>")
    write_digests(figures)


def certificate_of_a_software(folder):
    path = folder / AUDIT / "verdict.json"
    verdict = read_json(path)
    verdict["software"]["certified by"] = "somebody"
    write_json(path, verdict)


def pixels_without_proofs(folder):
    (folder / "proofs").mkdir()
    (folder / "proofs/images.npz").touch()


def corrupted_copies_elsewhere(folder, path):
    copies = {"path": str(path), "corruptions": None, "severities": None, "preprocessing": {"method": "none"}}
    manifest = read_json(folder / "datasets/toy.json")
    manifest["settings"]["corrupted"] = copies
    write_json(folder / "datasets/toy.json", manifest)
    configuration = folder / AUDIT / "config.yaml"
    text = without_checksums(configuration.read_bytes()).decode()
    last = "    attributes: null # default\n"
    write_checksummed(configuration, text.replace(last, f"{last}    corrupted: {json.dumps(copies)}\n", 1))


def samples_of(key, value):
    """Change that names other data, settings or another checkpoint for the values of an attack."""

    def change(folder):
        path = folder / "samples/minimal-l2/toy/none/good.parquet"
        table = CATALOGUE[read_identity(path)["table"]]
        write_table(path, table, read_table(path, table), identity=read_identity(path) | {key: value})

    return change


def sources_of_two_checkpoints(folder):
    path = folder / AUDIT / "class_scores.parquet"
    table, identity = CATALOGUE["class_scores"], read_identity(path)
    identity["made_from"].append(identity["made_from"][0] | {"checkpoint_sha256": "0" * 64})
    write_table(path, table, read_table(path, table), identity=identity)


# ---- pages and verdicts of other runs, which no table contradicts ----


def page_of_another_audit(folder, other):
    shutil.copy(other / AUDIT / "report.html", folder / AUDIT / "report.html")


def page_of_another_time(folder, _):
    page = folder / AUDIT / "report.html"
    said = time_of(read_verdict(folder / AUDIT / "verdict.json"))
    page.write_text(page.read_text().replace(said, "1 January 2020, 12:00 UTC"))


def page_with_other_words(folder, _):
    page = folder / AUDIT / "report.html"
    page.write_text(page.read_text().replace("What each metric means", "What no metric means"))


def page_with_another_number(folder, _):
    """In the numbers that the page's script computes with."""
    page = folder / AUDIT / "report.html"
    parts = [part for part in COMPRESSED.findall(page.read_text()) if b'"ranking"' in unzipped(part)]
    numbers = unzipped(parts[0]).replace(b'"fp_lambda":0.5', b'"fp_lambda":0.6')
    page.write_text(page.read_text().replace(parts[0], base64.b64encode(gzip.compress(numbers, mtime=0)).decode()))


def page_that_hides_its_verdict(folder, _):
    """By empty lines before and after it, in place of which a comment begins and ends."""
    page, verdict = (folder / AUDIT / name for name in ("report.html", "verdict.json"))
    lines = without_checksums(page.read_bytes()).decode().split("\n")
    section = next(number for number, line in enumerate(lines) if line.startswith('<section class="verdict'))
    empty = [number for number, line in enumerate(lines) if not line]
    said = f"Made from verdict.json, SHA-256: {sha256_of_file(verdict)}"
    lines[max(number for number in empty if number < section)] = f"<!-- {said}"
    lines[min(number for number in empty if number > section)] = f"{said}-->"
    write_checksummed(page, "\n".join(lines), files=[verdict])


def unzipped(part):
    return gzip.decompress(base64.b64decode(part))


def verdict_of_another_version(folder, _):
    path = folder / AUDIT / "verdict.json"
    verdict = read_json(path)
    verdict["software"]["version"] = "0.0.9"
    write_json(path, verdict)


def verdict_of_another_time(folder, _):
    path = folder / AUDIT / "verdict.json"
    write_json(path, read_json(path) | {"time": "2020-01-01T12:00:00+00:00"})


OTHER_RUNS = (
    *(page_of_another_audit, page_of_another_time, page_with_other_words, page_with_another_number),
    *(page_that_hides_its_verdict, verdict_of_another_version, verdict_of_another_time),
)
"""Changes of a bundle, the second argument of which is the bundle of another audit."""


CHANGES = (
    *(digit_in_a_table, digit_in_a_table, digit_in_a_table, digit_in_a_csv, score_of_a_sample, digit_of_a_sweep),
    *(flipped_label, swapped, a_logit, edited_verdict, edited_verdict, edited_choices, edited_manifest),
    *(removed_file, added_file, edited_configuration, edited_statement),
)


def changes_of(*, attacked):
    """Functions that each make a single change to a bundle, more than once those that choose among many places."""
    return (*CHANGES, attacked_sample, attacked_sample) if attacked else CHANGES


def concerns_attacks(number):
    """Whether the change of this number may be to a file that comes of attacks, or to what is made of it."""
    attacked = (digit_in_a_table, swapped, edited_verdict, attacked_sample)
    return changes_of(attacked=True)[number] in attacked


def changed(folder, number, *, attacked):
    """Make the single change of this number; returns what it is, in words."""
    rng = random.Random(number)
    changes = changes_of(attacked=attacked)
    change = changes[number % len(changes)]
    return f"{number}, {change.__name__}: {change(Path(folder), rng)}"
