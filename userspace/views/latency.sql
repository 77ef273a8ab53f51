-- SPDX-License-Identifier: GPL-2.0
--
-- latency.sql: how long single calls of the allocator take, and why some take far longer than the
-- rest. Follows swap.sql.

-- Whether the glibc of a process consolidates its fast bins: up to 2.42 (removed by its commits
-- e3062b06c5 and bb5a4f5295 for 2.43), unless mxfast=0 leaves them empty. NULL: not known.
CREATE VIEW consolidating AS
SELECT pid, MAX(CASE WHEN tunables LIKE '%glibc.malloc.mxfast=0%' THEN 0
	WHEN version NOT GLOB '2.[0-9]*' THEN NULL
	ELSE CAST(SUBSTR(version, 3) AS INTEGER) < 43 END) AS consolidates,
	MAX(version) AS glibc_version
FROM allocator WHERE kind = 'glibc' GROUP BY pid;

-- Buckets of each function, all processes and sites together. before: calls in the buckets below.
CREATE VIEW latency_bucket AS
SELECT call, low_ns, high_ns, calls,
	SUM(calls) OVER (PARTITION BY call ORDER BY low_ns) - calls AS before,
	SUM(calls) OVER (PARTITION BY call) AS n
FROM (SELECT call, low_ns, MAX(high_ns) AS high_ns, SUM(calls) AS calls FROM latency
	GROUP BY call, low_ns);

-- One row per function: quantiles of its latency, and what its calls spend their time in, all of
-- them together. Quantiles lie in the middle of their bucket's share (linear between its bounds).
-- What is below resolution_ns cannot be distinguished from 0: the probes' price varies by as much.
-- wall_ns is own_ns (on the CPU in the allocator itself, its clearing included) + fault_ns + map_ns
-- + lock_ns + off_ns (off the CPU otherwise: preempted, or asleep in faults). Of the time that a
-- call waits for a lock some may be on the CPU, on its way to sleep and back: more than there is
-- off the CPU. It is the lock's, not the allocator's own.
CREATE VIEW latency_call AS
WITH
quantile(q, name) AS (VALUES (0.5, 'p50'), (0.9, 'p90'), (0.99, 'p99'), (0.999, 'p999')),
placed AS (
	SELECT b.call, q.name, b.low_ns + (COALESCE(b.high_ns, 2 * b.low_ns) - b.low_ns)
		* MIN(1.0, MAX(0.0, (q.q * b.n - b.before) / b.calls)) AS ns
	FROM latency_bucket b JOIN quantile q
		ON b.before < q.q * b.n AND b.before + b.calls >= q.q * b.n
),
quantiles AS (
	SELECT call, MAX(CASE name WHEN 'p50' THEN ns END) AS p50_ns,
		MAX(CASE name WHEN 'p90' THEN ns END) AS p90_ns,
		MAX(CASE name WHEN 'p99' THEN ns END) AS p99_ns,
		MAX(CASE name WHEN 'p999' THEN ns END) AS p999_ns
	FROM placed GROUP BY call
),
counted AS (
	SELECT call, SUM(calls) AS calls, MAX(low_ns) AS top_ns,
		MAX(COALESCE(high_ns, 2 * low_ns)) AS max_ns
	FROM latency_bucket GROUP BY call
),
-- The longest call may have no record of its own.
longest AS (
	SELECT c.call, COALESCE(MAX(o.wall_ns) FILTER (WHERE o.wall_ns >= c.top_ns), c.max_ns)
		AS max_ns
	FROM counted c LEFT JOIN outlier o ON o.call = c.call GROUP BY c.call
),
spent AS (
	SELECT call, SUM(map_cpu_ns) AS map_ns, SUM(lock_waits) AS lock_waits,
		SUM(lock_ns) AS lock_ns, MAX(0, SUM(off_ns) - SUM(lock_ns)) AS off_ns,
		MAX(0, SUM(lock_ns) - SUM(off_ns)) AS lock_cpu_ns
	FROM call GROUP BY call
),
-- Of the calls that were seen, as the rest is: call_cost's time is scaled to all.
own AS (
	SELECT c.call, MAX(0.0, (SUM(c.alloc_ns) + SUM(c.zero_libc_ns)) * e.seen - s.lock_cpu_ns)
		AS own_ns
	FROM (SELECT * FROM call_cost WHERE calls > 0) c JOIN spent s ON s.call = c.call
	JOIN (SELECT call, 1.0 * SUM(seen_calls) / MAX(SUM(calls), 1) AS seen FROM call_estimate
		GROUP BY call) e ON e.call = c.call
	GROUP BY c.call
),
faulted AS (
	SELECT in_call AS call, SUM(faults) AS faults, SUM(cpu_ns) AS fault_ns
	FROM process_fault_time WHERE in_call <> '' GROUP BY in_call
)
SELECT c.call, c.calls, MIN(q.p50_ns, l.max_ns) AS p50_ns, MIN(q.p90_ns, l.max_ns) AS p90_ns,
	MIN(q.p99_ns, l.max_ns) AS p99_ns, MIN(q.p999_ns, l.max_ns) AS p999_ns, l.max_ns,
	MAX(COALESCE(p.error_ns, 0.0), 0.1 * COALESCE(p.inside_ns, 0.0)) AS resolution_ns,
	COALESCE(o.own_ns, 0.0) + COALESCE(f.fault_ns, 0.0) + s.map_ns + s.lock_ns + s.off_ns
		AS wall_ns,
	COALESCE(o.own_ns, 0.0) AS own_ns, COALESCE(f.faults, 0) AS faults,
	COALESCE(f.fault_ns, 0.0) AS fault_ns, s.map_ns, s.lock_waits, s.lock_ns, s.off_ns
