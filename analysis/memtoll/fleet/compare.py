# SPDX-License-Identifier: GPL-2.0
"""Two builds side by side, with bounds from the hosts they ran on.

Recordings of one host are alike (its load, its memory), so hosts are what is sampled, not
recordings: hosts of each build are drawn with replacement 2,000 times, and the bounds are the 2.5th
and 97.5th percentile of what the drawn hosts give. The draws are the same at each call.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from ..frames import TOLLS

DRAWS: Final = 2_000
SEED: Final = 0x746F6C6C
BOUNDS: Final = (2.5, 97.5)
# With one host there is nothing to draw from.
HOSTS_MIN: Final = 2

Numbers = npt.NDArray[np.float64]


def _by_host(rows: pd.DataFrame, value: str, tolls: list[str]) -> Numbers:
    """Sums as an array, hosts by tolls."""
    table = rows.pivot_table(index="host", columns="toll", values=value, aggfunc="sum", fill_value=0.0)
    return np.asarray(table.reindex(columns=tolls, fill_value=0.0).to_numpy(dtype=float))


def _shares(time_s: Numbers, observed_s: Numbers) -> Numbers:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(observed_s > 0, time_s / observed_s, np.nan))


def _drawn(time_s: Numbers, observed_s: Numbers, random: np.random.Generator) -> Numbers:
    """Shares of each draw, draws by tolls; NaN with too few hosts."""
    hosts = len(time_s)
    if hosts < HOSTS_MIN:
        return np.full((DRAWS, time_s.shape[1]), np.nan)
    weights = random.multinomial(hosts, np.full(hosts, 1 / hosts), size=DRAWS).astype(float)
    return _shares(weights @ time_s, weights @ observed_s)


def _bounds(values: Numbers) -> Numbers:
    """Lower and upper bound of each column; NaN where a draw has none."""
    return np.asarray(np.percentile(values, BOUNDS, axis=0))


def compare_builds(rows: pd.DataFrame, build_a: str, build_b: str) -> pd.DataFrame:
    """Of sums by build, host and toll, the table that Dataset.diff documents."""
    present = set(rows["toll"])
    tolls = [toll for toll in TOLLS if toll in present]
    columns: dict[str, Any] = {"toll": tolls}
    shares, draws = [], []
    random = np.random.default_rng(SEED)
    for letter, build in (("a", build_a), ("b", build_b)):
        own = rows[rows["build"] == build]
        time_s, observed_s = _by_host(own, "time_s", tolls), _by_host(own, "observed_s", tolls)
        shares.append(_shares(time_s.sum(axis=0), observed_s.sum(axis=0)))
        draws.append(_drawn(time_s, observed_s, random))
        columns[f"share_{letter}"] = shares[-1]
        columns[f"bytes_per_s_{letter}"] = _shares(_by_host(own, "bytes", tolls).sum(axis=0), observed_s.sum(axis=0))
        columns[f"hosts_{letter}"] = (observed_s > 0).sum(axis=0)
        for name in ("recordings", "lossy"):
            columns[f"{name}_{letter}"] = _by_host(own, name, tolls).sum(axis=0).astype("int64")
    columns["difference"] = shares[1] - shares[0]
    columns["low"], columns["high"] = _bounds(draws[1] - draws[0])
    columns["ratio"] = _shares(shares[1], shares[0])
    columns["ratio_low"], columns["ratio_high"] = _bounds(_shares(draws[1], draws[0]))
    order = ["share_a", "share_b", "difference", "low", "high", "ratio", "ratio_low", "ratio_high"]
    table = pd.DataFrame(columns).set_index("toll")
    return table[[*order, *(name for name in table.columns if name not in order)]]
