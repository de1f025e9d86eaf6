"""Found by every Python with this folder on PYTHONPATH: notes what a script loaded, and whether it asked for a network.

One JSON file per process, in the folder GFSCORE_OBSERVATIONS: `argv`, `prefix` and `executable` of Python, `modules`
(name to file), `variables` of the environment by name, and `network` (what was asked of sockets, those of the file
system aside).
"""

import atexit
import json
import os
import sys
import uuid
from pathlib import Path

asked = []


def notice(event, arguments):
    # Sockets of the file system have text as their address, those of a network have a tuple.
    to_network = event in ("socket.connect", "socket.sendto") and isinstance(arguments[1], tuple)
    if to_network or event in ("socket.getaddrinfo", "socket.gethostbyname"):
        asked.append([event, repr(arguments[1:] if to_network else arguments)])


def write():
    # Asked at the end: what a step imports inside its functions counts as well.
    files = {name: getattr(module, "__file__", None) for name, module in list(sys.modules.items())}
    found = {"argv": sys.argv, "prefix": sys.prefix, "executable": sys.executable, "modules": files, "network": asked}
    found["variables"] = sorted(os.environ)
    path = Path(os.environ["GFSCORE_OBSERVATIONS"]) / f"{uuid.uuid4().hex}.json"
    path.write_text(json.dumps(found))


if os.environ.get("GFSCORE_OBSERVATIONS"):
    sys.addaudithook(notice)
    atexit.register(write)
