-- SPDX-License-Identifier: GPL-2.0
--
-- scaling.sql: allocator calls where the overhead budget let them be watched only part of the time
-- (table watch): what was seen, scaled to the whole. Follows prices.sql.

-- The factor for each function that was not always watched. Slices in which it was watched
-- throughout count as they are. Of the others together, the windows saw calls y while the program
-- came as far as x, and it came as far as X in all of them: X / x calls for each. How far it came,
-- clocks tell: cpu: its own CPU time, which is all of it less what the probes took; in a window,
-- the hits of all functions that come and go; besides, the rest in proportion. At least a fiftieth
-- is taken to be own: what is left of less is the prices' error. passed: the same, and the calls,
-- in the moments after windows (watch_passed), where a hit costs less. An event that was counted
-- throughout (watch_event), whatever the probes cost; in slices in which it was not, the calls go
-- by CPU time, which is sure where windows are few; it goes on in half of the slices at least, ten
-- fell into windows, and its error is less than itself: the faults of a program's start are nearly
-- all seen, and say nothing of later. Believed is what can be true together with what cpu tells:
-- something that happens by the wall clock (a timer) tells too few calls. The clock with the
-- smaller error counts.
--
-- error: relative, a 95 % bound. That of a ratio estimate whose units are slices, by what it
-- would be without each of them (jackknife; Cochran, Sampling Techniques, 6.17): v = (n - 1) / n
-- * sum of ((y - R x) / (1 - h))^2 over (R sum of x)^2, where h is the slice's part of sum of x,
-- less the part seen, and Student's t for n - 1. Where one slice is nearly all that was watched
-- R is its own, and says little of the others. A single slice says next to nothing: ten times as
-- much in what was not seen. Of k events no less than a Poisson variable's, 1 / k, and a tenth
-- for what they have to do with the calls. Of cpu that of the prices is added: were the probes
-- dearer by their error, x would be smaller by as much, and X / x larger by more: e / (1 - e),
-- where e is the error's part of x, and never more than ten times; were they cheaper, e / (1 +
-- e) less. seen_share: x / X.
CREATE VIEW call_scale AS
WITH
spent AS (
	SELECT slice, SUM(cpu_ns) AS cpu_ns FROM process_slice GROUP BY slice
),
-- In windows hits are most of the time, and what one costs there decides: as it was in that very
-- slice. A program that has had the caches between its calls (memset of 4 MiB) pays 4 to 15 % more
-- than the tightest hits tell, and of those that are passed over 5 to 30 %, by its own count.
priced AS MATERIALIZED (
	SELECT probe, calibrated_ns AS scaled_ns, here,
		hit_ns * CASE WHEN unsure THEN MAX(1.0, MIN(1.5, COALESCE(pace, 1.0)))
			ELSE 1.0 END AS hit_ns,
		CASE WHEN unsure THEN 0.35 WHEN uprobe AND NOT sampled THEN 0.15
			ELSE error END AS dearer,
		CASE WHEN unsure THEN 0.35 ELSE error END AS cheaper
	FROM (SELECT *, uprobe AND NOT here AND NOT sampled AS unsure, error_ns
		/ MAX(hit_ns, 1.0) AS error
		FROM probe_cost)
),
paid AS MATERIALIZED (
	SELECT slice, SUM(ns) AS all_ns, SUM(windowed * ns) AS window_ns,
		SUM(windowed * ns * dearer) AS dearer_ns, SUM(windowed * ns * cheaper) AS cheaper_ns
	FROM (
		SELECT h.slice, w.call IS NOT NULL AS windowed, COALESCE(p.dearer, 0.0) AS dearer,
			COALESCE(p.cheaper, 0.0) AS cheaper,
			h.hits * COALESCE(CASE WHEN p.here THEN p.scaled_ns * m.paid_ns
				/ m.hit_ns END,
				p.hit_ns, 0.0) AS ns
		FROM hit h LEFT JOIN priced p ON p.probe = h.probe
		LEFT JOIN call_moment m ON m.slice = h.slice
		LEFT JOIN watch w ON w.slice = h.slice AND w.call = h.probe
	) GROUP BY slice
),
made AS MATERIALIZED (
	SELECT slice, call, SUM(calls) AS calls FROM call GROUP BY slice, call
),
own AS MATERIALIZED (
	SELECT w.slice, w.call, w.watched_cpu_ns, COALESCE(m.calls, 0) AS y,
		COALESCE(p.dearer_ns, 0.0) AS dearer_ns, COALESCE(p.cheaper_ns, 0.0) AS cheaper_ns,
		MAX(s.cpu_ns - COALESCE(p.all_ns, 0.0), 0.02 * s.cpu_ns) AS own_ns,
		MAX(w.watched_cpu_ns - COALESCE(p.window_ns, 0.0), 0.02 * w.watched_cpu_ns)
			AS window_own_ns,
		COALESCE(p.all_ns, 0.0) - COALESCE(p.window_ns, 0.0) AS rest_ns
	FROM watch w JOIN spent s ON s.slice = w.slice
	LEFT JOIN paid p ON p.slice = w.slice
	LEFT JOIN made m ON m.slice = w.slice AND m.call = w.call
	WHERE s.cpu_ns > 0
),
counted AS MATERIALIZED (
	SELECT slice, ns, ns * CASE WHEN here THEN 0.25 ELSE dearer END AS dearer_ns,
		ns * CASE WHEN here THEN 0.12 ELSE cheaper END AS cheaper_ns
	FROM (
		SELECT w.slice, p.dearer, p.cheaper, g.slice IS NOT NULL AS here,
			SUM(w.calls) * COALESCE(1.08 * g.low_ns / g.gaps, p.hit_ns) AS ns
		FROM watch_passed w JOIN priced p ON p.probe = 'idle'
		LEFT JOIN hit_gap g ON g.slice = w.slice AND g.hit = 'idle' AND g.gaps >= 300
			AND g.low_ns <= 3.0 * p.scaled_ns * g.gaps
		GROUP BY w.slice
	)
),
clock AS (
	SELECT call, event AS clock FROM watch_event UNION SELECT call, 'cpu' FROM watch
	UNION SELECT call, 'passed' FROM watch_passed
),
unit AS (	-- an event of which a slice has no row did not happen there, or was not counted
		-- throughout
	SELECT o.call, k.clock, o.own_ns,
		CASE k.clock WHEN 'passed' THEN COALESCE(p.calls, 0) ELSE o.y END AS y,
		CASE k.clock WHEN 'passed' THEN COALESCE(p.cpu_ns, 0) > 0
			ELSE o.watched_cpu_ns > 0 END AS seen,
		CASE WHEN k.clock IN ('cpu', 'passed') THEN o.own_ns ELSE 1.0
			* COALESCE(e.happened, 0) END
			AS whole,
		CASE k.clock WHEN 'cpu' THEN o.window_own_ns / (1.0 + o.rest_ns / o.own_ns)
			WHEN 'passed' THEN COALESCE(MAX(p.cpu_ns - c.ns, 0.02 * p.cpu_ns)
				/ (1.0 + o.rest_ns / o.own_ns), 0.0)
			ELSE 1.0 * COALESCE(e.watched, 0) END AS x,
		CASE k.clock WHEN 'cpu' THEN o.dearer_ns WHEN 'passed'
			THEN COALESCE(c.dearer_ns, 0.0)
			ELSE 0.0 END AS dearer_ns,
		CASE k.clock WHEN 'cpu' THEN o.cheaper_ns WHEN 'passed'
			THEN COALESCE(c.cheaper_ns, 0.0)
			ELSE 0.0 END AS cheaper_ns,
		CASE k.clock WHEN 'cpu' THEN o.window_own_ns <= 0.02 * o.watched_cpu_ns
			WHEN 'passed' THEN COALESCE(p.cpu_ns - c.ns <= 0.02 * p.cpu_ns, 0)
				ELSE 0 END
			AS floored
	FROM own o JOIN clock k ON k.call = o.call
	LEFT JOIN watch_passed p ON p.slice = o.slice AND p.call = o.call
	LEFT JOIN counted c ON c.slice = o.slice
	LEFT JOIN watch_event e ON e.slice = o.slice AND e.call = o.call AND e.event = k.clock
	LEFT JOIN watch w ON w.slice = o.slice
		AND w.call = CASE k.clock WHEN 'plain_read' THEN 'read_other' ELSE k.clock END
	WHERE w.call IS NULL
),
drawn AS (
	SELECT call, clock, SUM(seen) AS n, SUM(whole > 0) AS slices, SUM(x) AS x, SUM(y) AS y, r,
		SUM(own_ns) AS own_ns, SUM(whole) AS whole, SUM(dearer_ns) AS dearer_ns,
		SUM(cheaper_ns) AS cheaper_ns, SUM(seen * (y - r * x) * (y - r * x) / rest / rest)
			AS squares,
		-- at the floor the truth may be several times as much
		COALESCE(SUM(floored * x) > 0.5 * SUM(x), 0) AS floored
	FROM (SELECT *, SUM(y) OVER drawn / MAX(SUM(x) OVER drawn, 1.0) AS r,
			MAX(0.001, 1.0 - x / MAX(SUM(x) OVER drawn, 1.0)) AS rest FROM unit
		WINDOW drawn AS (PARTITION BY call, clock))
	GROUP BY call, clock
),
varied AS (
	SELECT *, MAX(CASE WHEN n < 2 OR r <= 0 THEN 0.0
			ELSE (n - 1.0) / n * squares / (r * x) / (r * x) * CASE
				WHEN clock IN ('cpu', 'passed')
				THEN MAX(0.0, 1.0 - x / MAX(whole, 1.0)) ELSE 1.0 END END,
		CASE WHEN clock IN ('cpu', 'passed') THEN 0.0 ELSE 1.0 / MAX(x, 1.0) END) AS v
	FROM drawn
),
student(n, t) AS (	-- 97.5 %, one degree of freedom less than slices; from ten on within a
			-- hundredth
	VALUES (2, 12.71), (3, 4.30), (4, 3.18), (5, 2.78), (6, 2.57), (7, 2.45), (8, 2.36),
		(9, 2.31)
),
bounded AS (
	SELECT d.*, CASE WHEN d.n < 2 THEN 9.0 * MAX(0.0, 1.0 - d.x / MAX(d.whole, 1.0))
			ELSE COALESCE(t.t, 1.96 + 2.7 / (d.n - 1)) * d.deviation END
		+ CASE WHEN d.clock NOT IN ('cpu', 'passed') THEN 0.1 WHEN d.x <= 0 THEN 0.0
			WHEN d.floored OR d.dearer_ns >= 0.9 * d.x THEN 9.0
			ELSE MAX(d.dearer_ns / (d.x - d.dearer_ns), d.cheaper_ns
				/ (d.x + d.cheaper_ns)) END
		AS error
	FROM (SELECT *, (SELECT r.root FROM square_root r WHERE r.v = varied.v) AS deviation
		FROM varied) d
	LEFT JOIN student t ON t.n = d.n
),
compared AS (
	SELECT call, clock, slices, x, y, whole, error,
		CASE WHEN clock = 'cpu' THEN CASE WHEN x > 0 THEN whole / x ELSE 1.0 END
			ELSE r * whole * cpu_own_ns / own_ns / MAX(cpu_y, 1.0) END AS factor,
		cpu_y, cpu_error, cpu_slices,
		CASE WHEN cpu_x > 0 THEN MAX(1.0, cpu_own_ns / cpu_x) ELSE 1.0 END AS cpu_factor,
		cpu_own_ns / MAX(cpu_x + cpu_cheaper_ns, 1.0) AS cpu_least
	FROM (SELECT *, SUM(CASE clock WHEN 'cpu' THEN y END) OVER call AS cpu_y,
			SUM(CASE clock WHEN 'cpu' THEN x END) OVER call AS cpu_x,
			SUM(CASE clock WHEN 'cpu' THEN own_ns END) OVER call AS cpu_own_ns,
			SUM(CASE clock WHEN 'cpu' THEN error END) OVER call AS cpu_error,
			SUM(CASE clock WHEN 'cpu' THEN slices END) OVER call AS cpu_slices,
			SUM(CASE clock WHEN 'cpu' THEN cheaper_ns END) OVER call AS cpu_cheaper_ns
		FROM bounded WINDOW call AS (PARTITION BY call))
),
believed AS (
	SELECT call, clock, MAX(1.0, factor) AS factor, error, CASE WHEN clock <> 'cpu' THEN 1.0
		/ MAX(1.0, factor)
			WHEN whole > 0 THEN MIN(1.0, x / whole) ELSE 0.0 END AS seen_share,
		ROW_NUMBER() OVER (PARTITION BY call ORDER BY error, clock) AS place
	FROM compared
	WHERE clock = 'cpu' OR (x > 0 AND y > 0 AND cpu_y > 0
		AND (clock = 'passed' OR (error < 1.0 AND x >= 10 AND 2 * slices >= cpu_slices))
		AND factor * (1.0 + error) >= cpu_least / (1.0 + cpu_error)
		AND factor * MAX(0.0, 1.0 - error) <= cpu_factor * (1.0 + cpu_error))
)
SELECT call, clock, factor, error, seen_share FROM believed WHERE place = 1;

