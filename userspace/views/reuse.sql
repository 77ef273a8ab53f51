-- SPDX-License-Identifier: GPL-2.0
--
-- reuse.sql: what more cache or memory would save. Follows swap.sql, of whose view memory it makes
-- use, and reads.sql.

-- "With so much more memory, so many fewer swap-ins." Pages that were touched and never came back
-- are taken to be in use all the time, as far as they fit: they need room beside those that come
-- back.
CREATE VIEW swap_saved AS
SELECT more_bytes, MAX(saved) AS saved
FROM (
	SELECT MAX(0.0, c.cache_bytes + MIN(m.limit_bytes, MAX(0.0, r.different * r.block_bytes
			- m.came_back_bytes)) - m.limit_bytes) AS more_bytes,
		1.0 - c.miss_ratio AS saved
	FROM miss_ratio c JOIN reuse r ON r.subject = c.subject JOIN memory m
	WHERE c.subject = 'swap' AND c.cache_bytes > 0 AND m.limit_bytes IS NOT NULL)
GROUP BY more_bytes;

-- Every figure of reads that the sentences use, one row. The pool that is advised: what the
-- furthest re-read needs beside the cache that is there, a sixteenth more for its own bookkeeping,
-- rounded up.
CREATE VIEW read_measure AS
WITH
total AS MATERIALIZED (
	SELECT SUM(calls) AS calls, SUM(bytes) AS bytes, SUM(time_ns) AS time_ns,
		SUM(blocked_ns) AS blocked_ns, SUM(cached_bytes) AS cached_bytes,
		SUM(direct_bytes) AS direct_bytes FROM files
),
top AS MATERIALIZED (SELECT * FROM files WHERE rank = 1),
whole AS MATERIALIZED (SELECT * FROM file_reuse WHERE file = 0),
own AS MATERIALIZED (	-- of the process that read most, or has most on swap
	SELECT o.* FROM own_cache o LEFT JOIN (
		SELECT pid, SUM(bytes) AS bytes FROM file_read GROUP BY pid) r ON r.pid = o.pid
	ORDER BY r.bytes IS NULL, r.bytes DESC, o.bytes DESC, o.pid LIMIT 1
),
needed AS MATERIALIZED (
	SELECT w.enough_bytes AS bytes,
		(w.enough_bytes + COALESCE(o.bytes, 0)) * 17 / 16 AS pool_bytes
	FROM whole w LEFT JOIN own o
),
small AS MATERIALIZED (	-- saved by what every cache holds: a header that is looked at each time
	SELECT COALESCE(MAX(1 - c.miss_ratio), 0.0) AS saved FROM miss_ratio c JOIN whole w
	WHERE c.subject = 'files' AND c.cache_bytes <= MAX(65536, w.enough_bytes / 64)
),
half AS MATERIALIZED (	-- where half of what is read again, but for that, would be gone
	SELECT MIN(c.cache_bytes) AS bytes FROM miss_ratio c JOIN whole w JOIN small s
	WHERE c.subject = 'files' AND c.cache_bytes > MAX(65536, w.enough_bytes / 64)
		AND 1 - c.miss_ratio >= 0.5 * (w.again_share + s.saved)
)
SELECT t.calls AS read_calls, t.bytes AS read_bytes, t.time_ns AS read_ns,
	t.blocked_ns AS read_blocked_ns, t.cached_bytes AS read_cached_bytes,
	-- time that went to bytes that were not in the page cache
	CASE WHEN t.bytes > 0 THEN MAX(t.blocked_ns, t.time_ns
		* (1.0 - 1.0 * t.cached_bytes / t.bytes))
		ELSE 0.0 END AS read_uncached_ns,
	p.path AS read_path, p.time_ns / MAX(t.time_ns, 1.0) AS read_path_share,
	w.reread_factor, w.low AS reread_low, w.high AS reread_high, w.again_share AS reread_share,
	w.different_bytes AS read_different_bytes, n.bytes AS reread_enough_bytes,
		h.bytes AS reread_half_bytes,
	CAST((CASE WHEN n.pool_bytes >= 1073741824
		THEN (CAST(n.pool_bytes AS INTEGER) / 134217728 + 1) * 134217728
		ELSE (CAST(n.pool_bytes AS INTEGER) / 16777216 + 1)
			* 16777216 END) AS INTEGER) AS pool_bytes,
	o.program AS own_program, o.setting AS own_setting, o.bytes AS own_bytes,
		o.source AS own_source,
	(SELECT MIN(more_bytes) FROM swap_saved WHERE saved >= 0.5) AS swap_half_bytes,
	(SELECT MIN(more_bytes) FROM swap_saved
		WHERE saved >= (SELECT 0.99 * MAX(saved) FROM swap_saved)) AS swap_most_bytes,
	(SELECT 0.99 * MAX(saved) FROM swap_saved) AS swap_most_saved
FROM total t LEFT JOIN top p LEFT JOIN whole w LEFT JOIN needed n LEFT JOIN half h LEFT JOIN own o;
