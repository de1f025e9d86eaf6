"""Memory that several threads share."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Condition


@dataclass
class MemoryBudget:
    """A number of bytes, `size`, that threads take and give back.

    A thread that asks for more than is left waits until others give back. One that asks for more than there is in all
    waits until it is alone.
    """

    size: int
    _used: int = field(default=0, init=False)
    _changed: Condition = field(default_factory=Condition, init=False, repr=False)

    @contextmanager
    def taken(self, size: int) -> Iterator[None]:
        """Hold so many bytes."""
        with self._changed:
            self._changed.wait_for(lambda: self._used == 0 or self._used + size <= self.size)
            self._used += size
        try:
            yield
        finally:
            with self._changed:
                self._used -= size
                self._changed.notify_all()
