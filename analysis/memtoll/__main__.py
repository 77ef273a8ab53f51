# SPDX-License-Identifier: GPL-2.0
"""python3 -m memtoll: one subcommand per file of memtoll/commands.

Data on stdout, everything else on stderr. Exit status: 0 done, 1 failed, 2 usage.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from . import commands
from .errors import Error
from .version import FORMAT, __version__

DONE, FAILED, USAGE = 0, 1, 2


class Parser(argparse.ArgumentParser):
    """One line for what was not understood."""

    def error(self, message: str) -> NoReturn:
        words = self.prog.split()[1:]
        name = "".join(f"{word}: " for word in words)
        see = " ".join(["python3 -m memtoll", *words, "--help"])
        print(f"memtoll: {name}{' '.join(message.split())} (see {see})", file=sys.stderr)
        raise SystemExit(USAGE)


def parser() -> Parser:
    """The parser with all subcommands."""
    top = Parser(
        prog="memtoll",
        description="Read memtoll's recordings: as text, as DataFrames, side by side.",
        epilog="Exit status: 0 done, 1 failed, 2 usage. In Python: import memtoll; memtoll.open(FILE)",
    )
    top.add_argument("--version", action="version", version=f"memtoll {__version__} (analysis, formats 1 to {FORMAT})")
    below = top.add_subparsers(title="subcommands", metavar="COMMAND", required=True, parser_class=Parser)
    for command in commands.find():
        sub = below.add_parser(
            command.name,
            aliases=command.aliases,
            help=command.help,
            description=command.description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.arguments(sub)
        sub.set_defaults(run=command.run)
    return top


def main(words: Sequence[str] | None = None) -> int:
    """Run one command line; the exit status."""
    # A reader that closes the pipe ends the program without a word, as for other tools.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        arguments = parser().parse_args(words)
        status = int(arguments.run(arguments))
        sys.stdout.flush()
        return status
    except Error as error:
        print(f"memtoll: {' '.join(str(error).split())}", file=sys.stderr)
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        print(f"memtoll: {name}{error.strerror or error}", file=sys.stderr)
    except KeyboardInterrupt:
        # As the shell expects it: ended by the signal itself.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except MemoryError:
        print("memtoll: not enough memory", file=sys.stderr)
    return FAILED


if __name__ == "__main__":
    sys.exit(main())
