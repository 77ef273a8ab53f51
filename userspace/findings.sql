-- SPDX-License-Identifier: GPL-2.0
--
-- findings.sql: the verdict in words and the advice. Figures are gathered once (measure), made text
-- in human units (figure), and put into the templates' {names}. Follows views.sql.

-- The largest site of each toll, and what a sentence calls its two places. Depth 0 of an allocation
-- stack is the allocator's function: the place is the caller.
CREATE VIEW top_site AS
SELECT t.toll, t.call, t.allocated_stack, t.touched_stack, t.known_clearing, t.time_ns, t.share,
	t.bytes, t.count,
	(SELECT l.said FROM stack_line l WHERE l.stack_id = t.allocated_stack
		AND (l.depth > 0 OR t.toll = 'map') ORDER BY l.usable, l.depth LIMIT 1)
		AS allocated_place,
	(SELECT l.said FROM stack_line l WHERE l.stack_id = t.touched_stack
		ORDER BY l.usable, l.depth LIMIT 1) AS touched_place
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
		MAX(CASE toll WHEN 'alloc' THEN allocated_place END) AS alloc_place,
		MAX(CASE toll WHEN 'swap.in' THEN touched_place END) AS swap_place,
		MAX(CASE toll WHEN 'cow' THEN touched_place END) AS cow_place,
		MAX(CASE toll WHEN 'file.fault' THEN touched_place END) AS file_place,
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
			COALESCE((SELECT x.said FROM stack_line x
				WHERE x.stack_id = c.stack_id AND x.depth > 0
				ORDER BY x.usable, x.depth LIMIT 1), '') AS place
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
		COALESCE(SUM(CASE what WHEN 'out_self' THEN pages END), 0) AS out_self
	FROM swap
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
	o.observed_ns, o.cpu_ns, f.*, t.*, s.*,
	CASE WHEN o.observed_ns > 0 AND 3 * f.first_share >= 1 THEN f.first_family ELSE 'none' END
		AS dominant,
	l.calls AS libc_calls, l.cleared_calls AS libc_cleared, l.cleared_bytes AS libc_bytes,
	l.time_ns AS libc_ns, 1.0 * l.cleared_bytes / l.cleared_calls AS libc_block,
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
	p.call AS mapper_call, p.calls AS mapper_calls, 1.0 * p.bytes / p.calls AS mapper_block,
	t.map_ns / p.calls AS mapper_each_ns,
	CASE WHEN c.memset_bytes_per_s > 0
		THEN 1e9 * p.bytes / p.calls / c.memset_bytes_per_s END AS mapper_memset_ns,
	(p.bytes / p.calls + 4096 + 1048575) / 1048576 * 1048576 AS mapper_threshold,
	(SELECT x.said FROM stack_line x WHERE x.stack_id = p.stack_id AND x.depth > 0
		ORDER BY x.usable, x.depth LIMIT 1) AS mapper_place,
	k.unused_bytes, k.freed_bytes, k.made_bytes,
	t.alloc_ns / MAX(t.alloc_calls, 1) AS alloc_each_ns,
	COALESCE((SELECT SUM(faults) FROM process_fault WHERE class = 'swap_major'), 0)
		AS swap_major,
	w2.reclaim_count, w2.reclaim_ns, w2.reclaim_cgroup, w2.out_pages, w2.out_self,
	COALESCE((SELECT SUM(faults) FROM process_fault
		WHERE class IN ('file_major', 'shared_major')), 0) AS file_major
