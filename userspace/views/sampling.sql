-- SPDX-License-Identifier: GPL-2.0
--
-- sampling.sql: what --sample estimates of blocks below min_size_bytes. Follows scaling.sql.

-- Bytes, and what of them lives at the end, by function and stack, with 95 % bounds: 1.96 standard errors
-- and, for sites of which few were chosen, where a Poisson variable is lopsided, half of 1.96^2 mean
-- weights. Where calls were watched in windows only, scaled as call_estimate is, and what no window saw is
-- bounded as there (call_unseen: most_calls are chosen ones here). live_bytes: NULL
-- where frees were missed. Numbers of calls are not told: those of blocks too small to be chosen even
-- once would be missing, and no bound could say how many they are.
CREATE VIEW sample_estimate AS
WITH RECURSIVE
part AS (
	SELECT s.call, s.stack_id, SUM(s.chosen) AS chosen,
		SUM(s.bytes * COALESCE(f.factor, 1.0)) AS bytes,
		SUM(s.bytes_variance * COALESCE(f.factor * f.factor, 1.0)) AS bytes_v,
		SUM(COALESCE(f.factor * f.error, 0.0) * s.bytes) AS bytes_scale_error,
		SUM(s.bytes - s.freed_bytes) AS live, MAX(w.slice IS NOT NULL) AS scaled,
		MAX(0.0, SUM(s.bytes_variance - s.freed_bytes_variance)) AS live_v
	FROM sampled s LEFT JOIN watch w ON w.slice = s.slice AND w.call = s.call
	LEFT JOIN call_scale f ON f.call = w.call
	GROUP BY s.call, s.stack_id
),
wanted AS (
	SELECT call, stack_id, 2 AS what, bytes_v AS v FROM part
	UNION ALL SELECT call, stack_id, 3, live_v FROM part
),
root(call, stack_id, what, v, x, step) AS (
	SELECT call, stack_id, what, v, v + 1.0, 0 FROM wanted
	UNION ALL SELECT call, stack_id, what, v, (x + v / x) / 2, step + 1
	FROM root WHERE step < 70 AND v > 0
),
deviation AS (
	SELECT call, stack_id, MIN(CASE WHEN what = 2 THEN x END) AS bytes_d,
		MIN(CASE WHEN what = 3 THEN x END) AS live_d
	FROM root GROUP BY call, stack_id
)
SELECT p.call, p.stack_id, p.chosen, CAST(ROUND(p.bytes) AS INTEGER) AS bytes,
	CAST(ROUND(1.96 * d.bytes_d + 1.92 * p.bytes / MAX(p.chosen, 1) + p.bytes_scale_error
		+ CASE WHEN p.scaled OR u.call IS NULL THEN 0.0
			ELSE COALESCE(u.most_calls, MAX(3.0, p.chosen * u.part)) * p.bytes / MAX(p.chosen, 1) END)
		AS INTEGER) AS bytes_error,
	CASE WHEN m.missed THEN NULL ELSE CAST(ROUND(MAX(0.0, p.live)) AS INTEGER) END AS live_bytes,
	CASE WHEN m.missed THEN NULL ELSE CAST(ROUND(1.96 * d.live_d + 1.92 * p.bytes
		/ MAX(p.chosen, 1)) AS INTEGER) END AS live_bytes_error
FROM part p JOIN deviation d ON d.call = p.call AND d.stack_id = p.stack_id
LEFT JOIN (SELECT call, MAX(most_calls) AS most_calls, MAX(part) AS part FROM call_unseen GROUP BY call) u
	ON u.call = p.call
JOIN (SELECT EXISTS (SELECT 1 FROM watch WHERE call = 'free') AS missed) m;
