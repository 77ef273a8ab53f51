-- SPDX-License-Identifier: GPL-2.0
--
-- figures.sql: every figure that the verdict and the advice speak of, gathered once (measure) and
-- named (advice_figure). Follows latency.sql.

-- The largest site of each toll, and what a sentence calls its two places: of the places that cost
-- most in all, since each process of an interpreter has stacks of its own. For a mapping call the
-- program itself is the code, and for an allocation the caller.
CREATE VIEW top_site AS
SELECT t.toll,
	-- to the ledger it is a mapping like any other
	CASE WHEN t.call = 'mmap' AND t.area LIKE 'shared /SYSV%' THEN 'shmat' ELSE t.call END
		AS call,
	t.allocated_stack, t.touched_stack, t.area, t.known_clearing, t.time_ns,
	t.share,
	t.bytes, t.count,
	CASE WHEN t.area LIKE 'shared /SYSV00000000%' THEN 'System V, private'
	WHEN t.area LIKE 'shared /SYSV%'
		THEN 'System V, key 0x' || SUBSTR(t.area, 13, 8)
	WHEN t.area LIKE 'shared /%' AND t.area NOT LIKE 'shared /dev/zero%'
		THEN REPLACE(SUBSTR(t.area, 8), ' (deleted)', '') ELSE '' END AS segment,
	(SELECT CASE t.toll WHEN 'map' THEN p.code ELSE p.caller END
		FROM stack_place p WHERE p.stack_id = t.allocated_stack) AS allocated_place,
	(SELECT p.code FROM stack_place p WHERE p.stack_id = t.touched_stack) AS touched_place,
	EXISTS (SELECT 1 FROM stack_frame l JOIN frame f ON f.frame_id = l.frame_id
		WHERE l.stack_id = t.touched_stack AND (f.kind = 'python'
			OR f.module GLOB '*/libpython[23]*' OR f.module GLOB '*/bin/python[23]*'))
		AS by_python,
	-- a line of a runtime where there is one of the program itself says nothing
	COALESCE((SELECT p.own FROM stack_place p WHERE p.stack_id = t.allocated_stack), 1)
		OR NOT COALESCE((SELECT p.own FROM stack_place p
			WHERE p.stack_id = t.touched_stack), 0) AS made_told
FROM (
	SELECT *, ROW_NUMBER() OVER (PARTITION BY toll ORDER BY place_ns DESC, rank) AS number
	FROM (
		-- by the place that touches, where there is one; of very many sites those that are
		-- small are left alone
		SELECT s.*, SUM(s.time_ns) OVER (PARTITION BY s.toll, COALESCE(p.code, s.rank))
			AS place_ns
		FROM sites s LEFT JOIN stack_place p ON s.rank <= 4096 AND p.stack_id
			= COALESCE(NULLIF(s.touched_stack, 0), s.allocated_stack))
) t WHERE t.number = 1;

-- One row: the file, or other memory, that faults of files fell into most, its share of their time,
-- and the functions that touch it: how many there are, and the share of the largest.
CREATE VIEW file_spread AS
SELECT SUBSTR(area, INSTR(area, ' ') + 1) AS file_area, area_ns / all_ns AS file_area_share,
	COUNT(*) AS file_functions, MAX(time_ns) / all_ns AS file_function_share
FROM (
	SELECT s.area, SUM(s.time_ns) AS time_ns,
		SUM(SUM(s.time_ns)) OVER (PARTITION BY s.area) AS area_ns,
		SUM(SUM(s.time_ns)) OVER () AS all_ns
	FROM sites s LEFT JOIN stack_frame t ON t.stack_id = s.touched_stack AND t.depth = 0
	LEFT JOIN frame f ON f.frame_id = t.frame_id
	WHERE s.toll = 'file.fault' AND s.time_ns > 0
	GROUP BY s.area, COALESCE(NULLIF(f.function, ''), t.frame_id), f.module)
GROUP BY area ORDER BY area_ns DESC, area LIMIT 1;

