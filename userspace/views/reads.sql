-- SPDX-License-Identifier: GPL-2.0
--
-- reads.sql: reads of files: their cost, and how often the same part is read again. Follows
-- prices.sql; tolls.sql has the rules that all views keep.

-- Reads by process, file, call and place. cpu_ns: less the probes' own part and the minor faults
-- that were taken inside, which have their own tolls; past the page cache the kernel takes them for
-- the program, and no probe is hit. pages: whole ones, of the bytes.
CREATE VIEW read_cost AS
WITH
total AS MATERIALIZED (
	SELECT pid, file, call, stack_id, direct, SUM(calls) AS calls, SUM(failed) AS failed,
		SUM(bytes) AS bytes, SUM(cpu_ns) AS cpu_ns, SUM(blocked_ns) AS blocked_ns,
		SUM(cached_calls) AS cached_calls, SUM(cached_bytes) AS cached_bytes,
		SUM(filled_pages) AS filled_pages, SUM(faults) AS faults
	FROM file_read GROUP BY pid, file, call, stack_id, direct
),
fault AS MATERIALIZED (
	SELECT p.class = 'zero_populated' AS direct, p.mean_ns, p.error_ns,
		CASE p.class WHEN 'zero' THEN c.fault_hit_ns ELSE 0.0 END AS hit_ns,
		CASE p.class WHEN 'zero' THEN c.fault_hit_error_ns ELSE 0.0 END AS hit_error_ns
	FROM fault_price p JOIN calibrated c WHERE p.class IN ('zero', 'zero_populated')
)
SELECT t.pid, t.file, t.call, t.stack_id, t.direct, t.calls, t.failed, t.bytes, t.blocked_ns,
	t.cached_calls, t.cached_bytes, t.filled_pages,
	MAX(0.0, t.cpu_ns - t.calls * c.read_inside_ns - t.faults * (f.mean_ns + f.hit_ns))
		AS cpu_ns,
	-- of reads of which one in so many was drawn, that of the draw
	CASE WHEN d.one_in > 1 THEN (t.cpu_ns + t.blocked_ns) * 1.96 * (SELECT root
		FROM square_root WHERE v = (d.one_in - 1.0) / t.calls) ELSE 0.0 END
	-- what the probes add inside is uncertain, but not by more than itself
	+ t.calls * MIN(c.read_error_ns, MAX(c.read_inside_ns, 0.1 * c.read_hit_ns)) + t.faults
		* (f.error_ns + f.hit_error_ns) AS error_ns
FROM total t JOIN calibrated c JOIN fault f ON f.direct = (t.direct <> 0)
LEFT JOIN thinning d ON d.what = 'read';

-- The place for tolls with tables of their own (swap.out, reclaim, file.read): one row per pid,
-- toll, stack, call and area. cpu_ns is part of the pid's CPU time, blocked_ns is not.
CREATE VIEW extra_toll AS
SELECT pid, toll, stack_id, '' AS call, '' AS area, SUM(cpu_ns) AS cpu_ns,
	SUM(blocked_ns) AS blocked_ns, 0 AS error_ns, SUM(count) AS count,
	SUM(pages) * 4096 AS bytes, SUM(pages) AS pages
FROM (
	SELECT pid, 0 AS stack_id, count, pages, cpu_ns, blocked_ns,
		CASE WHEN what LIKE 'reclaim%' THEN 'reclaim' ELSE 'swap.out' END AS toll FROM swap
	-- what came in is the toll of the faults; pid 0 is everybody who is not traced
	WHERE pid > 0 AND (what LIKE 'reclaim%' OR what LIKE 'out%')
	UNION ALL	-- what has a stack, and is no part of what has none
	SELECT pid, w.stack, w.sign * count, w.sign * pages, w.sign * cpu_ns, w.sign * blocked_ns,
		'reclaim' FROM (SELECT *, stack_id AS stack, 1 AS sign FROM reclaim_site
			UNION ALL SELECT *, 0, -1 FROM reclaim_site) w
)
GROUP BY pid, toll, stack_id HAVING SUM(count) > 0
UNION ALL
SELECT r.pid, 'file.read', r.stack_id, r.call,
	COALESCE(f.kind || ' ' || NULLIF(f.path, ''), 'file ' || f.inode, 'file'),
	SUM(r.cpu_ns), SUM(r.blocked_ns), SUM(r.error_ns), SUM(r.calls), SUM(r.bytes),
	SUM(r.bytes) / 4096
FROM read_cost r LEFT JOIN file f ON f.file = r.file
GROUP BY r.pid, r.stack_id, r.call, r.file;

-- By code that reclaim stopped: the block that most faults of this code fell into.
CREATE VIEW stalled_block AS
SELECT touched_stack, allocated_call, allocated_stack, MAX(faults) AS faults
FROM (SELECT touched_stack, allocated_call, allocated_stack, SUM(faults) AS faults FROM fault
	WHERE allocated_call <> '' AND touched_stack IN (SELECT stack_id FROM reclaim_site)
	GROUP BY 1, 2, 3)
GROUP BY touched_stack;

