# SPDX-License-Identifier: GPL-2.0
"""Folded stacks: "main;load;calloc 8123", weights in microseconds, for flame graph programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..text import printable
from .about import About

if TYPE_CHECKING:
    from ..recording import Recording


def lines(rec: Recording, toll: str | None) -> list[str]:
    """Lines of one toll, exactly those of `memtoll report --folded`; None: of all, the toll as the root.

    They are of the view "folded" in the recording: the stack of the allocation or, where that is
    not known, of the code that touched.
    """
    rec.views.make("folded")
    if toll is not None:
        table = rec.query("SELECT stack, weight FROM temp.folded WHERE toll = ? ORDER BY weight DESC, stack", toll)
    else:
        table = rec.query(
            "SELECT f.toll || ';' || f.stack AS stack, f.weight AS weight FROM temp.folded f"
            " JOIN temp.toll_kind k ON k.toll = f.toll ORDER BY k.position, f.weight DESC, f.stack"
        )
    # A name with a line break in it would make two lines of one.
    return [
        f"{printable(str(stack))} {weight}" for stack, weight in zip(table["stack"].tolist(), table["weight"].tolist())
    ]


def write(rec: Recording, about: About, path: Path, toll: str | None) -> None:
    """Write them. Where something was lost a line says so first, that no reader takes for a stack."""
    text = [f"# memtoll: {about.note} (of the recording)"] if about.note else []
    with path.open("w", encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        file.writelines(f"{line}\n" for line in text + lines(rec, toll))
