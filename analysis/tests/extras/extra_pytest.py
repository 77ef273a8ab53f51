# SPDX-License-Identifier: GPL-2.0
"""The plugin with the newest pytest: what depends on how pytest calls it and reports."""

from __future__ import annotations

from test_pytest_plugin import (
    fake,
    run,
    test_a_test_that_fails_by_itself,
    test_help_says_how,
    test_marks_of_class_and_function,
    test_the_tracer_follows_pytest,
    test_undecided_is_an_error,
    test_what_a_mark_says,
    test_where_nothing_can_be_traced,
    test_where_the_test_is_by_then,
)

__all__ = [
    "fake",
    "run",
    "test_a_test_that_fails_by_itself",
    "test_help_says_how",
    "test_marks_of_class_and_function",
    "test_the_tracer_follows_pytest",
    "test_undecided_is_an_error",
    "test_what_a_mark_says",
    "test_where_nothing_can_be_traced",
    "test_where_the_test_is_by_then",
]
