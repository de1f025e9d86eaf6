"""Models as config.yaml names them: the leaderboard, code that may be named, checkpoints fetched and safely read."""