FROM counted c JOIN quantiles q ON q.call = c.call JOIN spent s ON s.call = c.call
LEFT JOIN own o ON o.call = c.call LEFT JOIN faulted f ON f.call = c.call
JOIN longest l ON l.call = c.call LEFT JOIN probe_price p ON p.probe = c.call;

-- Each outlier with its time divided, and its cause: the largest part. Faults whose end was not
-- seen have their class's mean. Being preempted is the cause only where little else happened:
-- whatever takes long is preempted, too, on a busy machine, and what was preempted finds its caches
-- cold: each time may add a quarter of a millisecond. swap: pages read back; first touch; other
-- faults (files, copies); mapping calls; lock; preempted; asleep (it was no watched call that
-- slept: a lock, if anything, by inference); and on the CPU in the allocator itself: clearing
-- (calloc's memset, by the chunk header), copying (realloc), consolidation, or allocator (searches,
-- and all that has no other sign). consolidation is an inference: nothing else happened inside, the
-- allocator consolidates, the call is one that makes it do so (a request of 1001 bytes and more; a
-- free does so, too, where it leaves a large piece, but that cannot be seen: it counts only where
-- CPU samples say so), and there were frees enough before it: a microsecond each would do. samples:
-- CPU samples that saw such calls in malloc_consolidate by name.
CREATE VIEW outlier_cause AS
WITH
mean AS MATERIALIZED (
	SELECT MAX(CASE class WHEN 'zero' THEN mean_ns END) AS zero_ns,
		MAX(CASE class WHEN 'swap_minor' THEN mean_ns END) AS swap_ns,
		MAX(CASE class WHEN 'file_minor' THEN mean_ns END) AS other_ns
	FROM fault_price
),
named AS MATERIALIZED (
	SELECT s.pid, s.in_call AS call, SUM(s.samples) AS samples
	FROM sample s JOIN stack_frame f ON f.stack_id = s.stack_id AND f.depth = 0
	JOIN frame n ON n.frame_id = f.frame_id
	WHERE s.place = 'allocator' AND n.function LIKE '%malloc\_consolidate%' ESCAPE '\'
	GROUP BY s.pid, s.in_call
),
part AS (
	SELECT o.*,
		o.zero_ns + (o.zero_faults - o.zero_timed) * m.zero_ns AS touch_part_ns,
		o.swap_ns + (o.swap_faults - o.swap_timed) * m.swap_ns AS swap_part_ns,
		o.other_ns + (o.other_faults - o.other_timed) * m.other_ns AS other_part_ns,
		MAX(0, o.wall_ns - o.cpu_ns - o.lock_ns - o.zero_ns - o.swap_ns - o.other_ns
			- o.map_ns) AS off_part_ns
	FROM outlier o JOIN mean m
),
rest AS (
	SELECT *, MAX(0.0, wall_ns - touch_part_ns - swap_part_ns - other_part_ns - map_ns
		- lock_ns - off_part_ns) AS cpu_part_ns
	FROM part
),
largest AS (
	SELECT *, MAX(touch_part_ns, swap_part_ns, other_part_ns, map_ns, lock_ns, cpu_part_ns,
		CASE WHEN (voluntary > 0 AND involuntary = 0)
			OR wall_ns - off_part_ns < MAX(250000 * (1 + involuntary), 64 * median_ns,
				0.05 * wall_ns)
			THEN off_part_ns ELSE 0 END) AS largest_ns FROM rest
),
caused AS (
	SELECT l.*, c.glibc_version, COALESCE(n.samples, 0) AS samples, CASE largest_ns
		WHEN swap_part_ns THEN 'swap'
		WHEN map_ns THEN 'mapping calls'
		WHEN lock_ns THEN 'lock'
		WHEN touch_part_ns THEN 'first touch'
		WHEN other_part_ns THEN 'other faults'
		WHEN off_part_ns THEN CASE WHEN voluntary > 0 THEN 'asleep' ELSE 'preempted' END
		ELSE CASE WHEN cleared_bytes >= cpu_part_ns THEN 'clearing'
			WHEN l.call LIKE 'realloc%' AND size_bytes >= cpu_part_ns THEN 'copying'
			WHEN l.glibc AND c.consolidates AND frees * 1000.0 >= cpu_part_ns
				AND (size_bytes >= 1001 OR (l.call = 'free' AND n.samples > 0))
				THEN 'consolidation'
			ELSE 'allocator' END END AS cause
	FROM largest l LEFT JOIN consolidating c ON c.pid = l.pid
	LEFT JOIN named n ON n.pid = l.pid AND n.call = l.call
)
SELECT ROW_NUMBER() OVER (ORDER BY cause = 'preempted', wall_ns DESC, start_ns) AS rank, *,
	(cause = 'consolidation' AND samples = 0) OR cause IN ('copying', 'asleep') AS inferred
