# SPDX-License-Identifier: GPL-2.0
"""The verdict of a recording, as `memtoll report --json` prints it."""

from __future__ import annotations

import html
import json
import textwrap
from typing import Any, Final

from .opening import understanding
from .views import Views

# The same expressions as in view report_json, without the sites: those may be many.
QUERY: Final = """
SELECT json_object('dominant', v.dominant, 'share', ROUND(v.share, 6), 'low', ROUND(v.low, 6),
	'high', ROUND(v.high, 6), 'sentence', v.sentence,
	'advice', json((SELECT json_group_array(json(advice)) FROM (
		SELECT json_object({advice}) AS advice
		FROM temp.finding ORDER BY position)))) FROM temp.verdict v
"""
ADVICE: Final = (
    "'code', code, 'title', title, 'text', text, 'evidence', evidence, 'gain', ROUND(gain, 6), 'bound', bound,"
    " 'cost', cost, 'try', try"
)


class Verdict(dict[str, Any]):
    """The object "verdict" of the report's JSON; print() and a notebook show it as text.

    Members: dominant (a family, or "none"), share, low, high (0..1 of the observed time, 95 %
    bounds), sentence, advice: a list of {"code", "title", "text", "evidence", "gain" (the share of the
    observed time it can save at most), "bound" (what it must be above), "cost" (if it is wrong), "try" (a
    command line that proves it, or None)}.
    """

    @property
    def dominant(self) -> str:
        return str(self["dominant"])

    @property
    def sentence(self) -> str:
        return str(self["sentence"])

    @property
    def advice(self) -> list[dict[str, Any]]:
        return list(self["advice"])

    def __str__(self) -> str:
        parts = [textwrap.fill(self.sentence, 80)]
        for advice in self.advice:
            text = f"{advice['code']}: {advice['text']} ({advice['evidence']})"
            parts.append(textwrap.fill(text, 80, initial_indent="- ", subsequent_indent="  "))
        return "\n".join(parts)

    def _repr_html_(self) -> str:
        items = "".join(
            f"<li><code>{html.escape(a['code'])}</code>: {html.escape(a['text'])}"
            f" <em>{html.escape(a['evidence'])}</em></li>"
            for a in self.advice
        )
        return f"<p><strong>{html.escape(self.sentence)}</strong></p><ul>{items}</ul>"


def verdict(views: Views) -> Verdict:
    """Read it; the views it rests on are worked out."""
    views.make("finding")
    ((text,),) = views.rows(QUERY.format(advice=ADVICE))
    with understanding(views.path):
        return Verdict(json.loads(text))
