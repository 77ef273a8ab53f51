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


CALLERS, FRONTS = ("malloc", "free", "calloc"), ("malloc", "free")


def binary(directory: Path, name: str, probed: str) -> Path:
    return directory / f"{name}-{probed}"


@pytest.fixture(scope="module")
def alike(tmp_path_factory: pytest.TempPathFactory, places: dict[str, int]) -> Recording:
    """Programs that call from where a probe might be, and some with a second allocator in front, in turn."""
    directory = tmp_path_factory.mktemp("alike")
    lines = []
    for probed in CALLERS:
        lines.append(f"{build(binary(directory, 'caller', probed), 'caller.c', places[probed])} {COUNT}")
    for probed in FRONTS:
        front = build(binary(directory, "front", probed), "front.c", places[probed], "-shared", "-fPIC")
        lines.append(f"LD_PRELOAD={front} {workload('churn')} {COUNT}")
    return record(directory / "a.memtoll", "--probes", "alloc", command=["sh", "-c", " && ".join(lines)])


def calls_from(recording: Recording, pid: int, call: str, function: str) -> int:
    stacks = Stacks(recording).by_id
    rows = recording.query(
        f"SELECT stack_id, SUM(calls) FROM call WHERE call = '{call}' AND pid = {pid} AND calls > 0 GROUP BY 1"
    )
    return sum(calls for stack, calls in rows if function in [frame.function for frame in stacks[stack].frames])


@pytest.mark.parametrize("probed", CALLERS)
def test_return_to_where_a_probe_might_be(alike: Recording, places: dict[str, int], probed: str) -> None:
    program = binary(alike.path.parent, "caller", probed)
    for function in ("call_malloc", "call_free"):
        listed = subprocess.run([tool("objdump"), "-d", program], capture_output=True, text=True, check=True).stdout
        behind = re.search(rf"<{function}>:\n.*\n.*call .*\n *([0-9a-f]+):", listed)
        assert behind and int(behind[1], 16) % PAGE == places[probed], "the return address lies elsewhere"
    ((pid,),) = alike.query(f"SELECT pid FROM process WHERE executable = '{program}'")
    assert calls_from(alike, pid, "malloc", "call_malloc") == COUNT
    assert calls_from(alike, pid, "free", "call_free") == COUNT
    assert alike.report["losses"]["return_missed"] == 0


@pytest.mark.parametrize("probed", FRONTS)
def test_two_functions_with_the_same_entry(alike: Recording, probed: str) -> None:
    """Their cookies differ: which one was hit is asked of the kernel."""
    ((pid,),) = alike.query(f"SELECT pid FROM allocator WHERE module = '{binary(alike.path.parent, 'front', probed)}'")
    ((modules,),) = alike.query(f"SELECT COUNT(DISTINCT module) FROM allocator WHERE pid = {pid}")
    assert modules == 2
    assert calls_from(alike, pid, "malloc", "main") >= COUNT
    assert alike.site("churn.c", "malloc", "malloc").calls == len(FRONTS) * COUNT
    assert alike.site("churn.c", "free", "free").calls == len(FRONTS) * COUNT
    ((nested,),) = alike.query(f"SELECT SUM(nested_calls) FROM call WHERE call = 'malloc' AND pid = {pid}")
    assert nested >= COUNT
