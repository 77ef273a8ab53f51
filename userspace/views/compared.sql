-- SPDX-License-Identifier: GPL-2.0
--
-- compared.sql: sites as two recordings of a program have them in common. Follows page.sql.

-- Where a sentence would say that a stack is, taken apart. caller: of an allocation, where depth 0
-- is the allocator's own function. name: the function or, without one, the file of the code:
-- addresses are others in the next build.
CREATE VIEW place_compared_short AS
WITH
depth AS MATERIALIZED (
	SELECT w.stack_id, w.caller, (SELECT l.depth FROM stack_line l
		WHERE l.stack_id = w.stack_id AND (l.depth > 0 OR NOT w.caller)
		ORDER BY l.preference, l.depth LIMIT 1) AS depth
	FROM (SELECT allocated_stack AS stack_id, 1 AS caller FROM sites
		UNION SELECT allocated_stack, 0 FROM sites
		UNION SELECT touched_stack, 0 FROM sites) w
)
SELECT d.stack_id, d.caller, l.said, l.file, l.line,
	CASE WHEN l.function <> '' THEN l.function
		WHEN INSTR(l.place, '+0x') > 0 THEN SUBSTR(l.place, 1, INSTR(l.place, '+0x') - 1)
		ELSE '' END AS name
FROM depth d JOIN stack_line l ON l.stack_id = d.stack_id AND l.depth = d.depth;

-- Tolls whose counts are estimates, and how far off those may be: the bound of the function that is
-- known least, as the short run of one that is called in bursts may be seen at the wrong moments.
CREATE VIEW estimate_compared_short AS
SELECT e.toll, COALESCE((SELECT MAX(d.error) FROM duty_cycle d WHERE d.share < 0.9995
	AND CASE WHEN e.toll = 'map' THEN d.call = 'syscall'
		WHEN e.toll = 'file.read' THEN d.call IN ('syscall', 'read_other')
		WHEN e.toll IN ('alloc', 'zero.libc')
		THEN d.call NOT IN ('syscall', 'read_other') END), 0.0) AS error
FROM estimated_count e;

-- Sites by what they do and where, the most expensive first; computing is none. sampled: the count
-- is one of CPU samples. error: not all of them were watched, and how far off the count may be, as
-- a part of it; NULL: all were. at_least: more was cleared than bytes says.
CREATE VIEW site_compared_short AS
SELECT s.toll, s.call, s.area, COALESCE(a.name, '') AS allocated, COALESCE(a.said, '')
		AS allocated_said,
	COALESCE(a.file, '') AS allocated_file, COALESCE(a.line, 0) AS allocated_line,
	COALESCE(t.name, '') AS touched, COALESCE(t.said, '') AS touched_said,
	COALESCE(t.file, '') AS touched_file, COALESCE(t.line, 0) AS touched_line,
	SUM(s.time_ns) AS time_ns, SUM(s.count) AS count, SUM(s.bytes) AS bytes,
	s.toll IN ('zero.app', 'copy.app') AS sampled,
	(SELECT e.error FROM estimate_compared_short e WHERE e.toll = s.toll) AS error,
	MAX(COALESCE(s.known_clearing = 0, 0)) AS at_least
FROM sites s
LEFT JOIN place_compared_short a ON a.stack_id = s.allocated_stack
	AND a.caller = (s.toll <> 'map' AND s.call NOT IN ('mmap', 'madvise'))
LEFT JOIN place_compared_short t ON t.stack_id = s.touched_stack AND NOT t.caller
WHERE s.toll <> 'compute'
GROUP BY s.toll, s.call, s.area, a.said, a.file, t.said, t.file
ORDER BY SUM(s.time_ns) DESC, SUM(s.bytes) DESC, MIN(s.rank);

-- One row: what two recordings must have in common to be set side by side, and what weighs on it.
-- whole: a command, from its start to its own end. lossy: losses beyond the limit, named.
-- lost: those below it.
CREATE VIEW run_compared_short AS
SELECT t.complete, t.command, t.duration_ns, t.observed_ns,
	COALESCE(t.end_reason, '') = 'target exited' AND NOT (SELECT ran FROM begun_before)
		AS whole,
	(SELECT value FROM meta WHERE key = 'min_size_bytes') AS min_size,
	(SELECT value FROM meta WHERE key = 'probes') AS probes,
	(SELECT value FROM meta WHERE key = 'kernel') AS kernel,
	(SELECT value FROM meta WHERE key = 'machine') AS machine,
	(SELECT value FROM meta WHERE key = 'overhead_limit') AS overhead_limit,
	(SELECT group_concat(toll, ', ') FROM (SELECT toll FROM toll_kind
		WHERE not_captured IS NOT NULL ORDER BY position)) AS not_captured,
	(SELECT group_concat(name, ', ') FROM (SELECT name FROM losses WHERE exceeds ORDER BY name))
		AS lossy,
	(SELECT group_concat(name || PRINTF(' %,d', count), ', ') FROM (SELECT name, count
		FROM losses WHERE count > 0 AND NOT exceeds ORDER BY name)) AS lost,
	(SELECT value FROM meta WHERE key = 'exit_status') AS exit_status,
	(SELECT group_concat(toll, ', ') FROM (SELECT toll FROM estimated_count ORDER BY toll))
		AS estimated
FROM target t;
