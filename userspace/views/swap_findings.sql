-- SPDX-License-Identifier: GPL-2.0
--
-- swap_findings.sql: the advice on memory that is pushed out to swap. Follows advice.sql.

INSERT INTO advice (code, title, condition, gain, evidence, cost, explain) VALUES (
'swap-in', 'the working set does not fit',
-- The few pages that one pass over much memory takes along may be slow to come back, too, from a
-- disk that is busy with what goes out; pushing out is what has to stop (reclaim-stall, given-out).
'swap_matters AND NOT woke AND NOT (hardly_back
	AND swap_ns < reclaim_ns + (SELECT given_ns - given_file_ns FROM given_measure))',
-- What comes back had to be pushed out, and something else for it: those stalls would stop, too.
'(swap_ns + (reclaim_ns + (SELECT given_ns - given_file_ns FROM given_measure))
	* MIN(1.0, 1.0 * swap_bytes / MAX(pushed_bytes, 1.0))) / base_ns',
'{swap_bytes} came back from swap ({swap_from}) in {swap_time}; resident at most {rss_peak}, swapped
	at most {swap_peak}.',
'Memory given to this program is taken from others; the size that would do is an estimate, rather
	too high.',
'Pages were pushed out to swap and came back when the program used them again. Reading one back
	costs far more than any fault on a fresh page, and no setting of the allocator changes it.

	Either the limit is too low (of the memory cgroup, or the machine''s memory), or the program
	goes over more memory than it needs at a time. In a cyclic sweep each page is pushed out
	just before its next turn: doing all passes over a part that fits before going on saves all
	of it, where a little more memory saves nothing. In random order each bit of memory saves
	its part.');
