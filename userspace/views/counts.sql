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
-- count says nothing. One row for each reason.
CREATE VIEW count_doubt AS
SELECT k.toll, l.count AS lost, l.name || ' ' || l.count AS reason
FROM toll_kind k JOIN losses l ON l.count > 0 AND CASE
	WHEN l.measure IN ('any', 'event') THEN 1
	WHEN l.measure = 'call' THEN k.toll IN ('alloc', 'zero.libc')
	WHEN l.measure IN ('map', 'mapping') THEN k.toll = 'map'
	WHEN l.measure = 'read' THEN k.toll = 'file.read'
	WHEN l.name = 'ring_faults' THEN k.toll IN (SELECT toll FROM fault_class)
	WHEN l.measure = 'swap' THEN k.toll IN ('swap.out', 'reclaim') END
UNION ALL
SELECT DISTINCT t.column2, NULL, 'allocator calls were watched in windows only'
FROM watch w JOIN (VALUES ('calloc', 'zero.libc'), ('*', 'alloc')) t
	ON t.column1 = w.call OR t.column1 = '*'
WHERE w.call NOT IN ('syscall', 'read_other') AND w.call IN (SELECT call FROM call)
UNION ALL	-- their number is exact, what they are is not
SELECT DISTINCT k.toll, NULL, 'only some faults were looked at' FROM fault_class k
WHERE EXISTS (SELECT 1 FROM thinned WHERE what = 'fault' AND passed > 0)
UNION ALL
SELECT 'zero.libc', NULL, 'this allocator does not tell what its calloc clears'
WHERE EXISTS (SELECT 1 FROM call WHERE call = 'calloc' AND calls > 0 AND NOT known_clearing)
UNION ALL
SELECT t.column1, NULL, 'processes started faster than they were looked at'
FROM (VALUES ('alloc'), ('zero.libc')) t
WHERE EXISTS (SELECT 1 FROM loss WHERE name = 'programs_passed' AND count > 0)
UNION ALL
SELECT toll, NULL, 'the recording has no end' FROM toll_kind
WHERE NOT EXISTS (SELECT 1 FROM meta WHERE key = 'complete' AND value = '1');

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
		ROW_NUMBER() OVER (PARTITION BY stack_id ORDER BY usable, depth) AS number
	FROM (SELECT stack_id, function, file, line, said, name, usable, depth,
		SUBSTR(module, -256) AS module FROM stack_line)
)
SELECT a.stack_id, a.said AS place, a.name AS function, a.file, a.line,
	CASE WHEN b.name <> a.name THEN b.said ELSE c.said END AS caller,
	a.known_as || COALESCE(' < ' || b.known_as, '') || COALESCE(' < ' || c.known_as, '') AS site
FROM line a LEFT JOIN line b ON b.stack_id = a.stack_id AND b.number = 2 AND b.usable < 3
LEFT JOIN line c ON c.stack_id = a.stack_id AND c.number = 3 AND c.usable < 3
WHERE a.number = 1;
