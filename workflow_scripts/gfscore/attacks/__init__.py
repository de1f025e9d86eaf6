"""Attacks within a ball and to the nearest misclassified point; an attack is one file, found by itself.

Its file declares ATTACK, a gfscore.attacks.declaration.Attack, and is named as it is; registry knows all of them. The
other files hold what they share: losses, steps, searches and random perturbations.
"""
