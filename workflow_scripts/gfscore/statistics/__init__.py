"""Functions of arrays: margins of logits, class values, confidence bounds, tests, ranks, sample sizes."""

import math

# ---- Scale of the attack-free margin score. Imports nothing heavy.


SCALE = math.sqrt(math.pi / 2)
"""B = sqrt(pi/2), the upper end of the attack-free margin score's range [0, B]."""