-- Of each file, and of all (file 0): how often each different block was read, on average. low and
-- high bound it where blocks were sampled; equal where all were followed.
CREATE VIEW every_reuse AS
SELECT file, uses, different, different * block_bytes AS different_bytes,
	MAX(0.0, uses - first) / uses AS again_share, rate,
	MAX(1.0, uses / different) AS reread_factor,
	MAX(1.0, uses / (different * (1 + error))) AS low,
	MAX(1.0, uses / (different * MAX(1 - error, 0.01))) AS high,
	CASE WHEN uses > first THEN (max_distance + 1) * block_bytes END AS enough_bytes
FROM reuse WHERE subject IN ('file', 'files') AND uses > 0 AND different > 0;

-- The same. Where only some reads were looked at, those are of fewer blocks than all: then of a
-- file as many are different as it has, or as were read, which is the most there can be, and what
-- read it more often than that read some again.
CREATE VIEW file_reuse AS
SELECT r.file, r.uses, r.different, r.different_bytes, r.again_share, r.rate, r.reread_factor,
	r.low, r.high, r.enough_bytes
FROM every_reuse r WHERE (SELECT COALESCE(MAX(share), 0) FROM thinning WHERE what = 'read') < 0.01
UNION ALL
SELECT f.file, f.uses, f.different, f.different * 4096.0, 1.0 - f.different / f.uses, r.rate,
	f.uses / f.different, f.uses / f.different, MAX(f.uses / r.different, f.uses / f.different),
	f.different * 4096
FROM every_reuse r JOIN (
	SELECT CASE WHEN g.whole THEN 0 ELSE r.file END AS file, SUM(r.bytes) / 4096.0 AS uses,
		SUM(MIN(r.bytes, COALESCE(MAX(r.file_bytes, 4096), r.bytes))) / 4096.0 AS different
	FROM (SELECT r.file, SUM(r.bytes) AS bytes, MAX(f.bytes) AS file_bytes FROM file_read r
		JOIN file f ON f.file = r.file GROUP BY r.file) r
	JOIN (SELECT 0 AS whole UNION ALL SELECT 1) g GROUP BY 1
) f ON f.file = r.file
WHERE (SELECT MAX(share) FROM thinning WHERE what = 'read') >= 0.01 AND f.uses > f.different;

-- The miss-ratio curve: the share of the reads (subject 'file', 'files') or swap-ins ('swap') seen
-- that a cache of so many bytes, which throws out what was used longest ago, would still miss; of
-- pages swapped in, memory for all that faults. Hits in a cache that the program keeps itself are
-- not visible: what it holds all the time takes room, too, so the cache that is needed lies between
-- cache_bytes and cache_bytes plus the size of that one. error: 95 %, of sampling; 0: every block
-- was followed.
CREATE VIEW every_miss_ratio AS
SELECT subject, file, 0 AS cache_bytes, 1.0 AS miss_ratio, error FROM reuse WHERE uses > 0
UNION ALL
SELECT d.subject, d.file, d.high * r.block_bytes, MAX(0.0, 1.0 - SUM(d.uses) OVER (
	PARTITION BY d.subject, d.file ORDER BY d.low) / r.uses), r.error
FROM reuse_distance d JOIN reuse r ON r.subject = d.subject AND r.file = d.file WHERE r.uses > 0;

-- None where only some reads were looked at: the distances between them are not those of all.
CREATE VIEW miss_ratio AS
SELECT * FROM every_miss_ratio m WHERE m.subject = 'swap'
	OR (SELECT COALESCE(MAX(share), 0) FROM thinning WHERE what = 'read') < 0.01;

-- Files by the time that reading them took. cached_bytes: what was there when the read began, and
-- had not been read ahead for it: of pages that came in and were used one use each is the
-- device's.
CREATE VIEW files AS
SELECT ROW_NUMBER() OVER (ORDER BY time_ns DESC, bytes DESC, r.file) AS rank, r.file, path, r.dev,
	r.inode, kind, file_bytes, calls, r.bytes, time_ns, blocked_ns, direct_bytes,
	MAX(0, MIN(cached_bytes, r.bytes - COALESCE(p.used_bytes, 0))) AS cached_bytes, filled_bytes
FROM (
	SELECT r.file, COALESCE(f.path, '') AS path, f.dev, f.inode,
		COALESCE(f.kind, 'file') AS kind,
		f.bytes AS file_bytes, SUM(r.calls) AS calls, SUM(r.bytes) AS bytes,
		SUM(r.cpu_ns + r.blocked_ns) AS time_ns, SUM(r.blocked_ns) AS blocked_ns,
		SUM(CASE WHEN r.direct THEN r.bytes ELSE 0 END) AS direct_bytes,
		SUM(r.cached_bytes) AS cached_bytes, SUM(r.filled_pages) * 4096 AS filled_bytes
	FROM read_cost r LEFT JOIN file f ON f.file = r.file GROUP BY r.file) r
LEFT JOIN (
	SELECT dev, inode, SUM(used_pages) * 4096 AS used_bytes FROM page_fill
	WHERE cause = 'read' GROUP BY dev, inode) p ON p.dev = r.dev AND p.inode = r.inode;
