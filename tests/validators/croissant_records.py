"""What mlcroissant reads of a description, as JSON: croissant_records.py FILE RECORD_SET."""

import json
import sys

import mlcroissant


def contents(file, record_set):
    """Name, errors, warnings and licence of a dataset, digests of its files, and records of one set."""
    dataset = mlcroissant.Dataset(jsonld=file)
    metadata = dataset.metadata
    records = []
    for record in dataset.records(record_set):
        values = {}
        for name, value in record.items():
            values[name] = value.decode() if isinstance(value, bytes) else value
        records.append(values)
    return {
        "name": metadata.name,
        "errors": sorted(metadata.ctx.issues.errors),
        "warnings": sorted(metadata.ctx.issues.warnings),
        "licence": metadata.license,
        "files": {file.name: file.sha256 for file in metadata.distribution},
        "records": records,
    }


if __name__ == "__main__":
    print(json.dumps(contents(*sys.argv[1:]), default=int))
