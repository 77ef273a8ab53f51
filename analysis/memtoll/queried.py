# SPDX-License-Identifier: GPL-2.0
"""Which tables and views a query of somebody's own reads from, as far as its words tell.

SQLite itself would tell only after it has planned the query, which takes seconds where views rest on views.
"""

from __future__ import annotations

import re
from typing import Final

# Literals and comments, which name nothing; names in each of SQLite's quotes; words; signs.
TOKEN: Final = re.compile(
    r"""'(?:[^']|'')*'|--[^\n]*|/\*.*?(?:\*/|\Z)|"([^"]*)"|`([^`]*)`|\[([^]]*)\]|(\w+)|([^\s\w])""", re.DOTALL
)
# What ends a list of tables.
ENDS: Final = frozenset(
    ("select", "values", "where", "group", "having", "window", "order", "limit", "union", "except", "intersect")
)
MADE: Final = re.compile(r"(\S+) (?:\( [^()]*\) )?as (?:(?:not )?materialized )?\(")


def read_from(sql: str) -> set[str]:
    """Names, in small letters, but for those of another schema than temp and those that WITH defines."""
    tokens = [next(filter(None, found), "").lower() for found in TOKEN.findall(sql)]
    tokens = [token for token in tokens if token]
    names: set[str] = set()
    outer: list[bool] = []
    # Within a list of tables; where the name of one comes next.
    listed = wanted = False
    for before, token, after in zip(["", *tokens], tokens, [*tokens[1:], ""]):
        if token == "(":
            outer.append(listed)
            listed = wanted
        elif token == ")":
            listed, wanted = bool(outer) and outer.pop(), False
        elif token == ",":
            wanted = listed
        elif token == "join" or (token == "from" and before != "distinct"):
            listed = wanted = True
        elif token in ENDS:
            listed = wanted = False
        elif token == "in" and after != "(":
            wanted = True
        elif wanted and token != ".":
            if after != ".":
                names.add(token)
            wanted = after == "." and token == "temp"
    return names - {found[1] for found in MADE.finditer(" ".join(tokens))}
