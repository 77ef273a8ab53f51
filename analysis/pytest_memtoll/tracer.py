# SPDX-License-Identifier: GPL-2.0
"""Runs `memtoll record` for the plugin, as a program of its own: what it does to wait is no toll of the test's.

    python3 -I -S tracer.py RECORDING LOG memtoll record ... -o RECORDING

It prints "ready" when the recording has a slice, so that everything is attached, and ends the tracer when something
comes on its standard input, or that ends. Then, or where the tracer ends before, it prints "ended" and the tracer's
exit status.
"""

from __future__ import annotations

import os
import select
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

LOOK_S = 0.01
# To write what there is; whoever takes longer hangs.
END_S = 120.0
# As the shell has it.
CANNOT_RUN = 126


def has_slice(recording: Path) -> bool:
    try:
        with closing(sqlite3.connect(f"{recording.absolute().as_uri()}?mode=ro", uri=True)) as database:
            return bool(database.execute("SELECT COUNT(*) FROM slice").fetchone()[0])
    except sqlite3.Error:  # it is not there yet, or is being written
        return False


def say(*words: object) -> None:
    with suppress(BrokenPipeError):  # nobody listens any more
        os.write(1, " ".join(map(str, words)).encode() + b"\n")


def main(recording: Path, log: Path, command: list[str]) -> None:
    # The end of standard input is what ends it, not a key that is pressed for the tests.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with log.open("wb") as errors:
        try:
            tracer = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, start_new_session=True
            )
        except OSError as error:
            errors.write(f"{command[0]}: {error.strerror}\n".encode("utf-8", "surrogateescape"))
            errors.flush()
            say("ended", CANNOT_RUN)
            return
    ready = False
    while tracer.poll() is None:
        if not ready and has_slice(recording):
            ready = True
            say("ready")
        # Ready: nothing is looked at until somebody says something.
        if select.select([sys.stdin], [], [], END_S if ready else LOOK_S)[0]:
            tracer.send_signal(signal.SIGINT)
            try:
                tracer.wait(END_S)
            except subprocess.TimeoutExpired:
                tracer.kill()
                tracer.wait()
    say("ended", tracer.returncode)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
