# SPDX-License-Identifier: GPL-2.0
"""Text of traced programs and of recordings made by others, as data: it steers nothing that shows it."""

from __future__ import annotations

from typing import Any, Final

# What a spreadsheet takes for the beginning of a formula (OWASP, CSV injection).
FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def visible(text: str) -> str:
    """Control, direction and other invisible characters as their escapes; line breaks as spaces."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " if c == "\n" else _escape(c) for c in text)


def visible_lines(text: str) -> str:
    """The same, line by line: breaks between them stay."""
    return text if text.isprintable() else "\n".join(map(visible, text.split("\n")))


def cell(value: Any) -> Any:
    """A value of a CSV file: visible, and a text that a spreadsheet would calculate begins with an apostrophe."""
    if not isinstance(value, str):
        return value
    return f"'{visible(value)}" if value.startswith(FORMULA) else visible(value)


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
