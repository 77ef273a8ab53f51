-- SPDX-License-Identifier: GPL-2.0
--
-- figures.sql: every figure that the verdict and the advice speak of, gathered once (measure) and
-- made text in human units (figure). Follows swap.sql.

-- The largest site of each toll, and what a sentence calls its two places. For a mapping call the program
-- itself is the code, and for an allocation the caller.
CREATE VIEW top_site AS
SELECT t.toll, t.call, t.allocated_stack, t.touched_stack, t.area, t.known_clearing, t.time_ns, t.share,
	t.bytes, t.count,
	(SELECT CASE t.toll WHEN 'map' THEN p.code ELSE p.caller END
		FROM stack_place p WHERE p.stack_id = t.allocated_stack) AS allocated_place,
	(SELECT p.code FROM stack_place p WHERE p.stack_id = t.touched_stack) AS touched_place
FROM (
	SELECT *, ROW_NUMBER() OVER (PARTITION BY toll ORDER BY rank) AS number FROM sites
) t WHERE t.number = 1;

-- Every figure the sentences use, one row. each: per call.
CREATE VIEW measure AS
WITH
t AS MATERIALIZED (		-- one row each, so that each view is mentioned once
	SELECT
		MAX(CASE toll WHEN 'zero.kernel' THEN time_ns END) AS kernel_ns,
		MAX(CASE toll WHEN 'zero.kernel' THEN clear_ns END) AS kernel_clear_ns,
		MAX(CASE toll WHEN 'zero.kernel' THEN bytes END) AS kernel_bytes,
		MAX(CASE toll WHEN 'zero.kernel' THEN count END) AS kernel_faults,
		MAX(CASE toll WHEN 'zero.libc' THEN time_ns END) AS all_libc_ns,
		MAX(CASE toll WHEN 'zero.libc' THEN bytes END) AS all_libc_bytes,
		MAX(CASE toll WHEN 'zero.app' THEN time_ns END) AS app_ns,
		MAX(CASE toll WHEN 'zero.app' THEN count END) AS app_samples,
		MAX(CASE toll WHEN 'map' THEN time_ns END) AS map_ns,
		MAX(CASE toll WHEN 'map' THEN count END) AS map_calls,
		MAX(CASE toll WHEN 'alloc' THEN time_ns END) AS alloc_ns,
		MAX(CASE toll WHEN 'alloc' THEN count END) AS alloc_calls,
		MAX(CASE toll WHEN 'swap.in' THEN time_ns END) AS swap_ns,
		MAX(CASE toll WHEN 'swap.in' THEN count END) AS swap_faults,
		MAX(CASE toll WHEN 'swap.in' THEN bytes END) AS swap_bytes,
		MAX(CASE toll WHEN 'cow' THEN time_ns END) AS cow_ns,
		MAX(CASE toll WHEN 'cow' THEN count END) AS cow_faults,
		MAX(CASE toll WHEN 'cow' THEN bytes END) AS cow_bytes,
		MAX(CASE toll WHEN 'file.fault' THEN time_ns END) AS file_ns,
		MAX(CASE toll WHEN 'file.fault' THEN count END) AS file_faults
	FROM toll
),
s AS MATERIALIZED (
	SELECT
		MAX(CASE toll WHEN 'zero.libc' THEN allocated_place END) AS all_libc_place,
		MAX(CASE toll WHEN 'zero.app' THEN touched_place END) AS app_place,
		MAX(CASE toll WHEN 'zero.kernel' THEN call END) AS kernel_call,
		MAX(CASE toll WHEN 'zero.kernel' THEN allocated_stack END) AS kernel_stack,
		MAX(CASE toll WHEN 'zero.kernel' THEN allocated_place END) AS kernel_place,
		MAX(CASE toll WHEN 'zero.kernel' THEN touched_place END) AS kernel_touched,
		MAX(CASE toll WHEN 'zero.kernel' THEN count END) AS kernel_site_faults,
		MAX(CASE toll WHEN 'zero.kernel' THEN bytes END) AS kernel_site_bytes,
		MAX(CASE toll WHEN 'zero.kernel' THEN time_ns END) AS kernel_site_ns,
		MAX(CASE toll WHEN 'map' THEN call END) AS map_call,
		MAX(CASE toll WHEN 'map' THEN allocated_place END) AS map_place,
		MAX(CASE toll WHEN 'alloc' THEN call END) AS alloc_call,
		MAX(CASE toll WHEN 'alloc' THEN allocated_stack END) AS alloc_stack,
		MAX(CASE toll WHEN 'alloc' THEN allocated_place END) AS alloc_place,
		MAX(CASE toll WHEN 'swap.in' THEN touched_place END) AS swap_place,
		MAX(CASE toll WHEN 'swap.in' THEN call END) AS swap_call,
		MAX(CASE toll WHEN 'swap.in' THEN allocated_place END) AS swap_made,
		MAX(CASE toll WHEN 'cow' THEN touched_place END) AS cow_place,
		MAX(CASE toll WHEN 'file.fault' THEN touched_place END) AS file_place,
		MAX(CASE toll WHEN 'file.read' THEN touched_place END) AS read_place,
		MAX(CASE toll WHEN 'compute' THEN touched_place END) AS compute_place
	FROM top_site
),
f AS MATERIALIZED (
	SELECT
		MAX(CASE rank WHEN 1 THEN family END) AS first_family,
		MAX(CASE rank WHEN 1 THEN share END) AS first_share,
		MAX(CASE rank WHEN 1 THEN low END) AS first_low,
		MAX(CASE rank WHEN 1 THEN high END) AS first_high,
		MAX(CASE rank WHEN 1 THEN main_toll END) AS first_toll,
		MAX(CASE rank WHEN 2 THEN family END) AS second_family,
		MAX(CASE rank WHEN 2 THEN share END) AS second_share,
		MAX(CASE rank WHEN 2 THEN low END) AS second_low,
		MAX(CASE rank WHEN 2 THEN high END) AS second_high,
		COALESCE(MAX(CASE family WHEN 'zeroing' THEN share END), 0.0) AS zeroing_share,
		COALESCE(MAX(CASE family WHEN 'swap' THEN share END), 0.0) AS swap_share,
		COALESCE(MAX(CASE family WHEN 'cow' THEN share END), 0.0) AS cow_share,
		COALESCE(MAX(CASE family WHEN 'file' THEN share END), 0.0) AS file_share,
		COALESCE(MAX(CASE family WHEN 'allocator' THEN share END), 0.0) AS allocator_share,
		COALESCE(MAX(CASE family WHEN 'mapping' THEN share END), 0.0) AS mapping_share
	FROM family
),
cc AS MATERIALIZED (SELECT * FROM call_cost),
-- The place whose callocs libc clears most for, where the rule of clearing is known. By place, not by
-- stack: each process has stacks of its own.
libc AS MATERIALIZED (
	SELECT place, MIN(pid) AS pid, SUM(calls) AS calls, SUM(cleared_calls) AS cleared_calls,
		SUM(cleared_bytes) AS cleared_bytes, SUM(bytes) AS bytes, SUM(zero_libc_ns) AS time_ns,
		SUM(SUM(cleared_bytes)) OVER () AS all_bytes
	FROM (
		SELECT c.pid, c.calls, c.cleared_calls, c.cleared_bytes, c.bytes, c.zero_libc_ns,
			COALESCE((SELECT p.caller FROM stack_place p
				WHERE p.stack_id = c.stack_id), '') AS place
		FROM cc c WHERE c.known_clearing AND c.cleared_calls > 0)
	GROUP BY place ORDER BY SUM(zero_libc_ns) DESC, place LIMIT 1
),
threshold AS MATERIALIZED (
	SELECT mmap_threshold_low AS low, mmap_threshold_high AS high, dynamic FROM allocator
	WHERE kind = 'glibc' AND pid = (SELECT pid FROM libc)
	ORDER BY mmap_threshold_low IS NULL, module LIMIT 1
),
twice AS MATERIALIZED (
	SELECT COALESCE(SUM(CASE in_call WHEN 'calloc' THEN pages END), 0) * 4096
		AS twice_calloc_bytes,
		COALESCE(SUM(CASE in_call WHEN 'calloc' THEN cpu_ns + blocked_ns END), 0.0)
			AS twice_calloc_ns,
		COALESCE(SUM(CASE in_call WHEN '' THEN pages END), 0) * 4096 AS twice_app_bytes,
		COALESCE(SUM(CASE in_call WHEN '' THEN cpu_ns + blocked_ns END), 0.0)
			AS twice_app_ns
	FROM process_fault_time WHERE toll = 'zero.kernel' AND writes_page AND in_memset
),
pushed AS MATERIALIZED (	-- reclaim, and what was pushed out to swap
	SELECT COALESCE(SUM(CASE WHEN what LIKE 'reclaim%' THEN count END), 0) AS reclaim_count,
		COALESCE(SUM(CASE WHEN what LIKE 'reclaim%' THEN cpu_ns + blocked_ns END), 0)
			AS reclaim_ns,
		2 * COALESCE(SUM(CASE what WHEN 'reclaim_memcg' THEN count END), 0)
			> COALESCE(SUM(CASE WHEN what LIKE 'reclaim%' THEN count END), 0)
			AS reclaim_cgroup,
		COALESCE(SUM(CASE WHEN what LIKE 'out%' THEN pages END), 0) AS out_pages,
		COALESCE(SUM(CASE WHEN what IN ('out_self', 'out_traced') THEN pages END), 0)
			AS out_self,
		COALESCE(SUM(CASE what WHEN 'out_other' THEN pages END), 0) AS out_other
	FROM swap WHERE pid > 0
),
a AS MATERIALIZED (		-- what came back most; where nothing did, what was touched most
	SELECT pattern AS back_pattern, 4096 * distinct_pages AS back_bytes, returns AS back_returns,
		4096 * first_pages AS back_first_bytes
	FROM access_pattern WHERE rank = 1
),
from_where AS MATERIALIZED (
	SELECT group_concat(PRINTF('%,d', pages) || text, ', ') AS swap_from FROM (
		SELECT 1 AS position, device_pages AS pages, ' read from a device' AS text
		FROM swap_source
		UNION ALL SELECT 2, zram_pages, ' decompressed from zram' FROM swap_source
		UNION ALL SELECT 3, zswap_pages, ' decompressed from zswap' FROM swap_source
		UNION ALL SELECT 4, zero_pages, ' all zeros, kept nowhere' FROM swap_source
		UNION ALL SELECT 5, cache_pages, ' found in the swap cache' FROM swap_source
		ORDER BY position)
	WHERE pages > 0
),
foreign_libc AS MATERIALIZED (	-- clearing by allocators without a known rule
	SELECT COALESCE(SUM(zero_libc_ns), 0.0) AS time_ns FROM cc WHERE NOT known_clearing
),
life AS MATERIALIZED (		-- of the blocks behind the largest zero.kernel site
	SELECT SUM(b.made) AS made, SUM(b.made_bytes) AS made_bytes, SUM(b.freed) AS freed
	FROM block b JOIN s ON b.stack_id = s.kernel_stack AND b.call = s.kernel_call
),
blocks AS MATERIALIZED (
	SELECT COALESCE(SUM(made_bytes), 0) AS made_bytes,
		COALESCE(SUM(freed_bytes), 0) AS freed_bytes,
		COALESCE(SUM(never_used_bytes), 0) AS unused_bytes FROM block
),
mapper AS MATERIALIZED (	-- the call site with most mapped blocks
	SELECT c.call, c.stack_id, SUM(c.calls) AS calls, SUM(c.bytes) AS bytes
	FROM cc c WHERE c.mmapped_calls > 0 GROUP BY c.call, c.stack_id
	ORDER BY SUM(c.mmapped_calls) DESC, c.stack_id LIMIT 1
)
SELECT
	o.observed_ns, o.cpu_ns, o.doubtful, f.*, t.*, s.*,
	CASE WHEN o.observed_ns > 0 AND 3 * f.first_share >= 1 THEN f.first_family ELSE 'none' END
		AS dominant,
	l.calls AS libc_calls, l.cleared_calls AS libc_cleared, l.cleared_bytes AS libc_bytes,
	l.pid AS libc_pid, l.time_ns AS libc_ns, 1.0 * l.cleared_bytes / l.cleared_calls AS libc_block,
	1.0 * l.bytes / l.calls AS libc_asked,
	-- Of blocks cut from a top that grew in the call only the old part is cleared.
	l.cleared_bytes * 1.0 / l.cleared_calls >= 0.5 * l.bytes / l.calls AS libc_whole,
	l.time_ns / l.cleared_calls AS libc_each_ns,
	NULLIF(l.place, '') AS libc_place, l.all_bytes AS libc_all_bytes,
	h.low AS threshold_low, h.high AS threshold_high, h.dynamic AS threshold_dynamic,
	(l.cleared_bytes / l.cleared_calls + 4095) / 4096 AS libc_pages, c.fault_ns, c.malloc_ns,
	(l.cleared_bytes / l.cleared_calls + 4095) / 4096 * c.fault_ns AS libc_touch_ns,
	fl.time_ns AS foreign_ns, w.twice_calloc_bytes, w.twice_calloc_ns, w.twice_app_bytes,
	w.twice_app_ns,
	(SELECT kind FROM allocator WHERE kind <> 'glibc' ORDER BY pid, module LIMIT 1)
		AS foreign_kind,
	EXISTS (SELECT 1 FROM allocator WHERE kind = 'glibc') AS has_glibc,
	MAX(0.0, t.kernel_ns - t.kernel_clear_ns) AS kernel_work_ns,
	b.made AS kernel_made, b.freed AS kernel_freed, 1.0 * b.made_bytes / b.made AS kernel_block,
	s.kernel_site_ns / b.made AS kernel_each_ns,
	CASE WHEN s.kernel_call = 'calloc' AND c.memset_bytes_per_s > 0
		THEN 1e9 * b.made_bytes / b.made / c.memset_bytes_per_s ELSE 0.0 END
		AS kernel_memset_ns,
	-- thresholds in whole MiB above the block and its header
	(b.made_bytes / b.made + 4096 + 1048575) / 1048576 * 1048576 AS churn_threshold,
	t.map_ns / MAX(t.map_calls, 1) AS map_each_ns,
	p.stack_id AS mapper_stack, p.call AS mapper_call, p.calls AS mapper_calls, 1.0 * p.bytes / p.calls AS mapper_block,
	t.map_ns / p.calls AS mapper_each_ns,
	CASE WHEN c.memset_bytes_per_s > 0
		THEN 1e9 * p.bytes / p.calls / c.memset_bytes_per_s END AS mapper_memset_ns,
	(p.bytes / p.calls + 4096 + 1048575) / 1048576 * 1048576 AS mapper_threshold,
	(SELECT x.caller FROM stack_place x WHERE x.stack_id = p.stack_id) AS mapper_place,
	k.unused_bytes, k.freed_bytes, k.made_bytes,
	t.alloc_ns / MAX(t.alloc_calls, 1) AS alloc_each_ns,
	COALESCE((SELECT SUM(faults) FROM process_fault WHERE class = 'swap_major'), 0)
		AS swap_major,
	w2.reclaim_count, w2.reclaim_ns, w2.reclaim_cgroup, w2.out_pages, w2.out_self, w2.out_other,
	-- where swap.out is not captured: what was on swap at most
	CASE WHEN w2.out_pages > 0 THEN w2.out_pages * 4096 ELSE x.swap_peak_bytes END AS pushed_bytes,
	a.*, x.limit_bytes, x.limit_path, x.rss_peak_bytes, x.swap_peak_bytes, x.came_back_bytes,
	x.fits_bytes, fw.swap_from,
	COALESCE((SELECT SUM(faults) FROM process_fault
		WHERE class IN ('file_major', 'shared_major')), 0) AS file_major
