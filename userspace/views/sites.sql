-- SPDX-License-Identifier: GPL-2.0
--
-- sites.sql: where the tolls are paid, and the smaller figures of a report. Follows tolls.sql.

-- Tolls by both owners. call: the allocator function that made the block, for map the system call.
-- area: where faults fell outside of allocations: its kind, and the file's path.
-- known_clearing: NULL except for zero.libc, where 0 says that bytes holds only what faults prove.
CREATE VIEW sites AS
WITH
fp AS MATERIALIZED (SELECT * FROM fault_price),
cc AS (
	SELECT call, stack_id, known_clearing, SUM(calls) AS calls, SUM(bytes) AS bytes,
		SUM(cleared_calls) AS cleared_calls, SUM(cleared_bytes) AS cleared_bytes,
		SUM(zero_libc_ns) AS zero_libc_ns, SUM(alloc_ns) AS alloc_ns
	FROM call_cost GROUP BY call, stack_id, known_clearing
),
of_call(toll) AS (VALUES ('zero.libc'), ('alloc')),
computing AS MATERIALIZED (
	SELECT time_ns, count AS n FROM toll WHERE toll = 'compute' AND time_ns IS NOT NULL
),
proven AS MATERIALIZED (
	SELECT f.allocated_stack AS stack_id, SUM(f.pages) * 4096 AS bytes
	FROM fault f JOIN fp ON fp.class = f.class
	WHERE fp.toll = 'zero.kernel' AND fp.writes_page AND f.in_memset = 1
		AND f.in_call = 'calloc'
	  AND f.allocated_call = 'calloc'
	GROUP BY f.allocated_stack
),
touched AS (	-- numbers first, and no text made: of hours there are millions of rows to be sorted
	SELECT touched_stack, allocated_stack, class, allocated_call, area, area_name,
		SUM(faults) AS faults, SUM(pages) AS pages, SUM(timed_faults) AS timed_faults,
		SUM(blocked_ns) AS blocked_ns
	FROM fault GROUP BY touched_stack, allocated_stack, class, allocated_call, area, area_name
),
part(toll, call, allocated_stack, touched_stack, area, known_clearing, time_ns, count, bytes) AS (
	SELECT fp.toll, f.allocated_call, f.allocated_stack, f.touched_stack,
		-- a mapping that processes share has its own, and is somebody's
		CASE WHEN f.allocated_call <> '' AND f.area <> 'shared' THEN ''
			ELSE RTRIM(f.area || ' ' || f.area_name) END
			AS area, NULL,
		SUM(f.faults * fp.mean_ns + f.blocked_ns
			+ (f.faults - f.timed_faults) * fp.blocked_mean_ns),
		SUM(f.faults),
		SUM(CASE WHEN fp.toll NOT IN ('zero.kernel', 'cow') OR fp.writes_page THEN f.pages
			ELSE 0 END) * 4096
	FROM touched f JOIN fp ON fp.class = f.class WHERE fp.toll <> 'compute'
	GROUP BY 1, 2, 3, 4, 5
	UNION ALL
	SELECT k.toll, c.call, c.stack_id, 0, '',
		CASE k.toll WHEN 'zero.libc' THEN c.known_clearing END,
		CASE k.toll WHEN 'alloc' THEN c.alloc_ns ELSE c.zero_libc_ns END,
		CASE k.toll WHEN 'alloc' THEN c.calls ELSE c.cleared_calls END,
		CASE WHEN k.toll = 'alloc' THEN c.bytes WHEN c.known_clearing THEN c.cleared_bytes
			ELSE COALESCE(p.bytes, 0) END
	FROM cc c JOIN of_call k LEFT JOIN proven p ON p.stack_id = c.stack_id
	WHERE CASE k.toll WHEN 'alloc' THEN c.calls + c.alloc_ns
		ELSE c.zero_libc_ns + c.cleared_calls END > 0
	UNION ALL
	SELECT toll, call, stack_id, 0, '', NULL, MAX(0.0, SUM(net_ns)), SUM(calls), SUM(bytes)
	FROM map_cost GROUP BY toll, call, stack_id
	UNION ALL
	SELECT toll, allocated_call, allocated_stack, stack_id, area, NULL, SUM(time_ns),
		SUM(samples), CAST(SUM(bytes) AS INTEGER)
	FROM storing GROUP BY toll, allocated_call, allocated_stack, stack_id, area
	UNION ALL
	SELECT 'compute', '', 0, s.stack_id, '', NULL, SUM(s.samples) * c.time_ns / c.n,
		SUM(s.samples), 0
	FROM sample s, computing c WHERE s.place IN ('user', 'kernel') GROUP BY s.stack_id
	UNION ALL	-- of mapping calls the stack is the caller's, of faults the touching one
	SELECT toll, CASE toll WHEN 'map' THEN call ELSE '' END,
		CASE toll WHEN 'map' THEN stack_id ELSE 0 END,
		CASE toll WHEN 'map' THEN 0 ELSE stack_id END,
		CASE WHEN call = 'exit_group' THEN 'the end of a process' WHEN toll = 'map' THEN ''
			ELSE RTRIM('system call ' || call) END,
		NULL, SUM(time_ns), SUM(count), SUM(count) * 4096
	FROM sampled_work GROUP BY toll, call, stack_id
	UNION ALL
	-- reclaim inside faults: their code touches the same blocks with and without it
	SELECT x.toll, COALESCE(b.allocated_call, x.call), COALESCE(b.allocated_stack, 0),
		x.stack_id, x.area, NULL, SUM(x.cpu_ns + x.blocked_ns), SUM(x.count), SUM(x.bytes)
	FROM extra_toll x LEFT JOIN stalled_block b ON x.toll = 'reclaim'
		AND b.touched_stack = x.stack_id
	GROUP BY 1, 2, 3, x.stack_id, x.area
),
owner AS (
	SELECT toll, call, allocated_stack, touched_stack, area, known_clearing,
		SUM(time_ns) AS time_ns, SUM(count) AS count, SUM(bytes) AS bytes
	FROM part WHERE toll IN (SELECT toll FROM toll_kind WHERE not_captured IS NULL)
	GROUP BY toll, call, allocated_stack, touched_stack, area, known_clearing
)
SELECT ROW_NUMBER() OVER (ORDER BY w.time_ns DESC, w.bytes DESC, w.toll, w.call,
		w.allocated_stack, w.touched_stack, w.area) AS rank,
	w.toll, w.call, w.allocated_stack, w.touched_stack, w.area, w.known_clearing, w.time_ns,
	CASE WHEN o.observed_ns > 0 THEN MIN(1.0, w.time_ns / o.observed_ns) ELSE 0.0 END AS share,
	w.bytes, w.count
