# SPDX-License-Identifier: GPL-2.0
"""The subcommands, one file each. A new one needs a file here and nothing else:

COMMAND: a Command. Import what is slow to import inside of run.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..opening import Progress
from ..progress import Terminal


@dataclass(frozen=True)
class Command:
    """name: the word on the command line, or one of aliases; help: one line; description: what --help says.

    arguments: adds them to its parser; run: does it, and returns the exit status.
    """

    name: str
    help: str
    description: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    aliases: tuple[str, ...] = ()


def find() -> list[Command]:
    """All subcommands, by name."""
    modules = [importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
    return sorted((module.COMMAND for module in modules), key=lambda command: str(command.name))


def file_argument(parser: argparse.ArgumentParser, name: str = "file") -> None:
    """FILE, of every subcommand that reads a recording."""
    parser.add_argument(name, metavar=name.upper(), help="the recording")
    incomplete_argument(parser)


def incomplete_argument(parser: argparse.ArgumentParser) -> None:
    """--incomplete, of before recordings that are not finished were read without a word."""
    parser.add_argument("--incomplete", action="store_true", help=argparse.SUPPRESS)


def redact_argument(parser: argparse.ArgumentParser) -> None:
    """--redact, of every subcommand whose output is of one recording."""
    parser.add_argument(
        "--redact",
        action="store_true",
        help="for others: pseudonyms for arguments, names of files, programs, containers and the host, and addresses",
    )


def natural(text: str) -> int:
    """An argument that is a number from 0 on."""
    number = int(text)
    if number < 0:
        raise ValueError(text)
    return number


def positive(text: str) -> float:
    """An argument that is a finite number above 0."""
    number = float(text)
    if not 0 < number < float("inf"):
        raise ValueError(text)
    return number


def wrote(path: str | os.PathLike[str]) -> None:
    """Where the result is, on stderr, as the tracer says it."""
    what = "directory " if Path(path).is_dir() else ""
    print(f"memtoll: wrote {what}{path}", file=sys.stderr)


def terminal() -> Progress:
    """Progress on stderr, where that is a terminal."""
    return Terminal()
