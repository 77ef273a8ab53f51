# SPDX-License-Identifier: GPL-2.0
"""Frames of PHP in stacks. The witness is the interpreter's own idea of who called whom, and of its own faults."""

from __future__ import annotations

from pathlib import Path

import pytest

import interpreted
from harness import MIB, PAGE, SOURCES, Recording, record, site_line, tool

pytestmark = pytest.mark.root

SCRIPT, STACKS = "memory.php", "php_stacks.php"
OPTIONS = ("--overhead-limit", "none")
CASES = {"nested", "recursive", "new", "of a class", "missing", "sorted", "caught", "generator"}
ROUNDS, LINES = 101, 211
HUGE = 4 * MIB


def php() -> str | Path:
    return tool("php")


def advice(recording: Recording) -> dict[str, str]:
    return {row["code"]: row["text"] for row in recording.report["verdict"]["advice"]}


@pytest.mark.parametrize("how", ["started", "attached"])
def test_every_chain_is_the_interpreters(out: Path, how: str) -> None:
    if how == "started":
        recording = record(out, command=[php(), SOURCES / STACKS])
    else:
        recording = interpreted.traced(out, php(), SOURCES / STACKS, "wait", options=OPTIONS, stays=True)
    witness = [line for line in recording.witness if "case" in line]
    assert {line["case"] for line in witness} == CASES
    interpreted.check_cases(interpreted.touched(recording, "php"), witness, False)
    assert interpreted.woven(recording)


def test_lines_of_long_code(out: Path, tmp_path: Path) -> None:
    """Each line touches as many pages as no other."""
    script = tmp_path / "long.php"
    body = "\n".join(f"\tstr_repeat('x', {2 * MIB + PAGE * line});" for line in range(3, LINES))
    begin = "<?php echo json_encode(['ready' => true]), PHP_EOL; fgets(STDIN);"
    end = "echo json_encode(['faults' => 0]), PHP_EOL; fgets(STDIN);"
    script.write_text(f"{begin}\nfunction long() {{\n{body}\n}}\nlong();\n{end}\n")
    recording = interpreted.traced(out, php(), script, options=OPTIONS, stays=True)
    found = interpreted.touched(recording, "php")
    for line in range(3, LINES):
        # With the string's own head and end.
        size = found[(("long", line), ("{main}", LINES + 1))]
        assert size == 2 * MIB + PAGE * (line + 1), (line, size)


def test_clearing(out: Path) -> None:
    # So long that what is seen before the interpreter is known, on a busy machine, is the lesser part.
    recording = interpreted.traced(out, php(), SOURCES / SCRIPT, "clears", str(5 * ROUNDS), str(HUGE))
    assert recording.dominant == "zeroing", recording.report["verdict"]
    place = f"{SCRIPT}:{site_line(SCRIPT, 'clears')} (answer)"
    assert place in recording.report["verdict"]["sentence"]
    top = recording.report["sites"][0]
    assert interpreted.own(top["touched_at"], "php") == ("answer", SCRIPT, site_line(SCRIPT, "clears"))
    assert interpreted.woven(recording)


def test_huge_blocks_of_its_allocator(out: Path) -> None:
    recording = interpreted.traced(out, php(), SOURCES / SCRIPT, "returns", str(ROUNDS), str(HUGE))
    faults = recording.witness[-1]["faults"]
    assert faults >= ROUNDS * HUGE // PAGE
    assert recording.toll("zero.kernel", "pages") >= 0.95 * faults
    assert recording.dominant == "zeroing", recording.report["verdict"]
    text = advice(recording)["own-storm"]
    assert f"{SCRIPT}:{site_line(SCRIPT, 'returns')} (page)" in text and "ZendMM" in text
    # What the advice says of it: as many bytes in all.
    assert interpreted.alone(php(), SOURCES / SCRIPT, "returns", str(4 * ROUNDS), str(HUGE // 4)) < 0.01 * faults


def test_memory_that_is_kept(out: Path) -> None:
    recording = interpreted.traced(out, php(), SOURCES / SCRIPT, "keeps", str(10 * ROUNDS), str(HUGE))
    assert recording.dominant == "compute", recording.report["verdict"]
    assert set(advice(recording)) == {"none"}
