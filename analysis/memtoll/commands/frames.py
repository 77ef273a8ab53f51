# SPDX-License-Identifier: GPL-2.0
"""python3 -m memtoll frames: the DataFrames, their columns, dtypes and units; of a file, their sizes."""

from __future__ import annotations

import argparse

from ..frames import FRAMES, Frame
from . import Command, incomplete_argument, terminal


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", nargs="?", help="a recording: also print how many rows each has")
    parser.add_argument("--name", metavar="NAME", choices=[frame.name for frame in FRAMES], help="only this one")
    parser.add_argument("--markdown", action="store_true", help="as tables in Markdown")
    incomplete_argument(parser)


def markdown(frames: tuple[Frame, ...]) -> str:
    """The documentation of frames as Markdown."""
    parts = []
    for frame in frames:
        rows = [
            f"| `{column.name}` | {column.dtype} | {column.unit} | {column.meaning.replace('|', '/')} |"
            for column in frame.columns
        ]
        head = f"### `rec.{frame.name}`\n\n{frame.meaning}\n\n| column | dtype | unit | meaning |\n|---|---|---|---|\n"
        parts.append(head + "\n".join(rows) + "\n")
    return "\n".join(parts)


def plain(frames: tuple[Frame, ...], rows: dict[str, int]) -> str:
    """The same as text."""
    parts = []
    for frame in frames:
        size = f" ({rows[frame.name]:,} rows)" if frame.name in rows else ""
        lines = [f"{frame.name}{size}: {frame.meaning}"]
        lines += [
            f"  {column.name:<22} {column.dtype:<9} {column.unit:<8} {column.meaning}".rstrip()
            for column in frame.columns
        ]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def run(arguments: argparse.Namespace) -> int:
    chosen = tuple(frame for frame in FRAMES if arguments.name in (None, frame.name))
    rows: dict[str, int] = {}
    if arguments.file is not None:
        from ..recording import open as open_recording

        with open_recording(arguments.file, progress=terminal()) as rec:
            rows = {frame.name: len(getattr(rec, frame.name)) for frame in chosen}
    print(markdown(chosen) if arguments.markdown else plain(chosen, rows), end="")
    return 0


COMMAND = Command(
    name="frames",
    help="the DataFrames of a recording: columns, dtypes, units",
    description="Print what the DataFrames of a recording hold: columns, dtypes, units, meaning.",
    arguments=arguments,
    run=run,
)
