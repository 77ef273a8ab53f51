-- SPDX-License-Identifier: GPL-2.0
--
-- counts.sql: what is counted, and neither timed nor estimated, by the place that pays it; and what
-- stands in the way of taking a count for exact. What `memtoll gate` holds against its bounds. It
-- rests on tables and on the names of frames alone, and is asked in no time. Follows stacks.sql.

-- count and bytes as the toll table has them, where that has no estimates. stack_id: the code that
-- pays: that called, or touched the page; block_stack: of a fault, where the block was allocated.
-- fault: 1 where it is a page fault.
CREATE VIEW exact_count AS
SELECT k.toll, 1 AS fault, f.allocated_call AS call,
	CASE f.touched_stack WHEN 0 THEN f.allocated_stack ELSE f.touched_stack END AS stack_id,
	f.allocated_stack AS block_stack, RTRIM(f.area || ' ' || f.area_name) AS area,
	SUM(f.faults) AS count,
	SUM(CASE WHEN k.toll NOT IN ('zero.kernel', 'cow') OR k.writes_page THEN f.pages
		ELSE 0 END) * 4096 AS bytes
FROM fault f JOIN fault_class k ON k.class = f.class
GROUP BY 1, 3, 4, 5, 6
UNION ALL
SELECT 'alloc', 0, call, stack_id, 0, '', SUM(calls), SUM(bytes) FROM call
GROUP BY call, stack_id HAVING SUM(calls) > 0
UNION ALL
SELECT 'zero.libc', 0, call, stack_id, 0, '', SUM(cleared_calls), SUM(cleared_bytes) FROM call
GROUP BY call, stack_id HAVING SUM(cleared_calls) > 0
UNION ALL
SELECT CASE WHEN call = 'madvise' AND (pid, stack_id) IN (SELECT pid, stack_id FROM page_drop
		WHERE how = 'madvise') THEN 'reclaim' ELSE 'map' END,
	0, call, stack_id, 0, '', SUM(calls), SUM(bytes) FROM map_call GROUP BY 1, call, stack_id
UNION ALL
SELECT 'file.read', 0, r.call, r.stack_id, 0,
	COALESCE(f.kind || ' ' || NULLIF(f.path, ''), 'file ' || f.inode, 'file'),
	SUM(r.calls), SUM(r.bytes)
FROM file_read r LEFT JOIN file f ON f.file = r.file GROUP BY r.call, r.stack_id, r.file
UNION ALL
SELECT CASE WHEN what LIKE 'reclaim%' THEN 'reclaim' ELSE 'swap.out' END, 0, '', 0, 0, '',
	SUM(count), SUM(pages) * 4096
FROM swap WHERE pid > 0 AND (what LIKE 'reclaim%' OR what LIKE 'out%') GROUP BY 1;

-- What a toll's count lacks. lost: so many events at most; NULL: it is not known how many, and the
-- count says nothing. One row for each reason. counted: 1 where they are counted, perhaps for
-- another toll.
CREATE VIEW count_doubt AS
SELECT k.toll, l.count AS lost, l.name || ' ' || l.count AS reason,
	l.name = 'walk_failed' AS counted
FROM toll_kind k JOIN losses l ON l.count > 0 AND CASE
	WHEN l.name = 'ring_outlier' THEN 0	-- the call is counted
	WHEN l.measure IN ('any', 'event') OR l.name = 'records_unreadable' THEN 1
	WHEN l.measure = 'call' OR l.name = 'return_missed' THEN k.toll IN ('alloc', 'zero.libc')
	WHEN l.name = 'header_unreadable' THEN k.toll = 'zero.libc'
	WHEN l.measure IN ('map', 'mapping') THEN k.toll = 'map'
	WHEN l.measure = 'read' THEN k.toll = 'file.read'
	WHEN l.name IN ('ring_faults', 'walk_failed')
		THEN k.toll IN (SELECT toll FROM fault_class)
	WHEN l.measure = 'swap' THEN k.toll IN ('swap.out', 'reclaim') END
UNION ALL	-- of processes or allocators it is not known what they did
SELECT k.toll, NULL, l.name || ' ' || l.count, 0
FROM toll_kind k JOIN losses l ON l.count > 0 AND CASE
	WHEN l.name = 'processes_full' THEN 1
	WHEN l.name IN ('late_attach', 'attach_failed', 'mappings_left_out', 'ring_process')
		THEN k.toll IN ('alloc', 'zero.libc') END
UNION ALL	-- seen in no window is not never called
SELECT DISTINCT t.column2, NULL, 'allocator calls were watched in windows only', 0
FROM watch w JOIN (VALUES ('calloc', 'zero.libc'), ('*', 'alloc')) t
	ON t.column1 = w.call OR t.column1 = '*'
