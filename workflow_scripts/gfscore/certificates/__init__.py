"""Certified radii: randomized smoothing, bounds propagated through a network, and what attacks find within."""
