-- SPDX-License-Identifier: GPL-2.0
--
-- call_cost.sql: what allocator calls took, and of it what libc's clearing did. Follows
-- kernel_work.sql; tolls.sql has the rules that all views keep.

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
--
-- Of calls that threads' caches answered (cached_call) nothing is known but CPU samples: what these
-- saw in the allocator beyond what the calls that were seen took is put where they saw it, in rows
-- without calls, with all of the samples' error.
CREATE VIEW call_cost AS
WITH
inside_cache AS MATERIALIZED (
	SELECT pid, in_call AS call, stack_id,
		1.0 * SUM(samples) / SUM(SUM(samples)) OVER () AS part
	FROM sample WHERE place = 'allocator' AND (pid, in_call) IN (SELECT pid, call
		FROM past_cache)
	GROUP BY pid, in_call, stack_id
	UNION ALL	-- no sample: it is not known where
	SELECT pid, call, 0, 1.0 FROM (SELECT pid, call FROM past_cache ORDER BY call DESC, pid
		LIMIT 1)
	WHERE NOT EXISTS (SELECT 1 FROM sample WHERE place = 'allocator'
		AND (pid, in_call) IN (SELECT pid, call FROM past_cache))
),
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
		MIN(1.0, COALESCE(most_ns / MAX(1.0, SUM(small_ns) OVER ()), 1.0)) AS room,
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
			ELSE slow_ns + small_ns * room END AS net_ns,
		CASE WHEN sampled THEN 0.0 ELSE small_ns * room END AS unresolved_ns,
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
FROM divided
UNION ALL
SELECT w.pid, w.call, w.stack_id, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0, 0.0,
	MAX(0.0, a.call_ns - d.ns) * w.part, a.call_error_ns * w.part, 0.0, 0.0
FROM inside_cache w JOIN allocator_profile a
JOIN (SELECT SUM(net_ns - zero_libc_ns) AS ns FROM divided) d;

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
