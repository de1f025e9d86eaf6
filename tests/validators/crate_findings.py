"""What roc-validator finds in a crate, required and recommended, as JSON: crate_findings.py FOLDER PROFILE [ADDRESS CODE].

It may ask for the context of RO-Crate 1.1, which rocrate brings along, and for files at the address of published code,
which are those of the folder of code.
"""

import json
import sys
from importlib.resources import files
from pathlib import Path

import requests
from rocrate_validator import services
from rocrate_validator.models import Severity, ValidationSettings
from rocrate_validator.utils.http import HttpRequester

CONTEXT = "https://w3id.org/ro/crate/1.1/context"


class WithoutNetwork(requests.adapters.BaseAdapter):
    """Answers for the network."""

    def __init__(self, address, code):
        super().__init__()
        self.address, self.code = address, code

    def send(self, request, **_):
        """The context, or a file of the published code; an error for any other address."""
        response = requests.Response()
        response.url, response.request, response.status_code = request.url, request, 200
        if request.url == CONTEXT:
            response.headers["Content-Type"] = "application/ld+json"
            response._content = files("rocrate").joinpath("data/ro-crate.jsonld").read_bytes()
        elif self.address and request.url.startswith(self.address):
            response._content = (Path(self.code) / request.url.removeprefix(self.address)).read_bytes()
            response.headers["Content-Length"] = str(len(response._content))
        else:
            raise requests.ConnectionError(f"{request.method} {request.url}: there is no network in this test")
        return response

    def close(self):
        """Nothing is open."""


def findings(folder, profile, address=None, code=None):
    """One dict for each finding, with the check, its severity, what it says and about what; and the checks made."""
    settings = ValidationSettings(
        rocrate_uri=folder, profile_identifier=profile, requirement_severity=Severity.RECOMMENDED, no_cache=True
    )
    for scheme in ("https://", "http://"):
        HttpRequester().session.mount(scheme, WithoutNetwork(address, code))
    result = services.validate(settings)
    found = []
    for issue in result.get_issues(Severity.RECOMMENDED):
        about = issue.violatingPropertyValue or issue.violatingEntity
        severity = issue.severity.name.lower()
        found.append(
            {"check": issue.check.identifier, "severity": severity, "message": issue.message, "about": str(about)}
        )
    profiles = {check.requirement.profile.identifier for check in result.executed_checks}
    return {"findings": found, "checks": len(result.executed_checks), "profiles": sorted(profiles)}


if __name__ == "__main__":
    json.dump(findings(*sys.argv[1:]), sys.stdout)
