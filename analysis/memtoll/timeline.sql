-- SPDX-License-Identifier: GPL-2.0
--
-- timeline.sql: tolls and sites slice by slice, as temporary tables beside those of the recording's
-- views, from the same facts at the same prices.
--
-- memtoll_part is what each row of a fact table cost. The views work with sums over the whole
-- recording and take the positive part of differences there, which is not the sum of the slices'
-- positive parts: so the parts are weights by which the views' own totals are divided, and the sums
-- over the slices are those totals whatever the weights are.

-- owner: 1 rows that a site is made of, 0 figures of the toll only. weight_*: see above.
CREATE TEMP TABLE memtoll_part AS
WITH
fp AS MATERIALIZED (SELECT * FROM temp.fault_price),
inside AS MATERIALIZED (	-- the mean fault inside each allocator function
	SELECT f.pid, f.in_call AS call, SUM(f.faults * fp.mean_ns) / SUM(f.faults) AS mean_ns
	FROM temp.process_fault f JOIN fp ON fp.class = f.class
	WHERE f.in_call <> '' AND f.faults > 0 AND f.class NOT LIKE '%!_populated' ESCAPE '!'
	GROUP BY f.pid, f.in_call
),
net AS MATERIALIZED (
	SELECT c.slice, c.pid, c.call, c.stack_id, c.known_clearing, c.calls, c.bytes,
		c.cleared_calls,
		c.cleared_bytes,
		MAX(0.0, c.cpu_ns - c.timed_calls * COALESCE(p.inside_ns, 0.0) - c.map_cpu_ns
			- c.map_calls * k.map_outside_ns
			- c.faults * (COALESCE(i.mean_ns, z.mean_ns) + k.fault_hit_ns)) AS net_ns,
		MAX(0.0, c.cleared_cpu_ns
			- c.cleared_calls * (COALESCE(p.inside_ns, 0.0) + k.malloc_ns)
			- c.cleared_faults * (COALESCE(i.mean_ns, z.mean_ns)
				+ k.fault_hit_ns)) AS cleared_ns,
		MAX(0, c.calls - c.timed_calls) * k.malloc_ns AS untimed_ns
	FROM main.call c JOIN temp.calibrated k JOIN fp z ON z.class = 'zero'
	LEFT JOIN temp.probe_price p ON p.probe = c.call
	LEFT JOIN inside i ON i.pid = c.pid AND i.call = c.call
),
weighed AS MATERIALIZED (	-- calls, with what the view says of the whole
	SELECT n.slice, n.call, n.stack_id, n.calls, n.bytes, n.cleared_calls,
		CASE WHEN n.known_clearing THEN n.cleared_bytes WHEN n.call = 'calloc' THEN n.bytes
			ELSE 0 END
			AS cleared_bytes,
		t.zero_libc_ns, t.alloc_ns,
		CASE WHEN n.known_clearing THEN MIN(n.net_ns, n.cleared_ns)
			ELSE n.net_ns END AS libc_weight,
		SUM(CASE WHEN n.known_clearing THEN MIN(n.net_ns, n.cleared_ns)
			ELSE n.net_ns END) OVER w
			AS libc_weights,
		n.net_ns + n.untimed_ns AS alloc_weight,
			SUM(n.net_ns + n.untimed_ns) OVER w AS alloc_weights,
		SUM(n.calls) OVER w AS call_weights, SUM(n.cleared_calls) OVER w AS cleared_weights
	FROM net n JOIN temp.call_cost t ON t.pid = n.pid AND t.call = n.call
		AND t.stack_id = n.stack_id
		AND t.known_clearing = n.known_clearing
	WINDOW w AS (PARTITION BY n.pid, n.call, n.stack_id, n.known_clearing)
),
sampled AS MATERIALIZED (
	SELECT s.pid, 1.0 * o.cpu_ns / SUM(s.samples) AS sample_ns
	FROM main.sample s JOIN temp.process_observed o ON o.pid = s.pid GROUP BY s.pid
)
SELECT f.slice, 1 AS owner, fp.toll, f.allocated_call AS call, f.allocated_stack, f.touched_stack,
	SUM(f.faults * fp.mean_ns + f.blocked_ns + (f.faults - f.timed_faults) * fp.blocked_mean_ns)
		AS weight_ns,
	SUM(f.faults) AS count,
	SUM(CASE WHEN fp.toll <> 'zero.kernel' OR fp.writes_page THEN f.pages ELSE 0 END) AS pages,
	SUM(CASE WHEN fp.toll <> 'zero.kernel' OR fp.writes_page THEN f.pages ELSE 0 END)
		* 4096 AS bytes
