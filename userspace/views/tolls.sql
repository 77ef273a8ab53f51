-- SPDX-License-Identifier: GPL-2.0
--
-- tolls.sql: the judgements of a recording. Every figure of a report comes from here; C and Python
-- print and plot, they do not calculate. Works in the plain sqlite3 shell, SQLite 3.37 and later,
-- without its mathematical functions. Follows prices.sql.
--
-- A view uses only views above it: the report turns them into temporary tables one after the
-- other, so that each is computed once. SQLite allows a statement 65,535 references to one table
-- and expands every mention of a view: hence one mention, with CASE or a window, where several
-- would be plainer.
--
-- Errors are 95 % bounds. Where several add up they are added as they are, not as a root of
-- squares: too wide rather than too narrow.

-- ---------------------------------------------------------------- calls

-- The time of allocator calls by process, function and stack, divided into libc's clearing
-- (zero_libc_ns) and the rest (alloc_ns). Taken out of the time between the probes: the probes' own
-- part, mapping calls (toll map) and faults with what their probes add (tolls of the faults).
--
-- Short calls (those that table call does not count as slow) take less than their price varies by:
-- where what is left of them is less than the error of that price, or less than a tenth of it
-- (other code, with other things in the caches, pays another price than the calibration), it says
-- nothing, and they count as small mallocs, as calibrated without probes, all of it error
-- (unresolved_ns). Slow calls are measured. All short calls together take no more than the CPU
-- samples have room for (allocator_profile), where those know better. drift_ns: by how much the
-- price of such calls was seen to be off.
--
-- Clearing, where the rule is known: the time of the calls that memset, less what a plain small
-- malloc takes. Half of that allowance counts as error. Elsewhere (known_clearing 0): the part of
-- calloc's net time that CPU samples saw in memset, over all samples in calloc except those in
-- faults, mapping calls and probes, which are no part of the net time. Its error is the binomial
-- one of all processes' samples together, Agresti and Coull: with p = (k + 2) / (n + 4), p +- 1.96
-- sqrt(p (1 - p) / (n + 4)); no samples: anything is possible. Calls that were not timed are
-- counted as small mallocs each, all of it error. Where calls were watched in windows only,
-- everything is scaled (call_estimate), with the error of that; but their time is that of the CPU
-- samples: samples were taken all the time, and need no price. Those in the allocator, less what
-- functions that were always watched took, are given to the sites in the proportion that the
-- windows saw; those in calloc's memset by the bytes that were cleared.
CREATE VIEW call_cost AS
WITH
total AS MATERIALIZED (
	SELECT pid, call, stack_id, known_clearing, SUM(calls) AS calls, SUM(failed) AS failed,
		SUM(seen_calls) AS seen_calls,
		SUM(bytes) AS bytes, SUM(cpu_ns) AS cpu_ns, SUM(timed_calls) AS timed_calls,
		SUM(map_cpu_ns) AS map_cpu_ns, SUM(map_calls) AS map_calls, SUM(faults) AS faults,
		SUM(cleared_calls) AS cleared_calls, SUM(cleared_bytes) AS cleared_bytes,
		SUM(cleared_cpu_ns) AS cleared_cpu_ns, SUM(cleared_faults) AS cleared_faults,
		SUM(mmapped_calls) AS mmapped_calls, SUM(nested_calls) AS nested_calls,
		MAX(error) AS error, MAX(estimated) AS estimated,
		-- all faults and mapping calls are in slow ones, where those were counted
		CASE WHEN SUM(slow_calls) = 0 AND SUM(faults) + SUM(map_calls) > 0 THEN 0
			ELSE MAX(0, SUM(timed_calls) - SUM(slow_calls)) END AS fast_calls,
		CASE WHEN SUM(slow_calls) = 0 AND SUM(faults) + SUM(map_calls) > 0 THEN 0
			ELSE SUM(cpu_ns) - SUM(slow_cpu_ns) END AS fast_cpu_ns
	FROM call_estimate GROUP BY pid, call, stack_id, known_clearing
),
fp AS MATERIALIZED (SELECT class, mean_ns, error_ns FROM fault_price),
inside AS MATERIALIZED (	-- the mean fault inside each function
	SELECT f.pid, f.in_call AS call, SUM(f.faults * fp.mean_ns) / SUM(f.faults) AS mean_ns,
		SUM(f.faults * fp.error_ns) / SUM(f.faults) AS error_ns
	FROM process_fault f JOIN fp ON fp.class = f.class
	WHERE f.in_call <> '' AND f.faults > 0 AND f.class NOT LIKE '%!_populated' ESCAPE '!'
	GROUP BY f.pid, f.in_call
),
sampled AS MATERIALIZED (
	SELECT pid, SUM(CASE place WHEN 'calloc_memset' THEN samples ELSE 0 END) AS k,
		SUM(samples) AS n
	FROM sample WHERE in_call = 'calloc' AND place NOT IN ('fault', 'map', 'probe') GROUP BY pid
),
pooled AS MATERIALIZED (
	SELECT (k + 2.0) / (n + 4.0) AS p, CASE WHEN n > 0 THEN 1.0 * k / n ELSE 0.0 END AS raw,
		(k + 2.0) / (n + 4.0) * (1 - (k + 2.0) / (n + 4.0)) / (n + 4.0) AS v
	FROM (SELECT COALESCE(SUM(k), 0) AS k, COALESCE(SUM(n), 0) AS n FROM sampled)
),
binomial AS MATERIALIZED (
	SELECT ABS(p - raw) + 1.96
		* (SELECT r.root FROM square_root r WHERE r.v = pooled.v) AS error
	FROM pooled
),
priced AS MATERIALIZED (
	SELECT t.*,
		COALESCE(p.error_ns, 0.0) AS price_error_ns, COALESCE(p.hit_ns, 0.0) AS hit_ns,
		COALESCE(p.inside_ns, 0.0) AS inside_ns,
		MAX(COALESCE(p.error_ns, 0.0), 0.1 * COALESCE(p.inside_ns, 0.0)) AS resolution_ns,
		t.fast_cpu_ns - t.fast_calls * COALESCE(p.inside_ns, 0.0) AS fast_ns,
		COALESCE(i.error_ns, z.error_ns) + c.fault_hit_error_ns AS fault_error_ns,
		MAX(0.0, t.cpu_ns - t.fast_cpu_ns
			- (t.timed_calls - t.fast_calls) * COALESCE(p.inside_ns, 0.0) - t.map_cpu_ns
			- t.map_calls * c.map_outside_ns
			- t.faults * (COALESCE(i.mean_ns, z.mean_ns) + c.fault_hit_ns)) AS slow_ns,
		t.cleared_cpu_ns
			- t.cleared_calls * (COALESCE(p.inside_ns, 0.0) + c.malloc_ns)
			- t.cleared_faults * (COALESCE(i.mean_ns, z.mean_ns) + c.fault_hit_ns)
			- (t.map_cpu_ns + t.map_calls * c.map_outside_ns) * t.cleared_calls
				/ MAX(t.calls, 1) AS cleared_left_ns,
		MAX(0, t.calls - t.timed_calls) * c.malloc_ns AS untimed_ns, c.malloc_ns,
		c.memset_bytes_per_s
	FROM total t JOIN calibrated c JOIN fp z ON z.class = 'zero'
	LEFT JOIN probe_price p ON p.probe = t.call
	LEFT JOIN inside i ON i.pid = t.pid AND i.call = t.call
),
seeming AS MATERIALIZED (	-- calls of no resolved length are small mallocs
	SELECT p.*, resolved, slow_ns + CASE WHEN resolved THEN fast_ns ELSE fast_calls
		* malloc_ns END
			AS seeming_ns,
		CASE WHEN resolved THEN 0.0 ELSE fast_calls * malloc_ns END AS small_ns
	FROM (SELECT *, fast_ns >= fast_calls * resolution_ns AS resolved FROM priced) p
),
profiled AS MATERIALIZED (
	SELECT *, SUM(MAX(0.0, fast_ns)) OVER () AS seem_ns,
		weight_ns / MAX(1.0, SUM(CASE WHEN sampled THEN weight_ns
			ELSE 0.0 END) OVER ()) AS part,
		clear_weight / MAX(1.0, SUM(clear_weight) OVER ()) AS clear_part,
		MAX(0.0, call_ns - SUM(CASE WHEN sampled THEN 0.0 ELSE seeming_ns
			- slow_ns END) OVER ())
			AS sampled_ns
	FROM (SELECT s.*, a.most_ns, a.call_ns, a.call_error_ns, a.clear_ns, a.clear_error_ns,
		estimated AND a.call_ns IS NOT NULL AS sampled,
		-- of calloc without its clearing, which goes by bytes
		CASE call WHEN 'calloc' THEN calls * malloc_ns ELSE seeming_ns END AS weight_ns,
		CASE WHEN call <> 'calloc' THEN 0.0 WHEN known_clearing THEN 1.0 * cleared_bytes
			ELSE 1.0 * bytes END AS clear_weight
		FROM seeming s JOIN allocator_profile a)
),
net AS MATERIALIZED (
	SELECT *, CASE WHEN sampled THEN part * sampled_ns + clear_part * clear_ns
			WHEN resolved THEN slow_ns + fast_ns
				* MIN(1.0, COALESCE(most_ns / seem_ns, 1.0))
			ELSE seeming_ns END AS net_ns,
		CASE WHEN sampled THEN 0.0 ELSE small_ns END AS unresolved_ns,
		-- by how much the price of these hits may be too low: calls that seem to take
		-- somewhat more than small mallocs do, or probes that do. One that was too high has
		-- been seen to (probe_pace).
		CASE WHEN inside_ns <= 0 OR fast_ns > 0.5 * fast_calls * inside_ns THEN 0.0 ELSE
			MAX(0.0, fast_ns - fast_calls * malloc_ns) * hit_ns / inside_ns
				* seen_calls / MAX(calls, 1) END AS drift_ns,
		CASE WHEN cleared_left_ns >= cleared_calls * price_error_ns
			OR memset_bytes_per_s <= 0
			THEN MAX(0.0, cleared_left_ns)
			ELSE MIN(1e9 * cleared_bytes / memset_bytes_per_s, cleared_calls
				* malloc_ns) END
			AS cleared_net_ns
	FROM profiled
),
divided AS MATERIALIZED (
	SELECT n.*,
		CASE WHEN n.sampled THEN n.clear_part * n.clear_ns
		     WHEN n.known_clearing THEN MIN(n.net_ns, n.cleared_net_ns)
		     WHEN n.call = 'calloc' AND s.n > 0 THEN n.net_ns * s.k / s.n
		     ELSE 0.0 END AS zero_libc_ns,
		CASE WHEN n.sampled THEN n.clear_part * n.clear_error_ns
		     WHEN n.known_clearing
			THEN n.cleared_calls * (n.price_error_ns + 0.5 * n.malloc_ns)
				+ n.cleared_faults * n.fault_error_ns
				+ n.error * MIN(n.net_ns, n.cleared_net_ns)
		     WHEN n.call = 'calloc'
			THEN n.net_ns * b.error + n.error * MIN(n.net_ns, n.cleared_net_ns)
		     ELSE 0.0 END AS zero_libc_error_ns
	FROM net n JOIN binomial b LEFT JOIN sampled s ON s.pid = n.pid
)
SELECT pid, call, stack_id, known_clearing, calls, failed, bytes, timed_calls, map_calls, faults,
	cleared_calls, cleared_bytes, mmapped_calls, nested_calls, zero_libc_ns, zero_libc_error_ns,
	net_ns - zero_libc_ns + CASE WHEN sampled THEN 0.0 ELSE untimed_ns END AS alloc_ns,
	CASE WHEN sampled THEN part * call_error_ns
	ELSE (timed_calls - fast_calls) * price_error_ns
		+ CASE WHEN resolved THEN fast_calls * resolution_ns ELSE 0.0 END
		+ faults * fault_error_ns + zero_libc_error_ns + untimed_ns + unresolved_ns
		+ error * (net_ns - zero_libc_ns) END AS alloc_error_ns, unresolved_ns, drift_ns