INSERT INTO advice_text (code, part, choice, condition, text) VALUES
('swap-in', 1, 0, '(SELECT swap_given FROM given_measure)',
'{swap_faults} faults bring back what the program has pushed out itself, most at {swap_place}.'),
('swap-in', 1, 1, '1',
'The program uses more memory than it may keep: {swap_faults} faults on swapped pages, most at
	{swap_place}.'),
('swap-in', 2, 0, '(SELECT swap_given FROM given_measure)',
'Do not give back what is used again.{swap_by}'),
('swap-in', 2, -1, '(SELECT swap_asked FROM given_measure)',
'Do not ask the kernel to take back what is used again.{swap_by}'),
('swap-in', 2, 1, '2 * out_other > out_pages',
'Other processes push it out: limit them, or protect this one (memory.low of its cgroup, mlock of
	what must not wait).'),
('swap-in', 2, 2, 'fits_bytes > limit_bytes AND limit_path IS NOT NULL',
'With a limit of about {fits} instead of {memory_limit} ({memory_of}) the swap-ins would stop:
	{came_back} came back at least once, and at most {swap_peak} were out at a time.'),
('swap-in', 2, 3, 'fits_bytes > limit_bytes',
'With about {fits} of memory instead of {memory_limit}, or as much less used by others, the swap-ins
	would stop: {came_back} came back at least once, and at most {swap_peak} were out at a
	time.'),
('swap-in', 2, 4, 'back_once',
'Give it more memory, or a higher limit; how much would do shows in a recording in which pages come
	back twice and more.'),
('swap-in', 2, 5, '1', 'Give it more memory (or a higher cgroup limit).'),
('swap-in', 3, 0, '(SELECT swap_given OR swap_asked FROM given_measure)', ''),
('swap-in', 3, 1, 'back_pattern = ''cyclic sweep''',
'Or do all passes over a part that fits before going on to the next part.'),
('swap-in', 3, 2, 'back_pattern = ''random''',
'Or make what is in use smaller, and keep on one page what is used together.'),
('swap-in', 3, 3, '1', 'Or make its working set smaller.'),
('swap-in', 4, 0, '(SELECT swap_given OR swap_asked FROM given_measure)', ''),
('swap-in', 6, 1, '(SELECT 3 * cold_again_bytes FROM advised_measure) > swap_bytes',
'What is used again soon is not cold: do without the MADV_COLD at {cold_place}, by which it is
	pushed out first.'),
('swap-in', 4, 1, 'swap_segment LIKE ''/%'' AND swap_segment NOT LIKE ''/memfd:%''',
'What is kept on tmpfs ({swap_segment}) is memory: delete there what is not needed any more, or put
	it on a disk.'),
('swap-in', 4, 2, 'swap_segment IS NOT NULL',
'It is shared memory: a smaller segment (a pool, buffers) that fits beside the rest saves all of it.
	Locked (mlock, SHM_LOCK) or in huge pages of hugetlbfs (MFD_HUGETLB, SHM_HUGETLB) it is
	never pushed out, but something else is instead.'),
('swap-in', 4, 3, '1', 'This is no matter of the allocator''s settings.'),
('swap-in', 5, 0, '(SELECT swap_given OR swap_asked FROM given_measure)', ''),
('swap-in', 5, 1, '(SELECT swap_half_bytes < swap_most_bytes FROM read_measure)',
'Less helps in part: {swap_half} more would save half of the swap-ins, {swap_most} more
	{swap_most_saved}.'),
('swap-in', 5, 2, '(SELECT swap_most_bytes > 0 FROM read_measure)',
'Less than {swap_most} more saves next to nothing.');

INSERT INTO advice (code, title, condition, gain, evidence, cost, explain) VALUES (
'swap-woken', 'what had been pushed out is used again',
'swap_matters AND woke',
'swap_ns / base_ns',
'{swap_bytes} came back from swap ({swap_from}) in {swap_time}, {came_back} of it different pages;
	resident at most {rss_peak}.',
'What is protected here has to be taken from somebody else when memory is short.',
'The program did not use this memory for a while, and others wanted some: the kernel has pushed it
	out to swap, as it does with what was not used longest. Now it is used again, and each page
	has to be read back, once. Then all of it is there: it is no working set that is too large,
	and neither a higher limit nor more memory is what it lacks.

	What helps is to keep it from being pushed out while it is idle: memory.low of its cgroup
	(version 2) protects as much as that from the need of others, mlock locks what must answer
	at once, a lower vm.swappiness (memory.swappiness) lets the kernel take pages of files
	first. Or whoever took the memory is given a limit of its own.');
INSERT INTO advice_text (code, part, choice, condition, text) VALUES
('swap-woken', 1, 1, '1',
'{swap_faults} faults bring back what had been pushed out while it was not used, most at
	{swap_place}. Each page came back once, and it fits: more memory is not what it
	lacks.{swap_by}'),
('swap-woken', 2, -1, '(SELECT swap_asked FROM given_measure)',
'Do not ask the kernel to take back what is used again.'),
('swap-woken', 2, 1, 'EXISTS (SELECT 1 FROM dropper WHERE what = ''swap'')',
'Keep the others from it: a limit for them, memory.low of its own cgroup for {fits}, or mlock of
	what must not wait. A lower swappiness lets the kernel take pages of files first.'),
('swap-woken', 2, 2, '1',
'Keep it in memory while it is idle: memory.low of its cgroup for {fits}, mlock of what must not
	wait, a lower swappiness; or a limit for those who took the memory.'),
('swap-woken', 3, 1, 'swap_segment LIKE ''/%'' AND swap_segment NOT LIKE ''/memfd:%''',
'It lies on tmpfs ({swap_segment}): that is memory, and can be pushed out like any other.'),
('swap-woken', 3, 2, 'swap_segment IS NOT NULL',
'It is shared memory: SHM_LOCK, or huge pages of hugetlbfs (MFD_HUGETLB, SHM_HUGETLB), are never
	pushed out.');

INSERT INTO advice (code, title, condition, gain, evidence, cost, explain) VALUES (
'reclaim-stall', 'the program stalls to push its own pages out',
'(swap_matters OR file_matters AND NOT (SELECT thrash OR returned FROM page_cache)
	AND (SELECT family FROM toll WHERE toll = ''reclaim'') = ''file'') AND reclaim_count > 0',
'reclaim_ns / base_ns',
'{reclaim_count} stalls, {reclaim_time}{out_also}.',
'Memory given to this program is taken from others.',
'Where memory is full (the machine''s, or the memory cgroup''s), whoever wants a page has to free
	one first. That is direct reclaim: the program itself stands still for it, in the middle of
	a fault.

	When what was pushed out never comes back this is no thrash: one pass over more memory than
	there is. Working in smaller parts, each freed or reused before the next, avoids it. When it
	comes back the working set does not fit (see swap-in).');
INSERT INTO advice_text (code, part, choice, condition, text) VALUES
('reclaim-stall', 1, 1, '1',
'Each page that is used for the first time, or again, has to push another one out first:
	{reclaim_of} is full.'),
('reclaim-stall', 2, 0, '(SELECT family FROM toll WHERE toll = ''reclaim'') = ''file''',
'Nothing goes to swap: it is pages of files that go, and they hardly come back. Let go of what was
	read or written once as soon as it is done with (POSIX_FADV_DONTNEED, written pages after
	sync_file_range), pass the page cache by (O_DIRECT), or raise the limit.'),
('reclaim-stall', 2, 1, 'hardly_back',
'What was pushed out hardly ever came back, so this is no thrash: a pass over more memory than there
	is. Work in smaller parts and free or reuse each, or raise the limit.'),
('reclaim-stall', 2, 2, '1',
'Much of what was pushed out came back: the working set does not fit. Raise the limit, or make the
	working set smaller.');

INSERT INTO advice (code, title, condition, gain, evidence, cost, explain) VALUES (
'given-out', 'the program pushes out what it does not use again',
-- what comes back has advice of its own (swap-in, file-thrash)
'(SELECT 2 * given_ns FROM given_measure) > (SELECT time_ns FROM toll WHERE toll = ''reclaim'')
	AND CASE (SELECT family FROM toll WHERE toll = ''reclaim'') WHEN ''swap''
	THEN swap_matters AND hardly_back
		AND swap_ns < reclaim_ns + (SELECT given_ns - given_file_ns FROM given_measure)
	ELSE file_matters AND NOT (SELECT thrash OR returned FROM page_cache) END',
'(SELECT given_ns - CASE WHEN (SELECT thrash OR returned FROM page_cache) THEN given_file_ns
	ELSE 0.0 END FROM given_measure) / base_ns',
'{given_calls} calls pushed {given_bytes} out in {given_time}.',
'Memory that is only called cold stays resident until the kernel needs it.',
'madvise(MADV_PAGEOUT) reclaims its range at once: the calling thread unmaps each page, and writes
	what was changed to swap, or to its file. That takes far longer than to free memory.

	What will not be used again can be freed instead: free or munmap, MADV_DONTNEED of anonymous
	memory. What may be used again is the first to go when memory is short after MADV_COLD,
	which takes next to no time. What a file''s mapping no longer needs can be dropped by
	POSIX_FADV_DONTNEED once it is written.');
INSERT INTO advice_text (code, part, choice, text) VALUES
('given-out', 1, 1,
'madvise(MADV_PAGEOUT) at {given_place} pushes {given_bytes} out, which takes {given_time}, and
	hardly any of it came back. Free what is not used again (munmap, MADV_DONTNEED of anonymous
	memory), and leave the rest to the kernel: MADV_COLD lets it go first when memory is
	short.');