FROM owner w JOIN observed o;

-- Calls by function and stack. freed and live_bytes only where every block of the site was
-- followed, and every free seen. estimated: 1 where not all calls were watched; calls_error and
-- bytes_error are 95 % bounds then, and 0 else. at_least: 1 where calls of small blocks, which the
-- thread's cache answered, are not among them; of blocks of min_size_bytes and more all are.
CREATE VIEW allocation AS
WITH
made AS MATERIALIZED (
	SELECT call, stack_id, SUM(calls) AS calls, SUM(failed) AS failed, SUM(bytes) AS bytes,
		SUM(nested_calls) AS nested_calls, SUM(mmapped_calls) AS mmapped_calls,
		MAX(estimated) AS estimated, SUM(calls_error) AS calls_error,
		SUM(bytes_error) AS bytes_error
	FROM call_estimate GROUP BY call, stack_id
	UNION ALL	-- the program's own anonymous mappings; smaller ones and files are not
			-- followed
	SELECT 'mmap', b.stack_id, SUM(b.made), 0, SUM(b.made_bytes), 0, 0,
		0, 0, 0
	FROM block b WHERE b.call = 'mmap' GROUP BY b.stack_id HAVING SUM(b.made) > 0
),
life AS MATERIALIZED (
	SELECT call, stack_id, SUM(made) AS made, SUM(freed) AS freed,
		SUM(made_bytes) - SUM(freed_bytes) AS live_bytes,
		SUM(made_bytes) AS made_bytes, SUM(never_used_bytes) AS never_used_bytes
	FROM block GROUP BY call, stack_id
)
SELECT m.call, m.stack_id, m.calls, m.failed, m.bytes, m.mmapped_calls, m.nested_calls,
	CASE WHEN m.estimated OR (m.call <> 'mmap' AND f.missed) THEN NULL
		WHEN m.calls - m.failed = l.made THEN l.freed END AS freed,
	CASE WHEN m.estimated OR (m.call <> 'mmap' AND f.missed) THEN NULL
		WHEN m.calls - m.failed = l.made THEN MAX(0, l.live_bytes) END AS live_bytes,
	COALESCE(l.made, 0) AS followed, COALESCE(l.never_used_bytes, 0) AS never_used_bytes,
	m.estimated, m.calls_error, m.bytes_error,
	m.call IN (SELECT call FROM cached_call)
		AND m.calls - m.failed <> COALESCE(l.made, 0) AS at_least
