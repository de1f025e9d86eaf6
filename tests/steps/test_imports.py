"""What steps and rule files load: cheap steps no torch, rule files nothing heavy."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STEPS = sorted(path.stem for path in (ROOT / "workflow_scripts").glob("*.py"))


def of_every_rule(pattern):
    """What a pattern finds in the rule files, in their order."""
    text = "\n".join(path.read_text() for path in sorted((ROOT / "rules").glob("*.smk")))
    return re.findall(pattern, text, flags=re.MULTILINE)


def test_one_step_is_one_rule_is_one_script_of_the_same_name():
    rules, scripts = of_every_rule(r"^rule (\w+):"), of_every_rule(r'"../workflow_scripts/(\w+)\.py"')
    assert rules == scripts
    assert sorted(scripts) == STEPS


def test_every_script_has_a_function_of_its_name():
    for step in STEPS:
        text = (ROOT / f"workflow_scripts/{step}.py").read_text()
        assert f"\ndef {step}(" in text


def test_no_cheap_step_loads_torch_or_snakemake():
    code = """
import sys
from importlib import import_module

for step in sys.argv[1:]:
    import_module(step)
    if loaded := {"torch", "snakemake"} & set(sys.modules):
        sys.exit(f"{step} loads {loaded}")
"""
    environments = zip(of_every_rule(r"^rule (\w+):"), of_every_rule(r'"../envs/(\w+)\.yaml"'), strict=True)
    cheap = [step for step, name in environments if name == "analysis"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "workflow_scripts")}
    subprocess.run([sys.executable, "-c", code, *cheap], check=True, env=environment)


LOGITS_OF_DIGITS = """
import sys
from gfscore.images.sources.digits import Digits, open_source
from gfscore.networks.inference import extract_logits
from gfscore.networks.architectures import build_network

images = open_source(Digits(split="test", test_share=0.02, seed=0))
network = build_network("small_convnet", in_channels=1, image_size=(8, 8), classes=10, seed=0, width=4, pool=4)
assert extract_logits(network, images, batch_size=64, device="cpu")[2].shape[1] == 10
loaded = {"sklearn", "scipy.stats", "torch._dynamo", "torch._inductor", "torchvision"} & set(sys.modules)
if loaded:
    sys.exit(f"loaded: {loaded}")
"""


def test_a_job_on_the_digits_loads_no_compiler_and_no_scikit_learn():
    """Each takes longer than the arithmetic, in every one of a hundred jobs."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "workflow_scripts")}
    subprocess.run([sys.executable, "-c", LOGITS_OF_DIGITS], env=environment, check=True)


DRY_RUN_WITHOUT_HEAVY_PACKAGES = """
import sys
# Snakemake's SLURM plugin loads pandas itself; that is not the rules' doing.
import snakemake.cli, snakemake_executor_plugin_slurm
for name in [name for name in sys.modules if name.split(".")[0] in HEAVY] + list(HEAVY):
    sys.modules[name] = None
snakemake.cli.main(sys.argv[1:])
"""


def test_rule_files_lead_to_no_numpy_pandas_or_torch():
    """A dry run in a Python in which these packages cannot be imported any more."""
    code = f"HEAVY = {('numpy', 'pandas', 'scipy', 'torch', 'pyarrow')}" + DRY_RUN_WITHOUT_HEAVY_PACKAGES
    command = [sys.executable, "-c", code, "--dry-run", "--cores", "1", "--quiet", "--rerun-incomplete"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