-- Every figure the sentences use, one row. each: per call.
CREATE VIEW measure AS
WITH
-- Of toll file.fault what is of no file: pages of shared memory that were there already. Of
-- zero.kernel what clears nothing: reads of memory that was never written (unwritten).
joined AS MATERIALIZED (
	SELECT COALESCE(SUM(CASE WHEN shared THEN cpu_ns + blocked_ns END), 0.0) AS shared_ns,
		COALESCE(SUM(CASE WHEN shared THEN faults END), 0) AS shared_faults,
		COALESCE(SUM(CASE WHEN shared THEN pages END), 0) * 4096 AS shared_bytes,
		COUNT(DISTINCT CASE WHEN shared THEN pid END) AS shared_processes,
		COALESCE(SUM(CASE WHEN NOT shared THEN cpu_ns + blocked_ns END), 0.0)
			AS unwritten_ns,
		COALESCE(SUM(CASE WHEN NOT shared THEN faults END), 0) AS unwritten_faults,
		COALESCE(SUM(CASE WHEN NOT shared THEN pages END), 0) * 4096 AS unwritten_bytes
	FROM (SELECT pid, class = 'shared_minor' AS shared, faults, pages, cpu_ns, blocked_ns
		FROM process_fault_time
		WHERE class IN ('shared_minor', 'zero_read', 'read_populated'))
),
t AS MATERIALIZED (		-- one row each, so that each view is mentioned once
	SELECT
		MAX(CASE toll WHEN 'zero.kernel' THEN time_ns END) AS kernel_ns,
		MAX(CASE toll WHEN 'zero.kernel' THEN clear_ns END) AS kernel_clear_ns,
		MAX(CASE toll WHEN 'zero.kernel' THEN bytes END) AS kernel_bytes,
		MAX(CASE toll WHEN 'zero.kernel' THEN count END) AS kernel_faults,
		COALESCE(MAX(CASE toll WHEN 'zero.kernel' THEN strange END), 0) AS kernel_strange,
		MAX(CASE toll WHEN 'zero.libc' THEN time_ns END) AS all_libc_ns,
		MAX(CASE toll WHEN 'zero.libc' THEN bytes END) AS all_libc_bytes,
		MAX(CASE toll WHEN 'zero.app' THEN time_ns END) AS app_ns,
		MAX(CASE toll WHEN 'zero.app' THEN count END) AS app_samples,
		MAX(CASE toll WHEN 'zero.app' THEN bytes END) AS app_bytes,
		MAX(CASE toll WHEN 'zero.app' THEN bytes_low END) AS app_low_bytes,
		MAX(CASE toll WHEN 'zero.app' THEN bytes_high END) AS app_high_bytes,
		COALESCE(MAX(CASE toll WHEN 'copy.app' THEN share END), 0.0) AS copy_share,
		MAX(CASE toll WHEN 'copy.app' THEN bytes END) AS copy_bytes,
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
		MAX(CASE toll WHEN 'file.fault' THEN time_ns END)
			- (SELECT shared_ns FROM joined) AS file_ns,
		MAX(CASE toll WHEN 'file.fault' THEN count END)
			- (SELECT shared_faults FROM joined) AS file_faults,
		MAX(CASE toll WHEN 'fault.user' THEN time_ns END) AS user_ns,
		MAX(CASE toll WHEN 'fault.user' THEN count END) AS user_faults,
		MAX(CASE toll WHEN 'fault.other' THEN time_ns END) AS other_ns,
		(SELECT SUM(CASE class WHEN 'moved' THEN cpu_ns + blocked_ns END)
			/ NULLIF(SUM(cpu_ns + blocked_ns), 0) FROM process_fault_time
			WHERE class IN ('moved', 'other', 'forbidden')) AS moved_share,
		MAX(CASE toll WHEN 'fault.other' THEN count END) AS other_faults
	FROM toll
),
s AS MATERIALIZED (
	SELECT
		MAX(CASE toll WHEN 'zero.libc' THEN allocated_place END) AS all_libc_place,
		MAX(CASE toll WHEN 'zero.app' THEN touched_place END) AS app_place,
		MAX(CASE toll WHEN 'zero.app' THEN call END) AS app_call,
		MAX(CASE toll WHEN 'zero.app' THEN allocated_place END) AS app_made,
		MAX(CASE toll WHEN 'zero.app' THEN area END) AS app_area,
		MAX(CASE toll WHEN 'copy.app' THEN touched_place END) AS copy_place,
		MAX(CASE toll WHEN 'zero.kernel' THEN call END) AS kernel_call,
		MAX(CASE toll WHEN 'zero.kernel' THEN allocated_stack END) AS kernel_stack,
		MAX(CASE toll WHEN 'zero.kernel' THEN allocated_place END) AS kernel_place,
		MAX(CASE toll WHEN 'zero.kernel' THEN made_told END) AS kernel_told,
		MAX(CASE toll WHEN 'zero.app' THEN made_told END) AS app_told,
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
		-- '': it has no name
		MAX(CASE WHEN toll = 'swap.in' AND area LIKE 'shared%' THEN segment END)
			AS swap_segment,
		MAX(CASE WHEN toll = 'zero.kernel' AND area LIKE 'shared%' THEN segment END)
			AS kernel_segment,
		MAX(CASE WHEN toll = 'file.fault' AND area LIKE 'shared%' THEN segment END)
			AS file_segment,
		MAX(CASE toll WHEN 'cow' THEN touched_place END) AS cow_place,
		MAX(CASE toll WHEN 'cow' THEN area LIKE 'file %' END) AS cow_of_file,
		MAX(CASE toll WHEN 'cow' THEN by_python END) AS cow_by_python,
		MAX(CASE toll WHEN 'file.fault' THEN touched_place END) AS file_place,
		MAX(CASE toll WHEN 'file.read' THEN touched_place END) AS read_place,
		MAX(CASE toll WHEN 'fault.user' THEN touched_place END) AS user_place,
		MAX(CASE toll WHEN 'fault.other' THEN touched_place END) AS other_place
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
		-- all that is not computing, and the largest of it
		COALESCE(MIN(1.0, SUM(CASE family WHEN 'compute' THEN 0.0 ELSE share END)), 0.0)
			AS memory_share,
		MAX(CASE WHEN memory_rank = 1 THEN family END) AS memory_family,
		MAX(CASE WHEN memory_rank = 1 THEN share END) AS memory_first_share,
		COALESCE(MAX(CASE family WHEN 'zeroing' THEN share END), 0.0) AS zeroing_share,
		COALESCE(MAX(CASE family WHEN 'swap' THEN share END), 0.0) AS swap_share,
		COALESCE(MAX(CASE family WHEN 'cow' THEN share END), 0.0) AS cow_share,
		COALESCE(MAX(CASE family WHEN 'file' THEN share END), 0.0) AS file_share,
		COALESCE(MAX(CASE family WHEN 'allocator' THEN share END), 0.0) AS allocator_share,
		COALESCE(MAX(CASE family WHEN 'mapping' THEN share END), 0.0) AS mapping_share,
		COALESCE(MAX(CASE family WHEN 'userfault' THEN share END), 0.0) AS userfault_share
	FROM (SELECT *, CASE WHEN family <> 'compute' THEN ROW_NUMBER() OVER (
		ORDER BY family = 'compute', rank) END AS memory_rank FROM family)
),
cc AS MATERIALIZED (SELECT * FROM call_cost),
used_there AS MATERIALIZED (
	SELECT f.pid, f.allocated_call AS call, f.allocated_stack AS stack_id,
		SUM(f.pages) * 4096 AS bytes
	FROM fault f JOIN fault_class k ON k.class = f.class
	WHERE k.toll = 'zero.kernel' AND k.writes_page AND f.allocated_call IN ('calloc', 'malloc')
		AND f.in_call = '' GROUP BY f.pid, f.allocated_call, f.allocated_stack
),
-- Without what windows missed, as no fault is told to be in those blocks; of calloc what came fresh
-- from the kernel, of malloc, whose heap may have been used before, no more than is sure.
seen_there AS MATERIALIZED (
	SELECT pid, call, stack_id, SUM(calls) AS calls, SUM(bytes) AS bytes,
		CASE call WHEN 'calloc' THEN SUM(bytes) - SUM(cleared_bytes)
			ELSE 1.0 * SUM(bytes) / SUM(calls) * SUM(mmapped_calls) END AS fresh_bytes
	FROM call WHERE call IN ('calloc', 'malloc') AND known_clearing
	GROUP BY pid, call, stack_id HAVING SUM(calls) > 0
),
most_there AS MATERIALIZED (	-- how many times as many there may be; NULL: windows do not tell
	SELECT pid, call, stack_id, CASE WHEN MAX(estimated) AND COALESCE((SELECT error
			FROM call_scale s WHERE s.call = e.call), 1.0) >= 1.0 THEN NULL
		ELSE 1.0 + 1.0 * SUM(calls_error) / MAX(SUM(calls), 1) END AS times
	FROM call_estimate e WHERE call IN ('calloc', 'malloc') AND known_clearing
	GROUP BY pid, call, stack_id
),
there AS MATERIALIZED (
	SELECT c.pid, c.call, c.calls, c.cleared_calls, c.cleared_bytes, c.bytes, c.zero_libc_ns,
		c.mmapped_calls,
		-- Those that the heap has had; of calloc no more than their time has room for, as
		-- fast as memset is without misses. NULL: not known.
		CASE WHEN c.cleared_calls > 0 AND k.memset_bytes_per_s > 0
			THEN MAX(c.cleared_calls, MIN(c.cleared_calls * COALESCE(mt.times, 1e9),
				c.zero_libc_ns * k.memset_bytes_per_s / 1e9 * c.cleared_calls
					/ MAX(c.cleared_bytes, 1)))
			ELSE (c.calls - c.mmapped_calls) * mt.times END AS calls_at_most,
		c.calls - c.mmapped_calls AS heap_calls,
		COALESCE(ut.bytes, 0) AS used_bytes, 1.0 * st.fresh_bytes AS fresh_bytes,
		1.0 * st.bytes / st.calls AS seen_each,
		COALESCE((SELECT p.caller FROM stack_place p
			WHERE p.stack_id = c.stack_id), '') AS place
	FROM cc c JOIN calibrated k
	LEFT JOIN used_there ut ON ut.stack_id = c.stack_id AND ut.pid = c.pid
		AND ut.call = c.call
	LEFT JOIN seen_there st ON st.stack_id = c.stack_id AND st.pid = c.pid
		AND st.call = c.call
	LEFT JOIN most_there mt ON mt.stack_id = c.stack_id AND mt.pid = c.pid
		AND mt.call = c.call
	WHERE c.known_clearing AND (c.cleared_calls > 0
		OR (c.call IN ('calloc', 'malloc') AND c.bytes >= 131072 * c.calls
			AND c.calls > c.mmapped_calls))
),
-- The place whose callocs libc clears most for, where the rule of clearing is known. By place, not
-- by stack: each process has stacks of its own.
libc AS MATERIALIZED (
	SELECT place, MIN(pid) AS pid, SUM(calls) AS calls, SUM(cleared_calls) AS cleared_calls,
		SUM(mmapped_calls) AS mmapped_calls,
		SUM(cleared_bytes) AS cleared_bytes, SUM(bytes) AS bytes,
			SUM(zero_libc_ns) AS time_ns,
		SUM(COALESCE(calls_at_most, 10.0 * cleared_calls)) AS calls_at_most,
		SUM(SUM(cleared_bytes)) OVER () AS all_bytes,
		-- Of what came fresh from the kernel faults tell how much the program used, where
		-- that was a whole block at least.
		CASE WHEN SUM(fresh_bytes) >= MAX(seen_each)
			THEN MIN(1.0, SUM(used_bytes) / SUM(fresh_bytes)) END AS used
	FROM there WHERE cleared_calls > 0
	GROUP BY place ORDER BY SUM(zero_libc_ns) DESC, place LIMIT 1
),
-- What a mapping of its own would cost other large blocks of these processes, which the heap has
-- now: two mapping calls and a fault for each header, and one for each page that is used, where
-- that is not known, for all of them. Less what calloc clears of them now, and the faults that
-- blocks of malloc take now: those that the heap has grown for. Where windows do not tell how many
-- there are, as many times as many as of the place above.
beside AS MATERIALIZED (
	SELECT SUM(ns) AS ns, call, place FROM (
		SELECT t.call, t.place, SUM(COALESCE(t.calls_at_most, t.heap_calls
				* (SELECT calls_at_most / cleared_calls FROM libc)) * c.fault_ns
			* (3 + (t.bytes / t.calls + 4095) / 4096
				* CASE WHEN t.fresh_bytes >= t.seen_each
				THEN MIN(1.0, t.used_bytes / t.fresh_bytes) ELSE 1.0 END)
			- CASE t.call WHEN 'malloc' THEN t.used_bytes / 4096 * c.fault_ns
				ELSE t.zero_libc_ns END) AS ns
		FROM there t JOIN calibrated c
		WHERE t.bytes >= 131072 * t.calls AND t.place <> (SELECT place FROM libc)
			AND t.pid IN (SELECT pid FROM there WHERE cleared_calls > 0
				AND place = (SELECT place FROM libc))
		GROUP BY t.call, t.place HAVING ns > 0 ORDER BY ns DESC, t.call, t.place)
),
threshold AS MATERIALIZED (
	SELECT mmap_threshold_low AS low, mmap_threshold_high AS high, dynamic FROM allocator
	WHERE kind = 'glibc' AND pid = (SELECT pid FROM libc)
	ORDER BY mmap_threshold_low IS NULL, module LIMIT 1
),
-- Of pages that a memset was the first to touch in no call that was seen: what is calloc's own,
-- which was not watched just then. Its stack shows it.
unwatched AS MATERIALIZED (
	SELECT f.pid, f.class, 1.0 * SUM(CASE s.call WHEN 'calloc' THEN f.pages ELSE 0 END)
		/ SUM(f.pages) AS part
	FROM fault f LEFT JOIN stack_call s ON s.stack_id = f.touched_stack
	WHERE f.in_memset AND f.in_call = '' AND f.pages > 0 GROUP BY f.pid, f.class
),
twice AS MATERIALIZED (
	SELECT COALESCE(SUM(CASE in_call WHEN 'calloc' THEN pages
			WHEN '' THEN part * pages END), 0) * 4096 AS twice_calloc_bytes,
		COALESCE(SUM(CASE in_call WHEN 'calloc' THEN ns
			WHEN '' THEN part * ns END), 0.0) AS twice_calloc_ns,
		COALESCE(SUM(CASE in_call WHEN '' THEN (1.0 - part) * pages END), 0) * 4096
			AS twice_app_bytes,
		COALESCE(SUM(CASE in_call WHEN '' THEN (1.0 - part) * ns END), 0.0)
			AS twice_app_ns,
		COALESCE(SUM(CASE WHEN class = 'zero_huge' AND in_call IN ('', 'calloc')
			THEN ns END), 0.0) AS twice_huge_ns
	FROM (SELECT t.class, t.in_call, t.pages, t.cpu_ns + t.blocked_ns AS ns,
			COALESCE(u.part, 0.0) AS part
		FROM process_fault_time t
		LEFT JOIN unwatched u ON u.pid = t.pid AND u.class = t.class
		WHERE t.toll = 'zero.kernel' AND t.writes_page AND t.in_memset)
),
-- where a memset was the first to touch most pages, and who made them
twice_top AS MATERIALIZED (
	SELECT f.touched_stack, f.allocated_call FROM fault f
		JOIN fault_class k ON k.class = f.class
		LEFT JOIN stack_call s ON s.stack_id = f.touched_stack
	WHERE k.toll = 'zero.kernel' AND k.writes_page AND f.in_memset AND f.in_call = ''
		AND s.call IS NOT 'calloc'
	GROUP BY f.touched_stack, f.allocated_call ORDER BY SUM(f.pages) DESC, f.touched_stack
	LIMIT 1
),
huge AS MATERIALIZED (	-- whether huge pages are what was cleared already
	SELECT COALESCE(2 * SUM(CASE WHEN huge THEN pages END) > SUM(pages), 0) AS kernel_huge
	FROM process_fault_time WHERE toll = 'zero.kernel'
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
	SELECT pattern AS back_pattern, 4096 * distinct_pages AS back_bytes,
		returns AS back_returns,
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
life_again AS MATERIALIZED (	-- of what came again, and of what rose within a slice
	SELECT COALESCE(SUM(g.again_bytes) FILTER (WHERE g.got_stack = s.kernel_stack
			AND g.got_call = s.kernel_call), 0) AS again_bytes,
		COALESCE(MAX(g.span_bytes), 0) AS span_bytes
	FROM giveback g JOIN s
),
life_there AS MATERIALIZED (	-- how much of them there was at the end of some slice
	SELECT COALESCE(MAX(bytes), 0) AS bytes
	FROM (SELECT SUM(SUM(b.made_bytes) - SUM(b.freed_bytes)) OVER (ORDER BY b.slice) AS bytes
		FROM block b JOIN s ON b.stack_id = s.kernel_stack AND b.call = s.kernel_call
		GROUP BY b.slice)
),
blocks AS MATERIALIZED (
	SELECT COALESCE(SUM(made_bytes), 0) AS made_bytes,
		COALESCE(SUM(freed_bytes), 0) AS freed_bytes,
		COALESCE(SUM(never_used_bytes), 0) AS unused_bytes,
		COALESCE(SUM(freed), 0) AS freed,
		COALESCE(SUM(1.0 * freed * never_used_bytes / MAX(freed_bytes, 1)), 0.0)
			AS unused_blocks
	FROM block
),
touched AS MATERIALIZED (	-- by the program, in blocks
	SELECT COALESCE(SUM(f.pages), 0) AS pages FROM fault f JOIN fault_class k
		ON k.class = f.class
	WHERE k.toll = 'zero.kernel' AND k.writes_page AND f.allocated_call <> '' AND f.in_call = ''
),
mapper AS MATERIALIZED (	-- the call site with most mapped blocks
	SELECT c.call, c.stack_id, SUM(c.calls) AS calls, SUM(c.bytes) AS bytes
	FROM cc c WHERE c.mmapped_calls > 0 GROUP BY c.call, c.stack_id
	ORDER BY SUM(c.mmapped_calls) DESC, c.stack_id LIMIT 1
),
inside AS MATERIALIZED (	-- mapping calls of the allocator, and of the program itself
	SELECT SUM(CASE WHEN m.in_call <> '' THEN m.cpu_ns ELSE 0 END) * 1.0
		/ MAX(SUM(m.cpu_ns), 1) AS share, SUM(CASE m.populated_ns WHEN 0 THEN m.populated
			ELSE 0 END) * 4096 AS populated_bytes
	FROM map_call m
),
-- Of the process whose blocks the kernel clears: how large the blocks are, whether glibc mapped
-- most of them, what went at once, and whether threads other than the first freed them.
kept AS MATERIALIZED (
	SELECT * FROM (
		SELECT x.mapped, x.known, MAX(1.25 * MAX(g.largest_bytes), MAX(x.block_bytes))
			AS block_bytes, 2 * MAX(g.span_bytes) AS span_bytes,
			COALESCE(2 * SUM(g.thread_calls) > SUM(g.calls), 0) AS threads,
			x.mean_bytes
		FROM (
			SELECT c.pid,
				1.0 * SUM(c.mmapped_calls * c.known_clearing) / SUM(c.calls)
					AS mapped,
				MAX(c.known_clearing) AS known,
				1.25 * SUM(c.bytes) / SUM(c.calls) AS block_bytes,
				1.0 * SUM(c.bytes) / SUM(c.calls) AS mean_bytes
			FROM cc c JOIN s ON s.kernel_stack = c.stack_id
				AND s.kernel_call = c.call) x
		LEFT JOIN giveback g ON g.pid = x.pid AND g.how = 'munmap' AND g.gave_call <> '')
	WHERE mapped IS NOT NULL
),
room AS MATERIALIZED (
	SELECT k.*, (SELECT MIN(p.bytes) FROM power_of_two p
			WHERE p.bytes > COALESCE(k.block_bytes, 2 * k.mean_bytes)) AS threshold,
		(SELECT MIN(p.bytes) FROM power_of_two p WHERE p.bytes > MAX(2 * k.mean_bytes,
			COALESCE(k.span_bytes, 0), COALESCE(k.block_bytes, 0),
			2 * COALESCE((SELECT rss_peak_bytes FROM memory), 0))) AS trim
	FROM kept k
)
SELECT
	o.observed_ns, o.cpu_ns, o.doubtful, f.*, t.*, s.*, j.*, fs.*,
	j.shared_ns / MAX(o.observed_ns, 1.0) AS shared_share,
	CASE WHEN o.observed_ns <= 0 OR 3 * f.first_share < 1 THEN 'none'
		WHEN f.first_toll = 'zero.kernel' AND t.kernel_strange AND 3 * f.first_low < 1
			THEN 'none'
		-- compute is what the others leave: not where they may be far more
		WHEN f.first_family = 'compute' AND 3 * f.first_low < 1
			AND 10 * d.all_ns > o.observed_ns THEN 'none'
		WHEN f.first_family NOT IN ('swap', 'file') AND 3 * f.first_low < 1
			AND 10 * (d.major_ns + d.swap_ns) > o.observed_ns THEN 'none'
		ELSE f.first_family END AS dominant,
	d.missed + d.major_missed AS missed, d.major_missed, d.swap_missed,
	10 * d.all_ns > o.observed_ns AS unseen, d.over,
	10 * d.over_ns > o.observed_ns AS overcounted,
	MIN(1.0, d.over_ns / MAX(o.observed_ns, 1.0)) AS over_share,
	MIN(1.0, d.all_ns / MAX(o.observed_ns + d.major_sleep_ns, 1.0)) AS doubt,
	-- what others bring from swap is no matter where nothing of the target's is there
	EXISTS (SELECT 1 FROM checks WHERE NOT ok AND (d.of_swap OR name NOT LIKE 'swapped%'
		OR (name = 'swapped_in' AND 2 * ours < kernel))) AS checks_fail,
	l.calls AS libc_calls, l.cleared_calls AS libc_cleared, l.cleared_bytes AS libc_bytes,
	l.pid AS libc_pid, l.time_ns AS libc_ns, 1.0 * l.cleared_bytes
		/ l.cleared_calls AS libc_block,
	CASE WHEN 20 * l.mmapped_calls > l.calls THEN 1.0 * l.cleared_bytes / l.cleared_calls
		ELSE 1.0 * l.bytes / l.calls END AS libc_asked,
	-- Of blocks cut from a top that grew in the call only the old part is cleared. Where others
	-- of the same place have mappings of their own the mean is not of those in the heap: none
	-- of them is as large as the threshold.
	l.cleared_bytes * 1.0 / l.cleared_calls >= 0.5 * l.bytes / l.calls
		OR COALESCE(20 * l.mmapped_calls > l.calls
			AND 2.0 * l.cleared_bytes / l.cleared_calls >= h.low, 0) AS libc_whole,
	l.time_ns / l.calls_at_most AS libc_each_ns,
	l.calls_at_most > 1.25 * l.cleared_calls AS libc_each_least,
	NULLIF(l.place, '') AS libc_place, l.all_bytes AS libc_all_bytes, l.used AS libc_used,
	-- What a mapping for each block saves: it costs two mapping calls and a fault for its
	-- header, each of them about a fault's price, and a fault for each page that is used; and
	-- what is beside.
	CASE WHEN l.cleared_bytes / l.cleared_calls >= 131072 AND COALESCE(h.dynamic, 1) = 1
		THEN l.time_ns - COALESCE(bs.ns, 0.0)
			- l.calls_at_most * c.fault_ns * (3 + COALESCE(l.used, 0)
			* ((l.cleared_bytes / l.cleared_calls + 4095) / 4096)) END AS libc_pin_ns,
	bs.ns AS beside_ns, bs.call AS beside_call, bs.place AS beside_place,
	h.low AS threshold_low, h.high AS threshold_high, h.dynamic AS threshold_dynamic,
	(l.cleared_bytes / l.cleared_calls + 4095) / 4096 AS libc_pages, c.fault_ns, c.malloc_ns,
	(l.cleared_bytes / l.cleared_calls + 4095) / 4096 * c.fault_ns AS libc_touch_ns,
	fl.time_ns AS foreign_ns, w.twice_calloc_bytes, w.twice_calloc_ns, w.twice_app_bytes,
	w.twice_app_ns, w.twice_huge_ns, tt.allocated_call AS twice_app_call,
	(SELECT q.code FROM stack_place q WHERE q.stack_id = tt.touched_stack) AS twice_app_place,
	(SELECT kind FROM allocator WHERE kind <> 'glibc' ORDER BY pid, module LIMIT 1)
		AS foreign_kind,
	EXISTS (SELECT 1 FROM allocator WHERE kind = 'glibc') AS has_glibc,
	MAX(0.0, t.kernel_ns - t.kernel_clear_ns) AS kernel_work_ns, hu.kernel_huge,
	-- a mapping of its own that holds no huge page; or most of it would be cleared for nothing
	COALESCE(r.mapped >= 0.5 AND r.mean_bytes < 4194304, 0)
		OR COALESCE(4 * s.kernel_site_bytes < b.made_bytes, 0) AS kernel_small,
	b.made AS kernel_made, b.freed AS kernel_freed,
	-- blocks of which half were there at once, and none came again, do not
	COALESCE(b.freed >= 2 AND 2 * b.freed >= b.made
		AND NOT (2 * MAX(ag.span_bytes, th.bytes) >= b.made_bytes
			AND 4 * ag.again_bytes < s.kernel_site_bytes), 0) AS kernel_churns,
	1.0 * b.made_bytes / b.made AS kernel_block,
	s.kernel_site_ns / b.made AS kernel_each_ns,
	CASE WHEN s.kernel_call = 'calloc' AND c.memset_bytes_per_s > 0
		THEN 1e9 * b.made_bytes / b.made / c.memset_bytes_per_s ELSE 0.0 END
		AS kernel_memset_ns,
	r.mapped AS churn_mapped, r.known AS churn_known, r.threshold AS churn_threshold,
	r.trim AS churn_trim,
	r.threads AS churn_threads, r.block_bytes AS churn_block,
	MAX(0.0, t.map_ns - ms.map_sampled_ns) / MAX(t.map_calls, 1) AS map_each_ns,
	p.stack_id AS mapper_stack, p.call AS mapper_call, 1.0 * p.bytes
		/ p.calls AS mapper_block,
	MAX(0.0, t.map_ns - ms.map_sampled_ns) / p.calls AS mapper_each_ns,
	CASE WHEN c.memset_bytes_per_s > 0
		THEN 1e9 * p.bytes / p.calls / c.memset_bytes_per_s END AS mapper_memset_ns,
	-- what only samples tell is of no allocator
	i.share * (1.0 - MIN(1.0, ms.map_sampled_ns / MAX(t.map_ns, 1.0))) AS mapper_share,
	ms.map_sampled_ns,
	(SELECT x.caller FROM stack_place x WHERE x.stack_id = p.stack_id) AS mapper_place,
	-- pages that a call faulted in were cleared, though no fault is seen
	MAX(0, k.unused_bytes - COALESCE(i.populated_bytes, 0)) AS unused_bytes, k.freed_bytes,
	k.made_bytes, k.unused_blocks,
	-- whole blocks: one that is used in part needs its mapping calls all the same
	2 * MAX(0, k.unused_bytes - COALESCE(i.populated_bytes, 0)) >= k.freed_bytes
		AND k.unused_bytes > COALESCE(i.populated_bytes, 0) AND 2 * tp.pages < k.freed
		AS blocks_unused,
	t.alloc_ns / MAX(t.alloc_calls, 1) AS alloc_each_ns,
	w2.reclaim_count, w2.reclaim_ns, w2.reclaim_cgroup, w2.out_pages, w2.out_self, w2.out_other,
	-- where swap.out is not captured: what was on swap at most
	CASE WHEN w2.out_pages > 0 THEN w2.out_pages * 4096
		ELSE x.swap_peak_bytes END AS pushed_bytes,
	a.*, x.limit_bytes, x.limit_path, x.rss_peak_bytes, x.swap_peak_bytes, x.came_back_bytes,
	x.fits_bytes, x.seen_once AS back_once, x.woke, fw.swap_from,
	COALESCE((SELECT SUM(faults) FROM process_fault
		WHERE class IN ('file_major', 'file_again_major', 'shared_major')), 0) AS file_major
FROM observed o JOIN calibrated c JOIN fault_doubt d JOIN t JOIN s JOIN f JOIN joined j
LEFT JOIN file_spread fs
JOIN twice w LEFT JOIN twice_top tt JOIN foreign_libc fl
JOIN pushed w2 JOIN memory x JOIN from_where fw LEFT JOIN a
JOIN populate_measure ms JOIN blocks k JOIN touched tp
JOIN life b JOIN life_again ag JOIN life_there th
JOIN inside i JOIN huge hu
LEFT JOIN libc l LEFT JOIN beside bs
LEFT JOIN threshold h LEFT JOIN mapper p
LEFT JOIN room r;

-- What keeps memory in glibc's heap, as text: of each kind of storm, and of the blocks that the
-- kernel clears (churn). tunables; old_tunables: the same for
-- versions that may refuse an mmap_threshold above 32 MiB; variables: for versions without
-- tunables, whose values are an int (-1: never trim).
CREATE VIEW glibc_setting AS
WITH
wanted AS (
	SELECT kind || '_storm' AS kind, one_arena, mmap_value, trim_value, pad_value
	FROM giveback_storm WHERE kind IN ('trim', 'heap', 'map')
	UNION ALL SELECT 'churn', churn_threads AND churn_block > 60 * 1048576, churn_threshold,
		churn_trim, CASE WHEN churn_threads AND churn_block <= 60 * 1048576
			THEN 67108864 END FROM measure
),
worded AS (
	SELECT *, CASE WHEN trim_value > 2147483647 THEN -1 ELSE trim_value END AS trim_int,
		COALESCE(':glibc.malloc.trim_threshold=' || trim_value, '')
			|| COALESCE(':glibc.malloc.top_pad=' || pad_value, '') AS rest
	FROM wanted
)
SELECT k.column1 AS kind, w.trim_int,
	SUBSTR(CASE WHEN one_arena THEN ':glibc.malloc.arena_max=1' ELSE '' END
		|| COALESCE(':glibc.malloc.mmap_threshold=' || mmap_value, '') || rest, 2)
		AS tunables,
	SUBSTR(CASE WHEN one_arena THEN ':glibc.malloc.arena_max=1' ELSE '' END
		|| CASE WHEN mmap_value > 33554432 THEN ':glibc.malloc.mmap_max=0'
			ELSE COALESCE(':glibc.malloc.mmap_threshold=' || mmap_value, '') END
		|| rest, 2) AS old_tunables,
	SUBSTR(CASE WHEN one_arena THEN ' MALLOC_ARENA_MAX=1' ELSE '' END
		|| CASE WHEN mmap_value > 33554432 THEN ' MALLOC_MMAP_MAX_=0'
			ELSE COALESCE(' MALLOC_MMAP_THRESHOLD_=' || mmap_value, '') END
		|| COALESCE(' MALLOC_TRIM_THRESHOLD_=' || trim_int, '')
		|| COALESCE(' MALLOC_TOP_PAD_=' || pad_value, ''), 2) AS variables
FROM (VALUES ('trim_storm'), ('heap_storm'), ('map_storm'), ('churn')) k
LEFT JOIN worded w ON w.kind = k.column1;

-- One row: the command that was traced, and what its environment set for the allocator: whoever
-- tries something later may not have that in theirs. It goes in front of a command that is to be
-- pasted into a shell, perhaps root's, and the traced program's owner wrote it: only settings whose
-- names are an allocator's, of characters that no shell takes for more than themselves. (Values
-- with blanks come apart into words that have no such name.)
CREATE VIEW target_setting AS
WITH plain AS (
	SELECT a.tunables, ROW_NUMBER() OVER (ORDER BY p.role <> 'target', p.start_ns, a.pid,
		a.module) AS number
	FROM allocator a JOIN process p ON p.pid = a.pid
	WHERE a.tunables <> '' AND a.tunables NOT GLOB '*[^A-Za-z0-9_.=:,+ /-]*' AND NOT EXISTS (
		SELECT 1 FROM (SELECT j.value, SUBSTR(j.value, 1, INSTR(j.value, '=') - 1) AS name
			-- not text that is no JSON, whichever condition SQLite tries first
			FROM json_each(CASE WHEN a.tunables NOT GLOB '*[^A-Za-z0-9_.=:,+ /-]*'
				THEN '["' || REPLACE(a.tunables, ' ', '","') || '"]'
				ELSE '[]' END) j)
		WHERE value NOT LIKE '%=%' OR name GLOB '*[^A-Z0-9_]*'
			OR name <> 'GLIBC_TUNABLES' AND name NOT GLOB '*MALLOC_[A-Z]*')
)
SELECT COALESCE((SELECT value FROM meta WHERE key = 'target_words'), 'COMMAND') AS words,
	COALESCE((SELECT tunables FROM plain WHERE number = 1), '') AS setting;

