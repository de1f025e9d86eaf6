"""Models against each other: paired tests, ranks, and how rankings depend on arbitrary choices."""
