# SPDX-License-Identifier: GPL-2.0
"""Stacks of a recording: as lists of frames, and as text for many at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from .views import Views

UNKNOWN: Final = "[unknown]"


@dataclass(frozen=True, slots=True)
class Frame:
    """One line of a stack.

    function: '' where unknown; module: path of the file the code came from; file and line: '' and
    0 where there is no debug information; kind: native, python, ruby, php, javascript, java, kernel or jit; place:
    file:line, or module+offset, as the report prints it; said: what a sentence calls it.
    """

    function: str
    module: str
    file: str
    line: int
    kind: str
    place: str
    said: str

    def __str__(self) -> str:
        return f"{self.function or '?'}  {self.place}"


# Root first, functions joined by ';', '?' where unknown: as `memtoll report --folded` writes them.
# The two places are what a sentence calls the stack: of an allocation, its caller (view stack_place).
MAKE_TEXTS: Final = """
CREATE TEMP TABLE memtoll_stack (stack_id INTEGER PRIMARY KEY, text TEXT NOT NULL, allocated_place TEXT,
	touched_place TEXT);
INSERT INTO memtoll_stack
SELECT t.stack_id, t.text, p.caller, p.code
FROM (SELECT stack_id, group_concat(name, ';') AS text
	FROM (SELECT stack_id, REPLACE(name, ';', ':') AS name FROM stack_line ORDER BY stack_id, depth DESC)
	GROUP BY stack_id) t
LEFT JOIN stack_place p ON p.stack_id = t.stack_id;
"""


def make_texts(views: Views) -> None:
    """Temporary table memtoll_stack: text and places of every stack."""
    views.run("memtoll_stack", MAKE_TEXTS)


def stack(views: Views, stack_id: int) -> list[Frame]:
    """Frames of a stack, leaf first; none for 0, which stands for an unknown stack. KeyError: no such stack."""
    rows = views.rows(
        "SELECT function, module, file, line, kind, place, said FROM stack_line WHERE stack_id = ? ORDER BY depth",
        int(stack_id),
    )
    if not rows and stack_id != 0 and not views.rows("SELECT 1 FROM main.stack WHERE stack_id = ?", int(stack_id)):
        raise KeyError(f"{views.path} has no stack {stack_id}")
    return [Frame(*row) for row in rows]
