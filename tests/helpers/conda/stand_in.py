"""The commands of conda that Snakemake calls, over py-rattler, with a channel of packages that the test built.

Real are the solving and the installing of conda packages, and the environment of Python in the prefix. Not real are
the packages: `python` and `pip` of the channel are empty, and what they stand for comes from the interpreter that runs
this file, by venv.
"""

import asyncio
import json
import os
import sys
import venv
from pathlib import Path

import yaml
from rattler import Channel, ChannelConfig, MatchSpec, install, solve
from rattler.platform import Platform

BASE = Path(os.environ["STAND_IN_BASE"])
"""Folder of what conda itself consists of: bin/activate, and channels/."""


def create(file, prefix):
    """Environment that an environment file describes; fails where conda would."""
    described = yaml.safe_load(Path(file).read_text())
    lines = described["dependencies"]
    config = ChannelConfig(channel_alias=f"{(BASE / 'channels').as_uri()}/")
    channels = [Channel(name, config) for name in described["channels"]]
    platforms = [str(Platform.current()), "noarch"]
    records = asyncio.run(solve(channels, [MatchSpec(line, strict=True) for line in lines], platforms=platforms))
    asyncio.run(install(records, prefix, show_progress=False, cache_dir=BASE / "packages"))
    installed = {record.name.normalized for record in records}
    if "python" in installed:
        venv.EnvBuilder(symlinks=True, with_pip="pip" in installed).create(prefix)


def main(arguments):
    """Answer one call; any other than Snakemake's own is an error."""
    match arguments:
        case ["--version"]:
            print("conda 24.7.1")
        case ["info", "--json"]:
            print(json.dumps({"conda_prefix": str(BASE), "platform": str(Platform.current())}))
        case ["config", "--get", "channel_priority", "--json"]:
            print(json.dumps({"get": {"channel_priority": "strict"}}))
        case ["env", "create", "--quiet", "--no-default-packages", "--file", file, "--prefix", prefix]:
            create(file, prefix)
        case ["clean", "-y", "--tarballs"]:
            # py-rattler keeps unpacked packages only
            pass
        case _:
            sys.exit(f"the stand-in for conda does not know: conda {' '.join(arguments)}")


if __name__ == "__main__":
    main(sys.argv[1:])