FROM observed o JOIN calibrated c JOIN t JOIN s JOIN f JOIN twice w JOIN foreign_libc fl
JOIN pushed w2 JOIN memory x JOIN from_where fw LEFT JOIN a
JOIN blocks k JOIN life b LEFT JOIN libc l LEFT JOIN threshold h LEFT JOIN mapper p;

-- The figures as text. Kinds: b bytes (binary units), e the exact number of bytes, t nanoseconds,
-- c a count, s a share, x text. Three digits; a share below 1 % keeps one decimal.
CREATE VIEW figure AS
WITH
wide(object) AS (		-- in parts: a function takes 127 arguments
	SELECT json_patch(json_object(
		'observed', json_array('t', m.observed_ns),
		'first', json_array('s', m.first_share),
		'first_range', json_array('x',
			PRINTF('%.0f-%.0f %%', 100 * m.first_low, 100 * m.first_high)),
		'second_range', json_array('x',
			PRINTF('%.0f-%.0f %%', 100 * m.second_low, 100 * m.second_high)),
		'zeroing', json_array('s', m.zeroing_share), 'swap', json_array('s', m.swap_share),
		'libc_calls', json_array('c', m.libc_calls),
		'libc_cleared', json_array('c', m.libc_cleared),
		'libc_bytes', json_array('b', m.libc_bytes), 'libc_time', json_array('t',
			m.libc_ns),
		'libc_block', json_array('b', m.libc_block),
		'libc_asked', json_array('b', m.libc_asked),
		'libc_each', json_array('t', m.libc_each_ns),
		'libc_place', json_array('x', m.libc_place),
		'libc_all_bytes', json_array('b', m.libc_all_bytes),
		'libc_pages', json_array('c', m.libc_pages), 'fault', json_array('t', m.fault_ns),
		'libc_touch', json_array('t', m.libc_touch_ns),
		'break_even', json_array('s', MIN(1.0, m.libc_each_ns / m.libc_touch_ns)),
		'threshold_low', json_array('e', m.threshold_low),
		'threshold_high', json_array('e', m.threshold_high),
		'all_libc_bytes', json_array('b', m.all_libc_bytes),
		'all_libc_time', json_array('t', m.all_libc_ns),
		'all_libc_place', json_array('x', m.all_libc_place)),
	json_patch(json_object(
		'twice_calloc_bytes', json_array('b', m.twice_calloc_bytes),
		'twice_calloc_time', json_array('t', m.twice_calloc_ns),
		'twice_app_bytes', json_array('b', m.twice_app_bytes),
		'twice_app_time', json_array('t', m.twice_app_ns),
		'app_time', json_array('t', m.app_ns), 'app_samples', json_array('c',
			m.app_samples),
		'app_place', json_array('x', m.app_place),
		'reclaim_count', json_array('c', m.reclaim_count),
		'reclaim_time', json_array('t', m.reclaim_ns),
		'reclaim_of', json_array('x', CASE WHEN m.reclaim_cgroup
			THEN 'its memory cgroup' ELSE 'the machine' END),
		'out_bytes', json_array('b', m.pushed_bytes),
		'out_self', json_array('s', 1.0 * m.out_self / MAX(m.out_pages, 1)),
		'out_by', json_array('x', CASE WHEN m.out_pages > 0 THEN PRINTF(
			', %.0f %% of it by the target itself', 100.0 * m.out_self / m.out_pages)
			ELSE ' at a time, at most' END),
		'out_other', json_array('s', 1.0 * m.out_other / MAX(m.out_pages, 1)),
		'back_bytes', json_array('b', m.back_bytes),
		'back_returns', json_array('x', PRINTF('%.1f', m.back_returns)),
		'back_first', json_array('b', m.back_first_bytes),
		'memory_limit', json_array('b', m.limit_bytes),
		'memory_of', json_array('x', CASE WHEN m.limit_path IS NOT NULL
			THEN 'its memory cgroup, ' || m.limit_path ELSE 'the machine' END),
		'rss_peak', json_array('b', m.rss_peak_bytes),
		'swap_peak', json_array('b', m.swap_peak_bytes),
		'came_back', json_array('b', m.came_back_bytes),
		'fits', json_array('b', m.fits_bytes), 'swap_from', json_array('x', m.swap_from),
		'kernel_time', json_array('t', m.kernel_ns),
		'kernel_clear', json_array('t', m.kernel_clear_ns),
		'kernel_work', json_array('t', m.kernel_work_ns),
		'kernel_bytes', json_array('b', m.kernel_bytes),
		'kernel_faults', json_array('c', m.kernel_faults),
		'kernel_call', json_array('x', NULLIF(m.kernel_call, '')),
		'kernel_place', json_array('x', m.kernel_place),
		'kernel_touched', json_array('x', m.kernel_touched),
		'kernel_site_faults', json_array('c', m.kernel_site_faults),
		'kernel_site_bytes', json_array('b', m.kernel_site_bytes),
		'kernel_made', json_array('c', m.kernel_made),
		'kernel_freed', json_array('c', m.kernel_freed),
		'kernel_block', json_array('b', m.kernel_block),
		'kernel_each', json_array('t', m.kernel_each_ns),
		'kernel_memset', json_array('t', m.kernel_memset_ns),
		'churn_threshold', json_array('x', CAST(m.churn_threshold AS TEXT)),
		'churn_trim', json_array('x', CAST(2 * m.churn_threshold AS TEXT))),
	json_object(
		'map_time', json_array('t', m.map_ns), 'map_calls', json_array('c', m.map_calls),
		'map_each', json_array('t', m.map_each_ns), 'map_call', json_array('x', m.map_call),
		'map_place', json_array('x', m.map_place),
		'mapper_call', json_array('x', m.mapper_call),
		'mapper_calls', json_array('c', m.mapper_calls),
		'mapper_block', json_array('b', m.mapper_block),
		'mapper_each', json_array('t', m.mapper_each_ns),
		'mapper_memset', json_array('t', m.mapper_memset_ns),
		'mapper_place', json_array('x', m.mapper_place),
		'mapper_threshold', json_array('x', CAST(m.mapper_threshold AS TEXT)),
		'mapper_trim', json_array('x', CAST(2 * m.mapper_threshold AS TEXT)),
		'unused_bytes', json_array('b', m.unused_bytes),
		'freed_bytes', json_array('b', m.freed_bytes),
		'unused_part', json_array('s', 1.0 * m.unused_bytes / MAX(m.freed_bytes, 1)),
		'alloc_time', json_array('t', m.alloc_ns), 'alloc_calls', json_array('c',
			m.alloc_calls),
		'alloc_each', json_array('t', m.alloc_each_ns), 'malloc', json_array('t',
			m.malloc_ns),
		'alloc_call', json_array('x', m.alloc_call),
		'alloc_place', json_array('x', m.alloc_place),
		'swap_time', json_array('t', m.swap_ns), 'swap_faults', json_array('c',
			m.swap_faults),
		'swap_bytes', json_array('b', m.swap_bytes),
		'swap_major', json_array('c', m.swap_major),
		'swap_place', json_array('x', m.swap_place),
		'swap_call', json_array('x', NULLIF(m.swap_call, '')),
		'swap_made', json_array('x', m.swap_made),
		'cow_time', json_array('t', m.cow_ns), 'cow_faults', json_array('c', m.cow_faults),
		'cow_bytes', json_array('b', m.cow_bytes), 'cow_place', json_array('x',
			m.cow_place),
		'file_time', json_array('t', m.file_ns), 'file_faults', json_array('c',
			m.file_faults),
		'file_major', json_array('c', m.file_major),
		'file_place', json_array('x', m.file_place),
		'read_place', json_array('x', m.read_place),
		'compute_place', json_array('x', m.compute_place),
		'command', json_array('x', COALESCE((SELECT value FROM meta
			WHERE key = 'target_words'), 'COMMAND'))))) FROM measure m
),
value(name, kind, v) AS (
	SELECT j.key, json_extract(j.value, '$[0]'), json_extract(j.value, '$[1]')
	FROM wide, json_each(wide.object) j
	UNION ALL SELECT name, kind, v FROM giveback_figure
	UNION ALL SELECT name, kind, v FROM latency_figure
	UNION ALL SELECT name, kind, value FROM read_figure
),
scaled(name, kind, v, x, unit) AS (
	SELECT name, kind, v,
		CASE kind WHEN 't' THEN CASE WHEN v >= 1e9 THEN v / 1e9 WHEN v >= 1e6 THEN v / 1e6
				WHEN v >= 1e3 THEN v / 1e3 ELSE v * 1.0 END
			  WHEN 'b' THEN CASE WHEN v >= 1073741824 THEN v / 1073741824.0
				WHEN v >= 1048576 THEN v / 1048576.0
				WHEN v >= 1024 THEN v / 1024.0 ELSE v * 1.0 END END,
		CASE kind WHEN 't' THEN CASE WHEN v >= 1e9 THEN 's' WHEN v >= 1e6 THEN 'ms'
				WHEN v >= 1e3 THEN 'us' ELSE 'ns' END
			  WHEN 'b' THEN CASE WHEN v >= 1073741824 THEN 'GiB'
				WHEN v >= 1048576 THEN 'MiB'
				WHEN v >= 1024 THEN 'KiB' ELSE 'bytes' END END
	FROM value
)
SELECT name, CASE
	WHEN v IS NULL THEN CASE WHEN name LIKE '%place' OR name LIKE '%touched' OR name = 'swap_made'
		THEN 'an unknown place' WHEN name LIKE '%call' THEN 'the program' ELSE 'unknown' END
	WHEN kind = 'x' THEN v
	WHEN kind = 'c' THEN PRINTF('%,d', v)
	WHEN kind = 'e' THEN PRINTF('%,d bytes', v)
	WHEN kind = 's' THEN CASE WHEN v > 0 AND v < 0.00995 THEN PRINTF('%.1f %%', 100 * v)
		ELSE PRINTF('%.0f %%', 100 * v) END
	WHEN unit = 'bytes' OR x >= 99.95 OR x = 0 THEN PRINTF('%.0f %s', x, unit)
	WHEN x >= 9.995 THEN PRINTF('%.1f %s', x, unit)
	ELSE PRINTF('%.2f %s', x, unit) END AS text
FROM scaled;