FROM made m JOIN (SELECT EXISTS (SELECT 1 FROM watch WHERE call = 'free') AS missed) f LEFT
	JOIN life l ON l.call = m.call AND l.stack_id = m.stack_id
WHERE m.calls > 0;

-- The zeroing ledger, one row. bytes_twice: pages the kernel had just cleared when a memset to zero
-- was the first to touch them. NULL where the toll was not captured.
CREATE VIEW zeroing AS
SELECT
	MAX(CASE toll WHEN 'zero.kernel' THEN bytes END) AS bytes_kernel,
	MAX(CASE toll WHEN 'zero.libc' THEN bytes END) AS bytes_libc,
	MAX(CASE toll WHEN 'zero.app' THEN bytes END) AS bytes_app,
	COALESCE((SELECT SUM(f.pages) * 4096 FROM process_fault f
		JOIN fault_class k ON k.class = f.class
		WHERE k.toll = 'zero.kernel' AND k.writes_page = 1 AND f.in_memset = 1), 0)
		AS bytes_twice,
	COALESCE((SELECT SUM(never_used_bytes) FROM block), 0) AS bytes_never_used,
	(SELECT COUNT(*) FROM call WHERE call = 'calloc' AND known_clearing = 0) > 0
		AS libc_bytes_unknown
FROM toll;

CREATE VIEW overhead AS
SELECT
	CASE WHEN m.value IS NULL OR m.value = 'none' THEN NULL ELSE CAST(m.value AS REAL) END
		AS limit_pct,
	CASE WHEN o.observed_ns + o.overhead_ns > 0
		THEN 100.0 * o.overhead_ns / (o.observed_ns + o.overhead_ns) ELSE 0.0 END
		AS estimated_pct,
	o.hits, o.overhead_ns, o.overhead_error_ns,
	-- from the slice on in which the targets had taken their first second of CPU time; NULL:
	-- they never had
	(SELECT 100.0 * COALESCE(SUM(h.hits * p.hit_ns), 0.0) / MAX(l.cpu_ns, 1)
		FROM (SELECT MIN(slice) AS slice, SUM(cpu_ns) AS cpu_ns
			FROM (SELECT slice, SUM(cpu_ns) AS cpu_ns,
				SUM(SUM(cpu_ns)) OVER (ORDER BY slice) AS until_ns
				FROM process_slice GROUP BY slice)
			WHERE until_ns >= 1e9) l
		LEFT JOIN hit h ON h.slice >= l.slice
		LEFT JOIN probe_cost p ON p.probe = h.probe) AS later_pct,
	(SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'held_ns') AS held_ns
FROM observed o LEFT JOIN meta m ON m.key = 'overhead_limit';

-- How sure that is. source: what tells the uprobes' part, their calibrated prices or CPU samples
-- (uprobe_profile).
CREATE VIEW overhead_error AS
SELECT CASE WHEN o.observed_ns + o.overhead_ns > 0
		THEN 100.0 * o.overhead_error_ns / (o.observed_ns + o.overhead_ns) ELSE 0.0 END
		AS error_pct,
	CASE WHEN u.sampled THEN 'samples' ELSE 'prices' END AS source
