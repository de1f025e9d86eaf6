"""Functions of arrays: margins of logits, class values, confidence bounds, tests, ranks, sample sizes.

Numbers go in and numbers come out: no file, image or network is known here. The modules by subject:

- `logits`, `margins`, `curves`: validated logits, the attack-free margin score, class scores by temperature;
- `classes`: class values and the worst classes;
- `intervals`, `proportions`, `betting`, `class_bounds`, `expected_bounds`: confidence bounds of class values;
- `multiple_tests`, `paired`, `ranking`, `survival`: comparison of models, of rankings, of classes;
- `sequential_tests`, `error_rates`: tests of probabilistic robustness;
- `draws`: random numbers that belong to samples;
- `quotients`: quotients and means that may be undefined;
- `tolerances`: how far computed numbers may be off by rounding.
"""

import math

SCALE = math.sqrt(math.pi / 2)
"""B = sqrt(pi/2), the upper end of the attack-free margin score's range [0, B]."""
