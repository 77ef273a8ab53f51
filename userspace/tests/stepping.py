# SPDX-License-Identifier: GPL-2.0
"""A time of day that a test sets, for the processes that it is preloaded into; the other clocks are as they are.

GLib asks for it by gettimeofday, memtoll itself by clock_gettime.
"""

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
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long ahead(void)
{
	int fd = open(getenv("MEMTOLL_TEST_CLOCK"), O_RDONLY | O_CLOEXEC);
	char text[32] = "";
	long seconds = read(fd, text, sizeof(text) - 1) > 0 ? atol(text) : 0;

	close(fd);
	return seconds;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int err = syscall(SYS_clock_gettime, clock, now);

	if (!err && clock == CLOCK_REALTIME)
		now->tv_sec += ahead();
	return err;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	struct timespec precise;
	int err = clock_gettime(CLOCK_REALTIME, &precise);

	(void)zone;
	now->tv_sec = precise.tv_sec;
	now->tv_usec = precise.tv_nsec / 1000;
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
