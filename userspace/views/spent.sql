-- SPDX-License-Identifier: GPL-2.0
--
-- spent.sql: the time of each process, as tolls and as a whole. Follows call_cost.sql.

-- CPU samples in code that clears or copies, outside of the allocator, with their part of the CPU
-- time (probes included: they are sampled too). bytes is an estimate: what memset, or memcpy, does
-- in that time by the calibration, in the cache that holds what the stores are spread over, less
-- what each filling takes to begin; or else what the code's own loop can do at most. memcpy goes by
-- memset from cache to cache. What comes from memory goes back there, too, which the calibration
-- does not wait for: clearing page by page is as slow as that.
-- bytes_low, bytes_high: between these it is, for the time given. Over how much the stores are
-- spread is known to half of it; the calibration is of another moment of the machine, whose
-- processors share the caches beyond the second; and a loop's most is seldom what it does.
CREATE VIEW storing AS
WITH
seen AS (
	SELECT CASE place WHEN 'memset' THEN 'zero.app' ELSE 'copy.app' END AS toll, pid, stack_id,
		allocated_stack, allocated_call, bytes_per_16_cycles,
		CASE area WHEN 'stack' THEN 'stack of thread ' || area_name
			WHEN 'static' THEN 'static data of ' || area_name ELSE area END AS area,
		SUM(samples) AS samples,
		SUM(samples * spread_bytes) / SUM(CASE WHEN spread_bytes > 0 THEN samples END)
			AS spread_bytes,
		SUM(samples * length_bytes) / SUM(CASE WHEN length_bytes > 0 THEN samples END)
			AS length_bytes
	FROM sample WHERE place IN ('memset', 'copy') GROUP BY 1, 2, 3, 4, 5, 6, 7
),
bound(which, wider, far_wider, part, loop_part) AS (
	VALUES ('low', 1.5, 1.5, 0.5, 0.35), ('mid', 1.0, 1.0, 1.0, 1.0),
		('high', 0.67, 0.25, 1.4, 1.0)
),
-- In bytes a second, of long fillings. Where it is not known how far the stores are spread, they
-- are at least as far as one filling is long.
paced AS (
	SELECT s.*, b.which, b.part, b.loop_part, c.loops_per_s,
		CASE WHEN s.toll = 'zero.app' THEN 1.0 WHEN c.memset_bytes_per_s > 0
			THEN c.memcpy_bytes_per_s / c.memset_bytes_per_s ELSE 0.0 END AS of_copy,
		CASE WHEN s.bytes_per_16_cycles = 0 THEN c.string_begin_ns
			ELSE c.memset_begin_ns END / 1e9 AS begin_s,
		COALESCE(s.length_bytes, CASE b.which WHEN 'low' THEN 512 END) AS length,
		COALESCE(CASE WHEN s.spread_bytes IS NULL THEN CASE b.which WHEN 'low'
				THEN MIN(c.memset_far_bytes_per_s, COALESCE(NULLIF(
					c.clear_4k_bytes_per_s, 0.0), c.memset_far_bytes_per_s))
				WHEN 'high' THEN CASE WHEN COALESCE(s.length_bytes, 0) <= 49152
					THEN c.memset_near_bytes_per_s END END
			WHEN s.spread_bytes * b.wider <= 49152 THEN c.memset_near_bytes_per_s
			WHEN s.spread_bytes * b.wider <= 1048576
				OR s.spread_bytes * b.far_wider <= 1048576
				THEN c.memset_middle_bytes_per_s
			WHEN s.spread_bytes * b.far_wider > 8388608
				THEN (c.memset_far_bytes_per_s + MIN(c.memset_far_bytes_per_s,
					COALESCE(NULLIF(c.clear_4k_bytes_per_s, 0.0),
						c.memset_far_bytes_per_s))) / 2 END,
			c.memset_bytes_per_s) AS pace
	FROM seen s JOIN bound b JOIN calibrated c
),
rated AS (
	SELECT *, MIN(part * of_copy * CASE WHEN length > 0 AND pace > 0
			THEN 1 / (1 / pace + begin_s / length) ELSE pace END,
		CASE WHEN bytes_per_16_cycles = 0 OR loops_per_s <= 0 THEN 1e18
			ELSE loop_part * bytes_per_16_cycles / 16.0 * loops_per_s END) AS rate
	FROM paced
)
SELECT s.toll, s.pid, s.stack_id, s.allocated_stack, s.allocated_call, s.area, s.samples,
	s.time_ns, s.time_ns / 1e9 * s.rate AS bytes, s.time_ns / 1e9 * s.rate_low AS bytes_low,
	s.time_ns / 1e9 * s.rate_high AS bytes_high
