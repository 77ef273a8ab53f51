-- SPDX-License-Identifier: GPL-2.0
--
-- populate_findings.sql: advice on pages that the kernel clears inside a system call. Follows
-- advice.sql.

INSERT INTO advice_figure (name, kind, expression, source) VALUES
('populated_time', 't', 'populated_ns', 'populate_measure'),
('populated_bytes', 'b', 'populated_bytes', 'populate_measure'),
('populated_call', 'x', 'COALESCE(NULLIF(populated_call, ''''), ''a system call'')',
	'populate_measure'),
('populated_place', 'x', 'populated_place', 'populate_measure'),
-- not known of calls that only samples tell
('populated_a_call', 'x', 'CASE WHEN populated_each >= 1048576
		THEN PRINTF('', %.1f MiB a call'', populated_each / 1048576)
	WHEN populated_each IS NOT NULL THEN PRINTF('', %.1f KiB a call'', populated_each / 1024)
	ELSE '''' END', 'populate_measure'),
('freed_time', 't', 'freed_ns', 'populate_measure'),
('cleared_time', 't', 'cleared_ns', 'populate_measure'),
('cleared_call', 'x', 'COALESCE(NULLIF(cleared_call, ''''), ''a system call'')',
	'populate_measure'),
('cleared_place', 'x', 'cleared_place', 'populate_measure'),
('forked_time', 't', 'forked_ns', 'populate_measure'),
('protected_time', 't', 'protected_ns', 'populate_measure'),
('changed_call', 'x', 'changed_call', 'populate_measure'),
('changed_place', 'x', 'changed_place', 'populate_measure');

-- room for all stacks that were there at once
INSERT INTO advice_figure (name, kind, expression) VALUES
('stack_cache', 'x', 'CAST((SELECT MIN(p.bytes) FROM power_of_two p
	WHERE p.bytes > MAX(134217727, 2 * COALESCE(rss_peak_bytes, 0))) AS TEXT)');

INSERT INTO advice (code, title, process, condition, gain, evidence, cost, explain) VALUES (
'populated', 'a system call faults memory in, used or not',
'(SELECT populated_pid FROM populate_measure)',
'(zeroing_matters OR own_storm_populated OR stack_storm_populated)
	AND (SELECT populated_ns > 0 FROM populate_measure)',
-- what is not faulted in need not be freed either
'MAX((SELECT populated_ns FROM populate_measure), own_storm_populated * own_storm_ns,
	stack_storm_populated * stack_storm_ns) / base_ns',
'The kernel cleared {populated_bytes} inside system calls, most in {populated_call} at
	{populated_place}: {populated_time}. Such faults raise no event; they are counted by the
	kernel''s own account.',
'Pages that are not there yet cost a fault each when they are used, and where none may wait (real
	time) that is what locking was for.',
'mlock, MAP_POPULATE, MADV_POPULATE_WRITE, and every mapping after mlockall(MCL_FUTURE) fault all
	pages of their range in at once: each is cleared, whether the program will use it or not.
	Direct reads, io_uring''s registered buffers and devices that pin memory do the same with
	a buffer that was not touched before.

	Where most of the range is used that only moves the faults, and makes them cheaper. Where
	little of it is used, or where a range is made, faulted in and given back again and again,
	it is the cost. mlock2(MLOCK_ONFAULT) and mlockall(MCL_ONFAULT) lock each page as it is
	first used. A buffer that is kept is cleared once.

	Under MCL_FUTURE the stack of each new thread is faulted in whole, 8 MiB by default. glibc
	keeps stacks of ended threads for reuse, up to 40 MiB in all (tunable
	glibc.pthread.stack_cache_size, from 2.34 on).');
INSERT INTO advice_text (code, part, choice, condition, allocator, since, text, change, try) VALUES
('populated', 1, 1, '(SELECT populated_thread FROM populate_measure)', '', 0,
'Each new thread''s stack is faulted in whole{populated_a_call}, because the program locks
	all memory that it maps (mlockall(MCL_FUTURE)): started at {populated_place}. Give threads
	smaller stacks (pthread_attr_setstacksize), keep threads for reuse, or lock pages as they
	are used (MCL_ONFAULT).', '', ''),
('populated', 1, 2, '(SELECT populated_call IN (''mlock'', ''mlock2'') FROM populate_measure)', '',
	0,
'{populated_call} at {populated_place} faults in every page that it locks{populated_a_call},
	and the kernel clears each, used or not. mlock2 with MLOCK_ONFAULT locks pages as they are
	used; or keep one locked buffer and use it again.', '', ''),
('populated', 1, 3, '(SELECT populated_call = ''madvise'' FROM populate_measure)', '', 0,
'madvise (MADV_POPULATE) at {populated_place} faults in its whole range{populated_a_call}, and the
	kernel clears each page, used or not. Populate only what is used, or keep the memory and use
	it again.', '', ''),
('populated', 1, 4, '(SELECT populated_call IN (''mmap'', ''mremap'', ''brk'', ''mprotect'',
	''mlockall'') FROM populate_measure)', '', 0,
'{populated_call} at {populated_place} faults in its whole range{populated_a_call} (MAP_POPULATE, or
	mlockall(MCL_FUTURE), which MCL_ONFAULT makes lock pages as they are used), and the kernel
	clears each page, used or not. Populate only what is used, or keep the mapping and use it
	again.', '', ''),
('populated', 1, 5, '(SELECT populated_call <> '''' FROM populate_measure)', '', 0,
'{populated_call} at {populated_place} is given memory that was never touched: the kernel faults it
	in, and clears each page. Keep one buffer and use it again.', '', ''),
('populated', 1, 6, '1', '', 0,
'A system call at {populated_place} is given memory that was never touched: the kernel faults it in,
	and clears each page. Keep one buffer and use it again.', '', ''),
('populated', 2, 1, '(SELECT populated_thread FROM populate_measure)', 'glibc', 2034,
'Or let glibc keep more stacks of threads that have ended:
	GLIBC_TUNABLES=glibc.pthread.stack_cache_size={stack_cache} (41943040 by default).',
'up stack_cache_size', '--set GLIBC_TUNABLES=glibc.pthread.stack_cache_size={stack_cache}'),
('populated', 3, 1, 'own_storm_populated', '', 0,
'{own_storm_how} at {own_storm_gave_place} gives it back each time: {own_storm_again} were cleared
	again for it, {own_storm_per_s} a second.', '', '');

INSERT INTO advice (code, title, condition, gain, evidence, cost, explain) VALUES (
'zeros-read', 'a program reads zeros into memory that it has',
'zeroing_matters AND (SELECT cleared_ns > 0 FROM populate_measure)',
'(SELECT cleared_ns FROM populate_measure) / base_ns',
'{cleared_time} of CPU samples lie in the kernel''s clearing of memory that was there, most in
	{cleared_call} at {cleared_place}; it takes no fault.',
'Memory that was used before keeps what it held, where nothing else clears it.',
'A read of /dev/zero, or of a hole of a file, has the kernel fill the buffer with zeros, at the
	speed of a memset, in a system call. Nothing is read for it.

	Memory that is fresh from calloc or mmap is zero already. Where a buffer has to be cleared
	for its next use memset does it without a call, and only what was used needs it. What of a
	sparse file is data is found by lseek(SEEK_DATA) and SEEK_HOLE: holes need not be read.');
INSERT INTO advice_text (code, part, choice, text) VALUES
('zeros-read', 1, 1,
'{cleared_call} at {cleared_place} fills memory that is there already with zeros: it reads
	/dev/zero, or holes of a file. Fresh memory, of calloc or mmap, is zero without that, and
	lseek(SEEK_DATA) finds what of a file is not.');

INSERT INTO advice_figure (name, kind, expression, source) VALUES
('pretouched_time', 't', 'pretouched_ns', 'pretouch_measure'),
('pretouched_bytes', 'b', 'pretouched_bytes', 'pretouch_measure'),
('pretouched_faults', 'c zero.kernel', 'pretouched_faults', 'pretouch_measure');

INSERT INTO advice (code, title, condition, gain, evidence, cost, explain) VALUES (
'pretouched', 'a runtime touches its memory in advance',
'zeroing_matters AND (SELECT pretouched_ns > 0 FROM pretouch_measure)',
'(SELECT pretouched_ns FROM pretouch_measure) / base_ns',
'{pretouched_faults} first-touch faults in the JVM''s own code for that cleared
	{pretouched_bytes}.',
'Without it each page of the heap costs its fault when it is used first, in the middle of the
	work.',
'A JVM that is started with -XX:+AlwaysPreTouch touches each page of its heap when it takes it: all
	of it at the start where -Xms is as large as -Xmx, else also whenever the heap grows. The
	start takes longer for it, and the program has no such faults later. That is what the option
	is for; it is a cost where much of the heap is never used, or where the JVM lives for a
	short time.

	With huge pages (-XX:+UseTransparentHugePages, or -XX:+UseLargePages with reserved ones) the
	same memory takes a fault for 2 MiB instead of one for 4 KiB: the clearing is left.');
INSERT INTO advice_text (code, part, choice, condition, text) VALUES
('pretouched', 1, 1, '1',
'The JVM touches its heap in advance (-XX:+AlwaysPreTouch): {pretouched_time} for
	{pretouched_bytes}, paid when the heap is taken and not while the program works.
	-XX:+UseTransparentHugePages makes it one fault for 2 MiB; leave AlwaysPreTouch out, or
	-Xms smaller, where much of the heap stays unused.');
