"""Published parameters of the fifteen common corruptions, five severities each.

For images of 32 pixels those of CIFAR-10-C, for 224 those of ImageNet-C (Hendrycks and Dietterich 2019, from the code
that made the sets). Other sizes use the set that is nearer on a logarithmic scale, with every length in pixels
multiplied by the ratio of the sides.
"""

import math
from typing import Annotated

from pydantic import AfterValidator, Field, JsonValue, WithJsonSchema

from gfscore.core.errors import InputError, unknown_name
from gfscore.core.settings import Unique

SEVERITIES = 5
"""Number of severities, from 1, mild, to 5, strong."""

SIDES = {"cifar": 32, "imagenet": 224}
"""Side in pixels that each set of parameters was published for."""

Parameters = float | tuple[float, ...]
"""Of one severity: the tuple that the corruption's function unpacks, or its only number."""

PARAMETERS: dict[str, dict[str, list[Parameters]]] = {
    # standard deviation
    "gaussian_noise": {"cifar": [0.04, 0.06, 0.08, 0.09, 0.10], "imagenet": [0.08, 0.12, 0.18, 0.26, 0.38]},
    # photons per unit of brightness
    "shot_noise": {"cifar": [500, 250, 100, 75, 50], "imagenet": [60, 25, 12, 5, 3]},
    # share of values replaced
    "impulse_noise": {"cifar": [0.01, 0.02, 0.03, 0.05, 0.07], "imagenet": [0.03, 0.06, 0.09, 0.17, 0.27]},
    # radius of the disk, blur of its edge
    "defocus_blur": {
        "cifar": [(0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)],
        "imagenet": [(3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)],
    },
    # standard deviation of the blur, largest displacement, rounds
    "glass_blur": {
        "cifar": [(0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2)],
        "imagenet": [(0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2)],
    },
    # radius, standard deviation
    "motion_blur": {
        "cifar": [(6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)],
        "imagenet": [(10, 3), (15, 5), (15, 8), (15, 12), (20, 15)],
    },
    # end (excluded) and step of the zoom factors, from 1
    "zoom_blur": {
        "cifar": [(1.06, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.01), (1.26, 0.01)],
        "imagenet": [(1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03)],
    },
    # mean and standard deviation of the flakes, zoom, threshold, radius and sd of their motion, weight of the image
    "snow": {
        "cifar": [
            (0.1, 0.2, 1, 0.6, 8, 3, 0.95),
            (0.1, 0.2, 1, 0.5, 10, 4, 0.9),
            (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
            (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
            (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
        ],
        "imagenet": [
            (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
            (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
            (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
            (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
            (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
        ],
    },
    # weights of image and ice
    "frost": {
        "cifar": [(1, 0.2), (1, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45)],
        "imagenet": [(1, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75)],
    },
    # weight of the fog, decay of its details
    "fog": {
        "cifar": [(0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75)],
        "imagenet": [(1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4)],
    },
    # increment of the value of HSV
    "brightness": {"cifar": [0.05, 0.1, 0.15, 0.2, 0.3], "imagenet": [0.1, 0.2, 0.3, 0.4, 0.5]},
    # factor of the deviation from the mean
    "contrast": {"cifar": [0.75, 0.5, 0.4, 0.3, 0.15], "imagenet": [0.4, 0.3, 0.2, 0.1, 0.05]},
    # strength and smoothness of the displacement, jitter of the corners; multiples of 244 (sic) for ImageNet-C
    "elastic_transform": {
        "cifar": [
            (0, 0, 32 * 0.08),
            (32 * 0.05, 32 * 0.2, 32 * 0.07),
            (32 * 0.08, 32 * 0.06, 32 * 0.06),
            (32 * 0.1, 32 * 0.04, 32 * 0.05),
            (32 * 0.1, 32 * 0.03, 32 * 0.03),
        ],
        "imagenet": [
            (244 * 2, 244 * 0.7, 244 * 0.1),
            (244 * 2, 244 * 0.08, 244 * 0.2),
            (244 * 0.05, 244 * 0.01, 244 * 0.02),
            (244 * 0.07, 244 * 0.01, 244 * 0.02),
            (244 * 0.12, 244 * 0.01, 244 * 0.02),
        ],
    },
    # share of the side that is kept
    "pixelate": {"cifar": [0.95, 0.9, 0.85, 0.75, 0.65], "imagenet": [0.6, 0.5, 0.4, 0.3, 0.25]},
    # quality of the compression
    "jpeg_compression": {"cifar": [80, 65, 58, 50, 40], "imagenet": [25, 18, 15, 10, 7]},
}
"""Parameters of severity 1 to 5, by corruption and set."""

LENGTHS = {
    "defocus_blur": (0, 1),
    "glass_blur": (0, 1),
    "motion_blur": (0, 1),
    "snow": (4, 5),
    "elastic_transform": (0, 1, 2),
}
"""Positions of the parameters that are lengths in pixels."""


def _corruption(name: str) -> str:
    if name not in PARAMETERS:
        raise ValueError(unknown_name("corruption", name, PARAMETERS))
    return name


_NAME_SCHEMA: dict[str, JsonValue] = {"type": "string", "enum": list(PARAMETERS)}
_UNIQUE_SCHEMA: dict[str, JsonValue] = {"uniqueItems": True}

CorruptionName = Annotated[str, AfterValidator(_corruption), WithJsonSchema(_NAME_SCHEMA)]
Corruptions = Annotated[
    Unique[CorruptionName],
    Field(
        min_length=1,
        description="Kinds of corruption (Hendrycks and Dietterich 2019).",
        json_schema_extra=_UNIQUE_SCHEMA,
    ),
]
"""Setting: names of corruptions."""

Severity = Annotated[int, Field(ge=1, le=SEVERITIES)]
Severities = Annotated[
    Unique[Severity],
    Field(min_length=1, description="From 1, mild, to 5, strong.", json_schema_extra=_UNIQUE_SCHEMA),
]
"""Setting: severities."""


def parameters_of(corruption: str, severity: int, side: int) -> Parameters:
    """Parameters of a corruption for images of any size.

    Parameters
    ----------
    corruption : str
        A key of PARAMETERS.
    severity : int
        From 1, mild, to 5, strong.
    side : int
        Shorter side of the images, in pixels.

    Returns
    -------
    float or tuple of float
        The published ones of the nearer size, lengths in pixels multiplied by the ratio of the sides.

    Raises
    ------
    InputError
        For an unknown corruption, and for a severity other than 1 to 5.
    """
    if corruption not in PARAMETERS:
        raise InputError(f"corruption {corruption!r} is unknown; choose one of {', '.join(PARAMETERS)}")
    if severity not in range(1, SEVERITIES + 1):
        raise InputError(f"severity {severity!r} of {corruption} is unknown; choose one of 1 to {SEVERITIES}")

    nearest = min(SIDES, key=lambda name: abs(math.log(side / SIDES[name])))
    published = PARAMETERS[corruption][nearest][severity - 1]
    if not isinstance(published, tuple) or corruption not in LENGTHS:
        return published

    ratio = side / SIDES[nearest]
    scaled = list(published)
    for position in LENGTHS[corruption]:
        scaled[position] *= ratio
    return tuple(scaled)
