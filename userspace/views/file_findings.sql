-- SPDX-License-Identifier: GPL-2.0
--
-- file_findings.sql: the advice on pages that are copied, on files that are mapped or read, and on
-- shared memory. Follows advice.sql.

INSERT INTO advice_figure (name, kind, expression, source) VALUES
('copied_by_collector', 'b', 'by_collector_bytes', 'copied_measure'),
('copied_by_reference', 'b', 'by_reference_bytes', 'copied_measure'),
('copied_merged', 'b', 'merged_bytes', 'copied_measure'),
('copied_by_parent', 'b', 'by_parent_bytes', 'copied_measure'),
('copied_by_child', 'b', 'by_child_bytes', 'copied_measure');

INSERT INTO advice (code, title, condition, gain, evidence, cost, explain) VALUES (
'cow', 'writes copy shared pages',
'cow_matters',
'cow_ns / base_ns',
'{cow_faults} faults, {cow_bytes}, {cow_time}.',
'A fork that comes earlier, or shared memory, changes what the processes see of each other.',
'After fork parent and child share their pages until one of them writes: the kernel then copies the
	page, in a fault of the writer. The same happens at the first write to a private mapping of
	a file. It is a copy, not a clearing, and no setting of the allocator changes it.

	Fork before the memory is filled, write less after it, or use vfork or posix_spawn where a
	new program is run at once. A forking server that writes to inherited memory (reference
	counts, a garbage collector) copies it page by page.

	KSM makes one page of equal ones, in memory that was offered to it (MADV_MERGEABLE,
	PR_SET_MEMORY_MERGE): the next write to any of them copies it again, and KSM spends CPU time
	to find them.');
INSERT INTO advice_text (code, part, choice, condition, text) VALUES
('cow', 1, -1, '(SELECT 2 * merged_bytes > copied_bytes FROM copied_measure)',
'KSM has made one of equal pages, and each that is written to is copied again: {copied_merged}, most
	at {cow_place}. Offer it only memory that stays as it is: MADV_UNMERGEABLE for the rest, no
	PR_SET_MEMORY_MERGE (MemoryKSM=no in a systemd unit), mem-merge=off in qemu.'),
('cow', 1, 0, 'cow_of_file',
'Pages of a file that is mapped privately are copied at the first write, most at {cow_place}. Map it
	shared where what is written belongs into the file; else read() it into a buffer that is
	kept, where most of it is written.'),
('cow', 1, 1, 'cow_by_python
	AND (SELECT 2 * by_collector_bytes > copied_bytes FROM copied_measure)',
'Pages shared with another process after fork are copied at the first write, most at {cow_place}:
	{copied_by_collector} by Python''s garbage collector, which marks each object that it
	looks at. Call gc.freeze() before the fork, after a gc.collect(): what is there then it
	lets alone. Reference counts still copy what the child really uses.'),
('cow', 1, 2, 'cow_by_python
	AND (SELECT 2 * by_reference_bytes > copied_bytes FROM copied_measure)',
'Pages shared with another process after fork are copied at the first write, most at {cow_place}:
	{copied_by_reference} by code that only reads, as the reference count of a Python object is
	in it. gc.freeze() does not help there: keep large data where one object holds many values
	(array, numpy, mmap), in shared memory, or let the child work on a part of it.'),
('cow', 1, 3, 'cow_by_python',
'Pages shared with another process after fork are copied at the first write, most at {cow_place}.
	Python writes to what a program only reads: an object''s reference count is in it, and so
	is what the collector marks. Call gc.freeze() before the fork and gc.disable() in the child;
	keep large data where one object holds many values (array, numpy, mmap), in shared memory,
	or let the child work on a part of it.'),
-- A part of the copies may be before fork, of the start: what is said is of most of them.
('cow', 1, 4, '(SELECT 2 * by_parent_bytes > copied_bytes FROM copied_measure)',
'Pages shared with a child after fork are copied at the first write: {copied_by_parent} by the
	process that forked, which goes on writing while the child lives, most at {cow_place}. Where
	the child saves what the parent holds (a snapshot), each page that is written meanwhile is
	copied once: save when less is written, or faster, so that the child ends sooner; keep what
	is written often apart from what is large.'),
('cow', 1, 5, '(SELECT 2 * by_child_bytes > copied_bytes FROM copied_measure)',
'Pages shared with the process that forked are copied at the first write: {copied_by_child} by its
	children, most at {cow_place}. Write less in them, fork before the memory is filled, or
	use vfork, posix_spawn or shared memory. What is given back to the allocator is
	written to as well.'),
('cow', 1, 6, '1',
'Pages shared with another process (after fork) or with a file are copied at the first write, most
	at {cow_place}. Write less after the fork, fork before the memory is filled, or use vfork,
	posix_spawn or shared memory.');

INSERT INTO advice (code, title, condition, gain, evidence, cost, explain) VALUES (
'file-thrash', 'pages of files are pushed out and read again',
'file_matters AND (SELECT thrash OR returned FROM page_cache)',
-- what is let go and comes again is promised by let-go, here and below
'(SELECT CASE WHEN returned
	THEN (file_ns - let_go_file_ns + reclaim_ns + (SELECT given_file_ns FROM given_measure)
		+ COALESCE((SELECT read_uncached_ns FROM read_measure), 0.0))
		* MIN(1.0, 1.0 * group_refaults / wanted_pages)
	ELSE COALESCE(fault_again_share, 0.0) * (file_ns - let_go_file_ns)
	+ CASE WHEN partial THEN refault_share ELSE COALESCE(read_again_share, 0.0) END
		* COALESCE((SELECT MAX(read_uncached_ns,
			read_ns * MIN(1.0, 4096.0 * read_fill / MAX(read_bytes, 1)))
			FROM read_measure), 0.0)
	+ (reclaim_ns + (SELECT given_file_ns FROM given_measure))
		* CASE WHEN partial THEN refault_share ELSE 1.0 * again_pages / wanted_pages END END
	FROM page_cache JOIN advised_measure) / base_ns',
'{cache_filled} came into the page cache, {cache_again} of it again after it had been used,
	{cache_vain} before; the kernel counts {cache_refaults} that came again
	(workingset_refault_file).',
'Memory given to this program is taken from others; the size that would do is an estimate, rather
	too high.',
'What a program reads from files, and its own code, is kept in memory as long as there is room: the
	page cache. Where there is none, pages are thrown out and read from the device again when
	they are used again. Nothing is written to swap and none is needed for it: in a container
	with a memory limit this is the way in which too little memory shows.

	Either the limit is too low (of the memory cgroup, or the machine''s memory), or the program
	goes over more of its files than it needs at a time, or memory of the program''s own leaves
	the page cache too little: a cache in the program that holds what the page cache holds as
	well keeps it twice.

	In a cyclic sweep each page is thrown out just before its next turn: doing all passes over a
	part that fits before going on saves all of it, where a little more memory saves nothing.
	In random order each bit of memory saves its part.

	Reading ahead, or reading by read() instead of a mapping, changes nothing: it is the same
	page cache. The kernel counts such returns as workingset_refault_file, in memory.stat of
	the group and in /proc/vmstat; read-ahead that is thrown out before its turn is among
	them, and in this a single pass shows some, too.');
INSERT INTO advice_text (code, part, choice, condition, text) VALUES
('file-thrash', 1, 1, '(SELECT code FROM page_cache)',
'Pages of the program''s own code (text) are pushed out and read again, most of {cache_path}:
	memory is so short that not even what runs stays.'),
('file-thrash', 1, 2, '(SELECT returned FROM page_cache)',
'What is read from {cache_path} had been in memory before this recording began, and was thrown out
	in between.'),
('file-thrash', 1, 3, '1',
'Pages of {cache_path} that are used again and again are thrown out in between.'),
('file-thrash', 2, 0, '(SELECT 2 * given_share > 1 FROM page_cache)',
'Do not give back what is used again.{cache_by}'),
('file-thrash', 2, 1, '(SELECT 2 * asked_share > 1 FROM page_cache)',
'Do not ask the kernel to take back what is used again.{cache_by}'),
('file-thrash', 2, 2, '(SELECT 2 * other_share > 1 FROM page_cache)',
'Limit those that push it out, or protect this one (memory.low of its cgroup).{cache_by}'),
('file-thrash', 2, 3, '(SELECT partial FROM page_cache) AND (SELECT read_different_bytes > 0
	FROM read_measure)',
'Give it more memory, or a higher limit: with {read_different} for files all that it reads would
	stay. Whether less would do shows in a recording that looks at all reads
	(--overhead-limit none).'),
('file-thrash', 2, 4, '(SELECT partial FROM page_cache)',
'Give it more memory, or a higher limit; how much would do shows in a recording that looks at all
	reads (--overhead-limit none).'),
('file-thrash', 2, 5, '(SELECT seen_once FROM page_cache)',
'Give it more memory, or a higher limit; how much would do shows in a recording of two passes and
	more.'),
('file-thrash', 2, 6, '(SELECT fits_bytes > box_bytes AND box_path IS NOT NULL FROM page_cache)',
'With a limit of about {cache_fits} instead of {cache_box} (its memory cgroup, {cache_box_path})
	they would stay in memory: {cache_working} of files, beside {cache_beside} of other
	memory.'),
('file-thrash', 2, 7, '(SELECT box_bytes IS NULL FROM page_cache)',
'With {cache_working} for the page cache they would stay in memory: give the machine more, or let
	others use as much less.'),
('file-thrash', 2, 8, '1',
'Give it more memory (or a higher cgroup limit): {cache_working} of files would stay then.'),
('file-thrash', 3, 1, '(SELECT 10 * own_bytes >= COALESCE(box_bytes, working_bytes)
	FROM read_measure, page_cache)',
'{own_program} keeps a cache of its own ({own_setting}, {own_cache}) beside: what is in both is kept
	twice; a smaller one leaves more to the page cache.'),
('file-thrash', 3, 2, '(SELECT 3 * beside_bytes > box_bytes FROM page_cache)',
'Other memory of the group takes {cache_beside} of the limit: where that is a cache of the same
	data it keeps it twice, and a smaller one leaves more to the page cache.'),
('file-thrash', 4, 0, '(SELECT 2 * (given_share + asked_share) > 1 FROM page_cache)', ''),
('file-thrash', 4, 1, '(SELECT code FROM page_cache)',
'Or lock what must not wait (mlock), or use less other memory in the group.'),
('file-thrash', 4, 2, '(SELECT pattern LIKE ''%sweep'' FROM page_cache)',
'Or do all passes over a part that fits before going on to the next part.'),
('file-thrash', 4, 3, '1',
'Or make what is in use smaller, and keep on one page what is used together.'),
('file-thrash', 5, 0, '(SELECT NOT (wasteful OR single) AND 2 * vain_pages > fill_pages
	FROM page_cache)',
'{cache_vain} of {cache_filled} that were read in were thrown out unused: read-ahead makes it worse.
	Less of it (a smaller read_ahead_kb of the device, MADV_RANDOM, POSIX_FADV_RANDOM) leaves
	room.'),
('file-thrash', 5, 1, '(SELECT NOT (wasteful OR single) FROM page_cache)',
'Neither reading ahead nor another way of reading changes it.');

INSERT INTO advice (code, title, condition, gain, evidence, cost, explain) VALUES (
'read-around', 'read-ahead brings in what is never used',
'file_matters AND (SELECT wasteful FROM page_cache)',
'(SELECT (1.0 - 1.0 * wide_used / wide_fill) * CASE wide_cause WHEN ''read''
	THEN COALESCE((SELECT read_uncached_ns FROM read_measure), 0.0)
	ELSE file_ns - let_go_file_ns END FROM page_cache JOIN advised_measure) / base_ns',
'{wide_filled} came in, {wide_each} pages for each request; {wide_used} of it at most were used.',
'Where neighbouring pages are used soon after all, each costs a request of its own.',
'A fault on a page of a mapped file that has to be read brings in its neighbours, too (as many as
	read_ahead_kb of the device says, 128 KiB or far more), and so do reads that look as if they
	went on. Where pages are wanted in no order most of that is read in vain: it takes the
	device''s time, and throws out of the page cache what would have been used again.

	madvise(MADV_RANDOM) on the mapping, or posix_fadvise(POSIX_FADV_RANDOM), turns it
	off. How much was used is an upper bound: a fault maps what is in memory around it, up to
	64 KiB, and all of that counts as used.');
INSERT INTO advice_text (code, part, choice, condition, text) VALUES
('read-around', 1, 1, '(SELECT wide_cause = ''read'' FROM page_cache)',
'Each read that has to wait brings in {wide_each} pages, in no order, and most are never used. Turn
	read-ahead off: posix_fadvise(POSIX_FADV_RANDOM).'),
('read-around', 1, 2, '1',
'Each fault that has to read brings in {wide_each} pages around, in no order, and most are never
	used. Turn read-ahead off: madvise(MADV_RANDOM) on the mapping.'),
('read-around', 2, 1, '(SELECT thrash OR returned FROM page_cache)',
'Some of that time is in what file-thrash saves, too.');

INSERT INTO advice (code, title, condition, gain, evidence, cost, explain) VALUES (
'read-ahead-off', 'pages are used in order, and each is read by itself',
'file_matters AND (SELECT single FROM page_cache)',
'(SELECT CASE wide_cause WHEN ''read''
	THEN COALESCE((SELECT read_uncached_ns FROM read_measure), 0.0)
	ELSE file_ns - let_go_file_ns END FROM page_cache JOIN advised_measure) / base_ns',
'{wide_filled} came in, {wide_each} pages for each request, in order.',
'Reading ahead fills memory with what may not be wanted, and pushes out what is.',
'Read-ahead would bring in the next pages before they are wanted, many with one request. Here each
	was waited for by itself, though they are used in order: MADV_RANDOM (or POSIX_FADV_RANDOM)
	was set, the device''s read_ahead_kb is 0, or the file system does not read ahead. It does
	not make pages stay: where they are pushed out and read again they are read again sooner.');
INSERT INTO advice_text (code, part, choice, condition, text) VALUES
('read-ahead-off', 2, 1, '(SELECT thrash OR returned FROM page_cache)',
'Some of that time is in what file-thrash saves, too.'),
('read-ahead-off', 1, 1, '1',
'Pages of {cache_path} are used in order, and each is waited for by itself: leave read-ahead on
	(no MADV_RANDOM, or MADV_SEQUENTIAL for this pass; read_ahead_kb of the device).');

INSERT INTO advice (code, title, condition, gain, evidence, cost, explain) VALUES (
'shared-map', 'shared memory is mapped in page by page',
'shared_matters AND 2 * (SELECT let_go_shared_ns FROM advised_measure) < shared_ns',
-- what is let go and comes again is promised by let-go
'(shared_ns - (SELECT let_go_shared_ns FROM advised_measure)) / base_ns',
'{shared_faults} faults mapped {shared_bytes} of shared memory into {shared_processes} in
	{shared_time}.',
'Huge pages of hugetlbfs are set aside for it, and stay so when it needs less.',
'Each process that uses shared memory has page tables of its own for it: a page that another one has
	made, or that lies there from before, still costs each of them a fault, in which nothing is
	read, cleared or copied. What is only read comes in up to 16 pages at a time, what is
	written page by page.

	A huge page is one entry instead of 512, and takes as much less room in page tables, which a
	large segment fills in each of its processes. Locking or populating a mapping brings the
	pages in at once, and each process pays for it all the same.');
INSERT INTO advice_text (code, part, choice, condition, text) VALUES
('shared-map', 1, 1, '1',
'Shared memory that is there already{shared_segment} is mapped in page by page, most at
	{file_place}: nothing is read or cleared for it.'),
('shared-map', 2, 1, 'file_segment LIKE ''/%'' AND file_segment NOT LIKE ''/memfd:%''',
'Huge pages make one entry of 512: mount the tmpfs with huge=within_size, or put it on hugetlbfs.'),
('shared-map', 2, 2, '1',
'Huge pages make one entry of 512: those of hugetlbfs (SHM_HUGETLB, MFD_HUGETLB; huge_pages of
	PostgreSQL), or madvise(MADV_HUGEPAGE) where
	/sys/kernel/mm/transparent_hugepage/shmem_enabled allows it.'),
('shared-map', 3, 1, 'shared_processes > 2',
'Each of {shared_processes} pays for what it uses: fewer ones that stay (a pool of
	connections), or threads, pay less.'),
('shared-map', 3, 2, '1',
'A mapping that is kept pays once; a new one, or one after MADV_DONTNEED, begins without any
	page.');

INSERT INTO advice (code, title, condition, gain, evidence, cost, explain) VALUES (
'file-fault', 'mapped file pages are faulted in',
'file_matters AND NOT (SELECT thrash OR returned OR wasteful OR single FROM page_cache)
	AND 2 * (SELECT let_go_file_ns FROM advised_measure) < file_ns',
'(file_ns - (SELECT let_go_file_ns + first_ns FROM advised_measure, file_fault_measure)) / base_ns',
'{file_faults} faults in {file_time}.',
'Pages that are kept or brought in ahead, and are not wanted, fill memory.',
'The program uses a file by mapping it, and each group of pages costs a fault: minor where the page
	is in memory already, major where it has to be read first. A major fault is not a swap-in:
	it reads the file.

	MADV_WILLNEED or MAP_POPULATE bring pages in ahead. A file that is gone through once is
	often cheaper by read() with a large buffer. What is pushed out and read again is another
	matter (see file-thrash).');
INSERT INTO advice_text (code, part, choice, condition, text) VALUES
('file-fault', 1, 1, '1',
'Mapped file pages are faulted in, {file_most}; {file_major} of the faults had to
	read.'),
('file-fault', 2, 0, '(SELECT remade FROM page_cache)',
'They are lost as the file is cut short or deleted (ftruncate, O_TRUNC, unlink), and made and
	cleared again: {cache_again} came again after they had been used. Keep the file at its
	length and write over what is in it; what need not outlive the program needs no file
	(MAP_ANONYMOUS).'),
('file-fault', 2, 1, '(SELECT 2 * code_ns > file_ns AND 2 * major_ns > file_ns
	FROM file_fault_measure)',
'Most is code of the program and its libraries that had to be read first: where it is in the page
	cache already, as when the program has just run, that is not so.'),
('file-fault', 2, 2, '(SELECT 2 * code_ns > file_ns FROM file_fault_measure)',
'Most is code of the program and its libraries, which each process maps in anew: one that lives
	longer, or has fewer of them, pays for it less often.'),
('file-fault', 2, 3, '20 * file_major < file_faults
	AND 2 * (SELECT major_ns FROM file_fault_measure) < file_ns
	AND COALESCE((SELECT fill_pages FROM page_cache), 0) < file_faults',
'Hardly any had to: each fault maps pages that are in memory already, or makes new ones. Keep a
	mapping and use it again, map all in one call (MAP_POPULATE), or read() and write() what is
	used once.'),
('file-fault', 2, 4, '(SELECT pattern LIKE ''%sweep'' OR pattern IS NULL FROM page_cache)',
'Read ahead (MADV_WILLNEED, MAP_POPULATE) or use read() with a large buffer if the file is used
	once.'),
('file-fault', 2, 5, '(SELECT most_by_one FROM page_cache)',
'They are wanted in no order, but most of the file was wanted in the end, each page by a request of
	its own: read ahead (no MADV_RANDOM), or bring all of it in first (MADV_WILLNEED).'),
('file-fault', 2, 6, '1',
'They are wanted in no order: ask for several at a time (MADV_WILLNEED of what is known to come,
	threads).');

INSERT INTO advice (code, title, condition, gain, evidence, cost, explain) VALUES (
'file-reread', 'the same parts of files are read again and again',
'file_matters AND (SELECT reread_share > 0.1 AND (own_program IS NOT NULL
	OR NOT (SELECT thrash FROM page_cache)) FROM read_measure)',
-- What is in a cache of its own is not copied out of the page cache either. Where that is most of
-- it, it is worth the memory only if it takes a good part of the time.
'(SELECT reread_share * CASE WHEN own_program IS NOT NULL AND 4 * reread_share * read_ns > base_ns
	THEN read_ns ELSE read_uncached_ns END FROM read_measure) / base_ns',
'{read_calls} reads of {read_bytes}, {read_different} of them different: {reread} times each;
	{read_time}, of it {read_asleep} asleep. {read_cached} came from the page cache.',
'Memory for a larger cache is taken from others; where it does not fit it is pushed to swap, and the
	program''s own counters do not show that.',
'A program with a cache of its own reads a part of a file again when it did not keep it. To the
	system it then looks idle: there are no page faults and no swap, only reads.

	How much more cache would help follows from how many different blocks are read between two
	reads of the same block: a cache larger than that would have had it. What the cache finds in
	itself is not visible from outside, so the blocks that it always has come on top: the size
	that is advised is the furthest such distance and the present cache together, and a
	sixteenth for its bookkeeping.

	A cache that is too small for one whole pass over the data gains nothing until it holds all
	of it. Where that much memory is not there, fewer or smaller passes are the way: an index, a
	smaller row, another order.');
INSERT INTO advice_text (code, part, choice, condition, text) VALUES
('file-reread', 1, 1, '1',
'{read_path} (with {read_path_share} of the time of all reads) is what is read most. Each part that
	was read was read {reread} times on average: the program''s own cache is too small to keep
	it.'),
('file-reread', 2, 1, '(SELECT own_program = ''InnoDB'' FROM read_measure)',
'With {pool_setting} InnoDB would read nothing twice; now it is {own_cache} ({own_source}).'),
-- Larger ones are read through a ring of 256 kB: initscan() in its access/heap/heapam.c.
('file-reread', 2, 2, '(SELECT own_program = ''PostgreSQL'' FROM read_measure)',
'With {pool_setting} PostgreSQL would read nothing twice; now it is {own_cache} ({own_source}).
	Memory left to the page cache serves the same reads, each for a call and a copy. A table
	that is scanned whole stays only where it has at most a quarter of shared_buffers.'),
('file-reread', 2, 3, '1',
'With a cache of {pool} (the page cache, unless it reads past that, or one of its own) nothing would
	be read twice.'),
('file-reread', 3, 1, '(SELECT reread_half_bytes < 0.7 * reread_enough_bytes FROM read_measure)',
'About {reread_half} more would save half of what is read again.'),
('file-reread', 3, 2, '1',
	'Much less saves next to nothing: it goes over {read_different} before it comes back.'),
('file-reread', 4, 1, '1',
'Hits in the program''s own cache are not visible here: the size is an estimate, rather too high.'),
('file-reread', 5, 1, '(SELECT pool_bytes + MAX(0, beside_bytes - own_bytes) > box_bytes
	FROM read_measure, page_cache)',
'Its memory cgroup may have {cache_box} in all: raise that limit first, or the cache itself is
	pushed out.');

INSERT INTO advice (code, title, condition, gain, evidence, cost, explain) VALUES (
'file-read', 'the program waits for what it reads, once',
'file_matters AND (SELECT reread_share <= 0.1 FROM read_measure)
	AND NOT (SELECT returned FROM page_cache)',
'(SELECT read_uncached_ns FROM read_measure) / base_ns',
'{read_calls} reads of {read_bytes}, {read_different} of them different; {read_time}, of it
	{read_asleep} asleep. {read_cached} came from the page cache.',
'Reading ahead fills memory with what may not be wanted.',
'Nearly every part that was read was read once: no cache of any size would have had it. What is left
	is to wait less for each: larger reads, reading ahead (posix_fadvise, readahead), several at
	a time, a faster device; or to read less.');
INSERT INTO advice_text (code, part, choice, text) VALUES
('file-read', 1, 1,
'{read_path} (with {read_path_share} of the time of all reads) is what is read most, hardly any of
	it more than once: a larger cache would not help. Read larger pieces or ahead
	(posix_fadvise, readahead), several at a time, or less.');

INSERT INTO advice_figure (name, kind, expression, source) VALUES
('let_go_place', 'x', 'let_go_place', 'advised_measure'),
('let_go_calls', 'c', 'let_go_calls', 'advised_measure'),
('let_go_bytes', 'b', 'let_go_bytes', 'advised_measure'),
('let_go_again', 'b', 'let_go_again_bytes', 'advised_measure'),
('let_go_faults', 'c', 'let_go_faults', 'advised_measure'),
('let_go_time', 't', 'let_go_ns + let_go_again_ns', 'advised_measure'),
('cold_again', 'b', 'cold_again_bytes', 'advised_measure'),
('cold_place', 'x', 'cold_place', 'advised_measure');

INSERT INTO advice (code, title, condition, gain, evidence, cost, explain) VALUES (
'let-go', 'pages that a file keeps are unmapped and mapped in again',
'(file_matters OR mapping_matters OR shared_matters)
	AND (SELECT let_go_again_bytes > 0 FROM advised_measure)',
'(SELECT let_go_ns + let_go_again_ns FROM advised_measure) / base_ns',
'{let_go_calls} calls, {let_go_bytes}; {let_go_again} came in again in {let_go_faults} faults;
	{let_go_time} in all.',
'What stays mapped counts as resident of this process.',
'MADV_DONTNEED on a mapping of a file, or of shared memory, only takes the pages out of the
	process''s page tables. They stay in the page cache, or in their segment: no memory is freed
	by it, and each page that is used again costs a fault, though nothing has to be read.

	Where the memory is to be freed, POSIX_FADV_DONTNEED (files) or MADV_REMOVE (shared memory)
	does that, MADV_PAGEOUT writes it out; where it is used again soon, leave it mapped. Memory
	that is to be thrown out first when there is too little needs no more than MADV_COLD.');
INSERT INTO advice_text (code, part, choice, text) VALUES
('let-go', 1, 1,
'madvise(MADV_DONTNEED) at {let_go_place} takes pages of files or shared memory out of the process,
	which it uses again: {let_go_again} are mapped in again in {let_go_faults} faults. That
	frees nothing, as the page cache, or the segment, keeps them: leave them mapped.');
