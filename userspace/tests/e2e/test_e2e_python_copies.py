# SPDX-License-Identifier: GPL-2.0
"""Pages that children of a Python program copy by only looking at objects: the collector's part, and the counts'.

Two different remedies. That gc.freeze() is the one of the collector, and none of the counts, is shown by the same
program that nobody traces: the faults that the kernel counts for its children.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from harness import PAGE, SOURCES, environment, record

pytestmark = pytest.mark.root

DEBIAN = "/usr/bin/python3"
SCRIPT = "python_copies.py"
OBJECTS, CHILDREN = 200_003, 7


def command(what: str, *more: str) -> list[str | Path]:
    return [DEBIAN, SOURCES / SCRIPT, str(OBJECTS), str(CHILDREN), what, *more]


def alone(what: str, *more: str) -> int:
    words = [str(word) for word in command(what, *more)]
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, timeout=60, check=True)
    return int(json.loads(done.stdout.splitlines()[-1])["faults"])


@pytest.mark.parametrize("what", ["collect", "walk"])
def test_who_copies(out: Path, what: str) -> None:
    recording = record(out, command=command(what), exact=False)
    faults = recording.witness[-1]["faults"]
    ((copied,),) = recording.query(
        "SELECT SUM(pages) FROM fault WHERE class = 'cow' AND area NOT IN ('file', 'library') AND touched_stack IN"
        " (SELECT stack_id FROM stack_frame JOIN frame USING (frame_id) WHERE function = 'look')"
    )
    # What else the children fault is of the interpreter's own.
    assert 0.9 * faults <= copied <= faults
    ((in_all, counted),) = recording.query("SELECT copied_bytes, by_reference_bytes FROM copied_measure")
    assert in_all >= copied * PAGE
    if what == "collect":
        # Debian's interpreter has no names for its collector's functions: it may be either.
        assert counted < 0.05 * in_all
        return
    assert counted >= 0.95 * copied * PAGE
    (text,) = [one["text"] for one in recording.report["verdict"]["advice"] if one["code"] == "cow"]
    assert "gc.freeze() does not help there" in text and f"{SCRIPT}:" in text and "(look)" in text


def test_freezing_spares_what_the_collector_copies() -> None:
    assert alone("collect", "freeze") < 0.1 * alone("collect")
    assert alone("walk", "freeze") > 0.9 * alone("walk")