FROM divided;

-- What a calloc of an allocator without a known rule provably cleared: pages that its memset was
-- the first to touch. Faults of a known rule's memset in the same process are taken off.
CREATE VIEW process_calloc_proven AS
SELECT f.pid, MAX(0, SUM(f.pages) - COALESCE(MAX(c.faults), 0)) * 4096 AS bytes
FROM process_fault f
JOIN fault_class k ON k.class = f.class
LEFT JOIN (SELECT pid, SUM(cleared_faults) AS faults FROM call
	WHERE call = 'calloc' AND known_clearing = 1 GROUP BY pid) c ON c.pid = f.pid
WHERE k.toll = 'zero.kernel' AND k.writes_page = 1 AND f.in_memset = 1 AND f.in_call = 'calloc'
  AND f.pid IN (SELECT pid FROM call WHERE call = 'calloc' AND known_clearing = 0)
GROUP BY f.pid;

-- ---------------------------------------------------------------- tolls

-- CPU samples in code that clears or copies, outside of the allocator, with their part of the CPU
-- time (probes included: they are sampled too). bytes is an estimate: what memset, or memcpy, does
-- in that time by the calibration, or else what the code's own loop can do at most.
CREATE VIEW storing AS
SELECT s.toll, s.pid, s.stack_id, s.allocated_stack, s.allocated_call, s.samples, s.time_ns,
	s.time_ns / 1e9 * CASE WHEN s.bytes_per_16_cycles = 0 OR s.loops_per_s <= 0 THEN s.rate
		ELSE MIN(s.rate, s.bytes_per_16_cycles / 16.0 * s.loops_per_s) END AS bytes
