-- SPDX-License-Identifier: GPL-2.0
--
-- giveback.sql: memory given back to the kernel and got again. Follows stacks.sql.

-- By process and by the call that gave back, most expensive first. again_ns: the faults that brought
-- pages back, at the price of their class; gave_ns: the mapping calls made there (of this kind, all of
-- them); time_ns both. got_call, got_stack: who got most of it again. allocator: kind of the one that
-- gave it back, '' of the program itself. *_per_s: over the time of the recording.
CREATE VIEW giveback_site AS
WITH
fp AS MATERIALIZED (SELECT class, mean_ns, blocked_mean_ns FROM fault_price),
gave AS MATERIALIZED (
	SELECT g.pid, g.how, g.gave_call, g.gave_stack, SUM(g.calls) AS calls,
		SUM(g.gave_bytes) AS gave_bytes, MAX(g.largest_bytes) AS largest_bytes,
		MAX(g.span_bytes) AS span_bytes, SUM(g.again_faults) AS again_faults,
		SUM(g.again_bytes) AS again_bytes, SUM(g.twice_bytes) AS twice_bytes,
		COALESCE(SUM(g.again_faults * (fp.mean_ns + fp.blocked_mean_ns)), 0.0) AS again_ns
	FROM giveback g LEFT JOIN fp ON fp.class = g.class
	GROUP BY g.pid, g.how, g.gave_call, g.gave_stack
),
got AS MATERIALIZED (
	SELECT pid, how, gave_call, gave_stack, got_call, got_stack,
		ROW_NUMBER() OVER (PARTITION BY pid, how, gave_call, gave_stack
			ORDER BY SUM(again_bytes) DESC, got_stack) AS number
	FROM giveback WHERE again_bytes > 0
	GROUP BY pid, how, gave_call, gave_stack, got_call, got_stack
),
mapping AS MATERIALIZED (
	SELECT m.pid, m.call, m.in_call, m.stack_id,
		MAX(0.0, SUM(m.cpu_ns) - SUM(m.calls) * c.map_inside_ns) AS time_ns
	FROM map_call m JOIN calibrated c GROUP BY m.pid, m.call, m.in_call, m.stack_id
),
timed AS MATERIALIZED (
	-- the allocator whose module the function is in; where that was not read, the only one there is
	SELECT g.*, COALESCE(m.time_ns, 0.0) AS gave_ns,
		CASE g.gave_call WHEN '' THEN '' ELSE COALESCE(
			(SELECT MIN(a.kind) FROM allocator a
				WHERE a.pid = g.pid AND a.module = f.module),
			(SELECT MIN(a.kind) FROM allocator a WHERE a.pid = g.pid
				AND a.kind <> 'glibc'),
			(SELECT MIN(a.kind) FROM allocator a WHERE a.pid = g.pid), 'unknown')
		END AS allocator
	FROM gave g LEFT JOIN stack_frame s ON s.stack_id = g.gave_stack AND s.depth = 0
	LEFT JOIN frame f ON f.frame_id = s.frame_id
	LEFT JOIN mapping m ON m.pid = g.pid AND m.in_call = g.gave_call
		AND m.stack_id = g.gave_stack AND m.call = CASE g.how WHEN 'munmap' THEN 'munmap'
			WHEN 'brk' THEN 'brk' WHEN 'fixed' THEN 'mmap' ELSE 'madvise' END
)
SELECT ROW_NUMBER() OVER (ORDER BY t.again_bytes > 0 DESC, t.again_ns + t.gave_ns DESC,
		t.gave_bytes DESC, t.pid, t.how, t.gave_call, t.gave_stack) AS rank,
	t.pid, t.how, t.gave_call, t.gave_stack, COALESCE(w.got_call, '') AS got_call,
	COALESCE(w.got_stack, 0) AS got_stack, t.calls, t.gave_bytes, t.largest_bytes,
	t.span_bytes, t.again_faults, t.again_bytes, t.twice_bytes, t.again_ns, t.gave_ns,
	t.again_ns + t.gave_ns AS time_ns,
	CASE WHEN o.duration_ns > 0 THEN t.gave_bytes * 1e9 / o.duration_ns ELSE 0.0 END
		AS gave_bytes_per_s,
	CASE WHEN o.duration_ns > 0 THEN t.again_bytes * 1e9 / o.duration_ns ELSE 0.0 END
		AS again_bytes_per_s,
	t.allocator
FROM timed t JOIN observed o LEFT JOIN got w ON w.number = 1 AND w.pid = t.pid AND w.how = t.how
	AND w.gave_call = t.gave_call AND w.gave_stack = t.gave_stack
WHERE t.gave_bytes > 0 OR t.again_bytes > 0;
