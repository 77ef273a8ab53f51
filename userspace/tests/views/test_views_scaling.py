# SPDX-License-Identifier: GPL-2.0
"""What windows saw, scaled to the whole: facts written by hand, figures worked out by hand. No root, no tracer."""

from __future__ import annotations

from typing import Any

import pytest

from facts import HIT, INSIDE, MALLOC_NS, MS, US, Facts, S

SLICES = 4
CALLS = 20_011  # in each slice's window
WINDOW = 100 * MS
SITE = 5
PRICE_ERROR = 0.35  # where nothing but the calibration and short calls tell what a hit costs in a window


def short(pace: float) -> float:
    """What a short call seems to take where probes cost pace times their calibrated price."""
    return INSIDE * pace / 1.10 + MALLOC_NS


def watched(pace: float = 1.0, window_ns: float = WINDOW, calls: int = CALLS) -> Facts:
    """Four seconds of CPU time, in each of which malloc was watched for a tenth of a second."""
    made = Facts()
    made.prices()
    made.process()
    for number in range(1, SLICES + 1):
        made.slice(number)
        made.cpu(S, number=number)
        length = round(window_ns)
        made.row("watch", slice=number, call="malloc", windows=1, watched_ns=length, watched_cpu_ns=length)
        made.row("hit", slice=number, pid=42, probe="malloc", hits=calls)
        made.call("malloc", SITE, calls, slice=number, bytes=48 * calls, cpu_ns=round(calls * short(pace)))
    return made


def scale(made: Facts) -> dict[str, Any]:
    return made.one("SELECT * FROM call_scale WHERE call = 'malloc'")


def test_windows_are_scaled_by_own_time() -> None:
    made = watched()
    window, whole = WINDOW - CALLS * HIT, S - CALLS * HIT
    row = scale(made)
    assert row["factor"] == pytest.approx(whole / window, rel=1e-4)
    assert row["seen_share"] == pytest.approx(window / whole, rel=1e-4)
    # All windows saw the same: what is left is the price's error, a good third of it, in a quotient.
    part = PRICE_ERROR * CALLS * HIT / window
    assert row["error"] == pytest.approx(part / (1 - part), rel=1e-3)
    estimate = made.one("SELECT * FROM call_estimate")
    seen = SLICES * CALLS
    assert estimate["estimated"] == 1 and estimate["seen_calls"] == seen
    assert estimate["calls"] == pytest.approx(seen * whole / window, rel=1e-4)
    assert estimate["bytes"] == pytest.approx(48 * estimate["calls"], rel=1e-6)
    # and that of so many calls, at most a tenth above 1.96 of their root.
    counted = 1.96 / seen**0.5
    low, high = (estimate["calls"] * (row["error"] + part * counted) for part in (1, 1.1))
    assert low <= estimate["calls_error"] <= high


SHORT, SHORT_CALLS = 43, 251


def beside_a_short_one() -> Facts:
    """Process 42 is watched for a tenth of its time in each slice; 43 lives for 2 ms within one of the windows."""
    made = watched()
    made.process(pid=SHORT)
    for number in range(1, SLICES + 1):
        row = {"slice": number, "call": "malloc", "pid": 42, "windows": 1}
        made.row("watch_process", **row, cpu_ns=S, watched_cpu_ns=WINDOW)
    made.row("watch_process", slice=2, call="malloc", pid=SHORT, windows=1, cpu_ns=2 * MS, watched_cpu_ns=2 * MS)
    made.cpu(2 * MS, number=2, pid=SHORT)
    made.row("hit", slice=2, pid=SHORT, probe="malloc", hits=SHORT_CALLS)
    made.call("malloc", SITE + 1, SHORT_CALLS, slice=2, pid=SHORT, bytes=48, cpu_ns=round(SHORT_CALLS * short(1.0)))
    return made


