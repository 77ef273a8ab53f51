-- SPDX-License-Identifier: GPL-2.0
--
-- advised.sql: memory that the program has told the kernel to let go of, and uses again. Follows
-- handlers.sql.

-- Places where what MADV_DONTNEED took out of the process was of a file or segment, as came in
-- again, by how many bytes: what was given back of the same place is no part of it. part: of the
-- bytes that madvise was called for there. The time of the calls goes by it, where the same place
-- drops other memory as well.
CREATE VIEW let_go_part AS
SELECT a.pid, a.stack_id, MAX(0, a.bytes - COALESCE(g.bytes, 0)) AS bytes,
	MIN(1.0, 1.0 * MAX(0, a.bytes - COALESCE(g.bytes, 0)) / MAX(m.bytes, 1)) AS part, m.net_ns
FROM (SELECT pid, stack_id, SUM(bytes) AS bytes FROM advised WHERE advice = 'dontneed'
	GROUP BY pid, stack_id HAVING SUM(again_pages) > 0) a
LEFT JOIN (SELECT pid, stack_id, SUM(bytes) AS bytes, SUM(net_ns) AS net_ns FROM map_cost
	WHERE call = 'madvise' GROUP BY pid, stack_id) m
	ON m.pid = a.pid AND m.stack_id = a.stack_id
LEFT JOIN (SELECT pid, gave_stack, MAX(SUM(gave_bytes), SUM(again_bytes)) AS bytes
	FROM giveback WHERE how IN ('dontneed', 'stack') GROUP BY pid, gave_stack) g
	ON g.pid = a.pid AND g.gave_stack = a.stack_id;

-- One row. let_go: what MADV_DONTNEED took out of the process and its file or segment kept, and
-- what came in again: the calls and the faults (again_ns; of it file_ns and shared_ns, in toll
-- file.fault). cold: what came back of what was called cold.
CREATE VIEW advised_measure AS
WITH
site AS MATERIALIZED (
	SELECT a.pid, a.advice, a.stack_id, SUM(a.calls) AS calls, SUM(a.bytes) AS bytes,
		SUM(a.again_faults) AS again_faults, SUM(a.again_pages) AS again_pages,
		COALESCE(SUM(a.again_faults * (p.mean_ns + p.blocked_mean_ns)), 0.0) AS again_ns,
		COALESCE(SUM(CASE WHEN p.toll = 'file.fault' AND a.class <> 'shared_minor'
			THEN a.again_faults * (p.mean_ns + p.blocked_mean_ns) END), 0.0) AS file_ns,
		COALESCE(SUM(CASE a.class WHEN 'shared_minor'
			THEN a.again_faults * (p.mean_ns + p.blocked_mean_ns) END), 0.0)
			AS shared_ns
	FROM advised a LEFT JOIN fault_price p ON p.class = a.class
	GROUP BY a.pid, a.advice, a.stack_id HAVING SUM(a.again_pages) > 0
),
timed AS MATERIALIZED (
	SELECT s.*, MAX(0.0, COALESCE(m.part * m.net_ns, 0.0)) AS gave_ns, m.bytes AS let_go_bytes,
		ROW_NUMBER() OVER (PARTITION BY s.advice ORDER BY s.again_pages DESC, s.stack_id)
			AS number
	FROM site s LEFT JOIN let_go_part m ON m.pid = s.pid AND m.stack_id = s.stack_id
)
SELECT COALESCE(SUM(CASE advice WHEN 'dontneed' THEN calls END), 0) AS let_go_calls,
	COALESCE(SUM(CASE advice WHEN 'dontneed' THEN let_go_bytes END), 0) AS let_go_bytes,
	COALESCE(SUM(CASE advice WHEN 'dontneed' THEN gave_ns END), 0.0) AS let_go_ns,
	COALESCE(SUM(CASE advice WHEN 'dontneed' THEN again_faults END), 0) AS let_go_faults,
	COALESCE(SUM(CASE advice WHEN 'dontneed' THEN 4096 * again_pages END), 0)
		AS let_go_again_bytes,
	COALESCE(SUM(CASE advice WHEN 'dontneed' THEN again_ns END), 0.0) AS let_go_again_ns,
	COALESCE(SUM(CASE advice WHEN 'dontneed' THEN file_ns END), 0.0) AS let_go_file_ns,
	COALESCE(SUM(CASE advice WHEN 'dontneed' THEN shared_ns END), 0.0) AS let_go_shared_ns,
	MAX(CASE WHEN advice = 'dontneed' AND number = 1 THEN (SELECT p.code FROM stack_place p
		WHERE p.stack_id = timed.stack_id) END) AS let_go_place,
	COALESCE(SUM(CASE advice WHEN 'cold' THEN 4096 * again_pages END), 0) AS cold_again_bytes,
	MAX(CASE WHEN advice = 'cold' AND number = 1 THEN (SELECT p.code FROM stack_place p
		WHERE p.stack_id = timed.stack_id) END) AS cold_place
FROM timed;
