"""Numbers in, numbers out: margins of logits, class values, bounds, tests, ranks, sample sizes."""