FROM main.fault f JOIN fp ON fp.class = f.class WHERE fp.toll <> 'compute'
GROUP BY f.slice, fp.toll, f.allocated_call, f.allocated_stack, f.touched_stack
UNION ALL
SELECT slice, 1, 'zero.libc', call, stack_id, 0,
	SUM(zero_libc_ns * CASE WHEN libc_weights > 0 THEN libc_weight / libc_weights
		WHEN cleared_weights > 0 THEN 1.0 * cleared_calls / cleared_weights
		ELSE 1.0 * calls / MAX(call_weights, 1) END),
	SUM(cleared_calls), SUM(cleared_bytes) / 4096, SUM(cleared_bytes)
FROM weighed WHERE zero_libc_ns > 0 OR cleared_calls > 0 GROUP BY slice, call, stack_id
UNION ALL
SELECT slice, 1, 'alloc', call, stack_id, 0,
	SUM(alloc_ns * CASE WHEN alloc_weights > 0 THEN alloc_weight / alloc_weights
		ELSE 1.0 * calls / MAX(call_weights, 1) END),
	SUM(calls), 0, SUM(bytes)
FROM weighed GROUP BY slice, call, stack_id
UNION ALL
SELECT m.slice, 1, m.toll, m.call, m.stack_id, 0,
	MAX(0.0, SUM(m.net_ns)), SUM(m.calls), 0, SUM(m.bytes)
FROM temp.map_net m GROUP BY m.slice, m.toll, m.call, m.stack_id
UNION ALL
SELECT s.slice, 1, CASE s.place WHEN 'memset' THEN 'zero.app' WHEN 'copy' THEN 'copy.app'
		ELSE 'compute' END,
	'', 0, s.stack_id,
	SUM(s.samples * n.sample_ns), SUM(s.samples), 0, 0
FROM main.sample s JOIN sampled n ON n.pid = s.pid
WHERE s.place IN ('memset', 'copy', 'user', 'kernel')
GROUP BY s.slice, 3, s.stack_id
UNION ALL	-- what the view makes of samples in the kernel, by the slices that have them
SELECT s.slice, 1, w.toll, CASE w.toll WHEN 'map' THEN w.call ELSE '' END,
	CASE w.toll WHEN 'map' THEN w.stack_id ELSE 0 END,
	CASE w.toll WHEN 'map' THEN 0 ELSE w.stack_id END,
	SUM(w.time_ns * s.samples / w.samples), SUM(1.0 * w.count * s.samples / w.samples),
	SUM(1.0 * w.count * s.samples / w.samples),
	SUM(4096.0 * w.count * s.samples / w.samples)
FROM main.sample s JOIN temp.sampled_work w ON w.pid = s.pid AND w.call = s.in_call
	AND w.stack_id = s.stack_id AND w.clears = (s.place = 'clear')
	AND w.toll = CASE s.place WHEN 'pages' THEN 'map' ELSE 'zero.kernel' END
WHERE s.place IN ('populate', 'pages', 'clear')
GROUP BY s.slice, w.toll, w.call, w.stack_id
UNION ALL
SELECT f.slice, 0, 'zero.app', '', 0, 0, 0.0, 0, SUM(f.pages), SUM(f.pages) * 4096
FROM main.fault f JOIN fp ON fp.class = f.class
WHERE fp.toll = 'zero.kernel' AND fp.writes_page AND f.in_memset AND f.in_call = '' GROUP BY f.slice
UNION ALL
SELECT w.slice, 1, w.toll, COALESCE(b.allocated_call, ''), COALESCE(b.allocated_stack, 0), w.stack,
	SUM(w.sign * (w.cpu_ns + w.blocked_ns)), SUM(w.sign * w.count), SUM(w.sign * w.pages),
	SUM(w.sign * w.pages) * 4096
FROM (
	SELECT slice, cpu_ns, blocked_ns, count, pages, 0 AS stack, 1 AS sign,
		CASE WHEN what LIKE 'reclaim%' THEN 'reclaim' ELSE 'swap.out' END AS toll
	FROM main.swap WHERE pid > 0 AND (what LIKE 'reclaim%' OR what LIKE 'out%')
	-- as in view extra_toll: what has a stack, and is no part of what has none
	UNION ALL SELECT slice, cpu_ns, blocked_ns, count, pages, stack_id, 1, 'reclaim'
	FROM reclaim_site
	UNION ALL SELECT slice, cpu_ns, blocked_ns, count, pages, 0, -1, 'reclaim'
	FROM reclaim_site
) w LEFT JOIN temp.stalled_block b ON w.toll = 'reclaim' AND b.touched_stack = w.stack
GROUP BY w.slice, w.toll, w.stack HAVING SUM(w.sign * w.count) > 0
UNION ALL	-- timeline_reads.sql has memtoll_read; empty where reads were not recorded
SELECT r.slice, 1, 'file.read', r.call, 0, r.stack_id,
	MAX(0.0, SUM(r.cpu_ns - r.calls * r.inside_ns - r.faults * r.fault_ns)) + SUM(r.blocked_ns),
	SUM(r.calls), SUM(r.bytes) / 4096, SUM(r.bytes)
