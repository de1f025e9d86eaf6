"""What the source papers claim that does not reproduce and bears on a page, in the words of its section Limits."""

from __future__ import annotations

from collections.abc import Iterable

REFUTED = {
    "great": "the GREAT score is no certified radius (H7), and whether more robust models are less fair depends on the "
    "measure of disparity (H6)",
    "probabilistic": "a test that is repeated after every neighbour errs more often than its level says (EB4), and the "
    "printed interval leaves out the draw of the samples (EB3)",
    "adversarial": "adversarial accuracy by the published pseudo-code counts a wrong answer that the attack turns "
    "right (MA1)",
    "minimal": "the published pseudo-code takes a search that gave up for a distance (MA2)",
    "certified": "a smoothing certificate says nothing about the network before smoothing (MA3), and votes that choose "
    "a class cannot certify it too (MA4)",
    "errors": "the printed class accuracy of ten equal classes is 0.9 for one that is never recognised (CW2)",
    "groups": "the printed equalized odds and average odds of a perfect classifier are not 0 (PF5)",
    "projection": "the printed Deviation is impossible by its own formula (PF2), and the printed Coupling is 0 both "
    "when all dimensions matter alike and when one has all the influence (PF6)",
}
"""What a page shows -> what of the papers about it is refuted, with the numbers of the claims in the ledger."""

CALIBRATION = (
    "The GF-Score paper says that calibration by its Eq. 8 (score and clean accuracy over models) raises the agreement "
    "with robust accuracy on CIFAR-10 from 0.662 to 0.871. By its own tables it falls to 0.515, clean accuracy alone "
    "reaches 0.863, and its temperature does not maximise Eq. 8 (H1, H3, H4)."
)
"""The same of calibration."""


def refuted_here(kinds: Iterable[str], *, errors: object, groups: object, projection: object) -> list[str]:
    """Sentences of REFUTED that bear on a page with measures of these kinds and, where true, these sections."""
    sections = {"errors": errors, "groups": groups, "projection": projection}
    shown = set(kinds) | {name for name, there in sections.items() if there}
    return [words for name, words in REFUTED.items() if name in shown]
