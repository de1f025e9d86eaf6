"""Every file that is read, damaged at seeded random places: refused by name, or read right; nothing else happens."""

import hashlib
import os

import numpy as np
import pytest

from faults.damage import damaged, damaged_json
from faults.kinds import KINDS
from faults.pool import watched
from gfscore.core.errors import InputError

pytestmark = pytest.mark.seconds(20)


@pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])
def test_a_damaged_file_is_refused_by_name_or_read_right(kind, tmp_path, trials):
    path = kind.make(tmp_path)
    content, original = path.read_bytes(), kind.read(path)

    def attempt(seed):
        """Whether the file of this seed was refused."""
        os.chdir(tmp_path)
        damage = damaged_json if kind.json else damaged
        # Each process has its own copy of everything, because files name one another.
        folder = tmp_path / str(os.getpid())
        own = folder / path.relative_to(tmp_path)
        if not own.exists():
            kind.make(_made(folder))
        own.write_bytes(damage(content, np.random.default_rng([seed, *_number_of(kind.name)])))
        try:
            found = kind.read(own)
        except InputError as error:
            assert own.name in str(error) or own.parent.name in str(error), f"no file is named: {error}"
            return True
        if kind.exact:
            assert len(found) == len(original) and all(map(np.array_equal, found, original)), "read wrong"
        return False

    outcomes = watched(attempt, range(trials(kind.cases)))
    faults = [f"seed {seed}: {fault}" for seed, fault, _ in outcomes if fault]
    assert not faults, f"{len(faults)} of {len(outcomes)}\n" + "\n".join(faults[:10])
    refused = sum(refused for _, _, refused in outcomes)
    print(f"{kind.name}: {refused} of {len(outcomes)} refused")
    assert refused > len(outcomes) / 10, "the damage is too mild to test anything"


def _made(folder):
    folder.mkdir(parents=True)
    return folder


def _number_of(name):
    return hashlib.sha256(name.encode()).digest()[:4]
