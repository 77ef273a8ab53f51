-- SPDX-License-Identifier: GPL-2.0
--
-- duty.sql: allocator calls where the overhead budget let them be watched only part of the time
-- (table watch): what was seen, scaled to the whole. Follows prices.sql.

-- The factor for each function that was not always watched. Slices in which it was watched
-- throughout count as they are; of the others together, the windows saw calls y in own CPU time x
-- of the program, and the program had X in all of them: X / x. Own is less what the probes took: in a
-- window, the hits of all functions that come and go; besides, the rest in proportion. At least a tenth is
-- taken to be own: what is left of less is the prices' error, so that calls of a program that does next to
-- nothing else come out too few, by up to the factor that the error has room for.
--
-- error: relative, a 95 % bound, of two parts that are added. That of a ratio estimate whose units
-- are slices (Cochran, Sampling Techniques, 6.4): v = n / (n - 1) * sum of (y - R x)^2 over
-- (R sum of x)^2, less the part seen; a single slice says nothing: 1. And the price's: were the probes
-- dearer by its error, x would be smaller by as much, and X / x larger by more: e / (1 - e), where e is the
-- error's part of x, and never more than ten times. In windows hits are most of the time, so that the
-- price decides: probe_pace counts where it says more than the calibration, too, up to half as much again,
-- with an error of 15 %, a quarter where too few calls tell, and of half of what is above the
-- calibration, which may be the calls' own. seen_share: x / X.
CREATE VIEW call_scale AS
WITH RECURSIVE
spent AS (
	SELECT slice, SUM(cpu_ns) AS cpu_ns FROM process_slice GROUP BY slice
),
priced AS MATERIALIZED (
	SELECT probe, hit_ns * pace AS hit_ns,
		MAX(error_ns, hit_ns * ((CASE WHEN told THEN 0.15 ELSE 0.25 END) * pace + 0.5 * (pace - 1)))
			AS error_ns
	FROM (SELECT c.probe, c.hit_ns, c.error_ns, s.scale IS NOT NULL OR u.sampled OR NOT m.uprobe AS told,
			CASE WHEN m.uprobe AND NOT u.sampled
				THEN MIN(1.5, MAX(1.0, COALESCE(s.scale, 1.0))) ELSE 1.0 END AS pace
		FROM probe_cost c JOIN probe_moment m ON m.probe = c.probe
		JOIN uprobe_profile u JOIN probe_pace s)
),
paid AS MATERIALIZED (
	SELECT h.slice, SUM(h.hits * COALESCE(p.hit_ns, 0.0)) AS all_ns,
		SUM(CASE WHEN w.call IS NOT NULL THEN h.hits * COALESCE(p.hit_ns, 0.0) ELSE 0.0 END)
			AS window_ns,
		SUM(CASE WHEN w.call IS NOT NULL THEN h.hits * COALESCE(p.error_ns, 0.0)
			ELSE 0.0 END) AS error_ns
	FROM hit h LEFT JOIN priced p ON p.probe = h.probe
	LEFT JOIN watch w ON w.slice = h.slice AND w.call = h.probe
	GROUP BY h.slice
),
made AS MATERIALIZED (
	SELECT slice, call, SUM(calls) AS calls FROM call GROUP BY slice, call
),
own AS (
	SELECT w.slice, w.call, w.watched_cpu_ns, COALESCE(m.calls, 0) AS y,
		COALESCE(p.error_ns, 0.0) AS error_ns,
		MAX(s.cpu_ns - COALESCE(p.all_ns, 0.0), 0.1 * s.cpu_ns) AS own_ns,
		MAX(w.watched_cpu_ns - COALESCE(p.window_ns, 0.0), 0.1 * w.watched_cpu_ns)
			AS window_own_ns,
		COALESCE(p.all_ns, 0.0) - COALESCE(p.window_ns, 0.0) AS rest_ns
	FROM watch w JOIN spent s ON s.slice = w.slice
	LEFT JOIN paid p ON p.slice = w.slice
	LEFT JOIN made m ON m.slice = w.slice AND m.call = w.call
	WHERE s.cpu_ns > 0
),
unit AS MATERIALIZED (
	SELECT call, y, error_ns, own_ns, watched_cpu_ns > 0 AS seen,
		window_own_ns / (1.0 + rest_ns / own_ns) AS x,
		window_own_ns <= 0.1 * watched_cpu_ns AS floored
	FROM own
),
ratio AS MATERIALIZED (
	SELECT call, SUM(seen) AS n, SUM(x) AS x,
		-- at the floor the truth may be several times as much
		CASE WHEN SUM(floored * x) > 0.5 * SUM(x) THEN 9.0 ELSE 0.0 END AS floored,
		SUM(own_ns) AS whole, SUM(error_ns) AS error_ns,
		SUM(y) / MAX(SUM(x), 1.0) AS r
	FROM unit GROUP BY call
),
spread AS MATERIALIZED (
	SELECT r.call, CASE WHEN r.n < 2 OR r.r <= 0 THEN 1.0
		ELSE 1.0 * r.n / (r.n - 1) * SUM((u.y - r.r * u.x) * (u.y - r.r * u.x))
			/ (r.r * r.x) / (r.r * r.x) * MAX(0.0, 1.0 - r.x / MAX(r.whole, 1.0)) END
		AS v
	FROM ratio r JOIN unit u ON u.call = r.call AND u.seen GROUP BY r.call
),
root(call, v, x, step) AS (
	SELECT call, v, v + 1.0, 0 FROM spread
	UNION ALL SELECT call, v, (x + v / x) / 2, step + 1 FROM root WHERE step < 60 AND v > 0
),
deviation AS MATERIALIZED (
	SELECT call, CASE WHEN v > 0 THEN MIN(x) ELSE 0.0 END AS deviation FROM root GROUP BY call
)
SELECT r.call, MAX(1.0, CASE WHEN r.x > 0 THEN r.whole / r.x ELSE 1.0 END) AS factor,
	COALESCE(1.96 * d.deviation, 1.0) + CASE WHEN r.x <= 0 THEN 0.0
		WHEN r.floored > 0 OR r.error_ns >= 0.9 * r.x THEN 9.0
		ELSE r.error_ns / (r.x - r.error_ns) END AS error,
	CASE WHEN r.whole > 0 THEN MIN(1.0, r.x / r.whole) ELSE 0.0 END AS seen_share
