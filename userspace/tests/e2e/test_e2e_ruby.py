# SPDX-License-Identifier: GPL-2.0
"""Frames of Ruby in stacks. The witness is the interpreter's own idea of who called whom, and of its own faults."""

from __future__ import annotations

from pathlib import Path

import pytest

import interpreted
from harness import MIB, PAGE, SOURCES, Recording, record, site_line, tool

pytestmark = pytest.mark.root

SCRIPT, STACKS = "memory.rb", "ruby_stacks.rb"
OPTIONS = ("--overhead-limit", "none", "--probes", "alloc")
CASES = {
    "nested", "recursive", "new", "defined by a block", "of a class", "missing", "sorted", "rescued", "lambda", "eval",
    "fiber", "thread", "written in Ruby",
}  # fmt: skip
ROUNDS, LINES = 101, 307
OBJECTS, CHILDREN = 400_009, 7


def ruby() -> str | Path:
    return tool("ruby")


def advice(recording: Recording) -> dict[str, str]:
    return {row["code"]: row["text"] for row in recording.report["verdict"]["advice"]}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Small enough for the page cache."""
    path = tmp_path / "file"
    path.write_bytes(b"words\n" * (8 * MIB // 6 + 1))
    return path


@pytest.mark.parametrize("how", ["started", "attached"])
def test_every_chain_is_the_interpreters(out: Path, how: str) -> None:
    if how == "started":
        recording = interpreted.started(out, "tapped", ruby(), SOURCES / STACKS, "stay", options=OPTIONS)
    else:
        recording = interpreted.traced(out, ruby(), SOURCES / STACKS, "wait", options=OPTIONS, stays=True)
    witness = [line for line in recording.witness if "case" in line]
    assert {line["case"] for line in witness} == CASES
    interpreted.check_cases(interpreted.allocated(recording, "ruby", MIB), witness, True)


def test_lines_of_long_code(out: Path, tmp_path: Path) -> None:
    """Its table has blocks of bits. Each line asks for a size of its own."""
    script = tmp_path / "long.rb"
    body = "\n".join(f'  "x" * {MIB + PAGE * line}' for line in range(2, LINES))
    script.write_text(f"def long\n{body}\nend\nlong\n")
    recording = record(out, "--probes", "alloc", command=[ruby(), script])
    found = interpreted.allocated(recording, "ruby", MIB)
    for line in range(2, LINES):
        assert found[(("long", line), ("<main>", LINES + 1))] == MIB + PAGE * line + 1, line


def test_clearing(out: Path) -> None:
    recording = interpreted.traced(out, ruby(), SOURCES / SCRIPT, "clears", str(70 * ROUNDS), str(MIB))
    assert recording.dominant == "zeroing", recording.report["verdict"]
    place = f"{SCRIPT}:{site_line(SCRIPT, 'clears')} (answer)"
    assert place in recording.report["verdict"]["sentence"]
    top = recording.report["sites"][0]
    assert interpreted.own(top["allocated_at"], "ruby") == ("answer", SCRIPT, site_line(SCRIPT, "clears"))
    assert interpreted.woven(recording)


def test_memory_that_goes_back(out: Path, file: Path) -> None:
    size = 8 * MIB
    words = (str(ROUNDS), str(size), str(file))
    recording = interpreted.traced(out, ruby(), SOURCES / SCRIPT, "returns", *words)
    faults = recording.witness[-1]["faults"]
    assert recording.toll("zero.kernel", "pages") >= 0.95 * faults
    storms = [text for code, text in advice(recording).items() if code.endswith("-storm")]
    assert storms, advice(recording)
    for text in storms:
        assert f"{SCRIPT}:{site_line(SCRIPT, 'returns')} (fetch)" in text and "io.read(n, buffer)" in text
    # What the advice says of it.
    assert interpreted.alone(ruby(), SOURCES / SCRIPT, "keeps", *words) < 0.1 * faults


def test_memory_that_is_kept(out: Path, file: Path) -> None:
    words = (str(5 * ROUNDS), str(8 * MIB), str(file))
    recording = interpreted.traced(out, ruby(), SOURCES / SCRIPT, "keeps", *words)
    assert recording.witness[-1]["faults"] < 2 * 8 * MIB // PAGE
    assert recording.dominant != "zeroing", recording.report["verdict"]
    assert set(advice(recording)) == {"none"}


def test_pages_that_a_child_copies(out: Path) -> None:
    recording = interpreted.traced(out, ruby(), SOURCES / SCRIPT, "copies", str(OBJECTS), str(CHILDREN))
    faults = recording.witness[-1]["faults"]
    ((copied,),) = recording.query(
        "SELECT SUM(pages) FROM fault WHERE class = 'cow' AND area NOT IN ('file', 'library') AND touched_stack IN"
        " (SELECT stack_id FROM stack_frame JOIN frame USING (frame_id) WHERE function = 'collect' AND kind = 'ruby')"
    )
    assert 0.9 * faults <= copied <= faults
    text = advice(recording)["cow"]
    assert f"{SCRIPT}:{site_line(SCRIPT, 'copies')} (collect)" in text and "Process.warmup" in text
    # What the advice says of it.
    assert interpreted.alone(ruby(), SOURCES / SCRIPT, "copies", str(OBJECTS), str(CHILDREN), "compact") < 0.5 * faults
