-- SPDX-License-Identifier: GPL-2.0
--
-- recording.sql: the schema of a recording. Tables hold facts, written by recording_facts.c once
-- per slice; views (tolls.sql, verdict.sql) hold every judgement, so that report, notebook and
-- sqlite3 shell read the same numbers. All files that are named in `order` make a recording.
--
-- A recording has the views with it for the SQLite shell. memtoll and the Python package read any
-- recording with their own (recording_schema.h), so what comes later must do for recordings
-- without: a column has a default or may be NULL, a table is one of later_table. Where that says
-- something else than was, where what a column holds changes, and where a fault class or a place
-- comes that a reader would not count, RECORDING_FORMAT is raised.
--
-- Units: *_ns nanoseconds, *_bytes bytes, addresses and counts plain integers. CPU time is time on
-- the CPU of the target's threads; blocked time is time asleep inside a fault.

-- One row per fact about the recording itself. Keys: tool_version, format, command_line,
-- target_command (or the cgroup; neither: absent), target_words (a traced command, quoted as a
-- shell takes it), kernel, machine, start_ns (CLOCK_MONOTONIC), start_realtime_ns, end_ns,
-- min_size_bytes, overhead_limit ("none", or a number: % of the CPU time), probes, exit_status of a
-- traced command (as a shell tells it), end_reason ("target exited", "duration", "signal", "cgroup
-- removed", "container ended", "size limit": another slice did not fit into --max-size, "rotated":
-- the next recording of memtoll watch had begun, "error: ..."), memory_bytes (of the machine),
-- huge_pages (the setting transparent_hugepage/enabled: always, madvise, never),
-- cgroup and cgroup_memory_limit_bytes (where a cgroup was named), container (its title, where that
-- was named), container_restarts (how often it came back, in another cgroup or one made anew;
-- absent: never), held_ns (how long at least processes of a
-- command were held while they were followed), swap_in_counted ("1" where the kernel tells each
-- page brought in: table swap has the rows in_*), other_tracer_of (a process that another memtoll
-- was met to trace, too), redacted ("1": texts and addresses are pseudonyms, redact.sql), and, last
-- of all, complete ("1").
CREATE TABLE meta (
	key   TEXT PRIMARY KEY,
	value TEXT
) WITHOUT ROWID;

-- A slice of time; everything counted below is a difference over one slice.
CREATE TABLE slice (
	slice    INTEGER PRIMARY KEY,
	start_ns INTEGER NOT NULL,
	end_ns   INTEGER NOT NULL
);

CREATE TABLE process (
	pid         INTEGER PRIMARY KEY,
	parent_pid  INTEGER,
	comm        TEXT,
	command     TEXT,
	executable  TEXT,
	start_ns    INTEGER NOT NULL,	-- when tracing of it began
	end_ns      INTEGER,		-- when it exited, or NULL: it goes on
	exit_code   INTEGER,		-- as wait(2) has it; NULL: it goes on, or its end went
					-- untold
	role        TEXT NOT NULL,	-- 'target' (named by the user) or 'child' (followed)
	-- where it was seen last, as /proc/PID/cgroup has it: memory_cgroup.path
	memory_cgroup TEXT,
	container     TEXT,		-- that it was seen in last: container.id; NULL: in none
	pid_inside    INTEGER		-- its number there; NULL: in none, or it is the same
);

-- Containers that the processes were in, by their cgroups; names as their runtimes had them in
-- files. NULL where unknown.
CREATE TABLE container (
	id            TEXT PRIMARY KEY,
	runtime       TEXT,		-- 'docker', 'containerd', 'cri-o', 'podman'
	name          TEXT,
	image         TEXT,
	pod           TEXT,		-- of Kubernetes
	pod_namespace TEXT,
	pod_uid       TEXT,
	title         TEXT NOT NULL	-- 'web', 'namespace/pod/name', or how its id begins
) WITHOUT ROWID;

-- What is known of the allocator of a process.
CREATE TABLE allocator (
	pid                 INTEGER NOT NULL,
	module              TEXT NOT NULL,	-- path of the library or program
	kind                TEXT NOT NULL,	-- glibc, musl, jemalloc, tcmalloc, mimalloc, go,
						-- unknown
	version             TEXT NOT NULL,
	functions           TEXT NOT NULL,	-- "malloc+0 calloc+0 free+3": probed, and where
	refused             TEXT NOT NULL,	-- functions found but not probed, with the reason
	mmap_threshold_low  INTEGER,	-- bytes: glibc's present threshold is at least this,
	mmap_threshold_high INTEGER,	-- and at most this; NULL where nothing was seen
	dynamic             INTEGER,	-- 1: the threshold moves; 0: a tunable, or the
					-- program by mallopt, pins it; NULL:
					-- unknown
	-- of its environment: GLIBC_TUNABLES and MALLOC_*, MALLOC_CONF, TCMALLOC_*, MIMALLOC_*
	tunables            TEXT NOT NULL,
	-- 'dynamic': a shared library; 'preloaded': one that LD_PRELOAD names; 'static': part of a
	-- statically linked program; 'embedded': of one that has its C library's, too
	linkage             TEXT NOT NULL DEFAULT '',
	PRIMARY KEY (pid, module)
) WITHOUT ROWID;

-- Functions of an allocator, each address once, and where each is probed.
CREATE TABLE allocator_probe (
	pid         INTEGER NOT NULL,
	module      TEXT NOT NULL,
	symbol      TEXT NOT NULL,	-- as in its symbol table: 'malloc', 'je_malloc', '_Znwm'
	call        TEXT NOT NULL,	-- what it counts as: 'malloc' ('_Znwm', too), 'free' ...
	offset      INTEGER,		-- bytes from the symbol to the probe; NULL: not probed
	instruction TEXT NOT NULL,	-- that the probe sits on
	timed       INTEGER NOT NULL,	-- 1: its return is probed, too
	refusal     TEXT NOT NULL,	-- why it is not probed, or ''
	PRIMARY KEY (pid, module, symbol)
) WITHOUT ROWID;

-- Functions of a glibc that are not probed at their entries, as allocator_probe would have it, but
-- where only calls come that the thread's cache does not answer: those of blocks of more than
-- cached_bytes all, of smaller ones a part, which is all that table call has of them.
CREATE TABLE past_cache (
	pid          INTEGER NOT NULL,
	module       TEXT NOT NULL,
	call         TEXT NOT NULL,	-- 'malloc', 'free'
	cached_bytes INTEGER NOT NULL,	-- the largest block that the cache may hold
	timed        INTEGER NOT NULL,	-- 1: their returns are probed, too
	PRIMARY KEY (pid, module, call)
) WITHOUT ROWID;

