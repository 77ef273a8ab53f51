# SPDX-License-Identifier: GPL-2.0
"""What single long calls are put down to: facts written by hand. No root, no tracer."""

from __future__ import annotations

import pytest

from facts import MS, Facts, S

CALLS = 1009
FREES = 13_874
LONG = 3 * MS


@pytest.fixture
def made() -> Facts:
    """A program that frees many small blocks and then asks for a large one."""
    facts = Facts()
    facts.prices()
    facts.slice()
    facts.process()
    facts.cpu(S)
    facts.allocator(version="2.36")
    facts.call("malloc", 0, CALLS, cpu_ns=CALLS * 100 + LONG)
    facts.row("latency", pid=42, stack_id=0, call="malloc", low_ns=64, high_ns=128, calls=CALLS)
    return facts


def outlier(facts: Facts, cpu_ns: int, stack: int, call: str = "malloc", wall_ns: int = LONG) -> None:
    columns = facts.rows("SELECT name FROM pragma_table_info('outlier')")
    values: dict[str, object] = dict.fromkeys((column["name"] for column in columns), 0)
    values |= {"slice": 1, "pid": 42, "tid": 42, "call": call, "stack_id": stack, "size_bytes": 2000, "glibc": 1}
    values |= {"wall_ns": wall_ns, "cpu_ns": cpu_ns, "median_ns": 100, "frees": FREES, "involuntary": cpu_ns < wall_ns}
    facts.row("outlier", **values)


def told(facts: Facts) -> list[str]:
    return [row["evidence"] for row in facts.rows("SELECT evidence FROM finding WHERE code = 'consolidation'")]


def test_a_long_call_on_the_processor(made: Facts) -> None:
    outlier(made, LONG, made.stack(("malloc", "", 0), ("large", "/src/program.c", 7)))
    (evidence,) = told(made)
    assert evidence.startswith("3.00 ms of CPU time in one call, after 13,874 frees")


def test_a_call_that_others_held_up(made: Facts) -> None:
    """Half a millisecond is its own: the rest is the machine's doing, and no change of the program helps."""
    outlier(made, MS // 2, made.stack(("malloc", "", 0), ("large", "/src/program.c", 7)))
    assert made.one("SELECT cause FROM outlier_cause") == {"cause": "consolidation"}
    assert not told(made)


def test_of_two_the_one_that_took_longer_itself(made: Facts) -> None:
    outlier(made, MS // 2, made.stack(("malloc", "", 0), ("held_up", "/src/program.c", 7)))
    outlier(made, LONG - MS, made.stack(("malloc", "", 0), ("large", "/src/program.c", 9)))
    (evidence,) = told(made)
    assert evidence.startswith("2.00 ms of CPU time in one call")
    assert made.one("SELECT consolidation_place FROM latency_measure") == {"consolidation_place": "program.c:9 (large)"}


def test_one_that_is_long_for_its_function_comes_first(made: Facts) -> None:
    """Of a function whose calls all take long a longer one is nothing new, and does not hide another's."""
    made.call("calloc", 0, CALLS, cpu_ns=CALLS * MS // 3)
    made.row("latency", pid=42, stack_id=0, call="calloc", low_ns=300_000, high_ns=310_000, calls=CALLS)
    outlier(made, LONG + MS, made.stack(("calloc", "", 0), ("slow", "/src/program.c", 7)), "calloc", LONG + MS)
    outlier(made, LONG, made.stack(("malloc", "", 0), ("large", "/src/program.c", 9)))
    (evidence,) = told(made)
    assert evidence.startswith("3.00 ms of CPU time in one call")


def test_none_is_longer_than_the_longest(made: Facts) -> None:
    """One call in fifty took a millisecond, and what has a record of its own is shorter."""
    made.row("latency", pid=42, stack_id=0, call="malloc", low_ns=1 << 20, high_ns=1 << 21, calls=CALLS // 49)
    outlier(made, 150_000, made.stack(("malloc", "", 0), ("large", "/src/program.c", 7)), wall_ns=150_000)
    row = made.one("SELECT p50_ns, p90_ns, p99_ns, p999_ns, max_ns FROM latency_call")
    assert list(row.values()) == sorted(row.values()), row
    assert row["p99_ns"] >= 1 << 20
    outlier(made, 1_100_000, made.stack(("malloc", "", 0), ("larger", "/src/program.c", 9)), wall_ns=1_100_000)
    row = made.one("SELECT p99_ns, p999_ns, max_ns FROM latency_call")
    assert row["max_ns"] == 1_100_000 and row["p999_ns"] == 1_100_000, row
