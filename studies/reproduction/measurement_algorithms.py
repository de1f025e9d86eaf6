"""Claims of the handbook page on robustness measurement algorithms."""

import math

import numpy as np
from scipy.special import bdtrc, ndtr, ndtri

from gfscore.statistics.proportions import lower_shares
from studies.real_networks.statistics import mean_over_families
from studies.reproduction.claims import Claim, verdict
from studies.reproduction.real_networks import families_of, interval_words, means_note, measurement

PAPER = "Measurement algorithms"
ALPHA = 0.001
"""Error probability of one certificate, as in Cohen et al. 2019."""


def spike_counterexample(sigma=0.5, start=0.01, stop=0.02):
    """Base classifier on the line that answers B on (start, stop) and A elsewhere, certified at x = 0.

    Returns (certified radius of the smoothed classifier, distance at which the base classifier changes its answer).
    """
    share_of_a = 1 - (ndtr(stop / sigma) - ndtr(start / sigma))
    return float(sigma * ndtri(share_of_a)), start


def false_certificates_when_votes_are_reused(votes, alpha=ALPHA):
    """P(certificate that P(A) > 1/2) at a point where two classes have probability 1/2 each.

    The class is chosen by the same votes from which its Clopper-Pearson bound is taken; no class has P > 1/2, so every
    certificate is false and should occur with probability at most alpha.
    """
    count = np.arange(1, votes + 1)
    enough = count[lower_shares(count, votes, alpha=alpha) > 0.5][0]
    # Either class may win, and both cannot exceed half the votes.
    return float(2 * bdtrc(enough - 1, votes, 0.5))


def largest_radius(votes, alpha=ALPHA):
    """Largest radius, in units of sigma, that randomized smoothing can certify with this many votes."""
    return float(ndtri(alpha ** (1 / votes)))


def printed_adversarial_accuracy(positions, *, step):
    """Share of samples that the page's pseudo-code counts as correct, on a classifier of the line, all labels 1.

    The classifier answers 1 where cos(pi x) > 0; the attack is one signed gradient step that lowers cos(pi x).
    Returns (clean accuracy, adversarial accuracy as printed).
    """
    positions = np.asarray(positions, dtype=np.float64)
    attacked = positions + step * np.sign(np.sin(np.pi * positions))
    clean_accuracy = np.mean(np.cos(np.pi * positions) > 0)
    adversarial_accuracy = np.mean(np.cos(np.pi * attacked) > 0)
    return float(clean_accuracy), float(adversarial_accuracy)


def printed_minimal_perturbation(distance, *, step, max_iterations):
    """Norm that the page's pseudo-code returns for a classifier of the line with its boundary at `distance`."""
    position = 0.0
    iterations = 0
    while position < distance and iterations < max_iterations:
        position += step
        iterations += 1
    return position


def claims():
    """Claims of the page, in its order."""
    clean, attacked = printed_adversarial_accuracy([0.6, 0.7, 0.8], step=1.0)
    overshoot = printed_minimal_perturbation(1.0, step=0.3, max_iterations=100)
    given_up = printed_minimal_perturbation(1.0, step=0.3, max_iterations=2)
    radius, base_distance = spike_counterexample()
    reused = false_certificates_when_votes_are_reused(10_000)
    return [
        Claim(
            "MA1",
            PAPER,
            "Adversarial accuracy, as in the pseudo-code, is the performance in the worst case under the attack.",
            "at most the clean accuracy",
            f"clean {clean:.0%}, adversarial {attacked:.0%}",
            verdict(attacked <= clean),
            "Three misclassified points whose attacked copies overshoot into the right class. The pseudo-code attacks "
            "every sample and asks only about the copy; a sample that is wrong to begin with must count as failed.",
        ),
        Claim(
            "MA2",
            PAPER,
            "The pseudo-code for minimal perturbations measures the smallest change that causes a misclassification.",
            "1 (true distance)",
            f"{overshoot:.1f} with step 0.3; {given_up:.1f} after two iterations",
            verdict(math.isclose(overshoot, 1.0) and given_up >= 1.0),
            "It returns the first step beyond the boundary, unrefined, and when the search gives up it returns the "
            "distance walked so far, here below the true one. Such a sample is censored, not measured.",
        ),
        Claim(
            "MA3",
            PAPER,
            "A randomized-smoothing certificate guarantees that no attack within the radius changes the model's "
            "answer.",
            "radius <= distance to a change",
            f"radius {radius:.3f}; the base classifier changes at {base_distance:.2f}",
            verdict(radius <= base_distance),
            "The guarantee is for the smoothed classifier, another function than the network that was smoothed, and it "
            "speaks of a constant answer, not of a right one.",
        ),
        Claim(
            "MA4",
            PAPER,
            "The votes that choose the winning class also certify it, with mathematical certainty.",
            f"error 0; nominal {ALPHA:.3f}",
            f"{reused:.4f} at 10,000 votes",
            verdict(reused <= ALPHA),
            "Exact, for two classes with probability 1/2 each. Every certificate holds with probability 1 - alpha, not "
            "surely, and only if class and bound come from separate votes.",
        ),
        radii_below_distances(),
        order_of_costs(),
    ]


def radii_below_distances():
    """MA5: certified radii against the distances of examples found."""
    rows = measurement("smoothing")
    share = mean_over_families(rows["below"] / rows["both"], families_of(rows["model"]))
    return Claim(
        "MA5",
        PAPER,
        "Certified radii are often smaller than the perturbations that attacks find.",
        "no number",
        f"smaller for a share of {interval_words(share)} of images; median distance {rows['median_ratio'].min():.1f} "
        f"to {rows['median_ratio'].max():.1f} times the radius",
        verdict(share[1] > 0.5),
        f"Images with both, {rows['both'].min()} to {rows['both'].max()} of 100 by network. The radius is of the "
        "smoothed classifier (sigma 0.1, 1,000 votes), the distance (FMN, l2) of the network before smoothing. Radii "
        f"end at {largest_radius(1_000):.2f} sigma with 1,000 votes, at {largest_radius(100_000):.2f} with 100,000. "
        + means_note("smoothed"),
    )


def order_of_costs():
    """MA6: what the three kinds of measures cost."""
    rows = measurement("costs", audit="smoothed-checkpoints").pivot(index="model", columns="measure", values="passes")
    families = families_of(rows.index)
    words = []
    for name in ("attacked", "distance", "certified"):
        value, low, high = mean_over_families(rows[name], families)
        words.append(f"{value:,.0f} ({low:,.0f} to {high:,.0f})")
    return Claim(
        "MA6",
        PAPER,
        "A weak attack overestimates robustness; adversarial accuracy costs least, minimal perturbations more, "
        "certificates most.",
        "medium, high, very high",
        f"{words[0]}, {words[1]} and {words[2]} passes per image",
        verdict((rows["attacked"] < rows["distance"]).all() and (rows["distance"] < rows["certified"]).all()),
        "Means over networks, in this order on each; a pass with a gradient counts twice. The settings decide the "
        "order of the first two: PGD and Auto-PGD with two losses, 20 steps each, which let an image go once it is "
        "broken; FMN of 40 steps; 1,100 votes. In time, the digits audit has 2.0, 2.5 and 27.4 "
        "([Measures](measures.md) has the table). The source measures no model. That a weak attack overestimates "
        "follows from what an attack is: what it leaves "
        "standing another may break. " + means_note("smoothed"),
    )
