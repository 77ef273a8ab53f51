# SPDX-License-Identifier: GPL-2.0
"""The mutants of mutants/mutants.py still fit the code that they break: a whole run of them is worth its time."""

from __future__ import annotations

from typing import Final

import pytest

from harness import ROOT
from mutants.mutants import MUTANTS, Mutant, applied, located

NAMES: Final = [mutant.name for mutant in MUTANTS]


@pytest.mark.parametrize("mutant", MUTANTS, ids=NAMES)
def test_a_mutant_applies(mutant: Mutant) -> None:
    source = (ROOT / mutant.file).read_text()
    assert applied(mutant, source) != source


@pytest.mark.parametrize("mutant", MUTANTS, ids=NAMES)
def test_named_tests_exist(mutant: Mutant) -> None:
    for test in mutant.tests:
        path, _, one = str(located(test)).partition("::")
        assert f"def {one}(" in (ROOT / path).read_text() or not one


def test_names_are_different() -> None:
    assert len(set(NAMES)) == len(NAMES)
