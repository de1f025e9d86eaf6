"""The temperature at which attack-free scores rank models best: objectives, search, and how sure it is."""