FROM (
	SELECT r.toll, r.pid, r.stack_id, r.allocated_stack, r.allocated_call, r.area, r.samples,
		r.samples * 1.0 * COALESCE(p.cpu_ns, 0) / n.n AS time_ns,
		MAX(CASE which WHEN 'mid' THEN rate END) AS rate,
		MIN(rate) AS rate_low, MAX(rate) AS rate_high
	FROM rated r
	JOIN (SELECT pid, SUM(samples) AS n FROM sample GROUP BY pid) n ON n.pid = r.pid
	LEFT JOIN (SELECT pid, SUM(cpu_ns) AS cpu_ns FROM process_slice GROUP BY pid) p
		ON p.pid = r.pid
	GROUP BY r.toll, r.pid, r.stack_id, r.allocated_stack, r.allocated_call,
		r.bytes_per_16_cycles, r.area
) s;

-- Processes of a storm of new ones that nobody looked at, most of which were gone by then (loss
-- programs_passed), and their CPU time: of them faults and mapping calls are counted, and allocator
-- calls not.
CREATE VIEW program_unseen AS
SELECT p.pid, p.comm, SUM(s.cpu_ns) AS cpu_ns
FROM process p JOIN process_slice s ON s.pid = p.pid
WHERE p.role = 'child' AND p.executable = '' AND p.command = ''
	AND EXISTS (SELECT 1 FROM loss WHERE name = 'programs_passed' AND count > 0)
GROUP BY p.pid;

