# SPDX-License-Identifier: GPL-2.0
"""python3 -m memtoll html FILE: a recording as one self-contained page."""

from __future__ import annotations

import argparse
import errno
import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from ..errors import Error
from . import Command, file_argument, natural, positive, redact_argument, terminal, wrote

SUFFIX = ".memtoll"


def arguments(parser: argparse.ArgumentParser) -> None:
    file_argument(parser)
    parser.add_argument(
        "after",
        metavar="AFTER",
        nargs="?",
        help="a later recording: the page is of this one, and can be switched to what changed since FILE",
    )
    parser.add_argument(
        "--work",
        nargs=2,
        type=positive,
        metavar=("N", "M"),
        help="with AFTER: units of work done in each; what changed is then per unit, not per second",
    )
    parser.add_argument(
        "-o", "--output", metavar="OUT", help="the page; -: stdout (default: the recording's name with .html, here)"
    )
    parser.add_argument("-f", "--force", action="store_true", help="overwrite a file that is there")
    parser.add_argument(
        "-s",
        "--sites",
        type=natural,
        metavar="N",
        help="keep the N most expensive sites (default: 100,000)",
    )
    redact_argument(parser)


def output_of(file: str, output: str | None) -> Path:
    """Where the page goes: 'dir/server.memtoll' becomes 'server.html' in the working directory."""
    if output is not None:
        return Path(output)
    name = Path(file).name
    return Path((name.removesuffix(SUFFIX) or name) + ".html")


def write(path: Path, text: str, force: bool) -> None:
    """All of it or nothing, 0600 as recordings are. Error: there is one and no force. OSError."""
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name[:100]}.", dir=path.parent)
    except OSError as error:  # of the name that was asked for, not of one beside it
        raise OSError(error.errno, error.strerror, str(path)) from None
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as out:
            out.write(text)
        if force:
            Path(name).replace(path)
        else:
            # Unlike a rename this fails where somebody made the file meanwhile.
            os.link(name, path, follow_symlinks=False)
    except FileExistsError:
        raise Error(f"{path} exists; --force overwrites it, -o gives another name") from None
    finally:
        with suppress(FileNotFoundError):
            Path(name).unlink()


def run(arguments: argparse.Namespace) -> int:
    to_stdout = arguments.output == "-"
    if arguments.redact and arguments.after is not None:
        raise Error("--redact is of one recording: not with AFTER")
    shown = arguments.file if arguments.after is None else arguments.after
    path = output_of(shown, arguments.output)
    # Before the work, not after it.
    if not to_stdout and not arguments.force and os.path.lexists(path):
        raise Error(f"{path} exists; --force overwrites it, -o gives another name")
    if not to_stdout and not path.parent.exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    from ..page import page
    from ..page.data import SITES
    from ..recording import open as open_recording

    progress = terminal()
    sites = SITES if arguments.sites is None else arguments.sites
    both = None
    if arguments.after is not None:
        from ..comparison import diff

        before, after = arguments.work or (None, None)
        both = diff(arguments.file, arguments.after, work_before=before, work_after=after, progress=progress)
    with open_recording(shown, progress=progress, redact=arguments.redact) as rec:
        text = page(rec, sites=sites, progress=progress, changed=both)
    if to_stdout:
        sys.stdout.buffer.write(text.encode(errors="replace"))
    else:
        write(path, text, arguments.force)
        wrote(path)
    return 0


COMMAND = Command(
    name="html",
    help="a recording as one self-contained page for the browser",
    description=(
        "Write a page with verdict, advice, tolls, sites with their stacks, pictures and losses.\n"
        "It needs no network, and nothing but a browser.\n\n"
        "  python3 -m memtoll html server.memtoll                 writes server.html\n"
        "  python3 -m memtoll html server.memtoll -o report.html\n"
        "  python3 -m memtoll html before.memtoll after.memtoll   writes after.html, with what changed"
    ),
    arguments=arguments,
    run=run,
)
