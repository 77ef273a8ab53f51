# SPDX-License-Identifier: GPL-2.0
"""Columns of DataFrames as plain Python values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd


def plain(column: pd.Series) -> list[Any]:
    """Values of a column: int, float, bool, str (moments as ISO 8601), and None where one is missing."""
    if isinstance(column.dtype, pd.DatetimeTZDtype):
        return [None if value is pd.NaT else value.isoformat().replace("+00:00", "Z") for value in column]
    values: list[Any] = column.tolist()
    if column.isna().any():
        values = [None if value is pd.NA or value != value else value for value in values]
    first = next((value for value in values if value is not None), None)
    if isinstance(first, np.generic):
        # Nullable columns of older pandas keep numpy's scalars, which json does not know.
        values = [value.item() if isinstance(value, np.generic) else value for value in values]
    return values
