import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "workflow_scripts/gfscore"


@pytest.mark.parametrize("folder", sorted(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()))
def test_public_functions_say_what_they_take_and_return(folder):
    """Their hints are checked by mypy, which lets functions without any pass."""
    untyped = []
    for path in (PACKAGE / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                names = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                bare = [each.arg for each in names if each.annotation is None and each.arg not in ("self", "cls")]
                untyped += [f"{path.name}:{node.lineno} {node.name}"] if bare or node.returns is None else []
    assert untyped == []