FROM (
	SELECT CASE s.place WHEN 'memset' THEN 'zero.app' ELSE 'copy.app' END AS toll, s.pid,
		s.stack_id, s.allocated_stack, s.allocated_call, s.bytes_per_16_cycles,
		s.samples, s.samples * 1.0 * COALESCE(p.cpu_ns, 0) / n.n AS time_ns,
		CASE s.place WHEN 'memset' THEN c.memset_bytes_per_s
			ELSE c.memcpy_bytes_per_s END AS rate, c.loops_per_s
	FROM (SELECT place, pid, stack_id, allocated_stack, allocated_call,
		bytes_per_16_cycles, SUM(samples) AS samples
		FROM sample WHERE place IN ('memset', 'copy') GROUP BY 1, 2, 3, 4, 5, 6) s
	JOIN calibrated c
	JOIN (SELECT pid, SUM(samples) AS n FROM sample GROUP BY pid) n ON n.pid = s.pid
	LEFT JOIN (SELECT pid, SUM(cpu_ns) AS cpu_ns FROM process_slice GROUP BY pid) p
		ON p.pid = s.pid
) s;

-- Tolls of each process, compute excepted. zero.app's bytes: those it was the first to touch, or
-- the estimate, where that is more.
CREATE VIEW process_toll AS
WITH
fault_toll AS (
	SELECT pid, toll, SUM(cpu_ns + blocked_ns) AS time_ns, SUM(error_ns) AS error_ns,
		SUM(faults) AS count, SUM(blocked_ns) AS blocked_ns,
		SUM(CASE WHEN toll NOT IN ('zero.kernel', 'cow') OR writes_page THEN pages
			ELSE 0 END)
			AS pages,
		SUM(CASE WHEN huge THEN pages ELSE 0 END) AS huge_pages
	FROM process_fault_time WHERE toll <> 'compute' GROUP BY pid, toll
),
sampled AS (
	SELECT DISTINCT pid FROM sample
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
of_call(toll) AS (VALUES ('zero.libc'), ('alloc'))
SELECT f.pid, f.toll, f.time_ns, f.error_ns, f.count, f.pages * 4096 AS bytes, f.pages,
	CASE WHEN f.toll = 'zero.kernel' THEN MIN(f.time_ns,
		CASE WHEN c.clear_4k_bytes_per_s > 0
			THEN (f.pages - f.huge_pages) * 4096e9 / c.clear_4k_bytes_per_s ELSE 0.0 END
		+ CASE WHEN c.clear_2m_bytes_per_s > 0
			THEN f.huge_pages * 4096e9 / c.clear_2m_bytes_per_s ELSE 0.0 END)
	ELSE 0.0 END AS clear_ns, f.blocked_ns, 0.0 AS drift_ns
FROM fault_toll f JOIN calibrated c
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
SELECT s.pid, k.toll, COALESCE(t.time_ns, 0.0), 0.0, COALESCE(t.samples, 0),
	MAX(COALESCE(t.bytes, 0), COALESCE(b.bytes, 0)),
	MAX(COALESCE(t.bytes, 0), COALESCE(b.bytes, 0)) / 4096,
	CASE k.toll WHEN 'zero.app' THEN COALESCE(t.time_ns, 0.0) ELSE 0.0 END, 0.0, 0.0
FROM sampled s JOIN of_store k
LEFT JOIN stored t ON t.pid = s.pid AND t.toll = k.toll
LEFT JOIN app_bytes b ON b.pid = s.pid AND k.toll = 'zero.app'
UNION ALL
SELECT pid, 'map', MAX(0.0, SUM(net_ns)), SUM(error_ns), SUM(calls), SUM(bytes), 0, 0.0, 0.0, 0.0
FROM map_cost GROUP BY pid
UNION ALL
SELECT w.pid, w.toll, SUM(w.time_ns), SUM(w.error_ns), SUM(w.count), SUM(w.count) * 4096,
	SUM(w.count), CASE WHEN w.toll = 'zero.kernel' AND c.clear_4k_bytes_per_s > 0
		THEN MIN(SUM(w.time_ns), SUM(w.count) * 4096e9 / c.clear_4k_bytes_per_s)
		ELSE 0.0 END,
	0.0, 0.0
FROM sampled_work w JOIN calibrated c GROUP BY w.pid, w.toll
UNION ALL
SELECT pid, toll, SUM(cpu_ns + blocked_ns), SUM(error_ns), SUM(count), SUM(bytes), SUM(pages), 0.0,
	SUM(blocked_ns), 0.0
FROM extra_toll GROUP BY pid, toll;

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

-- Our counts against the kernel's own: faults of the processes against /proc/PID/stat, those of a
-- cgroup that is the target against its memory.stat, swap of all processes against /proc/vmstat.
-- slack: what is too small to matter. above: how much more than the kernel we may count. Pages that
-- the kernel faults in for itself are in its count and raise no event; inside mapping calls
-- (MAP_POPULATE, mlock) they are seen by their effect, elsewhere (ioctl, process_vm_writev) not, so
-- its count may be higher. Pushed out, the kernel counts the pages it
-- writes: a page that came back and was not changed goes out again without, at most each that came.
CREATE VIEW checks AS
WITH
ours AS MATERIALIZED (
	SELECT COALESCE(SUM(CASE WHEN class LIKE '%!_major' ESCAPE '!' THEN 0 ELSE faults END), 0)
			AS minor,
		COALESCE(SUM(CASE WHEN class LIKE '%!_major' ESCAPE '!' THEN faults ELSE 0 END), 0)
			AS major,
		COALESCE(SUM(CASE WHEN class LIKE 'swap!_%' ESCAPE '!' THEN pages ELSE 0 END), 0)
			AS swap_pages
	FROM process_fault
),
kernel AS MATERIALIZED (
	SELECT COALESCE(SUM(minor_faults), 0) AS minor, COALESCE(SUM(major_faults), 0) AS major
	FROM process_slice
),
populated AS MATERIALIZED (	-- in recordings of earlier versions: faults inside calls
	-- and of one call: one that is under way at the begin or end is counted on one side only
	SELECT COALESCE(SUM(CASE populated_ns WHEN 0 THEN populated END), 0) AS minor,
		COALESCE(MAX(populated / calls), 0) AS of_call
	FROM map_call
),
everybody AS MATERIALIZED (	-- pid 0 with them: all who are not traced
	SELECT COALESCE(SUM(CASE WHEN what LIKE 'in!_%' ESCAPE '!' THEN pages END), 0) AS came,
		COALESCE(SUM(CASE WHEN what LIKE 'out!_%' ESCAPE '!' THEN pages END), 0) AS went
	FROM swap
),
vmstat AS MATERIALIZED (
	SELECT SUM(CASE WHEN name IN ('pswpin', 'zswpin', 'swpin_zero') THEN value END) AS came,
		SUM(CASE WHEN name IN ('pswpout', 'zswpout', 'swpout_zero') THEN value END) AS went
	FROM system_counter
),
cgroup AS MATERIALIZED (
	SELECT SUM(CASE name WHEN 'pgfault' THEN value WHEN 'pgmajfault' THEN -value END) AS minor,
		SUM(CASE name WHEN 'pgmajfault' THEN value END) AS major
	FROM memory_cgroup_counter c
	-- a group's counters have those of the groups below in them
	WHERE EXISTS (SELECT 1 FROM meta WHERE key = 'cgroup') AND NOT EXISTS (
		SELECT 1 FROM memory_cgroup m
		WHERE m.path <> '/' AND SUBSTR(c.path, 1, LENGTH(m.path) + 1) = m.path || '/')
),
counted(position, name, ours, kernel, slack, above, toll) AS (
	SELECT 1, 'minor_faults', o.minor + p.minor, k.minor,
		3 + MIN(2 * p.of_call, k.minor / 10), 0, 'zero.kernel'
	FROM ours o, populated p, kernel k
	UNION ALL SELECT 2, 'major_faults', o.major, k.major, 3, 0, 'zero.kernel' FROM ours o,
		kernel k
	UNION ALL SELECT 3, 'swapped_in', CASE WHEN EXISTS (SELECT 1 FROM meta
			WHERE key = 'swap_in_counted' AND value = '1') THEN e.came
				ELSE o.swap_pages END,
		v.came, 64, 0, 'swap.in'
	FROM ours o, everybody e, vmstat v WHERE v.came IS NOT NULL
	UNION ALL SELECT 4, 'swapped_out', e.went, v.went, 64, v.came, 'swap.out'
	FROM everybody e, vmstat v WHERE v.went IS NOT NULL
	UNION ALL SELECT 5, 'cgroup_minor_faults', o.minor + p.minor, c.minor, 64, 0, 'zero.kernel'
	FROM ours o, populated p, cgroup c WHERE c.minor IS NOT NULL
	UNION ALL SELECT 6, 'cgroup_major_faults', o.major, c.major, 64, 0, 'zero.kernel'
	FROM ours o, cgroup c WHERE c.major IS NOT NULL
)
SELECT c.position, c.name, c.ours, c.kernel, c.ours - c.kernel AS difference,
	c.ours - c.kernel BETWEEN -MAX(c.slack, 0.01 * c.kernel)
		AND MAX(c.slack, 0.01 * c.kernel) + c.above AS ok
FROM counted c JOIN toll_kind k ON k.toll = c.toll
-- faults that were not watched are no disagreement
WHERE k.not_captured IS NULL;

-- One row: faults that the kernel counts and nothing has seen, where those are more than slack, and
-- what they may take that the tolls lack.
--
-- Minor ones: what they take if each clears a page, and how much of that CPU samples do not explain
-- (doubt_ns): no more than samples in unknown code of the kernel have room for (Agresti and Coull,
-- as in call_cost). unseen_share: those faults, as a part of all.
--
-- Major ones (major_missed) may each have read a page of a file, or, where pages were on swap
-- (of_swap), brought one back: as long as those that were seen, or else 100 us, what a solid-state
-- disk takes. major_ns: in all; major_sleep_ns: of it asleep, and so not in the observed time
-- either.
--
-- Pages that came from swap by the kernel's count only (swap_missed), where those of all processes
-- are counted and the target has some there: as long as the others, or else an eighth of a read, as
-- the kernel reads eight at once.
--
-- over: faults that are in our count only; over_ns: what tolls may have too much for them.
CREATE VIEW fault_doubt AS
SELECT d.*, d.doubt_ns + d.major_cpu_ns + d.major_sleep_ns + d.swap_ns AS all_ns,
	d.major_cpu_ns + d.major_sleep_ns AS major_ns
FROM (SELECT missed, kernel, missed_ns, major_missed, over, over * fault_ns AS over_ns, of_swap,
	swap_missed * of_swap AS swap_missed, swap_missed * of_swap * swap_page_ns AS swap_ns,
	MAX(0.0, MIN(missed_ns - explained_ns, room_ns)) AS doubt_ns,
	CASE WHEN missed_ns > 0
		THEN 1.0 * missed / kernel * MAX(0.0, MIN(missed_ns - explained_ns, room_ns))
			/ missed_ns
		ELSE 1.0 * missed / MAX(kernel, 1) END AS unseen_share,
	MIN(major_missed * major_cpu_ns, room_ns) AS major_cpu_ns,
	major_missed * major_blocked_ns AS major_sleep_ns
FROM (
	SELECT CASE WHEN n > 0 THEN cpu_ns * MIN(1.0, (k + 2.0) / (n + 4.0) + 1.96 *
		(SELECT root FROM square_root WHERE v = (k + 2.0) / (n + 4.0)
			* (n - k + 2.0) / (n + 4.0) / (n + 4.0))) ELSE 9e18 END AS room_ns
	FROM (SELECT COALESCE(SUM(CASE place WHEN 'kernel' THEN samples END), 0) AS k,
		COALESCE(SUM(samples), 0) AS n FROM sample) JOIN observed
) s JOIN (
	SELECT c.*, c.missed * p.mean_ns AS missed_ns, p.mean_ns AS fault_ns, w.time_ns AS explained_ns,
		COALESCE(p.major_cpu_ns, 0.0) AS major_cpu_ns,
		COALESCE(p.major_blocked_ns, 100000.0) AS major_blocked_ns,
		COALESCE(p.swap_page_ns, 12500.0) AS swap_page_ns,
		EXISTS (SELECT 1 FROM swap WHERE pid > 0 AND what NOT LIKE 'reclaim%')
			OR EXISTS (SELECT 1 FROM process_slice WHERE swap_bytes > 0)
			OR EXISTS (SELECT 1 FROM fault WHERE class LIKE 'swap!_%' ESCAPE '!') AS of_swap
	FROM (
		SELECT COALESCE(SUM(CASE name WHEN 'minor_faults' THEN MAX(0, -difference) END), 0)
				AS missed,
			COALESCE(SUM(CASE WHEN name = 'minor_faults' AND difference < 0
				THEN kernel END), 0) AS kernel,
			COALESCE(SUM(CASE name WHEN 'major_faults' THEN MAX(0, -difference) END), 0)
				AS major_missed,
			COALESCE(SUM(CASE WHEN name = 'swapped_in' AND EXISTS (SELECT 1 FROM meta
				WHERE key = 'swap_in_counted' AND value = '1')
				THEN MAX(0, -difference) END), 0) AS swap_missed,
			COALESCE(SUM(CASE WHEN name IN ('minor_faults', 'major_faults')
				THEN MAX(0, difference) END), 0) AS over
		FROM checks WHERE NOT ok
	) c JOIN (
		SELECT MAX(CASE class WHEN 'zero' THEN mean_ns END) AS mean_ns,
			SUM(CASE WHEN major THEN faults * mean_ns END)
				/ SUM(CASE WHEN major THEN faults END) AS major_cpu_ns,
			SUM(CASE WHEN major THEN faults * blocked_mean_ns END)
				/ SUM(CASE WHEN major THEN faults END) AS major_blocked_ns,
			SUM(CASE WHEN swap THEN faults * (mean_ns + blocked_mean_ns) END)
				/ SUM(CASE WHEN swap THEN faults END) AS swap_page_ns
		FROM (SELECT *, class LIKE '%!_major' ESCAPE '!' AND timed_faults > 0 AS major,
			toll = 'swap.in' AND timed_faults > 0 AS swap FROM fault_price)
	) p JOIN (
		SELECT COALESCE(SUM(time_ns + error_ns), 0.0) AS time_ns FROM sampled_work
		WHERE toll = 'zero.kernel'
	) w)) d;

-- Every loss this version knows or this recording has, with its total and, where the loss has a
-- kind of event to be measured against, its part of that kind (ring_faults counts faults, not
-- sweeps). exceeds: counts that cannot be repaired, more than 1 % of their kind (exit status 4).
-- Rests on tables alone: it is asked where no other view is made (recording_schema.h).
CREATE VIEW losses AS
WITH
total AS MATERIALIZED (
	SELECT name, SUM(count) AS count FROM (
		SELECT name, 0 AS count FROM loss_kind UNION ALL SELECT name, count FROM loss)
	GROUP BY name
),
measured AS MATERIALIZED (
	SELECT t.name, t.count, COALESCE(k.meaning, '') AS meaning, COALESCE(k.remedy, '')
		AS remedy,
		CASE WHEN t.name = 'calls_full' THEN 'call'
		     WHEN t.name IN ('maps_full', 'maps_unwatched') THEN 'map'
		     WHEN t.name IN ('reads_full', 'read_async', 'reads_unwatched', 'ring_read')
			THEN 'read'
		     WHEN t.name IN ('ring_faults', 'walk_failed') THEN 'fault'
		     WHEN t.name = 'swaps_full' THEN 'swap'
		     WHEN t.name = 'ring_block' THEN 'block'
		     WHEN t.name = 'ring_mapping' THEN 'mapping'
		     WHEN t.name = 'ring_sample' THEN 'sample'
		     WHEN t.name = 'ring_process' THEN 'process'
		     WHEN t.name = 'thread_state' THEN 'any'
		     WHEN t.name LIKE 'ring!_%' ESCAPE '!' THEN 'event'
		END AS measure
	FROM total t LEFT JOIN loss_kind k ON k.name = t.name
),
kept(measure, count) AS MATERIALIZED (
	SELECT 'call', (SELECT COALESCE(SUM(calls), 0) FROM call)
	UNION ALL SELECT 'map', (SELECT COALESCE(SUM(calls), 0) FROM map_call)
	UNION ALL SELECT 'read', (SELECT COALESCE(SUM(calls), 0) FROM file_read)
	UNION ALL SELECT 'mapping', (SELECT COALESCE(SUM(calls), 0) FROM map_call)
	UNION ALL SELECT 'fault', (SELECT COALESCE(SUM(faults), 0) FROM fault)
	UNION ALL SELECT 'block', (SELECT COALESCE(SUM(made + freed), 0) FROM block)
	UNION ALL SELECT 'sample', (SELECT COALESCE(SUM(samples), 0) FROM sample)
	UNION ALL SELECT 'process', (SELECT COUNT(*) FROM process)
	UNION ALL SELECT 'swap', (SELECT COALESCE(SUM(pages), 0) FROM swap)
),
everything AS (
	SELECT measure, count FROM kept
	UNION ALL SELECT 'event', SUM(count) FROM kept
		WHERE measure IN ('fault', 'block', 'mapping', 'sample', 'process')
	-- whatever a thread without a state does is lost: blocks and mappings are calls, too
	UNION ALL SELECT 'any', SUM(count) FROM kept
		WHERE measure IN ('call', 'map', 'read', 'fault', 'sample')
)
SELECT m.name, m.count, m.meaning, m.remedy, m.measure,
	CASE WHEN m.count > 0 THEN 1.0 * m.count / (m.count + COALESCE(e.count, 0)) ELSE 0.0 END
		AS share,
	(m.name IN ('calls_full', 'maps_full', 'reads_full', 'read_async', 'swaps_full',
		'thread_state') OR m.name LIKE 'ring!_%' ESCAPE '!') AND m.count > 0
		AND 1.0 * m.count / (m.count + COALESCE(e.count, 0)) > 0.01 AS exceeds
FROM measured m LEFT JOIN everything e ON e.measure = m.measure;

-- By how much of itself a toll's bounds are widened: lost events, or faults that do not agree
-- with the kernel's count (lost ones are among these: the larger of the two counts).
CREATE VIEW widening AS
WITH
lost AS (
	SELECT COALESCE(MAX(CASE measure WHEN 'call' THEN share END), 0.0) AS call_share,
		COALESCE(MAX(CASE measure WHEN 'map' THEN share END), 0.0) AS map_share,
		COALESCE(SUM(CASE WHEN name IN ('reads_full', 'read_async', 'reads_unwatched')
			THEN share END), 0.0)
			AS read_share,
		COALESCE(SUM(CASE measure WHEN 'fault' THEN share END), 0.0) AS fault_share,
		COALESCE(MAX(CASE measure WHEN 'swap' THEN share END), 0.0) AS swap_share,
		COALESCE(MAX(CASE measure WHEN 'sample' THEN share END), 0.0) AS sample_share,
		COALESCE(SUM(CASE WHEN measure IN ('event', 'any') THEN share END), 0.0)
			AS event_share
	FROM losses
),
disagreement AS (
	SELECT COALESCE(MAX(CASE WHEN name LIKE '%minor_faults' THEN share END), 0.0) AS share,
		COALESCE(MAX(CASE WHEN name LIKE '%major_faults' THEN share END), 0.0)
			AS major_share,
		COALESCE(MAX(CASE WHEN name LIKE 'swapped%' THEN share END), 0.0) AS swap_share
	FROM (SELECT c.name, CASE WHEN c.name = 'minor_faults' AND c.difference < 0
			THEN d.unseen_share
			-- they stand in the bounds by their time
			WHEN c.name = 'major_faults' AND c.difference < 0 THEN 0.0
			ELSE ABS(c.difference) * 1.0 / MAX(c.kernel, c.ours, 1) END AS share
		FROM checks c JOIN fault_doubt d WHERE NOT c.ok)
)
SELECT k.toll, MIN(1.0, l.event_share + CASE
	WHEN k.toll IN ('zero.libc', 'alloc') THEN l.call_share
	WHEN k.toll = 'map' THEN l.map_share
	WHEN k.toll IN ('zero.app', 'copy.app') THEN l.sample_share
	WHEN k.toll = 'file.read' THEN l.read_share
	WHEN k.toll = 'compute' THEN 0.0
	WHEN k.family = 'swap' THEN MAX(l.fault_share, l.swap_share, d.share, d.major_share,
		d.swap_share)
	WHEN k.toll IN ('file.fault', 'cow') THEN MAX(l.fault_share, d.share, d.major_share)
	ELSE MAX(l.fault_share, d.share) END) AS share
FROM toll_kind k JOIN lost l JOIN disagreement d;

-- The toll table: one row per toll, in the order of the report; every number is NULL where the
-- toll was not captured. low and high bound the share: the toll's own error, its widening, the
-- error of the overhead that was taken out of the observed time, and faults that nothing has seen
-- (fault_doubt), which may have cleared pages, or waited for them: each toll that they may belong
-- to may have all of them, and what they slept is added to the observed time. compute is what the
-- others leave. When the others add up to more than was observed nothing is scaled: each one's
-- lower bound is lowered by its part of the excess.
--
-- Where the faults of zero.kernel take more than 64 times what clearing their pages and the
-- calibrated work of a fault do, it is not known what else they did: cold caches and the locks of a
-- busy machine make it a few times as much, memory that the host of a virtual machine has yet to
-- find some 20 times. It is called strange, and its lower bound is what clearing can have taken.
CREATE VIEW toll AS
WITH
summed AS (
	SELECT toll, SUM(time_ns) AS time_ns, SUM(error_ns) AS error_ns, SUM(count) AS count,
		SUM(bytes) AS bytes, SUM(pages) AS pages, SUM(clear_ns) AS clear_ns,
		SUM(blocked_ns) AS blocked_ns
	FROM process_toll GROUP BY toll
),
-- The bounds of zero.app and copy.app, Agresti and Coull as in call_cost: k of all samples, as a
-- part of the CPU time; and k of those in user code outside the allocator, as a part of the time no
-- other toll measured. The narrower upper one holds: where the probes take most of the CPU time,
-- the second.
app AS MATERIALIZED (
	SELECT toll, k, n, user,
		(k + 2.0) / (n + 4.0) * (n - k + 2.0) / (n + 4.0) / (n + 4.0) AS v,
		(k + 2.0) / (user + 4.0) * (user - k + 2.0) / (user + 4.0) / (user + 4.0) AS v_user
	FROM (SELECT t.column1 AS toll,
		COALESCE(SUM(CASE place WHEN t.column2 THEN samples END), 0) AS k,
		COALESCE(SUM(CASE WHEN place IN ('memset', 'copy', 'user') THEN samples END), 0)
			AS user,
		COALESCE(SUM(samples), 0) AS n
		FROM (VALUES ('zero.app', 'memset'), ('copy.app', 'copy')) t LEFT JOIN sample
		GROUP BY t.column1)
),
computing AS MATERIALIZED (
	SELECT COALESCE(SUM(samples), 0) AS samples FROM sample WHERE place IN ('user', 'kernel')
),
app_range AS MATERIALIZED (
	SELECT toll, MAX(0.0, (k + 2.0) / (n + 4.0) - 1.96 * x) AS low,
		MIN(1.0, (k + 2.0) / (n + 4.0) + 1.96 * x) AS high,
		MIN(1.0, (k + 2.0) / (user + 4.0) + 1.96 * x_user) AS high_user
	FROM (SELECT *, (SELECT r.root FROM square_root r WHERE r.v = app.v) AS x,
		(SELECT r.root FROM square_root r WHERE r.v = app.v_user) AS x_user FROM app)
),
present AS (
	SELECT k.position, k.toll, k.family, k.not_captured, w.share AS wider,
		o.observed_ns, o.overhead_error_ns,
		COALESCE(s.time_ns, 0.0) AS time_ns, COALESCE(s.error_ns, 0.0) AS error_ns,
		CASE k.toll WHEN 'compute' THEN n.samples ELSE COALESCE(s.count, 0) END AS count,
		COALESCE(s.bytes, 0) AS bytes, COALESCE(s.pages, 0) AS pages,
		COALESCE(s.clear_ns, 0.0) AS clear_ns, COALESCE(s.blocked_ns, 0.0) AS blocked_ns,
		CASE WHEN k.toll = 'zero.kernel' THEN d.doubt_ns
			WHEN k.toll = 'file.fault' OR (k.toll = 'swap.in' AND d.of_swap)
				THEN d.major_ns ELSE 0.0 END
			+ CASE k.toll WHEN 'swap.in' THEN d.swap_ns ELSE 0.0 END AS doubt_ns,
		d.all_ns AS all_doubt_ns, d.major_sleep_ns, c.fault_ns,
		SUM(CASE WHEN r.toll IS NOT NULL THEN COALESCE(s.time_ns, 0.0) ELSE 0.0 END)
			OVER () AS stored_ns,
		r.low * o.cpu_ns AS app_low_ns, r.high * o.cpu_ns AS app_high_ns, r.high_user,
		-- Of nothing that happened the sum is none.
		COALESCE(SUM(CASE WHEN k.not_captured IS NULL THEN s.time_ns END) OVER (), 0.0)
			AS whole_ns
	FROM toll_kind k JOIN widening w ON w.toll = k.toll JOIN observed o JOIN computing n
	JOIN fault_doubt d JOIN calibrated c LEFT JOIN app_range r ON r.toll = k.toll
	LEFT JOIN summed s ON s.toll = k.toll
),
bounded AS (
	SELECT *,
		MAX(0.0, (CASE WHEN app_low_ns IS NOT NULL THEN MIN(time_ns, app_low_ns)
			ELSE time_ns - error_ns END) * (1 - wider)
			- MAX(0.0, whole_ns - observed_ns) * time_ns / MAX(whole_ns, 1.0))
				AS sure_ns,
		(CASE WHEN app_high_ns IS NOT NULL THEN MAX(time_ns, MIN(app_high_ns, high_user
				* (stored_ns + MAX(0.0, observed_ns - whole_ns))))
			ELSE time_ns + error_ns END) * (1 + wider) + doubt_ns AS high_ns
	FROM present
),
consistent AS (
	SELECT *, CASE WHEN strange THEN MIN(sure_ns, count * fault_ns + clear_ns)
		ELSE sure_ns END AS low_ns
	FROM (SELECT *, toll = 'zero.kernel' AND fault_ns > 0
		AND time_ns > 64 * (count * fault_ns + clear_ns) AS strange FROM bounded)
),
rest AS (
	SELECT *,
		MAX(0.0, observed_ns - whole_ns) AS rest_ns,
		-- A toll whose probes were left out may be all of the rest.
		CASE WHEN MAX(not_captured IS NOT NULL AND toll IN ('zero.kernel', 'zero.libc',
			'zero.app', 'alloc', 'map')) OVER () THEN 0.0
		-- What no sample saw copying is computing, as far as their family goes.
		ELSE MAX(0.0, observed_ns - (all_doubt_ns - major_sleep_ns)
			- COALESCE(SUM(CASE WHEN not_captured IS NULL
			AND toll <> 'compute' AND NOT (toll = 'copy.app' AND count = 0)
			THEN high_ns - doubt_ns END) OVER (), 0.0)) END AS rest_low_ns,
		MAX(0.0, observed_ns - COALESCE(SUM(CASE WHEN not_captured IS NULL
			AND toll <> 'compute' THEN low_ns END) OVER (), 0.0)) AS rest_high_ns
	FROM consistent
),
every AS (
	SELECT position, toll, family, not_captured, observed_ns, overhead_error_ns, count, bytes,
		pages, clear_ns, blocked_ns, strange, major_sleep_ns,
		CASE WHEN toll IN ('swap.in', 'file.fault') AND doubt_ns >= major_sleep_ns
			THEN major_sleep_ns ELSE 0.0 END AS asleep_ns,
		CASE toll WHEN 'compute' THEN rest_ns ELSE time_ns END AS time_ns,
		CASE toll WHEN 'compute' THEN rest_low_ns ELSE low_ns END AS low_ns,
		CASE toll WHEN 'compute' THEN rest_high_ns ELSE high_ns END AS high_ns
	FROM rest
)
SELECT position, toll, family, not_captured,
	CASE WHEN not_captured IS NULL THEN time_ns END AS time_ns,
	CASE WHEN not_captured IS NULL THEN low_ns END AS low_ns,
	CASE WHEN not_captured IS NULL THEN high_ns END AS high_ns,
	CASE WHEN not_captured IS NOT NULL THEN NULL WHEN observed_ns > 0
		THEN MIN(1.0, time_ns / observed_ns) ELSE 0.0 END AS share,
	CASE WHEN not_captured IS NOT NULL THEN NULL WHEN observed_ns > 0
		THEN MIN(1.0, low_ns / (observed_ns + overhead_error_ns + major_sleep_ns))
		ELSE 0.0 END AS low,
	CASE WHEN not_captured IS NOT NULL THEN NULL WHEN observed_ns > 0
		THEN MIN(1.0, high_ns / MAX(observed_ns - overhead_error_ns + asleep_ns, 1.0))
		ELSE 0.0 END AS high,
	CASE WHEN not_captured IS NULL THEN count END AS count,
	CASE WHEN not_captured IS NULL THEN bytes END AS bytes,
	CASE WHEN not_captured IS NULL THEN pages END AS pages,
	CASE WHEN not_captured IS NULL THEN clear_ns END AS clear_ns,
	CASE WHEN not_captured IS NULL THEN blocked_ns END AS blocked_ns,
	CASE WHEN not_captured IS NULL AND toll = 'file.read'
		THEN (SELECT reread_factor FROM file_reuse WHERE file = 0) END AS reread_factor,
	CASE WHEN not_captured IS NULL THEN toll IN ('zero.app', 'copy.app') AND bytes > 0 END
		AS bytes_estimated,
	CASE WHEN not_captured IS NULL THEN strange END AS strange
FROM every;

-- Families by share. NULL where nothing of a family was captured.
CREATE VIEW family AS
SELECT ROW_NUMBER() OVER (ORDER BY time_ns IS NULL, time_ns DESC, position) AS rank, family,
	time_ns, share, low, high, main_toll
FROM (
	SELECT family, MIN(position) AS position, SUM(time_ns) AS time_ns,
		MIN(1.0, SUM(share)) AS share, MIN(1.0, SUM(low)) AS low,
		MIN(1.0, SUM(high)) AS high, MAX(CASE number WHEN 1 THEN toll END) AS main_toll
	FROM (
		SELECT *, ROW_NUMBER() OVER (PARTITION BY family
			ORDER BY time_ns IS NULL, time_ns DESC, position) AS number
		FROM toll)
	GROUP BY family);

-- ---------------------------------------------------------------- where

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
	WHERE CASE k.toll WHEN 'alloc' THEN c.calls ELSE c.zero_libc_ns + c.cleared_calls END > 0
	UNION ALL
	SELECT 'map', call, stack_id, 0, '', NULL, MAX(0.0, SUM(net_ns)), SUM(calls), SUM(bytes)
	FROM map_cost GROUP BY call, stack_id
	UNION ALL
	SELECT toll, allocated_call, allocated_stack, stack_id, '', NULL, SUM(time_ns),
		SUM(samples), CAST(SUM(bytes) AS INTEGER)
	FROM storing GROUP BY toll, allocated_call, allocated_stack, stack_id
	UNION ALL
	SELECT 'compute', '', 0, s.stack_id, '', NULL, SUM(s.samples) * c.time_ns / c.n,
		SUM(s.samples), 0
	FROM sample s, computing c WHERE s.place IN ('user', 'kernel') GROUP BY s.stack_id
	UNION ALL	-- of mapping calls the stack is the caller's, of faults the touching one
	SELECT toll, CASE toll WHEN 'map' THEN call ELSE '' END,
		CASE toll WHEN 'map' THEN stack_id ELSE 0 END,
		CASE toll WHEN 'map' THEN 0 ELSE stack_id END,
		CASE toll WHEN 'map' THEN '' ELSE RTRIM('system call ' || call) END,
		NULL, SUM(time_ns), SUM(count), SUM(count) * 4096
	FROM sampled_work GROUP BY toll, call, stack_id
	UNION ALL
	SELECT toll, call, 0, stack_id, area, NULL, SUM(cpu_ns + blocked_ns), SUM(count), SUM(bytes)
	FROM extra_toll GROUP BY toll, call, stack_id, area
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
-- bytes_error are 95 % bounds then, and 0 else.
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
	m.estimated, m.calls_error, m.bytes_error
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
	o.duration_ns, o.observed_ns, o.cpu_ns
FROM observed o;
