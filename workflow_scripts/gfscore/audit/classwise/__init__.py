"""Which class a classifier takes for which, and what that says of targeted attacks."""
