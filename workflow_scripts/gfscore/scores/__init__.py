"""The measures of single samples, and the class values and disparity made of them."""
