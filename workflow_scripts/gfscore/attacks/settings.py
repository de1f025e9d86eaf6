"""Attacks within a ball as config.yaml names them, and what they need.

Imports nothing heavy, because config.yaml is checked with it.
"""

from gfscore.core.errors import InputError, unknown

WHITE_BOX = ("fgsm", "pgd", "apgd-ce", "apgd-dlr", "apgd-targeted", "fab")
"""Attacks that follow gradients."""

BLACK_BOX = ("square",)
"""Attacks that only see logits."""

OWN_SETTINGS = {
    "fgsm": (),
    "pgd": ("steps", "step_size", "restarts"),
    "apgd-ce": ("steps", "restarts"),
    "apgd-dlr": ("steps", "restarts"),
    "apgd-targeted": ("steps", "targets"),
    "fab": ("steps", "targets"),
    "square": ("queries",),
    "autoattack": ("version",),
}
"""Settings of each attack besides its name; all have to be given."""

FEWEST_CLASSES = {"apgd-dlr": 3, "apgd-targeted": 4}
"""Classes that the difference of logits ratio needs, which compares the first with the third or fourth logit."""

VERSIONS = {
    "standard": (
        {"name": "apgd-ce", "steps": 100, "restarts": 1},
        {"name": "apgd-targeted", "steps": 100, "targets": 9},
        {"name": "fab", "steps": 100, "targets": 9},
        {"name": "square", "queries": 5000},
    ),
    "rand": (
        {"name": "apgd-ce", "steps": 100, "restarts": 1, "gradient_samples": 20},
        {"name": "apgd-dlr", "steps": 100, "restarts": 1, "gradient_samples": 20},
    ),
}
"""Members of AutoAttack (Croce and Hein 2020, section 6), rand for networks that draw random numbers themselves."""


def expand(entries, classes):
    """Entries of a list of attacks with AutoAttack replaced by its members, in the order in which they run.

    `classes` K limits targets to K - 1. With 3 classes, for which the targeted difference of logits ratio is not
    defined, AutoAttack runs apgd-dlr in place of apgd-targeted; with 2 it leaves both out. Raises InputError for an
    unknown attack, a setting that is missing or unknown, and an attack that needs more classes.
    """
    found = []
    for entry in entries:
        _require_settings(entry)
        for member in _members(entry, classes):
            fewest = FEWEST_CLASSES.get(member["name"], 2)
            if classes < fewest:
                instead = "apgd-ce" if classes == 2 else "apgd-ce or apgd-dlr"
                raise InputError(
                    f"attack {member['name']!r} needs at least {fewest} classes, and here are {classes}: its loss "
                    f"compares that many logits; use {instead}"
                )
            limited = {"targets": min(member["targets"], classes - 1)} if "targets" in member else {}
            found.append(member | limited)
    return found


def require_attacks(settings, classes):
    """Raise InputError unless the attacks of a measure's `settings` are known, complete and fit for K `classes`."""
    expand(settings["attacks"], classes)


def _members(entry, classes):
    if entry["name"] != "autoattack":
        return [dict(entry)]
    members = []
    for member in VERSIONS[entry["version"]]:
        if classes >= FEWEST_CLASSES.get(member["name"], 2):
            members.append(member)
        elif member["name"] == "apgd-targeted" and classes >= FEWEST_CLASSES["apgd-dlr"]:
            members.append({"name": "apgd-dlr", "steps": member["steps"], "restarts": 1})
    return members


def _require_settings(entry):
    name = entry["name"]
    if name not in OWN_SETTINGS:
        raise InputError(unknown("attack", name, OWN_SETTINGS))
    own = OWN_SETTINGS[name]
    for key in entry:
        if key != "name" and key not in own:
            raise InputError(f"attack {name!r} has no setting {key!r}; it has {', '.join(own) or 'none'}")
    for key in own:
        if key not in entry:
            raise InputError(f"attack {name!r} lacks its setting {key!r}; it needs {', '.join(own)}")
    if "version" in own and entry["version"] not in VERSIONS:
        raise InputError(unknown("version of autoattack", entry["version"], VERSIONS))