FROM observed o JOIN calibrated c JOIN t JOIN s JOIN f JOIN twice w JOIN foreign_libc fl
JOIN pushed w2
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
		'out_bytes', json_array('b', m.out_pages * 4096),
		'out_self', json_array('s', 1.0 * m.out_self / MAX(m.out_pages, 1)),
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
		'cow_time', json_array('t', m.cow_ns), 'cow_faults', json_array('c', m.cow_faults),
		'cow_bytes', json_array('b', m.cow_bytes), 'cow_place', json_array('x',
			m.cow_place),
		'file_time', json_array('t', m.file_ns), 'file_faults', json_array('c',
			m.file_faults),
		'file_major', json_array('c', m.file_major),
		'file_place', json_array('x', m.file_place),
		'compute_place', json_array('x', m.compute_place)))) FROM measure m
),
value(name, kind, v) AS (
	SELECT j.key, json_extract(j.value, '$[0]'), json_extract(j.value, '$[1]')
	FROM wide, json_each(wide.object) j
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
	WHEN v IS NULL THEN CASE WHEN name LIKE '%place' OR name LIKE '%touched'
		THEN 'an unknown place' WHEN name LIKE '%call' THEN 'the program' ELSE 'unknown' END
	WHEN kind = 'x' THEN v
	WHEN kind = 'c' THEN PRINTF('%,d', v)
	WHEN kind = 'e' THEN PRINTF('%,d bytes', v)
	WHEN kind = 's' THEN CASE WHEN v > 0 AND v < 0.00995 THEN PRINTF('%.1f %%', 100 * v)
		ELSE PRINTF('%.0f %%', 100 * v) END
	WHEN unit = 'bytes' OR x >= 99.95 THEN PRINTF('%.0f %s', x, unit)
	WHEN x >= 9.995 THEN PRINTF('%.1f %s', x, unit)
	ELSE PRINTF('%.2f %s', x, unit) END AS text
FROM scaled;

-- The sentence of a verdict. Parts by the first family and its largest toll.
CREATE VIEW verdict AS
WITH RECURSIVE
known(name, number, text) AS MATERIALIZED (
	SELECT name, ROW_NUMBER() OVER (ORDER BY name), text FROM figure
),
template AS (
	SELECT m.dominant, m.first_share AS share, m.first_low AS low, m.first_high AS high, CASE
	WHEN m.observed_ns <= 0 THEN 'Nothing was observed: the target used no CPU time.'
	WHEN m.dominant = 'none' THEN 'No family dominates: the largest, ' || m.first_family
		|| ', takes {first} ({first_range}) of the observed {observed}, less than a '
		|| 'third.'
	ELSE CASE m.dominant
		WHEN 'zeroing' THEN 'Zeroing takes' WHEN 'swap' THEN 'Swap traffic takes'
		WHEN 'cow' THEN 'Copying pages on write takes' WHEN 'file' THEN 'File access takes'
		WHEN 'allocator' THEN 'The allocator itself takes'
		WHEN 'mapping' THEN 'Mapping calls take' ELSE 'Computing takes' END
		|| ' {first} ({first_range}) of the observed {observed}: '
		|| CASE m.first_toll
		WHEN 'zero.libc' THEN CASE WHEN m.libc_ns >= m.foreign_ns
			THEN 'libc''s calloc clears {libc_all_bytes} of reused memory'
				|| CASE WHEN m.libc_bytes < m.libc_all_bytes THEN ', most' ELSE '' END
				|| ' at {libc_place}.'
			ELSE 'calloc memsets every block at {all_libc_place}'
				|| CASE WHEN m.all_libc_bytes > 0
				THEN ', at least {all_libc_bytes}; the whole is unknown.'
				ELSE '; how many bytes is unknown.' END END
		WHEN 'zero.kernel' THEN
			'the kernel clears {kernel_bytes} in {kernel_faults} first-touch faults, most '
			|| CASE WHEN m.kernel_call <> '' THEN 'for {kernel_call} at {kernel_place}'
				ELSE 'outside the followed blocks, touched at {kernel_touched}' END
			|| CASE WHEN 2 * m.twice_calloc_bytes >= m.kernel_bytes
				AND m.kernel_bytes > 0
				THEN ', and calloc''s memset clears {twice_calloc_bytes} of it again.'
			WHEN 2 * m.twice_app_bytes >= m.kernel_bytes AND m.kernel_bytes > 0
				THEN ', and a memset clears {twice_app_bytes} of it again.'
			ELSE '.' END
		WHEN 'zero.app' THEN CASE WHEN EXISTS (SELECT 1 FROM not_captured WHERE toll = 'zero.libc')
				THEN 'memset (calloc''s own too: the allocator was not probed)'
				ELSE 'memset outside the allocator' END
			|| ', most at {app_place}.'
		WHEN 'swap.in' THEN '{swap_faults} faults bring {swap_bytes} back from swap '
			|| '({swap_major} read from the device), most at {swap_place}.'
		WHEN 'reclaim' THEN 'it had to reclaim memory itself {reclaim_count} times, because '
			|| '{reclaim_of} is full, and {out_bytes} of it were pushed out to swap'
			|| CASE WHEN 20 * m.swap_bytes < m.out_pages * 4096
				THEN '; hardly any of that came back.'
				ELSE '; {swap_bytes} came back, most at {swap_place}.' END
		WHEN 'cow' THEN '{cow_faults} writes copy shared pages, {cow_bytes}, most at '
			|| '{cow_place}.'
		WHEN 'file.fault' THEN '{file_faults} faults map file pages in ({file_major} of '
			|| 'them read), most at {file_place}.'
		WHEN 'alloc' THEN '{alloc_calls} calls, {alloc_each} each, most in {alloc_call} '
			|| 'at {alloc_place}.'
		WHEN 'map' THEN '{map_calls} calls, {map_each} each, most in {map_call} at '
			|| '{map_place}.'
		WHEN 'compute' THEN 'memory is not what it waits for (zeroing {zeroing}, swap {swap}).'
		ELSE m.first_toll || '.' END
	END
	|| CASE WHEN m.observed_ns > 0 AND m.second_share > 0 AND m.second_high >= m.first_low
		THEN ' The order is not certain: ' || m.second_family
			|| ' ({second_range}) overlaps it.' ELSE '' END AS text
	FROM measure m
),
filled(dominant, share, low, high, text, number) AS (
	SELECT dominant, share, low, high, text, 0 FROM template
	UNION ALL
	SELECT f.dominant, f.share, f.low, f.high, REPLACE(f.text, '{' || k.name || '}', k.text),
		k.number
	FROM filled f JOIN known k ON k.number = f.number + 1
)
SELECT dominant, COALESCE(share, 0.0) AS share,
	MIN(COALESCE(low, 0.0), COALESCE(share, 0.0)) AS low,
	MAX(COALESCE(high, 0.0), COALESCE(share, 0.0)) AS high, text AS sentence
FROM filled ORDER BY number DESC LIMIT 1;

-- Advice. Only for a family that dominates or takes more than 20 %, and only where the change can
-- gain more than 10 % of the observed time (gain). Without any: code none.
CREATE VIEW finding AS
WITH RECURSIVE
known(name, number, last, text) AS MATERIALIZED (
	SELECT name, ROW_NUMBER() OVER (ORDER BY name), COUNT(*) OVER (), text FROM figure
),
candidates(list) AS (		-- each: position, code, gain, whether it applies, text, evidence
	SELECT json_array(
		json_array(1, 'calloc-reuse-memset', libc_ns / base_ns,
		zeroing_matters AND libc_whole AND libc_block >= 131072
			AND COALESCE(threshold_dynamic, 1) = 1,
		'calloc at {libc_place} gets blocks of {libc_asked} from the heap, and glibc '
		|| 'memsets all of each: {libc_each} a call. The mmap_threshold is dynamic: it '
		|| 'starts at 131,072 bytes, and the first free of an mmapped block raises it to '
		|| 'that block''s size (now '
		|| CASE WHEN threshold_low IS NULL THEN 'at least {libc_block}, not seen exactly'
			WHEN threshold_low = threshold_high THEN '{threshold_low}'
			WHEN threshold_high IS NULL THEN 'at least {threshold_low}'
			ELSE 'between {threshold_low} and {threshold_high}' END
		|| '), so that smaller requests are then served from the heap. '
		|| 'GLIBC_TUNABLES=glibc.malloc.mmap_threshold=131072, or '
		|| 'mallopt(M_MMAP_THRESHOLD, 131072), pins it: each call then maps fresh zero '
		|| 'pages and nothing is memset. The price: every page the program then uses '
		|| 'costs a fault, {libc_pages} faults x {fault} = {libc_touch} a call when the '
		|| 'whole block is used, against {libc_each} now. '
		|| CASE WHEN libc_touch_ns IS NULL OR libc_touch_ns <= 0
			THEN 'Use it only when little of each block is used; otherwise reuse one '
				|| 'buffer, or call malloc where everything is overwritten '
				|| 'anyway.'
			WHEN libc_each_ns >= libc_touch_ns
			THEN 'Here that is cheaper however much of the block is used.'
			ELSE 'Use it only when less than about {break_even} of each block is '
				|| 'used; otherwise reuse one buffer, or call malloc where '
				|| 'everything is overwritten anyway.' END,
		'{libc_cleared} of {libc_calls} calls came from the heap (chunk header) and '
		|| 'cleared {libc_bytes} in {libc_time}.'),
		json_array(2, 'calloc-memset', libc_ns / base_ns,
		zeroing_matters AND libc_whole
			AND NOT (libc_block >= 131072 AND COALESCE(threshold_dynamic, 1) = 1),
		'calloc at {libc_place} clears {libc_block} of reused memory a call, {libc_each} '
		|| 'each. Reuse one buffer and clear only what was used, or call malloc where '
		|| 'everything is overwritten anyway.'
		|| CASE WHEN threshold_dynamic = 0 AND libc_block >= 131072
			THEN ' The mmap_threshold is pinned by a tunable at a size above these '
				|| 'blocks; a lower one would map fresh zero pages, at {fault} '
				|| 'for every page that is used.' ELSE '' END,
		'{libc_cleared} of {libc_calls} calls cleared {libc_bytes} in {libc_time} (chunk '
		|| 'header).'),
		json_array(3, 'calloc-double-clear', (twice_calloc_ns + foreign_ns) / base_ns,
		zeroing_matters AND twice_calloc_bytes > 0,
		'calloc memsets pages that the kernel had just cleared: {twice_calloc_bytes} '
		|| 'were cleared twice. '
		|| CASE WHEN foreign_ns > 0 OR foreign_kind IS NOT NULL
			THEN 'The allocator should return fresh mappings (mmap, MADV_DONTNEED) '
				|| 'without a memset: calloc''s zeroes are already there, and '
				|| 'pages the program never uses would not be faulted in at all. '
				|| 'Use another allocator or a newer one, or allocate such '
				|| 'blocks by mmap.'
			ELSE 'glibc gave the top of the heap back and got it again: raise '
				|| 'GLIBC_TUNABLES=glibc.malloc.trim_threshold=67108864, so that '
				|| 'it is kept; resident memory then stays at its peak.' END,
		'{twice_calloc_bytes} first touched by the memset inside calloc, '
		|| '{twice_calloc_time} of faults; {all_libc_time} of memset.'),
		json_array(4, 'app-double-clear', (twice_app_ns + app_ns) / base_ns,
		zeroing_matters AND twice_app_ns > 0.1 * base_ns,
		'memset at {app_place} clears pages that the kernel had just cleared: '
		|| '{twice_app_bytes} were cleared twice. Call calloc instead of malloc and '
		|| 'memset, or keep the block and clear only what was used: fresh pages are zero '
		|| 'already, and those never used would not be faulted in at all.',
		'{twice_app_bytes} first touched by a memset to zero, {twice_app_time} of '
		|| 'faults; {app_samples} CPU samples in memset.'),
		json_array(5, 'memset-app', app_ns / base_ns,
		zeroing_matters AND twice_app_ns <= 0.1 * base_ns,
		CASE WHEN EXISTS (SELECT 1 FROM not_captured WHERE toll = 'zero.libc')
				THEN 'memset (calloc''s own too: the allocator was not probed)'
				ELSE 'memset outside the allocator' END
		|| ' takes {app_time}, most at {app_place}. Clear only '
		|| 'the part that was used, or once instead of every round.',
		'{app_samples} CPU samples lie in memset, called from {app_place}.'),
		json_array(6, 'first-touch', (kernel_ns - twice_calloc_ns - twice_app_ns) / base_ns,
		zeroing_matters,
		CASE WHEN kernel_call <> '' THEN 'Blocks of {kernel_call} at {kernel_place}'
			ELSE 'Memory outside the followed blocks, touched at {kernel_touched},' END
		|| CASE WHEN kernel_churns THEN
			' are made and freed again and again ({kernel_made} made, {kernel_freed} '
			|| 'freed, {kernel_block} each), and each time the kernel clears every '
			|| 'page that is used. Keep the buffer and reuse it'
			|| CASE WHEN kernel_memset_ns >= kernel_each_ns THEN
				'. Letting the allocator keep them would not help: calloc would '
				|| 'then memset all of each block, {kernel_memset} instead of '
				|| '{kernel_each} of faults.'
			WHEN has_glibc AND kernel_block >= 131072 THEN
				', or let glibc keep it: both '
				|| 'glibc.malloc.mmap_threshold={churn_threshold} and '
				|| 'glibc.malloc.trim_threshold={churn_trim} in GLIBC_TUNABLES, '
				|| 'joined by a colon (with the first alone the heap is trimmed '
				|| 'at each free). Resident memory then stays at its peak, and '
				|| 'calloc of these blocks would memset them.'
			ELSE ' (an allocator that purges at once can be told to wait: decay or '
				|| 'trim threshold). Resident memory then stays at its peak.' END
		WHEN kernel_call <> '' THEN ' are used for the first time: one fault and one '
			|| 'clearing for each page.'
		ELSE ' is used for the first time: one fault and one clearing for each page.' END
		|| ' Of the {kernel_time}, {kernel_clear} is the clearing itself and '
		|| '{kernel_work} the work of the faults: huge pages (madvise MADV_HUGEPAGE) can '
		|| 'save most of the latter, never the former.',
		'{kernel_faults} first-touch faults cleared {kernel_bytes}; the largest site has '
		|| '{kernel_site_faults} of them, {kernel_site_bytes}.'),
		json_array(7, 'never-used',
			mapping_share + CASE WHEN zeroing_matters THEN zeroing_share ELSE 0 END,
		(mapping_matters OR zeroing_matters) AND 2 * unused_bytes >= freed_bytes
			AND unused_bytes > 0,
		'{unused_bytes} ({unused_part}) of the blocks that were freed had never been '
		|| 'used. Ask for less: such memory costs address space and mapping calls.',
		'No fault ever touched {unused_bytes} of {freed_bytes} freed, in blocks with a '
		|| 'mapping of their own.'),
		json_array(8, 'map-churn', map_ns / base_ns,
		mapping_matters,
		CASE WHEN mapper_call IS NULL
			THEN '{map_calls} mapping calls, {map_each} each, most {map_call} at '
				|| '{map_place}. Map larger pieces, less often, and keep them.'
		ELSE '{mapper_call} at {mapper_place} makes blocks of {mapper_block} with a '
			|| 'mapping of their own: {mapper_each} of mapping calls a block. '
			|| CASE WHEN mapper_call <> 'calloc'
				THEN 'glibc.malloc.mmap_threshold={mapper_threshold} and '
					|| 'glibc.malloc.trim_threshold={mapper_trim} in '
					|| 'GLIBC_TUNABLES, joined by a colon, let glibc keep '
					|| 'them in the heap; resident memory then stays at its '
					|| 'peak. Or reuse one buffer.'
			WHEN mapper_memset_ns >= mapper_each_ns
				THEN 'Do not raise the mmap_threshold: from the heap calloc '
					|| 'would memset each block, {mapper_memset} instead of '
					|| '{mapper_each}. Reuse one buffer, or ask for less.'
			ELSE 'Reuse one buffer. A higher mmap_threshold would serve them from '
				|| 'the heap and memset each block, {mapper_memset} instead of '
				|| '{mapper_each}.' END
		END,
		'{map_calls} mapping calls took {map_time}.'),
		json_array(9, 'alloc-cpu', alloc_ns / base_ns,
		allocator_matters,
		'The allocator''s own work: {alloc_calls} calls, {alloc_each} each on average (a '
		|| 'small malloc here takes {malloc}), most in {alloc_call} at {alloc_place}. '
		|| 'Fewer and larger allocations, or objects kept for reuse, save it; if single '
		|| 'calls are long, look for consolidation and for threads waiting for one '
		|| 'arena.',
		'{alloc_time} in allocator functions, faults, mapping calls and clearing taken out.'),
		json_array(10, 'swap-in', swap_ns / base_ns,
		swap_matters,
		'The program uses more memory than it may keep: {swap_faults} faults on swapped '
		|| 'pages, most at {swap_place}. Give it more memory (or a higher cgroup limit), '
		|| 'or make its working set smaller: this is no matter of the allocator''s '
		|| 'settings.',
		'{swap_bytes} came back from swap, {swap_major} faults read the device, in {swap_time}.'),
		json_array(11, 'reclaim-stall', reclaim_ns / base_ns,
		swap_matters AND reclaim_count > 0,
		'Each page that is used for the first time has to push another one out first: '
		|| '{reclaim_of} is full. '
		|| CASE WHEN 20 * swap_bytes < out_pages * 4096
			THEN 'What was pushed out hardly ever came back, so this is no thrash: a pass '
				|| 'over more memory than there is. Work in smaller parts and free or '
				|| 'reuse each, or raise the limit.'
			ELSE 'Much of what was pushed out came back: the working set does not fit. '
				|| 'Raise the limit, or make the working set smaller.' END,
		'{reclaim_count} stalls, {reclaim_time}; {out_bytes} pushed out, {out_self} of it '
		|| 'by the target itself.'),
		json_array(12, 'cow', cow_ns / base_ns,
		cow_matters,
		'Pages shared with another process (after fork) or with a file are copied at the '
		|| 'first write, most at {cow_place}. Write less after the fork, fork before the '
		|| 'memory is filled, or use vfork, posix_spawn or shared memory.',
		'{cow_faults} faults, {cow_bytes}, {cow_time}.'),
		json_array(13, 'file-fault', file_ns / base_ns,
		file_matters,
		'Mapped file pages are faulted in, most at {file_place}; {file_major} faults had '
		|| 'to read. Read ahead (MADV_WILLNEED, MAP_POPULATE) or use read() with a large '
		|| 'buffer if the file is used once.',
		'{file_faults} faults in {file_time}.'))
	FROM (
		SELECT *,
			MAX(observed_ns, 1.0) AS base_ns,
			zeroing_share > 0.2 AS zeroing_matters, swap_share > 0.2 AS swap_matters,
			cow_share > 0.2 AS cow_matters, file_share > 0.2 AS file_matters,
			allocator_share > 0.2 AS allocator_matters, mapping_share > 0.2
				AS mapping_matters,
			COALESCE(kernel_freed >= 2 AND 2 * kernel_freed >= kernel_made, 0)
				AS kernel_churns
		FROM measure)
),
template(position, code, gain, text, evidence) AS (
	SELECT json_extract(j.value, '$[0]'), json_extract(j.value, '$[1]'),
		json_extract(j.value, '$[2]'), json_extract(j.value, '$[4]'),
		json_extract(j.value, '$[5]')
	FROM candidates, json_each(candidates.list) j WHERE json_extract(j.value, '$[3]')
),
due AS MATERIALIZED (
	SELECT ROW_NUMBER() OVER (ORDER BY gain DESC, position) AS position, code, gain, text,
		evidence
	FROM template WHERE gain > 0.1
),
said(position, code, gain, text, evidence) AS (
	SELECT position, code, gain, text, evidence FROM due
	UNION ALL
	SELECT 1, 'none', 0.0, 'There is no change of memory handling to advise.',
		'No toll with a known remedy takes 10 % of the observed {observed}: zeroing '
		|| '{zeroing}, swap {swap}.'
	WHERE NOT EXISTS (SELECT 1 FROM due)
),
filled(position, code, gain, text, evidence, number, last) AS (
	SELECT position, code, gain, text, evidence, 0, NULL FROM said
	UNION ALL
	SELECT f.position, f.code, f.gain, REPLACE(f.text, '{' || k.name || '}', k.text),
		REPLACE(f.evidence, '{' || k.name || '}', k.text), k.number, k.last
	FROM filled f JOIN known k ON k.number = f.number + 1
)
SELECT position, code, gain, text, evidence FROM filled
WHERE number = last;

-- What a reader must know before trusting the figures.
CREATE VIEW note AS
SELECT 1 AS position, 'incomplete: the recording was not finished'
	|| CASE WHEN last_slice IS NULL THEN '; it holds no slice'
		ELSE '; it is valid up to slice ' || last_slice END AS text
FROM target WHERE NOT complete
UNION ALL
SELECT 2, 'process ' || p.pid || COALESCE(' (' || p.comm || ')', '')
	|| CASE WHEN a.module IS NULL THEN ' maps no known allocator: no allocations are seen, '
		|| 'only faults, mapping calls and CPU samples'
	ELSE ' uses an unknown allocator (' || a.module
		|| '): what its calloc clears is an estimate'
	END
FROM process p LEFT JOIN allocator a ON a.pid = p.pid
WHERE a.module IS NULL OR (a.kind = 'unknown' AND EXISTS (SELECT 1 FROM call c
	WHERE c.pid = p.pid AND c.call = 'calloc' AND c.known_clearing = 0))
UNION ALL
SELECT 3, REPLACE(name, '_', ' ') || ': ours ' || PRINTF('%,d', ours) || ', the kernel''s '
	|| PRINTF('%,d', kernel) || CASE WHEN kernel > ours
		THEN ' (faults the kernel takes for itself, as for MAP_POPULATE, mlock or '
			|| 'O_DIRECT, raise no event)' ELSE '' END
FROM checks WHERE NOT ok
UNION ALL
SELECT 4, 'pushed out to swap: ' || PRINTF('%,d', out_pages) || ' pages, ' || CASE
	WHEN out_self = 0 THEN 'none of them by the target itself: '
		|| PRINTF('%.0f %% by kswapd, %.0f %% by other processes that reclaimed memory',
			100.0 * kswapd / out_pages, 100.0 * other / out_pages)
	ELSE PRINTF('%.0f %% by the target itself, %.0f %% by kswapd, %.0f %% by other processes',
		100.0 * out_self / out_pages, 100.0 * kswapd / out_pages,
		100.0 * other / out_pages) END
FROM (SELECT SUM(CASE WHEN what LIKE 'out%' THEN pages END) AS out_pages,
	COALESCE(SUM(CASE what WHEN 'out_self' THEN pages END), 0) AS out_self,
	COALESCE(SUM(CASE what WHEN 'out_kswapd' THEN pages END), 0) AS kswapd,
	COALESCE(SUM(CASE what WHEN 'out_other' THEN pages END), 0) AS other FROM swap)
WHERE out_pages > 0
UNION ALL
SELECT 5, family || ' was not captured: ' || MIN(not_captured) FROM toll_kind
GROUP BY family HAVING COUNT(*) = COUNT(not_captured);

-- ---------------------------------------------------------------- the report as JSON

-- Sites and allocations with their frames, leaf first.
CREATE VIEW site_json AS
SELECT s.rank, json_object('toll', s.toll, 'time_s', ROUND(s.time_ns / 1e9, 9),
	'share', ROUND(s.share, 6), 'bytes', s.bytes, 'count', s.count, 'call', s.call,
	'allocated_at', json((SELECT json_group_array(json(frame)) FROM (
		SELECT json_object('function', l.function, 'module', l.module, 'file', l.file,
			'line', l.line, 'kind', l.kind) AS frame
		FROM stack_line l WHERE l.stack_id = s.allocated_stack ORDER BY l.depth))),
	'touched_at', json((SELECT json_group_array(json(frame)) FROM (
		SELECT json_object('function', l.function, 'module', l.module, 'file', l.file,
			'line', l.line, 'kind', l.kind) AS frame
		FROM stack_line l WHERE l.stack_id = s.touched_stack ORDER BY l.depth)))) AS json
FROM sites s;

CREATE VIEW allocation_json AS
SELECT a.call, a.stack_id, a.bytes, a.calls, json_object('call', a.call, 'calls', a.calls,
	'bytes', a.bytes, 'freed', a.freed, 'live_bytes', a.live_bytes,
	'allocated_at', json((SELECT json_group_array(json(frame)) FROM (
		SELECT json_object('function', l.function, 'module', l.module, 'file', l.file,
			'line', l.line, 'kind', l.kind) AS frame
		FROM stack_line l WHERE l.stack_id = a.stack_id ORDER BY l.depth)))) AS json
FROM allocation a;

-- The object of the contract: one row, one column.
CREATE VIEW report_json AS
SELECT json_object(
	'format', 1,
	'complete', json(CASE WHEN t.complete THEN 'true' ELSE 'false' END),
	'target', (SELECT json_object(
		'pids', json((SELECT json_group_array(pid) FROM (SELECT pid
			FROM process ORDER BY pid))),
		'command', t.command, 'duration_s', ROUND(t.duration_ns / 1e9, 9),
		'observed_s', ROUND(t.observed_ns / 1e9, 9))),
	'verdict', (SELECT json_object('dominant', v.dominant, 'share', ROUND(v.share, 6),
		'low', ROUND(v.low, 6), 'high', ROUND(v.high, 6), 'sentence', v.sentence,
		'advice', json((SELECT json_group_array(json(advice)) FROM (
			SELECT json_object('code', code, 'text', text, 'evidence', evidence)
				AS advice
			FROM finding ORDER BY position)))) FROM verdict v),
	'toll', json((SELECT json_group_object(toll, json(figures)) FROM (
		SELECT toll, CASE toll
			WHEN 'zero.kernel' THEN json_object('time_s', ROUND(time_ns / 1e9, 9),
				'share', ROUND(share, 6), 'count', count, 'bytes', bytes, 'pages',
					pages,
				'clear_s', ROUND(clear_ns / 1e9, 9))
			WHEN 'file.read' THEN json_object('time_s', ROUND(time_ns / 1e9, 9),
				'share', ROUND(share, 6), 'count', count, 'bytes', bytes, 'pages',
					pages,
				'reread_factor', NULL)
			ELSE json_object('time_s', ROUND(time_ns / 1e9, 9), 'share', ROUND(share,
				6),
				'count', count, 'bytes', bytes, 'pages', pages) END AS figures
		FROM toll ORDER BY position))),
	'zeroing', (SELECT json_object('bytes_kernel', bytes_kernel, 'bytes_libc', bytes_libc,
		'bytes_twice', bytes_twice, 'bytes_never_used', bytes_never_used) FROM zeroing),
	'sites', json((SELECT json_group_array(json(json)) FROM (
		SELECT json FROM site_json ORDER BY rank))),
	'allocations', json((SELECT json_group_array(json(json)) FROM (
		SELECT json FROM allocation_json ORDER BY bytes DESC, calls DESC, call, stack_id))),
	'calls', json((SELECT json_group_object(call, calls) FROM (
		SELECT call, SUM(calls) AS calls FROM allocation GROUP BY call ORDER BY call))),
	'processes', json((SELECT json_group_array(json(process)) FROM (
		SELECT json_object('pid', p.pid, 'comm', p.comm, 'command', p.command,
			'exit_code', p.exit_code,
			'observed_s', ROUND(COALESCE(o.observed_ns, 0.0) / 1e9, 9),
			'toll_s', json((SELECT json_group_object(x.toll, ROUND(x.time_ns / 1e9, 9))
				FROM process_toll x WHERE x.pid = p.pid))) AS process
		FROM process p LEFT JOIN process_observed o ON o.pid = p.pid ORDER BY p.pid))),
	'notes', json((SELECT json_group_array(text) FROM (
		SELECT text FROM note ORDER BY position, text))),
	'not_captured', json((SELECT json_group_object(toll, not_captured) FROM (
		SELECT toll, not_captured FROM toll_kind WHERE not_captured IS NOT NULL
		ORDER BY position))),
	'checks', json((SELECT json_group_object(name, json_object('ours', ours, 'kernel', kernel,
		'difference', difference, 'ok', json(CASE WHEN ok THEN 'true' ELSE 'false' END)))
		FROM (SELECT * FROM checks ORDER BY position))),
	'losses', json((SELECT json_group_object(name, count) FROM (
		SELECT name, count FROM losses ORDER BY name))),
	'overhead', (SELECT json_object('limit_pct', o.limit_pct,
		'estimated_pct', ROUND(o.estimated_pct, 4), 'hits', o.hits,
		'ns_per_hit', json((SELECT json_group_object(probe, ROUND(hit_ns, 1)) FROM (
			SELECT probe, hit_ns FROM price ORDER BY probe)))) FROM overhead o)
) AS json
FROM target t;

-- Folded stacks: root first, weights in microseconds. Allocation stack; where the allocation is not
-- known, the touching one.
CREATE VIEW folded AS
SELECT toll, stack, CAST(ROUND(SUM(time_ns) / 1000) AS INTEGER) AS weight
FROM (
	SELECT s.toll, s.time_ns, COALESCE((
		SELECT group_concat(name, ';') FROM (
			SELECT REPLACE(l.name, ';', ':') AS name FROM stack_line l
			WHERE l.stack_id = CASE WHEN s.allocated_stack <> 0 THEN s.allocated_stack
				ELSE s.touched_stack END
			ORDER BY l.depth DESC)), '[unknown]') AS stack
	FROM sites s)
GROUP BY toll, stack HAVING SUM(time_ns) >= 500;
