"""The dataset of an audit, described in Croissant 1.0, which search engines and loaders of datasets read.

Source: MLCommons, Croissant format specification 1.0.
"""

import json
from pathlib import Path

import pandas as pd

from gfscore.core.dataset_manifest import DatasetManifest
from gfscore.core.digests import sha256_of_file
from gfscore.core.files import write_text
from gfscore.core.names import printable
from gfscore.show.exports import DatasetStatement
from gfscore.tables.csv_files import csv_text

CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "column": "cr:column",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "key": "cr:key",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "source": "cr:source",
}
Node = dict[str, object]
"""A node of the description, in JSON-LD."""

CONFORMS_TO = "http://mlcommons.org/croissant/1.0"
SAMPLES = "samples.csv"
METADATA = "croissant.json"
MEDIA_TYPES = {".npz": "application/zip", ".parquet": "application/x-parquet", ".csv": "text/csv"}
OTHER_MEDIA_TYPE = "application/octet-stream"


def write_croissant(
    folder: Path, manifest: DatasetManifest, samples: pd.DataFrame, *, stated: DatasetStatement
) -> None:
    """Write croissant.json and, of every sample, its identifier, label and digest, if it has one, into samples.csv.

    Parameters
    ----------
    folder : Path
        Folder of the dataset.
    manifest : DatasetManifest
    samples : DataFrame
        Table of its N samples.
    stated : DatasetStatement
        Its licence and its place on the Hub; what is not stated is left out.
    """
    columns = ["sample_id", "label", "image_digest"]
    if samples["image_digest"].isna().all():
        columns.remove("image_digest")
    write_text(folder / SAMPLES, csv_text(samples[columns]))

    values = "Identifier, label and digest" if "image_digest" in columns else "Identifier and label"
    files = [_file(folder / SAMPLES, SAMPLES, f"{values} of every sample.")]
    if manifest.path and Path(manifest.path).is_file():
        path = Path(manifest.path)
        # In a folder of its own, since it may be called samples.csv too.
        identifier = f"data/{printable(path.name)}"
        files.append(_file(path, identifier, "The data themselves, which are not in this folder."))

    description: Node = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": CONFORMS_TO,
        "name": manifest.dataset,
        "description": (
            f"{manifest.samples} samples of {len(manifest.classes)} classes, as an audit by gfscore read them. "
            f"SHA-256 of their {manifest.digest_covers}: {manifest.digest}."
        ),
    }
    if stated.hub:
        description["url"] = f"https://huggingface.co/datasets/{stated.hub}"
    if stated.licence:
        description["license"] = f"https://spdx.org/licenses/{stated.licence}"
    description["distribution"] = files
    description["recordSet"] = [_classes(manifest.classes), _samples(columns)]
    write_text(folder / METADATA, json.dumps(description, indent=2, ensure_ascii=False) + "\n")


def _file(path: Path, identifier: str, description: str) -> Node:
    return {
        "@type": "cr:FileObject",
        "@id": identifier,
        "name": printable(path.name),
        "description": description,
        "contentUrl": identifier,
        "contentSize": f"{path.stat().st_size} B",
        "encodingFormat": MEDIA_TYPES.get(path.suffix, OTHER_MEDIA_TYPE),
        "sha256": sha256_of_file(path),
    }


def _classes(names: list[str]) -> Node:
    return {
        "@type": "cr:RecordSet",
        "@id": "classes",
        "name": "classes",
        "description": "Names of the classes.",
        "dataType": "sc:Enumeration",
        "key": {"@id": "classes/index"},
        "field": [_field("classes", "index", "sc:Integer"), _field("classes", "name", "sc:Text")],
        "data": [{"classes/index": index, "classes/name": printable(name)} for index, name in enumerate(names)],
    }


def _samples(columns: list[str]) -> Node:
    meanings = {
        "sample_id": "Identifier of the sample.",
        "label": "Index of its class.",
        "image_digest": "First half of the SHA-256 of the image, in hexadecimal.",
    }
    fields = []
    for column in columns:
        field = _field("samples", column, "sc:Text") | {"description": meanings[column]}
        field["source"] = {"fileObject": {"@id": SAMPLES}, "extract": {"column": column}}
        if column == "label":
            field["dataType"] = ["sc:Integer", "cr:Label"]
            field["references"] = {"field": {"@id": "classes/index"}}
        fields.append(field)
    return {
        "@type": "cr:RecordSet",
        "@id": "samples",
        "name": "samples",
        "description": "The samples in their order.",
        "key": {"@id": "samples/sample_id"},
        "field": fields,
    }


def _field(record_set: str, name: str, kind: str) -> Node:
    return {"@type": "cr:Field", "@id": f"{record_set}/{name}", "name": name, "dataType": kind}