FROM caused;

-- Stalls: outliers of one function, place and cause together; those that were only preempted, the
-- machine's doing, come last. caused_ns: without what was merely preempted meanwhile. factor: the
-- longest against the median call of the function, for which the calibrated plain malloc stands
-- where it is below what the probes resolve.
CREATE VIEW stall AS
WITH
placed AS (
	SELECT o.*, COALESCE((SELECT p.caller FROM stack_place p WHERE p.stack_id = o.stack_id),
		'') AS place
	FROM outlier_cause o
),
grouped AS (
	SELECT call, place, cause, COUNT(*) AS count, SUM(wall_ns) AS wall_ns,
		SUM(CASE WHEN cause IN ('preempted', 'asleep') THEN wall_ns
			ELSE wall_ns - off_part_ns END) AS caused_ns,
		MAX(wall_ns) AS longest_ns, MIN(rank) AS longest_rank, MAX(inferred) AS inferred
	FROM placed GROUP BY call, place, cause
)
SELECT ROW_NUMBER() OVER (ORDER BY g.cause = 'preempted', g.caused_ns DESC, g.longest_rank) AS rank,
	g.call, g.place, g.cause, g.count, g.wall_ns, g.caused_ns, g.longest_ns,
		MAX(l.p50_ns, c.malloc_ns, l.resolution_ns) AS median_ns,
	g.longest_ns / MAX(l.p50_ns, c.malloc_ns, l.resolution_ns, 1.0) AS factor, o.size_bytes,
	o.frees, o.cpu_ns, o.off_part_ns, o.cpu_part_ns, o.pid, o.stack_id, g.inferred, o.samples,
	 o.glibc_version, o.map_ns, o.brk_calls, o.munmap_calls,
	o.mmap_calls + o.mremap_calls + o.madvise_calls AS other_map_calls, o.swap_faults,
	o.zero_faults, o.lock_waits
FROM grouped g JOIN outlier_cause o ON o.rank = g.longest_rank
JOIN latency_call l ON l.call = g.call JOIN calibrated c
WHERE g.longest_ns >= 16 * l.p50_ns;

-- Lines of the report: functions by all the time their calls took, and what took most of it; and
-- faults that wait for a handler.
CREATE VIEW latency_text AS
SELECT ROW_NUMBER() OVER (ORDER BY wall_ns DESC, call) AS position, call, calls, p50_ns, p99_ns,
	max_ns, resolution_ns, CASE WHEN wall_ns <= 0 THEN '' ELSE CASE most
		WHEN lock_ns THEN 'lock' WHEN fault_ns THEN 'faults' WHEN map_ns THEN 'mapping'
		WHEN off_ns THEN 'off CPU' ELSE 'itself' END
			|| PRINTF(' %.0f %%', 100.0 * most / wall_ns)
		END AS mostly
FROM (SELECT *, MAX(own_ns, fault_ns, map_ns, lock_ns, off_ns) AS most FROM latency_call)
UNION ALL	-- no calls, but waited for in the same way
SELECT 1000, 'fault.user', waits, p50_ns, p99_ns, longest_ns, 0.0, 'waiting' FROM handler_measure
WHERE waits > 0;

