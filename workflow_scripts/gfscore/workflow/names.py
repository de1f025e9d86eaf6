"""Names of config.yaml that become parts of paths: two that differ in case alone are one on some file systems.

Imports nothing heavy, because every run of Snakemake reads it.
"""

from gfscore.networks import leaderboard
from gfscore.workflow import plan


def case_mistakes(config):
    """Yield the names of one section that differ in case alone: on macOS and Windows they would share their files."""
    sections = {name: config[name] for name in ("audits", "datasets", "models", "measures", "mappers")}
    # RobustBench's models need no entry, so its names are there as well.
    sections["models"] = dict.fromkeys([*config["models"], *(listing.dataset for listing in leaderboard.listings())])
    for zoo, threats in config["models"].items():
        sections |= {f"models: {zoo}/{threat}": plan.known_models(config, zoo, threat) for threat in threats}
    for where, entries in sections.items():
        alike = {}
        for name in entries:
            alike.setdefault(name.casefold(), []).append(repr(name))
        for names in alike.values():
            if len(names) > 1:
                yield f"{where}: {' and '.join(names)} differ in case alone and would share files on macOS; rename one"