-- Tolls of each process, compute excepted. Of allocator calls of processes that were not looked at:
-- what those of the same name spent that were, in proportion to the CPU time, with an error as
-- large. zero.app's bytes: those it was the first to touch, or the estimate, where that is more. A
-- toll can have several parts: faults that were seen, and those that CPU samples stand for.
CREATE VIEW process_toll_part AS
WITH
fault_toll AS (
	SELECT pid, toll, SUM(cpu_ns + blocked_ns) AS time_ns, SUM(error_ns) AS error_ns,
		SUM(faults) AS count, SUM(blocked_ns) AS blocked_ns,
		SUM(CASE WHEN toll NOT IN ('zero.kernel', 'cow') OR writes_page THEN pages
			ELSE 0 END)
			AS pages,
		SUM(CASE WHEN huge AND clear_ns IS NULL THEN pages ELSE 0 END) AS huge_pages,
		SUM(CASE WHEN clear_ns IS NULL THEN 0 ELSE pages END) AS timed_pages,
		TOTAL(clear_ns) AS timed_ns
	FROM process_fault_time WHERE toll <> 'compute' GROUP BY pid, toll
),
sampled AS (
	SELECT DISTINCT pid FROM sample
),
-- What the kernel took to clear pages, where samples tell: how fast it clears depends on whether
-- the page is in some cache still, ten times between one that was just given back and one that
-- has been somebody else's long ago. Fewer than 16 bound it from both sides (Agresti and Coull, 95
-- %); none says nothing, as in recordings in which they were not counted.
clearing AS MATERIALIZED (
	SELECT pid, CASE WHEN k >= 16 THEN k / n * cpu_ns END AS clear_ns,
		cpu_ns * MAX(0.0, part - 1.96 * deviation) AS least_ns,
		cpu_ns * MIN(1.0, part + 1.96 * deviation) AS most_ns
	FROM (SELECT s.pid, k, n, p.cpu_ns, (k + 2.0) / (n + 4.0) AS part,
			(SELECT root FROM square_root WHERE v = (k + 2.0) / (n + 4.0)
				* (n - k + 2.0) / (n + 4.0) / (n + 4.0)) AS deviation
		FROM (SELECT pid, 1.0 * SUM(samples) AS n, 1.0 * SUM(clearing) AS k FROM sample
			GROUP BY pid) s
		JOIN (SELECT pid, SUM(cpu_ns) AS cpu_ns FROM process_slice GROUP BY pid) p
			ON p.pid = s.pid
		WHERE k > 0)
),
stored AS MATERIALIZED (
	SELECT toll, pid, SUM(samples) AS samples, SUM(time_ns) AS time_ns,
		CAST(SUM(bytes) AS INTEGER) AS bytes
	FROM storing GROUP BY toll, pid
),
of_store(toll) AS (VALUES ('zero.app'), ('copy.app')),
app_bytes AS MATERIALIZED (
	SELECT f.pid, SUM(f.pages) * 4096 AS bytes
	FROM process_fault f JOIN fault_class k ON k.class = f.class
	WHERE k.toll = 'zero.kernel' AND k.writes_page AND f.in_memset AND f.in_call = ''
	GROUP BY f.pid
),
cost AS (
	SELECT pid, SUM(zero_libc_ns) AS libc_ns, SUM(zero_libc_error_ns) AS libc_error_ns,
		SUM(cleared_calls) AS cleared_calls, SUM(cleared_bytes) AS cleared_bytes,
		SUM(alloc_ns) AS alloc_ns, SUM(alloc_error_ns) AS alloc_error_ns,
		SUM(calls) AS calls, SUM(bytes) AS bytes, SUM(drift_ns) AS drift_ns
	FROM call_cost GROUP BY pid
),
proven AS MATERIALIZED (SELECT pid, SUM(bytes) AS bytes FROM process_calloc_proven GROUP BY pid),
unseen AS MATERIALIZED (SELECT pid, comm, cpu_ns FROM program_unseen),
alike AS MATERIALIZED (
	SELECT p.comm, SUM(t.alloc_ns) / n.cpu_ns AS alloc_part,
		SUM(t.libc_ns) / n.cpu_ns AS libc_part
	FROM (SELECT q.comm, 1.0 * SUM(s.cpu_ns) AS cpu_ns
		FROM process q JOIN process_slice s ON s.pid = q.pid
		WHERE q.role = 'child' AND q.executable <> ''
			AND q.comm IN (SELECT comm FROM unseen) GROUP BY q.comm) n
	JOIN process p ON p.comm = n.comm AND p.role = 'child' AND p.executable <> ''
	JOIN cost t ON t.pid = p.pid
	WHERE n.cpu_ns > 0 GROUP BY p.comm
),
of_call(toll) AS (VALUES ('zero.libc'), ('alloc'))
SELECT f.pid, f.toll, f.time_ns, f.error_ns, f.count, f.pages * 4096 AS bytes, f.pages,
	-- huge pages have their own clock
	CASE WHEN f.toll = 'zero.kernel' THEN MIN(f.time_ns, COALESCE(CASE
		WHEN f.huge_pages = 0 AND f.timed_pages = 0 THEN g.most_ns END, f.time_ns), CASE
		WHEN g.clear_ns IS NOT NULL AND f.huge_pages = 0 AND f.timed_pages = 0
			THEN g.clear_ns
		ELSE MAX(COALESCE(CASE WHEN f.huge_pages = 0 AND f.timed_pages = 0
			THEN g.least_ns END, 0.0), f.timed_ns
		+ CASE WHEN c.clear_4k_bytes_per_s > 0
			THEN (f.pages - f.huge_pages - f.timed_pages) * 4096e9
				/ c.clear_4k_bytes_per_s ELSE 0.0 END
		+ CASE WHEN c.clear_2m_bytes_per_s > 0
			THEN f.huge_pages * 4096e9 / c.clear_2m_bytes_per_s ELSE 0.0 END) END)
	ELSE 0.0 END AS clear_ns, f.blocked_ns, 0.0 AS drift_ns
