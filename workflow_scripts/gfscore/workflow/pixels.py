"""Distances and normalisations of config.yaml in the unit of pixels, where 8 is easily written for 8/255.

Imports nothing heavy, because every run of Snakemake reads it.
"""

WHITE = 255
"""Of a pixel of eight bits: papers give radii as shares of it."""


def radius_mistakes(where, entry):
    """Yield radii and steps in l_inf of one measure that are longer than from black to white: pixels are in [0, 1]."""
    perturbation = entry.get("perturbation", {})
    if perturbation.get("family") == "linf_ball":
        yield from _too_long(f"{where}: perturbation", perturbation, ("eps",))
    if entry.get("norm") == "linf":
        yield from _too_long(where, entry, ("eps", "step_size", "largest_distance"))
        for attack in entry.get("attacks", []):
            # Steps of carlini-wagner are not in pixels, but it searches in l2 alone.
            if attack["name"] == "pgd":
                yield from _too_long(f"{where}: attacks: pgd", attack, ("step_size",))


def training_mistakes(where, entry):
    """The same of the perturbations that the workflow trains a model with, and measures its robust accuracy with."""
    threats = {"training: threat": entry.get("training", {}).get("threat"), "attack": entry.get("attack")}
    for name, threat in threats.items():
        if threat and threat["norm"] == "linf":
            yield from _too_long(f"{where}: {name}", threat, ("eps", "step_size"))


def mean_mistakes(where, entry):
    """Yield a `mean` of a model above its white: no mean of pixels is."""
    mean, white = entry.get("mean"), entry.get("value_range")
    if mean and white and max(mean) > white:
        fits = white < WHITE and max(mean) <= WHITE
        remedy = f"set value_range: {WHITE}, or divide mean and std by {WHITE}" if fits else "correct mean"
        yield f"{where}: mean: {max(mean):g} is above the white of the network, value_range: {white}; {remedy}"


def _too_long(where, settings, keys):
    for key in keys:
        given = settings.get(key, 0)
        if given > 1:
            whole = given <= WHITE and given == int(given)
            remedy = f"write {given:g}/{WHITE} as {given / WHITE:.5f}" if whole else "give a share of white"
            yield f"{where}: {key}: {given:g} in l_inf is more than from black to white: pixels are in [0, 1]; {remedy}"
