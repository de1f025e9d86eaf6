"""Decoding threads share one budget of memory, and no image is decoded that is larger than photographs are."""

import io
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image

from gfscore.core.errors import InputError
from gfscore.images import decoding
from gfscore.images.dataset_source import AsStored
from gfscore.images.decoding import LARGEST_IMAGE, MemoryBudget, prepare
from memory import most_memory


class Watch:
    """What is held at a time."""

    def __init__(self):
        self.lock, self.held, self.most, self.together = threading.Lock(), {}, 0, 0

    def hold(self, budget, number, size):
        with budget.taken(size):
            with self.lock:
                self.held[number] = size
                self.most = max(self.most, sum(self.held.values()))
                self.together = max(self.together, len(self.held))
            time.sleep(0.01)
            with self.lock:
                del self.held[number]


def test_threads_never_hold_more_than_the_budget_together():
    watch, budget = Watch(), MemoryBudget(100)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: watch.hold(budget, number, 30), range(24)))
    assert watch.most <= 100 and watch.together == 3


def test_who_needs_more_than_there_is_works_alone():
    watch, budget = Watch(), MemoryBudget(100)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: watch.hold(budget, number, 150), range(8)))
    assert watch.together == 1 and watch.most == 150


def test_an_error_gives_the_memory_back():
    budget = MemoryBudget(100)
    with pytest.raises(InputError), budget.taken(100):
        raise InputError("x")
    with budget.taken(100):
        pass


def png(width, height):
    """PNG of black pixels, made without holding them."""

    def chunk(kind, content):
        return len(content).to_bytes(4, "big") + kind + content + zlib.crc32(kind + content).to_bytes(4, "big")

    packer, rows = zlib.compressobj(9), bytes(1 + width)
    data = b"".join(packer.compress(rows) for _ in range(height)) + packer.flush()
    header = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([8, 0, 0, 0, 0])
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def test_an_image_of_too_many_pixels_is_refused_by_its_header_with_its_size():
    content = png(13_300, 13_300)
    assert LARGEST_IMAGE < 13_300**2
    with most_memory() as most, pytest.raises(InputError, match=r"big\.png: 13300x13300 pixels.*120 million"):
        prepare(content, AsStored(method="none"), name="big.png")
    assert most[0] < 2**20


def test_images_are_decoded_within_the_budget(monkeypatch):
    asked = []

    class Noted(MemoryBudget):
        def taken(self, size):
            asked.append(size)
            return super().taken(size)

    monkeypatch.setattr(decoding, "DECODING", Noted(1000))
    buffer = io.BytesIO()
    Image.fromarray(np.zeros((20, 10, 3), dtype=np.uint8)).save(buffer, "PNG")
    assert prepare(buffer.getvalue(), AsStored(method="none"), name="a").shape == (20, 10, 3)
    assert asked == [decoding.BYTES_PER_PIXEL * 200]
