"""Every attack, found by its file, and lists of attacks as the configuration holds them.

Imports nothing heavy, because the configuration is checked with it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, ValidationError

from gfscore.attacks.declaration import Attack, AttackSettings, Form
from gfscore.core.discovery import declarations
from gfscore.core.errors import InputError, unknown

ATTACKS: dict[str, Attack] = {attack.name: attack for attack in declarations("gfscore.attacks", "ATTACK").values()}
"""Every attack by its name."""

BALL_ATTACKS: dict[str, Form] = {name: attack.in_ball for name, attack in ATTACKS.items() if attack.in_ball}
"""How attacks search within a ball, by their name."""

MINIMAL_ATTACKS: dict[str, Form] = {name: attack.nearest for name, attack in ATTACKS.items() if attack.nearest}
"""How attacks look for the nearest misclassified point, by their name."""

if TYPE_CHECKING:
    BallAttack = AttackSettings
    MinimalAttack = AttackSettings
else:
    BallAttack, MinimalAttack = (
        Annotated[reduce(or_, [form.settings for form in found.values()]), Field(discriminator="name")]
        for found in (BALL_ATTACKS, MINIMAL_ATTACKS)
    )


def modules_of(attacks: Sequence[AttackSettings], known: Mapping[str, Form]) -> tuple[str, ...]:
    """Modules that declare the attacks of a list and their members, and what stands in for these with few classes."""
    waiting, found = [attack.name for attack in attacks], dict.fromkeys(attack.name for attack in attacks)
    for attack in attacks:
        members = known[attack.name].members
        waiting += [member["name"] for member in members(attack)] if members else []
    while waiting:
        name = waiting.pop()
        found[name] = None
        if ATTACKS[name].with_fewer:
            waiting.append(ATTACKS[name].with_fewer)
    return tuple(ATTACKS[name].module for name in found)


def other_norms(attacks: Sequence[AttackSettings], norm: str) -> Iterator[str]:
    """Yield what is wrong with attacks that do not search in a norm, with the remedy."""
    for attack in attacks:
        if norm not in ATTACKS[attack.name].norms:
            known = ", ".join(ATTACKS[attack.name].norms)
            yield f"{attack.name} searches in {known} only; leave it out, or set norm: {known}"


def complete(entry: Mapping[str, Any], known: Mapping[str, Form]) -> dict[str, Any]:
    """Entry of a list of attacks with its defaults, from BALL_ATTACKS or MINIMAL_ATTACKS.

    Raises InputError for an unknown attack, an unknown setting, and a value that a setting cannot have.
    """
    return _parsed(entry, known).model_dump()


def expand(entries: Iterable[Mapping[str, Any]], classes: float) -> list[dict[str, Any]]:
    """Entries of a list of attacks within a ball, lists replaced by their members, in the order in which they run.

    `classes` K limits targets to K - 1. A member that needs more classes is replaced by the attack that it declares for
    fewer, or left out where that is a member already: with 3 classes AutoAttack runs apgd-dlr in place of
    apgd-targeted, with 2 neither. Settings that are not given have their defaults. Raises InputError as `complete`
    does, and for an attack that needs more classes.
    """
    found = []
    for entry in entries:
        for member in _members(_parsed(entry, BALL_ATTACKS), classes):
            name = member["name"]
            if classes < ATTACKS[name].fewest_classes:
                others = _instead_of(name, classes)
                raise InputError(
                    f"attack {name!r} needs at least {ATTACKS[name].fewest_classes} classes, and here are {classes}: "
                    f"its loss compares that many logits; "
                    + (f"use {' or '.join(reversed(others))}" if others else "leave it out")
                )
            limited = {"targets": min(member["targets"], classes - 1)} if "targets" in member else {}
            found.append({**member, **limited})
    return found


def _parsed(entry, known):
    name = entry["name"]
    if name not in known:
        raise InputError(unknown("attack", name, known))
    try:
        return known[name].settings.model_validate(dict(entry))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise InputError(f"attack {name!r}: {where}: {first['msg']}; got {first['input']!r}") from error


def _members(attack, classes):
    listed = BALL_ATTACKS[attack.name].members
    if listed is None:
        return [attack.model_dump()]
    members = {member["name"]: member for member in listed(attack)}
    found = []
    for name, member in members.items():
        if classes >= ATTACKS[name].fewest_classes:
            found.append(member)
        elif (instead := _instead_of(name, classes)) and instead[0] not in members:
            own = BALL_ATTACKS[instead[0]].settings.model_fields
            shared = {key: value for key, value in member.items() if key in own}
            found.append(complete(shared | {"name": instead[0]}, BALL_ATTACKS))
    return found


def _instead_of(name, classes):
    # Attacks for fewer classes that so many are enough for, the nearest to it first.
    found = []
    while name := ATTACKS[name].with_fewer:
        if classes >= ATTACKS[name].fewest_classes:
            found.append(name)
    return found
