"""Write down what an audit was asked for, every value with where it comes from."""

from pathlib import Path

from gfscore.core.digests import write_checksummed
from gfscore.workflow.jobs import logged_job


def write_configuration(text: str, path_to_configuration: Path | str) -> None:
    """Write the complete configuration of an audit, a text of YAML (see gfscore.workflow.resolved_file)."""
    write_checksummed(path_to_configuration, text)


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        write_configuration(snakemake.params.text, snakemake.output.configuration)