FROM temp.memtoll_read r GROUP BY r.slice, r.call, r.stack_id;

-- What compute's time is divided by: observed time of the slice, less the other tolls.
CREATE TEMP TABLE memtoll_rest AS
WITH spent AS (
	SELECT slice, 1.0 * cpu_ns AS ns FROM main.process_slice
	UNION ALL
	SELECT h.slice, -1.0 * h.hits * COALESCE(p.hit_ns, 0.0)
	FROM main.hit h LEFT JOIN temp.probe_price p ON p.probe = h.probe
	UNION ALL
	SELECT f.slice, f.blocked_ns + (f.faults - f.timed_faults) * p.blocked_mean_ns
	FROM main.fault f JOIN temp.fault_price p ON p.class = f.class
	UNION ALL SELECT slice, 1.0 * blocked_ns FROM main.swap
	WHERE pid > 0 AND (what LIKE 'reclaim%' OR what LIKE 'out%')
	UNION ALL SELECT slice, 1.0 * blocked_ns FROM temp.memtoll_read
	UNION ALL
	SELECT p.slice, -p.weight_ns FROM temp.memtoll_part p
	JOIN temp.toll_kind k ON k.toll = p.toll AND k.not_captured IS NULL
		WHERE p.toll <> 'compute'
)
SELECT slice, MAX(0.0, SUM(ns)) AS ns FROM spent GROUP BY slice;

-- Every captured toll in every slice. A total that no part accounts for is spread evenly in time;
-- whole numbers are divided by rounding running sums, so that none is lost.
CREATE TEMP TABLE memtoll_timeline AS
WITH
part AS MATERIALIZED (
	SELECT slice, toll, SUM(CASE WHEN toll <> 'compute' THEN weight_ns ELSE 0.0 END) AS ns,
		SUM(count) AS count, SUM(bytes) AS bytes, SUM(pages) AS pages
	FROM temp.memtoll_part GROUP BY slice, toll
),
cell AS MATERIALIZED (
	SELECT s.slice, s.start_ns, s.end_ns, t.position, t.toll,
		1.0 * MAX(s.end_ns - s.start_ns, 1) AS even,
		CASE t.toll WHEN 'compute' THEN COALESCE(r.ns, 0.0)
			ELSE COALESCE(p.ns, 0.0) END AS ns,
		COALESCE(p.count, 0) AS count, COALESCE(p.bytes, 0) AS bytes,
			COALESCE(p.pages, 0) AS pages,
		t.time_ns AS all_ns, t.count AS all_count, t.bytes AS all_bytes,
			t.pages AS all_pages
	FROM main.slice s JOIN temp.toll t
	LEFT JOIN part p ON p.slice = s.slice AND p.toll = t.toll
	LEFT JOIN temp.memtoll_rest r ON r.slice = s.slice
	WHERE t.not_captured IS NULL
),
summed AS MATERIALIZED (
	SELECT toll, SUM(ns) AS ns, SUM(count) AS count, SUM(bytes) AS bytes, SUM(pages) AS pages,
		SUM(even) AS even
	FROM cell GROUP BY toll
),
-- running parts of the totals, 0 to 1
run AS MATERIALIZED (
	SELECT c.slice, c.start_ns, c.end_ns, c.position, c.toll, c.all_count, c.all_bytes,
		c.all_pages,
		c.all_ns * CASE WHEN s.ns > 0 THEN 1.0 * c.ns / s.ns ELSE c.even
			/ s.even END AS time_ns,
		CASE WHEN s.count > 0 THEN 1.0 * SUM(c.count) OVER w / s.count
			ELSE SUM(c.even) OVER w / s.even END AS count_run,
		CASE WHEN s.bytes > 0 THEN 1.0 * SUM(c.bytes) OVER w / s.bytes
			ELSE SUM(c.even) OVER w / s.even END AS bytes_run,
		CASE WHEN s.pages > 0 THEN 1.0 * SUM(c.pages) OVER w / s.pages
			ELSE SUM(c.even) OVER w / s.even END AS pages_run
	FROM cell c JOIN summed s ON s.toll = c.toll
	WINDOW w AS (PARTITION BY c.toll ORDER BY c.slice)
),
step AS (
	SELECT slice, start_ns, end_ns, position, toll, time_ns,
		CAST(ROUND(all_count * count_run) AS INTEGER) AS count,
		CAST(ROUND(all_bytes * bytes_run) AS INTEGER) AS bytes,
		CAST(ROUND(all_pages * pages_run) AS INTEGER) AS pages
	FROM run
)
SELECT slice, start_ns, end_ns, position, toll, time_ns,
	count - LAG(count, 1, 0) OVER w AS count, bytes - LAG(bytes, 1, 0) OVER w AS bytes,
	pages - LAG(pages, 1, 0) OVER w AS pages
FROM step WINDOW w AS (PARTITION BY toll ORDER BY slice);
