"""Mappers: an encoder from images to latent codes and a decoder U, whose latent dimensions can be moved one by one.

A kind is one module in this folder with a declaration `KIND` (see gfscore.projection.mappers.declared), and a function
`build(image_shape, names, **arguments)` that returns a torch module with

- `names`: the D latent dimensions that are moved, the first D columns of its codes;
- `limits`: (low, high), the range of their values, or None;
- `encode(images, conditions)`: images (n, C, H, W) in [0, 1] and conditions (n, A) or None to codes (n, Z) and the
  posterior standard deviation of the moved dimensions (n, D);
- `decode(codes)`: codes (n, Z) to images (n, C, H, W) in [0, 1];
- `trainer(learning_rate, generator)`: an object with `step(images, conditions)`, which makes one training step and
  returns its losses, `losses`, their names, and `parts`, the modules and optimisers to save for resumption.
"""
