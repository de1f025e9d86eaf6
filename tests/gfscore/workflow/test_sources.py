"""Which files a step consists of."""

import ast
from dataclasses import replace
from pathlib import Path

import pytest

from gfscore.measures import KINDS, NamedMeasure
from gfscore.workflow.sources import declaring_modules, needed_files, sources_of, workflow_files

SCRIPTS = Path(__file__).resolve().parents[3] / "workflow_scripts"


@pytest.fixture
def script(tmp_path):
    """A script that imports a module which reads a table."""
    files = {
        "step.py": "from gfscore.tables.parquet_tables import read",
        "gfscore/__init__.py": "",
        "gfscore/tables/parquet_tables.py": "def read():\n    return open('numbers.csv'), open('missing.csv'), '.csv'",
        "gfscore/tables/numbers.csv": "not, python: (",
        "gfscore/tables/others.csv": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path / "step.py"


def test_tables_that_a_module_reads_belong_to_the_step(script):
    found = [str(path.relative_to(script.parent)) for path in sources_of(script)]
    assert found == ["gfscore/tables/numbers.csv", "gfscore/tables/parquet_tables.py", "step.py"]


def test_files_of_a_package_that_discovers_them_belong_to_the_steps_that_look_through_it(script):
    package = script.parent / "gfscore/things"
    package.mkdir()
    (package / "__init__.py").write_text("import pkgutil\nfound = [*pkgutil.iter_modules(__path__)]\n")
    (package / "one.py").write_text("from gfscore.things.shared import used\n")
    for name in ("two", "shared"):
        (package / f"{name}.py").write_text("")
    looking, using = (script.with_stem(name) for name in ("looking", "using"))
    looking.write_text("from gfscore.things import found")
    using.write_text("from gfscore.things.one import used")
    assert {path.stem for path in sources_of(looking)} == {"looking", "__init__", "one", "two", "shared"}
    assert {path.stem for path in sources_of(using)} == {"using", "one", "shared"}


@pytest.mark.parametrize(("kind", "expected"), [("clean", True), ("corruption", False)])
def test_steps_of_an_audit_consist_of_the_functions_of_measures_from_logits_alone(kind, expected):
    function = "gfscore.measures.corruption.batch:measure_batch"
    settings = KINDS[kind].parse({"kind": kind})
    measure = NamedMeasure(kind, replace(KINDS[kind], function=function), settings)
    assert ("gfscore.measures.corruption.batch" in declaring_modules([measure])) == expected


def test_names_of_classes_belong_to_who_shows_them():
    assert SCRIPTS / "gfscore/core/imagenet_classes.csv" in sources_of(SCRIPTS / "plot_figures.py")


def test_steps_that_show_no_classifier_an_image_do_not_consist_of_code_for_devices():
    folders = {path.parent.name for path in sources_of(SCRIPTS / "extract_logits.py") if path.name == "devices.py"}
    assert folders == {"networks"}
    for step in ("score_models", "tabulate_audit", "judge_audit", "write_configuration"):
        assert "devices.py" not in {path.name for path in sources_of(SCRIPTS / f"{step}.py")}, step


def test_the_look_of_figures_belongs_to_who_draws_them():
    assert SCRIPTS / "gfscore/show/drawing/gfscore.mplstyle" in sources_of(SCRIPTS / "plot_figures.py")


def test_every_import_of_the_package_is_found_as_pythons_parser_finds_it():
    for path in SCRIPTS.rglob("*.py"):
        imported = set()
        run = [part for part in ast.parse(path.read_text()).body if not is_for_types(part)]
        for node in (inner for part in run for inner in ast.walk(part)):
            if isinstance(node, ast.ImportFrom):
                imported |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            elif isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
        stems = [SCRIPTS / name.replace(".", "/") for name in imported if name.startswith("gfscore.")]
        files = {file for stem in stems for file in (stem.with_suffix(".py"), stem / "__init__.py") if file.is_file()}
        assert files <= needed_files(path, SCRIPTS), path


def is_for_types(part):
    return isinstance(part, ast.If) and ast.unparse(part.test) == "TYPE_CHECKING"


def test_what_tools_leave_beside_the_code_is_no_file_of_the_workflow(tmp_path):
    root = tmp_path / ".hidden/gfscore.egg-info"
    scripts = root / "workflow_scripts"
    for name in ("step.py", "gfscore/__init__.py", "gfscore/__pycache__/a.pyc", "gfscore.egg-info/PKG-INFO"):
        (scripts / name).parent.mkdir(parents=True, exist_ok=True)
        (scripts / name).touch()
    (scripts / ".mypy_cache").mkdir()
    (scripts / ".mypy_cache/cache.json").touch()
    assert workflow_files(root) == ["Snakefile", "workflow_scripts/gfscore/__init__.py", "workflow_scripts/step.py"]


def test_imports_for_types_alone_are_left_out(script):
    for name in ("one", "two"):
        (script.parent / f"gfscore/{name}.py").write_text("")
    script.write_text(
        "if TYPE_CHECKING:\n    import numpy as np\n\n    from gfscore.one import A\n\nfrom gfscore.two import B\n"
    )
    assert {path.stem for path in sources_of(script)} == {"step", "two"}


def test_imports_over_several_lines_under_other_names_and_inside_functions_are_found(script):
    for name in ("one", "two", "three"):
        (script.parent / f"gfscore/{name}.py").write_text("")
    script.write_text(
        "from gfscore import (\n    one as first,  # why (and how)\n    two,\n)\ndef run():\n    import os, gfscore.three\n"
    )
    assert {path.stem for path in sources_of(script)} == {"step", "one", "two", "three"}
