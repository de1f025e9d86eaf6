"""Choice of the temperature of attack-free scores: objectives, search, and uncertainty."""
