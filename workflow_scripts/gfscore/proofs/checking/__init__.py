"""Independent check of certificates and counterexamples, in numpy and float64.

Bounds are computed again from the operators of the network: intervals operator by operator, and linear functions that
are carried back to the image (CROWN; Zhang et al. 2018). The search computes them by other code. Only the format of
certificates and the operators' weights are common to both. Every bound allows for the rounding of its own computation.

In the order of use: `plain_network` computes with operators; `trees` reads the parts that a certificate splits the ball
into; `activations` draws lines around activations; `bounds` puts them together in a ball; `check` says what is proven.
"""
