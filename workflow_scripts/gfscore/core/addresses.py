"""Addresses as messages and results show them: a query may hold a key to what lies there."""

from typing import Any


def without_query(url: object) -> str:
    """The address with `?...` for its query."""
    start, mark, _ = str(url).partition("?")
    return start + (mark and "?...")


def without_queries(data: Any) -> Any:
    """Plain data (mappings, lists, scalars) with every `url` in it as without_query shows it; other values as given."""
    if isinstance(data, dict):
        return {
            key: without_query(value) if key == "url" and isinstance(value, str) else without_queries(value)
            for key, value in data.items()
        }
    return [without_queries(value) for value in data] if isinstance(data, list) else data
