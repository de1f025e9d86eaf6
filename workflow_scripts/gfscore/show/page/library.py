"""JavaScript of Vega, Vega-Lite and vega-embed, which interprets expressions rather than evaluating them."""

from __future__ import annotations

import subprocess
import sys
from functools import cache

BUNDLE = "import sys, vl_convert; sys.stdout.buffer.write(vl_convert.javascript_bundle().encode())"


@cache
def start() -> subprocess.Popen[bytes]:
    """Begin to put the library together, in a process of its own beside whatever else is computed."""
    return subprocess.Popen([sys.executable, "-I", "-c", BUNDLE], stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@cache
def text() -> str:
    """The library, once it is there. Raises RuntimeError, with what the process said, where it failed."""
    process = start()
    bundle, said = process.communicate()
    if process.returncode:
        raise RuntimeError(f"the charts' library could not be put together: {said.decode(errors='replace')}")
    return bundle.decode()
