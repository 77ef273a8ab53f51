# SPDX-License-Identifier: GPL-2.0
"""Sites as samples with stacks of places in the code, as profile formats want them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ..recording import Recording

OWNERS: Final = ("allocated", "touched")
UNKNOWN: Final = "[unknown]"
PAGE: Final = 4096
# Room for each module's addresses; the first range begins above 0, which stands for none.
MODULE_BITS: Final = 40

Line = tuple[str, str, int]
"""Function, file ('' unknown), line (0 unknown)."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the code with its functions, innermost first: all but the last are inlined.

    module: '' unknown, then offset is of no meaning.
    """

    module: str
    build_id: str
    offset: int
    lines: tuple[Line, ...]


NOWHERE: Final = Place("", "", 0, ((UNKNOWN, "", 0),))


@dataclass(frozen=True, slots=True)
class Sample:
    """A site: its toll with the family, the allocator's call ('' none), and its stack, leaf first, never empty."""

    toll: str
    family: str
    call: str
    stack: tuple[Place, ...]
    time_ns: int
    bytes: int
    count: int


def stacks(rec: Recording) -> dict[int, tuple[Place, ...]]:
    """Every stack by its id, leaf first."""
    table = rec.query(
        "SELECT s.stack_id, s.inlined, f.function, f.module, f.file, f.line, f.build_id, f.module_offset"
        " FROM main.stack_frame s JOIN main.frame f ON f.frame_id = s.frame_id ORDER BY s.stack_id, s.depth"
    )
    found: dict[int, list[Place]] = {}
    lines: list[Line] = []
    rows = list(zip(*(table[name].tolist() for name in table.columns)))
    for row, after in zip(rows, [*rows[1:], None]):
        stack_id, inlined, function, module, file, line, build_id, offset = row
        lines.append((str(function), str(file), int(line)))
        # Inlined functions come before the one they are in, which has the address.
        if inlined and after is not None and after[0] == stack_id:
            continue
        found.setdefault(int(stack_id), []).append(Place(str(module), str(build_id), int(offset), tuple(lines)))
        lines = []
    return {stack_id: tuple(places) for stack_id, places in found.items()}


def samples(rec: Recording, owner: str, toll: str | None) -> Iterator[Sample]:
    """Every site, of one toll or of all (None), the most expensive first.

    owner: "allocated" puts it where the memory was allocated and, where that is not known, where it was touched;
    "touched" the other way round.
    """
    families = {str(name): str(family) for name, family in rec.toll["family"].items()}
    first, second = ("allocated_stack", "touched_stack")[:: 1 if owner == OWNERS[0] else -1]
    found = stacks(rec)
    names = ["toll", "call", "time_s", "bytes", "count", first, second]
    for site_toll, call, time_s, size, count, one, other in zip(*(rec.sites[name].tolist() for name in names)):
        if toll is None or site_toll == toll:
            stack = found.get(one if one else other) or (NOWHERE,)
            yield Sample(site_toll, families[site_toll], call, stack, round(time_s * 1e9), size, count)
