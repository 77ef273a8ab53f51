-- SPDX-License-Identifier: GPL-2.0
--
-- hold.sql: who holds the memory, as looked at several times (record --hold), and what grew between
-- the first look and the last. Follows stacks.sql.

-- What each look found of all processes together, in the order of `memtoll hold`.
CREATE VIEW hold_seen AS
SELECT p.look, p.part, SUM(p.bytes) AS bytes
FROM hold_part p GROUP BY p.look, p.part;

-- The first and the last look that found something. One row, or none. whole: nothing was missing
-- in either.
CREATE VIEW hold_span AS
SELECT f.look AS first, l.look AS last, (SELECT COUNT(*) FROM hold_look) AS looks,
	(SELECT COUNT(DISTINCT look) FROM hold_part) AS seen,
	(l.start_ns - f.start_ns) / 1e9 AS seconds, f.whole AND l.whole AS whole
FROM (SELECT MIN(look) AS first, MAX(look) AS last FROM hold_part) s
JOIN hold_look f ON f.look = s.first JOIN hold_look l ON l.look = s.last;

-- Each part then and now. said: what it is.
CREATE VIEW hold_change AS
SELECT k.column1 AS position, k.column2 AS part, k.column3 AS said,
	COALESCE(f.bytes, 0) AS first_bytes, COALESCE(l.bytes, 0) AS last_bytes
FROM hold_span s JOIN (VALUES (1, 'live', 'live blocks of malloc'),
	(2, 'trim', 'free, malloc_trim(0) would give it back'),
	(3, 'pinned', 'free, on pages with live blocks'),
	(4, 'locked', 'free, locked in memory'),
	(5, 'arena_tops', 'free, at the ends of threads'' arenas'),
	(6, 'caches', 'free, in threads'' caches'), (7, 'unread', 'of heaps, not known'),
	(8, 'anonymous', 'other anonymous memory'), (9, 'stacks', 'stacks'),
	(10, 'files', 'file mappings'), (11, 'shared', 'shared memory'),
	(12, 'special', 'mappings of the kernel''s'), (13, 'rss', 'resident'),
	(14, 'swap', 'on swap')) k
LEFT JOIN hold_seen f ON f.look = s.first AND f.part = k.column2
LEFT JOIN hold_seen l ON l.look = s.last AND l.part = k.column2
WHERE k.column2 = 'rss' OR f.bytes > 0 OR l.bytes > 0;

-- Call sites whose followed blocks became more, the most first: made in this recording, and not
-- freed in it.
CREATE VIEW hold_site AS
SELECT call, stack_id, made, freed, grown_bytes,
	ROW_NUMBER() OVER (ORDER BY grown_bytes DESC, stack_id) AS rank
FROM (
	SELECT call, stack_id, SUM(made) AS made, SUM(freed) AS freed,
		SUM(made_bytes) - SUM(freed_bytes) AS grown_bytes
	FROM block WHERE call <> 'mmap' GROUP BY call, stack_id)
WHERE grown_bytes > 0;

-- Whether live blocks grow: by a megabyte and a twentieth at least, in three looks or more, and in
-- each but for a tenth of the whole. That blocks grow is no leak yet where they are freed later.
-- site_part: of what grew, how much is of the first call site. in_part: not all calls were watched,
-- so that there were more than made and freed say. One row, or none.
CREATE VIEW hold_growth AS
WITH
live AS MATERIALIZED (
	SELECT h.look, h.bytes, LAG(h.bytes) OVER (ORDER BY h.look) AS before
	FROM hold_seen h WHERE h.part = 'live'
),
ends AS MATERIALIZED (
	SELECT c.last_bytes - c.first_bytes AS grown, c.first_bytes AS held
	FROM hold_change c WHERE c.part = 'live'
)
SELECT e.grown AS grown_bytes, 1.0 * e.grown / MAX(s.seconds, 0.001) AS bytes_per_s,
	s.seen >= 3 AND e.grown >= 1048576 AND 20 * e.grown >= e.held AND NOT EXISTS (
		SELECT 1 FROM live WHERE before - bytes > e.grown / 10) AS grows,
	t.call, t.stack_id, t.made, t.freed, t.grown_bytes AS site_bytes,
	MIN(1.0, 1.0 * t.grown_bytes / MAX(e.grown, 1)) AS site_part,
	EXISTS (SELECT 1 FROM watch WHERE call NOT IN ('syscall', 'read_other')) AS in_part,
	COALESCE((SELECT p.caller FROM stack_place p WHERE p.stack_id = t.stack_id), '?')
		-- who calls it: what a wrapper of malloc makes is of many
		|| COALESCE(', called at ' || (SELECT p.called_at FROM stack_place p
			WHERE p.stack_id = t.stack_id), '') AS place
FROM ends e JOIN hold_span s LEFT JOIN hold_site t ON t.rank = 1;

