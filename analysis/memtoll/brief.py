# SPDX-License-Identifier: GPL-2.0
"""The diagnosis in so many tokens, as `memtoll report --brief N` prints it: for a script or a language model.

Tokenizers differ and none is asked: each token stands for one byte at least, in all that split text, and one more is
what some put before a text. So N - 1 bytes have N tokens at most. They are ASCII, as characters beyond may be made
several of before they are split.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .recording import Recording

LEAST: Final = 320
"""Tokens that hold the first line, and the names of all others."""
LEFT_OUT: Final = "left_out: "
# As userspace/base/text.c has them, beside the controls.
STEERING: Final = frozenset("\u2028\u2029\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def ascii_text(text: str) -> str:
    """What steers a terminal as '?', what else is no ASCII as its escape."""
    return "".join(map(_ascii, text))


def _ascii(character: str) -> str:
    code = ord(character)
    if 0xD800 <= code <= 0xDFFF or character in STEERING or unicodedata.category(character) == "Cc":
        return "?"
    if " " <= character <= "~":
        return character
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def brief(rec: Recording, tokens: int) -> str:
    """Lines "key: text", so many tokens at most: what has no room is left out from the end, and named.

    ValueError: fewer than LEAST.
    """
    if tokens < LEAST:
        raise ValueError(f"a brief has room in {LEAST} tokens or more, not in {tokens}")
    rec.views.make("brief_short")
    rows = rec.views.rows("SELECT key, text FROM temp.brief_short ORDER BY position")
    keys = [str(key) for key, _ in rows]
    room = tokens - 1
    made = ""
    for number, (key, text) in enumerate(rows):
        line = f"{key}: {ascii_text(str(text))}\n"
        if len(made) + len(line) + len(_left_out(keys[number + 1 :])) > room:
            return made + _left_out(keys[number:])
        made += line
    return made


def _left_out(keys: list[str]) -> str:
    return f"{LEFT_OUT}{' '.join(keys)}\n" if keys else ""
