-- SPDX-License-Identifier: GPL-2.0
--
-- populate.sql: pages that the kernel faults in and clears inside a system call. Follows
-- latency.sql.

-- One row. populated_ns: all of it; populated_*: of the call and place that has most. thread: it is
-- a new thread's stack. cleared_ns: filling memory that is there with zeros, no faults; cleared_*:
-- of the call and place that has most. Of the mapping toll: map_sampled_ns, in calls that
-- are not watched; forked_ns, copying page tables for a child; protected_ns, changing protections;
-- changed_*: of these two the dearer, where most of it is; made_ns, making pages of files and
-- shared memory; freed_ns, unmapping memory and freeing pages; ended_ns, of that what a program had
-- at its end, or when its process began another one: no call of its own that could be spared.
CREATE VIEW populate_measure AS
WITH
fault_time AS MATERIALIZED (
	SELECT mean_ns FROM fault_price WHERE class = 'zero_populated'
),
work AS MATERIALIZED (
	SELECT toll, call, stack_id, clears, SUM(time_ns) AS time_ns, SUM(count) AS count,
		CASE WHEN toll <> 'map' THEN ''
			WHEN call IN ('fork', 'vfork', 'clone', 'clone3') THEN 'fork'
			WHEN call IN ('mprotect', 'pkey_mprotect') THEN 'protect'
			WHEN call IN ('fallocate', 'write', 'pwrite64', 'writev', 'pwritev',
				'pwritev2', 'splice') THEN 'make' ELSE 'free' END AS does
	FROM sampled_work GROUP BY toll, call, stack_id, clears
),
-- the call of a fault's stack: faults have none of their own
caller AS MATERIALIZED (
	SELECT stack_id, MIN(call) AS call, SUM(calls) AS calls FROM map_call
	WHERE populated_ns > 0 GROUP BY stack_id
	UNION ALL SELECT stack_id, MIN(call), SUM(calls) FROM file_read WHERE direct
	GROUP BY stack_id
),
part AS MATERIALIZED (
	SELECT COALESCE(c.call, '') AS call, f.touched_stack AS stack_id,
		SUM(f.faults) * t.mean_ns + SUM(f.blocked_ns) AS time_ns,
		SUM(f.faults) AS faults, SUM(f.pages) * 4096 AS bytes, c.calls
	FROM fault f JOIN fault_time t LEFT JOIN caller c ON c.stack_id = f.touched_stack
	WHERE f.class = 'zero_populated' GROUP BY f.touched_stack
	UNION ALL SELECT call, stack_id, time_ns, count, count * 4096, NULL FROM work
	WHERE toll = 'zero.kernel' AND NOT clears
),
top AS MATERIALIZED (
	SELECT * FROM part ORDER BY time_ns DESC, stack_id LIMIT 1
),
cleared AS MATERIALIZED (
	SELECT call, stack_id FROM work WHERE clears ORDER BY time_ns DESC, stack_id LIMIT 1
),
sampled AS MATERIALIZED (
	SELECT COALESCE(SUM(CASE WHEN toll = 'map' THEN time_ns END), 0.0) AS map_sampled_ns,
		COALESCE(SUM(CASE WHEN clears THEN time_ns END), 0.0) AS cleared_ns,
		COALESCE(SUM(CASE does WHEN 'fork' THEN time_ns END), 0.0) AS forked_ns,
		COALESCE(SUM(CASE does WHEN 'protect' THEN time_ns END), 0.0) AS protected_ns,
		COALESCE(SUM(CASE does WHEN 'make' THEN time_ns END), 0.0) AS made_ns,
		COALESCE(SUM(CASE WHEN does = 'free' AND call IN ('exit_group', 'exit', 'execve',
			'execveat') THEN time_ns END), 0.0) AS ended_ns
	FROM work
),
-- by place: each process has stacks of its own
changed AS MATERIALIZED (
	SELECT call, place FROM (
		SELECT w.does, w.call, w.time_ns, SUM(w.time_ns) OVER (PARTITION BY w.does)
			AS all_ns,
			(SELECT p.code FROM stack_place p WHERE p.stack_id = w.stack_id) AS place
		FROM work w WHERE w.does IN ('fork', 'protect'))
	GROUP BY does, call, place ORDER BY MAX(all_ns) DESC, SUM(time_ns) DESC, call, place
	LIMIT 1
),
freed AS MATERIALIZED (
	SELECT COALESCE(SUM(time_ns), 0.0) AS time_ns FROM (
		SELECT MAX(0.0, SUM(net_ns)) AS time_ns
		FROM map_cost WHERE call IN ('munmap', 'madvise') AND toll = 'map'
		UNION ALL SELECT time_ns FROM work WHERE does = 'free')
)
SELECT COALESCE((SELECT SUM(time_ns) FROM part), 0.0) AS populated_ns,
	COALESCE((SELECT SUM(bytes) FROM part), 0) AS populated_bytes,
	t.call AS populated_call, 1.0 * t.bytes / t.calls AS populated_each,
	(SELECT p.code FROM stack_place p WHERE p.stack_id = t.stack_id) AS populated_place,
	(SELECT pid FROM stack s WHERE s.stack_id = t.stack_id) AS populated_pid,
	COALESCE(EXISTS (SELECT 1 FROM stack_line l WHERE l.stack_id = t.stack_id
		AND (l.function LIKE 'pthread!_create%' ESCAPE '!'
			OR l.function LIKE '!_!_pthread!_create%' ESCAPE '!')), 0)
		AS populated_thread,
	f.time_ns AS freed_ns,
	d.map_sampled_ns, d.cleared_ns, d.forked_ns, d.protected_ns, d.made_ns, d.ended_ns,
	h.call AS changed_call, h.place AS changed_place,
	c.call AS cleared_call,
	(SELECT p.code FROM stack_place p WHERE p.stack_id = c.stack_id) AS cleared_place
FROM freed f JOIN sampled d LEFT JOIN changed h LEFT JOIN cleared c LEFT JOIN top t;

-- One row: first touches of memory by a runtime itself, before its program uses it: of its heap by
-- HotSpot, which is told to by AlwaysPreTouch.
CREATE VIEW pretouch_measure AS
SELECT COALESCE(SUM(time_ns), 0.0) AS pretouched_ns, COALESCE(SUM(bytes), 0) AS pretouched_bytes,
	COALESCE(SUM(count), 0) AS pretouched_faults
FROM sites WHERE toll = 'zero.kernel' AND touched_stack IN (
	SELECT s.stack_id FROM stack_frame s JOIN frame f ON f.frame_id = s.frame_id
	WHERE f.module GLOB '*/libjvm.so' AND (f.function GLOB 'os::pretouch_memory*'
		OR f.function GLOB 'PretouchTask::work*'));
