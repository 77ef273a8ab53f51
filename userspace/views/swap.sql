-- SPDX-License-Identifier: GPL-2.0
--
-- swap.sql: why pages come back from swap: the memory that may be used against what is in use, and
-- how each allocation is gone over. Follows tolls.sql.

-- Where the pages that came back were found. Faults; readahead_pages: brought in and not (yet)
-- used, NULL where this kernel does not tell each page.
CREATE VIEW swap_source AS
SELECT
	COALESCE(SUM(CASE class WHEN 'swap_minor' THEN pages END), 0) AS cache_pages,
	COALESCE(SUM(CASE class WHEN 'swap_major' THEN pages END), 0) AS device_pages,
	COALESCE(SUM(CASE class WHEN 'swap_zram_major' THEN pages END), 0) AS zram_pages,
	COALESCE(SUM(CASE class WHEN 'swap_zswap_major' THEN pages END), 0) AS zswap_pages,
	COALESCE(SUM(CASE class WHEN 'swap_zero_major' THEN pages END), 0) AS zero_pages,
	CASE WHEN (SELECT value FROM meta WHERE key = 'swap_in_counted') = '1'
		THEN MAX(0, (SELECT COALESCE(SUM(pages), 0) FROM swap WHERE pid > 0
			AND what LIKE 'in!_%' ESCAPE '!')
			- COALESCE(SUM(CASE WHEN class LIKE 'swap!_%' ESCAPE '!' THEN pages END),
				0))
	END AS readahead_pages,
	COALESCE(SUM(CASE WHEN class LIKE 'swap!_%' ESCAPE '!' THEN blocked_ns END),
		0) AS blocked_ns
FROM process_fault;

