# SPDX-License-Identifier: GPL-2.0
"""How measurements are judged, on machines that are made up. No root."""

from __future__ import annotations

import contextlib
import io
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Mapping

import pytest

import measuring
from measuring import Answer, Bound, between, control, decide, decide_all, interval, median_bounds, middle, settle


class Machine:
    """A program's runs on it: seconds go by, and each becomes slower by drift and off by noise."""

    def __init__(self, seed: int, noise: float, drift: float = 0.0) -> None:
        self.random = random.Random(seed)
        self.noise, self.drift, self.runs = noise, drift, 0

    def run(self, cost: float = 1.0) -> float:
        self.runs += 1
        return cost * (1 + self.drift * self.runs) * self.random.lognormvariate(0, self.noise)

    def clock(self) -> float:
        return float(self.runs)


def rounds(machine: Machine, adds: float) -> Callable[[], Mapping[str, float]]:
    def bare() -> float:
        return machine.run()

    def traced() -> float:
        return machine.run(1 + adds)

    made = between(bare, [traced, bare], middle)

    def once() -> Mapping[str, float]:
        bare, (traced, again) = next(made)
        return {"adds": traced / bare - 1, "bare against bare": again / bare}

    return once


BOUNDS = {"adds": Bound(most=0.06), "bare against bare": control(1.0)}


def judged(machine: Machine, adds: float, others: float = 0.0) -> Answer:
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            settle(rounds(machine, adds), BOUNDS, 150, lambda: others, machine.clock)
    except AssertionError as error:
        assert "adds" in str(error) and "at most 0.06" in str(error)
        return Answer.FAILS
    except pytest.skip.Exception as error:
        assert "undecided: adds" in str(error) and "bare against bare" in str(error)
        return Answer.UNDECIDED
    return Answer.HOLDS


def outcomes(noise: float, adds: float, drift: float = 0.0, others: float = 0.0) -> dict[Answer, int]:
    answers = [judged(Machine(seed, noise, drift), adds, others) for seed in range(200)]
    return {answer: answers.count(answer) for answer in Answer}


def test_quiet_machine_decides() -> None:
    """What holds holds and what does not fails, but for the few that the control stops: it is one of 95 %."""
    assert outcomes(0.005, 0.03)[Answer.HOLDS] >= 198
    assert outcomes(0.005, 0.09)[Answer.FAILS] >= 190
    assert outcomes(0.005, 0.03)[Answer.FAILS] == 0
    assert outcomes(0.005, 0.09)[Answer.HOLDS] == 0


@pytest.mark.slow
def test_noisy_machine_is_undecided() -> None:
    """Noise of twenty times the difference: mostly so, and next to never that the product is broken."""
    good, bad = outcomes(0.6, 0.03), outcomes(0.6, 0.09)
    assert good[Answer.UNDECIDED] >= 160 and bad[Answer.UNDECIDED] >= 160
    assert good[Answer.FAILS] <= 4 and bad[Answer.HOLDS] <= 20


@pytest.mark.slow
def test_at_the_bound_few_fail() -> None:
    """It is asked after each of fifty rounds, and fails by an interval of 99 % each time: a chain of those."""
    assert outcomes(0.02, 0.06)[Answer.FAILS] <= 20


def test_drift_cancels() -> None:
    """A machine that is half as fast at the end; a difference of 3 % is seen all the same."""
    assert outcomes(0.005, 0.03, drift=1 / 150)[Answer.HOLDS] >= 195
    assert outcomes(0.005, 0.09, drift=1 / 150)[Answer.FAILS] >= 185


@pytest.mark.slow
def test_busy_machine_does_not_fail() -> None:
    assert outcomes(0.005, 0.09, others=1.0) == {Answer.HOLDS: 0, Answer.FAILS: 0, Answer.UNDECIDED: 200}
    assert outcomes(0.005, 0.03, others=1.0)[Answer.HOLDS] >= 198


def test_a_control_that_is_off_stops_a_failure() -> None:
    values = {"adds": [0.09] * 20, "bare against bare": [1.05] * 20}
    assert decide_all(BOUNDS, values) is Answer.UNDECIDED
    assert decide_all(BOUNDS, values | {"bare against bare": [0.95, 1.05] * 10}) is Answer.FAILS
    assert decide_all(BOUNDS, {"adds": [0.01] * 20, "bare against bare": [1.05] * 20}) is Answer.UNDECIDED


def test_too_few_rounds_are_undecided() -> None:
    assert decide(Bound(most=1), [0.0] * 5) is Answer.UNDECIDED
    assert decide(Bound(most=1), [0.0] * 6) is Answer.HOLDS
    assert decide(Bound(most=1), [2.0] * 7) is Answer.UNDECIDED
    assert decide(Bound(most=1), [2.0] * 8) is Answer.FAILS
    assert decide(Bound(least=1), [0.0] * 8) is Answer.FAILS
    assert decide(Bound(1, 3), [0.0] * 4 + [2.0] * 4) is Answer.UNDECIDED


def test_a_median_s_interval_is_that_of_order_statistics() -> None:
    """Of 21 values the sixth from either end; below six no interval at 95 % can be had: all of them."""
    assert median_bounds([float(value) for value in range(21, 0, -1)]) == (6.0, 16.0)
    assert median_bounds([3.0, 1.0, 2.0]) == (1.0, 3.0)
    # 1.4 % of 21 coins fall on one side five times at the most, 0.4 % four times.
    assert median_bounds([float(value) for value in range(21, 0, -1)], measuring.SURE) == (5.0, 17.0)
    assert str(interval([1.0, 2.0, 3.0])) == "2 (1 to 3; 3 rounds)"


def test_each_turn_is_first_as_often_as_last() -> None:
    order: list[str] = []

    def turn(name: str) -> Callable[[], float]:
        return lambda: order.append(name) or 1.0  # type: ignore[func-returns-value]

    made = between(turn("bare"), [turn("a"), turn("b")], middle)
    assert [next(made) for _ in range(2)] == [(1.0, [1.0, 1.0])] * 2
    assert order == ["bare", "a", "b", "bare", "b", "a", "bare"]


@pytest.mark.slow
def test_own_work_is_not_that_of_others() -> None:
    """A child's and a grandchild's; after it has ended, too. Only the machine's own account says what others did."""
    before = measuring.own_ticks()
    loop = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass"
    subprocess.run(["sh", "-c", '"$@"; :', "sh", sys.executable, "-c", loop], check=True, timeout=60)
    # Of each process, of what it does itself and of what the kernel does for it, a part of a tick is not counted.
    assert measuring.own_ticks() - before >= 0.3 * os.sysconf("SC_CLK_TCK") - 5
    others = measuring.Others()
    time.sleep(0.01)
    assert 0 <= others.processors() <= (os.cpu_count() or 1) * 2
