"""Mappers: an encoder from images to latent codes and a decoder U, whose latent dimensions can be moved one by one.

A kind is one module in this folder (a folder where it is long) with a declaration `KIND` (see
gfscore.projection.mappers.declared), and a function `build(image_shape, names, **arguments)` that returns a
gfscore.projection.mappers.networks.MapperNetwork and imports what is heavy when it is called.
"""
