# SPDX-License-Identifier: GPL-2.0
"""What of the kernel's zeroing is the clearing proper: by samples of its code, or by the calibration."""

from __future__ import annotations

import pytest

from facts import CLEAR_4K, MS, PAGE, US, Facts, S

PAGES = 100_003


@pytest.fixture
def made() -> Facts:
    """A second of CPU time, in which the first touch of pages took a fifth."""
    made = Facts()
    made.prices()
    made.slice()
    made.process()
    made.cpu(S, minor=PAGES)
    made.fault("zero", PAGES, 2 * US)
    return made


def test_by_samples_of_the_code_that_clears(made: Facts) -> None:
    made.samples("fault", 400, clearing=50)
    made.samples("user", 600)
    assert made.toll("zero.kernel")["clear_ns"] == pytest.approx(50 * MS)


def test_few_samples_are_a_bound(made: Facts) -> None:
    """The calibration says 25.6 ms; of a thousand samples one in that code are 5.6 at most, 15 are 24.7."""
    calibrated = PAGES * PAGE / CLEAR_4K * S
    made.samples("fault", 400, clearing=1)
    made.samples("user", 600)
    few = made.toll("zero.kernel")["clear_ns"]
    assert 5 * MS < few < 7 * MS < calibrated
    made.database.execute("UPDATE sample SET clearing = 15 WHERE place = 'fault'")
    more = made.toll("zero.kernel")["clear_ns"]
    assert 23 * MS < more < calibrated


def test_none_says_nothing(made: Facts) -> None:
    """So are recordings from before they were counted."""
    made.samples("fault", 400)
    made.samples("user", 600)
    assert made.toll("zero.kernel")["clear_ns"] == pytest.approx(PAGES * PAGE / CLEAR_4K * S)


def test_clearing_is_part_of_the_faults(made: Facts) -> None:
    made.samples("fault", 900, clearing=800)
    made.samples("user", 100)
    toll = made.toll("zero.kernel")
    assert toll["clear_ns"] == toll["time_ns"]


def test_huge_pages_have_their_own_clock(made: Facts) -> None:
    before = made.toll("zero.kernel")["clear_ns"]
    made.fault("zero_huge", 11, None, pages=11 * 512)
    made.samples("fault", 400, clearing=300)
    made.samples("user", 600)
    assert made.toll("zero.kernel")["clear_ns"] < before + 11 * 512 * PAGE / 1e9 * S
