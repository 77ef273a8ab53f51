# SPDX-License-Identifier: GPL-2.0
"""How soon the live view has something to say."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Mapping

import pytest

from harness import MEMTOLL, MIB, Program, end, spawn, uprobe_pages, wait_until, workload
from measuring import Bound, settle

pytestmark = [pytest.mark.root, pytest.mark.measure]


def test_first_screen_within_a_second_of_the_attach() -> None:
    """It has a process and a site by then: what a line of --json has, the screen has."""

    def once() -> Mapping[str, float]:
        with Program(workload("calloc_loop"), str(10 * MIB), "0", "--seconds", "100", "--rest", "1000") as program:
            before = uprobe_pages(program.pid)
            top = spawn([MEMTOLL, "top", "--json", "-p", str(program.pid)])
            try:
                wait_until(lambda: uprobe_pages(program.pid) > before, "the first breakpoint", every=0.002)
                attached = time.monotonic()
                assert top.stdout
                line = json.loads(top.stdout.readline())
                told = time.monotonic()
            finally:
                top.send_signal(signal.SIGINT)
                end(top)
        assert line["verdict"]["most"] == "zeroing"
        assert [process["pid"] for process in line["processes"]] == [program.pid] and line["sites"]
        return {"seconds from the attach": told - attached}

    settle(once, {"seconds from the attach": Bound(most=1)}, 45)
