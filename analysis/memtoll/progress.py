# SPDX-License-Identifier: GPL-2.0
"""Progress of long work on a terminal; nothing anywhere else."""

from __future__ import annotations

import sys
import time
from typing import Final, TextIO

# Nothing is said of work that is done before.
PATIENCE_S: Final = 0.5
REFRESH_S: Final = 0.1


class Terminal:
    """A callable for memtoll.open(progress=...): one line on a terminal, gone when the work is done."""

    def __init__(self, out: TextIO | None = None) -> None:
        self.out = out if out is not None else sys.stderr
        self.shown = self.out.isatty()
        self.began = self.last = 0.0
        self.what = ""
        self.length = 0

    def __call__(self, what: str, done: int, all_: int) -> None:
        if not self.shown:
            return
        now = time.monotonic()
        if what != self.what:
            self.what, self.began = what, now
        if done >= all_:
            self.clear()
        elif now - self.began >= PATIENCE_S and now - self.last >= REFRESH_S:
            line = f"memtoll: {what} {100 * done // max(all_, 1)} %"
            self.out.write(f"\r{line:<{self.length}}")
            self.out.flush()
            self.length, self.last = len(line), now

    def clear(self) -> None:
        """Take the line away."""
        if self.length:
            self.out.write(f"\r{'':<{self.length}}\r")
            self.out.flush()
        self.what, self.length = "", 0
