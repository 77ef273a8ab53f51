-- SPDX-License-Identifier: GPL-2.0
--
-- verdict.sql: the verdict in words, the advice that is given, and the notes: templates whose
-- {names} are filled with the figures of figures.sql. Follows advice.sql, which has the advice as
-- data.

-- The figures as text. Kinds: b bytes (binary units), e the exact number of bytes, t nanoseconds,
-- c a count ('c TOLL', 'b TOLL': of calls of that toll, which may be an estimate, or the least that
-- it can be), s a share, x text. Three digits; a share below 1 % keeps one decimal.
CREATE VIEW figure AS
WITH
scaled(name, kind, v, mark, x, unit) AS (
	SELECT name, kind, value AS v,
		CASE WHEN kind NOT LIKE '_ %' OR value <= 0 THEN ''
			WHEN SUBSTR(kind, 3) IN (SELECT toll FROM least_count) THEN 'at least '
			WHEN SUBSTR(kind, 3) IN (SELECT toll FROM estimated_count) THEN '~'
			ELSE '' END,
		CASE SUBSTR(kind, 1, 1) WHEN 't' THEN CASE WHEN value >= 1e9 THEN value / 1e9
				WHEN value >= 1e6 THEN value / 1e6
				WHEN value >= 1e3 THEN value / 1e3 ELSE value * 1.0 END
			  WHEN 'b' THEN CASE WHEN value >= 1073741824 THEN value / 1073741824.0
				WHEN value >= 1048576 THEN value / 1048576.0
				WHEN value >= 1024 THEN value / 1024.0 ELSE value * 1.0 END
			  ELSE CASE WHEN value >= 995e6 THEN value / 1e9
				WHEN value >= 995e3 THEN value / 1e6 ELSE value / 1e3 END END,
		CASE SUBSTR(kind, 1, 1) WHEN 't' THEN CASE WHEN value >= 1e9 THEN 's'
				WHEN value >= 1e6 THEN 'ms' WHEN value >= 1e3 THEN 'us'
				ELSE 'ns' END
			  WHEN 'b' THEN CASE WHEN value >= 1073741824 THEN 'GiB'
				WHEN value >= 1048576 THEN 'MiB'
				WHEN value >= 1024 THEN 'KiB' ELSE 'bytes' END
			  ELSE CASE WHEN value >= 995e6 THEN ' G' WHEN value >= 995e3 THEN ' M'
				ELSE ' k' END END
	FROM figure_value
)
SELECT name, CASE
	WHEN v IS NULL THEN CASE WHEN name LIKE '%place' OR name LIKE '%touched'
		OR name = 'swap_made'
		THEN 'an unknown place' WHEN name LIKE '%call' THEN 'the program' ELSE 'unknown' END
	WHEN kind = 'x' THEN v
	WHEN kind = 'c' THEN PRINTF('%,d', v)
	WHEN kind LIKE 'c %' AND v >= 1000 AND mark <> ''
		THEN mark || CASE WHEN x >= 99.5 THEN PRINTF('%d', 10 * ROUND(x / 10))
			WHEN x >= 9.95 THEN PRINTF('%.0f', x) ELSE PRINTF('%.1f', x) END || unit
	WHEN kind LIKE 'c %' THEN mark || PRINTF('%,d', v)
	WHEN kind = 'e' THEN PRINTF('%,d bytes', v)
	WHEN kind = 's' THEN CASE WHEN v > 0 AND v < 0.00995 THEN PRINTF('%.1f %%', 100 * v)
		ELSE PRINTF('%.0f %%', 100 * v) END
	WHEN unit = 'bytes' OR x >= 99.95 OR x = 0 THEN PRINTF('%s%.0f %s', mark, x, unit)
	WHEN x >= 9.995 THEN PRINTF('%s%.1f %s', mark, x, unit)
	ELSE PRINTF('%s%.2f %s', mark, x, unit) END AS text
FROM scaled;

