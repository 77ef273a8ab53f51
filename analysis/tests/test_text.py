# SPDX-License-Identifier: GPL-2.0
"""Figures read as the loader's tests say in userspace/tests/base/units.h."""

from __future__ import annotations

import re

import pytest

from memtoll.text import format_bytes, format_share, format_time

from harness import ROOT

UNITS = ROOT / "userspace" / "tests" / "base" / "units.h"
ROWS = re.findall(r'^\{ "([tbs])", ([\d.]+), "([^"]*)", "[^"]*" \},$', UNITS.read_text(), re.MULTILINE)


@pytest.mark.parametrize(("kind", "value", "text"), ROWS)
def test_units(kind: str, value: str, text: str) -> None:
    if kind == "t":
        assert format_time(float(value) / 1e9) == text
    else:
        assert {"b": format_bytes, "s": format_share}[kind](float(value)) == text