-- Which function stands for those that are watched together, in table watch_process.
CREATE VIEW watched_together AS
SELECT call, CASE WHEN call IN ('malloc', 'free') THEN 'malloc' WHEN call = 'calloc' THEN 'calloc'
	ELSE 'realloc' END AS stands
FROM (SELECT DISTINCT call FROM watch);

-- How far each process of which calls were seen came in slices in which a function was not always
-- watched: own_ns of its own CPU time, less what the probes took, and seen_ns of it while the
-- function was watched. call: as watched_together has it. windows: in how many it ran. whole: it
-- was watched all that time, as one is that lives within a window.
CREATE VIEW watched_process AS
WITH
paid AS MATERIALIZED (
	SELECT slice, pid, SUM(ns) AS all_ns, SUM(windowed * ns) AS window_ns
	FROM (
		SELECT h.slice, h.pid, w.call IS NOT NULL AS windowed,
			h.hits * COALESCE(c.hit_ns, 0.0) AS ns
		FROM hit h LEFT JOIN probe_cost c ON c.probe = h.probe
		LEFT JOIN watch w ON w.slice = h.slice AND w.call = h.probe
		WHERE h.slice IN (SELECT slice FROM watch_process)
	) GROUP BY slice, pid
),
came AS (
	SELECT p.call, p.pid, p.windows, p.cpu_ns, p.watched_cpu_ns,
		MAX(p.cpu_ns - COALESCE(c.all_ns, 0.0), 0.02 * p.cpu_ns) AS own_ns,
		MAX(p.watched_cpu_ns - COALESCE(c.window_ns, 0.0), 0.02 * p.watched_cpu_ns)
			AS window_own_ns,
		COALESCE(c.all_ns - c.window_ns, 0.0) AS rest_ns
	FROM watch_process p LEFT JOIN paid c ON c.slice = p.slice AND c.pid = p.pid
)
SELECT call, pid, SUM(own_ns) AS own_ns, SUM(windows) AS windows,
	SUM(window_own_ns / (1.0 + rest_ns / MAX(own_ns, 1.0))) AS seen_ns,
	SUM(watched_cpu_ns) >= 0.98 * SUM(cpu_ns) AS whole
