"""Trained mappers and their pictures: how a whole file is made, and what is done to read it."""

import numpy as np

SHAPE = (1, 8, 8)
SETTINGS = {"latent": 3, "width": 4, "features": 8, "beta": 1.0, "pixel_sd": 0.1}


def made_mapper():
    from gfscore.projection.mappers.fitting import build_mapper, of_network

    network = build_mapper("beta_vae", SHAPE, **SETTINGS).eval()
    return of_network(network, images())


def images():
    return np.random.default_rng(2).random((4, *SHAPE)).astype(np.float32)


def mapper(folder):
    from gfscore.projection.mappers.fitting import save_mapper

    save_mapper(folder / "vae.safetensors", made_mapper(), metadata={})
    return folder / "vae.safetensors"


def read_mapper(path):
    """As a search does, but for the digest, which would refuse every damage."""
    from gfscore.core.digests import sha256_of_file
    from gfscore.projection.mappers.fitting import open_mapper

    found = open_mapper(path, sha256=sha256_of_file(path))
    codes, spread = found.encode(images())
    assert found.sigma.shape == (len(found.names),) == spread.shape[1:] and (found.sigma >= 0).all()
    assert found.decode(codes).shape == (4, *SHAPE)


def pictures(folder):
    from gfscore.projection.mappers.pictures import write_pictures

    write_pictures(folder / "pictures.npz", made_mapper(), images(), of_images=True)
    return folder / "pictures.npz"


def read_pictures(path):
    from gfscore.projection.mappers.pictures import read_pictures

    return [*read_pictures(path).values()]
