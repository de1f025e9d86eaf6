"""JavaScript of Vega, Vega-Lite and vega-embed, which interprets expressions rather than evaluating them."""

from __future__ import annotations

import subprocess
import sys
from functools import cache

BUNDLE = "import sys, vl_convert; sys.stdout.buffer.write(vl_convert.javascript_bundle().encode())"


@cache
def start() -> subprocess.Popen[bytes]:
    """Begin to put the library together, in a process of its own beside whatever else is computed."""
    return subprocess.Popen([sys.executable, "-I", "-c", BUNDLE], stdout=subprocess.PIPE)


@cache
def text() -> str:
    """The library, once it is there. Raises RuntimeError where the process failed, which tells why on stderr."""
    process = start()
    bundle, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(f"the charts' library could not be put together (status {process.returncode})")
    return bundle.decode()
