"""Write gfscore/core/imagenet_classes.csv: wnid and name of the 1,000 ImageNet classes.

The names are torchvision's, the wnids timm's, both in the order of the sorted wnids; each name is checked against the
WordNet lemmas of its wnid that timm ships, so a shift by one place cannot pass. Both packages are in the project's
environment. Run from anywhere: `.venv/bin/python tools/write_imagenet_names.py`.
"""

import csv
import re
import runpy
from importlib.util import find_spec
from io import StringIO
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "workflow_scripts" / "gfscore" / "core" / "imagenet_classes.csv"
TIMM = Path("data", "_info")
# torchvision adds a word where WordNet has the same lemma for two classes.
MADE_UNIQUE = {"n02012849": "crane bird"}


def imagenet_names():
    """Pairs of wnid and name in the order of the wnids; raises ValueError where the two packages disagree."""
    timm, torchvision = (Path(find_spec(name).origin).parent for name in ("timm", "torchvision"))
    wnids = (timm / TIMM / "imagenet_synsets.txt").read_text().split()
    lines = (timm / TIMM / "imagenet_synset_to_lemma.txt").read_text().splitlines()
    lemmas = dict(line.split("\t") for line in lines)
    # Read as a file: importing torchvision would load torch for a list of words.
    names = runpy.run_path(str(torchvision / "models" / "_meta.py"))["_IMAGENET_CATEGORIES"]
    if len(set(names)) != len(names) or wnids != sorted(wnids):
        raise ValueError("names must be unique and wnids sorted")
    for wnid, name in zip(wnids, names, strict=True):
        if not set(_words(name)) <= set(_words(lemmas[wnid])) and MADE_UNIQUE.get(wnid) != name:
            raise ValueError(f"{wnid} is called {name!r} by torchvision, but {lemmas[wnid]!r} in WordNet")
    return list(zip(wnids, names, strict=True))


def _words(text):
    return re.findall(r"\w+", text.lower())


if __name__ == "__main__":
    text = StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(("wnid", "name"))
    rows.writerows(imagenet_names())
    TABLE.write_text(text.getvalue(), encoding="utf-8")
    print(f"wrote {TABLE.relative_to(ROOT)}")
