"""Attacks found in the files of this folder, and the lists of attacks in settings of measures.

Imports nothing heavy, because the configuration is checked with it.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, ValidationError

from gfscore.attacks.declaration import NO_GRADIENTS, Attack, AttackSettings, Form, Member, Norm, beyond_white
from gfscore.core.discovery import declarations
from gfscore.core.errors import InputError, unknown_name
from gfscore.core.mappings import by_name
from gfscore.core.settings import PlainSettings, first_fault

ATTACKS: dict[str, Attack] = by_name(declarations("gfscore.attacks", "ATTACK").values())
"""Every attack by its name."""

BALL_ATTACKS: dict[str, Form] = {name: attack.in_ball for name, attack in ATTACKS.items() if attack.in_ball}
"""Attacks that search within a ball: their form for it, by name."""

MINIMAL_ATTACKS: dict[str, Form] = {name: attack.nearest for name, attack in ATTACKS.items() if attack.nearest}
"""Attacks that look for the nearest misclassified point: their form for it, by name."""

if TYPE_CHECKING:
    BallAttack = AttackSettings
    MinimalAttack = AttackSettings
else:

    def _union_of_settings(forms):
        # Type of an entry in a list of attacks; its `name` decides which attack's settings it has.
        classes = [form.settings for form in forms.values()]
        return Annotated[reduce(or_, classes), Field(discriminator="name")]

    BallAttack = _union_of_settings(BALL_ATTACKS)
    MinimalAttack = _union_of_settings(MINIMAL_ATTACKS)


def parse_attack(entry: PlainSettings, forms: Mapping[str, Form]) -> AttackSettings:
    """Settings of an attack from its entry in a list; settings that the entry lacks get their defaults.

    Parameters
    ----------
    entry : mapping
        Name of the attack and its settings.
    forms : mapping
        BALL_ATTACKS or MINIMAL_ATTACKS.

    Raises
    ------
    InputError
        For an unknown attack, an unknown setting, and a value that a setting cannot have.
    """
    name = entry["name"]
    if name not in forms:
        raise InputError(unknown_name("attack", name, forms))
    try:
        return forms[name].settings.model_validate(dict(entry))
    except ValidationError as error:
        raise InputError(f"attack {name!r}: {first_fault(error)}; got {error.errors()[0]['input']!r}") from error


def expand(attacks: Iterable[AttackSettings], classes: float) -> list[Member]:
    """Attacks within a ball in the order in which they run; an ensemble such as AutoAttack gives its members.

    With few classes, a member whose loss needs more gives way to the attack that its declaration names for fewer
    classes (`with_fewer`), or is left out where the ensemble has that attack already: with 3 classes AutoAttack runs
    apgd-dlr in place of apgd-targeted, with 2 neither.

    Parameters
    ----------
    attacks : iterable of AttackSettings
        Settings of attacks of BALL_ATTACKS.
    classes : float
        Number K of classes of the data; infinite where it is unknown. Limits targets to K - 1.

    Returns
    -------
    list of dict
        The `name` of each attack and the arguments of its function.

    Raises
    ------
    InputError
        For an attack of the list itself that needs more classes.
    """
    expanded: list[Member] = []
    for attack in attacks:
        for member in _members(attack, classes):
            name = member["name"]
            needed = ATTACKS[name].fewest_classes
            if classes < needed:
                substitutes = _substitutes(name, classes)
                remedy = f"use {' or '.join(reversed(substitutes))}" if substitutes else "leave it out"
                raise InputError(
                    f"attack {name!r} needs at least {needed} classes, and the data has {classes}: its loss compares "
                    f"that many logits; {remedy}"
                )
            if "targets" in member:
                expanded.append({**member, "targets": min(member["targets"], classes - 1)})
            else:
                expanded.append(member)
    return expanded


def follow_gradients(names: Iterable[str]) -> bool:
    """Whether all attacks of these names, none of them an ensemble, follow gradients: one that is 0 stops them."""
    return all(ATTACKS[name].gradients != NO_GRADIENTS for name in names)


def _members(attack: AttackSettings, classes: float) -> list[Member]:
    list_members = BALL_ATTACKS[attack.name].members
    if list_members is None:
        return [attack.model_dump()]

    declared = list_members(attack)
    names = {member["name"] for member in declared}
    members = []
    for member in declared:
        if classes >= ATTACKS[member["name"]].fewest_classes:
            members.append(member)
            continue
        substitutes = _substitutes(member["name"], classes)
        if not substitutes or substitutes[0] in names:
            continue
        # The substitute takes over the member's values of the settings that both attacks have.
        entry = {"name": substitutes[0]}
        for key in BALL_ATTACKS[substitutes[0]].settings.model_fields:
            if key in member and key != "name":
                entry[key] = member[key]
        members.append(parse_attack(entry, BALL_ATTACKS).model_dump())
    return members


def _substitutes(name: str, classes: float) -> list[str]:
    # Attacks that `with_fewer` names, one after the other, as far as they run with this number of classes.
    names = []
    name = ATTACKS[name].with_fewer
    while name:
        if classes >= ATTACKS[name].fewest_classes:
            names.append(name)
        name = ATTACKS[name].with_fewer
    return names


def modules_of(attacks: Sequence[AttackSettings], forms: Mapping[str, Form]) -> tuple[str, ...]:
    """Modules that declare the attacks of a list, the members of ensembles, and the substitutes for few classes."""
    names = dict.fromkeys(attack.name for attack in attacks)
    for attack in attacks:
        list_members = forms[attack.name].members
        if list_members is not None:
            names.update(dict.fromkeys(member["name"] for member in list_members(attack)))
    for name in list(names):
        names.update(dict.fromkeys(_substitutes(name, math.inf)))
    return tuple(ATTACKS[name].module for name in names)


def ball_mistakes(
    attacks: Sequence[AttackSettings], *, norm: Norm, eps: float, classes: float
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield what is wrong with attacks in a ball, as the keys of the setting and a message with the remedy.

    Distances beyond white, attacks that do not search in the norm, and attacks that need more classes than there are.

    Parameters
    ----------
    attacks : sequence of AttackSettings
        Setting `attacks` of a measure.
    norm : {"linf", "l2"}
    eps : float
        Radius of the ball.
    classes : float
        Number K of classes of the data; infinite where it is unknown.
    """
    if norm == "linf":
        for key, words in beyond_white({"eps": eps}, ("eps",)):
            yield (key,), words
        for attack in attacks:
            for key, words in beyond_white(attack.model_dump(), ("step_size",)):
                yield ("attacks", attack.name, key), words
    for words in norm_mistakes(attacks, norm):
        yield ("attacks",), words
    try:
        expand(attacks, classes)
    except InputError as error:
        yield ("attacks",), str(error)


def norm_mistakes(attacks: Sequence[AttackSettings], norm: str) -> Iterator[str]:
    """Yield a message with the remedy for each attack that does not search in a norm."""
    for attack in attacks:
        norms = ATTACKS[attack.name].norms
        if norm not in norms:
            names = ", ".join(norms)
            yield f"{attack.name} searches in {names} only; leave it out, or set norm: {names}"