-- Figures of the verdict and the advice, by the names that templates have for them. expression is
-- SQL over a row of view source, as conditions are (advice.sql), which advice_source makes view
-- figure_value of. Where source has a row for each kind of something, a * in the name stands for
-- the kind.
CREATE TABLE advice_figure (
	name       TEXT PRIMARY KEY,
	kind       TEXT NOT NULL,	-- as view figure words it: b, e, t, c, s or x
	expression TEXT NOT NULL,
	source     TEXT NOT NULL DEFAULT 'weighed'
) WITHOUT ROWID;

INSERT INTO advice_figure (name, kind, expression) VALUES
('observed', 't', 'observed_ns'), ('missed', 'c', 'missed'), ('doubt', 's', 'doubt'),
('major_missed', 'c', 'major_missed'), ('swap_missed', 'c', 'swap_missed'),
('over', 'c', 'over'), ('over_share', 's', 'over_share'),
('memory', 's', 'memory_share'),
('memory_most', 'x', 'CASE WHEN memory_first_share > 0 THEN PRINTF('', most in %s: %.*f %%'',
	memory_family, memory_first_share < 0.00995, 100 * memory_first_share) ELSE '''' END'),
('first', 's', 'first_share'),
('first_range', 'x', 'PRINTF(''%.0f-%.0f %%'', 100 * first_low, 100 * first_high)'),
('second_range', 'x', 'PRINTF(''%.0f-%.0f %%'', 100 * second_low, 100 * second_high)'),
('zeroing', 's', 'zeroing_share'), ('swap', 's', 'swap_share'),
('libc_calls', 'c zero.libc', 'libc_calls'),
('libc_cleared', 'c zero.libc', 'libc_cleared'), ('libc_bytes', 'b zero.libc', 'libc_bytes'),
('libc_time', 't', 'libc_ns'), ('libc_block', 'b', 'libc_block'),
('libc_asked', 'b', 'libc_asked'),
('libc_least', 'x', 'CASE WHEN libc_each_least THEN ''at least '' ELSE '''' END'),
('libc_each', 't', 'libc_each_ns'),
('libc_place', 'x', 'libc_place'), ('beside_call', 'x', 'beside_call'),
('beside_place', 'x', 'NULLIF(beside_place, '''')'),
('libc_all_bytes', 'b zero.libc', 'libc_all_bytes'),
('libc_pages', 'c', 'libc_pages'), ('fault', 't', 'fault_ns'),
('libc_touch', 't', 'libc_touch_ns'),
('break_even', 's', 'MIN(1.0, libc_each_ns / libc_touch_ns)'),
('threshold_low', 'e', 'threshold_low'), ('threshold_high', 'e', 'threshold_high'),
('all_libc_bytes', 'b', 'all_libc_bytes'), ('all_libc_time', 't', 'all_libc_ns'),
('all_libc_place', 'x', 'all_libc_place'), ('twice_calloc_bytes', 'b', 'twice_calloc_bytes'),
('twice_calloc_time', 't', 'twice_calloc_ns'), ('twice_app_bytes', 'b', 'twice_app_bytes'),
('twice_app_time', 't', 'twice_app_ns'), ('twice_app_place', 'x', 'twice_app_place'),
('app_time', 't', 'app_ns'),
('app_samples', 'c', 'app_samples'), ('app_place', 'x', 'app_place'),
('app_bytes', 'b', 'app_bytes'),
('app_memory', 'x', 'CASE WHEN app_call <> '''' AND app_made IS NOT NULL
	THEN '', in memory of '' || app_call
		|| CASE WHEN app_told THEN '' at '' || app_made ELSE '''' END
	WHEN app_area LIKE ''stack%'' THEN '', on the '' || app_area
	WHEN app_area <> '''' THEN '', in the '' || app_area ELSE '''' END'),
('app_low_bytes', 'b', 'app_low_bytes'), ('app_high_bytes', 'b', 'app_high_bytes'),
('copy', 's', 'copy_share'), ('copy_bytes', 'b', 'copy_bytes'), ('copy_place', 'x', 'copy_place'),
('reclaim_count', 'c', 'reclaim_count'), ('reclaim_time', 't', 'reclaim_ns'),
('reclaim_of', 'x', 'CASE WHEN reclaim_cgroup THEN ''its memory cgroup'' ELSE ''the machine'' END'),
-- figures are filled in by the order of their names: {out_by} and {out_bytes} after this one
('out_also', 'x', 'CASE WHEN pushed_bytes > 0 THEN ''; {out_bytes} pushed out{out_by}''
	ELSE '''' END'),