-- Kernel's own figures of a process, over one slice; the last two are gauges at the slice's end
-- (for a process that exited, the last that were seen), NULL where unknown.
CREATE TABLE process_slice (
	slice        INTEGER NOT NULL,
	pid          INTEGER NOT NULL,
	cpu_ns       INTEGER NOT NULL,	-- clock_gettime of the process's CPU clock
	-- /proc/PID/stat; at the end of all the kernel's count of each thread, from our first event
	-- of it to the last: below 0 where readings of before had too many
	minor_faults INTEGER NOT NULL,
	major_faults INTEGER NOT NULL,
	rss_bytes    INTEGER,		-- VmRSS of /proc/PID/status
	swap_bytes   INTEGER,		-- VmSwap: anonymous memory on swap, shared memory left out
	PRIMARY KEY (slice, pid)
) WITHOUT ROWID;

-- A stack, leaf first. Of processes that were gone before their code could be looked at,
-- fault.touched_stack, fault_run.touched_stack and map_call.stack_id have the same one for all that
-- are as deep. Depth 0 of an allocation stack is the allocator's function itself.
CREATE TABLE stack (
	stack_id INTEGER PRIMARY KEY,	-- 64-bit hash made in the kernel, as a signed integer
	pid      INTEGER NOT NULL,	-- process it was first seen in
	-- 'cfi': call frame information; 'cfi+fp': some frame by its frame pointer; 'fp': all of
	-- them, but the first caller from the stack pointer
	how      TEXT NOT NULL,
	complete INTEGER NOT NULL,	-- 1: reached the thread's start
	-- why it did not: 'depth' (more frames than are kept), 'mapping' (an address in no known
	-- code), 'row' (a module without call frame information), 'rule' (no rule tells the caller
	-- of this place), 'memory' (the stack could not be read), 'probe' (a return probe was just
	-- taking the return address), 'frame pointers' (their chain ended); ''
	stopped  TEXT NOT NULL DEFAULT ''
);

-- Frames of a stack; inlined functions have rows of their own (same address, inlined = 1).
CREATE TABLE stack_frame (
	stack_id INTEGER NOT NULL,
	depth    INTEGER NOT NULL,	-- 0 is the leaf
	address  INTEGER NOT NULL,
	frame_id INTEGER NOT NULL,
	inlined  INTEGER NOT NULL,
	PRIMARY KEY (stack_id, depth)
) WITHOUT ROWID;

CREATE TABLE frame (
	frame_id      INTEGER PRIMARY KEY,
	function      TEXT NOT NULL,	-- '' where unknown
	module        TEXT NOT NULL,
	file          TEXT NOT NULL,
	line          INTEGER NOT NULL,
	kind          TEXT NOT NULL,	-- native, python, ruby, php, javascript,
					-- java, jit
	build_id      TEXT NOT NULL,
	module_offset INTEGER NOT NULL	-- what addr2line takes: can be named again later
);

-- Calls of the allocator by function and call site, summed in the kernel. Exact.
CREATE TABLE call (
	slice          INTEGER NOT NULL,
	pid            INTEGER NOT NULL,
	call           TEXT NOT NULL,	-- malloc, calloc, realloc, reallocarray, free,
					-- posix_memalign ...
	stack_id       INTEGER NOT NULL,	-- allocated at (free: freed at)
	calls          INTEGER NOT NULL,
	failed         INTEGER NOT NULL,
	bytes          INTEGER NOT NULL,	-- asked
	cpu_ns         INTEGER NOT NULL,	-- between the probes, all inside included, probes
						-- too
	timed_calls    INTEGER NOT NULL,	-- calls that cpu_ns covers
	map_cpu_ns     INTEGER NOT NULL,	-- of cpu_ns: inside mapping system calls
	map_calls      INTEGER NOT NULL,
	faults         INTEGER NOT NULL,	-- faults inside, all classes
	cleared_calls  INTEGER NOT NULL,	-- glibc's calloc: calls that memset (chunk header
						-- says)
	cleared_bytes  INTEGER NOT NULL,
	cleared_cpu_ns INTEGER NOT NULL,	-- cpu_ns of those calls
	cleared_faults INTEGER NOT NULL,
	mmapped_calls  INTEGER NOT NULL,	-- blocks with a mapping of their own
	known_clearing INTEGER NOT NULL,	-- 1: the rule of clearing is known (glibc)
	nested_calls   INTEGER NOT NULL,	-- made inside another allocator function; not in
						-- calls
	slow_calls     INTEGER NOT NULL DEFAULT 0,	-- of 2048 ns and more, or with a fault or
							-- mapping call
	slow_cpu_ns    INTEGER NOT NULL DEFAULT 0,	-- cpu_ns of those calls
	off_ns         INTEGER NOT NULL DEFAULT 0,	-- off the CPU inside: asleep or preempted;
							-- not in cpu_ns
	lock_waits     INTEGER NOT NULL DEFAULT 0,	-- futex waits inside, for a lock of the
							-- allocator
	lock_ns        INTEGER NOT NULL DEFAULT 0,	-- wall time of those
	-- (where futex calls are not watched, as before the second thread, or while calls rest:
	-- calls that slept inside for nothing else that there is)
	-- realloc of blocks whose size was known, those of min_size_bytes and more:
	grown_calls    INTEGER NOT NULL DEFAULT 0,	-- that asked for more than there was,
	grown_bytes    INTEGER NOT NULL DEFAULT 0,	-- by so much
	copied_calls   INTEGER NOT NULL DEFAULT 0,	-- that came to another place,
	copied_bytes   INTEGER NOT NULL DEFAULT 0,	-- and so much with them; not by mremap
	PRIMARY KEY (slice, pid, call, stack_id, known_clearing)
) WITHOUT ROWID;

-- How long calls took: the number of those between two bounds, by function and call site, since the
-- start. Wall time between the probes, less the probes' own calibrated part (price.inside_ns). Sums
-- to call.timed_calls of the site. Bounds: 0 to 32, then every power of two divided into four.
CREATE TABLE latency (
	pid      INTEGER NOT NULL,
	call     TEXT NOT NULL,
	stack_id INTEGER NOT NULL,
	low_ns   INTEGER NOT NULL,
	high_ns  INTEGER,		-- excluded; NULL: no upper bound
	calls    INTEGER NOT NULL,
	PRIMARY KEY (pid, call, stack_id, low_ns)
) WITHOUT ROWID;

