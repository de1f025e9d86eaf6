"""Parts of a page of docs/ that a tool makes anew."""

import sys
from pathlib import Path

# The package need not be installed: its folder is the one that the workflow's scripts use.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "workflow_scripts"))

from gfscore.core.errors import InputError


def with_block(text: str, name: str, block: str, *, made_by: str) -> str:
    """The page's text with a block between the lines that name it and its tool; InputError where these are missing."""
    first = f"<!-- {name}: made by tools/{made_by}.py -->\n"
    last = f"<!-- end of {name} -->\n"
    if first not in text or last not in text:
        raise InputError(f"the page lacks the lines {first.strip()} and {last.strip()}; restore them")
    before, after = text.partition(first)[0], text.partition(last)[2]
    return f"{before}{first}\n{block}\n{last}{after}"
