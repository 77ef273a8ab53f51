# SPDX-License-Identifier: GPL-2.0
"""Escapes text of traced programs for a page, and makes invisible characters visible."""

from __future__ import annotations

import html
import json
from typing import Any, Final

# Letters of a name: those of C++ templates know no end.
LETTERS: Final = 400


def visible(text: str) -> str:
    """Control, direction and other invisible characters as their escapes; line breaks as spaces."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " if c == "\n" else _escape(c) for c in text)


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def shown(text: object) -> str:
    """Text for between tags or inside a quoted attribute."""
    return html.escape(visible(str(text)), quote=True)


def embedded(value: Any) -> str:
    """JSON for inside of a script element: nothing in it can end the element."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