-- Calls that took far longer than their thread's calls of that function do, each with what is known
-- to have happened inside. Wall times, less the probes' calibrated part; reclaim may lie inside
-- faults and mapping calls. Bounded per slice: loss outliers counts those without a row.
CREATE TABLE outlier (
	slice          INTEGER NOT NULL,
	pid            INTEGER NOT NULL,
	tid            INTEGER NOT NULL,
	call           TEXT NOT NULL,
	stack_id       INTEGER NOT NULL,
	start_ns       INTEGER NOT NULL,	-- CLOCK_MONOTONIC
	size_bytes     INTEGER NOT NULL,	-- asked; 0 of free
	wall_ns        INTEGER NOT NULL,
	cpu_ns         INTEGER NOT NULL,	-- of it on the CPU
	median_ns      INTEGER NOT NULL,	-- running median of its thread's calls of the
						-- function
	frees          INTEGER NOT NULL,	-- by its thread since that last asked for 1001
						-- bytes or more
	cleared_bytes  INTEGER NOT NULL,	-- glibc's calloc: bytes of its memset
	glibc          INTEGER NOT NULL,	-- 1: a function of glibc's own
	mmapped        INTEGER NOT NULL,	-- 1: the block has a mapping of its own
	zero_faults    INTEGER NOT NULL,	-- faults inside: first touches
	zero_timed     INTEGER NOT NULL,	-- of them, those whose end was seen (as
						-- fault.timed_faults)
	zero_ns        INTEGER NOT NULL,	-- wall time of the timed ones
	swap_faults    INTEGER NOT NULL,	-- on swapped pages
	swap_timed     INTEGER NOT NULL,
	swap_ns        INTEGER NOT NULL,
	other_faults   INTEGER NOT NULL,	-- of files, shared memory, copies
	other_timed    INTEGER NOT NULL,
	other_ns       INTEGER NOT NULL,
	mmap_calls     INTEGER NOT NULL,	-- mapping system calls inside
	munmap_calls   INTEGER NOT NULL,
	mremap_calls   INTEGER NOT NULL,
	brk_calls      INTEGER NOT NULL,
	madvise_calls  INTEGER NOT NULL,
	map_ns         INTEGER NOT NULL,	-- wall time of them
	lock_waits     INTEGER NOT NULL,	-- futex waits inside
	lock_ns        INTEGER NOT NULL,
	reclaim_ns     INTEGER NOT NULL,
	voluntary      INTEGER NOT NULL,	-- context switches inside: to sleep
	involuntary    INTEGER NOT NULL		-- preempted
);

-- Life of the blocks of at least min_size_bytes, by the site that made them.
CREATE TABLE block (
	slice            INTEGER NOT NULL,
	pid              INTEGER NOT NULL,
	call             TEXT NOT NULL,
	stack_id         INTEGER NOT NULL,
	made             INTEGER NOT NULL,
	made_bytes       INTEGER NOT NULL,
	freed            INTEGER NOT NULL,
	freed_bytes      INTEGER NOT NULL,
	never_used_bytes INTEGER NOT NULL,	-- pages of freed mmapped blocks that no fault ever
						-- touched
	PRIMARY KEY (slice, pid, call, stack_id)
) WITHOUT ROWID;

