import ast
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "workflow_scripts"
FOLDERS = sorted(path.parent.name for path in (SCRIPTS / "gfscore").glob("*/__init__.py"))
FILES = {folder: [*(SCRIPTS / "gfscore" / folder).rglob("*.py")] for folder in FOLDERS}


@pytest.mark.parametrize("files", [*FILES.values(), [*SCRIPTS.glob("*.py")]], ids=[*FILES, "steps"])
def test_public_functions_say_what_they_take_and_return(files):
    """Their hints are checked by mypy, which lets functions without any pass."""
    untyped = []
    for path in files:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                names = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                bare = [each.arg for each in names if each.annotation is None and each.arg not in ("self", "cls")]
                untyped += [f"{path.name}:{node.lineno} {node.name}"] if bare or node.returns is None else []
    assert untyped == []