-- One row: the memory that the target may use, had at most, and would need. rss and swap: peaks of
-- the sums over all processes at the ends of slices (memory that processes share counts in each).
-- Shared memory that is swapped is in no process's swap_bytes: it is what of it went out and did
-- not come back, freed or not.
--
-- fits_bytes, the limit at which swap-ins would stop. What has to be resident at once is what was,
-- and what was out although it was wanted again. Each page that came back was wanted; of them no
-- more were out at one time than came back at all, than were ever out, and than what was held in
-- all exceeds what was resident: limit + min(came_back, swap_peak, held_peak - rss_peak). Too high,
-- rather than too low, where much was resident that was not wanted, or where phases of the program
-- use different memory.
--
-- seen_once: of a process that ran before, pages came back about once: how much it goes over is not
-- known. Then the gauge of what is out bounds what was wanted; of shared memory there is none, and
-- fits_bytes is NULL.
--
-- woke: what came back had been pushed out by others, or before, came back about once, and next to
-- nothing went out for it: all of it fits, and no limit is to blame. fits_bytes is then what was
-- resident, and all that came back was out at one time.
--
-- limit_bytes: of the cgroup. The machine's memory is a limit only of whoever uses most of it.
CREATE VIEW memory AS
WITH
begun AS MATERIALIZED (	-- from when on pages come back, but for stray ones
	SELECT MIN(slice) AS slice FROM (
		SELECT slice, SUM(SUM(pages)) OVER (ORDER BY slice) AS so_far,
			SUM(SUM(pages)) OVER () AS pages
		FROM fault WHERE class LIKE 'swap!_%' ESCAPE '!' GROUP BY slice)
	WHERE 20 * so_far >= pages
),
shared AS MATERIALIZED (	-- several processes may wait for a page that comes once
	SELECT slice, (went - MIN(came, COALESCE(brought, came))) * 4096 AS bytes FROM (
		SELECT slice, SUM(SUM(went)) OVER so_far AS went,
			SUM(SUM(came)) OVER so_far AS came,
			SUM(SUM(brought)) OVER so_far AS brought
		FROM (
			SELECT slice, CASE what WHEN 'shared_out' THEN pages ELSE 0 END AS went,
				0 AS came, CASE WHEN what LIKE 'in!_%' ESCAPE '!' THEN pages END
					AS brought
			FROM swap WHERE pid > 0
				AND EXISTS (SELECT 1 FROM swap WHERE what = 'shared_out')
			UNION ALL SELECT slice, 0, pages, NULL FROM fault
			WHERE EXISTS (SELECT 1 FROM swap WHERE what = 'shared_out')
				AND area = 'shared' AND class LIKE 'swap!_%' ESCAPE '!')
		GROUP BY slice WINDOW so_far AS (ORDER BY slice))
),
change(slice, rss, swapped) AS (
	SELECT slice, rss_bytes - COALESCE(LAG(rss_bytes) OVER life, 0),
		COALESCE(swap_bytes, 0) - COALESCE(LAG(swap_bytes) OVER life, 0)
	FROM process_slice WHERE rss_bytes IS NOT NULL
	WINDOW life AS (PARTITION BY pid ORDER BY slice)
	UNION ALL	-- a process that has ended holds nothing any more
	SELECT (SELECT MIN(s.slice) FROM slice s WHERE s.start_ns >= p.end_ns
		AND s.slice > l.slice),
		-l.rss_bytes, -COALESCE(l.swap_bytes, 0)
	FROM process p JOIN (
		SELECT pid, rss_bytes, swap_bytes, MAX(slice) AS slice FROM process_slice
		WHERE rss_bytes IS NOT NULL GROUP BY pid) l ON l.pid = p.pid
	WHERE p.end_ns IS NOT NULL
	UNION ALL	-- what came back and had not gone out before was out at the start
	SELECT slice, NULL, bytes - LAG(bytes, 1, (SELECT MIN(0, MIN(bytes)) FROM shared))
		OVER (ORDER BY slice) FROM shared
),
held AS (
	SELECT slice, SUM(SUM(rss)) OVER (ORDER BY slice) AS rss,
		SUM(SUM(swapped)) OVER (ORDER BY slice) AS swapped
	FROM change WHERE slice IS NOT NULL GROUP BY slice
),
bound AS MATERIALIZED (
	SELECT limit_bytes, limit_path, version, swap_limit_bytes FROM memory_cgroup
	WHERE limit_bytes IS NOT NULL AND path IN (SELECT memory_cgroup FROM process)
	ORDER BY limit_bytes, path LIMIT 1
),
back AS MATERIALIZED (
	-- shared memory from before, which may have been out from the start: all that came back of
	-- it is there at one time
	SELECT CASE WHEN SUM(CASE area WHEN 'shared' THEN distinct_pages - first_pages END) > 0
			THEN SUM(CASE area WHEN 'shared' THEN distinct_pages END) * 4096
			ELSE 0 END AS shared_bytes,
		COALESCE(SUM(distinct_pages), 0) * 4096 AS bytes,
		COALESCE(SUM(untracked_pages), 0) AS untracked_pages,
		COALESCE(SUM(first_pages), 0) * 4096 AS first_bytes,
		COALESCE(SUM(in_pages), 0) AS in_pages,
		2 * SUM(in_pages) < 3 * SUM(distinct_pages)
		AND NOT EXISTS (SELECT 1 FROM not_captured WHERE toll = 'swap.out')
		AND 4 * (SELECT COALESCE(SUM(pages), 0)
			FROM swap WHERE what IN ('out_self', 'out_traced', 'out_kswapd')
			AND pid > 0 AND slice >= (SELECT slice FROM begun))
			< SUM(in_pages) AS woke,
		(SELECT ran FROM begun_before)
			AND 2 * SUM(in_pages) < 3 * SUM(distinct_pages) AS seen_once
	FROM access
),
peak AS MATERIALIZED (
	SELECT rss_bytes, MAX(swap_bytes, extra) AS swap_bytes,
		MAX(held_bytes, rss_bytes + extra) AS held_bytes
	FROM (
		SELECT h.*, b.shared_bytes - MIN(h.rss_bytes, COALESCE(
			(SELECT limit_bytes FROM bound), h.rss_bytes)) AS extra
		FROM (SELECT MAX(rss) AS rss_bytes, MAX(swapped) AS swap_bytes,
			MAX(rss + swapped) AS held_bytes FROM held) h JOIN back b)
),
net AS MATERIALIZED (	-- out and not back, where no gauge was read: memory freed while out is in
			-- it
	SELECT MAX(0, COALESCE(SUM(CASE WHEN what LIKE 'out%' THEN pages END), 0)
		- (SELECT in_pages FROM back)) * 4096 AS bytes
	FROM swap WHERE pid > 0
),
machine AS (SELECT CAST(value AS INTEGER) AS bytes FROM meta WHERE key = 'memory_bytes')
SELECT
	COALESCE(b.limit_bytes, CASE WHEN 2 * p.held_bytes >= m.bytes THEN m.bytes END)
		AS limit_bytes, b.limit_path, b.version AS cgroup_version,
	b.swap_limit_bytes, m.bytes AS machine_bytes, p.rss_bytes AS rss_peak_bytes,
	CASE WHEN k.woke THEN MAX(COALESCE(p.swap_bytes, 0), k.bytes)
		WHEN k.seen_once THEN MAX(COALESCE(p.swap_bytes, n.bytes), k.shared_bytes)
		ELSE COALESCE(p.swap_bytes, n.bytes) END AS swap_peak_bytes,
	k.bytes AS came_back_bytes,
	k.first_bytes AS first_touched_bytes, k.untracked_pages,
	COALESCE(k.seen_once, 0) AS seen_once, COALESCE(k.woke, 0) AS woke,
	CASE WHEN k.woke THEN MAX(p.rss_bytes, k.bytes)
	WHEN k.in_pages > 0 AND NOT (k.seen_once AND k.shared_bytes > 0)
		THEN COALESCE(b.limit_bytes, CASE WHEN 2 * p.held_bytes >= m.bytes THEN m.bytes END,
			p.rss_bytes)
			+ MIN(CASE WHEN k.seen_once THEN 9e18 ELSE k.bytes END,
			COALESCE(MIN(p.swap_bytes, p.held_bytes - p.rss_bytes), n.bytes))
		END AS fits_bytes
