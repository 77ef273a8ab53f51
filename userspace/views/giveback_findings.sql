-- SPDX-License-Identifier: GPL-2.0
--
-- giveback_findings.sql: the advice on memory that is given back and got again: rows of the tables
-- of advice.sql, which it follows.

INSERT INTO advice (code, title, allocator, process, condition, gain, evidence, cost,
	explain) VALUES (
'trim-storm', 'glibc trims its heap and grows it again', 'glibc',
'trim_pid',
'trim_storm',
'trim_storm_ns / base_ns',
'{trim_storm_calls} calls gave {trim_storm_gave} back and {trim_storm_again} of it came again
	({trim_storm_per_s} a second), in {trim_storm_faults} faults: {trim_storm_again_time}, and
	{trim_storm_gave_time} in the calls.{trim_storm_rose}',
'The heap keeps up to the threshold at its top, in each arena: memory that counts as resident. And
	the mmap_threshold no longer follows the program''s blocks.',
'When free leaves more than trim_threshold at the top of the heap, glibc gives it back to the
	kernel: by brk, in arenas other than the main one by madvise. A program that then allocates
	again gets pages that the kernel has to clear once more, a fault for each. Where calloc gets
	them it clears a part of them a second time, not knowing that they are fresh.

	The threshold is 128 KiB at the start, which a few dozen blocks exceed. trim_threshold above
	what the program lets go of at a time keeps the memory; so does top_pad, which leaves that
	much at each trim and gets as much more at each growth.

	Setting any of the two (or mmap_threshold, or mmap_max) stops glibc from adapting the
	mmap_threshold, which stays at 128 KiB then. If it had been raised, blocks that came from
	the heap would get mappings of their own, and fault each time: then both have to be set, and
	either alone changes nothing.');
INSERT INTO advice_text (code, part, choice, condition, since, text, change, try) VALUES
('trim-storm', 1, 1, '1', 0,
'free at {trim_storm_gave_place} lets glibc give the top of the heap back to the kernel, and
	{trim_storm_got_call} at {trim_storm_got_place} gets it again: {trim_storm_again} were
	cleared again for it, {trim_storm_per_s} a second.', '', ''),
('trim-storm', 2, 1, 'trim_storm_clears_twice', 0,
'{trim_storm_twice} of that is cleared twice: by the kernel, and by calloc''s memset.', '', ''),
('trim-storm', 3, 0, 'trim_pid IN (SELECT pid FROM glibc_pinned)', 0,
'The program sets glibc''s thresholds itself (mallopt), and that overrides its environment: set
	{trim_storm_mallopt} there.', 'up trim_threshold', ''),
('trim-storm', 3, 1, 'trim_storm_pad', 2026,
'GLIBC_TUNABLES={trim_storm_tunables} keeps it. In arenas of threads heaps of 64 MiB that are empty
	are unmapped whole: trim_threshold does not hold for those.',
'up top_pad,up mmap_threshold', '--set GLIBC_TUNABLES={trim_storm_tunables}'),
('trim-storm', 3, 2, 'trim_storm_pad', 0,
'{trim_storm_variables} in its environment keeps it. In arenas of threads heaps of 64 MiB
	that are empty are unmapped whole: trim_threshold does not hold for those.',
'up top_pad,up mmap_threshold', '--set {trim_storm_sets}'),
('trim-storm', 3, 3, 'NOT trim_storm_needs_both', 2026,
'GLIBC_TUNABLES={trim_storm_tunables}, or mallopt(M_TRIM_THRESHOLD, {trim_storm_trim_int}), keeps it
	(top_pad as large does, too).', 'up trim_threshold',
'--set GLIBC_TUNABLES={trim_storm_tunables}'),
('trim-storm', 3, 4, 'NOT trim_storm_needs_both', 0,
'{trim_storm_variables} in its environment, or mallopt(M_TRIM_THRESHOLD, {trim_storm_trim_int}),
	keeps it (top_pad as large does, too).', 'up trim_threshold', '--set {trim_storm_sets}'),
('trim-storm', 3, 5, '1', 2026,
'GLIBC_TUNABLES={trim_storm_tunables} keeps it. Both are needed: with trim_threshold alone the
	mmap_threshold, now {trim_storm_threshold}, would be 131,072 bytes again, and larger blocks
	would be mapped and unmapped each time; with mmap_threshold alone the heap is still
	trimmed.',
'up mmap_threshold,up trim_threshold',
'--set GLIBC_TUNABLES={trim_storm_tunables}'),
('trim-storm', 3, 6, '1', 0,
'{trim_storm_variables} in its environment keep it. Both are needed: with the second alone the
	mmap_threshold, now {trim_storm_threshold}, would be 131,072 bytes again, and larger blocks
	would be mapped and unmapped each time; with the first alone the heap is still trimmed.',
'up mmap_threshold,up trim_threshold',
'--set {trim_storm_sets}');
INSERT INTO advice_text (code, part, choice, condition, text) VALUES
('trim-storm', 4, 1, '(SELECT growth FROM growth_measure) AND (SELECT got_call LIKE ''realloc%''
	FROM giveback_kind WHERE kind = ''trim'')',
'That time is in what small-steps saves, too.');

INSERT INTO advice (code, title, allocator, process, condition, gain, evidence, cost,
	explain) VALUES (
'heap-storm', 'a heap of a thread''s arena comes and goes', 'glibc',
'heap_pid',
'heap_storm',
'heap_storm_ns / base_ns',
'{heap_storm_calls} times a heap of 64 MiB was unmapped, {heap_storm_gave} of it in use in all, and
	{heap_storm_again} came again ({heap_storm_per_s} a second) in {heap_storm_faults} faults:
	{heap_storm_again_time}, and {heap_storm_gave_time} in munmap.',
'Each arena keeps the heaps that it ever needed, 64 MiB at a time, of which what was used counts as
	resident. And the mmap_threshold no longer follows the program''s blocks.',
'Threads other than the first take memory from arenas, which are made of heaps of 64 MiB each. When
	one heap is nearly full, of what lives long or of what is in use just then, a block that
	does not fit gets a new heap; and when all in that is freed again, free unmaps it whole. The
	next block maps it anew, and each of its pages faults in and is cleared.

	trim_threshold does not hold for that: a heap stays only where top_pad is larger than what
	is free at the end of the heap before it. With top_pad=67108864, the size of a heap, all of
	them stay. As any setting of these stops glibc from adapting mmap_threshold, that has to be
	set as well, where it had been raised: else larger blocks would be mapped and unmapped each
	time. With arena_max=1 all threads use the main arena, which has no such heaps, and wait for
	each other''s lock instead.');
INSERT INTO advice_text (code, part, choice, condition, since, text, change, try) VALUES
('heap-storm', 1, 1, '1', 0,
'free at {heap_storm_gave_place} empties the last heap of its thread''s arena, which is unmapped
	whole, and {heap_storm_got_call} at {heap_storm_got_place} maps it again: the heap before it
	has no room left. {heap_storm_again} were cleared again for it, {heap_storm_per_s} a
	second.', '', ''),
('heap-storm', 2, 0, 'heap_pid IN (SELECT pid FROM glibc_pinned)', 0,
'The program sets glibc''s thresholds itself (mallopt), and that overrides its environment: set
	{heap_storm_mallopt} there. Or reuse one buffer.', 'up top_pad,up mmap_threshold', ''),
('heap-storm', 2, 1, '1', 2026,
'GLIBC_TUNABLES={heap_storm_tunables} keeps it (so does glibc.malloc.arena_max=1, where few threads
	allocate at once). Or reuse one buffer.', 'up top_pad,up mmap_threshold',
'--set GLIBC_TUNABLES={heap_storm_tunables}'),
('heap-storm', 2, 2, '1', 0,
'{heap_storm_variables} in its environment keeps it (so does MALLOC_ARENA_MAX=1, where few threads
	allocate at once). Or reuse one buffer.', 'up top_pad,up mmap_threshold',
'--set {heap_storm_sets}');

INSERT INTO advice (code, title, allocator, process, condition, gain, evidence, cost,
	explain) VALUES (
'map-storm', 'glibc unmaps large blocks and maps them again', 'glibc',
'map_pid',
'map_storm',
'map_storm_ns / base_ns',
'{map_storm_calls} blocks of at most {map_storm_largest} were unmapped, {map_storm_gave} of them in
	use, and {map_storm_again} came again ({map_storm_per_s} a second) in {map_storm_faults}
	faults: {map_storm_again_time}, and {map_storm_gave_time} in munmap.{map_storm_came}',
'The heap keeps up to trim_threshold at its top, in each arena: memory that counts as resident;
	blocks of calloc are then cleared by memset; and large blocks may keep smaller ones below
	them from being given back.',
'A block of at least mmap_threshold has a mapping of its own, which free unmaps at once. The next
	block is a new mapping, whose pages fault in and are cleared one by one. glibc avoids that
	by itself for blocks up to 32 MiB: the first free raises mmap_threshold to the block''s size
	and trim_threshold to twice that, unless one of the tunables is set.

	Above 32 MiB, or with a tunable set, both have to be raised by hand: mmap_threshold, so that
	the block comes from the heap, and trim_threshold, so that the heap keeps it when it is
	freed. With the first alone free trims the heap instead of unmapping; with the second alone
	the block is still mapped. Before glibc 2.36 do not count on an mmap_threshold above 32 MiB
	being accepted: mmap_max=0, which forbids such mappings altogether, does the same there.

	Threads other than the first have arenas of their own, whose heaps hold 64 MiB: a larger
	block cannot come from them, whatever the threshold. There arena_max=1, with which all
	threads use the main arena, is needed as well. For smaller blocks it is top_pad, without
	which a heap that has become empty is unmapped.

	Reusing one buffer in the program does it without any setting.');
INSERT INTO advice_text (code, part, choice, condition, since, text, change, try) VALUES
('map-storm', 1, 1, '1', 0,
'free at {map_storm_gave_place} unmaps blocks that {map_storm_got_call} at {map_storm_got_place}
	maps again: {map_storm_again} were cleared again for it, {map_storm_per_s} a second.',
'', ''),
('map-storm', 2, 0, 'map_pid IN (SELECT pid FROM glibc_pinned)', 0,
'The program sets glibc''s thresholds itself (mallopt), and that overrides its environment: set
	{map_storm_mallopt} there.', 'up mmap_threshold,up trim_threshold', ''),
('map-storm', 2, 1, '1', 2036,
'GLIBC_TUNABLES={map_storm_tunables} keeps them in the heap.',
'up mmap_threshold,up trim_threshold', '--set GLIBC_TUNABLES={map_storm_tunables}'),
('map-storm', 2, 2, '1', 2026,
'GLIBC_TUNABLES={map_storm_old_tunables} keeps them in the heap.',
'up mmap_threshold,up trim_threshold', '--set GLIBC_TUNABLES={map_storm_old_tunables}'),
('map-storm', 2, 3, '1', 0, '{map_storm_variables} in its environment keep them in the heap.',
'up mmap_threshold,up trim_threshold', '--set {map_storm_sets}'),
('map-storm', 3, 1, 'map_storm_one_arena', 0,
'All are needed: no arena but the main one can hold such a block, so with the thresholds alone the
	blocks of other threads are still mapped; and all threads then share one lock. Or reuse one
	buffer.', '', ''),
('map-storm', 3, 2, 'map_storm_pad', 0,
'All are needed: with mmap_threshold alone the heap is trimmed at each free, with trim_threshold
	alone the blocks are still mapped, and top_pad keeps whole heaps of a thread''s arena. Or
	reuse one buffer.', '', ''),
('map-storm', 3, 3, '1', 0,
'Both are needed: with the first alone the heap is trimmed at each free, with the second alone the
	blocks are still mapped. Or reuse one buffer.', '', '');
INSERT INTO advice_text (code, part, choice, condition, text) VALUES
('map-storm', 4, 1, '(SELECT growth FROM growth_measure) AND (SELECT got_call LIKE ''realloc%''
	FROM giveback_kind WHERE kind = ''map'')',
'That time is in what small-steps saves, too.');

INSERT INTO advice (code, title, process, condition, gain, evidence, cost, explain) VALUES (
'purge-storm', 'jemalloc purges pages and uses them again',
'purge_pid',
'purge_storm',
'purge_storm_ns / base_ns',
'{purge_storm_calls} calls gave {purge_storm_gave} back and {purge_storm_again} of it came again
	({purge_storm_per_s} a second), in {purge_storm_faults} faults: {purge_storm_again_time},
	and {purge_storm_gave_time} in the calls.',
'Freed memory stays resident for as long as the decay time says.',
'jemalloc keeps freed pages for a while (dirty_decay_ms, 10 seconds by default) and then purges
	them: madvise gives them back to the kernel. With a decay time of 0 it does so at each free,
	and when the memory is used again every page faults in and is cleared. Large blocks, from
	some 8 MiB on, are purged at once or nearly so even with the default.

	A decay time longer than the program''s own rounds keeps the pages; -1 keeps them for good.
	Before version 5 it purged by another rule. A jemalloc whose functions have a prefix reads
	a variable with the same prefix: JE_MALLOC_CONF where they are called je_malloc. And
	programs may have the setting built in.');
INSERT INTO advice_text (code, part, choice, allocator, before, condition, text) VALUES
('purge-storm', 2, 0, 'jemalloc', 5000, '1',
'This version purges by the share of dirty pages (lg_dirty_mult in {purge_storm_conf}; -1 keeps
	them), not by time.');
INSERT INTO advice_text (code, part, choice, condition, text, try) VALUES
('purge-storm', 1, 1, 'purge_storm_itself',
'{purge_storm_allocator} gives pages back to the kernel by itself ({purge_storm_how}), and
	{purge_storm_got_call} at {purge_storm_got_place} gets them again: {purge_storm_again} were
	cleared again for it, {purge_storm_per_s} a second.', ''),
('purge-storm', 1, 2, '1',
'{purge_storm_gave_call} at {purge_storm_gave_place} lets {purge_storm_allocator} give pages back to
	the kernel ({purge_storm_how}), and {purge_storm_got_call} at {purge_storm_got_place} gets
	them again: {purge_storm_again} were cleared again for it, {purge_storm_per_s} a second.',
''),
('purge-storm', 2, 1, 'purge_storm_is_set',
'Its decay time is set short: {purge_storm_conf}=dirty_decay_ms:10000, the default, keeps freed
	pages for 10 seconds.', '--set {purge_storm_conf}=dirty_decay_ms:10000'),
('purge-storm', 2, 2, '1',
'{purge_storm_conf}=dirty_decay_ms:-1 keeps them (blocks of 8 MiB and more are purged at once with
	any other setting), or a decay time longer than the program''s rounds where they are
	smaller.',
'--set {purge_storm_conf}=dirty_decay_ms:-1');

INSERT INTO advice (code, title, process, condition, gain, evidence, cost, explain) VALUES (
'allocator-storm', 'the allocator gives memory back and gets it again',
'other_pid',
'other_storm',
'other_storm_ns / base_ns',
'{other_storm_calls} calls gave {other_storm_gave} back and {other_storm_again} of it came again
	({other_storm_per_s} a second), in {other_storm_faults} faults: {other_storm_again_time},
	and {other_storm_gave_time} in the calls.',
'Memory that is kept counts as resident.',
'The allocator gives freed memory back to the kernel, by munmap or madvise, and gets it again soon
	after: each page then faults in and is cleared anew. Allocators differ in when they do that
	and in what they let be set; some do it always for blocks above a size.

	Reusing one buffer in the program helps with all of them.');
INSERT INTO advice_text (code, part, choice, condition, allocator, text, try) VALUES
('allocator-storm', 2, 1, 'other_storm_aggressive', 'tcmalloc',
'TCMALLOC_AGGRESSIVE_DECOMMIT is set, which gives back whatever is freed: take that away.',
'--set TCMALLOC_AGGRESSIVE_DECOMMIT=0');
INSERT INTO advice_text (code, part, choice, condition, allocator, since, text) VALUES
('allocator-storm', 1, 1, 'other_storm_itself', '', 0,
'The allocator gives memory back to the kernel by itself ({other_storm_how}), and
	{other_storm_got_call} at {other_storm_got_place} gets it again: {other_storm_again} were
	cleared again for it, {other_storm_per_s} a second. Reuse one buffer.'),
('allocator-storm', 1, 2, '1', '', 0,
'{other_storm_gave_call} at {other_storm_gave_place} lets the allocator give memory back to the
	kernel ({other_storm_how}), and {other_storm_got_call} at {other_storm_got_place} gets it
	again: {other_storm_again} were cleared again for it, {other_storm_per_s} a second. Reuse
	one buffer.'),
('allocator-storm', 2, 2, '1', 'tcmalloc', 0,
'Or lower the rate at which it gives memory back (TCMALLOC_RELEASE_RATE=0 in the environment).'),
('allocator-storm', 2, 3, 'other_storm_how <> ''munmap''', 'mimalloc', 2001,
'Or let it wait before it gives memory back (MIMALLOC_PURGE_DELAY in milliseconds).'),
('allocator-storm', 2, 4, '1', 'musl', 0,
'musl has no setting for it: another allocator may keep such blocks.');

INSERT INTO advice_figure (name, kind, expression) VALUES
('stacks_unmapped', 'c', 'stacks_unmapped'),
('stacks_went', 'x', 'CASE WHEN stacks_given = 0
		THEN PRINTF(''%,d stacks of threads that had ended were unmapped'', stacks_unmapped)
	WHEN stacks_unmapped = 0 THEN PRINTF(''%,d threads gave their stacks back'', stacks_given)
	ELSE PRINTF(''%,d threads gave their stacks back, and %,d stacks were unmapped'',
		stacks_given, stacks_unmapped) END');

INSERT INTO advice (code, title, process, condition, gain, evidence, cost, explain) VALUES (
'stack-storm', 'threads'' stacks are given back and used again',
'stack_pid',
'stack_storm AND NOT stack_storm_populated',
'stack_storm_ns / base_ns',
'{stacks_went}, {stack_storm_gave} in all; {stack_storm_again} of it came again ({stack_storm_per_s}
	a second), in {stack_storm_faults} faults: {stack_storm_again_time}, and
	{stack_storm_gave_time} in the calls.',
'Threads that are kept hold what they have used of their stacks.',
'When a thread ends, glibc gives the pages of its stack back to the kernel (MADV_DONTNEED), but for
	the topmost 16 KiB, and keeps the stack itself for the next thread. What that uses of it
	faults in again, a page at a time, each cleared by the kernel. Where more than 40 MiB of
	stacks are kept, five of the usual 8 MiB, the oldest are unmapped, and the next thread has
	to map one, protect it and fault all of it in.

	A pool of threads that lives on pays for its stacks once. Buffers of a megabyte are better
	off in the heap than on the stack, where they are kept between two uses. Stacks that the
	program makes itself (pthread_attr_setstack) are not given back.

	Up to 40 MiB are kept whatever the size: of smaller stacks (pthread_attr_setstacksize, or
	ulimit -s) there are more. The tunable glibc.pthread.stack_cache_size (from 2.34 on) raises
	that; it saves mapping and unmapping, not the pages, which are given back all the same.');
INSERT INTO advice_text (code, part, choice, condition, allocator, since, text) VALUES
('stack-storm', 1, 1, '1', '', 0,
'A thread''s stack is given back to the kernel when the thread ends, by the C library, and the next
	thread faults it in again, most at {stack_storm_got_place}: {stack_storm_again} were cleared
	again for it, {stack_storm_per_s} a second. Keep the threads for the next piece of work (a
	thread pool), or large buffers off the stack.'),
('stack-storm', 2, 1, 'stacks_unmapped > 0', 'glibc', 2034,
'{stacks_unmapped} stacks were unmapped, as no more than 40 MiB of them are kept: smaller ones
	(pthread_attr_setstacksize, ulimit -s) or
	GLIBC_TUNABLES=glibc.pthread.stack_cache_size=1073741824 save at least mapping them anew.'),
('stack-storm', 2, 2, 'stacks_unmapped > 0', '', 0,
'{stacks_unmapped} stacks were unmapped, as only so much of them is kept: of smaller ones
	(pthread_attr_setstacksize, ulimit -s) more are used again.');

INSERT INTO advice (code, title, condition, gain, evidence, cost, explain) VALUES (
'own-storm', 'the program gives memory back itself and uses it again',
'own_storm AND NOT own_storm_populated',
'own_storm_ns / base_ns',
'{own_storm_calls} calls gave {own_storm_gave} back and {own_storm_again} of it came again
	({own_storm_per_s} a second), in {own_storm_faults} faults: {own_storm_again_time}, and
	{own_storm_gave_time} in the calls.',
'Memory that is kept counts as resident.',
'The program, or a library outside the allocator, calls munmap, madvise or malloc_trim, and uses as
	much memory again soon after: each page then faults in and is cleared anew. No setting of
	the allocator changes that: it is in the code at the named place.

	Keep the mapping for the next round, or give memory back only after it has not been used for
	a while. MADV_FREE instead of MADV_DONTNEED leaves the pages as they are until memory is
	short, so that using them again costs nothing; until then they count as resident.');
INSERT INTO advice_text (code, part, choice, condition, text) VALUES
('own-storm', 1, 1, 'own_storm_trims',
'malloc_trim, called at {own_storm_gave_place}, gives memory back to the kernel that is used again:
	{own_storm_again} were cleared again for it, {own_storm_per_s} a second. Call it less often,
	or not.'),
('own-storm', 1, 2, '1',
'{own_storm_how} at {own_storm_gave_place} gives memory back to the kernel that {own_storm_got_call}
	at {own_storm_got_place} uses again: {own_storm_again} were cleared again for it,
	{own_storm_per_s} a second. Keep it for the next round.'),
('own-storm', 2, 1, 'own_storm_dontneed',
'Or use MADV_FREE, which lets the kernel take the pages only when memory is short.');