-- Stalls in words, the worst first.
CREATE VIEW stall_text AS
WITH
timed AS (
	SELECT *, CASE WHEN longest_ns >= 1e9 THEN PRINTF('%.2f s', longest_ns / 1e9)
		WHEN longest_ns >= 1e6 THEN PRINTF('%.1f ms', longest_ns / 1e6)
		ELSE PRINTF('%.0f us', longest_ns / 1e3) END AS took,
		CASE WHEN 10 * off_part_ns > longest_ns AND cause NOT IN ('preempted', 'asleep')
			THEN PRINTF(' (%.0f %% of it preempted)', 100.0 * off_part_ns / longest_ns)
			ELSE '' END AS off_said
	FROM stall
),
worded AS (
	SELECT *, CASE cause
		WHEN 'consolidation' THEN 'CPU time in the allocator alone, after '
			|| CASE WHEN EXISTS (SELECT 1 FROM watch) THEN 'at least ' ELSE '' END
			|| PRINTF('%,d frees by its thread: malloc_consolidate, ', frees)
			|| CASE WHEN samples > 0 THEN PRINTF('as %d CPU sample%s by name',
				samples, CASE samples WHEN 1 THEN ' says' ELSE 's say' END)
			ELSE 'inferred' END || '; glibc 2.43 removed it'
		WHEN 'clearing' THEN 'calloc''s memset of reused memory'
		WHEN 'copying' THEN 'the copy to a larger block, inferred'
		WHEN 'mapping calls' THEN CASE
			WHEN call = 'free' AND brk_calls > 0
				THEN 'brk: the heap was trimmed, its pages went back to the kernel'
			WHEN call = 'free' AND munmap_calls > 0 THEN 'munmap of the block'
			ELSE 'mapping system calls' END
		WHEN 'lock' THEN PRINTF('waiting for the lock of an arena (%,d futex wait%s)',
			lock_waits, CASE lock_waits WHEN 1 THEN '' ELSE 's' END)
		WHEN 'swap' THEN PRINTF('%,d faults on pages that had been swapped out',
			swap_faults)
		WHEN 'first touch' THEN PRINTF('%,d first-touch faults', zero_faults)
		WHEN 'other faults' THEN 'faults on file pages or copies'
		WHEN 'preempted' THEN 'preempted: others had the CPU'
		WHEN 'asleep' THEN 'asleep: a lock of the allocator, inferred'
		ELSE 'CPU time in the allocator alone' END AS said
	FROM timed
)
SELECT rank AS position,
	PRINTF('%,d x ', count) || call || CASE WHEN size_bytes > 0 AND count = 1
		THEN PRINTF(' of %,d bytes', size_bytes) ELSE '' END
	|| CASE WHEN place <> '' THEN ' at ' || place ELSE '' END || ': '
	|| CASE WHEN count > 1 THEN 'up to ' ELSE '' END || took || off_said
	|| PRINTF(', %,d times the median: ', factor) || said || '.' AS text
FROM worded ORDER BY rank LIMIT 6;

-- What advice about latency goes by, one row. The worst stall by consolidation, and the waits for
-- locks of all functions together. stall: the worst that took a millisecond and more and was not
-- the machine's doing, the best explained first, in words. NULL where there is none.
CREATE VIEW latency_measure AS
WITH
worded AS (
	SELECT t.text FROM stall_text t JOIN stall s ON s.rank = t.position
	WHERE s.cause <> 'preempted' AND s.longest_ns >= 1000000
	ORDER BY s.cause = 'allocator', t.position LIMIT 1
),
worst AS (	-- by its own time: others may have had the CPU meanwhile
	SELECT o.call, s.place, o.pid, o.frees, o.wall_ns - o.off_part_ns AS own_ns,
		s.caused_ns AS all_ns, s.median_ns
	FROM outlier_cause o JOIN stall s ON s.cause = o.cause AND s.call = o.call AND s.place =
		COALESCE((SELECT p.caller FROM stack_place p WHERE p.stack_id = o.stack_id), '')
	WHERE o.cause = 'consolidation'
	ORDER BY own_ns >= MAX(1000000, 1000 * s.median_ns) DESC, own_ns DESC, o.rank LIMIT 1
),
waited AS (
	SELECT SUM(lock_ns) AS lock_ns, SUM(lock_waits) AS lock_waits,
		MAX(CASE number WHEN 1 THEN call END) AS lock_call,
		MAX(CASE number WHEN 1 THEN lock_ns / MAX(wall_ns, 1.0) END) AS lock_call_share
	FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY lock_ns DESC, call) AS number FROM latency_call)
)
SELECT o.call AS consolidation_call, o.place AS consolidation_place, o.pid AS consolidation_pid,
	o.own_ns AS consolidation_ns, o.all_ns AS consolidation_all_ns,
	o.median_ns AS consolidation_median_ns,
	o.own_ns / MAX(o.median_ns, 1.0) AS consolidation_factor,
	o.frees AS consolidation_frees, w.lock_ns, w.lock_waits, w.lock_call,
	w.lock_call_share, (SELECT text FROM worded) AS stall,
	(SELECT pid FROM call GROUP BY pid ORDER BY SUM(lock_ns) DESC, pid LIMIT 1) AS lock_pid,
	EXISTS (SELECT 1 FROM allocator WHERE tunables LIKE '%ARENA\_MAX%' ESCAPE '\'
		OR tunables LIKE '%arena\_max%' ESCAPE '\') AS arenas_limited
FROM waited w LEFT JOIN worst o ON 1;
