"""Models against each other: paired tests, ranks, and what rankings owe to choices."""
