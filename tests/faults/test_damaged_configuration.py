"""config.yaml, damaged: refused by name, or a configuration that can be planned; never anything else."""

import numpy as np
import yaml

from faults.damage import changed_tree, damaged
from faults.pool import watched
from gfscore.core.errors import InputError
from gfscore.workflow.plan import Run
from gfscore.workflow.targets import audit_results
from helpers.configurations import ROOT, completed

CASES = 200


def test_a_damaged_configuration_is_refused_by_name_or_can_be_planned(trials):
    content = (ROOT / "config.yaml").read_bytes()
    whole = load(content)

    def attempt(seed):
        rng = np.random.default_rng(seed)
        if seed % 2:
            config = changed_tree(whole, rng)
        else:
            try:
                config = load(damaged(content, rng))
            # Snakemake itself says that the file is no YAML.
            except (yaml.YAMLError, UnicodeDecodeError):
                return True
        if not isinstance(config, dict):
            return True
        try:
            config = completed(config)
        except InputError as error:
            assert "config.yaml" in str(error)
            return True
        for audit in config["run"]:
            assert audit_results(Run(config).audits[audit])
            assert Run(config).audits[audit].models
        return False

    outcomes = watched(attempt, range(trials(CASES)))
    faults = [f"seed {seed}: {fault}" for seed, fault, _ in outcomes if fault]
    assert not faults, f"{len(faults)} of {len(outcomes)}\n" + "\n".join(faults[:10])
    assert sum(refused for _, _, refused in outcomes) > len(outcomes) / 2


def load(content):
    return yaml.load(content, Loader=yaml.CSafeLoader)
