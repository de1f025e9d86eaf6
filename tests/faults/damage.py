"""Damage to the bytes of a file, drawn from a seeded generator."""

import json
from copy import deepcopy

LARGE = (10**12, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**63 - 1, 2**64 - 1, 0, 1)
"""Numbers that a header may promise."""

VALUES = (None, True, -1, 0, 10**12, 1e308, "", "x", "../../etc/passwd", [], {}, [None], [[1]], {"a": 1})
"""Values that a key of a JSON file may hold in place of its own."""


def damaged(content, rng):
    """Bytes that differ from `content`: one of DAMAGES, sometimes two."""
    for _ in range(20):
        changed = content
        for _ in range(1 + (rng.random() < 0.2)):
            changed = DAMAGES[rng.integers(len(DAMAGES))](bytearray(changed), rng) if changed else changed
        if changed != content:
            return bytes(changed)
    raise AssertionError("no damage changed the file")


def flipped_bits(content, rng):
    for _ in range(rng.choice([1, 1, 2, 8])):
        content[_place(content, rng)] ^= 1 << rng.integers(8)
    return content


def cut_short(content, rng):
    return content[: rng.integers(len(content))]


def without_a_part(content, rng):
    start = _place(content, rng)
    del content[start : start + int(rng.choice([1, 4, 100, 5000]))]
    return content


def with_zeros(content, rng):
    start = _place(content, rng)
    end = min(len(content), start + int(rng.choice([1, 8, 512])))
    content[start:end] = bytes(end - start)
    return content


def with_noise(content, rng):
    start = _place(content, rng)
    end = min(len(content), start + int(rng.choice([1, 4, 64])))
    content[start:end] = rng.bytes(end - start)
    return content


def with_a_part_twice(content, rng):
    start = _place(content, rng)
    part = content[start : start + int(rng.choice([1, 16, 300]))]
    return content[:start] + part + content[start:]


def with_a_large_number(content, rng):
    """A length field, as it may stand anywhere, promises something else."""
    size = int(rng.choice([2, 4, 8]))
    number = (LARGE[rng.integers(len(LARGE))] % 2 ** (8 * size)).to_bytes(size, ["little", "big"][rng.integers(2)])
    start = _place(content, rng)
    content[start : start + size] = number
    return content


def with_another_decimal(content, rng):
    """A number written in digits (shapes of .npy, JSON, CSV) becomes another one."""
    places = [place for place, byte in enumerate(content[:4096]) if 48 <= byte <= 57]
    if not places:
        return content
    start = places[rng.integers(len(places))]
    text = [b"1000000000000", b"-1", b"0", b"1e309", b"nan", b"9" * 30][rng.integers(6)]
    return content[:start] + text + content[start + 1 :]


DAMAGES = (
    flipped_bits, flipped_bits, cut_short, without_a_part, with_zeros, with_noise, with_a_part_twice,
    with_a_large_number, with_a_large_number, with_another_decimal,
)  # fmt: skip


def damaged_json(content, rng):
    """The same for JSON, where half of the damage keeps the form and changes keys and values instead."""
    if rng.random() < 0.5:
        return damaged(content, rng)
    return json.dumps(changed_tree(json.loads(content), rng)).encode()


def changed_tree(data, rng):
    """A copy of nested mappings and lists in which one key is missing or renamed, or one value is another."""
    data = deepcopy(data)
    places = [*_places(data)]
    if not places or rng.random() < 0.03:
        return VALUES[rng.integers(len(VALUES))]
    parent, key = places[rng.integers(len(places))]
    how = rng.integers(4)
    if how == 0:
        del parent[key]
    elif how == 1 and isinstance(parent, dict):
        parent[f"{key}_"] = parent.pop(key)
    else:
        parent[key] = deepcopy(VALUES[rng.integers(len(VALUES))])
    return data


def _places(data):
    for key in data if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ():
        yield data, key
        yield from _places(data[key])


def _place(content, rng):
    """Anywhere, but as often near the start or the end, where headers and footers stand."""
    near = min(len(content), 256)
    where = rng.integers(4)
    if where == 0:
        return int(rng.integers(near))
    if where == 1:
        return len(content) - 1 - int(rng.integers(near))
    return int(rng.integers(len(content)))
