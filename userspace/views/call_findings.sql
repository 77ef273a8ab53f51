-- SPDX-License-Identifier: GPL-2.0
--
-- call_findings.sql: the advice on mapping calls and on the allocator's own work. Follows
-- advice.sql.

INSERT INTO advice (code, title, process, condition, gain, evidence, cost, explain) VALUES (
'map-churn', 'mapping calls take the time', 'mapper_pid',
-- calls that give back what comes again have advice of their own; that a program ends is no call
'mapping_matters AND 2 * map_rest_ns > map_ns',
-- and blocks that are never used (never-used)
'(map_rest_ns - unused_ns) / base_ns',
'{map_by_count} took {map_time}.',
'Memory that is kept counts as resident until the program ends; calloc from the heap memsets each
	block.',
'Each block from mmap_threshold on costs an mmap and a munmap, and munmap has to give every used
	page back. Where such blocks come and go all the time, the calls themselves are the cost.

	Blocks of malloc can be kept in glibc''s heap, by mmap_threshold and trim_threshold together
	(see map-storm). Blocks of calloc should not be: from the heap each would be memset whole,
	which costs more than the calls as soon as the block is not tiny. Reusing a buffer is right
	for both.');
INSERT INTO advice_text (code, part, choice, condition, allocator, since, text, change, try) VALUES
('map-churn', 1, -1, '(SELECT 2 * forked_ns FROM populate_measure) > map_ns', '', 0,
'Making child processes takes {forked_time}, most by {changed_call} at {changed_place}: fork copies
	the page tables of all the memory there is. Use posix_spawn or vfork where a child only runs
	another program, make children before the memory is filled, or have a small process make
	them.',
	'', ''),
('map-churn', 1, 0, '(SELECT 2 * protected_ns FROM populate_measure) > map_ns', '', 0,
'Changing the protection of memory takes {protected_time}, most by {changed_call} at
	{changed_place}: the kernel goes over the page table of the whole range, and makes each
	processor forget it. Protect larger ranges, less often, and only what has to be.', '', ''),
('map-churn', 1, 1, '(mapper_call IS NULL OR mapper_share < 0.5)
	AND (SELECT 2 * freed_ns FROM populate_measure) > map_ns
	AND NOT blocks_unused', '', 0,
'Unmapping memory and freeing its pages takes {freed_time}, most in {map_call} at {map_place}. Keep
	memory and use it again instead of giving it back.', '', ''),
('map-churn', 1, 2, '(mapper_call IS NULL OR mapper_share < 0.5)
	AND (SELECT 2 * made_ns FROM populate_measure) > map_ns', '', 0,
'Making pages takes {map_time}, most in {map_call} at {map_place}. Make only what is used, and keep
	it.', '', ''),
('map-churn', 1, 3, 'mapper_call IS NULL OR mapper_share < 0.5', '', 0,
'{map_calls} mapping calls, {map_each} each, most {map_call} at {map_place}. Map larger pieces, less
	often, and keep them.', '', ''),
('map-churn', 1, 4, '1', '', 0,
'{mapper_call} at {mapper_place} makes blocks of {mapper_block} with a mapping of their own:
	{mapper_each} of mapping calls a block.', '', ''),
('map-churn', 2, 1,
'mapper_call = ''calloc'' AND mapper_share >= 0.5 AND mapper_memset_ns >= mapper_each_ns',
'glibc', 0,
'Do not raise the mmap_threshold: from the heap calloc would memset each block, {mapper_memset}
	instead of {mapper_each}. Reuse one buffer, or ask for less.', '', ''),
('map-churn', 2, 2, 'mapper_call = ''calloc'' AND mapper_share >= 0.5', 'glibc', 0,
'Reuse one buffer. A higher mmap_threshold would serve them from the heap and memset each block,
	{mapper_memset} instead of {mapper_each}.', '', ''),
('map-churn', 2, 3, 'mapper_share >= 0.5 AND mapper_call <> ''''', '', 0,
'Reuse one buffer, or ask for less.', '', '');

INSERT INTO advice (code, title, condition, gain, evidence, cost, explain) VALUES (
'alloc-cpu', 'the allocator''s own work',
'allocator_matters',
-- what short calls are only taken to cost is no ground for advice; growth has advice of its own
'MAX(0.0, alloc_ns - (SELECT SUM(unresolved_ns) FROM call_cost)
	- (SELECT growth_alloc_ns FROM growth_measure)) / base_ns',
'{alloc_time} in allocator functions, faults, mapping calls and clearing taken out.',
'Objects kept for reuse stay resident, and keep what they held.',
'What is left of the time inside malloc, calloc, realloc and free when faults, mapping calls,
	clearing and the probes themselves are taken out: searching, splitting and merging chunks,
	waiting for an arena that another thread holds.

	Many short calls: allocate less often, larger, or keep objects for reuse. Few long ones:
	look at what they did (consolidation of many freed chunks, a lock).');
INSERT INTO advice_text (code, part, choice, text) VALUES
('alloc-cpu', 1, 2,
'The allocator''s own work: {alloc_calls} calls, {alloc_each} each on average (a small malloc here
	takes {malloc}), most in {alloc_call} at {alloc_place}. Fewer and larger allocations, or
	objects kept for reuse, save it; if single calls are long, look for consolidation and for
	threads waiting for one arena.');
INSERT INTO advice_text (code, part, choice, condition, text) VALUES
('alloc-cpu', 1, 1, 'EXISTS (SELECT 1 FROM past_cache)',
'The allocator''s own work, by CPU samples, most in {alloc_call} at {alloc_place} (a small malloc
	here takes {malloc}). Fewer and larger allocations, or objects kept for reuse, save it; if
	single calls are long, look for consolidation and for threads waiting for one arena.');

-- What it saves is no throughput but a stall, of a millisecond and a thousand times the median at
-- least: hence next to no bound.
INSERT INTO advice (code, title, allocator, before, process, condition, gain, bound, evidence, cost,
	saves, explain)
VALUES (
'consolidation', 'one call pays for the frees before it', 'glibc', 2043,
'(SELECT consolidation_pid FROM latency_measure)',
'(SELECT consolidation_ns >= 1000000 AND consolidation_factor >= 1000 FROM latency_measure)',
'(SELECT consolidation_all_ns / base_ns FROM latency_measure)', 0.000001,
'{consolidation_time} of CPU time in one call, after {consolidation_frees} frees by its thread,
	where the median call takes {consolidation_median}; no fault, no system call and no lock
	inside. That it was malloc_consolidate is inferred from this, unless a CPU sample names
	it.',
'With mxfast=0 each free of a small block that the thread cache does not take joins it with its
	neighbours at once: the same work, spread over the frees. None of it is saved, and programs
	that alternately free and allocate small blocks do more of it.',
'no time in all; a stall of {consolidation_time} becomes part of {consolidation_frees} frees',
'glibc up to 2.42 puts freed blocks of up to 128 bytes that its thread cache does not take into fast
	bins and leaves them there. A later request of 1001 bytes and more, or a free that leaves 64
	KiB in one piece, joins them all with their neighbours (malloc_consolidate): one call then
	pays for millions of frees. glibc 2.43 removed fast bins, and with them this stall.

	GLIBC_TUNABLES=glibc.malloc.mxfast=0 does the work at each free instead. Freeing a large
	structure in the background, or keeping its memory in a pool of its own, avoids it in any
	version.');
INSERT INTO advice_text (code, part, choice, text, change, try) VALUES
('consolidation', 1, 1,
'A {consolidation_call} at {consolidation_place} took {consolidation_time}, the median
	{consolidation_median}: it joined what {consolidation_frees} frees had left in fast bins
	(malloc_consolidate, which glibc 2.43 removed). GLIBC_TUNABLES=glibc.malloc.mxfast=0 moves
	that work to the frees, where no single call is long.',
'down mxfast', '--set GLIBC_TUNABLES=glibc.malloc.mxfast=0');

INSERT INTO advice (code, title, process, condition, gain, evidence, cost, explain) VALUES (
'arena-lock', 'threads wait for each other''s arena',
'(SELECT lock_pid FROM latency_measure)',
'(SELECT 2 * lock_call_share >= 1 FROM latency_measure)',
'(SELECT MIN(1.0, lock_ns / base_ns) FROM latency_measure)',
'{lock_waits} futex waits inside the allocator took {lock_time}; {lock_call_share} of the time in
	{lock_call}.',
'More arenas take more memory: what one thread freed another one cannot use.',
'Every arena has a lock; threads that share one wait for each other. glibc makes up to eight arenas
	a core and gives each new thread one; MALLOC_ARENA_MAX and the tunable
	glibc.malloc.arena_max lower that.

	The time is spent asleep: it is not part of the observed time, and no toll has it. What
	holds a lock long are copies in realloc, trims, and faults inside; fewer of those help as
	well as more arenas.');
INSERT INTO advice_text (code, part, choice, allocator, condition, text, change) VALUES
('arena-lock', 1, 1, '', '1',
'Waiting for the lock of an arena is most of what calls of {lock_call} take ({lock_call_share};
	{lock_time} in all functions together).', ''),
('arena-lock', 2, 1, 'glibc', '(SELECT arenas_limited FROM latency_measure)',
'The number of arenas is limited by its environment (MALLOC_ARENA_MAX or glibc.malloc.arena_max):
	raise it.',
'up arena_max'),
('arena-lock', 2, 2, '', '1',
'Let fewer threads allocate at once, or use an allocator with caches for each thread and size.',
	'');
