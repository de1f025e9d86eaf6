"""Functions of arrays: margins of logits, class values, confidence bounds, tests, ranks, sample sizes."""
