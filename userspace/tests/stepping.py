# SPDX-License-Identifier: GPL-2.0
"""A time of day that a test sets, for the processes that it is preloaded into; the other clocks are as they are."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

from harness import tool

SOURCE: Final = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int err = syscall(SYS_clock_gettime, clock, now);
	char text[32] = "";

	if (!err && clock == CLOCK_REALTIME) {
		int fd = open(getenv("MEMTOLL_TEST_CLOCK"), O_RDONLY | O_CLOEXEC);

		now->tv_sec += read(fd, text, sizeof(text) - 1) > 0 ? atol(text) : 0;
		close(fd);
	}
	return err;
}
"""


class Clock:
    """In the environment of what is to go by it."""

    def __init__(self, directory: Path) -> None:
        source, library = directory / "stepping.c", directory / "stepping.so"
        source.write_text(SOURCE)
        subprocess.run([tool("gcc"), "-shared", "-fPIC", "-O1", "-o", library, source], check=True, timeout=60)
        self.seconds = directory / "clock"
        self.set(0)
        self.environment = {"LD_PRELOAD": str(library), "MEMTOLL_TEST_CLOCK": str(self.seconds)}

    def set(self, ahead_s: int) -> None:
        """Before or after the right time, from its next reading on."""
        new = self.seconds.with_suffix(".new")
        new.write_text(str(ahead_s))
        new.rename(self.seconds)
