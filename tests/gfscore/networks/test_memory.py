import platform
import subprocess
import sys
from pathlib import Path

import pytest

FAULTS = """
import resource
import sys
from concurrent.futures import ThreadPoolExecutor
import numpy as np

def ten_passes():
    for _ in range(10):
        # As the layers of a network do: freed together; as batches do: made by another thread than frees them.
        arrays = [*map(np.ones, sizes), *elsewhere.map(np.ones, sizes)]
        del arrays

sizes = [int(sys.argv[1]) << 17] * 2
if sys.argv[2] == "kept":
    import gfscore.networks.inference
with ThreadPoolExecutor(1) as elsewhere:
    ten_passes()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    ten_passes()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries cannot be told to keep memory")
@pytest.mark.parametrize("mebibytes", [8, 48])
def test_memory_of_a_pass_is_kept_for_the_next_one(mebibytes):
    package = Path(__file__).resolve().parents[3] / "workflow_scripts"

    def faults(kept):
        command = [sys.executable, "-c", FAULTS, str(mebibytes), kept]
        run = subprocess.run(command, env={"PYTHONPATH": str(package)}, capture_output=True, text=True, check=True)
        return int(run.stdout)

    # Pages of 4 KiB or 2 MiB, in 40 arrays.
    assert faults("kept") < 20
    assert faults("handed back") > 100