-- The sentence of a verdict. Parts by the first family and its largest toll. said: without what a
-- line of shares says beside it, that is, without how much of the time the first family takes; in
-- the template that lies between two control characters.
CREATE VIEW verdict AS
WITH RECURSIVE
template AS MATERIALIZED (
	SELECT m.dominant, m.first_share AS share, m.first_low AS low, m.first_high AS high,
	CASE WHEN m.unseen
		THEN 'Not all was seen: the kernel counts '
			|| CASE WHEN m.missed > 0 OR m.swap_missed = 0
				THEN '{missed} page faults' ELSE '' END
			|| CASE WHEN m.major_missed > 0 THEN ' ({major_missed} of them waited for '
				|| 'a file or for swap)' ELSE '' END
			|| CASE WHEN m.missed > 0 AND m.swap_missed > 0 THEN ' and ' ELSE '' END
			|| CASE WHEN m.swap_missed > 0 THEN '{swap_missed} pages from swap'
				ELSE '' END
			|| ' more than memtoll, which may take up to {doubt} of the observed time. '
		ELSE '' END
	|| CASE WHEN m.overcounted
		THEN 'Not all is certain: memtoll counts {over} page faults more than the kernel, '
			|| 'of up to {over_share} of the observed time. '
		ELSE '' END
	|| CASE WHEN m.kernel_strange AND 10 * m.kernel_ns > m.observed_ns
		THEN CASE m.first_toll WHEN 'zero.kernel' THEN 'Whether this is zeroing'
				ELSE 'Whether the kernel clears for {kernel_time}' END
			|| ' is doubtful: {kernel_faults} first-touch faults '
			|| 'take {kernel_fault_each} each, where clearing what they cleared takes '
			|| '{kernel_fault_can}; what else they waited for is not known. '
		ELSE '' END
	|| CASE
	WHEN m.observed_ns <= 0 THEN 'Nothing was observed: the target used no CPU time.'
	WHEN m.dominant = 'none' AND 3 * m.first_share >= 1 THEN 'What dominates is not known: '
		|| m.first_family || ' takes {first} of the observed {observed} at most '
		|| '({first_range}).'
	WHEN m.dominant = 'none' THEN 'No family dominates: the largest, ' || m.first_family
		|| ', takes {first} ({first_range}) of the observed {observed}, less than a '
		|| 'third.' || CASE m.first_family WHEN 'compute'
			THEN ' Memory takes {memory} in all{memory_most}.' ELSE '' END
	ELSE char(1) || CASE m.dominant
		WHEN 'zeroing' THEN 'Zeroing takes' WHEN 'swap' THEN 'Swap traffic takes'
		WHEN 'cow' THEN 'Copying pages on write takes' WHEN 'file'
			THEN CASE WHEN m.shared_ns > m.file_ns AND m.first_toll = 'file.fault'
				THEN 'Mapping shared memory in takes' ELSE 'File access takes' END
		WHEN 'allocator' THEN 'The allocator itself takes'
		WHEN 'mapping' THEN 'Mapping calls take'
		WHEN 'userfault' THEN 'Waiting for a userfaultfd handler takes'
		WHEN 'other' THEN 'Other page faults take' ELSE 'Computing takes' END
		|| ' {first} ({first_range}) of the observed {observed}: ' || char(2)
		|| CASE CASE WHEN g.swap_given AND m.first_toll IN ('swap.in', 'reclaim')
			OR (2 * g.given_ns > m.first_share * m.observed_ns
				AND m.first_toll = 'reclaim') THEN 'given' ELSE m.first_toll END
		WHEN 'given' THEN 'it throws {given_bytes} out of memory itself, by '
			|| 'madvise(MADV_PAGEOUT) at {given_place}, which takes {given_time}'
			|| CASE WHEN m.dominant = 'file' THEN '.'
			WHEN 20 * m.swap_bytes < m.pushed_bytes
				THEN '; hardly any of that came back.'
			ELSE '; {swap_bytes} came back from swap in {swap_faults} faults, most at '
				|| '{swap_place}.' END
		WHEN 'zero.libc' THEN CASE WHEN m.libc_ns >= m.foreign_ns
			THEN 'libc''s calloc clears {libc_all_bytes} of reused memory'
				|| CASE WHEN m.libc_bytes < m.libc_all_bytes THEN ', most'
					ELSE '' END
				|| ' at {libc_place}.'
			ELSE 'calloc memsets every block at {all_libc_place}'
				|| CASE WHEN m.all_libc_bytes > 0
				THEN ', at least {all_libc_bytes}; the whole is unknown.'
				ELSE '; how many bytes is unknown.' END END
		WHEN 'zero.kernel' THEN CASE WHEN 2 * u.cleared_ns > m.kernel_ns
			THEN 'the kernel fills memory that is there already with zeros, most of it '
				|| 'inside {cleared_call} at {cleared_place}.'
			ELSE
			-- family zeroing has what comes of fresh memory; here nothing is cleared
			CASE WHEN 2 * m.unwritten_ns > m.kernel_ns
				THEN '{unwritten_faults} faults are reads of memory that was '
					|| 'never written, {unwritten_bytes}: each maps '
					|| 'the kernel''s one page of zeros, and nothing is '
					|| 'cleared for it, '
			ELSE 'the kernel clears {kernel_bytes} in {kernel_faults} first-touch '
				|| 'faults, '
				|| CASE WHEN 2 * h.huge_bytes > m.kernel_bytes
				THEN '{huge_faults} of them of huge pages, which clear {huge_each} '
					|| 'each'
					|| CASE WHEN h.huge_sparse AND h.huge_used IS NOT NULL
						THEN ' where {huge_used} is used' ELSE '' END
					|| ', '
				ELSE '' END END
			|| CASE WHEN 2 * u.populated_ns > m.kernel_ns
				THEN 'most of them inside {populated_call} at {populated_place}'
					|| CASE WHEN m.kernel_call <> ''
					THEN ', in memory of {kernel_call}' || CASE
						WHEN m.kernel_told THEN ' at {kernel_place}'
						ELSE '' END
					ELSE '' END
				WHEN m.kernel_call <> ''
				THEN CASE WHEN m.kernel_told
					THEN 'most for {kernel_call} at {kernel_place}'
					ELSE 'most in memory of {kernel_call}, touched at '
						|| '{kernel_touched}' END
				ELSE 'most outside the followed blocks, touched at '
					|| '{kernel_touched}' END
			|| CASE WHEN m.kernel_bytes <= 0 OR 2 * m.unwritten_ns > m.kernel_ns
				THEN '.'
			WHEN 2 * m.twice_calloc_bytes >= m.kernel_bytes
				THEN ', and calloc''s memset clears {twice_calloc_bytes} of it '
					|| 'again.'
			WHEN 2 * m.twice_app_bytes >= m.kernel_bytes
				THEN ', and the program clears {twice_app_bytes} of it again.'
			ELSE '.' END END
		WHEN 'zero.app' THEN CASE WHEN EXISTS (SELECT 1 FROM not_captured
			WHERE toll = 'zero.libc')
				THEN 'its own code (calloc''s, too: the allocator was not probed)'
				ELSE 'its own code, outside the allocator,' END
			|| ' clears about {app_bytes} ({app_low_bytes} to '
			|| '{app_high_bytes}), most at {app_place}{app_memory}.'
		WHEN 'swap.in' THEN '{swap_faults} faults bring {swap_bytes} back from swap '
			|| '({swap_from}), most at {swap_place}{swap_memory}.'
		WHEN 'reclaim' THEN 'it had to reclaim memory itself {reclaim_count} times, '
			|| 'because '
			|| '{reclaim_of} is full, and ' || CASE WHEN m.dominant = 'file'
				THEN 'pushed out pages of files.'
				ELSE '{out_bytes} of it were pushed out to swap' END
			|| CASE WHEN m.dominant = 'file' THEN ''
			WHEN 20 * m.swap_bytes < m.pushed_bytes
				THEN '; hardly any of that came back.'
				ELSE '; {swap_bytes} came back, most at '
					|| '{swap_place}{swap_memory}.' END
		WHEN 'cow' THEN '{cow_faults} writes copy shared pages, {cow_bytes}, most at '
			|| '{cow_place}.'
		WHEN 'file.fault' THEN CASE WHEN m.shared_ns > m.file_ns
			THEN '{shared_faults} faults map {shared_bytes} that are there already'
				|| '{shared_segment} into {shared_processes}, most at '
				|| '{file_place}; nothing is read or cleared for them.'
			ELSE '{file_faults} faults map file pages in ({file_major} of '
			|| 'them read), {file_most}.' END
		WHEN 'file.read' THEN '{read_calls} reads of {read_bytes}'
			|| CASE WHEN 2 * r.read_cached_bytes >= r.read_bytes
				THEN ', {read_cached} of them in the page cache' ELSE '' END
			|| ', most of {read_path}, at {read_place}'
			|| CASE WHEN r.reread_share > 0.1
				THEN '. Each part that was read was read {reread} '
				|| 'times on average: {read_different} are different.'
			WHEN r.reread_factor IS NOT NULL
				THEN '. Hardly any of it was read more than once.'
			ELSE '.' END
		WHEN 'fault.user' THEN '{user_faults} faults wait for a handler in user mode to '
			|| 'bring the page, {user_each} each, most at {user_place}; the kernel '
			|| 'clears nothing for them.'
			|| CASE WHEN hm.waits > 0 THEN ' Who answers'
				|| CASE WHEN hm.first_share < 0.995 THEN ' most' ELSE '' END
				|| ': {handler}. Half of them waited less than {handler_half}, the '
				|| 'longest waited {handler_longest}, at {handler_longest_place}.'
				ELSE '' END
		WHEN 'fault.other' THEN '{other_faults} faults, {other_each} each, '
			|| CASE WHEN 2 * m.moved_share > 1
				THEN 'most at {other_place}; {moved} of that time waits for pages '
					|| 'that the kernel is moving: compaction makes room for '
					|| 'huge pages, of this program or of others.'
				ELSE 'that clear, copy and read nothing, as far as is known, most '
					|| 'at {other_place}.' END
		WHEN 'alloc' THEN '{alloc_calls} calls, {alloc_each} each, most in {alloc_call} '
			|| 'at {alloc_place}.'
		WHEN 'map' THEN CASE WHEN 2 * u.ended_ns > m.map_ns
				THEN 'most at the end of programs, where all of their memory is '
					|| 'given back.'
			WHEN 2 * u.forked_ns > m.map_ns OR 2 * u.protected_ns > m.map_ns
				THEN 'most in {changed_call} at {changed_place}.'
			WHEN 2 * u.map_sampled_ns > m.map_ns
				THEN 'most in {map_call} at {map_place}.'
			ELSE '{map_calls} calls, {map_each} each, most in {map_call} at '
				|| '{map_place}.' END
			|| CASE WHEN 2 * u.ended_ns > m.map_ns THEN ''
			WHEN 2 * u.freed_ns > m.map_ns
				THEN ' Most of it, {freed_time}, is unmapping memory'
					|| CASE WHEN m.blocks_unused THEN '.'
					ELSE ' and freeing its pages.' END
			WHEN 2 * u.forked_ns > m.map_ns
				THEN ' Most of it, {forked_time}, is copying page tables for child '
					|| 'processes.'
			WHEN 2 * u.protected_ns > m.map_ns
				THEN ' Most of it, {protected_time}, is changing the protection '
					|| 'of pages.'
				ELSE '' END
		WHEN 'compute' THEN CASE WHEN m.checks_fail
			THEN 'what was seen of memory takes less ({memory} in all{memory_most}), '
				|| 'but memtoll''s counts and the kernel''s do not agree.'
			-- not where it is a good part of the time
			WHEN 10 * m.memory_share >= 1
				THEN 'memory takes {memory} in all{memory_most}'
			ELSE 'memory is not what it waits for ({memory} in all{memory_most})'
				END
			|| CASE WHEN m.checks_fail THEN ''
			WHEN m.copy_share >= 0.1
				THEN '; {copy} of the time it copies memory, most at {copy_place}.'
				ELSE '.' END
		WHEN 'copy.app' THEN 'most of it, {copy} of the time, copies memory, about '
			|| '{copy_bytes}, most at {copy_place}'
			|| CASE WHEN 10 * m.memory_share >= 1
				THEN '; memory else takes {memory} in all{memory_most}.'
				ELSE '.' END
		ELSE m.first_toll || '.' END
		-- Why: the way it goes over its memory, against what it may keep.
		|| CASE WHEN m.dominant <> 'swap' OR g.swap_given OR g.swap_asked THEN ''
		WHEN m.woke THEN ' This had been pushed out'
			|| CASE WHEN 2 * 4096 * m.out_pages < m.came_back_bytes
				THEN ' before this recording began' ELSE '' END
			|| ', and comes back once, with hardly anything going out for it: it fits, '
			|| 'and is no working set that is too large.'
		WHEN 2 * m.out_other > m.out_pages
			THEN ' It does not push them out itself: {out_other} '
			|| 'of its pages that went out did so while other processes reclaimed '
				|| 'memory.'
		WHEN m.limit_bytes IS NULL THEN ''
		WHEN m.back_once AND m.back_pattern IN ('cyclic sweep', 'random')
			THEN ' In the time of this recording {back_bytes} came back'
			|| CASE m.back_pattern WHEN 'random' THEN ', in no order'
				ELSE ' in order' END
			|| CASE WHEN m.back_bytes < m.limit_bytes
				THEN ': with what else it uses that is more than the '
					|| '{memory_limit} that it may keep ({memory_of}), and '
				ELSE ': it may keep only {memory_limit} ({memory_of}), and ' END
			|| 'pages are pushed out before they are used again.'
		WHEN m.back_pattern = 'cyclic sweep'
			THEN ' It goes over {back_bytes} in order, more than once, '
			|| CASE WHEN m.back_bytes < m.limit_bytes
				THEN 'beside what else it uses, which is more than the '
					|| '{memory_limit} that it may keep ({memory_of}): each '
				ELSE 'but may keep only {memory_limit} ({memory_of}): each ' END
			|| 'page is '
			|| 'pushed out before its next turn and came back {back_returns} times, '
				|| 'where a '
			|| 'single pass, even over more memory, would only push pages out.'
		WHEN m.back_pattern = 'random'
			THEN ' It goes over {back_bytes} in no order, '
			|| CASE WHEN m.back_bytes < m.limit_bytes
				THEN 'beside what else it uses, which is more than the '
					|| '{memory_limit} that it may keep ({memory_of}): '
				ELSE 'but may keep only {memory_limit} ({memory_of}): ' END
			|| 'what is out is soon wanted '
				|| 'again, '
			|| 'each page {back_returns} times.'
		WHEN m.back_pattern LIKE 'one%' THEN ' It goes once over {back_first}, '
			|| CASE WHEN m.back_first_bytes < m.limit_bytes
				THEN 'beside what else it uses, which is more than the '
					|| '{memory_limit} that fit ({memory_of}): '
				ELSE 'and only {memory_limit} fit ({memory_of}): ' END
			|| 'pages go out to make room, and hardly come back.'
		ELSE '' END
		|| CASE WHEN m.dominant = 'swap' AND 10 * r.own_bytes >= 9 * m.limit_bytes
			THEN ' {own_program} keeps a cache of {own_cache} in its memory '
				|| '({own_setting}), '
			|| 'more than fits beside the rest: what the server counts as found there '
				|| 'may be on '
			|| 'swap, so the server''s own counters cannot show this.'
		ELSE '' END
		|| CASE WHEN m.dominant <> 'file' OR NOT (pc.thrash OR pc.returned) THEN ''
		WHEN pc.returned THEN ' What it reads had been in memory before this recording '
			|| 'began: the kernel counts {cache_refaults} that came again after they '
			|| 'were thrown out. It may keep only {cache_box} (its memory cgroup, '
			|| '{cache_box_path}).'
		WHEN pc.partial THEN CASE WHEN 2 * (pc.given_share + pc.asked_share) > 1
			THEN ' What is in the page cache is given back and read again'
			ELSE ' The page cache thrashes' END || ': the kernel counts '
			|| '{cache_refaults} that came in again after they were thrown out. Not '
			|| 'all reads were looked at, so how much of {cache_path} would have to '
			|| 'stay is not known; it may keep only {cache_box} (its memory cgroup, '
			|| '{cache_box_path}).' || pc.dropped_by
		ELSE CASE WHEN 2 * (pc.given_share + pc.asked_share) > 1
			THEN ' What is in the page cache is given back and read again: '
			ELSE ' The page cache thrashes: ' END || '{cache_again} of '
			|| CASE WHEN pc.code THEN 'the program''s own code'
				ELSE 'what it reads from files' END
			|| ' had been in memory, was used there, and was thrown out before it was '
			|| 'used again. '
			|| CASE WHEN pc.seen_once THEN 'In the time of this recording {cache_back} '
				|| 'of {cache_path} came again, in '
				|| CASE pc.pattern WHEN 'cyclic sweep' THEN 'order'
					ELSE 'no order' END
			WHEN pc.pattern = 'cyclic sweep'
				THEN 'It goes over {cache_back} of {cache_path} in order, more '
					|| 'than once'
				ELSE 'It goes over {cache_back} of {cache_path} in no order' END
			|| CASE WHEN 2 * (pc.given_share + pc.asked_share) > 1
				THEN ', and it is not kept'
			WHEN 2 * pc.other_share > 1 AND pc.box_bytes IS NOT NULL
				THEN ', in a memory cgroup of {cache_box} ({cache_box_path}) '
					|| 'that others use, too'
			WHEN pc.box_bytes IS NULL THEN ', and the machine''s memory does '
				|| 'not hold it'
			WHEN pc.back_bytes < pc.box_bytes
				THEN ', beside what else is in its memory cgroup of {cache_box} '
					|| '({cache_box_path})'
			ELSE ', but may keep only {cache_box} (its memory cgroup, '
				|| '{cache_box_path})' END
			|| CASE WHEN pc.seen_once THEN '.'
			WHEN pc.pattern = 'cyclic sweep'
				THEN ': each page is thrown out before its next turn, and came '
					|| 'back {cache_returns} times.'
				ELSE ': what is out is soon wanted again, each page '
					|| '{cache_returns} times.' END
			|| pc.dropped_by END
		|| CASE WHEN m.dominant = 'swap' AND NOT g.swap_given
			THEN COALESCE((SELECT text FROM dropper WHERE what = 'swap'), '')
			ELSE '' END
		|| CASE WHEN m.dominant = 'file' AND pc.wasteful
			THEN ' Of {wide_filled} that were brought in, {wide_each} pages at a '
				|| 'time, at most {wide_used} were used.'
			ELSE '' END
		|| CASE WHEN m.dominant IN ('mapping', 'file')
			AND 2 * (ad.let_go_ns + ad.let_go_again_ns) > m.first_share * m.observed_ns
			THEN ' madvise(MADV_DONTNEED) at {let_go_place} takes {let_go_bytes} of '
				|| 'files and shared memory out of the process, and {let_go_again} '
				|| 'are mapped in again in {let_go_faults} faults: '
				|| '{let_go_time} in all.'
			ELSE '' END
		|| CASE WHEN m.dominant = 'swap' AND 3 * ad.cold_again_bytes > m.swap_bytes
			THEN ' {cold_again} of what came back the program had called cold '
				|| '(MADV_COLD), most at {cold_place}.'
			ELSE '' END
		|| CASE WHEN m.dominant = 'allocator' AND l.stall IS NOT NULL
			THEN ' Its longest stall: {stall}' ELSE '' END
		|| CASE WHEN 2 * l.lock_call_share >= 1
			THEN ' Waiting for the lock of an arena is {lock_call_share} of what calls '
				|| 'of '
				|| '{lock_call} take; {lock_time} in all, asleep and so in no toll.'
			ELSE '' END
	END
	|| CASE WHEN m.observed_ns > 0 AND m.second_share > 0 AND m.second_high >= m.first_low
		THEN ' The order is not certain: ' || m.second_family
			|| ' ({second_range}) overlaps it.' ELSE '' END
	|| CASE WHEN m.doubtful
		THEN ' Low confidence: the probes took {probes_part} of the CPU time.'
		ELSE '' END AS text
	FROM measure m JOIN latency_measure l JOIN read_measure r JOIN populate_measure u
	JOIN page_cache pc JOIN huge_measure h JOIN handler_measure hm
	JOIN given_measure g JOIN advised_measure ad
),
known(name, number, text) AS MATERIALIZED (	-- of the names, those in it or in a figure
	SELECT f.name, ROW_NUMBER() OVER (ORDER BY f.name), f.text
	FROM (SELECT t.text || COALESCE((SELECT group_concat(text) FROM figure
		WHERE INSTR(text, '{')), '') AS text FROM template t) t
	JOIN figure f ON INSTR(t.text, '{' || f.name || '}')
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
	MAX(COALESCE(high, 0.0), COALESCE(share, 0.0)) AS high,
	REPLACE(REPLACE(text, char(1), ''), char(2), '') AS sentence,
	CASE INSTR(text, char(1)) WHEN 0 THEN text
		ELSE SUBSTR(text, 1, INSTR(text, char(1)) - 1)
			|| UPPER(SUBSTR(text, INSTR(text, char(2)) + 1, 1))
			|| SUBSTR(text, INSTR(text, char(2)) + 2) END AS said
FROM filled ORDER BY number DESC LIMIT 1;

-- What became of each code: given, or why not. applies: its condition holds. valid: for the
-- allocator of its process (kind; version: major * 1000 + minor, 0 unknown). gain: the share of the
-- observed time that it can save at most. opposed_by: a finding with a larger gain turns a setting
-- the other way; opposite situations never get the same advice. What a finding says aside it only
-- leaves out then. text: of each part the first choice that holds and is valid.
CREATE VIEW advice_state AS
WITH
same AS (	-- processes of one kind all: the oldest version
	SELECT kind, number FROM (SELECT MIN(kind) AS kind, MIN(number) AS number,
			COUNT(DISTINCT kind) AS kinds FROM allocator_used)
	WHERE kinds = 1
),
tested AS (	-- the others decide nothing: what is said is few of them
	SELECT r.code, r.what, r.part, r.choice, r.value, c.applies, c.gain, c.pid
	FROM advice_test r JOIN (SELECT code,
			COALESCE(MAX(CASE what WHEN 'condition' THEN value END), 0) <> 0 AS applies,
			COALESCE(MAX(CASE what WHEN 'gain' THEN value END), 0.0) AS gain,
			MAX(CASE what WHEN 'process' THEN value END) AS pid
		FROM advice_test WHERE what <> 'text' GROUP BY code) c ON c.code = r.code
	WHERE r.what = 'gain' OR (r.what = 'text' AND COALESCE(r.value, 0) <> 0)
),
owned AS (
	SELECT t.*, COALESCE(u.kind, s.kind, '') AS kind, COALESCE(u.number, s.number, 0) AS number
	FROM tested t LEFT JOIN allocator_used u ON u.pid = t.pid LEFT JOIN same s ON t.pid IS NULL
),
judged AS (
	SELECT o.code, a.position, o.what, o.part, o.choice, o.applies, o.gain, o.kind,
		o.number AS version,
		a.bound,
		(a.allocator = '' OR a.allocator = o.kind) AND o.number >= a.since
			AND (a.before = 0 OR o.number BETWEEN 1 AND a.before - 1) AS valid,
		p.text, p.change, p.try, COALESCE(p.aside, 0) AS aside,
		o.what = 'text' AND COALESCE(o.value, 0) <> 0
			AND (p.allocator = '' OR p.allocator = o.kind) AND o.number >= p.since
			AND (p.before = 0 OR o.number BETWEEN 1 AND p.before - 1) AS holds
	FROM owned o JOIN advice a ON a.code = o.code LEFT JOIN advice_text p ON p.code = o.code
		AND p.part = o.part AND p.choice = o.choice
),
numbered AS (
	SELECT *, applies AND valid AND gain > bound AS due, ROW_NUMBER() OVER (
		PARTITION BY code, what, part ORDER BY NOT holds, choice) AS number
	FROM judged
),
chosen AS (
	SELECT * FROM numbered WHERE what = 'gain' OR (holds AND number = 1)
),
setting AS (	-- 'up mmap_threshold' -> mmap_threshold, up
	SELECT c.*, SUBSTR(TRIM(j.value), INSTR(TRIM(j.value), ' ') + 1) AS name,
		SUBSTR(TRIM(j.value), 1, INSTR(TRIM(j.value), ' ') - 1) AS direction
	FROM chosen c LEFT JOIN json_each('["' || REPLACE(c.change, ',', '","') || '"]') j
),
ranked AS (
	SELECT *, FIRST_VALUE(code) OVER first AS first_code,
		FIRST_VALUE(direction) OVER first AS first_direction
	FROM setting
	WINDOW first AS (PARTITION BY due, name ORDER BY aside, gain DESC, position)
),
parted AS (	-- one row for each part again
	SELECT *, MIN(CASE WHEN due AND name <> '' AND direction <> first_direction
		THEN first_code END) AS loses_to
	FROM ranked GROUP BY code, part
),
joined AS (
	SELECT *, group_concat(CASE WHEN aside AND loses_to IS NOT NULL THEN NULL
		ELSE NULLIF(text, '') END,
		' ') OVER (PARTITION BY code ORDER BY part
		ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS whole
	FROM parted
),
opposed AS (
	SELECT code, position, applies, valid, kind, version, gain, bound, due, MAX(whole) AS text,
		MAX(NULLIF(try, '')) AS try,
		MIN(CASE WHEN NOT aside THEN loses_to END) AS opposed_by
	FROM joined GROUP BY code
)
SELECT code, position, applies, valid, kind, version, gain, bound, opposed_by,
	due AND opposed_by IS NULL AS given, text, try
FROM opposed;

-- The advice, largest gain first. gain: share of the observed time that it can save at most, above
-- bound. cost: what it costs if it is wrong. try: the command line that proves it, or NULL. Without
-- any: code none.
CREATE VIEW finding AS
WITH RECURSIVE
due AS MATERIALIZED (
	SELECT ROW_NUMBER() OVER (ORDER BY s.gain DESC, s.position) AS position, s.code, a.title,
		s.gain, s.bound, s.text || COALESCE(' ' || i.text, '') AS text, a.evidence, a.cost,
		a.saves,
		'memtoll compare ' || s.try || ' -- {command}' AS try
	FROM advice_state s JOIN advice a ON a.code = s.code
	LEFT JOIN advice_idiom i ON i.code = s.code WHERE s.given
),
said(position, code, title, gain, bound, text, evidence, cost, saves, try) AS MATERIALIZED (
	SELECT position, code, title, gain, bound, text, evidence, cost, saves, try FROM due
	UNION ALL
	SELECT 1, 'none', 'Nothing to change', 0.0, (SELECT MIN(bound) FROM advice),
		CASE WHEN (SELECT unseen FROM measure)
			THEN (SELECT 'Nothing can be advised before it is known what '
				|| CASE WHEN missed > 0 AND 2 * major_missed > missed
				THEN 'those page faults waited for: pages that the kernel waits '
					|| 'for in a system call that is not watched raise no '
					|| 'event.'
				WHEN missed > 0 OR swap_missed = 0
				THEN 'those page faults are: memory that the kernel faults in for '
					|| 'a system call that is not watched (a driver''s ioctl '
					|| 'that pins it, process_vm_writev) raises no event.'
				ELSE 'brought those pages back from swap: no fault of the target '
					|| 'did that was seen.' END FROM measure)
			ELSE 'There is no change of memory handling to advise.' END,
		'Advice is for what takes more than a fifth of the observed {observed}, where it '
		|| 'may save a tenth: zeroing takes {zeroing}, swap {swap}.', '', '', NULL
	WHERE NOT EXISTS (SELECT 1 FROM due)
),
known(name, number, text) AS MATERIALIZED (	-- of the names, those in them or in a figure
	SELECT f.name, ROW_NUMBER() OVER (ORDER BY f.name), f.text
	FROM (SELECT group_concat(text) AS text FROM (
		SELECT COALESCE(text, '') || evidence || cost || saves || COALESCE(try, '')
			AS text FROM said
		UNION ALL SELECT text FROM figure WHERE INSTR(text, '{'))) t
	JOIN figure f ON INSTR(t.text, '{' || f.name || '}')
),
filled(position, code, title, gain, bound, text, evidence, cost, saves, try, number) AS (
	SELECT position, code, title, gain, bound,
		TRIM(REPLACE(REPLACE(text, char(9), ''), char(10), ' ')),
		TRIM(REPLACE(REPLACE(evidence, char(9), ''), char(10), ' ')),
		TRIM(REPLACE(REPLACE(cost, char(9), ''), char(10), ' ')),
		TRIM(REPLACE(REPLACE(saves, char(9), ''), char(10), ' ')), try, 0 FROM said
	UNION ALL
	SELECT f.position, f.code, f.title, f.gain, f.bound,
		REPLACE(f.text, '{' || k.name || '}', k.text),
		REPLACE(f.evidence, '{' || k.name || '}', k.text),
		REPLACE(f.cost, '{' || k.name || '}', k.text),
		REPLACE(f.saves, '{' || k.name || '}', k.text),
		REPLACE(f.try, '{' || k.name || '}', k.text), k.number
	FROM filled f JOIN known k ON k.number = f.number + 1
)
SELECT position, code, gain, text, evidence, title, bound, cost, try, COALESCE(NULLIF(saves, ''),
	PRINTF('at most %.0f %% of the observed time (not advised below %.0f %%)', 100 * gain,
		100 * bound)) AS saves
FROM filled WHERE number = (SELECT COUNT(*) FROM known);

-- A finding as labelled lines, for whoever prints it.
CREATE VIEW finding_line AS
SELECT f.position, f.code, l.number, l.label, CASE l.number WHEN 1 THEN f.text WHEN 2
	THEN f.evidence
	WHEN 3 THEN f.saves WHEN 4 THEN f.cost ELSE f.try END AS text
FROM finding f JOIN (SELECT 1 AS number, '' AS label UNION ALL SELECT 2, 'Evidence'
	UNION ALL SELECT 3, 'Saves' UNION ALL SELECT 4, 'If wrong' UNION ALL SELECT 5, 'Try') l
WHERE CASE l.number WHEN 3 THEN f.gain > 0 WHEN 4 THEN f.cost <> '' WHEN 5 THEN f.try <> ''
	ELSE 1 END;

CREATE VIEW advice_json AS
SELECT position, json_object('code', code, 'title', title, 'text', text, 'evidence', evidence,
	'gain', ROUND(gain, 6), 'bound', bound, 'cost', cost, 'try', try) AS json
FROM finding;

-- What a reader must know before trusting the figures.
CREATE VIEW note AS
SELECT 1 AS position, 'incomplete: the recording was not finished'
	|| CASE WHEN last_slice IS NULL THEN '; it holds no slice'
		ELSE '; it is valid up to slice ' || last_slice END AS text
FROM target WHERE NOT complete
UNION ALL
SELECT 1, 'redacted: arguments, names of files, programs, containers and the host, and addresses '
	|| 'are pseudonyms'
FROM meta WHERE key = 'redacted'
UNION ALL
SELECT 1, 'another memtoll traced process ' || value
	|| ', too: the overhead limit held for each by itself, and '
	|| 'what the other''s probes took stands here as the program''s own time'
FROM meta WHERE key = 'other_tracer_of'
UNION ALL
-- Of processes of one name, of which a service may have hundreds, all at once.
SELECT 2, CASE COUNT(DISTINCT pid) WHEN 1 THEN 'process ' || pid || name
		ELSE PRINTF('%,d processes', COUNT(DISTINCT pid)) || name || ', each of which' END
			|| said
FROM (
	SELECT p.pid, COALESCE(' (' || p.comm || ')', '') AS name,
		CASE WHEN a.module IS NULL
			THEN ' maps no known allocator: no allocations are seen, '
			|| 'only faults, mapping calls and CPU samples'
		ELSE ' uses an unknown allocator (' || a.module
			|| '): what its calloc clears is an estimate'
		END AS said
	FROM process p LEFT JOIN allocator a ON a.pid = p.pid
	-- of one that had ended before it was looked at nothing is known
	WHERE (a.module IS NULL AND p.executable <> '') OR (a.kind = 'unknown'
		AND EXISTS (SELECT 1 FROM call c
			WHERE c.pid = p.pid AND c.call = 'calloc' AND c.known_clearing = 0))
) GROUP BY name, said
UNION ALL
SELECT 2, CASE COUNT(DISTINCT pid) WHEN 1 THEN 'process ' || pid
		ELSE PRINTF('%,d processes', COUNT(DISTINCT pid)) END || name || ', ' || said
FROM (
	SELECT c.pid, COALESCE(' (' || p.comm || ')', '') AS name,
		c.kind || ' (' || c.linkage || '): ' || c.coverage AS said
	FROM allocator_coverage c LEFT JOIN process p ON p.pid = c.pid
	WHERE NOT c.complete AND COALESCE(c.calls, 1) + (c.probed = 0) > 0
) GROUP BY name, said
UNION ALL
SELECT 2, PRINTF('%,d of %,d processes came in a storm and were not looked at '
	|| '(%.0f %% of the CPU time): their faults and mapping calls are counted, their allocator '
	|| 'calls are estimated by those of the same name that were looked at', u.n,
	(SELECT COUNT(*) FROM process),
	100.0 * u.cpu_ns / MAX(1, (SELECT SUM(cpu_ns) FROM process_slice)))
FROM (SELECT COALESCE((SELECT SUM(count) FROM loss WHERE name = 'programs_passed'), 0) AS n,
	COALESCE(SUM(cpu_ns), 0) AS cpu_ns FROM program_unseen) u
WHERE u.n > 0
UNION ALL
SELECT 2, 'process ' || pid || CASE WHEN n > 1 THEN PRINTF(' and %,d more', n - 1) ELSE '' END
	|| ': CPU samples inside calloc and the chunks'' headers do not agree on '
	|| 'how much of its time is clearing; ' || evidence
FROM (SELECT COUNT(*) AS n, MIN(pid) AS pid, evidence FROM allocator_clearing WHERE agrees = 0)
WHERE n > 0
UNION ALL
SELECT 3, REPLACE(name, '_', ' ') || ': ours ' || PRINTF('%,d', ours) || ', the kernel''s '
	|| PRINTF('%,d', kernel) || CASE
		WHEN name LIKE 'cgroup%' AND kernel > ours THEN ' (of all processes in the cgroup, '
			|| CASE WHEN EXISTS (SELECT 1 FROM loss WHERE name = 'late_attach'
				AND count > 0)
				THEN 'also of any that was not found in time)'
			ELSE 'whose memory.stat is brought up to date every other second)' END
		WHEN name LIKE '%faults' AND kernel > ours
			THEN ' (faults that the kernel takes for the program in calls that are '
			|| 'not watched, as a driver''s ioctl or process_vm_writev, raise no event)'
		WHEN name = 'swapped_in' AND NOT EXISTS (SELECT 1 FROM meta
			WHERE key = 'swap_in_counted' AND value = '1')
				THEN ' (of the whole machine: this '
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
	COALESCE(SUM(CASE what WHEN 'out_other' THEN pages END), 0) AS other FROM swap
		WHERE pid > 0)
WHERE out_pages > 0
UNION ALL
SELECT 5, 'read ahead from swap and not used: ' || PRINTF('%,d', readahead_pages) || ' pages'
FROM swap_source WHERE readahead_pages > 0.05 * (cache_pages + device_pages)
	AND readahead_pages > 64
UNION ALL
SELECT 6, 'swapped pages that came back and were not followed: ' || PRINTF('%,d', untracked_pages)
	|| ': how often pages came back, and the memory that would do, are lower bounds'
FROM memory WHERE untracked_pages > 0
UNION ALL
SELECT 8, calls || PRINTF(': watched %.1f %% of the time, to keep within the overhead limit; ',
		100.0 * share)
	|| 'their counts, bytes and times are estimates'
	|| CASE WHEN error < 1 THEN PRINTF(', +- %.0f %%', 100.0 * error)
		ELSE PRINTF(', and may be up to %.1f times as much', 1.0 + error) END
FROM (SELECT COUNT(*) AS n, group_concat(call, ', ') AS calls, MIN(share) AS share,
		MAX(error) AS error
	FROM (SELECT call, share, error FROM duty_cycle WHERE share < 1
		AND call IN (SELECT call FROM call) ORDER BY call))
WHERE n > 0
UNION ALL
SELECT 8, PRINTF('%s: probed past the threads'' caches (--place): blocks of more than %,d bytes '
		|| 'are all counted; of smaller ones counts and bytes are lower bounds, and the '
		|| 'allocator''s time is that of CPU samples', calls, cached_bytes)
	|| CASE WHEN timed THEN '' ELSE '; not all returns of free are seen, and of these calls '
		|| 'no latency is known' END
FROM (SELECT COUNT(*) AS n, group_concat(call, ', ') AS calls, MAX(cached_bytes) AS cached_bytes,
		MIN(timed) AS timed FROM (SELECT * FROM cached_call ORDER BY call DESC))
WHERE n > 0
UNION ALL
SELECT 2, PRINTF('low confidence: the probes took %.0f %% of the CPU time, and their price is '
	|| 'known to '
	|| '%.3g s only: of the observed %.3g s shares are bounds, not measurements', 100.0
		* overhead_ns
	/ MAX(cpu_ns, overhead_ns, 1), overhead_error_ns / 1e9, observed_ns / 1e9)
FROM observed WHERE doubtful
UNION ALL
SELECT 2, PRINTF('%,d short allocator calls take less than the price of their probes varies by: '
	|| 'their time is '
	|| 'that of as many small mallocs, as calibrated, %.3g s +- 100 %%', calls, unresolved_ns
		/ 1e9)
FROM (SELECT SUM(CASE WHEN unresolved_ns > 0 THEN calls END) AS calls,
	SUM(unresolved_ns) AS unresolved_ns, SUM(alloc_ns) AS alloc_ns FROM call_cost)
WHERE unresolved_ns > 0.1 * alloc_ns AND alloc_ns > 0.05 * (SELECT observed_ns FROM observed)
UNION ALL
SELECT 9, PRINTF('code that was %s has no names, in stacks of %.0f %% of the time: ',
	CASE WHEN unwatched THEN 'mapped or made meanwhile' ELSE 'made at run time' END,
	100.0 * share) || CASE
	WHEN unwatched THEN 'mapping calls were not traced (--probes)'
	WHEN EXISTS (SELECT 1 FROM process WHERE executable GLOB '*/node*')
		THEN 'start Node with --perf-basic-prof'
	WHEN EXISTS (SELECT 1 FROM process WHERE executable GLOB '*/java')
		THEN 'record with --jvm-perfmap, which has Java 17 or newer write its names (or '
			|| 'jcmd PID Compiler.perfmap, meanwhile); started with '
			|| '-XX:+PreserveFramePointer its stacks are whole'
	ELSE 'a runtime that writes /tmp/perf-PID.map gives them' END
FROM fileless
UNION ALL
SELECT 9, PRINTF('stacks of %.0f %% of the sites'' time end in code made at run time that keeps no '
	|| 'frame pointers: who called it is unknown; ', 100.0 * share) || CASE WHEN java
	THEN 'started with -XX:+PreserveFramePointer Java''s are whole, and nearly all of them '
		|| 'are where Java 17 or newer is recorded with --jvm-perfmap'
	ELSE 'those of a runtime that keeps them, or has an option to, are whole' END
FROM ended_in_made
UNION ALL
SELECT 6, PRINTF('%.0f %% of the time is at code of %s that has no names: install its debug '
		|| 'symbols (Debian, Ubuntu: the -dbgsym package of what dpkg -S %s says)',
		100.0 * share, base, module)
	|| CASE build_id WHEN '' THEN '' ELSE ', or debuginfod-find debuginfo ' || build_id END
	|| '; then memtoll symbolize --debug ~/.cache/debuginfod_client names the frames of this '
	|| 'recording'
FROM nameless
UNION ALL
SELECT 7, family || ' was not captured: ' || MIN(not_captured) FROM toll_kind
GROUP BY family HAVING COUNT(*) = COUNT(not_captured);