FROM fault_toll f JOIN calibrated c LEFT JOIN clearing g ON g.pid = f.pid
UNION ALL
SELECT t.pid, k.toll,
	CASE k.toll WHEN 'alloc' THEN t.alloc_ns ELSE t.libc_ns END,
	CASE k.toll WHEN 'alloc' THEN t.alloc_error_ns ELSE t.libc_error_ns END,
	CASE k.toll WHEN 'alloc' THEN t.calls ELSE t.cleared_calls END,
	CASE k.toll WHEN 'alloc' THEN t.bytes ELSE t.cleared_bytes + COALESCE(p.bytes, 0) END,
	CASE k.toll WHEN 'alloc' THEN 0 ELSE (t.cleared_bytes + COALESCE(p.bytes, 0)) / 4096 END,
	CASE k.toll WHEN 'alloc' THEN 0.0 ELSE t.libc_ns END, 0.0,
	CASE k.toll WHEN 'alloc' THEN t.drift_ns ELSE 0.0 END
FROM cost t JOIN of_call k LEFT JOIN proven p ON p.pid = t.pid
UNION ALL
SELECT u.pid, k.toll, u.cpu_ns * MIN(1.0, CASE k.toll WHEN 'alloc' THEN a.alloc_part
	ELSE a.libc_part END), u.cpu_ns * MIN(1.0, CASE k.toll WHEN 'alloc' THEN a.alloc_part
	ELSE a.libc_part END), 0, 0, 0,
	CASE k.toll WHEN 'alloc' THEN 0.0 ELSE u.cpu_ns * MIN(1.0, a.libc_part) END, 0.0, 0.0
FROM unseen u JOIN alike a ON a.comm = u.comm JOIN of_call k
UNION ALL
SELECT s.pid, k.toll, COALESCE(t.time_ns, 0.0), 0.0, COALESCE(t.samples, 0),
	MAX(COALESCE(t.bytes, 0), COALESCE(b.bytes, 0)),
	MAX(COALESCE(t.bytes, 0), COALESCE(b.bytes, 0)) / 4096,
	CASE k.toll WHEN 'zero.app' THEN COALESCE(t.time_ns, 0.0) ELSE 0.0 END, 0.0, 0.0
FROM sampled s JOIN of_store k
LEFT JOIN stored t ON t.pid = s.pid AND t.toll = k.toll
LEFT JOIN app_bytes b ON b.pid = s.pid AND k.toll = 'zero.app'
UNION ALL
SELECT pid, toll, MAX(0.0, SUM(net_ns)), SUM(error_ns), SUM(calls), SUM(bytes),
	CASE toll WHEN 'map' THEN 0 ELSE SUM(bytes) / 4096 END, 0.0, 0.0, 0.0
FROM map_cost GROUP BY pid, toll
UNION ALL
SELECT w.pid, w.toll, SUM(w.time_ns), SUM(w.error_ns), SUM(w.count), SUM(w.count) * 4096,
	SUM(w.count), CASE WHEN w.toll = 'zero.kernel' AND c.clear_4k_bytes_per_s > 0
		THEN MIN(SUM(w.time_ns), SUM(CASE WHEN w.clears THEN w.time_ns ELSE 0.0 END)
			+ SUM(w.count) * 4096e9 / c.clear_4k_bytes_per_s)
		ELSE 0.0 END,
	0.0, 0.0
FROM sampled_work w JOIN calibrated c GROUP BY w.pid, w.toll
UNION ALL
SELECT pid, toll, SUM(cpu_ns + blocked_ns), SUM(error_ns), SUM(count), SUM(bytes), SUM(pages), 0.0,
	SUM(blocked_ns), 0.0
FROM extra_toll GROUP BY pid, toll;

-- The same, one row for each process and toll.
CREATE VIEW process_toll AS
SELECT pid, toll, SUM(time_ns) AS time_ns, SUM(error_ns) AS error_ns, SUM(count) AS count,
	SUM(bytes) AS bytes, SUM(pages) AS pages, SUM(clear_ns) AS clear_ns,
	SUM(blocked_ns) AS blocked_ns, SUM(drift_ns) AS drift_ns