FROM ratio r LEFT JOIN deviation d ON d.call = r.call;

-- A site that no window saw may still have been called in between. By function and process that ran in
-- slices not always watched: most_calls, which such a site had there at most (95 %: of a Poisson variable
-- of which nothing was seen, the expectation is below 3.0); NULL where no window tells, then part, the CPU time of
-- those slices over that of the others, says what the site's own rate would come to.
CREATE VIEW call_unseen AS
SELECT r.call, r.pid, CASE WHEN s.seen_share > 0 THEN 3.0 * s.factor END AS most_calls,
	r.ns / MAX(w.ns - r.ns, 1.0) AS part
FROM (SELECT w.call, p.pid, 1.0 * SUM(p.cpu_ns) AS ns FROM watch w
	JOIN process_slice p ON p.slice = w.slice WHERE p.cpu_ns > 0 GROUP BY w.call, p.pid) r
JOIN (SELECT pid, 1.0 * SUM(cpu_ns) AS ns FROM process_slice GROUP BY pid) w ON w.pid = r.pid
JOIN call_scale s ON s.call = r.call;

-- Table call, added up over the slices and scaled where calls were missed (estimated 1); what was
-- always watched stays the exact integer. calls_error, bytes_error: 95 % bounds of those two: the
-- function's relative error, and that of k seen calls, 1.96 sqrt(k), for which else no site had a
-- bound of its own. Its root is one Newton step from a power of two above, never too small. Of what only
-- slices watched throughout saw, it is call_unseen's. error: the relative one of the function's time.
CREATE VIEW call_estimate AS
WITH
part AS (
	SELECT c.pid, c.call, c.stack_id, c.known_clearing, w.slice IS NOT NULL AS scaled,
		SUM(c.calls) AS calls, SUM(c.failed) AS failed, SUM(c.bytes) AS bytes,
		SUM(c.cpu_ns) AS cpu_ns, SUM(c.timed_calls) AS timed_calls,
		SUM(c.map_cpu_ns) AS map_cpu_ns, SUM(c.map_calls) AS map_calls,
		SUM(c.faults) AS faults, SUM(c.cleared_calls) AS cleared_calls,
		SUM(c.cleared_bytes) AS cleared_bytes, SUM(c.cleared_cpu_ns) AS cleared_cpu_ns,
		SUM(c.cleared_faults) AS cleared_faults, SUM(c.mmapped_calls) AS mmapped_calls,
		SUM(c.nested_calls) AS nested_calls, SUM(c.slow_calls) AS slow_calls,
		SUM(c.slow_cpu_ns) AS slow_cpu_ns
	FROM call c LEFT JOIN watch w ON w.slice = c.slice AND w.call = c.call
	GROUP BY c.pid, c.call, c.stack_id, c.known_clearing, scaled
),
factored AS (
	SELECT p.*, CASE WHEN p.scaled THEN COALESCE(s.factor, 1.0) ELSE 1.0 END AS factor,
		CASE WHEN p.scaled THEN COALESCE(s.error, 1.0) ELSE 0.0 END AS error,
		CASE WHEN p.calls < 4 THEN 2.0 WHEN p.calls < 16 THEN 4.0 WHEN p.calls < 64 THEN 8.0
			WHEN p.calls < 256 THEN 16.0 WHEN p.calls < 1024 THEN 32.0
			WHEN p.calls < 4096 THEN 64.0 WHEN p.calls < 16384 THEN 128.0
			WHEN p.calls < 65536 THEN 256.0 ELSE p.calls / 256.0 END AS above
	FROM part p LEFT JOIN call_scale s ON s.call = p.call
),
bounded AS (
	SELECT f.*, CASE WHEN scaled AND calls > 0
		THEN error + 1.96 * (above + calls / above) / 2 / calls ELSE 0.0 END AS site_error
	FROM factored f
),
summed AS (	-- what a factor of 1 leaves as it is stays exact: below 2^53
	SELECT pid, call, stack_id, known_clearing, MAX(scaled) AS scaled, SUM(calls) AS seen_calls,
		SUM(CAST(ROUND(calls * factor) AS INTEGER)) AS calls,
		SUM(CAST(ROUND(failed * factor) AS INTEGER)) AS failed,
		SUM(CAST(ROUND(bytes * factor) AS INTEGER)) AS bytes,
		SUM(CAST(ROUND(cpu_ns * factor) AS INTEGER)) AS cpu_ns,
		SUM(CAST(ROUND(timed_calls * factor) AS INTEGER)) AS timed_calls,
		SUM(CAST(ROUND(map_cpu_ns * factor) AS INTEGER)) AS map_cpu_ns,
		SUM(CAST(ROUND(map_calls * factor) AS INTEGER)) AS map_calls,
		SUM(CAST(ROUND(faults * factor) AS INTEGER)) AS faults,
		SUM(CAST(ROUND(cleared_calls * factor) AS INTEGER)) AS cleared_calls,
		SUM(CAST(ROUND(cleared_bytes * factor) AS INTEGER)) AS cleared_bytes,
		SUM(CAST(ROUND(cleared_cpu_ns * factor) AS INTEGER)) AS cleared_cpu_ns,
		SUM(CAST(ROUND(cleared_faults * factor) AS INTEGER)) AS cleared_faults,
		SUM(CAST(ROUND(mmapped_calls * factor) AS INTEGER)) AS mmapped_calls,
		SUM(CAST(ROUND(nested_calls * factor) AS INTEGER)) AS nested_calls,
		SUM(CAST(ROUND(slow_calls * factor) AS INTEGER)) AS slow_calls,
		SUM(CAST(ROUND(slow_cpu_ns * factor) AS INTEGER)) AS slow_cpu_ns,
		-- of time the calls of the whole slices have no such error
		SUM(error * cpu_ns * factor) / MAX(SUM(cpu_ns * factor), 1.0) AS error,
		SUM(site_error * calls * factor) AS calls_error,
		SUM(site_error * bytes * factor) AS bytes_error,
		MAX(MAX(scaled)) OVER made AS any_scaled, SUM(SUM(calls)) OVER made AS all_calls
	FROM bounded GROUP BY pid, call, stack_id, known_clearing
	WINDOW made AS (PARTITION BY pid, call)
),
unseen AS (
	SELECT s.*, u.call IS NOT NULL AND NOT s.scaled AS unseen, u.most_calls, u.part,
		COALESCE(u.most_calls, MAX(3.0, s.calls * u.part)) AS site_calls
	FROM summed s LEFT JOIN call_unseen u ON u.call = s.call AND u.pid = s.pid
)
SELECT pid, call, stack_id, known_clearing, scaled OR unseen AS estimated, seen_calls, calls, failed,
	bytes, cpu_ns, timed_calls, map_cpu_ns, map_calls, faults, cleared_calls, cleared_bytes,
	cleared_cpu_ns, cleared_faults, mmapped_calls, nested_calls, slow_calls, slow_cpu_ns,
	-- where windows saw no call of the function at all, as many as they may have missed
	CASE WHEN unseen AND NOT any_scaled THEN COALESCE(most_calls / MAX(all_calls, 1), part)
		ELSE error END AS error,
	CAST(ROUND(CASE WHEN unseen THEN site_calls ELSE calls_error END) AS INTEGER) AS calls_error,
	CAST(ROUND(CASE WHEN unseen THEN site_calls * bytes / MAX(calls, 1) ELSE bytes_error END)
		AS INTEGER) AS bytes_error
