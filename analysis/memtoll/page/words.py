# SPDX-License-Identifier: GPL-2.0
"""Escapes text of traced programs for a page."""

from __future__ import annotations

import html
import json
from typing import Any, Final

from ..visible import visible

# Letters of a name: those of C++ templates know no end.
LETTERS: Final = 400


def shown(text: object) -> str:
    """Text for between tags or inside a quoted attribute."""
    return html.escape(visible(str(text)), quote=True)


def embedded(value: Any) -> str:
    """JSON for inside of a script element: nothing in it can end the element."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
