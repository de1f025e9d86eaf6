"""Names of config.yaml that become parts of paths: two that differ in case alone are one on some file systems.

Imports nothing heavy, because every run of Snakemake reads it.
"""


def case_mistakes(config):
    """Yield the names of one section that differ in case alone: on macOS and Windows they would share their files."""
    sections = {name: config[name] for name in ("audits", "datasets", "models", "measures", "mappers")}
    for zoo, threats in config["models"].items():
        sections |= {f"models: {zoo}/{threat}": models for threat, models in threats.items()}
    for where, entries in sections.items():
        alike = {}
        for name in entries:
            alike.setdefault(name.casefold(), []).append(repr(name))
        for names in alike.values():
            if len(names) > 1:
                yield f"{where}: {' and '.join(names)} differ in case alone and would share files on macOS; rename one"
