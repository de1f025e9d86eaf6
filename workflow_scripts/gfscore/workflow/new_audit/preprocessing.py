"""Preprocessing of pixels by a network: what --preprocessing names, in words, and applied to images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from gfscore.core.errors import InputError
from gfscore.core.lazy import np
from gfscore.core.settings import WHITE

Numbers = tuple[float, ...]
"""One number for each channel."""

NORMALISATIONS: Mapping[str, tuple[Numbers, Numbers] | None] = {
    "none": None,
    "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "cifar10": ((0.4914, 0.4822, 0.4465), (0.2471, 0.2435, 0.2616)),
    "half": ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
    "caffe": ((0.485, 0.456, 0.406), (1 / 255, 1 / 255, 1 / 255)),
}
"""Mean and standard deviation by the name that --preprocessing takes, of red, green and blue in [0, 1]."""


@dataclass(frozen=True)
class Preprocessing:
    """What becomes of pixels in [0, 1] before the first layer of a network; by default they stay as they are.

    Parameters
    ----------
    channel_order : {"rgb", "bgr"}
        Order of the network's channels.
    value_range : {1, 255}
        Value of white for the network.
    mean, std : tuple of float, optional
        What is subtracted, and then divided by: one number for each channel, in the order and the range of the
        network.
    """

    channel_order: str = "rgb"
    value_range: int = 1
    mean: Numbers | None = None
    std: Numbers | None = None

    @classmethod
    def named(cls, option: str, *, channels: int = 3) -> Preprocessing:
        """What a text of --preprocessing stands for, such as "imagenet,bgr,255".

        Parameters
        ----------
        option : str
            A name of NORMALISATIONS, and bgr and 255 where they apply; or mean=0.4/0.4/0.4,std=0.2/0.2/0.2 in place of
            the name, in the network's order and range.
        channels : int
            Channels of the images; with one channel, mean and standard deviation are the mean of three.

        Raises
        ------
        InputError
            For any other text, and for a mean beyond white.
        """
        words = option.split(",")
        order = "rgb"
        white = 1
        mean: Numbers | None = None
        std: Numbers | None = None
        for word in words:
            key, _, values = word.strip().partition("=")
            numbers = _numbers_of(values)
            if word in ("rgb", "bgr"):
                order = word
            elif word in ("1", str(WHITE)):
                white = int(word)
            elif word in NORMALISATIONS:
                mean, std = NORMALISATIONS[word] or (None, None)
                if mean and std and "bgr" in words:
                    mean, std = mean[::-1], std[::-1]
            elif key == "mean" and numbers:
                mean = numbers
            elif key == "std" and numbers:
                std = numbers
            else:
                raise InputError(
                    f"--preprocessing {option}: give {', '.join(NORMALISATIONS)}, or mean=M/M/M,std=S/S/S, and where "
                    "they apply bgr and 255: imagenet,bgr"
                )

        if channels == 1 and mean and len(mean) > 1:
            mean = (float(np.mean(mean)),)
            std = (float(np.mean(std)),) if std else None
        if mean and max(mean) > white:
            raise InputError(
                f"--preprocessing {option}: a mean of {max(mean):g} is one of pixels up to {WHITE}; add ,{WHITE} where "
                f"the network takes these, else divide mean and std by {WHITE}"
            )
        if white != 1 and all(value <= 1 for value in mean or ()):
            mean = _scaled(mean, white)
            std = _scaled(std, white)
        return cls(order, white, mean, std)

    def option(self) -> str:
        """Value of --preprocessing that stands for it."""
        for name in candidates(3):
            if Preprocessing.named(name) == self:
                return name
        words = []
        for key, numbers in (("mean", self.mean), ("std", self.std)):
            if numbers is not None:
                words.append(f"{key}={'/'.join(f'{number:g}' for number in numbers)}")
        if not words:
            words.append("none")
        if self.channel_order != "rgb":
            words.append(self.channel_order)
        if self.value_range != 1:
            words.append(str(self.value_range))
        return ",".join(words)

    def words(self) -> str:
        """A description in a few words."""
        words = f"{self.channel_order.upper()}, 0 to {self.value_range}"
        if self.mean is None and self.std is None:
            return f"{words}, not normalised"
        for key, numbers in (("mean", self.mean), ("std", self.std)):
            if numbers is not None:
                words += f", {key} {' '.join(f'{number:.4g}' for number in numbers)}"
        for name, constants in NORMALISATIONS.items():
            if constants is not None and self._is_nearly(*constants):
                return f"{words} ({name})"
        return words

    def _is_nearly(self, mean: Numbers, std: Numbers) -> bool:
        if self.mean is None or self.std is None:
            return False
        tolerance = 1e-3 * self.value_range
        same_mean = np.allclose(self.mean, np.multiply(mean, self.value_range), atol=tolerance)
        return same_mean and np.allclose(self.std, np.multiply(std, self.value_range), atol=tolerance)

    def apply(self, images: np.typing.NDArray[np.float32], *, where: str) -> np.typing.NDArray[np.float32]:
        """Images (n, C, H, W) with pixels in [0, 1] as the network takes them; `where` is the file that errors name."""
        # Imported late, for the help of the command.
        from gfscore.networks.preprocessing import preprocess

        settings = {
            "image_shape": images.shape[1:],
            "channel_order": self.channel_order,
            "value_range": self.value_range,
            "mean": None if self.mean is None else list(self.mean),
            "std": None if self.std is None else list(self.std),
        }
        return preprocess(images, settings, where=where)

    def entry(self) -> dict[str, Any]:
        """Settings of a model that differ from the default, numbers to six figures."""
        settings: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if value == field.default:
                continue
            if isinstance(value, tuple):
                value = [float(f"{number:.6g}") for number in value]
            settings[field.name] = value
        return settings


def candidates(channels: int) -> list[str]:
    """Names of the ways that are tried for images with so many channels."""
    # Where pixels are normalised, their range is in mean and standard deviation.
    if channels != 3:
        return ["none", "half", f"none,{WHITE}"]
    names = [*NORMALISATIONS, f"none,{WHITE}"]
    return names + [f"{name},bgr" for name in names]


def _numbers_of(text: str) -> Numbers:
    # Numbers between slashes; none for any other text.
    try:
        return tuple(float(number) for number in text.split("/"))
    except ValueError:
        return ()


def _scaled(numbers: Numbers | None, factor: int) -> Numbers | None:
    return None if numbers is None else tuple(number * factor for number in numbers)
