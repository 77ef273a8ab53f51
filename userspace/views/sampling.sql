-- SPDX-License-Identifier: GPL-2.0
--
-- sampling.sql: what --sample estimates of blocks below min_size_bytes. Follows scaling.sql.

-- Bytes, and what of them lives at the end, by function and stack, with 95 % bounds: 1.96 standard
-- errors and, for sites of which few were chosen, where a Poisson variable is lopsided, half of
-- 1.96^2 mean weights. Where calls were watched in windows only, scaled as call_estimate is, and
-- what no window saw is bounded as there (call_unseen: most_calls are chosen ones here).
-- live_bytes: NULL where frees were missed. Numbers of calls are not estimated: those of blocks too
-- small to be chosen even once would be missing, and no bound could say how many they are.
CREATE VIEW sample_estimate AS
WITH
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
deviation AS (
	SELECT *, (SELECT root FROM square_root WHERE v = bytes_v) AS bytes_d,
		(SELECT root FROM square_root WHERE v = live_v) AS live_d
	FROM part
)
SELECT p.call, p.stack_id, p.chosen, CAST(ROUND(p.bytes) AS INTEGER) AS bytes,
	CAST(ROUND(1.96 * p.bytes_d + 1.92 * p.bytes / MAX(p.chosen, 1) + p.bytes_scale_error
		+ CASE WHEN p.scaled OR u.call IS NULL THEN 0.0
			ELSE COALESCE(u.most_calls, MAX(3.0, p.chosen * u.part)) * p.bytes
				/ MAX(p.chosen, 1) END)
		AS INTEGER) AS bytes_error,
	CASE WHEN m.missed THEN NULL
		ELSE CAST(ROUND(MAX(0.0, p.live)) AS INTEGER) END AS live_bytes,
	CASE WHEN m.missed THEN NULL ELSE CAST(ROUND(1.96 * p.live_d + 1.92 * p.bytes
		/ MAX(p.chosen, 1)) AS INTEGER) END AS live_bytes_error
FROM deviation p
LEFT JOIN (SELECT call, MAX(most_calls) AS most_calls, MAX(part) AS part FROM call_unseen
	GROUP BY call) u
	ON u.call = p.call
JOIN (SELECT EXISTS (SELECT 1 FROM watch WHERE call = 'free') AS missed) m;
