"""Agreement of measures: rank correlations, falsification by attacks, gradient masking, radii, decisions."""
