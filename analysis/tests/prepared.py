# SPDX-License-Identifier: GPL-2.0
"""python3 -m memtoll, or pytest, forked from a process that has imported what its commands import.

To start an interpreter and to import pandas and matplotlib takes a second, what a command does with a small recording
a tenth of that. Everything else is a command's own: arguments, environment, directory, streams, umask, its end. The
tests of streams and signals, in test_cli.py, start an interpreter of their own.

As a program, of a module: a line of JSON that describes a command comes in, a line with its wait status goes out.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import runpy
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Final

from package import environment

# Of wall time, neighbours and slow memory included; whoever takes longer hangs.
SECONDS: Final = 120


class Prepared:
    """Runs commands, one after the other."""

    def __init__(self, directory: Path, module: str = "memtoll") -> None:
        self.streams = [directory / "stdout", directory / "stderr"]
        self.server = subprocess.Popen(
            [sys.executable, __file__, module],
            env=environment(), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def run(self, words: list[str], cwd: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        assert self.server.stdin and self.server.stdout
        umask = os.umask(0o077)
        os.umask(umask)
        command = {
            "words": words, "cwd": str(cwd), "env": env or environment(), "umask": umask,
            "streams": list(map(str, self.streams)),
        }  # fmt: skip
        self.server.stdin.write(json.dumps(command) + "\n")
        self.server.stdin.flush()
        status = os.waitstatus_to_exitcode(int(self.server.stdout.readline()))
        out, err = (path.read_text(encoding="utf-8") for path in self.streams)
        return subprocess.CompletedProcess(words, status, out, err)

    def close(self) -> None:
        assert self.server.stdin and self.server.stdout
        self.server.stdin.close()
        self.server.stdout.close()
        self.server.wait(timeout=SECONDS)


def become(module: str, command: dict[str, Any]) -> None:
    """This process runs the command from here on."""
    os.umask(0o077)
    streams = [os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) for path in command["streams"]]
    os.umask(command["umask"])
    for number, stream in enumerate([os.open(os.devnull, os.O_RDONLY), *streams]):
        os.dup2(stream, number)
    os.closerange(3, max(streams) + 1)
    os.chdir(command["cwd"])
    os.environ.clear()
    os.environ.update(command["env"])
    signal.alarm(SECONDS)
    sys.argv = [module, *command["words"]]
    sys.path[0] = command["cwd"]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as done:
        if not isinstance(done.code, int):
            raise
        # As at the end of an interpreter; but to take pandas and matplotlib apart would copy all of their memory, for
        # nothing. What a command has not flushed and closed itself is lost, and its test fails.
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(done.code)


def serve(module: str) -> None:
    if module == "pytest":
        import pytest  # noqa: F401

        from memtoll import recording, text  # noqa: F401
    else:
        from memtoll import commands, export, page, pictures  # noqa: F401

        commands.find()
    gc.freeze()
    while line := sys.stdin.readline():
        pid = os.fork()
        if pid == 0:
            return become(module, json.loads(line))
        print(os.waitpid(pid, 0)[1], flush=True)


if __name__ == "__main__":
    serve(sys.argv[1])
