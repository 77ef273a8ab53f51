# SPDX-License-Identifier: GPL-2.0
"""What the notebooks say of times."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest
from test_notebooks import Place, execute, place

import harness
from suite import undecided

__all__ = ["place"]

pytestmark = [pytest.mark.root, pytest.mark.measure]

TIDY = {"GLIBC_TUNABLES": "glibc.malloc.mxfast=0"}


def moved_to_frees(program: Path, calls: int) -> tuple[float, float]:
    """How much longer a free takes that tidies, in nanoseconds, and all of them over what the late malloc took.

    Without a tracer. Run by turns, and the median of the pairs: a neighbour slows down both.
    """
    longer, shares = [], []
    for _ in range(11):
        runs = [harness.finish(harness.spawn([program, str(calls)], env)) for env in (None, TIDY)]
        assert [run.status for run in runs] == [0, 0], runs
        put_off, tidy = (run.witness[0] for run in runs)
        longer.append(tidy["drop_ns"] - put_off["drop_ns"])
        shares.append(longer[-1] * calls / put_off["late_ns"])
    return statistics.median(longer), statistics.median(shares)


def test_latency(place: Place) -> None:
    done = place.record("04_latency")
    calls = 500009
    run = execute(
        "04_latency",
        place.recordings,
        place.work,
        {
            "late": "late['mean_ns']",
            "usual": "usual['at_most_ns']",
            "outlier": "int(outlier['wall_ns'])",
            "moved": "moved.values.tolist()",
        },
    )
    figures = run.figures
    # The program's own clock has the probes in it, which are taken out here.
    assert figures["late"] == pytest.approx(done[0]["late_ns"], rel=0.1)
    assert figures["late"] > 300 * figures["usual"]
    # Wall time, the program's clock is that of the processor.
    assert figures["outlier"] > 0.9 * done[0]["late_ns"]
    (late, _), (late_tidy, _) = figures["moved"]
    assert late == pytest.approx(figures["late"], rel=0.01)
    assert late_tidy < 0.1 * late
    assert late_tidy <= done[1]["late_ns"] < 0.1 * done[0]["late_ns"]
    # What the text says of an untraced run: each free takes longer, all together a little less than the one call took,
    # or up to four times that.
    longer_ns, share = moved_to_frees(place.recordings / "deferred", calls)
    assert longer_ns > 1
    assert 1 / 3 < share < 6


def test_comparison(place: Place) -> None:
    """What the notebook concludes: the one got faster, the other slower, and neither by chance."""
    place.record("05_comparison")
    wanted = {
        "ratio": "decision['ratio'].tolist()",
        "changed": "[None if str(value) == '<NA>' else bool(value) for value in decision['changed']]",
    }
    figures = execute("05_comparison", place.recordings, place.work, wanted).figures
    if None in figures["changed"]:
        undecided(f"the bounds of what changed are not known: {figures}")
    assert figures["ratio"][0] < 0.5 and figures["ratio"][1] > 1.3
    assert figures["changed"] == [True, True]