FROM came GROUP BY call, pid;

-- The factor for each process and function, of what windows saw. What all called is call_scale's,
-- and what of it was not seen is divided by how far each one came unseen, with what was seen of it;
-- ten times the factor of all at most. What was watched as a whole is as it was seen. Where nothing
-- tells how far, it is the factor of all. part: of what it did, what was seen. error: that of all,
-- which is that of who makes nearly all of them; of others that ran in n windows not below 1.96 /
-- sqrt(n) of what was not seen, since windows differ.
CREATE VIEW process_scale AS
WITH
seen AS MATERIALIZED (
	SELECT c.pid, c.call, SUM(c.calls) AS calls
	FROM call c JOIN watch w ON w.slice = c.slice AND w.call = c.call GROUP BY c.pid, c.call
),
known AS (
	SELECT n.pid, n.call, n.calls, s.factor, s.error, COALESCE(w.whole, 0) AS whole,
		COALESCE(MIN(1.0, w.seen_ns / MAX(w.own_ns, 1.0)), 0.0) AS part,
		COALESCE(w.windows, 0) AS windows,
		MAX(1.0, MIN(10.0 * s.factor, COALESCE(w.own_ns
			/ CASE WHEN w.seen_ns > 0 THEN w.seen_ns END, s.factor))) AS own_factor
	FROM seen n JOIN call_scale s ON s.call = n.call
	JOIN watched_together t ON t.call = n.call
	LEFT JOIN watched_process w ON w.pid = n.pid AND w.call = t.stands
),
levelled AS (
	SELECT *, SUM(calls * (factor - 1.0)) OVER call / MAX(1.0, SUM(CASE WHEN whole THEN 0.0
			ELSE calls * (own_factor - 1.0) END) OVER call) AS level,
		calls * own_factor / MAX(SUM(calls * own_factor) OVER call, 1.0) AS share
	FROM known WINDOW call AS (PARTITION BY call)
)
SELECT pid, call, part,
	CASE WHEN whole THEN 1.0 ELSE 1.0 + level * (own_factor - 1.0) END AS factor,
	CASE WHEN whole THEN 1.0 - part WHEN windows = 0 THEN error
		ELSE MAX(error, (1.0 - part) * (1.0 - share) * 1.96
			* (SELECT root FROM square_root WHERE v = 1.0 / windows)) END AS error
