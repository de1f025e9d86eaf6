"""Proven bounds on what a network answers anywhere in a ball, which measures and training share.

In the order of use: `graph` reads a network into `operators` (one module per family, found by itself); `layers` writes
what stands between activations as sparse matrices; `balls` are what is proven about; `tightening` bounds the inputs of
activations layer by layer, and `relaxation` the functions of what is left, with `slopes` optimised; `branching` splits
balls; `proving` calls them, cheapest first. `certificates` hold what a proof consists of, and `checking`, which shares
no bound with the others, computes it again. `rounding` says how float64 errs.
"""
