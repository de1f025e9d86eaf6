"""The gate: rules, statistics with bounds, and the verdict."""