WHERE w.call NOT IN ('syscall', 'read_other')
UNION ALL
SELECT 'alloc', NULL, 'calls that threads'' caches answered were not counted', 0
WHERE EXISTS (SELECT 1 FROM past_cache)
UNION ALL	-- their number is exact, what they are is not
SELECT DISTINCT k.toll, NULL, 'only some faults were looked at', 1 FROM fault_class k
WHERE EXISTS (SELECT 1 FROM thinned WHERE what = 'fault' AND passed > 0)
UNION ALL
SELECT 'file.read', NULL, 'only some reads were looked at', 0
WHERE EXISTS (SELECT 1 FROM thinned WHERE what = 'read' AND passed > 0)
UNION ALL
SELECT 'zero.libc', NULL, 'this allocator does not tell what its calloc clears', 0
WHERE EXISTS (SELECT 1 FROM call WHERE call = 'calloc' AND calls > 0 AND NOT known_clearing)
UNION ALL
SELECT t.column1, NULL, 'processes started faster than they were looked at', 0
FROM (VALUES ('alloc'), ('zero.libc')) t
WHERE EXISTS (SELECT 1 FROM loss WHERE name = 'programs_passed' AND count > 0)
UNION ALL	-- where none has one, of allocators that are known, toll_kind says it
SELECT t.column1, NULL, 'no allocator that is known was found in some processes', 0
FROM (VALUES ('alloc'), ('zero.libc')) t
WHERE EXISTS (SELECT 1 FROM process p
	WHERE p.pid NOT IN (SELECT pid FROM allocator_probe WHERE offset IS NOT NULL)
	AND (EXISTS (SELECT 1 FROM allocator_probe)
		OR p.pid NOT IN (SELECT pid FROM allocator)))
	-- what ran in the process before may have had one
	OR EXISTS (SELECT 1 FROM allocator_probe) AND EXISTS (SELECT 1 FROM allocator a
		WHERE a.linkage = 'static' AND NOT EXISTS (SELECT 1 FROM allocator_probe p
			WHERE p.pid = a.pid AND p.module = a.module AND p.offset IS NOT NULL))
UNION ALL
SELECT toll, NULL, 'the recording has no end', 0 FROM toll_kind
WHERE NOT EXISTS (SELECT 1 FROM meta WHERE key = 'complete' AND value = '1')
UNION ALL	-- a command that did not do all it does
SELECT k.toll, NULL, e.reason, 0 FROM toll_kind k JOIN (
	SELECT CASE WHEN ended IN ('size limit', 'the recording could not be written', 'error')
			THEN 'the recording ended early: ' || ended
		WHEN words IS NOT NULL AND ended = 'signal' THEN 'the command was interrupted'
		WHEN ended IS NOT 'duration' AND status <> '0'
			THEN 'the command failed (exit status ' || status || ')' END AS reason
	FROM (SELECT MAX(CASE key WHEN 'end_reason' THEN value END) AS ended,
			MAX(CASE key WHEN 'exit_status' THEN value END) AS status,
			MAX(CASE key WHEN 'target_words' THEN value END) AS words FROM meta)) e
	ON e.reason IS NOT NULL;

-- What a toll's count lacks besides, where only that of some code is asked for. As count_doubt; a
-- fault is also of the code that allocated its block.
CREATE VIEW place_doubt AS
SELECT k.toll, CASE l.name WHEN 'call_sites' THEN l.count END AS lost,
	l.name || ' ' || l.count AS reason
FROM toll_kind k JOIN losses l ON l.count > 0 AND CASE l.name
	WHEN 'stacks_full' THEN 1
	WHEN 'call_sites' THEN k.toll IN ('alloc', 'zero.libc')
	WHEN 'blocks_full' THEN k.toll IN (SELECT toll FROM fault_class)
	WHEN 'ring_block' THEN k.toll IN (SELECT toll FROM fault_class) END
UNION ALL
SELECT 'map', NULL, 'only some mapping calls were looked at'
WHERE EXISTS (SELECT 1 FROM thinned WHERE what IN ('map', 'small_map') AND passed > 0)
UNION ALL
SELECT k.toll, NULL, 'processes started faster than they were looked at' FROM toll_kind k
WHERE k.toll = 'map' AND EXISTS (SELECT 1 FROM loss WHERE name = 'programs_passed' AND count > 0)
UNION ALL
SELECT DISTINCT k.toll, NULL, d.reason FROM fault_class k JOIN (
	SELECT 'of faults, where their blocks were allocated: ' || reason AS reason FROM count_doubt
	WHERE toll = 'alloc' AND lost IS NULL
	UNION ALL SELECT 'where blocks were allocated was not traced' FROM toll_kind
	WHERE toll = 'alloc' AND not_captured IS NOT NULL) d;

-- What a place is called when two recordings are compared, whose addresses and lines differ: the
-- functions and files of the innermost three frames of the program's own, or else of the innermost
-- that there is. place, function, file, line: of the innermost; caller: of the next one of the
-- program's own that is another function.
CREATE VIEW stack_site AS
WITH
line AS (
	SELECT stack_id, function, file, line, said, name, usable,
		SUBSTR(name, 1, 1024) || ' ' || SUBSTR(module, 1 + LENGTH(RTRIM(module,
			REPLACE(module, '/', '')))) AS known_as,
		ROW_NUMBER() OVER (PARTITION BY stack_id ORDER BY preference, depth) AS number
	FROM (SELECT stack_id, function, file, line, said, name, usable, preference, depth,
		SUBSTR(module, -256) AS module FROM stack_line)
)
SELECT a.stack_id, a.said AS place, a.name AS function, a.file, a.line,
	CASE WHEN b.name <> a.name THEN b.said ELSE c.said END AS caller,
	a.known_as || COALESCE(' < ' || b.known_as, '') || COALESCE(' < ' || c.known_as, '') AS site
FROM line a LEFT JOIN line b ON b.stack_id = a.stack_id AND b.number = 2 AND b.usable < 6
LEFT JOIN line c ON c.stack_id = a.stack_id AND c.number = 3 AND c.usable < 6
WHERE a.number = 1;
