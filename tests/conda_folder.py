"""The folder of a stand-in conda: its executable, its activation, a channel of two empty packages."""

import asyncio
import io
import json
import os
import platform
import sys
import tarfile
from pathlib import Path

from rattler.index import index_fs

STAND_IN = Path(__file__).parent / "conda/stand_in.py"
ACTIVATE = """\
export CONDA_PREFIX="$1"
export PATH="$1/bin:$PATH"
"""


def make_conda(base, *, channel="conda-forge"):
    """Write everything under `base`; returns the environment variables that put it to use."""
    folder = base / "channels" / channel
    add_package(folder, "python", platform.python_version())
    add_package(folder, "pip", "26.0", depends=["python"])
    asyncio.run(index_fs(folder))
    (base / "bin").mkdir()
    (base / "bin/activate").write_text(ACTIVATE)
    executable = base / "bin/conda"
    executable.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{STAND_IN}" "$@"\n')
    executable.chmod(0o755)
    return {"STAND_IN_BASE": str(base), "PATH": f"{base / 'bin'}:{os.environ['PATH']}"}


def add_package(folder, name, version, *, depends=()):
    """Write a package without content, for every platform, into a channel."""
    index = {"name": name, "version": version, "build": "0", "build_number": 0, "subdir": "noarch", "noarch": "generic"}
    index |= {"depends": list(depends), "timestamp": 1_700_000_000_000}
    files = {"info/index.json": index, "info/paths.json": {"paths": [], "paths_version": 1}}
    (folder / "noarch").mkdir(parents=True, exist_ok=True)
    with tarfile.open(folder / f"noarch/{name}-{version}-0.tar.bz2", "w:bz2") as archive:
        for path, content in files.items():
            data = json.dumps(content).encode()
            info = tarfile.TarInfo(path)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