FROM levelled;

-- A site that no window saw may still have been called in between. By function and process that ran
-- in slices not always watched: most_calls, which such a site had there at most (95 %: of a Poisson
-- variable of which nothing was seen, the expectation is below 3.0); NULL where no window tells,
-- then part, the CPU time of those slices over that of the others, says what the site's own rate
-- would come to. Not where its process was watched all that time.
CREATE VIEW call_unseen AS
SELECT r.call, r.pid, CASE WHEN s.seen_share > 0 THEN 3.0 * s.factor
	* (1.0 + s.error) END AS most_calls,
	r.ns / MAX(w.ns - r.ns, 1.0) AS part
FROM (SELECT w.call, p.pid, 1.0 * SUM(p.cpu_ns) AS ns FROM watch w
	JOIN process_slice p ON p.slice = w.slice WHERE p.cpu_ns > 0 GROUP BY w.call, p.pid) r
JOIN (SELECT pid, 1.0 * SUM(cpu_ns) AS ns FROM process_slice GROUP BY pid) w ON w.pid = r.pid
JOIN call_scale s ON s.call = r.call
JOIN watched_together t ON t.call = r.call
LEFT JOIN watched_process k ON k.pid = r.pid AND k.call = t.stands
WHERE NOT COALESCE(k.whole, 0);

