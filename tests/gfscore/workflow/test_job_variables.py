import os
import platform
import subprocess
import sys

import pytest

from gfscore.workflow.jobs import VARIABLES

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
with ThreadPoolExecutor(1) as elsewhere:
    ten_passes()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    ten_passes()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries cannot be told to keep memory")
@pytest.mark.parametrize("mebibytes", [8, 48])
def test_memory_of_a_pass_is_kept_for_the_next_one(mebibytes):
    others = {name: value for name, value in os.environ.items() if name not in VARIABLES}

    def faults(**variables):
        command = [sys.executable, "-c", FAULTS, str(mebibytes)]
        return int(subprocess.run(command, env=others | variables, capture_output=True, text=True, check=True).stdout)

    # Pages of 4 KiB or 2 MiB, in 40 arrays.
    assert faults(**VARIABLES) < 20
    assert faults() > 100