def test_a_process_that_lived_within_a_window_is_as_it_was_seen() -> None:
    made = beside_a_short_one()
    rows = {row["pid"]: row for row in made.rows("SELECT * FROM call_estimate")}
    assert rows[SHORT]["calls"] == rows[SHORT]["seen_calls"] == SHORT_CALLS
    assert rows[SHORT]["calls_error"] <= 1
    # All the others are of the one that was watched in part: the sum is what the factor of all says.
    every = scale(made)["factor"] * (SLICES * CALLS + SHORT_CALLS)
    assert rows[42]["calls"] == pytest.approx(every - SHORT_CALLS, rel=1e-4)
    # Its bounds are those of the function.
    assert rows[42]["error"] == pytest.approx(scale(made)["error"], rel=1e-6)


def test_a_process_goes_by_its_own_windows() -> None:
    """Half of what 43 did was seen, in one window: twice as much, and as uncertain as one window is."""
    made = beside_a_short_one()
    made.database.execute(f"UPDATE watch_process SET cpu_ns = 2 * cpu_ns WHERE pid = {SHORT}")
    row = made.one(f"SELECT * FROM process_scale WHERE pid = {SHORT}")
    own = 2 * MS - SHORT_CALLS * HIT
    assert row["part"] == pytest.approx(own / (4 * MS - SHORT_CALLS * HIT), rel=1e-6)
    (long,) = made.rows("SELECT * FROM process_scale WHERE pid = 42")
    # 42 goes by the same clock: the level is near 1.
    assert row["factor"] == pytest.approx(1 / row["part"], rel=0.01)
    assert long["factor"] == pytest.approx(scale(made)["factor"], rel=0.01)
    assert row["error"] == pytest.approx(1.96 * (1 - row["part"]), rel=0.01)


def test_a_process_that_no_window_saw_enough_of_goes_with_the_others() -> None:
    made = beside_a_short_one()
    made.database.execute(f"UPDATE watch_process SET cpu_ns = {S}, watched_cpu_ns = 1000 WHERE pid = {SHORT}")
    factor = made.one(f"SELECT factor FROM process_scale WHERE pid = {SHORT}")["factor"]
    assert factor <= 10.5 * scale(made)["factor"]


def test_an_estimate_is_written_as_one() -> None:
    """Some 800 k calls, of which 80,044 were seen: two digits, and a mark; what was watched always is exact."""
    made = watched()
    assert [row["toll"] for row in made.rows("SELECT toll FROM estimated_count")] == ["alloc"]
    calls = made.one("SELECT calls FROM call_estimate")["calls"]
    assert made.one("SELECT text FROM figure WHERE name = 'alloc_calls'")["text"] == f"~{round(calls / 1e4) * 10} k"
    assert made.one("SELECT text FROM figure WHERE name = 'map_calls'")["text"] == "0"
    made.database.execute("DELETE FROM watch")
    assert made.one("SELECT text FROM figure WHERE name = 'alloc_calls'")["text"] == f"{SLICES * CALLS:,}"