-- What was kept in the last look because of live blocks, by who made them, most bytes first. at:
-- 'page' or 'end', as in hold_pin. call is '' for blocks that were not seen made. bytes: of each
-- size the named ones have no more than there are, and the others have what is left. matters: all
-- of it together is a megabyte and a twentieth of what is resident, or more.
CREATE VIEW hold_pinned AS
WITH
size AS MATERIALIZED (
	SELECT p.pid, p.at, p.size, SUM(p.bytes) AS bytes,
		SUM(CASE WHEN p.call <> '' THEN p.estimate ELSE 0 END) AS named,
		SUM(CASE WHEN p.call = '' THEN p.bytes ELSE 0 END) > 0 AS others
	FROM hold_pin p JOIN hold_span s ON s.last = p.look GROUP BY p.pid, p.at, p.size
),
part AS MATERIALIZED (
	SELECT p.at, p.call, p.stack_id, p.size, p.blocks, p.hint,
		CASE WHEN p.call <> '' AND z.named > z.bytes OR p.call <> '' AND NOT z.others
			THEN p.estimate * z.bytes / z.named
		     WHEN p.call <> '' THEN p.estimate
		     ELSE MAX(z.bytes - z.named, 0) END AS bytes
	FROM hold_pin p JOIN hold_span s ON s.last = p.look
	JOIN size z ON z.pid = p.pid AND z.at = p.at AND z.size = p.size
),
site AS MATERIALIZED (
	-- size and hint: of the row with most bytes
	SELECT at, call, stack_id, MAX(bytes) AS most, size, hint, SUM(bytes) AS bytes,
		SUM(blocks) AS blocks
	FROM part GROUP BY at, call, stack_id
)
SELECT t.at, t.call, t.stack_id, t.size, t.hint, CAST(ROUND(t.bytes) AS INTEGER) AS bytes,
	t.blocks, CASE WHEN t.call <> '' THEN COALESCE(
		(SELECT p.caller FROM stack_place p WHERE p.stack_id = t.stack_id), '?')
		|| COALESCE(', called at ' || (SELECT p.called_at FROM stack_place p
			WHERE p.stack_id = t.stack_id), '') END AS place,
	SUM(t.bytes) OVER (PARTITION BY t.at) >= MAX(1048576, 0.05 * (
		SELECT last_bytes FROM hold_change WHERE part = 'rss')) AS matters,
	ROW_NUMBER() OVER (PARTITION BY t.at ORDER BY t.bytes DESC, t.call, t.stack_id) AS rank
FROM site t WHERE ROUND(t.bytes) > 0;

-- What malloc_trim(0) would give back at the last look, and how much of that would be faulted in
-- again a second: as much of it as was used of what it would have given back so long before. used:
-- from 0 to 1. in_part: not all calls were watched, so that more was used. matters: as the advice
-- of `memtoll hold` has it. One row, or none.
CREATE VIEW hold_refault AS
WITH
last AS MATERIALIZED (
	SELECT u.pid, u.seconds, 1.0 * u.used_pages / u.pages AS used, p.bytes
	FROM hold_reuse u JOIN hold_span s ON s.last = u.look
	JOIN hold_part p ON p.look = u.look AND p.pid = u.pid AND p.part = 'trim'
	WHERE u.pages > 0 AND u.seconds > 0
)
SELECT * FROM (
	SELECT SUM(bytes) AS trim_bytes, MAX(seconds) AS seconds,
		SUM(used * bytes) / MAX(SUM(bytes), 1) AS used,
		SUM(used * bytes / 4096 / seconds) AS refaults_per_s,
		EXISTS (SELECT 1 FROM watch WHERE call NOT IN ('syscall', 'read_other')) AS in_part,
		SUM(bytes) >= MAX(1048576, 0.02 * (
			SELECT last_bytes FROM hold_change WHERE part = 'rss')) AS matters
	FROM last)
WHERE trim_bytes IS NOT NULL;

CREATE VIEW hold_json AS
SELECT json_object('looks', s.looks, 'seen', s.seen, 'seconds', ROUND(s.seconds, 3),
	'complete', json(CASE WHEN s.whole THEN 'true' ELSE 'false' END),
	'parts', json((SELECT json_group_object(part, json_object('first', first_bytes,
		'last', last_bytes)) FROM hold_change)),
	'grows', json(CASE WHEN g.grows THEN 'true' ELSE 'false' END),
	'grown_bytes', g.grown_bytes, 'bytes_per_s', MAX(ROUND(g.bytes_per_s, 3), 0.0),
	'site', CASE WHEN g.grows AND g.site_part >= 0.2 THEN json_object('call', g.call,
		'place', g.place, 'made', g.made, 'freed', g.freed, 'bytes', g.site_bytes,
		'in_part', json(CASE WHEN g.in_part THEN 'true' ELSE 'false' END)) END,
	'trim', json((SELECT json_object('bytes', trim_bytes, 'seconds', ROUND(seconds, 3),
		'used_part', ROUND(used, 6), 'refaults_per_s', ROUND(refaults_per_s, 3),
		'in_part', json(CASE WHEN in_part THEN 'true' ELSE 'false' END))
		FROM hold_refault)),
	'pinned', json((SELECT json_group_array(json_object('at', at, 'bytes', bytes,
		'call', NULLIF(call, ''), 'place', place, 'blocks', blocks,
		'size', NULLIF(size, 0), 'hint', NULLIF(hint, '')))
		FROM (SELECT * FROM hold_pinned WHERE rank <= 5 ORDER BY at DESC, rank))))
	AS json
FROM hold_span s JOIN hold_growth g;
