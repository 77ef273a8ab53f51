# SPDX-License-Identifier: GPL-2.0
"""Go programs, built where they are tested: with the toolchain that is there, and nothing from outside."""

from __future__ import annotations

import os
from pathlib import Path

import libraries
from environments import place
from harness import finish, spawn, tool

STRIPPED = "-ldflags=-s -w"
INDEPENDENT = "-buildmode=pie"  # of its position


def toolchain() -> str | Path:
    own = Path("/usr/local/go/bin/go")
    return own if own.exists() else tool("go")


def build(source: Path, program: Path, *flags: str) -> Path:
    # Its runtime is compiled once, not for each run of the tests.
    env = {
        "HOME": str(program.parent),
        "GOCACHE": str(place() / "go"),
        "GOFLAGS": "",
        "CGO_ENABLED": "0",
        "GO111MODULE": "off",
        "PATH": os.environ["PATH"],
    }
    with libraries.patience():
        built = finish(spawn([toolchain(), "build", *flags, "-o", program, source], env), 240)
    assert built.status == 0, built
    return program