def beyond(made: Facts) -> dict[int, dict[str, Any]]:
    """A slice before them, watched throughout: a site of 101 calls that no window saw, and a process that ended."""
    made.slice(0)
    made.cpu(S // 2, number=0)
    made.call("malloc", 11, 101, slice=0, bytes=101 * 80, cpu_ns=round(101 * short(1.0)))
    made.process(pid=43)
    made.cpu(S // 2, pid=43, number=0)
    made.call("malloc", 13, 103, pid=43, slice=0, bytes=103 * 80, cpu_ns=round(103 * short(1.0)))
    return {row["stack_id"]: row for row in made.rows("SELECT * FROM call_estimate")}


def test_a_site_that_no_window_saw_is_not_exact() -> None:
    made = watched()
    sites = beyond(made)
    # Rule of three: of nothing seen in a part of the time, at most 3 over that part.
    row = scale(made)
    most = 3 / row["seen_share"] * (1 + row["error"])
    assert sites[11]["estimated"] == 1 and sites[11]["calls"] == 101
    assert sites[11]["calls_error"] == pytest.approx(most, abs=1)
    assert sites[11]["bytes_error"] == pytest.approx(80 * most, abs=1)
    # The function's calls were seen: they bound its time.
    assert sites[11]["error"] == 0
    assert sites[13]["estimated"] == 0 and sites[13]["calls_error"] == sites[13]["bytes_error"] == 0


def test_slices_without_a_window_are_bounded_by_the_rate_before() -> None:
    made = watched()
    made.database.execute("UPDATE watch SET windows = 0, watched_ns = 0, watched_cpu_ns = 0")
    made.database.execute("DELETE FROM call")
    made.database.execute("DELETE FROM hit")
    sites = beyond(made)
    # Four seconds on the CPU without a look, after half of one that was seen.
    assert sites[11]["estimated"] == 1 and sites[11]["calls"] == 101
    assert sites[11]["calls_error"] == 8 * 101 and sites[11]["error"] == pytest.approx(8)
    assert sites[13]["estimated"] == 0 and sites[13]["error"] == 0


def test_windows_without_a_call_bound_the_function() -> None:
    made = watched()
    made.database.execute("DELETE FROM call")
    made.database.execute("DELETE FROM hit")
    sites = beyond(made)
    most = 3 * S / WINDOW
    assert sites[11]["calls_error"] == pytest.approx(most, abs=1)
    assert sites[11]["error"] == pytest.approx(most / 101)


def test_windows_that_differ_have_an_error() -> None:
    made = watched()
    made.database.execute("UPDATE call SET calls = 2 * calls, timed_calls = 2 * calls WHERE slice = 2")
    made.database.execute("UPDATE hit SET hits = 2 * hits WHERE slice = 2")
    x = [WINDOW - number * CALLS * HIT for number in (1, 2, 1, 1)]
    own = [S - number * CALLS * HIT for number in (1, 2, 1, 1)]
    y = [CALLS, 2 * CALLS, CALLS, CALLS]
    ratio = sum(y) / sum(x)
    without = [(sum(y) - b) / (sum(x) - a) for a, b in zip(x, y)]
    spread = (SLICES - 1) / SLICES * sum((one - ratio) ** 2 for one in without)
    variance = spread / ratio**2 * (1 - sum(x) / sum(own))
    part = PRICE_ERROR * 5 * CALLS * HIT / sum(x)
    # As long as before, each. 3.18: the 97.5 % quantile of t with three degrees of freedom.
    made.database.execute(f"UPDATE call SET cpu_ns = calls * {short(1.0)}")
    assert scale(made)["error"] == pytest.approx(3.18 * variance**0.5 + part / (1 - part), rel=1e-3)


def test_a_slice_that_is_nearly_all_says_little_of_the_others() -> None:
    """Nine tenths of the first second were watched, a hundredth of the others, where it calls five times as often."""
    made = watched()
    rates = {1: 20_000, 2: 101_000, 3: 99_000, 4: 100_000}
    for number, rate in rates.items():
        window = 900 * MS if number == 1 else 10 * MS
        calls = round(rate * window / S)
        length = round(window)
        made.database.execute(f"UPDATE watch SET watched_ns={length}, watched_cpu_ns={length} WHERE slice = {number}")
        made.database.execute(
            f"UPDATE call SET calls={calls}, timed_calls={calls}, cpu_ns={calls * short(1.0)} WHERE slice = {number}"
        )
        made.database.execute(f"UPDATE hit SET hits = {calls} WHERE slice = {number}")
    estimate = made.one("SELECT * FROM call_estimate")
    assert estimate["calls"] < sum(rates.values()) / 2
    assert sum(rates.values()) <= estimate["calls"] + estimate["calls_error"]


def test_one_window_gives_no_estimate() -> None:
    made = watched()
    made.database.execute("UPDATE watch SET watched_ns = 0, watched_cpu_ns = 0 WHERE slice > 1")
    made.database.execute("DELETE FROM call WHERE slice > 1")
    made.database.execute("DELETE FROM hit WHERE slice > 1")
    assert scale(made)["error"] >= 1


@pytest.mark.parametrize("pace", [0.7, 1.3])
def test_a_hit_costs_what_it_costs_there(pace: float) -> None:
    """Of short calls all but the call itself is the probes'. What is above the calibration may be the calls' own."""
    made = watched(pace)
    assert made.one("SELECT scale FROM probe_pace")["scale"] == pytest.approx(pace, rel=1e-3)
    window = WINDOW - CALLS * HIT * pace
    row = scale(made)
    part = PRICE_ERROR * CALLS * HIT * pace / window
    assert row["seen_share"] == pytest.approx(window / (S - CALLS * HIT * pace), rel=1e-3)
    assert row["error"] == pytest.approx(part / (1 - part), rel=1e-2)
    # The overhead follows only where the calibration was too dear: else it may be the calls.
    cost = made.one("SELECT hit_ns FROM probe_cost WHERE probe = 'malloc'")
    assert cost["hit_ns"] == pytest.approx(HIT * min(1, pace), rel=1e-3)


def test_few_short_calls_say_nothing_of_the_price() -> None:
    made = watched(0.5, calls=101)
    assert made.one("SELECT scale FROM probe_pace")["scale"] is None
    assert made.one("SELECT hit_ns FROM probe_cost WHERE probe = 'malloc'")["hit_ns"] == HIT
    window = WINDOW - 101 * HIT
    part = PRICE_ERROR * 101 * HIT / window
    assert scale(made)["error"] == pytest.approx(part / (1 - part), rel=1e-3)


@pytest.mark.parametrize("beside", [2 * MS, -2 * MS])
def test_nothing_beside_hits_is_at_most_ten_times_as_much(beside: float) -> None:
    """Where hits take all of a window, a fiftieth is taken to be the program's; the bound says how little that is."""
    window = CALLS * HIT + beside
    row = scale(watched(window_ns=window))
    assert row["error"] == pytest.approx(9, rel=0.01)
    assert row["seen_share"] == pytest.approx(max(beside, 0.02 * window) / (S - CALLS * HIT), rel=1e-3)


def paced(made: Facts, price: float, tightest: int) -> None:
    """Gaps that say what a hit costs: price, by short calls that take INSIDE and MALLOC_NS."""
    made.database.execute(f"UPDATE call SET cpu_ns = calls * {INSIDE + MALLOC_NS}")
    for number in range(1, SLICES + 1):
        low = round(CALLS * (price / 1.08 - INSIDE)) if number != tightest else CALLS * HIT
        made.row("hit_gap", slice=number, hit="call", gaps=CALLS, low_ns=low)


def test_a_hit_costs_what_its_slice_shows() -> None:
    """Inside of the timestamps and between them, in each slice its own: nothing is left to the calibration."""
    made = watched()
    slow = 1.6 * HIT
    paced(made, slow, tightest=3)
    dear = 1.08 * (INSIDE + HIT)
    cost = 3 * slow + dear
    assert made.one("SELECT here, scale FROM probe_pace") == pytest.approx(
        {"here": 1, "scale": cost / 4 / HIT}, rel=1e-4
    )
    x = 4 * WINDOW - CALLS * cost
    row = scale(made)
    assert row["clock"] == "cpu"
    assert row["factor"] == pytest.approx((4 * S - CALLS * cost) / x, rel=1e-4)
    # What the windows differ by, and an error of 15 % of the price.
    part = 0.15 * CALLS * cost / x
    assert row["error"] > part / (1 - part)
    # The report's overhead follows, above the calibration, too.
    cost_view = made.one("SELECT hit_ns FROM probe_cost WHERE probe = 'malloc'")
    assert cost_view["hit_ns"] == pytest.approx(cost / 4, rel=1e-4)


def test_long_gaps_are_own_time() -> None:
    made = watched()
    for number in range(1, SLICES + 1):
        made.row("hit_gap", slice=number, hit="call", gaps=CALLS, low_ns=round(CALLS * 3.1 * HIT))
    pace = made.one("SELECT here, scale FROM probe_pace")
    assert pace["here"] == 0 and pace["scale"] == pytest.approx(1, rel=1e-3)


def test_calls_that_are_only_counted_tell_more() -> None:
    """A window that hits fill nearly all of, and moments after it, where a hit costs half and was seen to."""
    made = watched(window_ns=CALLS * HIT + 2 * MS)
    idle, calls, moment = HIT / 2, 10_007, 8 * MS
    made.row("price", probe="idle", hit_ns=idle, inside_ns=0.0, error_ns=0.0)
    for number in range(1, SLICES + 1):
        made.row("watch_passed", slice=number, call="malloc", calls=calls, cpu_ns=moment)
        made.row("hit_gap", slice=number, hit="idle", gaps=calls, low_ns=round(calls * idle / 1.08))
    row = scale(made)
    assert row["clock"] == "passed"
    own = moment - calls * idle
    truth = calls / own * (S - CALLS * HIT)  # in a slice
    assert made.one("SELECT calls FROM call_estimate")["calls"] == pytest.approx(SLICES * truth, rel=1e-3)
    part = 0.25 * calls * idle / own
    assert row["error"] == pytest.approx(part / (1 - part), rel=1e-2)


def events(made: Facts, name: str, rows: list[tuple[int, int]]) -> None:
    for number, (seen, happened) in enumerate(rows, start=1):
        if happened:
            made.row("watch_event", slice=number, call="malloc", event=name, watched=seen, happened=happened)


def test_an_event_that_is_always_counted_is_a_clock() -> None:
    """Three hundred faults in windows and twelve thousand in all: forty times the calls, whatever hits cost."""
    made = watched(window_ns=CALLS * HIT + 2 * MS)
    events(made, "fault", [(75, 3_000)] * SLICES)
    row = scale(made)
    assert (row["clock"], row["factor"]) == ("fault", pytest.approx(40))
    assert row["error"] == pytest.approx(3.18 * (1 / 300) ** 0.5 + 0.1)


def test_an_event_s_slices_stand_for_the_others_by_cpu_time() -> None:
    """callocs that were themselves not always watched in the last slice; its own time is as long as the others'."""
    made = watched(window_ns=CALLS * HIT + 2 * MS)
    events(made, "calloc", [(75, 3_000)] * 3)
    made.row("watch", slice=4, call="calloc", windows=1, watched_ns=WINDOW, watched_cpu_ns=WINDOW)
    row = scale(made)
    assert (row["clock"], row["factor"]) == ("calloc", pytest.approx(40))


@pytest.mark.parametrize(
    ("why", "rows"),
    [
        ("few", [(2, 100)] * SLICES),
        ("only at the start", [(75, 75)] + [(0, 0)] * 3),
        ("by the wall clock", [(100, 1_000)] * SLICES),
    ],
)
def test_events_that_do_not_measure_progress(why: str, rows: list[tuple[int, int]]) -> None:
    """A tenth of the time is watched, in which the program came a sixteenth of its way and a timer a tenth."""
    made = watched(window_ns=WINDOW)
    paced(made, HIT, tightest=0)
    made.database.execute("UPDATE hit SET hits = 2 * hits")
    made.database.execute("UPDATE call SET calls = 2 * calls, timed_calls = 2 * timed_calls, cpu_ns = 2 * cpu_ns")
    events(made, "map", rows)
    assert scale(made)["clock"] == "cpu", why


def test_a_start_s_faults_are_no_clock() -> None:
    """308 of 312 are seen in the first slice, whose window is nearly all hits; 4 more long after the last window."""
    made = watched(window_ns=CALLS * HIT + 2 * MS)
    for table, zero in (("watch", "windows = 0, watched_ns = 0, watched_cpu_ns = 0"), ("call", "calls = 0")):
        made.database.execute(f"UPDATE {table} SET {zero} WHERE slice > 2")
    made.database.execute("DELETE FROM hit WHERE slice > 2")
    made.database.execute("UPDATE call SET calls = calls / 4 WHERE slice = 2")
    made.database.execute("UPDATE process_slice SET cpu_ns = cpu_ns / 4")
    events(made, "fault", [(308, 308), (0, 0), (0, 4), (0, 0)])
    row = scale(made)
    assert row["clock"] == "cpu" and row["factor"] > 20


def test_allocator_time_by_samples() -> None:
    """They were taken all the time, and need no price. The sites share it as the windows saw them."""
    made = watched(1.25)
    other = 7
    for number in range(1, SLICES + 1):
        made.call("free", other, CALLS, slice=number, cpu_ns=round(CALLS * short(1.25)))
        made.row("watch", slice=number, call="free", windows=1, watched_ns=WINDOW, watched_cpu_ns=WINDOW)
    made.samples("allocator", 12)
    made.samples("user", 388)
    alloc = made.toll("alloc")
    assert alloc["time_ns"] == pytest.approx(SLICES * S * 12 / 400)
    p = 14 / 404
    error = abs(p - 12 / 400) + 1.96 * (p * (1 - p) / 404) ** 0.5
    assert alloc["high_ns"] == pytest.approx(SLICES * S * (12 / 400 + error))
    assert alloc["low_ns"] == pytest.approx(max(0, SLICES * S * (12 / 400 - error)))
    sites = {row["stack_id"]: row["alloc_ns"] for row in made.rows("SELECT stack_id, alloc_ns FROM call_cost")}
    assert sum(sites.values()) == pytest.approx(alloc["time_ns"])
    assert sites[SITE] == pytest.approx(sites[other], rel=0.01)


def test_functions_always_watched_keep_their_time() -> None:
    """Small callocs that were all seen take 20 ms: the samples' 120 ms are of malloc but for those."""
    made = watched()
    made.call("calloc", 9, 1_009, cpu_ns=round(1_009 * (INSIDE + 20 * MS / 1_009)))
    made.samples("allocator", 12)
    made.samples("user", 388)
    costs = {row["call"]: row["alloc_ns"] for row in made.rows("SELECT call, alloc_ns FROM call_cost")}
    assert costs["calloc"] == pytest.approx(20 * MS, rel=0.01)
    assert costs["malloc"] == pytest.approx(SLICES * S * 12 / 400 - 20 * MS, rel=0.01)


def test_few_samples_tell_nothing_of_the_allocator() -> None:
    made = watched()
    made.samples("allocator", 5)
    made.samples("user", 24)
    assert made.one("SELECT call_ns FROM allocator_profile")["call_ns"] is None
    made.samples("user", 1, slice=2)
    assert made.one("SELECT call_ns FROM allocator_profile")["call_ns"] == pytest.approx(SLICES * S * 5 / 30)


def test_parts_of_a_latency_are_all_of_the_calls_that_were_seen() -> None:
    """A tenth of the time was watched: in it 10 us of a call were mapping, and some 8 us malloc itself."""
    made = Facts()
    made.prices()
    made.process()
    calls, itself, mapping = 1009, 8 * US, 10 * US
    for number in range(1, SLICES + 1):
        made.slice(number)
        made.cpu(S, number=number)
        made.row("watch", slice=number, call="malloc", windows=1, watched_ns=WINDOW, watched_cpu_ns=WINDOW)
        made.row("hit", slice=number, pid=42, probe="malloc", hits=calls)
        cpu_ns = round(calls * (INSIDE + itself + mapping))
        mapped: dict[str, int] = {"map_cpu_ns": calls * mapping, "map_calls": calls, "slow_calls": calls}
        made.call("malloc", SITE, calls, slice=number, bytes=calls, cpu_ns=cpu_ns, slow_cpu_ns=cpu_ns, **mapped)
    made.database.execute("INSERT INTO latency SELECT pid, call, stack_id, 1024, 1088, SUM(calls) FROM call")
    assert made.one("SELECT * FROM call_scale")["factor"] > 8
    row = made.one("SELECT * FROM latency_call")
    assert row["map_ns"] == SLICES * calls * mapping
    assert row["own_ns"] == pytest.approx(SLICES * calls * itself, rel=0.3)
    mostly = made.one("SELECT mostly FROM latency_text")["mostly"]
    assert mostly.startswith("mapping 5") or mostly.startswith("mapping 6")


def test_few_samples_tell_more_than_windows_that_saw_hardly_anything() -> None:
    """A thousandth of the CPU time was watched: by that malloc took anything; of 22 samples ten lie in it."""
    made = watched(window_ns=MS, calls=101)
    made.database.execute("UPDATE call SET cpu_ns = cpu_ns + calls * 3000")
    made.samples("allocator", 10, in_call="malloc")
    made.samples("user", 12)
    toll = made.toll("alloc")
    assert toll["share"] == pytest.approx(10 / 22, rel=0.05)
    assert 0.2 < toll["low"] < 0.35 and 0.6 < toll["high"] < 0.75


# Faults and reads of which one in so many was looked at.


def thinned(what: str, seen: int, passed: int) -> Facts:
    made = Facts()
    made.prices()
    made.slice()
    made.process()
    made.cpu(S)
    made.fault("zero", 64_000, 2 * US)
    made.fault("cow", 6_400, 2 * US)
    if seen:
        made.row("thinned", slice=1, what=what, seen=seen, passed=passed)
    return made


def test_drawn_faults_are_estimates_with_a_wider_bound() -> None:
    """One in 16 was drawn: 1.96 sqrt(F 15) faults more or less is the error of the draw."""
    whole, drawn = thinned("fault", 0, 0), thinned("fault", 4_400, 66_000)
    sql = "SELECT cpu_ns, error_ns FROM process_fault_time WHERE class = 'cow'"
    exact, unsure = whole.one(sql), drawn.one(sql)
    assert unsure["cpu_ns"] == exact["cpu_ns"]
    more = 1.96 * (6_400 * 15) ** 0.5 * exact["cpu_ns"] / 6_400
    assert unsure["error_ns"] - exact["error_ns"] == pytest.approx(more, rel=0.01)
    assert not whole.rows("SELECT toll FROM estimated_count")
    tolls = {row["toll"] for row in drawn.rows("SELECT toll FROM estimated_count")}
    assert {"zero.kernel", "cow"} <= tolls and "file.read" not in tolls


def test_drawn_mapping_calls_have_the_error_of_the_draw() -> None:
    """Of 4,000 small ones one in 16 was timed; what is large, or the allocator's, was all timed."""

    def maps(passed: int) -> Facts:
        made = thinned("small_map", 250 if passed else 0, passed)
        for call, in_call in (("mmap", ""), ("madvise", ""), ("munmap", "free")):
            rest = {"failed": 0, "bytes": 4_000 * 4096, "populated": 0, "populated_ns": 0}
            row = {"slice": 1, "pid": 42, "call": call, "in_call": in_call, "stack_id": 0, "calls": 4_000}
            made.row("map_call", **row, cpu_ns=4_000 * US, **rest)
        row = {"slice": 1, "pid": 42, "call": "munmap", "in_call": "", "stack_id": 0, "calls": 1}
        made.row("map_call", **row, cpu_ns=300 * MS, **(rest | {"bytes": 10 << 30}))
        return made

    sql = "SELECT call || CASE calls WHEN 1 THEN ' 10 GiB' ELSE '' END AS call, net_ns, error_ns FROM map_cost"
    exact, unsure = ({row["call"]: row for row in made.rows(sql)} for made in (maps(0), maps(3_750)))
    more = {call: unsure[call]["error_ns"] - exact[call]["error_ns"] for call in exact}
    assert more["mmap"] == pytest.approx(1.96 * (15 / 4_000) ** 0.5 * exact["mmap"]["net_ns"], rel=0.01)
    assert more["madvise"] == more["munmap"] == more["munmap 10 GiB"] == 0
    assert all(unsure[call]["net_ns"] == exact[call]["net_ns"] for call in exact)
    assert maps(3_750).rows("SELECT toll FROM estimated_count WHERE toll = 'map'")
    assert not maps(0).rows("SELECT toll FROM estimated_count")


def test_drawn_faults_are_told_as_estimates() -> None:
    """In every sentence, evidence and advice: the figures that these are filled in with."""
    names = "kernel_faults", "cow_faults", "swap_faults", "kernel_site_faults"
    for passed, mark in ((0, ""), (66_000, "~")):
        made = thinned("fault", 4_400, passed)
        made.fault("swap_minor", 331, 2 * US)
        text = {row["name"]: row["text"] for row in made.rows("SELECT name, text FROM figure")}
        assert {name: text[name][:1] == "~" for name in names} == dict.fromkeys(names, bool(mark)), text
        assert text["swap_faults"] == mark + "331"


def test_draws_that_began_later_vary_as_much_as_those() -> None:
    """All of the first tenth, then one in 64: of F faults the error is 1.96 sqrt(F 0.9 63)."""
    whole, drawn = thinned("fault", 0, 0), thinned("fault", 6_400, 0)
    for number in range(2, 11):
        drawn.row("thinned", slice=number, what="fault", seen=100, passed=6_300)
    sql = "SELECT cpu_ns, error_ns FROM process_fault_time WHERE class = 'cow'"
    exact, unsure = whole.one(sql), drawn.one(sql)
    more = 1.96 * (6_400 * 0.9 * 63) ** 0.5 * exact["cpu_ns"] / 6_400
    assert unsure["error_ns"] - exact["error_ns"] == pytest.approx(more, rel=0.01)


def test_blocks_of_drawn_reads_are_not_all() -> None:
    """A file of 100 pages that was read ten times: 7 different ones were looked at."""

    def read(passed: int) -> Facts:
        made = thinned("read", 10, passed)
        made.row("file", file=1, dev=1, inode=7, path="/srv/t.db", kind="file", bytes=100 * 4096)
        names = ("failed", "cpu_ns", "blocked_ns", "cached_calls", "cached_bytes", "filled_pages", "faults")
        rest: dict[str, Any] = dict.fromkeys(names, 0)
        rest |= {"calls": 1000, "bytes": 1000 * 4096}
        made.row("file_read", slice=1, pid=42, file=1, call="pread64", stack_id=0, direct=0, **rest)
        known = {"block_bytes": 4096, "uses": 10, "first": 7.0, "different": 7.0}
        for subject, file in (("file", 1), ("files", 0)):
            made.row("reuse", subject=subject, file=file, rate=1.0, error=0.0, max_distance=6.0, **known)
        return made

    sql = "SELECT different, reread_factor AS factor, low, high, enough_bytes AS enough FROM file_reuse WHERE file = 1"
    assert read(0).one(sql)["different"] == 7
    row = read(990).one(sql)
    assert (row["different"], row["factor"], row["low"], row["enough"]) == (100, 10, 10, 100 * 4096)
    assert row["high"] == pytest.approx(1000 / 7)
    assert read(0).rows("SELECT * FROM miss_ratio") and not read(990).rows("SELECT * FROM miss_ratio")


def test_of_files_together_no_more_is_different_than_was_read() -> None:
    """200 MiB of a file of 1 GiB, one of 1 MiB read a hundred times, and one of unknown size, read once."""
    made = thinned("read", 10, 990)
    names = ("failed", "cpu_ns", "blocked_ns", "cached_calls", "cached_bytes", "filled_pages", "faults")
    mib = 1 << 20
    for file, size, read in ((1, 1024 * mib, 200 * mib), (2, mib, 100 * mib), (3, None, 7 * mib)):
        made.row("file", file=file, dev=1, inode=file, path=f"/srv/{file}.db", kind="file", bytes=size)
        rest: dict[str, Any] = dict.fromkeys(names, 0)
        rest |= {"calls": 1000, "bytes": read}
        made.row("file_read", slice=1, pid=42, file=file, call="pread64", stack_id=0, direct=0, **rest)
    known = {"block_bytes": 4096, "uses": 10, "first": 7.0, "different": 7.0}
    for subject, file in (("file", 1), ("file", 2), ("file", 3), ("files", 0)):
        made.row("reuse", subject=subject, file=file, rate=1.0, error=0.0, max_distance=6.0, **known)
    rows = made.rows("SELECT file, uses, different FROM file_reuse ORDER BY file")
    assert rows == [
        {"file": 0, "uses": 307 * 256, "different": 208 * 256},
        {"file": 2, "uses": 100 * 256, "different": 256},
    ]
