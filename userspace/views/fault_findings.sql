-- SPDX-License-Identifier: GPL-2.0
--
-- fault_findings.sql: advice on huge pages that are used sparsely, and on faults that wait for a
-- handler in user mode. Follows advice.sql.

INSERT INTO advice_figure (name, kind, expression, source) VALUES
('huge_faults', 'c', 'huge_faults', 'huge_measure'),
('huge_each', 'b', 'huge_each', 'huge_measure'),
('huge_bytes', 'b', 'huge_bytes', 'huge_measure'), ('huge_time', 't', 'huge_ns', 'huge_measure'),
('huge_looked', 'c', 'huge_looked', 'huge_measure'),
('huge_used', 'b', 'huge_used', 'huge_measure'), ('huge_small', 't', 'small_ns', 'huge_measure');

INSERT INTO advice_figure (name, kind, expression, source) VALUES
('handler', 'x', 'text', 'handler_measure'), ('handler_waits', 'c', 'waits', 'handler_measure'),
('handler_threads', 'c', 'threads', 'handler_measure'),
('handler_half', 't', 'p50_ns', 'handler_measure'),
('handler_most', 't', 'p99_ns', 'handler_measure'),
('handler_longest', 't', 'longest_ns', 'handler_measure'),
('handler_longest_place', 'x', 'longest_place', 'handler_measure');

INSERT INTO advice (code, title, process, condition, gain, evidence, cost, explain) VALUES (
'huge-sparse', 'huge pages are cleared whole where little of each is used', 'kernel_pid',
'zeroing_matters AND NOT kernel_strange AND (SELECT huge_sparse FROM huge_measure)',
'(SELECT huge_saves_ns FROM huge_measure) / base_ns',
'{huge_faults} faults cleared huge pages, {huge_bytes} in {huge_time}; as pages of 4 KiB, as far as
	they are used, {huge_small}. Looked at some time later: {huge_looked} of them.',
'Where more of each huge page is used later than was seen, each 4 KiB of that costs a fault, and
	more of the processor''s address translations are missed.',
'A huge page is cleared whole at its first touch, 2 MiB as a rule, however little of it is used. For
	a large table of which few slots are used, or many small mappings, that is the cost, in time
	as well as in memory.

	Huge pages come from the system''s setting (/sys/kernel/mm/transparent_hugepage/enabled:
	always), from madvise(MADV_HUGEPAGE) of the program or its libraries, or from the allocator:
	glibc''s tunable glibc.malloc.hugetlb (1: madvise, 2: MAP_HUGETLB), tcmalloc and jemalloc''s
	thp options. madvise(MADV_NOHUGEPAGE) on the memory, PR_SET_THP_DISABLE for a process, or
	the setting madvise for the system turn them off.

	memtoll reads a sample of the huge pages again for as long as they are there and counts what
	of them is not zero. Where they are gone too soon it can only say that this is possible.');
INSERT INTO advice_text (code, part, choice, condition, allocator, text, change, try) VALUES
('huge-sparse', 1, 1, '(SELECT huge_used IS NOT NULL FROM huge_measure)', '',
'Each of {huge_faults} first-touch faults clears a huge page of {huge_each}, of which {huge_used} is
	used on average ({huge_looked} were looked at some time later). Use no huge pages there.',
	'down huge_pages', ''),
('huge-sparse', 1, 2, '1', '',
'Each of {huge_faults} first-touch faults clears a huge page of {huge_each}. How much of each is
	used could not be looked at: if it is little, use no huge pages there.',
'down huge_pages', ''),
('huge-sparse', 2, 1, 'EXISTS (SELECT 1 FROM allocator WHERE kind = ''glibc'' AND
	(tunables LIKE ''%malloc.hugetlb=1%'' OR tunables LIKE ''%malloc.hugetlb=2%''))', 'glibc',
'They come from glibc''s tunable: glibc.malloc.hugetlb=0 turns them off, and
	madvise(MADV_NOHUGEPAGE) on this memory alone.', 'down huge_pages',
'--set GLIBC_TUNABLES=glibc.malloc.hugetlb=0'),
('huge-sparse', 2, 2, '(SELECT value = ''always'' FROM meta WHERE key = ''huge_pages'')', '',
'Call madvise(MADV_NOHUGEPAGE) on this memory, or set
	/sys/kernel/mm/transparent_hugepage/enabled, which is always, to madvise.',
'down huge_pages', ''),
('huge-sparse', 2, 3, 'EXISTS (SELECT 1 FROM meta WHERE key = ''huge_pages'')', '',
'Take away the madvise(MADV_HUGEPAGE) that asks for them, or call madvise(MADV_NOHUGEPAGE) on this
	memory.', 'down huge_pages', ''),
('huge-sparse', 2, 4, '1', '',
'Take away the madvise(MADV_HUGEPAGE) that asks for them, call madvise(MADV_NOHUGEPAGE) on this
	memory, or set /sys/kernel/mm/transparent_hugepage/enabled to madvise.',
'down huge_pages', '');

INSERT INTO advice (code, title, condition, gain, evidence, cost, explain) VALUES (
'userfault', 'faults wait for a handler in user mode',
'userfault_matters',
'user_ns / base_ns',
'{user_faults} faults, {user_time}: {user_each} each, most of it asleep.',
'What is brought ahead and not used was brought in vain.',
'Memory that is registered with a userfaultfd is filled by a handler, another thread or process: of
	virtual machines that are restored or migrated, of checkpoints (CRIU), of lazy memory. Each
	first touch of a page stops the thread until the handler has brought the page: to wake, to
	find it and to copy it are its latency. The kernel clears nothing, and neither huge pages
	for clearing nor a setting of the allocator change it.

	More threads that handle faults answer several at a time. One answer may bring more than a
	page: UFFDIO_COPY and UFFDIO_CONTINUE take ranges, and neighbours are often wanted next.
	What is known to be needed can be brought before it is touched.');
INSERT INTO advice_text (code, part, choice, condition, text) VALUES
('userfault', 1, 1, '1',
'{user_faults} faults wait {user_each} each for a userfaultfd handler to bring a page, most at
	{user_place}.'),
('userfault', 2, 1, '(SELECT threads = 1 FROM handler_measure)',
'One thread answers all of them: {handler}. 99 % of {handler_waits} waits were shorter than
	{handler_most}, the longest took {handler_longest}. Let more threads handle faults,'),
('userfault', 2, 2, '(SELECT threads > 1 FROM handler_measure)',
'{handler_threads} threads answer them, most {handler}. 99 % of {handler_waits} waits were shorter
	than {handler_most}, the longest took {handler_longest}. Let each answer sooner,'),
('userfault', 2, 3, '1', 'Let more threads handle faults,'),
('userfault', 3, 1, '1',
'bring more than one page an answer (UFFDIO_COPY or UFFDIO_CONTINUE of larger ranges), and bring
	what is known to be needed before it is touched (by the handler, or a thread of its own with
	MADV_POPULATE_READ or MADV_POPULATE_WRITE).');
