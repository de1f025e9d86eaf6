"""Inspection in a process of its own: python -m gfscore.workflow.new_audit.inspecting REPLY, the request on its input.

A model of somebody else may crash, or take all memory; the process that asked says so. Lines of progress go to standard
output, the result as JSON to the file REPLY.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import warnings
from dataclasses import asdict
from pathlib import Path

from gfscore.core.errors import InputError
from gfscore.networks.architecture_files import FOLDER_VARIABLE, PACKAGE
from gfscore.networks.outputs import first_line
from gfscore.workflow.new_audit.found import module_name
from gfscore.workflow.new_audit.request import Request


def main(reply: Path) -> None:
    """Read the request, write the reply: {"error": words}, or the values of an Inspection."""
    request = Request.of_text(sys.stdin.read())
    # Records of digests and copied architectures belong to the audit, and it does not exist yet.
    with tempfile.TemporaryDirectory() as folder:
        os.environ[FOLDER_VARIABLE] = _architectures(request, Path(folder))
        from gfscore.workflow.new_audit.looking import inspect

        warnings.simplefilter("ignore")
        try:
            said = asdict(inspect(request, lambda line: print(line, flush=True)))
        except InputError as error:
            said = {"error": str(error)}
        except MemoryError:
            said = {"error": "not enough memory to open the model and 200 images; use a machine with more"}
        # Files of others, and the code that some are, may fail in any way, and end Python.
        except (Exception, SystemExit) as error:
            said = {"error": words_of(error, request)}
    reply.write_text(json.dumps(said), encoding="utf-8")


def words_of(error: BaseException, request: Request) -> str:
    """Message for an exception that nothing else explains: the files that were looked at, its type and first line."""
    files = ", ".join(filter(None, [*request.models, request.data]))
    return (
        f"{files}: one of these cannot be audited ({type(error).__name__}: {first_line(error)}); write it again by "
        "another tool, or describe it by hand (docs/add-a-model.md, docs/add-a-dataset.md)"
    )


def _architectures(request, folder):
    """Folder in which the file of --architecture stands beside those of the project, as it will after the copy."""
    inside = folder / PACKAGE
    inside.mkdir()
    for file in Path(PACKAGE).glob("*.py"):
        (inside / file.name).symlink_to(file.resolve())
    library, _, _ = (request.architecture or "").rpartition(":")
    file = Path(library)
    if library.endswith(".py") and file.is_file():
        target = inside / f"{module_name(file)}.py"
        target.unlink(missing_ok=True)
        target.write_bytes(file.read_bytes())
    return str(inside)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
