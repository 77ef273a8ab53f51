# SPDX-License-Identifier: GPL-2.0
"""usage: columns.py polars|arrow|numpy|several gives|clears|keeps ROUNDS

Columns of numbers, as programs for data make them. It says that it is there, and begins when it reads a line. gives:
each round makes two columns anew, and drops them; the next one begins when their memory has gone back to the kernel,
until one has waited for that in vain. clears: each makes one of zeros. keeps: each writes over a column that is kept.
several: all of them, one after the other. The last line is JSON: page faults of the rounds, by the kernel's count, and
the bytes of a column.
"""

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

ROWS = 8_000_009  # of 8 bytes
PATIENCE_S = 5.0


def faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def polars(what: str) -> Callable[[], Any]:
    import polars

    kept = polars.int_range(0, ROWS, eager=True)

    def gives() -> Any:
        return (polars.int_range(0, ROWS, eager=True) + 1).sum()  # /* SITE polars-gives */

    def clears() -> Any:
        return polars.zeros(ROWS, eager=True).sum()  # /* SITE polars-clears */

    def keeps() -> Any:
        return kept.sum()

    return {"gives": gives, "clears": clears, "keeps": keeps}[what]


def arrow(what: str) -> Callable[[], Any]:
    import numpy
    import pyarrow
    from pyarrow import compute

    kept = pyarrow.array(numpy.arange(ROWS))

    def gives() -> Any:
        return compute.sum(compute.add(compute.add(kept, 1), 1))  # /* SITE arrow-gives */

    def clears() -> Any:
        return len(pyarrow.repeat(0, ROWS))  # /* SITE arrow-clears */

    def keeps() -> Any:
        return compute.sum(kept)

    return {"gives": gives, "clears": clears, "keeps": keeps}[what]


def numpy(what: str) -> Callable[[], Any]:
    import numpy

    kept = numpy.arange(ROWS)

    def gives() -> Any:
        return (kept + 1).sum()  # /* SITE numpy-gives */

    def clears() -> Any:
        made = numpy.zeros(ROWS, dtype="i8")  # /* SITE numpy-clears */
        made[::256] = 1
        return made.size

    def keeps() -> Any:
        return numpy.add(kept, 1, out=kept).size

    return {"gives": gives, "clears": clears, "keeps": keeps}[what]


def several(what: str) -> Callable[[], Any]:
    parts = [library(what) for library in (polars, arrow, numpy)]

    def one() -> Any:
        for part in parts:
            part()

    return one


def main(library: str, what: str, rounds: int) -> None:
    one = {"polars": polars, "arrow": arrow, "numpy": numpy, "several": several}[library](what)
    one()  # its code comes from the disk, which is no part of the rounds
    print(json.dumps({"ready": True}), flush=True)
    sys.stdin.readline()
    before, least, goes = faults(), resident() + 4 * ROWS, what == "gives"
    for _ in range(rounds):
        one()
        until = time.monotonic() + PATIENCE_S
        while goes and resident() > least:
            time.sleep(0.01)
            goes = time.monotonic() < until
    print(json.dumps({"faults": faults() - before, "bytes": 8 * ROWS}), flush=True)
    os._exit(0)  # what the libraries do to end comes from the disk, too


main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