-- Table call, added up over the slices and scaled where calls were missed (estimated 1); what was
-- always watched stays the exact integer. calls_error, bytes_error: 95 % bounds of those two: the
-- process's relative error, and that of k seen calls, 1.96 sqrt(k), for which else no site had a
-- bound of its own, less the part that was seen. Its root is one Newton step from a power of two
-- above, never too small. Of what only slices watched throughout saw, it is call_unseen's. error:
-- the relative one of the function's time.
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
		COALESCE(s.part, 0.0) AS seen_part,
		CASE WHEN p.calls < 4 THEN 2.0 WHEN p.calls < 16 THEN 4.0 WHEN p.calls < 64 THEN 8.0
			WHEN p.calls < 256 THEN 16.0 WHEN p.calls < 1024 THEN 32.0
			WHEN p.calls < 4096 THEN 64.0 WHEN p.calls < 16384 THEN 128.0
			WHEN p.calls < 65536 THEN 256.0 ELSE p.calls / 256.0 END AS above
	FROM part p LEFT JOIN process_scale s ON s.pid = p.pid AND s.call = p.call
),
bounded AS (
	SELECT f.*, CASE WHEN scaled AND calls > 0
		THEN error + (1.0 - seen_part) * 1.96 * (above + calls / above) / 2 / calls
		ELSE 0.0 END AS site_error
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
SELECT pid, call, stack_id, known_clearing, scaled OR unseen AS estimated, seen_calls, calls,
	failed,
	bytes, cpu_ns, timed_calls, map_cpu_ns, map_calls, faults, cleared_calls, cleared_bytes,
	cleared_cpu_ns, cleared_faults, mmapped_calls, nested_calls, slow_calls, slow_cpu_ns,
	-- where windows saw no call of the function at all, as many as they may have missed
	CASE WHEN unseen AND NOT any_scaled THEN COALESCE(most_calls / MAX(all_calls, 1), part)
		ELSE error END AS error,
	CAST(ROUND(CASE WHEN unseen THEN site_calls
		ELSE calls_error END) AS INTEGER) AS calls_error,
	CAST(ROUND(CASE WHEN unseen THEN site_calls * bytes / MAX(calls, 1) ELSE bytes_error END)
		AS INTEGER) AS bytes_error
FROM unseen;

-- How much of the recording's time each allocator function, and read_other, was watched: 1 where no
-- row of table watch says otherwise.
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

-- Functions of which, in some process, only those calls were seen that the thread's cache did not
-- answer (past_cache): all of blocks of more than cached_bytes, and of smaller ones a part.
CREATE VIEW cached_call AS
SELECT call, MAX(cached_bytes) AS cached_bytes, MIN(timed) AS timed FROM past_cache GROUP BY call;

-- Tolls whose calls, or faults, were not all watched, or looked at: their counts are estimates, and
-- are written as such; those of cached_call are lower bounds.
CREATE VIEW estimated_count AS
SELECT k.toll FROM thinning d JOIN (SELECT DISTINCT toll, 'fault' AS what FROM fault_class
	UNION VALUES ('file.read', 'read'), ('map', 'small_map')) k ON k.what = d.what
WHERE d.share >= 0.0005
UNION
SELECT 'alloc' FROM cached_call
UNION
SELECT DISTINCT t.column2 AS toll
FROM duty_cycle d JOIN (VALUES ('calloc', 'zero.libc'), ('*', 'alloc'), ('syscall', 'map'),
	('syscall', 'file.read'), ('read_other', 'file.read')) t
	ON t.column1 = d.call OR (t.column1 = '*' AND d.call NOT IN ('syscall', 'read_other'))
WHERE d.share < 0.9995
	AND (d.call IN ('syscall', 'read_other') OR d.call IN (SELECT call FROM call));

-- Of these, those of which no window saw anything, so that nothing stands for what came between:
-- what was counted while all was watched is the least that there was.
CREATE VIEW least_count AS
SELECT DISTINCT e.toll FROM estimated_count e
JOIN (VALUES ('calloc', 'zero.libc'), ('*', 'alloc')) t ON t.column2 = e.toll
JOIN call_scale s ON s.call = t.column1 OR (t.column1 = '*'
	AND s.call NOT IN ('syscall', 'read_other'))
GROUP BY e.toll HAVING MAX(s.seen_share) <= 0.0;

-- What each set of probes takes from the target when it is watched all the time: hits per second of
-- the program's own CPU time, and the cost as a part of the CPU time that would then be used.
-- hit_ns: the mean. What `memtoll doctor -p` predicts.
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
	UNION ALL SELECT CASE probe WHEN 'walk' THEN 8 WHEN 'syscall' THEN 7 WHEN 'map' THEN 5
		WHEN 'read' THEN 6
			WHEN 'read_other' THEN 6 ELSE 4 END,
		CASE probe WHEN 'walk' THEN 'stacks' WHEN 'syscall' THEN 'other syscalls'
			WHEN 'map' THEN 'mappings' WHEN 'read' THEN 'reads'
			WHEN 'read_other' THEN 'reads' ELSE 'faults' END, probe, SUM(hits)
	FROM hit WHERE probe IN ('walk', 'map', 'read', 'read_other', 'syscall', 'fault',
		'fault_end')
	GROUP BY probe
),
cost AS (
	SELECT c.position, c.probes,
		SUM(CASE c.probe WHEN 'fault_end' THEN 0 ELSE c.hits END) AS hits,
		SUM(c.hits * COALESCE(p.hit_ns, 0.0)) AS ns
	FROM counted c LEFT JOIN probe_cost p ON p.probe = c.probe GROUP BY c.position, c.probes
)
SELECT c.position, c.probes, c.hits, 1e9 * c.hits / o.ns AS hits_per_s,
	CASE WHEN c.hits > 0 THEN c.ns / c.hits ELSE 0.0 END AS hit_ns,
	100.0 * c.ns / (o.ns + c.ns) AS cost_pct
FROM cost c JOIN own o;
