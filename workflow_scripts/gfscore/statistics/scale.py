"""Scale of the attack-free margin score. Imports nothing heavy."""

import math

SCALE = math.sqrt(math.pi / 2)
"""B = sqrt(pi/2), the upper end of the attack-free margin score's range [0, B]."""