FROM observed o JOIN uprobe_profile u;

-- One row: whether what is traced ran before tracing began: processes or a cgroup.
CREATE VIEW begun_before AS
SELECT NOT EXISTS (SELECT 1 FROM meta WHERE key = 'target_command')
	OR EXISTS (SELECT 1 FROM meta WHERE key = 'cgroup') AS ran;

-- Why that is above the limit, as part of a sentence; '' where it is not. The budget takes away the
-- uprobes of an allocator's functions, not the tracepoints that count faults and system calls. It
-- spares a command its first second of CPU time (budget_executor.c, governor.c), and nothing where
-- it was attached to processes or a cgroup.
CREATE VIEW overhead_why AS
SELECT CASE WHEN h.limit_pct IS NULL OR h.estimated_pct <= h.limit_pct THEN ''
	WHEN h.later_pct <= h.limit_pct THEN 'kept after the first second of CPU time'
	WHEN h.later_pct IS NULL AND NOT (SELECT ran FROM begun_before)
		THEN 'the first second of CPU time is not held to it'
	WHEN h.estimated_pct - e.error_pct <= h.limit_pct
		THEN PRINTF('+- %.1f %%: whether it is kept is not known', e.error_pct)
	WHEN COALESCE((SELECT SUM(overhead_ns) FROM probe_overhead WHERE probe IN ('fault',
			'fault_end', 'map', 'read', 'read_other', 'syscall', 'sample', 'idle')), 0)
		* h.estimated_pct > h.limit_pct * h.overhead_ns
		THEN 'faults and system calls alone take more, and are always counted'
	ELSE 'not kept' END AS text
FROM overhead h JOIN overhead_error e;

-- Probes that were hit and whose price is no more than its own error: it may as well be nothing.
-- most_ns: what the hits took at most. what: the probe in words.
CREATE VIEW price_untold AS
SELECT o.probe, CASE o.probe WHEN 'syscall' THEN 'other system calls, while some are watched'
		WHEN 'read_other' THEN 'reads of what is no file' WHEN 'fault' THEN 'faults'
		WHEN 'fault_end' THEN 'timing a fault' WHEN 'map' THEN 'mapping calls'
		WHEN 'read' THEN 'reads of files' WHEN 'idle' THEN 'calls passed over'
		WHEN 'walk' THEN 'walking a stack' WHEN 'sample' THEN 'CPU samples'
		ELSE 'calls of ' || o.probe END AS what,
	SUM(o.hits) AS hits, o.hit_ns, SUM(o.error_ns) / SUM(o.hits) AS error_ns,
	SUM(o.overhead_ns + o.error_ns) AS most_ns
FROM probe_overhead o GROUP BY o.probe
HAVING SUM(o.hits) > 0 AND SUM(o.error_ns) > 0 AND SUM(o.error_ns) >= SUM(o.overhead_ns);

-- One row: what was traced. The command is the traced one, or the first target's.
CREATE VIEW target AS
SELECT
	COALESCE((SELECT value FROM meta WHERE key = 'complete'), '0') = '1' AS complete,
	COALESCE((SELECT value FROM meta WHERE key = 'target_command'),
		(SELECT command FROM process ORDER BY role <> 'target', start_ns, pid LIMIT 1), '')
		AS command,
	(SELECT COUNT(*) FROM process) AS processes,
	(SELECT value FROM meta WHERE key = 'end_reason') AS end_reason,
	(SELECT MAX(slice) FROM slice) AS last_slice,
	o.duration_ns, o.observed_ns, o.cpu_ns,
	-- what it is called; of several how many there are; NULL: the processes were in none
	(SELECT CASE COUNT(DISTINCT title) WHEN 0 THEN NULL WHEN 1 THEN MAX(title)
		ELSE COUNT(DISTINCT title) || ' containers' END
	FROM container WHERE id IN (SELECT container FROM process)) AS container
FROM observed o;
