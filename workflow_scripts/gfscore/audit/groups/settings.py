"""Mistakes in what config.yaml says about a task and the groups that it is compared by. Imports nothing heavy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gfscore.core.errors import unknown


def task_mistakes(name: str, entry: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with the `classes` of a dataset whose labels are an attribute, its `task`."""
    if "task" not in entry or entry["classes"] is None:
        return
    where, task, classes = f"datasets: {name}: classes", _plain(entry["task"]), entry["classes"]
    remedy = f"write null for 'no {entry['task']}' and {entry['task']!r}"
    if len(classes) != 2:
        yield f"{where}: there are 2, without and with the task {entry['task']!r}, not {len(classes)}; {remedy}"
    elif task not in _plain(classes[1]) or _plain(classes[0]) == task:
        # Other names would go into report and verdict as what the classifiers were asked for.
        yield f"{where}: label 1 has the task {entry['task']!r}, but is called {classes[1]!r}; {remedy}, or name it so"


def group_mistakes(where: str, groups: Mapping[str, Any], entry: Mapping[str, Any]) -> Iterator[str]:
    """Yield where `groups` of an audit do not fit its dataset's entry: groups by its task, an unknown `positive`."""
    task, names = entry.get("task"), entry["classes"]
    if task in groups["attributes"]:
        yield f"{where}: attributes: {task!r} is the task: its groups are the classes themselves; leave it out"
    if names is None and task is not None:
        names = [f"no {task}", task]
    if names and groups["positive"] is not None and groups["positive"] not in names:
        yield f"{where}: positive: {unknown('class', groups['positive'], names)}"


def _plain(name):
    return name.casefold().replace("_", " ")
