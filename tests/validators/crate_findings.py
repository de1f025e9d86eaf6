"""What roc-validator finds in a crate, required and recommended, as JSON: crate_findings.py FOLDER PROFILE.

The one address that it may ask for is the context of RO-Crate 1.1, which rocrate brings along.
"""

import json
import sys
from importlib.resources import files

import requests
from rocrate_validator import services
from rocrate_validator.models import Severity, ValidationSettings
from rocrate_validator.utils.http import HttpRequester

CONTEXT = "https://w3id.org/ro/crate/1.1/context"


class WithoutNetwork(requests.adapters.BaseAdapter):
    """Answers for the network."""

    def send(self, request, **_):
        """The context, or an error for any other address."""
        if request.url != CONTEXT:
            raise requests.ConnectionError(f"{request.method} {request.url}: there is no network in this test")
        response = requests.Response()
        response.url, response.request, response.status_code = request.url, request, 200
        response.headers["Content-Type"] = "application/ld+json"
        response._content = files("rocrate").joinpath("data/ro-crate.jsonld").read_bytes()
        return response

    def close(self):
        """Nothing is open."""


def findings(folder, profile):
    """One dict for each finding, with the check, its severity, what it says and about what; and the checks made."""
    settings = ValidationSettings(
        rocrate_uri=folder, profile_identifier=profile, requirement_severity=Severity.RECOMMENDED, no_cache=True
    )
    for scheme in ("https://", "http://"):
        HttpRequester().session.mount(scheme, WithoutNetwork())
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
