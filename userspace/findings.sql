-- SPDX-License-Identifier: GPL-2.0
--
-- findings.sql: the verdict in words, the advice and the notes: templates whose {names} are filled
-- from figures.sql, which it follows.

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
			|| '({swap_from}), most at {swap_place}'
			|| CASE WHEN m.swap_call <> '' THEN ', in memory of {swap_call} at {swap_made}.'
				ELSE '.' END
		WHEN 'reclaim' THEN 'it had to reclaim memory itself {reclaim_count} times, because '
			|| '{reclaim_of} is full, and {out_bytes} of it were pushed out to swap'
			|| CASE WHEN 20 * m.swap_bytes < m.pushed_bytes
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
		-- Why: the way it goes over its memory, against what it may keep.
		|| CASE WHEN m.dominant <> 'swap' THEN ''
		WHEN 2 * m.out_other > m.out_pages THEN ' It does not push them out itself: {out_other} '
			|| 'of its pages that went out did so while other processes reclaimed memory.'
		WHEN m.limit_bytes IS NULL THEN ''
		WHEN m.back_pattern = 'cyclic sweep' THEN ' It goes over {back_bytes} in order, more '
			|| 'than once, but may keep only {memory_limit} ({memory_of}): each page is '
			|| 'pushed out before its next turn and came back {back_returns} times, where a '
			|| 'single pass, even over more memory, would only push pages out.'
		WHEN m.back_pattern = 'random' THEN ' It goes over {back_bytes} in no order, but may '
			|| 'keep only {memory_limit} ({memory_of}): what is out is soon wanted again, '
			|| 'each page {back_returns} times.'
		WHEN m.back_pattern LIKE 'one%' THEN ' It goes once over {back_first}, and only '
			|| '{memory_limit} fit ({memory_of}): pages go out to make room, and hardly '
			|| 'come back.'
		ELSE '' END
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
		|| 'pages, most at {swap_place}. '
		|| CASE WHEN 2 * out_other > out_pages THEN 'Other processes push it out: limit '
				|| 'them, or protect this one (memory.low of its cgroup, mlock of what '
				|| 'must not wait). '
			WHEN fits_bytes > limit_bytes AND limit_path IS NOT NULL
			THEN 'With a limit of about {fits} instead of {memory_limit} '
				|| '({memory_of}) the swap-ins would stop: {came_back} came back '
				|| 'at least once, and at most {swap_peak} were out at a time. '
			WHEN fits_bytes > limit_bytes
			THEN 'With about {fits} of memory instead of {memory_limit}, or as much '
				|| 'less used by others, the swap-ins would stop: {came_back} came '
				|| 'back at least once, and at most {swap_peak} were out at a time. '
			ELSE 'Give it more memory (or a higher cgroup limit). ' END
		|| CASE back_pattern WHEN 'cyclic sweep' THEN 'Or do all passes over a part that fits '
				|| 'before going on to the next part.'
			WHEN 'random' THEN 'Or make what is in use smaller, and keep on one page what '
				|| 'is used together.'
			ELSE 'Or make its working set smaller.' END
		|| ' This is no matter of the allocator''s settings.',
		'{swap_bytes} came back from swap ({swap_from}) in {swap_time}; resident at most '
		|| '{rss_peak}, swapped at most {swap_peak}.'),
		json_array(11, 'reclaim-stall', reclaim_ns / base_ns,
		swap_matters AND reclaim_count > 0,
		'Each page that is used for the first time, or again, has to push another one out '
		|| 'first: {reclaim_of} is full. '
		|| CASE WHEN 20 * swap_bytes < pushed_bytes
			THEN 'What was pushed out hardly ever came back, so this is no thrash: a pass '
				|| 'over more memory than there is. Work in smaller parts and free or '
				|| 'reuse each, or raise the limit.'
			ELSE 'Much of what was pushed out came back: the working set does not fit. '
				|| 'Raise the limit, or make the working set smaller.' END,
		'{reclaim_count} stalls, {reclaim_time}; {out_bytes} pushed out'
		|| CASE WHEN out_pages > 0 THEN ', {out_self} of it by the target itself.'
			ELSE ' at a time, at most.' END),
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
	|| PRINTF('%,d', kernel) || CASE
		WHEN name LIKE 'cgroup%' AND kernel > ours THEN ' (of all processes in the cgroup: '
			|| 'those that came and went before they were found are not in ours)'
		WHEN name LIKE '%faults' AND kernel > ours THEN ' (faults the kernel takes for itself, as '
			|| 'for MAP_POPULATE, mlock or O_DIRECT, raise no event)'
		WHEN name = 'swapped_in' AND NOT EXISTS (SELECT 1 FROM meta
			WHERE key = 'swap_in_counted' AND value = '1') THEN ' (of the whole machine: this '
			|| 'kernel does not tell whose they were)'
		ELSE '' END
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
	COALESCE(SUM(CASE WHEN what IN ('out_self', 'out_traced') THEN pages END), 0) AS out_self,
	COALESCE(SUM(CASE what WHEN 'out_kswapd' THEN pages END), 0) AS kswapd,
	COALESCE(SUM(CASE what WHEN 'out_other' THEN pages END), 0) AS other FROM swap WHERE pid > 0)
WHERE out_pages > 0
UNION ALL
SELECT 5, 'read ahead from swap and not used: ' || PRINTF('%,d', readahead_pages) || ' pages'
FROM swap_source WHERE readahead_pages > 0.05 * (cache_pages + device_pages) AND readahead_pages > 64
UNION ALL
SELECT 6, 'swapped pages that came back and were not followed: ' || PRINTF('%,d', untracked_pages)
	|| ': how often pages came back, and the memory that would do, are lower bounds'
FROM memory WHERE untracked_pages > 0
UNION ALL
SELECT 7, family || ' was not captured: ' || MIN(not_captured) FROM toll_kind
GROUP BY family HAVING COUNT(*) = COUNT(not_captured);
