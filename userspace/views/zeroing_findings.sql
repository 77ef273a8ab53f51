-- SPDX-License-Identifier: GPL-2.0
--
-- zeroing_findings.sql: the advice on memory that is cleared, by calloc, the program or the kernel,
-- and on what is allocated and never used: rows of the tables of advice.sql, which it follows.

INSERT INTO advice (code, title, allocator, process, condition, gain, evidence, cost,
	explain) VALUES (
'calloc-reuse-memset', 'calloc clears blocks that glibc reuses from its heap', 'glibc', 'libc_pid',
'zeroing_matters AND libc_whole AND libc_pin_ns > 0.1 * base_ns',
'libc_pin_ns / base_ns',
'{libc_cleared} of {libc_calls} calls came from the heap (chunk header) and cleared {libc_bytes} in
	{libc_time}.',
'Every page that the program then uses costs a fault again, {libc_touch} a call when the whole block
	is used, against {libc_least}{libc_each} now; and every block two mapping calls.',
'A block that calloc cuts from memory that was used before has to be cleared by hand: glibc calls
	memset on all of it, whether the program will use it or not. A block with a mapping of its
	own is not cleared: pages fresh from the kernel are zero, and the kernel clears only those
	that are touched.

	Which of the two happens is decided by size: from mmap_threshold on (128 KiB at the start) a
	block gets its own mapping. But the threshold moves: the first free of such a block raises
	it to that block''s size, up to 32 MiB, so that from then on blocks of this size come from
	the heap.

	Setting glibc.malloc.mmap_threshold (GLIBC_TUNABLES, from 2.26 on; MALLOC_MMAP_THRESHOLD_ in
	the environment before; mallopt(M_MMAP_THRESHOLD) in the program) pins it. That helps where
	little of each block is used. Where all of it is used it makes things far worse, as every
	page then costs a fault: compare the two prices in the text. What the program does with
	reused blocks raises no fault and is not seen. How much of a block it uses is known from
	those that came fresh from the kernel, and taken out of the gain; where none was seen the
	gain is an upper bound, and memtoll compare tells the truth. The setting is for every block
	of 128 KiB and more, of malloc as well: what it would cost those is taken out of the gain.

	The remedy that is right in both cases is in the program: keep one buffer, clear only what
	was used, or call malloc where everything is overwritten anyway.');
INSERT INTO advice_text (code, part, choice, condition, since, text, change, try) VALUES
('calloc-reuse-memset', 1, 1, '1', 0,
'calloc at {libc_place} gets blocks of {libc_asked} from the heap, and glibc memsets all of each:
	{libc_least}{libc_each} a call. The mmap_threshold is dynamic: it starts at 131,072 bytes,
	and the first
	free of an mmapped block raises it to that block''s size, so that smaller requests are then
	served from the heap.', '', ''),
('calloc-reuse-memset', 2, 1, 'threshold_low IS NULL', 0,
'It is at least {libc_block} now, not seen exactly.', '', ''),
('calloc-reuse-memset', 2, 2, 'threshold_low = threshold_high', 0, 'It is {threshold_low} now.', '',
	''),
('calloc-reuse-memset', 2, 3, 'threshold_high IS NULL', 0, 'It is at least {threshold_low} now.',
	'', ''),
('calloc-reuse-memset', 2, 4, '1', 0, 'It is between {threshold_low} and {threshold_high} now.', '',
	''),
('calloc-reuse-memset', 3, 1, '1', 2026,
'GLIBC_TUNABLES=glibc.malloc.mmap_threshold=131072, or mallopt(M_MMAP_THRESHOLD, 131072), pins it:
	each call then maps fresh zero pages and nothing is memset.', 'down mmap_threshold',
'--set GLIBC_TUNABLES=glibc.malloc.mmap_threshold=131072'),
('calloc-reuse-memset', 3, 2, '1', 0,
'MALLOC_MMAP_THRESHOLD_=131072 in the environment, or mallopt(M_MMAP_THRESHOLD, 131072), pins it:
	each call then maps fresh zero pages and nothing is memset.', 'down mmap_threshold',
'--set MALLOC_MMAP_THRESHOLD_=131072'),
('calloc-reuse-memset', 4, 1, '1', 0,
'The price: every page the program then uses costs a fault, {libc_pages} faults x {fault} =
	{libc_touch} a call when the whole block is used, against {libc_least}{libc_each}
	now.', '', ''),
('calloc-reuse-memset', 5, 1, 'libc_used IS NOT NULL', 0,
'Of blocks that came fresh from the kernel the program used {libc_used}: that is taken out of what
	it saves.', '', ''),
('calloc-reuse-memset', 5, 2, 'libc_touch_ns > 0 AND libc_each_ns >= libc_touch_ns', 0,
'Here that is cheaper however much of the block is used.', '', ''),
('calloc-reuse-memset', 5, 3, 'libc_touch_ns > 0', 0,
'How much is used was not seen. Use it only when less than about {break_even} of each block is used;
	otherwise reuse one buffer, or call malloc where everything is overwritten anyway.',
'', ''),
('calloc-reuse-memset', 5, 4, '1', 0,
'Use it only when little of each block is used; otherwise reuse one buffer, or call malloc where
	everything is overwritten anyway.', '', '');

INSERT INTO advice (code, title, process, condition, gain, evidence, cost, explain) VALUES (
'calloc-memset', 'calloc clears reused memory', 'libc_pid',
'zeroing_matters AND libc_whole AND NOT COALESCE(libc_pin_ns > 0.1 * base_ns, 0)',
'libc_ns / base_ns',
'{libc_cleared} of {libc_calls} calls cleared {libc_bytes} in {libc_time} (chunk header).',
'A buffer that is reused without clearing shows what it held before: where the program relies on
	zeroes it has to clear them itself.',
'calloc clears every block that it cuts from memory that was used before. Blocks below the
	mmap_threshold (128 KiB, or where a tunable pins it) always come from the heap, so no
	setting of the allocator takes this away without making page faults of it.

	Keep a buffer and clear only the part that was used; or call malloc, where the program
	overwrites the block before it reads it.

	Of larger blocks, whose mmap_threshold could be lowered, most is used: to map them would
	cost a fault for every page, and those cost more than the memset.');
INSERT INTO advice_text (code, part, choice, condition, allocator, text) VALUES
('calloc-memset', 1, 1, '1', '',
'calloc at {libc_place} clears {libc_block} of reused memory a call,
	{libc_least}{libc_each} each. Reuse one
	buffer and clear only what was used, or call malloc where everything is overwritten
	anyway.'),
('calloc-memset', 2, 0, 'libc_pin_ns + beside_ns > 0.1 * base_ns', 'glibc',
'A lower mmap_threshold would not help: large blocks of {beside_call} at {beside_place} would then
	be mapped as well, and fault in each time.'),
('calloc-memset', 2, 1, 'libc_pin_ns IS NOT NULL', 'glibc',
'A lower mmap_threshold would not help: of blocks that came fresh from the kernel {libc_used} was
	used, and a fault for each page costs more than the memset.'),
('calloc-memset', 2, 2, 'threshold_dynamic = 0 AND libc_block >= 131072', 'glibc',
'The mmap_threshold is pinned, by a tunable or mallopt, at a size above these blocks; a lower one
	would map fresh zero pages, at {fault} for every page that is used.');

INSERT INTO advice (code, title, process, condition, gain, evidence, cost, explain) VALUES (
'calloc-double-clear', 'calloc clears pages that the kernel had just cleared', 'kernel_pid',
'zeroing_matters AND twice_calloc_bytes > 0 AND 2 * kept_twice < twice_calloc_bytes',
-- a storm of glibc's heaps promises what of it is its own
'(MAX(0.0, twice_calloc_ns - kept_twice_ns) + foreign_ns) / base_ns',
'{twice_calloc_bytes} first touched by the memset inside calloc, {twice_calloc_time} of faults;
	{all_libc_time} of memset.',
'Memory that is kept instead of given back counts as resident until the program ends.',
'A page that the kernel hands out is zero already. When calloc memsets it, it is cleared twice, and
	pages that the program would never have touched are faulted in for it.

	Allocators do that when they do not know that memory is fresh. Some never know, or not for
	some sizes. glibc knows it for mappings, and of the heap for what it grows by in that very
	call, where it had never reached before: not for what an earlier call got in advance
	(top_pad), nor after a trim gave the top back. There trim_threshold, which keeps the top,
	takes away both.');
INSERT INTO advice_text (code, part, choice, condition, allocator, since, text, change, try) VALUES
('calloc-double-clear', 1, 1, '1', '', 0,
'calloc memsets pages that the kernel had just cleared: {twice_calloc_bytes} were cleared twice.',
	'', ''),
('calloc-double-clear', 2, 1, 'foreign_ns > 0 OR foreign_kind IS NOT NULL', '', 0,
'The allocator should return fresh mappings (mmap, MADV_DONTNEED) without a memset: calloc''s zeroes
	are already there, and pages the program never uses would not be faulted in at all. Use
	another allocator or a newer one, or allocate such blocks by mmap.', '', ''),
('calloc-double-clear', 2, 2, 'once_twice > 0
	AND 5 * once_twice >= 2 * (twice_calloc_bytes - kept_twice)',
	'glibc', 2026,
'glibc gave the top of the heap back and got it again: GLIBC_TUNABLES={trim_storm_tunables} keeps
	it; resident memory then stays at its peak.', 'up trim_threshold',
'--set GLIBC_TUNABLES={trim_storm_tunables}'),
('calloc-double-clear', 2, 3, 'once_twice > 0
	AND 5 * once_twice >= 2 * (twice_calloc_bytes - kept_twice)',
	'glibc', 0,
'glibc gave the top of the heap back and got it again: {trim_storm_variables} in its environment
	keeps it; resident memory then stays at its peak.',
'up trim_threshold', '--set {trim_storm_sets}'),
('calloc-double-clear', 2, 4, '1', '', 0,
'Keep the buffer and clear only what was used, or call malloc where everything is overwritten
	anyway.', '', '');

INSERT INTO advice_figure (name, kind, expression) VALUES
('twice_app_price', 'x', 'CASE WHEN twice_app_call IN ('''', ''mmap'')
	THEN ''What is kept counts as resident, and the program must not read what it held.''
	ELSE ''calloc clears reused blocks itself: where blocks are mostly reused nothing is ''
		|| ''saved.'' END');

INSERT INTO advice (code, title, condition, gain, evidence, cost, explain) VALUES (
'app-double-clear', 'the program clears pages that the kernel had just cleared',
'zeroing_matters AND twice_app_ns > 0.1 * base_ns',
-- what was given back and came again may be these pages: a storm promises it, and proves it
'(MAX(0.0, twice_app_ns - (storm_touch_ns - storm_twice_ns)) + app_ns) / base_ns',
'{twice_app_bytes} first touched by code that clears, {twice_app_time} of faults; {app_samples} CPU
	samples in it.',
'{twice_app_price}',
'The first touch of these pages is memset, or a loop that stores zeros, of the program or a library
	outside the allocator. The kernel had cleared them in that very fault. calloc knows which
	pages are fresh and leaves them alone; pages that are never used are then never faulted in.

	Where the block is overwritten anyway (read into, copied over), malloc without memset is
	enough.');
INSERT INTO advice_text (code, part, choice, condition, text) VALUES
('app-double-clear', 1, 1, '1',
'The code at {twice_app_place} clears pages that the kernel had just cleared: {twice_app_bytes}
	were cleared twice.'),
('app-double-clear', 2, 1, 'twice_app_call NOT IN ('''', ''mmap'')',
'Call calloc instead of malloc and clearing, or keep the block and clear only what was used: fresh
	pages are zero already, and those never used would not be faulted in at all.'),
-- a runtime''s own heap: the language''s objects are cleared when they are made
('app-double-clear', 2, 2, '1',
'Fresh pages are zero already: what manages this memory need clear only what was used before. Where
	that is a language''s runtime, larger objects that are kept and used again save both.');

INSERT INTO advice (code, title, condition, gain, evidence, cost, explain) VALUES (
'memset-app', 'the program clears memory itself',
'zeroing_matters AND twice_app_ns <= 0.1 * base_ns',
'app_ns / base_ns',
'{app_samples} CPU samples lie in code that stores zeros, at {app_place}: about {app_bytes}.',
'What is not cleared keeps its old content: the program must not read it.',
'CPU samples lie in code that stores nothing but zeros, memset or other, of the program or a
	library outside the allocator, on pages that were there already. No setting changes that: it
	is in the code at the named place.

	Clear only the part that was used since the last time, or once instead of every round; do
	not clear what the next step overwrites.');
INSERT INTO advice_text (code, part, choice, condition, text) VALUES
('memset-app', 1, 1, 'alloc_unprobed',
'Clearing (calloc''s own too: the allocator was not probed) takes {app_time}, most at
	{app_place}.'),
('memset-app', 1, 2, '1',
'Clearing outside the allocator takes {app_time}, most at {app_place}{app_memory}.'),
('memset-app', 2, 1, '1', 'Clear only the part that was used, or once instead of every round.');

INSERT INTO advice (code, title, process, condition, gain, evidence, cost, explain) VALUES (
'first-touch', 'the kernel clears pages at their first touch', 'kernel_pid',
'zeroing_matters AND NOT kernel_strange',
-- what was given back and came again, is cleared inside a system call, in blocks that grow, by a
-- runtime in advance, or for
-- nothing in huge pages, has advice of its own: nothing is promised twice. What the program clears
-- again itself may be what came again: which of it is not known.
'(kernel_ns - twice_calloc_ns - MAX(twice_app_ns, storm_touch_ns - storm_twice_ns)
	- (SELECT populated_ns + cleared_ns FROM populate_measure)
	- (SELECT pretouched_ns FROM pretouch_measure)
	- (SELECT growth_touch_ns FROM growth_measure)
	- (SELECT CASE WHEN huge_sparse THEN huge_saves_ns
		* (1.0 - MIN(1.0, twice_huge_ns / MAX(huge_ns, 1.0))) ELSE 0.0 END
		FROM huge_measure))
	-- what is kept has to be touched once all the same
	* CASE WHEN kernel_churns THEN (kernel_made - 1.0) / kernel_made ELSE 1.0 END
	/ base_ns',
'{kernel_faults} first-touch faults cleared {kernel_bytes}; the largest site has
	{kernel_site_faults} of them, {kernel_site_bytes}.',
'Memory that is kept counts as resident until the program ends, and calloc has to clear what is
	reused; huge pages are cleared whole, also where only a part of each is used.',
'Every page that a program touches for the first time costs a fault, in which the kernel clears it.
	Once is the price of the memory. Again and again means that blocks are given back to the
	kernel and got anew each time: by munmap of blocks with their own mapping, by trimming the
	heap, by madvise.

	On glibc two settings are needed together: mmap_threshold above the block''s size, so that
	it comes from the heap, and trim_threshold above that, so that the heap is not given back at
	each free. With the first alone nothing is gained. (Without any setting glibc raises both
	after the first free, to the block''s size and twice that, but only for blocks up to 32
	MiB.)

	Reusing one buffer in the program does the same without any setting. For calloc the choice
	is between faults for what is used and a memset of everything: the cheaper one is named.

	The work of a fault and the clearing proper are kept apart: huge pages save most of the
	first (512 faults become one) and nothing of the second.');
INSERT INTO advice_text (code, part, choice, condition, allocator, since, text, change, try) VALUES
('first-touch', 1, 0, '2 * unwritten_ns > kernel_ns', '', 0,
'{unwritten_faults} faults are reads of memory that was never written, {unwritten_bytes}, most at
	{kernel_touched}: each maps a page of zeros. What was filled is known to the program: do not
	read beyond it.', '', ''),
('first-touch', 1, 1, 'kernel_churns AND kernel_followed', '', 0,
'Blocks of {kernel_call} at {kernel_place} are made and freed again and again ({kernel_made} made,
	{kernel_freed} freed, {kernel_block} each), and each time the kernel clears every page that
	is used. Keep the buffer and reuse it.', '', ''),
('first-touch', 1, 2, 'kernel_followed', '', 0,
'Blocks of {kernel_call} at {kernel_place} are used for the first time: one fault and one clearing
	for each page.', '', ''),
('first-touch', 1, 3, 'kernel_segment IS NOT NULL', '', 0,
'New pages of shared memory{kernel_segment}, touched at {kernel_touched}, are cleared at their first
	use: one fault and one clearing for each page. A segment that is kept and used again has
	them.', '', ''),
('first-touch', 1, 4, '1', '', 0,
'Memory outside the followed blocks, touched at {kernel_touched}, is used for the first time: one
	fault and one clearing for each page.', '', ''),
('first-touch', 2, 0, '2 * unwritten_ns > kernel_ns', '', 0, '', '', ''),
('first-touch', 3, 0, '2 * unwritten_ns > kernel_ns', '', 0, '', '', ''),
('first-touch', 2, 1, 'kernel_churns AND kernel_followed AND kernel_memset_ns >= kernel_each_ns',
	'', 0,
'Letting the allocator keep them would not help: calloc would then memset all of each block,
	{kernel_memset} instead of {kernel_each} of faults.', '', ''),
('first-touch', 2, 2, 'churn_keeps', 'glibc', 2036,
'Or let glibc keep it: GLIBC_TUNABLES={churn_tunables} (all of it: with the mmap_threshold alone the
	heap is trimmed at each free). Resident memory then stays at its peak, and calloc of these
	blocks would memset them.', 'up mmap_threshold,up trim_threshold',
'--set GLIBC_TUNABLES={churn_tunables}'),
('first-touch', 2, 3, 'churn_keeps', 'glibc', 2026,
'Or let glibc keep it: GLIBC_TUNABLES={churn_old_tunables} (all of it: with the mmap_threshold alone
	the heap is trimmed at each free). Resident memory then stays at its peak, and calloc of
	these blocks would memset them.', 'up mmap_threshold,up trim_threshold',
'--set GLIBC_TUNABLES={churn_old_tunables}'),
('first-touch', 2, 4, 'churn_keeps', 'glibc', 0,
'Or let glibc keep it: {churn_variables} in its environment (with the first alone the heap is
	trimmed at each free). Resident memory then stays at its peak, and calloc of these blocks
	would memset them.', 'up mmap_threshold,up trim_threshold', '--set {churn_sets}'),
('first-touch', 2, 5, 'kernel_churns AND churn_known = 0', '', 0,
'An allocator that gives memory back at once can often be told to wait (decay or trim threshold).
	Resident memory then stays at its peak.', '', ''),
('first-touch', 3, 1, 'NOT kernel_huge AND kernel_segment IS NOT NULL', '', 0,
'Of the {kernel_time}, {kernel_clear} is the clearing itself and {kernel_work} the work of the
	faults. Huge pages can save most of the latter, never the former: of hugetlbfs (SHM_HUGETLB,
	MFD_HUGETLB), or madvise(MADV_HUGEPAGE) where
	/sys/kernel/mm/transparent_hugepage/shmem_enabled allows it.', '', ''),
('first-touch', 3, 2, 'NOT kernel_huge AND kernel_small', '', 0,
'Of the {kernel_time}, {kernel_clear} is the clearing itself and {kernel_work} the work of the
	faults.', '', '');
INSERT INTO advice_text (code, part, choice, condition, text, change, aside) VALUES
('first-touch', 3, 4, '(SELECT 2 * huge_bytes > kernel_bytes FROM huge_measure)',
'These are huge pages: {huge_each} is cleared by one fault, {kernel_clear} of the {kernel_time}.',
'', 0),
('first-touch', 3, 3, 'NOT kernel_huge',
'Of the {kernel_time}, {kernel_clear} is the clearing itself and {kernel_work} the work of the
	faults: where most of each block is used, huge pages (madvise MADV_HUGEPAGE) can save most
	of the latter, never the former.', 'up huge_pages', 1);

INSERT INTO advice (code, title, condition, gain, evidence, cost, explain) VALUES (
'never-used', 'most of what is allocated is never used',
'mapping_matters AND blocks_unused',
-- Pages that are never used are not cleared: what they cost are mapping calls.
'unused_ns / base_ns',
'No fault ever touched {unused_bytes} of {freed_bytes} freed, in blocks with a mapping of their
	own.',
'A smaller buffer needs more rounds where a block is now and then used whole.',
'A block with a mapping of its own that is freed without a fault in it was never used: no page of it
	was read or written. Of blocks in the heap this is not known.

	Usually a buffer was sized for the worst case. Ask for what is needed, or grow it when it
	is.');
INSERT INTO advice_text (code, part, choice, condition, allocator, text) VALUES
('never-used', 1, 1, 'mapper_call <> '''' AND mapper_share >= 0.5', '',
'{mapper_call} at {mapper_place} makes blocks of {mapper_block} with a mapping of their own,
	{mapper_each} of mapping calls a block, and {unused_bytes} ({unused_part}) of what was freed
	had never been used. Ask for less, or reuse one buffer.'),
('never-used', 1, 2, '1', '',
'{unused_bytes} ({unused_part}) of the blocks that were freed had never been used. Ask for less:
	such memory costs address space and mapping calls.'),
('never-used', 2, 1, 'mapper_call = ''calloc'' AND mapper_share >= 0.5
	AND mapper_memset_ns >= mapper_each_ns', 'glibc',
'Do not raise the mmap_threshold: from the heap calloc would memset each block, {mapper_memset}
	instead of {mapper_each}.');