FROM process_toll_part GROUP BY pid, toll;

-- What was spent, per process. observed_ns: on-CPU time less what the probes added, plus the time
-- blocked in faults. Where the probes took nearly all of the CPU time, their calibrated price may
-- come out above it; what the tolls measured directly was there in any case, so that is the least.
-- doubtful: what the probes left is known to no better than its half, and what of it is in no toll
-- that was measured is less than its error. It may be compute, or nothing: it is left out, and
-- stands in the bounds.
CREATE VIEW process_observed AS
WITH spent AS (
	SELECT pid, SUM(cpu_ns) AS cpu_ns, SUM(hits) AS hits, SUM(overhead_ns) AS overhead_ns,
		SUM(error_ns) AS overhead_error_ns, SUM(blocked_ns) AS blocked_ns
	FROM (
		SELECT pid, cpu_ns, 0 AS hits, 0.0 AS overhead_ns, 0.0 AS error_ns,
			0.0 AS blocked_ns
		FROM process_slice
		-- a system call that is slower for others' sake is no hit
		UNION ALL SELECT pid, 0, CASE probe WHEN 'syscall' THEN 0 ELSE hits END,
			overhead_ns,
			error_ns, 0.0 FROM probe_overhead
		UNION ALL SELECT pid, 0, 0, 0.0, 0.0, blocked_ns FROM process_fault_time
		UNION ALL SELECT pid, 0, 0, 0.0, 0.0, blocked_ns FROM extra_toll
		UNION ALL SELECT pid, 0, 0, 0.0, 0.0, 0.0 FROM process)
	GROUP BY pid
),
measured AS MATERIALIZED (
	SELECT t.pid, SUM(t.time_ns) AS time_ns, SUM(t.drift_ns) AS drift_ns
	FROM process_toll t JOIN toll_kind k ON k.toll = t.toll
	WHERE k.not_captured IS NULL GROUP BY t.pid
),
left_over AS (
	SELECT s.pid, s.cpu_ns, s.hits, s.overhead_ns, s.blocked_ns,
		-- the price cannot have been more than all there was
		MAX(s.overhead_error_ns + CASE WHEN u.sampled THEN 0.0
			ELSE COALESCE(m.drift_ns, 0.0) END,
			MIN(s.overhead_ns, s.overhead_ns + COALESCE(m.time_ns, 0.0) - s.blocked_ns
				- s.cpu_ns)) AS overhead_error_ns,
		COALESCE(m.time_ns, 0.0) AS measured_ns,
		MAX(0.0, s.cpu_ns - s.overhead_ns) + s.blocked_ns AS left_ns
	FROM spent s JOIN uprobe_profile u LEFT JOIN measured m ON m.pid = s.pid
)
SELECT pid, cpu_ns, hits, overhead_ns, overhead_error_ns, blocked_ns,
	CASE WHEN doubtful THEN measured_ns ELSE MAX(left_ns, measured_ns) END AS observed_ns,
		doubtful
FROM (SELECT *, measured_ns > 0 AND 2 * overhead_error_ns > MAX(left_ns, measured_ns)
	AND left_ns - measured_ns < overhead_error_ns AS doubtful FROM left_over);

-- One row. duration_ns: from the first slice's start to the last one's end.
CREATE VIEW observed AS
SELECT COALESCE(SUM(cpu_ns), 0) AS cpu_ns, COALESCE(SUM(hits), 0) AS hits,
	COALESCE(SUM(overhead_ns), 0.0) AS overhead_ns,
	COALESCE(SUM(overhead_error_ns), 0.0) AS overhead_error_ns,
	COALESCE(SUM(blocked_ns), 0.0) AS blocked_ns,
	COALESCE(SUM(observed_ns), 0.0) AS observed_ns,
	COALESCE(2 * SUM(overhead_error_ns) > SUM(observed_ns), 0) AS doubtful,
	COALESCE((SELECT MAX(end_ns) - MIN(start_ns) FROM slice), 0) AS duration_ns
FROM process_observed;