('out_bytes', 'b', 'pushed_bytes'),
('out_by', 'x', 'CASE WHEN out_pages > 0 THEN PRINTF('', %.0f %% of it by the target itself'',
	100.0 * out_self / out_pages) ELSE '' at a time, at most'' END'),
('out_other', 's', '1.0 * out_other / MAX(out_pages, 1)'), ('back_bytes', 'b', 'back_bytes'),
('back_returns', 'x', 'PRINTF(''%.1f'', back_returns)'), ('back_first', 'b', 'back_first_bytes'),
('memory_limit', 'b', 'limit_bytes'),
('memory_of', 'x',
	'CASE WHEN limit_path IS NOT NULL THEN ''its memory cgroup, '' || limit_path
	ELSE ''the machine'' END'),
('rss_peak', 'b', 'rss_peak_bytes'), ('swap_peak', 'b', 'swap_peak_bytes'),
('came_back', 'b', 'came_back_bytes'), ('fits', 'b', 'fits_bytes'),
('swap_from', 'x', 'swap_from'), ('kernel_time', 't', 'kernel_ns'),
('kernel_clear', 't', 'kernel_clear_ns'), ('kernel_work', 't', 'kernel_work_ns'),
('kernel_bytes', 'b', 'kernel_bytes'),
('kernel_fault_each', 't', 'kernel_ns / MAX(kernel_faults, 1)'),
('kernel_fault_can', 't', 'fault_ns + kernel_clear_ns / MAX(kernel_faults, 1)'),
('kernel_faults', 'c zero.kernel', 'kernel_faults'),
('unwritten_faults', 'c zero.kernel', 'unwritten_faults'),
('unwritten_bytes', 'b', 'unwritten_bytes'),
('unwritten_time', 't', 'unwritten_ns'),
('kernel_call', 'x', 'NULLIF(kernel_call, '''')'), ('kernel_place', 'x', 'kernel_place'),
('kernel_touched', 'x', 'kernel_touched'),
('kernel_site_faults', 'c zero.kernel', 'kernel_site_faults'),
('kernel_site_bytes', 'b', 'kernel_site_bytes'), ('kernel_made', 'c', 'kernel_made'),
('kernel_freed', 'c', 'kernel_freed'), ('kernel_block', 'b', 'kernel_block'),
('kernel_each', 't', 'kernel_each_ns'), ('kernel_memset', 't', 'kernel_memset_ns'),
('map_time', 't', 'map_ns'),
('map_calls', 'c map', 'map_calls'), ('map_each', 't', 'map_each_ns'),
('map_call', 'x', 'map_call'),
-- as above: {map_calls} after this one
('map_by_count', 'x', 'CASE WHEN 2 * map_sampled_ns > map_ns
	THEN ''Mapping calls, as CPU samples tell,'' ELSE ''{map_calls} mapping calls'' END'),
('map_place', 'x', 'map_place'), ('mapper_call', 'x', 'mapper_call'),
('mapper_block', 'b', 'mapper_block'),
('mapper_each', 't', 'mapper_each_ns'), ('mapper_memset', 't', 'mapper_memset_ns'),
('mapper_place', 'x', 'mapper_place'),
('libc_used', 's', 'libc_used'), ('unused_bytes', 'b', 'unused_bytes'),
('freed_bytes', 'b', 'freed_bytes'),
('unused_part', 's', '1.0 * unused_bytes / MAX(freed_bytes, 1)'), ('alloc_time', 't', 'alloc_ns'),
('alloc_calls', 'c alloc', 'alloc_calls'), ('alloc_each', 't', 'alloc_each_ns'),
('malloc', 't', 'malloc_ns'), ('alloc_call', 'x', 'alloc_call'),
('alloc_place', 'x', 'alloc_place'), ('swap_time', 't', 'swap_ns'),
('swap_faults', 'c swap.in', 'swap_faults'), ('swap_bytes', 'b', 'swap_bytes'),
('swap_place', 'x', 'swap_place'),
('swap_call', 'x', 'NULLIF(swap_call, '''')'), ('swap_made', 'x', 'swap_made'),
('shared_time', 't', 'shared_ns'), ('shared_faults', 'c file.fault', 'shared_faults'),
('shared_bytes', 'b', 'shared_bytes'), ('shared_processes', 'x',
	'CASE shared_processes WHEN 1 THEN ''one process''
	ELSE shared_processes || '' processes'' END'),
('shared_segment', 'x', 'CASE WHEN file_segment <> '''' THEN '' ('' || file_segment || '')''
	ELSE '''' END'),
('kernel_segment', 'x', 'CASE WHEN kernel_segment <> '''' THEN '' ('' || kernel_segment || '')''
	ELSE '''' END'),
('swap_segment', 'x', 'swap_segment'),
('swap_memory', 'x', 'CASE WHEN swap_segment <> ''''
		THEN '', in shared memory ('' || swap_segment || '')''
	WHEN swap_call <> '''' AND swap_segment = '''' THEN '', in shared memory''
	WHEN swap_call <> '''' THEN '', in memory'' ELSE '''' END
	|| CASE WHEN swap_call <> ''''
		THEN '' of '' || swap_call || '' at '' || swap_made ELSE '''' END'),
('cow_time', 't', 'cow_ns'),
('cow_faults', 'c cow', 'cow_faults'), ('cow_bytes', 'b', 'cow_bytes'),
('cow_place', 'x', 'cow_place'), ('file_time', 't', 'file_ns'),
('file_faults', 'c file.fault', 'file_faults'), ('file_major', 'c', 'file_major'),
('file_place', 'x', 'file_place'),
('file_most', 'x', 'CASE WHEN file_functions >= 5 AND 5 * file_function_share < 1
	AND 2 * file_area_share >= 1 AND INSTR(file_area, ''/'') > 0
	THEN PRINTF(''%.0f %% of their time in %s, by %,d functions, none of which takes more ''
		|| ''than %.*f %%'', 100 * file_area_share, file_area, file_functions,
		file_function_share < 0.00995, 100 * file_function_share)
	ELSE ''most at '' || COALESCE(file_place, ''an unknown place'') END'),
('read_place', 'x', 'read_place'),
('user_time', 't', 'user_ns'), ('user_faults', 'c fault.user', 'user_faults'),
('user_each', 't', 'user_ns / MAX(user_faults, 1)'), ('user_place', 'x', 'user_place'),
('other_faults', 'c fault.other', 'other_faults'),
('other_each', 't', 'other_ns / MAX(other_faults, 1)'),
('other_place', 'x', 'other_place'),
('moved', 's', 'moved_share'),
('command', 'x', '(SELECT CASE WHEN setting <> '''' AND words NOT LIKE ''%GLIBC_TUNABLES=%''
	AND words NOT GLOB ''*MALLOC_[A-Z]*=*'' THEN ''env '' || setting || '' '' ELSE '''' END
	|| words FROM target_setting)');

INSERT INTO advice_figure (name, kind, expression, source) VALUES
('*_tunables', 'x', 'tunables', 'glibc_setting'),
('*_old_tunables', 'x', 'old_tunables', 'glibc_setting'),
('*_variables', 'x', 'REPLACE(variables, '' '', '' and '')', 'glibc_setting'),
('*_sets', 'x', 'REPLACE(variables, '' '', '' --set '')', 'glibc_setting'),
('*_mallopt', 'x',
	'REPLACE(REPLACE(REPLACE(REPLACE(variables, ''MALLOC_'', ''M_''), ''_='', '' to ''),
	''='', '' to ''), '' M_'', '' and M_'')', 'glibc_setting'),
('*_trim_int', 'x', 'CAST(trim_int AS TEXT)', 'glibc_setting');

INSERT INTO advice_figure (name, kind, expression, source) VALUES
('*_storm_gave', 'b', 'gave_bytes', 'giveback_kind'),
('*_storm_again', 'b', 'again_bytes', 'giveback_kind'),
('*_storm_per_s', 'b', 'again_bytes_per_s', 'giveback_kind'),
('*_storm_twice', 'b', 'twice_bytes', 'giveback_kind'),
('*_storm_faults', 'c', 'again_faults', 'giveback_kind'),
('*_storm_calls', 'c', 'calls', 'giveback_kind'),
('*_storm_time', 't', 'time_ns', 'giveback_kind'),
('*_storm_again_time', 't', 'again_ns', 'giveback_kind'),
('*_storm_gave_time', 't', 'gave_ns', 'giveback_kind'),
('*_storm_memset', 't', 'memset_ns', 'giveback_kind'),
('*_storm_largest', 'b', 'largest_bytes', 'giveback_kind'),
-- where it is known, and not less than could be read from it
('*_storm_rose', 'x', 'CASE WHEN span_bytes >= 104858
	THEN PRINTF('' The heap fell and rose by %.1f MiB at most.'', span_bytes / 1048576.0)
	ELSE '''' END', 'giveback_kind'),
('*_storm_came', 'x', 'CASE WHEN span_bytes >= 104858
	THEN PRINTF('' At most %.1f MiB came and went.'', span_bytes / 1048576.0)
	ELSE '''' END', 'giveback_kind'),
('*_storm_gave_call', 'x', 'COALESCE(NULLIF(gave_call, ''''), ''the program'')', 'giveback_kind'),
('*_storm_gave_place', 'x', 'gave_place', 'giveback_kind'),
('*_storm_got_call', 'x', 'COALESCE(NULLIF(got_call, ''''), ''the code'')', 'giveback_kind'),
('*_storm_got_place', 'x', 'got_place', 'giveback_kind'),
('*_storm_allocator', 'x', 'allocator', 'giveback_kind'),
('*_storm_how', 'x',
	'CASE how WHEN ''dontneed'' THEN ''madvise'' WHEN ''free'' THEN ''madvise''
	WHEN ''fixed'' THEN ''mmap'' WHEN ''heap'' THEN ''munmap''
	WHEN ''stack'' THEN ''madvise'' WHEN ''stack_unmapped'' THEN ''munmap'' ELSE how END',
	'giveback_kind'),
('*_storm_threshold', 'e', 'threshold', 'giveback_kind'),
('*_storm_conf', 'x', 'COALESCE(prefix, '''') || ''MALLOC_CONF''', 'giveback_kind');


INSERT INTO advice_figure (name, kind, expression, source) VALUES
('consolidation_call', 'x', 'consolidation_call', 'latency_measure'),
('consolidation_place', 'x', 'NULLIF(consolidation_place, '''')', 'latency_measure'),
('consolidation_time', 't', 'consolidation_ns', 'latency_measure'),
('consolidation_all', 't', 'consolidation_all_ns', 'latency_measure'),
('consolidation_median', 't', 'consolidation_median_ns', 'latency_measure'),
('consolidation_frees', 'c', 'consolidation_frees', 'latency_measure'),
('lock_time', 't', 'lock_ns', 'latency_measure'),
('lock_waits', 'c', 'lock_waits', 'latency_measure'),
('lock_call', 'x', 'lock_call', 'latency_measure'),
('lock_call_share', 's', 'lock_call_share', 'latency_measure'),
('stall', 'x', 'stall', 'latency_measure'),
('probes_part', 's', 'MIN(1.0, overhead_ns / MAX(cpu_ns, 1.0))', 'observed'),
('probes_error', 't', 'overhead_error_ns', 'observed');

INSERT INTO advice_figure (name, kind, expression, source) VALUES
('read_calls', 'c file.read', 'read_calls', 'read_measure'),
('read_bytes', 'b', 'read_bytes', 'read_measure'), ('read_time', 't', 'read_ns', 'read_measure'),
('read_asleep', 't', 'read_blocked_ns', 'read_measure'),
('read_cached', 's', '1.0 * read_cached_bytes / MAX(read_bytes, 1)', 'read_measure'),
('read_path', 'x', 'COALESCE(NULLIF(read_path, ''''), ''a file without a name'')', 'read_measure'),
('read_path_share', 's', 'read_path_share', 'read_measure'),
('read_different', 'b', 'read_different_bytes', 'read_measure'),
('reread', 'x', 'PRINTF(''%.1f'', reread_factor) || CASE WHEN reread_high - reread_low > 0.1
	THEN PRINTF('' (%.1f-%.1f)'', reread_low, reread_high) ELSE '''' END', 'read_measure'),
('reread_half', 'b', 'reread_half_bytes', 'read_measure'),
('pool', 'b', 'pool_bytes', 'read_measure'),
('pool_setting', 'x',
	'CASE own_program WHEN ''PostgreSQL''
	THEN own_setting || '' = '' || (pool_bytes / 1048576) || ''MB''
	ELSE own_setting || ''='' || (pool_bytes / 1048576) || ''M'' END', 'read_measure'),
('own_program', 'x', 'own_program', 'read_measure'),
('own_setting', 'x', 'own_setting', 'read_measure'),
('own_cache', 'b', 'own_bytes', 'read_measure'),
('own_source', 'x', 'own_source', 'read_measure'),
('swap_half', 'b', 'swap_half_bytes', 'read_measure'),
('swap_most', 'b', 'swap_most_bytes', 'read_measure'),
('swap_most_saved', 's', 'swap_most_saved', 'read_measure');

INSERT INTO advice_figure (name, kind, expression, source) VALUES
('cache_path', 'x', 'COALESCE(NULLIF(path, ''''), ''a file'')', 'page_cache'),
('cache_again', 'b', '4096 * again_pages', 'page_cache'),
('cache_filled', 'b', '4096 * fill_pages', 'page_cache'),
('cache_vain', 'b', '4096 * vain_pages', 'page_cache'),
('cache_back', 'b', 'back_bytes', 'page_cache'),
('cache_returns', 'x', 'PRINTF(''%.1f'', returns)', 'page_cache'),
('cache_working', 'b', 'working_bytes', 'page_cache'),
('cache_fits', 'b', 'fits_bytes', 'page_cache'), ('cache_box', 'b', 'box_bytes', 'page_cache'),
('cache_box_path', 'x', 'box_path', 'page_cache'),
('cache_by', 'x', 'dropped_by', 'page_cache'),
('given_bytes', 'b', '(SELECT given_bytes FROM given_measure)', 'page_cache'),
('given_time', 't', '(SELECT given_ns FROM given_measure)', 'page_cache'),
('given_calls', 'c', '(SELECT given_calls FROM given_measure)', 'page_cache'),
('given_place', 'x', '(SELECT given_place FROM given_measure)', 'page_cache'),
('swap_by', 'x', 'COALESCE((SELECT text FROM dropper WHERE what = ''swap''), '''')', 'page_cache'),
('cache_beside', 'b', 'beside_bytes', 'page_cache'),
('cache_refaults', 'x', 'CASE WHEN COALESCE(group_refaults, all_refaults) IS NOT NULL
	THEN PRINTF(''%,d'', COALESCE(group_refaults, all_refaults))
	|| CASE WHEN group_refaults IS NULL THEN '' pages on the machine''
	ELSE '' pages in its group'' END END',
	'page_cache'),
('wide_used', 'b', '4096 * wide_used', 'page_cache'),
('wide_filled', 'b', '4096 * wide_fill', 'page_cache'),
('wide_each', 'x', 'CASE WHEN wide_each >= 10 THEN PRINTF(''%.0f'', wide_each)
	ELSE PRINTF(''%.1f'', wide_each) END', 'page_cache');
