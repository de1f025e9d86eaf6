"""URLs as messages and results show them: without the query string, which may hold an access token."""

from typing import Any


def without_query(url: object) -> str:
    """URL with its query string replaced by `?...`."""
    start, mark, _ = str(url).partition("?")
    return start + (mark and "?...")


def without_queries(data: Any) -> Any:
    """Copy of plain data (mappings, lists, scalars) in which every value of a key `url` went through without_query."""
    if isinstance(data, dict):
        return {
            key: without_query(value) if key == "url" and isinstance(value, str) else without_queries(value)
            for key, value in data.items()
        }
    return [without_queries(value) for value in data] if isinstance(data, list) else data