FROM unseen;

-- How much of the recording's time each allocator function was watched: 1 where no row of table
-- watch says otherwise.
CREATE VIEW duty_cycle AS
SELECT c.call, CASE WHEN w.call IS NULL OR d.ns <= 0 THEN 1.0
	ELSE MAX(0.0, MIN(1.0, 1.0 - 1.0 * (w.slices_ns - w.watched_ns) / d.ns)) END AS share,
	COALESCE(s.error, 0.0) AS error
FROM (SELECT call FROM call UNION SELECT call FROM watch) c
JOIN (SELECT COALESCE(SUM(end_ns - start_ns), 0) AS ns FROM slice) d
LEFT JOIN (
	SELECT w.call, SUM(l.end_ns - l.start_ns) AS slices_ns, SUM(w.watched_ns) AS watched_ns
	FROM watch w JOIN slice l ON l.slice = w.slice GROUP BY w.call) w ON w.call = c.call
LEFT JOIN call_scale s ON s.call = c.call;

-- What each set of probes takes from the target when it is watched all the time: hits per second of
-- the program's own CPU time, and the cost as a part of the CPU time that would then be used. hit_ns: the
-- mean. What `memtoll doctor -p` predicts.
CREATE VIEW probe_load AS
WITH
own AS MATERIALIZED (
	SELECT MAX(1.0, c.ns - COALESCE(o.ns, 0.0), 0.1 * c.ns) AS ns
	FROM (SELECT SUM(cpu_ns) AS ns FROM process_slice) c
	JOIN (SELECT SUM(overhead_ns) AS ns FROM probe_overhead) o
),
counted(position, probes, probe, hits) AS (
	SELECT CASE WHEN call IN ('malloc', 'free') THEN 1 WHEN call = 'calloc' THEN 2 ELSE 3 END,
		CASE WHEN call IN ('malloc', 'free') THEN 'malloc, free' WHEN call = 'calloc'
			THEN 'calloc' ELSE 'realloc, aligned' END, call, SUM(calls + nested_calls)
	FROM call_estimate GROUP BY call
	UNION ALL SELECT CASE probe WHEN 'walk' THEN 7 WHEN 'map' THEN 5 WHEN 'read' THEN 6 ELSE 4 END,
		CASE probe WHEN 'walk' THEN 'stacks' WHEN 'map' THEN 'mappings' WHEN 'read' THEN 'reads'
			ELSE 'faults' END, probe, SUM(hits)
	FROM hit WHERE probe IN ('walk', 'map', 'read', 'fault', 'fault_end') GROUP BY probe
),
cost AS (
	SELECT c.position, c.probes, SUM(CASE c.probe WHEN 'fault_end' THEN 0 ELSE c.hits END) AS hits,
		SUM(c.hits * COALESCE(p.hit_ns, 0.0)) AS ns
	FROM counted c LEFT JOIN probe_cost p ON p.probe = c.probe GROUP BY c.position, c.probes
)
SELECT c.position, c.probes, c.hits, 1e9 * c.hits / o.ns AS hits_per_s,
	CASE WHEN c.hits > 0 THEN c.ns / c.hits ELSE 0.0 END AS hit_ns,
	100.0 * c.ns / (o.ns + c.ns) AS cost_pct
FROM cost c JOIN own o;
