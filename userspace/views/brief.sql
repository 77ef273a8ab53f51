-- SPDX-License-Identifier: GPL-2.0
--
-- brief.sql: a recording in few words, for a script or a language model. Follows compared.sql.

-- Lines in the order in which they matter; what a reader has no room for is left out from the end.
-- Keys are stable: a line that says nothing is not there. The first is made of our own words only,
-- and so never longer than 120 bytes.
CREATE VIEW brief_short AS
WITH
memory AS MATERIALIZED (
	SELECT ROW_NUMBER() OVER (ORDER BY rank) AS number, *
	FROM (SELECT * FROM site_short WHERE toll NOT IN ('compute', 'copy.app')
		AND share >= 0.005 ORDER BY rank LIMIT 3)
),
line(position, key, text) AS (
	SELECT 1, 'verdict', v.dominant || PRINTF(' %.1f %% (%.1f-%.1f) of %.3g s observed',
			100 * v.share, 100 * v.low, 100 * v.high, t.observed_ns / 1e9)
		|| CASE WHEN t.complete THEN '' ELSE '; INCOMPLETE' END
		|| CASE WHEN EXISTS (SELECT 1 FROM losses WHERE exceeds)
			THEN '; LOSSES over 1 %' ELSE '' END
	FROM verdict v JOIN target t
	UNION ALL
	SELECT 2, 'sentence', said FROM verdict
	UNION ALL
	SELECT 2 + number, 'site' || number, PRINTF('%.1f %% %.3g s %s', 100 * share, time_ns / 1e9,
			toll)
		|| CASE WHEN call <> '' THEN ' ' || call ELSE '' END
		|| CASE WHEN bytes > 0 THEN PRINTF(' %s%s%,d bytes',
			CASE WHEN at_least THEN 'at least ' ELSE '' END,
			CASE WHEN toll = 'zero.app' OR toll IN (SELECT toll FROM estimated_count)
				THEN '~' ELSE '' END, bytes) ELSE '' END
		|| CASE WHEN allocated <> '' THEN ' at ' || allocated
			WHEN area <> '' THEN ' in ' || area ELSE '' END
		|| CASE WHEN touched <> '' AND touched <> allocated
			THEN ' touched at ' || touched ELSE '' END
	FROM memory
	UNION ALL
	SELECT CASE position WHEN 1 THEN 6 ELSE 14 END, 'advice' || position, code || ': ' || title
	FROM finding WHERE position <= 2
	UNION ALL
	SELECT CASE position WHEN 1 THEN 7 ELSE 15 END, 'try' || position, try
	FROM finding WHERE position <= 2 AND COALESCE(try, '') <> ''
	UNION ALL
	SELECT CASE position WHEN 1 THEN 8 ELSE 16 END, 'saves' || position,
		PRINTF('at most %.0f %% of the observed time', 100 * gain)
	FROM finding WHERE position <= 2 AND code <> 'none'
	UNION ALL
	SELECT 12, 'why1', text FROM finding WHERE position = 1
	UNION ALL
	SELECT 13, 'price1', cost FROM finding WHERE position = 1 AND cost <> ''
	UNION ALL
	SELECT 9, 'confidence', CASE WHEN EXISTS (SELECT 1 FROM checks WHERE NOT ok)
			THEN 'counts DIFFER from the kernel''s: ' || (SELECT group_concat(
				REPLACE(name, '_', ' ')
				|| PRINTF(' ours %,d, the kernel''s %,d', ours, kernel), '; ')
				FROM (SELECT * FROM checks WHERE NOT ok ORDER BY position))
			ELSE 'counts agree with the kernel''s' END
		|| CASE WHEN EXISTS (SELECT 1 FROM estimated_count)
			THEN '; estimated, not all watched: ' || (SELECT group_concat(toll, ', ')
				FROM (SELECT toll FROM estimated_count ORDER BY toll)) ELSE '' END
		|| PRINTF('; overhead %.1f %%', o.estimated_pct)
		|| CASE WHEN o.limit_pct IS NULL THEN ', no limit'
			ELSE PRINTF(' of %g %%', o.limit_pct) END
	FROM overhead o
	UNION ALL
	SELECT 10, 'lost', (SELECT group_concat(name || PRINTF(' %,d', count)
			|| CASE WHEN exceeds THEN ' (over 1 %)' ELSE '' END, ', ')
		FROM (SELECT * FROM losses WHERE count > 0 ORDER BY exceeds DESC, share DESC, name))
	UNION ALL
	SELECT 11, 'not_seen', (SELECT group_concat(toll || ' (' || not_captured || ')', ', ')
		FROM (SELECT * FROM toll_kind WHERE not_captured IS NOT NULL ORDER BY position))
	UNION ALL
	SELECT 17, 'code_without_names',
		PRINTF('%.0f %% of the time is at code of %s', 100 * share, base)
	FROM nameless
)
SELECT position, key, text FROM line WHERE COALESCE(text, '') <> '' ORDER BY position;