FROM peak p JOIN back k JOIN net n LEFT JOIN bound b LEFT JOIN machine m;

-- How each allocation site, or area outside of allocations, is gone over. returns: how often a page
-- that came back did so on average. pattern:
--   fits           nothing of it, or next to nothing, came back from swap
--   one-pass sweep the same, but it cannot be held: more than the limit, touched in order
--   one pass       the same, touched in no order
--   cyclic sweep   pages came back in order: each pass pushes out what the next one needs first
--   random         pages came back in no order
--   back once      what had been pushed out came back, and nothing went out for it (memory.woke)
CREATE VIEW access_pattern AS
SELECT ROW_NUMBER() OVER (ORDER BY in_pages DESC, first_pages DESC, call, allocated_stack, area,
		area_name) AS rank, *,
	CASE WHEN 20 * in_pages >= MAX(first_pages, distinct_pages, 1) THEN
		CASE WHEN woke THEN 'back once'
			WHEN 10 * in_sequential_pages >= 7 * in_pages THEN 'cyclic sweep'
			ELSE 'random' END
	WHEN limit_bytes IS NULL OR first_pages * 4096 <= limit_bytes THEN 'fits'
	WHEN 10 * first_sequential_pages >= 7 * first_pages THEN 'one-pass sweep'
	ELSE 'one pass' END AS pattern
FROM (
	SELECT a.call, a.allocated_stack, a.area, a.area_name, SUM(a.first_pages) AS first_pages,
		SUM(a.first_sequential_pages) AS first_sequential_pages,
			SUM(a.in_pages) AS in_pages,
		SUM(a.in_sequential_pages) AS in_sequential_pages,
		SUM(a.distinct_pages) AS distinct_pages, MAX(a.max_returns) AS max_returns,
		SUM(a.untracked_pages) AS untracked_pages,
		CASE WHEN SUM(a.distinct_pages) > 0
			THEN 1.0 * (SUM(a.in_pages) - SUM(a.untracked_pages))
				/ SUM(a.distinct_pages)
			ELSE 0.0 END AS returns,
		m.limit_bytes, m.woke
	FROM access a JOIN memory m
	GROUP BY a.call, a.allocated_stack, a.area, a.area_name);
