# SPDX-License-Identifier: GPL-2.0
"""Addresses that look like a probe's: an entry is known by its place in its page, unless something else lies alike."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from chains import Stacks
from harness import PAGE, SOURCES, Program, Recording, memtoll, record, tool, workload

pytestmark = pytest.mark.root

COUNT = 2003


@pytest.fixture(scope="module")
def places() -> dict[str, int]:
    """How far into its page libc's functions are probed."""
    with Program(workload("churn"), "0", "--seconds", "60", "--rest", "5000") as program:
        result = memtoll("doctor", "--json", "-p", str(program.pid))
    assert result.status == 0, result
    found = {}
    for probe in json.loads(result.stdout)["probes"]:
        symbols = subprocess.run([tool("nm"), "-D", probe["module"]], capture_output=True, text=True, check=True)
        address = re.search(rf"^([0-9a-f]+) [TWit] {probe['symbol']}(@@\S+)?$", symbols.stdout, re.M)
        assert address
        found[probe["symbol"]] = (int(address[1], 16) + probe["offset"]) % PAGE
    return found


def build(path: Path, source: str, at: int, *flags: str) -> Path:
    command = [tool("gcc"), "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g", f"-DAT={at}", *flags]
    subprocess.run([*command, SOURCES / "alike" / source, "-o", path], check=True, timeout=60)
    return path


def calls_from(recording: Recording, call: str, function: str) -> int:
    stacks = Stacks(recording).by_id
    rows = recording.query(f"SELECT stack_id, SUM(calls) FROM call WHERE call = '{call}' GROUP BY 1")
    return sum(calls for stack, calls in rows if function in [frame.function for frame in stacks[stack].frames])


@pytest.mark.parametrize("probed", ["malloc", "free", "calloc"])
def test_return_to_where_a_probe_might_be(out: Path, tmp_path: Path, places: dict[str, int], probed: str) -> None:
    program = build(tmp_path / "caller", "caller.c", places[probed])
    for function in ("call_malloc", "call_free"):
        listed = subprocess.run([tool("objdump"), "-d", program], capture_output=True, text=True, check=True).stdout
        behind = re.search(rf"<{function}>:\n.*\n.*call .*\n *([0-9a-f]+):", listed)
        assert behind and int(behind[1], 16) % PAGE == places[probed], "the return address lies elsewhere"
    recording = record(out, "--probes", "alloc", command=[program, str(COUNT)])
    assert calls_from(recording, "malloc", "call_malloc") == COUNT
    assert calls_from(recording, "free", "call_free") == COUNT
    assert recording.report["losses"].get("return_missed", 0) == 0


@pytest.mark.parametrize("probed", ["malloc", "free"])
def test_two_functions_with_the_same_entry(out: Path, tmp_path: Path, places: dict[str, int], probed: str) -> None:
    """Their cookies differ: which one was hit is asked of the kernel."""
    front = build(tmp_path / "front.so", "front.c", places[probed], "-shared", "-fPIC")
    command: list[str | Path] = [workload("churn"), str(COUNT)]
    recording = record(out, "--probes", "alloc", command=command, env={"LD_PRELOAD": str(front)})
    modules = {row[0] for row in recording.query("SELECT module FROM allocator")}
    assert str(front) in modules, modules
    assert recording.site("churn.c", "malloc", "malloc").calls == COUNT
    assert recording.site("churn.c", "free", "free").calls == COUNT
    ((nested,),) = recording.query("SELECT SUM(nested_calls) FROM call WHERE call = 'malloc'")
    assert nested >= COUNT
