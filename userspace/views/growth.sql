-- SPDX-License-Identifier: GPL-2.0
--
-- growth.sql: blocks that realloc makes larger a little at a time. Follows latency.sql.

-- By process, function and stack, the dearest first. Sizes were known of what is followed; where
-- calls were watched in windows the counts are scaled as all calls of the site are. step: by how
-- much a call makes its block larger; size: what is asked for on average; small: the step is so
-- much less than the block that growth is not by a factor (one sixteenth; containers grow by an
-- eighth and more). copied_bytes: what was in blocks that came to another place, but for those that
-- mremap moved. inside_ns: faults and mapping calls in those calls; touch_ns: of it, first
-- touches. storm_ns: what is given back and comes again in calls of the same function, those inside
-- with it; or, where the function was not watched then, seems to.
CREATE VIEW growth_site AS
WITH
grown(call) AS (VALUES ('realloc'), ('reallocarray')),
seen AS MATERIALIZED (
	SELECT pid, call, stack_id, SUM(calls) AS calls, SUM(bytes) AS bytes,
		SUM(grown_calls) AS grown_calls, SUM(grown_bytes) AS grown_bytes,
		SUM(copied_calls) AS copied_calls, SUM(copied_bytes) AS copied_bytes
	FROM call WHERE call IN (SELECT call FROM grown)
	GROUP BY pid, call, stack_id HAVING SUM(grown_calls) > 0
),
cost AS MATERIALIZED (
	SELECT pid, call, stack_id, SUM(calls) AS calls, SUM(alloc_ns) AS alloc_ns
	FROM call_cost WHERE call IN (SELECT call FROM grown) GROUP BY pid, call, stack_id
),
inside AS MATERIALIZED (
	SELECT pid, call, stack_id, SUM(ns) AS ns, SUM(CASE toll WHEN 'zero.kernel' THEN ns
		ELSE 0.0 END) AS touch_ns FROM (
		SELECT f.pid, f.in_call AS call, f.allocated_stack AS stack_id,
			f.faults * p.mean_ns + f.blocked_ns
				+ (f.faults - f.timed_faults) * p.blocked_mean_ns AS ns, p.toll
		FROM fault f JOIN fault_price p ON p.class = f.class
		WHERE f.in_call IN (SELECT call FROM grown)
		UNION ALL
		SELECT pid, in_call, stack_id, MAX(0.0, net_ns), toll
		FROM map_cost WHERE in_call IN (SELECT call FROM grown))
	GROUP BY pid, call, stack_id
),
scaled AS (
	SELECT s.pid, s.call, s.stack_id, s.grown_calls >= 16 AS often,
		1.0 * s.grown_bytes / s.grown_calls AS step,
		1.0 * s.bytes / MAX(s.calls, 1) AS size,
		s.grown_calls * f.factor AS grown_calls, s.copied_calls * f.factor AS copied_calls,
		s.copied_bytes * f.factor AS copied_bytes, COALESCE(c.alloc_ns, 0.0) AS alloc_ns,
		COALESCE(i.ns, 0.0) * f.factor AS inside_ns,
		COALESCE(i.touch_ns, 0.0) * f.factor AS touch_ns
	FROM seen s LEFT JOIN cost c ON c.pid = s.pid AND c.call = s.call
		AND c.stack_id = s.stack_id
	JOIN (SELECT s.pid, s.call, s.stack_id,
			MAX(1.0, COALESCE(1.0 * c.calls / MAX(s.calls, 1), 1.0)) AS factor
		FROM seen s LEFT JOIN cost c ON c.pid = s.pid AND c.call = s.call
			AND c.stack_id = s.stack_id) f
		ON f.pid = s.pid AND f.call = s.call AND f.stack_id = s.stack_id
	LEFT JOIN inside i ON i.pid = s.pid AND i.call = s.call AND i.stack_id = s.stack_id
),
stormy AS (
	SELECT s.*, COALESCE((SELECT SUM(t.time_ns) FROM giveback_storm t WHERE t.pid = s.pid
		AND t.storm AND (t.got_call = s.call
			OR (t.got_call = '' AND 2 * s.inside_ns >= t.again_ns))), 0.0) AS storm_ns
	FROM scaled s
)
SELECT ROW_NUMBER() OVER (ORDER BY alloc_ns + MAX(inside_ns, storm_ns) DESC, copied_bytes DESC, pid,
		call, stack_id) AS rank,
	pid, call, stack_id, often AND 16.0 * step <= size AS small, step, size, grown_calls,
	copied_calls, copied_bytes, alloc_ns, inside_ns, touch_ns, storm_ns,
	alloc_ns + MAX(inside_ns, storm_ns) AS time_ns
FROM stormy;

-- The dearest that grows in small steps, for the figures of the advice: one row, NULL without.
-- growth_touch_ns: of growth_inside_ns, first touches of what is not given back and comes again, at
-- most.
CREATE VIEW growth_measure AS
SELECT g.call AS growth_call,
	(SELECT p.caller FROM stack_place p WHERE p.stack_id = g.stack_id) AS growth_place,
	g.step AS growth_step, g.size AS growth_size, CAST(ROUND(g.grown_calls) AS INTEGER)
		AS growth_calls,
	CAST(ROUND(g.copied_calls) AS INTEGER) AS growth_copied_calls,
	g.copied_bytes AS growth_copied, COALESCE(g.alloc_ns, 0.0) AS growth_alloc_ns,
	COALESCE(g.inside_ns, 0.0) AS growth_inside_ns, g.storm_ns > g.inside_ns AS growth_storm,
	COALESCE(MIN(g.touch_ns, MAX(0.0, g.inside_ns - g.storm_ns)), 0.0) AS growth_touch_ns,
	COALESCE(g.time_ns, 0.0) AS growth_ns, COALESCE(g.small, 0) AS growth
FROM (SELECT 1) LEFT JOIN (SELECT * FROM growth_site WHERE small ORDER BY rank LIMIT 1) g;