-- Class of a fault -> toll. writes_page: the kernel cleared (zero.*) or copied (cow) a page.
CREATE TABLE fault_class (
	class       TEXT PRIMARY KEY,
	toll        TEXT NOT NULL,
	writes_page INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO fault_class VALUES
	('zero',         'zero.kernel', 1),	-- first write to an anonymous page
	('zero_huge',    'zero.kernel', 1),	-- the same, a huge page
	('zero_upgrade', 'zero.kernel', 1),	-- first write where the shared zero page was mapped
	('zero_read',    'zero.kernel', 0),	-- first read: the shared zero page is mapped
	('zero_mthp',    'zero.kernel', 1),	-- first write that mapped a folio of several pages
	('shared_zero',  'zero.kernel', 1),	-- first access to a page of shared memory
	('cow',          'cow',         1),
	('cow_major',    'cow',         1),	-- the same, after reading the page from its file
	('cow_merged',   'cow',         1),	-- the same where KSM had made equal pages one
	('reuse',        'cow',         0),	-- write to a page that had become private: nothing
						-- is copied
	('swap_minor',   'swap.in',     0),	-- found in the swap cache: read ahead, or not yet
						-- freed
	('swap_major',   'swap.in',     0),	-- read from a device
	('swap_zram_major',  'swap.in', 0),	-- decompressed from zram, a device in memory
	('swap_zswap_major', 'swap.in', 0),	-- decompressed from zswap, before it reached a
						-- device
	('swap_zero_major',  'swap.in', 0),	-- was all zeros: never stored, cleared again
	('file_minor',   'file.fault',  0),
	('file_major',   'file.fault',  0),
	('file_again',   'file.fault',  0),	-- was in the page cache at some time, and was
						-- pushed out; read ahead of another fault's
						-- end
	('file_again_major', 'file.fault', 0),	-- the same, and read from its device
	('shared_minor', 'file.fault',  0),
	('shared_major', 'file.fault',  0),
	-- taken by the kernel inside a system call, for the program (mlock, MAP_POPULATE): its
	-- price is the time of the call
	('zero_populated',   'zero.kernel', 1),
	('file_populated',   'file.fault',  0),
	('cow_populated',    'cow',         1),
	('shared_populated', 'file.fault',  0),	-- shared memory that was there already
	('read_populated',   'zero.kernel', 0),	-- the shared zero page, mapped for a read
	('user',         'fault.user',  0),	-- userfaultfd: a handler in user mode brings the
						-- page, or allows the write
	-- what the area does not allow, which ends in a signal: the kernel does not count such
	('forbidden',    'fault.other', 0),
	-- the page was being moved (compaction for huge pages, migration), and is waited for
	('moved',        'fault.other', 0),
	-- NUMA hints, device memory, spurious faults: nothing is known to be
	-- cleared, copied or read
	('other',        'fault.other', 0);

-- Faults by class and both owners.
CREATE TABLE fault (
	slice           INTEGER NOT NULL,
	pid             INTEGER NOT NULL,
	class           TEXT NOT NULL,
	allocated_stack INTEGER NOT NULL,	-- 0: in no block that was seen
	allocated_call  TEXT NOT NULL,		-- '' where allocated_stack is 0
	touched_stack   INTEGER NOT NULL,
	area            TEXT NOT NULL,		-- anon, heap, stack, arena, library, file, shared,
						-- device, unknown
	area_name       TEXT NOT NULL DEFAULT '',	-- path of the file or shared area; ''
							-- elsewhere
	in_call         TEXT NOT NULL,		-- allocator function the thread was in, or ''
	in_memset       INTEGER NOT NULL,	-- 1: the instruction clears memory: memset's or
						-- bzero's, byte 0, or other code that does
	faults          INTEGER NOT NULL,
	pages           INTEGER NOT NULL,
	timed_faults    INTEGER NOT NULL,	-- end seen (windows; major: all), no interrupt by a
						-- probe
	timed_cpu_ns    INTEGER NOT NULL,
	timed_cpu_us2   INTEGER NOT NULL,	-- sum of squares, us^2
	blocked_ns      INTEGER NOT NULL,	-- of the timed ones
	PRIMARY KEY (slice, pid, class, allocated_stack, allocated_call, touched_stack, area,
		area_name,
		     in_call, in_memset)
) WITHOUT ROWID;

-- Single sweeps of faults, for pictures: address by time. Bounded per slice, to far fewer once
-- there are a million, and those kept are any of the slice's; loss runs_unstored counts what was
-- left out here (it is in table fault all the same).
CREATE TABLE fault_run (
	slice           INTEGER NOT NULL,
	pid             INTEGER NOT NULL,
	tid             INTEGER NOT NULL,
	class           TEXT NOT NULL,
	address         INTEGER NOT NULL,
	pages           INTEGER NOT NULL,
	faults          INTEGER NOT NULL,
	first_ns        INTEGER NOT NULL,	-- to within 16 faults, as last_ns: the clock is not
						-- read at each
	last_ns         INTEGER NOT NULL,
	allocated_stack INTEGER NOT NULL,
	allocated_call  TEXT NOT NULL DEFAULT '',
	touched_stack   INTEGER NOT NULL,
	area            TEXT NOT NULL DEFAULT ''
);

-- How the pages of one allocation site were used or, outside of allocations, those of one area.
-- Cumulative since the start and replaced at each slice. A sweep goes over adjacent pages, up or
-- down.
CREATE TABLE access (
	pid                    INTEGER NOT NULL,
	call                   TEXT NOT NULL,		-- as fault.allocated_call; '' outside of
							-- allocations
	allocated_stack        INTEGER NOT NULL,	-- 0 outside of allocations
	area                   TEXT NOT NULL,		-- as fault.area; '' of an allocation site
	area_name              TEXT NOT NULL,
	first_pages            INTEGER NOT NULL,	-- pages first touched
	first_sequential_pages INTEGER NOT NULL,	-- of them, in a sweep
	in_pages               INTEGER NOT NULL,	-- faults on swapped pages, major and minor
	in_sequential_pages    INTEGER NOT NULL,	-- of them, in a sweep
	distinct_pages         INTEGER NOT NULL,	-- different pages that came back at least
							-- once
	max_returns            INTEGER NOT NULL,	-- how often the page came back that did so
							-- most
	untracked_pages        INTEGER NOT NULL,	-- of in_pages: page not followed, for want
							-- of memory
	PRIMARY KEY (pid, call, allocated_stack, area, area_name)
) WITHOUT ROWID;

-- Mapping system calls, by call and stack. in_call: made inside that allocator function.
CREATE TABLE map_call (
	slice    INTEGER NOT NULL,
	pid      INTEGER NOT NULL,
	call     TEXT NOT NULL,		-- mmap, munmap, mremap, brk, madvise, mlock, mlock2,
					-- mlockall; mprotect, where it faulted pages in
	in_call  TEXT NOT NULL,
	stack_id INTEGER NOT NULL,
	calls    INTEGER NOT NULL,
	failed   INTEGER NOT NULL,
	bytes    INTEGER NOT NULL,
	cpu_ns   INTEGER NOT NULL,
	-- faults that the kernel took for the program inside (MAP_POPULATE, mlock): they raise no
	-- event
	populated INTEGER NOT NULL DEFAULT 0,
	-- of cpu_ns: those faults, which are in table fault, too (0: they are not)
	populated_ns INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (slice, pid, call, in_call, stack_id)
) WITHOUT ROWID;

-- glibc's mmap_threshold, trim_threshold and top_pad: a row where one changed, or more became known
-- of it. The value lies between low_bytes and high_bytes, both included. how: default (glibc's, at
-- the start), tunable (set in the environment), inherited (from the process that forked this one),
-- freed (a block with a mapping of its own was freed: glibc raises mmap_threshold to its size,
-- trim_threshold to twice that), mapped (a block got its own mapping: not above its size), grew
-- (the heap grew for a block), trimmed (free gave back the top), read (from libc's data), exec
-- (another program in the same process: nothing is known). Bounds that do not overlap with those
-- before: the value changed between the two, by a call that was not seen (mallopt).
CREATE TABLE threshold (
	time_ns    INTEGER NOT NULL,	-- CLOCK_MONOTONIC
	pid        INTEGER NOT NULL,
	name       TEXT NOT NULL,
	low_bytes  INTEGER NOT NULL,
	high_bytes INTEGER,		-- NULL: no upper bound is known
	how        TEXT NOT NULL,
	call       TEXT NOT NULL,	-- allocator function that showed or changed it, or ''
	stack_id   INTEGER NOT NULL	-- its stack; 0: none
);

-- Memory given back to the kernel, and got again. Given back is what a fault had brought in and
-- then munmap, a falling break (brk), madvise (dontneed; free: MADV_FREE) or a fixed mapping over
-- it (fixed) took away; got again, when a first-touch fault brings the page back: at the same
-- address; after munmap, in a new mapping of about the same size by the same call. Rows with calls
-- tell what was given back; those with a class, what was got again of it.
CREATE TABLE giveback (
	slice         INTEGER NOT NULL,
	pid           INTEGER NOT NULL,
	-- munmap, brk, dontneed, free, fixed, heap (munmap of a whole heap of an arena of glibc),
	-- stack (a thread's own, by madvise at the thread's end), stack_unmapped (of a thread)
	how           TEXT NOT NULL,
	gave_call     TEXT NOT NULL,	-- allocator function that gave it back; '': the program
					-- itself
	gave_stack    INTEGER NOT NULL,
	-- who made the block, or the mapping, that the page came back in; where neither is known,
	-- the function that the fault was in, and the code that touched
	got_call      TEXT NOT NULL,
	got_stack     INTEGER NOT NULL,
	class         TEXT NOT NULL,	-- fault_class.class of the faults, or ''
	calls         INTEGER NOT NULL,	-- that gave back
	gave_bytes    INTEGER NOT NULL,	-- pages that had been in use
	largest_bytes INTEGER NOT NULL,	-- the longest range that one call gave back, used or not
	-- how far the break (brk), or what calls of the allocator had mapped (munmap), rose above
	-- its lowest within one slice, or by how much it has fallen and risen again by then
	span_bytes    INTEGER NOT NULL,
	again_faults  INTEGER NOT NULL,
	again_bytes   INTEGER NOT NULL,
	twice_bytes   INTEGER NOT NULL,	-- of them, by the memset in calloc: cleared twice
	thread_calls  INTEGER NOT NULL DEFAULT 0,	-- of calls, by other threads than the first
	PRIMARY KEY (slice, pid, how, gave_call, gave_stack, got_call, got_stack, class)
) WITHOUT ROWID;

-- CPU samples. place: memset (user code that stores zeros over a range, memset's or other, outside
-- the allocator), calloc_memset (the same inside a calloc), copy (user code that copies, memcpy's
-- or other, outside the allocator), allocator, fault, map, read (of a file), probe (in a uprobe, or
-- where the program goes on after one), populate (faults that the kernel takes for the program),
-- pages (it frees pages, makes those of shared memory, copies page tables for a child, or changes
-- protections), clear (it fills memory that is there with zeros for a read), kernel (other), user
-- (other). in_call: an allocator's function; of populate, pages and clear, which are in no call
-- that is watched, the system call.
CREATE TABLE sample (
	slice    INTEGER NOT NULL,
	pid      INTEGER NOT NULL,
	place    TEXT NOT NULL,
	in_call  TEXT NOT NULL,
	stack_id INTEGER NOT NULL,
	-- memset, copy: who made the block that is written to; 0 and '' where that is not known
	allocated_stack     INTEGER NOT NULL DEFAULT 0,
	allocated_call      TEXT NOT NULL DEFAULT '',
	bytes_per_16_cycles INTEGER NOT NULL DEFAULT 0,	-- what its loop can write at most; 0: as
							-- much as memset does
	-- behind the key: else SQLite 3.40's quick_check takes it for NULL
	samples  INTEGER NOT NULL,
	-- memset, copy: over how many bytes the stores from that stack are spread, a page at least,
	-- estimated by how often samples meet the same page; 0: too few samples tell
	spread_bytes INTEGER NOT NULL DEFAULT 0,
	-- memset, copy: bytes of one filling or copy, by the code or by what its registers say is
	-- left of it: the mean over time; 0: not known
	length_bytes INTEGER NOT NULL DEFAULT 0,
	-- where they are in no block that is known: 'stack', 'static', 'heap', or ''; and whose:
	-- the name of the thread, the file
	area         TEXT NOT NULL DEFAULT '',
	area_name    TEXT NOT NULL DEFAULT '',
	clearing     INTEGER NOT NULL DEFAULT 0,	-- fault: of the samples, those in the code
							-- that clears a page
	PRIMARY KEY (slice, pid, place, in_call, stack_id, allocated_stack, allocated_call,
		     bytes_per_16_cycles)
) WITHOUT ROWID;

-- Reclaim, swap-out and swap-in. what: reclaim_direct, reclaim_memcg (the target stalled,
-- reclaiming for the machine or for its memory cgroup; pages: reclaimed); out_self, out_traced,
-- out_kswapd, out_other (its pages pushed out to swap: by itself, by another traced process, by
-- kswapd, by a process that is not traced); in_device, in_zswap, in_zero (pages it brought in by
-- its faults, read-ahead included: from a device, from zswap, all-zero pages that are stored
-- nowhere); shared_out (of those out_*, pages of shared memory: each counts once, for one of the
-- processes that had it mapped). pid 0 stands for all processes that are not traced.
CREATE TABLE swap (
	slice      INTEGER NOT NULL,
	pid        INTEGER NOT NULL,
	what       TEXT NOT NULL,
	count      INTEGER NOT NULL,
	pages      INTEGER NOT NULL,
	cpu_ns     INTEGER NOT NULL,
	blocked_ns INTEGER NOT NULL,
	PRIMARY KEY (slice, pid, what)
) WITHOUT ROWID;

-- Of reclaim, the part that has a stack: of the fault or the call that it happened in.
CREATE TABLE reclaim_site (
	slice      INTEGER NOT NULL,
	pid        INTEGER NOT NULL,
	what       TEXT NOT NULL,
	stack_id   INTEGER NOT NULL,
	count      INTEGER NOT NULL,
	pages      INTEGER NOT NULL,
	cpu_ns     INTEGER NOT NULL,
	blocked_ns INTEGER NOT NULL,
	PRIMARY KEY (slice, pid, what, stack_id)
) WITHOUT ROWID;

-- Files that were read, and block devices. file is a number in this recording only.
CREATE TABLE file (
	file  INTEGER PRIMARY KEY,
	dev   INTEGER NOT NULL,		-- of the file system: major << 20 | minor
	inode INTEGER NOT NULL,
	path  TEXT NOT NULL,		-- from the root of the mounts; '...' before it where it is
					-- cut
	kind  TEXT NOT NULL,		-- 'file', 'block device'
	bytes INTEGER			-- its size when it was first read; NULL where unknown
);

-- Reads of files, by file, call and place. Time of a call: page faults (major ones) and reclaim
-- inside are taken out, they are tolls of their own. io_submit: the requests, counted as read in
-- full, and the time of the call; io_uring: the requests that ended, no time.
CREATE TABLE file_read (
	slice        INTEGER NOT NULL,
	pid          INTEGER NOT NULL,
	file         INTEGER NOT NULL,
	call         TEXT NOT NULL,	-- read, pread64, readv, preadv, preadv2, io_submit,
					-- io_uring
	stack_id     INTEGER NOT NULL,
	direct       INTEGER NOT NULL,	-- 1: O_DIRECT, past the page cache
	calls        INTEGER NOT NULL,
	failed       INTEGER NOT NULL,	-- of them: failed, or at the end of the file
	bytes        INTEGER NOT NULL,
	cpu_ns       INTEGER NOT NULL,
	blocked_ns   INTEGER NOT NULL,
	cached_calls INTEGER NOT NULL,	-- all of it was in the page cache: no page came in, no wait
	cached_bytes INTEGER NOT NULL,
	filled_pages INTEGER NOT NULL,	-- pages that came into the page cache, read-ahead included
	faults       INTEGER NOT NULL,	-- minor faults inside, which cpu_ns still holds
	PRIMARY KEY (slice, pid, file, call, stack_id, direct)
) WITHOUT ROWID;

-- How far apart uses of the same block are (reuse_distance.h): of the reads of one file (subject
-- 'file') and of all files ('files'), of pages that came into the page cache ('cache'), and of the
-- swap-ins of anonymous pages ('swap', where first touches are uses too, but not counted).
-- Cumulative since the start and replaced at each slice.
CREATE TABLE reuse (
	subject      TEXT NOT NULL,
	file         INTEGER NOT NULL,	-- 0: all
	block_bytes  INTEGER NOT NULL,
	uses         INTEGER NOT NULL,	-- counted ones, of blocks
	different    REAL NOT NULL,	-- blocks; exact where rate is 1
	first        REAL NOT NULL,	-- counted uses of blocks not used before
	rate         REAL NOT NULL,	-- share of the blocks that were followed (SHARDS)
	error        REAL NOT NULL,	-- of different, relative, 95 %
	max_distance REAL NOT NULL,	-- blocks
	PRIMARY KEY (subject, file)
) WITHOUT ROWID;

-- Counted uses with so many different blocks since the same block was used last: low <= n < high.
-- A cache of high blocks would have had them.
CREATE TABLE reuse_distance (
	subject TEXT NOT NULL,
	file    INTEGER NOT NULL,
	low     INTEGER NOT NULL,
	high    INTEGER NOT NULL,
	uses    REAL NOT NULL,
	PRIMARY KEY (subject, file, low)
) WITHOUT ROWID;

-- Pages of files that came into the page cache for the target, read-ahead included, by file and
-- what brought them: a page that comes again was thrown out meanwhile. Cumulative since the start
-- and replaced at each slice. As table access, of places in a file instead of addresses.
CREATE TABLE page_fill (
	dev                    INTEGER NOT NULL,
	inode                  INTEGER NOT NULL,
	cause                  TEXT NOT NULL,	-- 'fault'; 'read', by a system call; 'map', a
						-- mapping call (MADV_WILLNEED, MAP_POPULATE)
	area_name              TEXT NOT NULL,	-- path, as fault.area_name; '': it was not mapped
	library                INTEGER NOT NULL,	-- 1: mapped executable, too
	bytes                  INTEGER NOT NULL,	-- size of the file
	requests               INTEGER NOT NULL,	-- faults or calls that brought pages in
	first_pages            INTEGER NOT NULL,	-- for the first time in this recording
	first_sequential_pages INTEGER NOT NULL,	-- of them, in a sweep
	in_pages               INTEGER NOT NULL,	-- again, used since the last time
	in_sequential_pages    INTEGER NOT NULL,	-- of them, in a sweep
	distinct_pages         INTEGER NOT NULL,	-- different pages that came again so
	max_returns            INTEGER NOT NULL,	-- how often the page came again that did so
							-- most
	untracked_pages        INTEGER NOT NULL,	-- not followed, for want of memory
	-- again, without use since the last time: read ahead, and thrown out before their turn.
	vain_pages             INTEGER NOT NULL,
	-- times that a page was used after it had come in, by what the row says. Used is what a
	-- fault maps, with what it maps around, and what a system call reads
	used_pages             INTEGER NOT NULL,
	PRIMARY KEY (dev, inode, cause)
) WITHOUT ROWID;

-- Pages thrown out, by who did it: of files that the target has brought pages of in ('file'), and
-- of its memory, to swap ('swap'). how: self (a process of the target, which wanted memory), other
-- (another process did), kswapd, madvise (the target asked for it: MADV_PAGEOUT), fadvise
-- (POSIX_FADV_DONTNEED), asked (somebody wrote to memory.reclaim, memory.force_empty or
-- drop_caches), cut (no reclaim: of a file that was cut short, deleted or written past the cache).
CREATE TABLE page_drop (
	slice         INTEGER NOT NULL,
	pid           INTEGER NOT NULL,	-- who did it; 0: kswapd
	what          TEXT NOT NULL,
	how           TEXT NOT NULL,
	stack_id      INTEGER NOT NULL,	-- of madvise and fadvise: the call
	comm          TEXT NOT NULL,	-- of who is not traced; else ''
	memory_cgroup TEXT NOT NULL,	-- the last part of its path; else ''
	pages         INTEGER NOT NULL,
	PRIMARY KEY (slice, pid, what, how, stack_id)
) WITHOUT ROWID;

-- Memory that the program has told the kernel to let go of, and what came back of it. advice:
-- dontneed (MADV_DONTNEED: out of its page tables, while its file or segment keeps it; memory that
-- is cleared when it comes back is in giveback), cold (MADV_COLD: to be pushed out first). Rows
-- with calls tell what was advised; those with a class, what came back, each page once for an
-- advice.
CREATE TABLE advised (
	slice        INTEGER NOT NULL,
	pid          INTEGER NOT NULL,
	advice       TEXT NOT NULL,
	stack_id     INTEGER NOT NULL,	-- of the call
	class        TEXT NOT NULL,	-- fault_class.class of the faults, or ''
	calls        INTEGER NOT NULL,
	bytes        INTEGER NOT NULL,
	again_faults INTEGER NOT NULL,
	again_pages  INTEGER NOT NULL
);

-- Who answers faults that wait for a userfaultfd's handler. Waits: from the fault's begin until the
-- handler's request wakes the thread. Seen from a moment after the first such fault on.
CREATE TABLE handler (
	slice       INTEGER NOT NULL,
	pid         INTEGER NOT NULL,	-- whose faults they are
	handler_pid INTEGER NOT NULL,
	handler_tid INTEGER NOT NULL,
	comm        TEXT NOT NULL,	-- of the handler's thread
	process     TEXT NOT NULL,	-- of its process
	request     TEXT NOT NULL,	-- UFFDIO_COPY ...: most of them; '': none that is known
	stack_id    INTEGER NOT NULL,	-- of the request; 0: its process is not traced
	waits       INTEGER NOT NULL,
	wait_ns     INTEGER NOT NULL,
	PRIMARY KEY (slice, pid, handler_tid, stack_id)
) WITHOUT ROWID;

-- How long those waits were, since the start. Bounds as in table latency.
CREATE TABLE fault_wait (
	pid     INTEGER NOT NULL,
	low_ns  INTEGER NOT NULL,
	high_ns INTEGER,		-- excluded; NULL: no upper bound
	waits   INTEGER NOT NULL,
	PRIMARY KEY (pid, low_ns)
) WITHOUT ROWID;

-- The longest of them. Replaced at each slice.
CREATE TABLE longest_wait (
	pid         INTEGER PRIMARY KEY,
	wait_ns     INTEGER NOT NULL,
	start_ns    INTEGER NOT NULL,	-- CLOCK_MONOTONIC
	tid         INTEGER NOT NULL,
	address     INTEGER NOT NULL,	-- of the page
	stack_id    INTEGER NOT NULL,	-- touched at
	handler_tid INTEGER NOT NULL
);

-- The cache of its own that a process is known to have, as its command line or its files of options
-- say: innodb_buffer_pool_size of MariaDB and MySQL, shared_buffers of PostgreSQL.
CREATE TABLE own_cache (
	pid     INTEGER PRIMARY KEY,
	program TEXT NOT NULL,		-- 'InnoDB', 'PostgreSQL'
	setting TEXT NOT NULL,		-- its name
	bytes   INTEGER,		-- NULL: could not be read
	source  TEXT NOT NULL		-- 'command line', the file's path, or 'default'
);

-- How often each probe was hit. probe: malloc .. memalign, fault, fault_end, map, read, sample;
-- walk: a stack was walked; idle: an allocator function outside of its window, passed over;
-- read_other: read(2) of what is no file (a socket, a pipe), passed over; syscall: any other system
-- call, which is slower while some are watched: estimated, from windows in which they were counted.
CREATE TABLE hit (
	slice INTEGER NOT NULL,
	pid   INTEGER NOT NULL,
	probe TEXT NOT NULL,
	hits  INTEGER NOT NULL,
	PRIMARY KEY (slice, pid, probe)
) WITHOUT ROWID;

-- Allocator functions in slices in which the overhead budget let them be watched only in windows,
-- or not at all. What such a slice has of them in tables call and block is what its windows saw. A
-- function without a row was watched throughout the slice. call read_other: read(2), where nearly
-- all that it reads is no file; loss reads_unwatched has what files it read meanwhile, at most.
-- call syscall: mapping calls and calls that read, while the program made next to none; loss
-- maps_unwatched has those that it made meanwhile.
CREATE TABLE watch (
	slice          INTEGER NOT NULL,
	call           TEXT NOT NULL,
	windows        INTEGER NOT NULL,	-- in this slice; one that went on from the last
						-- counts
	watched_ns     INTEGER NOT NULL,	-- their length
	watched_cpu_ns INTEGER NOT NULL,	-- CPU time of all processes in them, probes
						-- included
	PRIMARY KEY (slice, call)
) WITHOUT ROWID;

-- Of those slices, what each process had of them of which calls were seen: of groups of functions
-- that are watched together, which malloc (free with it), calloc and realloc (all others) stand
-- for. What it had of earlier ones, before its first call that was seen, is in that one's row.
CREATE TABLE watch_process (
	slice          INTEGER NOT NULL,
	call           TEXT NOT NULL,
	pid            INTEGER NOT NULL,
	windows        INTEGER NOT NULL,	-- in which it used CPU time
	cpu_ns         INTEGER NOT NULL,	-- probes included
	watched_cpu_ns INTEGER NOT NULL,	-- of it, in those windows
	PRIMARY KEY (slice, call, pid)
) WITHOUT ROWID;

-- After a window the probes stay for a moment in which calls are counted and no more: these calls
-- are in no other table. A hit costs less than half then, so that more of the time is the program's
-- own.
CREATE TABLE watch_passed (
	slice  INTEGER NOT NULL,
	call   TEXT NOT NULL,
	calls  INTEGER NOT NULL,
	cpu_ns INTEGER NOT NULL,	-- CPU time of all processes meanwhile, probes included
	PRIMARY KEY (slice, call)
) WITHOUT ROWID;

-- What else the program did in those slices, counted throughout: by how much of it fell into a
-- function's windows these tell how far the program came in them, whatever its probes cost. event:
-- another function, fault, map, read (of a file, by other than read(2)), plain_read (by read(2));
-- what did not happen, or was itself watched in windows, has no row.
CREATE TABLE watch_event (
	slice        INTEGER NOT NULL,
	call         TEXT NOT NULL,
	event        TEXT NOT NULL,
	watched      INTEGER NOT NULL,	-- in the windows
	happened     INTEGER NOT NULL,	-- in the slice, windows with it
	PRIMARY KEY (slice, call, event)
) WITHOUT ROWID;

-- What was too much for the overhead budget to be looked at each time. fault: faults that were
-- passed over are in table fault all the same, with those that were looked at after them, which
-- stand for them: their number is exact, what is said of their class, place and block is an
-- estimate; so are those that rested, which were seen in windows only. read: likewise, in table
-- file_read. map: mapping calls outside of the allocator whose stack was not looked at have that of
-- the last one by the same instruction at the same depth.
-- small_map: mmap and munmap of less than 64 KiB, or --min-size, outside of the allocator, of which
-- those that were passed over were not timed either: their numbers and bytes are exact, the next
-- one of the thread that was looked at stands for their time and their place.
CREATE TABLE thinned (
	slice  INTEGER NOT NULL,
	what   TEXT NOT NULL,
	seen   INTEGER NOT NULL,	-- looked at
	passed INTEGER NOT NULL,	-- and not
	PRIMARY KEY (slice, what)
) WITHOUT ROWID;

-- Times between two hits of a thread's probes: call, from the return of an allocator call to the
-- next one, between their timestamps; idle, from one call of watch_passed to the next. The tightest
-- tenth of them is what the traps take: the program does next to nothing there. Those of 16 us and
-- more are left out.
CREATE TABLE hit_gap (
	slice  INTEGER NOT NULL,
	hit    TEXT NOT NULL,
	gaps   INTEGER NOT NULL,
	low_ns INTEGER NOT NULL,	-- sum, over the gaps, of what a tenth of their thread's are
					-- below
	PRIMARY KEY (slice, hit)
) WITHOUT ROWID;

-- Blocks below min_size_bytes that --sample chose, by site. One of s bytes is chosen with
-- probability p = 1 - exp(-s / sample_bytes) and stands for 1 / p calls and s / p bytes; the
-- variance that it brings to a sum is (1 - p) / p^2 times what it is of, squared.
CREATE TABLE sampled (
	slice                INTEGER NOT NULL,
	pid                  INTEGER NOT NULL,
	call                 TEXT NOT NULL,
	stack_id             INTEGER NOT NULL,
	chosen               INTEGER NOT NULL,
	chosen_bytes         INTEGER NOT NULL,
	calls                REAL NOT NULL,	-- sum of 1 / p of those made in this slice
	calls_variance       REAL NOT NULL,
	bytes                REAL NOT NULL,	-- sum of s / p
	bytes_variance       REAL NOT NULL,
	freed                REAL NOT NULL,	-- of those freed in this slice, whenever made
	freed_bytes          REAL NOT NULL,
	freed_bytes_variance REAL NOT NULL,
	PRIMARY KEY (slice, pid, call, stack_id)
) WITHOUT ROWID;

-- Price of a hit, calibrated at start on a child of the tracer, but for walk, sample, fault_more,
-- map_more, read_paid and map_paid, which are of the targets. hit_ns: added to the target.
-- inside_ns: the part of it that falls between the two probes and so into the measured time.
-- fault_more: what a fault's program takes in the targets beyond what it takes in the calibration,
-- and what no clock sees of that; map_more: the latter of a mapping call; read_paid, map_paid: what
-- a read of a file, and a mapping call, takes, also where it is only counted (table thinned).
-- Nothing hits these four.
CREATE TABLE price (
	probe     TEXT PRIMARY KEY,
	hit_ns    REAL NOT NULL,
	inside_ns REAL NOT NULL,
	error_ns  REAL NOT NULL		-- half the spread between the calibration's rounds; of a
					-- mean, a tenth
) WITHOUT ROWID;

-- Other figures calibrated at start: clear_4k_bytes_per_s, clear_2m_bytes_per_s,
-- memset_bytes_per_s (of 4 MiB), memset_near_bytes_per_s, memset_middle_bytes_per_s and
-- memset_far_bytes_per_s (of 16 and 256 KiB that are cached, and of what is in no cache),
-- memset_begin_ns and string_begin_ns (what memset, and rep stos, take beyond their bytes),
-- memcpy_bytes_per_s, loops_per_s (of the shortest loop there is: a turn takes
-- a cycle), fault_ns (a bare first-touch fault), malloc_ns (a bare small malloc),
-- fault_timed_inside_ns, fault_timed_error_ns: by how much the time between a fault's two
-- timestamps exceeds the fault: the probes' part in it less the exception's entry and exit, which
-- are outside of them, so that it may be negative.
CREATE TABLE calibration (
	name  TEXT PRIMARY KEY,
	value REAL NOT NULL
) WITHOUT ROWID;

-- System-wide counters of /proc/vmstat, differences over the recording.
CREATE TABLE system_counter (
	name  TEXT PRIMARY KEY,
	value INTEGER NOT NULL
) WITHOUT ROWID;

-- Memory cgroups that the processes are in, as of the last slice.
CREATE TABLE memory_cgroup (
	path             TEXT PRIMARY KEY,	-- within its hierarchy, as /proc/PID/cgroup has it
	version          INTEGER NOT NULL,	-- 1 or 2
	limit_bytes      INTEGER,	-- lowest of memory.max and memory.high (version 1:
					-- memory.limit_in_bytes) of it and of all above; NULL: none
	limit_path       TEXT,		-- the group that sets it
	swap_limit_bytes INTEGER,	-- swap it may use: lowest memory.swap.max (version 1:
					-- memory.memsw.limit_in_bytes less limit_bytes); NULL: no
					-- limit
	usage_bytes      INTEGER,	-- memory.current, memory.usage_in_bytes; NULL: unknown
	peak_bytes       INTEGER,	-- memory.peak (Linux 5.19), memory.max_usage_in_bytes
	file_bytes       INTEGER,	-- of usage_bytes: the page cache of files (memory.stat)
	beside_bytes     INTEGER	-- what was in use beside that, the most of all slices' ends
) WITHOUT ROWID;

-- Huge pages that were looked at some time after the fault that cleared them, by process: how many,
-- and how many of their pages of 4 KiB were not all zeros when they were last looked at. Replaced
-- at each slice.
CREATE TABLE huge_look (
	pid        INTEGER PRIMARY KEY,
	looked     INTEGER NOT NULL,
	used_pages INTEGER NOT NULL,
	gone       INTEGER NOT NULL	-- were unmapped before they could be looked at
);

-- Looks at who holds the memory (record --hold), counted from 1. whole: 0 where some process, or
-- more than a hundredth of a heap, could not be looked at.
CREATE TABLE hold_look (
	look     INTEGER PRIMARY KEY,
	start_ns INTEGER NOT NULL,	-- as slice.start_ns
	took_ns  INTEGER NOT NULL,
	whole    INTEGER NOT NULL
);

-- What a look found, by process: resident bytes in each part of `memtoll hold` (live, trim, pinned,
-- locked, arena_tops, caches, unread, anonymous, stacks, files, shared, special), all that is
-- resident (rss), and what is on swap (swap). Of several processes each with its part of the pages
-- that they share (Pss), so that their sum has those once.
CREATE TABLE hold_part (
	look  INTEGER NOT NULL,
	pid   INTEGER NOT NULL,
	part  TEXT NOT NULL,
	bytes INTEGER NOT NULL,
	PRIMARY KEY (look, pid, part)
) WITHOUT ROWID;

-- Live blocks because of which free memory was kept in a look, by who made them. at: 'page', where
-- it lies behind them on pages that stay, or 'end', where it lies below the last one of a heap.
CREATE TABLE hold_pin (
	look     INTEGER NOT NULL,
	pid      INTEGER NOT NULL,
	at       TEXT NOT NULL,
	size     INTEGER NOT NULL,	-- of the chunk; 0: of various
	call     TEXT NOT NULL,		-- '': the recording did not see them made
	stack_id INTEGER NOT NULL,	-- 0 there
	blocks   INTEGER NOT NULL,	-- that were looked up
	bytes    INTEGER NOT NULL,	-- free and resident because of them
	estimate REAL NOT NULL,		-- bytes, each with the weight of a sampled block
	hint     TEXT NOT NULL,		-- what they begin with a pointer to, or ''
	PRIMARY KEY (look, pid, at, size, call, stack_id)
) WITHOUT ROWID;

-- Of pages that malloc_trim(0) would have given back so long before a look, how many blocks have
-- taken since: each of them would have been faulted in again.
CREATE TABLE hold_reuse (
	look       INTEGER NOT NULL,
	pid        INTEGER NOT NULL,
	since_ns   INTEGER NOT NULL,	-- as slice.start_ns
	seconds    REAL NOT NULL,
	pages      INTEGER NOT NULL,
	used_pages INTEGER NOT NULL,
	PRIMARY KEY (look, pid)
) WITHOUT ROWID;

-- Counters of memory.stat of a memory cgroup and all below it, differences since it was first seen:
-- pgfault, pgmajfault, pswpin, pswpout, zswpin, zswpout, swpin_zero, swpout_zero,
-- workingset_refault_anon, workingset_refault_file, as far as this kernel has them.
CREATE TABLE memory_cgroup_counter (
	path  TEXT NOT NULL,
	name  TEXT NOT NULL,
	value INTEGER NOT NULL,
	PRIMARY KEY (path, name)
) WITHOUT ROWID;

-- Swap areas of the machine that were on during the recording (/proc/swaps).
CREATE TABLE swap_device (
	path       TEXT PRIMARY KEY,
	kind       TEXT NOT NULL,	-- 'disk', 'file' or 'zram'
	size_bytes INTEGER NOT NULL,
	priority   INTEGER NOT NULL,	-- the highest is filled first
	type       INTEGER		-- the kernel's number, as in swap entries; NULL where it
					-- cannot be known
) WITHOUT ROWID;

-- Everything that was not seen or not stored, by name (losses.h), over one slice.
CREATE TABLE loss (
	slice INTEGER NOT NULL,
	name  TEXT NOT NULL,
	count INTEGER NOT NULL,
	PRIMARY KEY (slice, name)
) WITHOUT ROWID;

-- Every loss this version knows: what it means, what to do.
CREATE TABLE loss_kind (
	name    TEXT PRIMARY KEY,
	meaning TEXT NOT NULL,
	remedy  TEXT NOT NULL
) WITHOUT ROWID;

-- Tolls this run could not see, with the reason: they are null in the report, not 0.
CREATE TABLE not_captured (
	toll   TEXT PRIMARY KEY,
	reason TEXT NOT NULL
) WITHOUT ROWID;

-- Notes that somebody who looked on made (memtoll top), with the time they are of.
CREATE TABLE mark (
	time_ns INTEGER NOT NULL,	-- as slice.end_ns
	note    TEXT NOT NULL
);

-- Tables that recordings of this format did not always have: there they are empty.
CREATE TABLE later_table (
	name TEXT PRIMARY KEY
) WITHOUT ROWID;
INSERT INTO later_table VALUES
	('allocator_probe'), ('latency'), ('outlier'), ('threshold'),
	('giveback'), ('file'), ('file_read'), ('reuse'), ('reuse_distance'), ('own_cache'),
		('watch'),
	('watch_passed'), ('watch_event'), ('watch_process'), ('hit_gap'), ('sampled'),
	('page_fill'), ('huge_look'),
	('page_drop'), ('handler'), ('fault_wait'), ('longest_wait'), ('reclaim_site'),
	('advised'), ('thinned'), ('container'), ('mark'),
	('hold_look'), ('hold_part'), ('hold_pin'), ('hold_reuse'), ('past_cache');
