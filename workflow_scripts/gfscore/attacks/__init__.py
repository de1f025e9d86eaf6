"""Attacks within a ball, and attacks that look for the nearest misclassified point.

An attack is one file, discovered by its name, which declares `ATTACK` (gfscore.attacks.declaration.Attack). `registry`
knows all of them. What computes them: `goals` (losses), `gradient_ascent` (steps and projections), `search` (images
leave the batch when they are fooled), `attack_lists` (one attack after the other), `ball_attacks`, `minimal_norm`, and
`libraries` and `square_search` (attacks of public libraries).
`batch_pgd` is the attack of training; `perturbations` are random, and their changes of the prediction are counted.
"""
