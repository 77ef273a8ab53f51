/* SPDX-License-Identifier: GPL-2.0 */
/*
 * losses.h: one list of everything that can be lost or had to fall back, by name.
 *
 * LOSS(id, name, meaning, remedy). The position is an index into the BPF counters: append only.
 * Includes nothing.
 */
#ifndef MEMTOLL_LOSSES_H
#define MEMTOLL_LOSSES_H

/* clang-format off */
#define MEMTOLL_LOSSES(LOSS)									\
	LOSS(LOST_RING_BLOCK, "ring_block",							\
	     "large blocks not recorded: the ring buffer was full",				\
	     "raise --buffer or --min-size")							\
	LOSS(LOST_RING_FAULTS, "ring_faults",							\
	     "faults not recorded: the ring buffer was full",					\
	     "raise --buffer")									\
	LOSS(LOST_RING_MAPPING, "ring_mapping",							\
	     "mapping calls not recorded: the ring buffer was full",				\
	     "raise --buffer")									\
	LOSS(LOST_RING_SAMPLE, "ring_sample",							\
	     "CPU samples not recorded: the ring buffer was full",				\
	     "raise --buffer")									\
	LOSS(LOST_RING_PROCESS, "ring_process",							\
	     "fork, exec or exit not recorded: the ring buffer was full",			\
	     "raise --buffer")									\
	LOSS(LOST_CALLS_FULL, "calls_full",							\
	     "allocator calls not counted: too many call sites",				\
	     "trace fewer processes")								\
	LOSS(LOST_MAPS_FULL, "maps_full",							\
	     "mapping calls not counted: too many call sites",					\
	     "trace fewer processes")								\
	LOSS(LOST_STACKS_FULL, "stacks_full",							\
	     "stacks not kept: too many different ones",					\
	     "trace fewer processes")								\
	LOSS(LOST_BLOCKS_FULL, "blocks_full",							\
	     "live large blocks not followed: too many at once",				\
	     "raise --min-size")								\
	LOSS(LOST_THREAD_STATE, "thread_state",							\
	     "events of threads whose state could not be stored",				\
	     "none: out of kernel memory")							\
	LOSS(LOST_RETURN_MISSED, "return_missed",						\
	     "allocator calls whose return was not seen",					\
	     "none: longjmp or exit inside the allocator")					\
	LOSS(LOST_WALK_FAILED, "walk_failed",							\
	     "faults whose page-table entry could not be read",					\
	     "see memtoll doctor")								\
	LOSS(LOST_AREA_UNKNOWN, "area_unknown",							\
	     "faults in an area the kernel would not name at once",				\
	     "none: the class was guessed")							\
	LOSS(LOST_PROCESSES_FULL, "processes_full",						\
	     "processes not followed: too many at once",					\
	     "name the processes with -p")							\
	LOSS(LOST_LATE_ATTACH, "late_attach",							\
	     "processes whose first allocator calls were missed",				\
	     "start the command under memtoll")							\
	LOSS(LOST_ATTACH_FAILED, "attach_failed",						\
	     "allocator modules that could not be probed",					\
	     "see memtoll doctor")								\
	LOSS(LOST_RUNS_UNSTORED, "runs_unstored",						\
	     "sweeps of faults left out of table fault_run",					\
	     "none: they are in table fault")							\
	LOSS(LOST_FREES_UNMATCHED, "frees_unmatched",						\
	     "frees of large blocks that were not seen made",					\
	     "none")										\
	LOSS(LOST_HEADER_UNREADABLE, "header_unreadable",					\
	     "calloc results whose chunk header could not be read",				\
	     "none")										\
	LOSS(LOST_RETURNS_FULL, "returns_full",							\
	     "swapped pages whose coming back was not followed: too many",			\
	     "trace fewer processes")								\
	LOSS(LOST_UNWIND_FULL, "unwind_full",							\
	     "modules or mappings whose call frame information was left out: too much",		\
	     "trace fewer processes")								\
	LOSS(LOST_UNWIND_MAPPING, "unwind_mapping",						\
	     "stacks that ended at an address in no known code",				\
	     "none: code made at run time, or mapped a moment ago")				\
	LOSS(LOST_UNWIND_ROW, "unwind_row",							\
	     "stacks that ended in a module without call frame information",			\
	     "none: built without .eh_frame")							\
	LOSS(LOST_UNWIND_RULE, "unwind_rule",							\
	     "stacks that ended at a place whose caller no rule tells",				\
	     "none")										\
	LOSS(LOST_UNWIND_MEMORY, "unwind_memory",						\
	     "stacks that ended where memory could not be read",				\
	     "none: swapped out, or not a stack")				\
	LOSS(LOST_UNWIND_PROBE, "unwind_probe",							\
	     "stacks that ended at an allocator call that a return probe was being set on",	\
	     "none")										\
	LOSS(LOST_PYTHON_WALK, "python_walk",							\
	     "stacks of which some of the interpreter's frames could not be read",		\
	     "none: swapped out, or being changed at that moment")				\
	LOSS(LOST_PYTHONS_FULL, "pythons_full",							\
	     "stacks without an interpreter's frames: too many new ones at once",		\
	     "trace fewer processes")								\
	LOSS(LOST_PYTHON_UNREADABLE, "python_unreadable",					\
	     "an interpreter's frames without a name: their code was gone, or unreadable",	\
	     "none: code that lived only for a moment")						\
	LOSS(LOST_PYTHON_UNSUPPORTED, "python_unsupported",					\
	     "processes with an interpreter that is no CPython 3.9 to 3.14, Ruby 3.1, PHP 8.2",	\
	     "none: native frames only")							\
	LOSS(LOST_PYTHON_UNWOVEN, "python_unwoven",						\
	     "stacks whose interpreter's frames stand together, their places being unknown",	\
	     "none")										\
	LOSS(LOST_GIVEBACK_FULL, "giveback_full",						\
	     "pages given back, or that may have been, and not followed: too much memory",	\
	     "trace fewer processes")								\
	LOSS(LOST_RING_READ, "ring_read",							\
	     "file reads whose blocks were not followed: the ring buffer was full",		\
	     "raise --buffer")									\
	LOSS(LOST_READS_FULL, "reads_full",							\
	     "file reads not counted: too many files and call sites",				\
	     "trace fewer processes")								\
	LOSS(LOST_READ_ASYNC, "read_async",							\
	     "asynchronous reads not counted: too many in one call, or not readable",		\
	     "none")									\
	LOSS(LOST_WINDOW_CUT, "window_cut",							\
	     "allocator calls still open when the budget took their probe away",		\
	     "raise --overhead-limit")						\
	LOSS(LOST_OUTLIERS, "outliers",								\
	     "long allocator calls without a record of their own: too many in a slice",		\
	     "none: table latency has them all, and the longest have records")			\
	LOSS(LOST_RING_OUTLIER, "ring_outlier",							\
	     "long allocator calls without a record of their own: the ring buffer was full",	\
	     "raise --buffer")									\
	LOSS(LOST_OUTLIERS_PREEMPTED, "outliers_preempted",					\
	     "allocator calls that were preempted, without a record of their own",		\
	     "none: others had the CPU; table latency has them")				\
	LOSS(LOST_CALL_SITES, "call_sites",							\
	     "allocator calls counted without their place: too many new call sites at once",	\
	     "trace fewer processes")								\
	LOSS(LOST_READS_UNWATCHED, "reads_unwatched",						\
	     "file reads at most, while calls that hardly read any were left unwatched",	\
	     "--overhead-limit none")								\
	LOSS(LOST_WINDOW_SHUT, "window_shut",							\
	     "moments at which ends of minor faults were to be timed and could not be",		\
	     "raise the limit of open files")							\
	LOSS(LOST_MAPS_UNWATCHED, "maps_unwatched",						\
	     "mapping calls at most, while system calls were left unwatched: who maps is unknown", \
	     "--overhead-limit none")							\
	LOSS(LOST_MAPPINGS_LEFT_OUT, "mappings_left_out",					\
	     "mappings of code that were not followed: too many, or of too many files",		\
	     "none: stacks end there, and allocators in them are not probed")			\
	LOSS(LOST_MAPS_POSTPONED, "maps_postponed",						\
	     "times that new code of a process was looked at late: it has too many mappings",	\
	     "none: stacks through code mapped meanwhile end there")				\
	LOSS(LOST_MEMORY_GIVEN_UP, "memory_given_up",						\
	     "reads of a process's memory or of its files that did not end, and were given up",	\
	     "none: it is swapped out, or held back by userfaultfd or a file system")		\
	LOSS(LOST_SWAPS_FULL, "swaps_full",							\
	     "swapped pages and reclaims not counted: too many processes",			\
	     "trace fewer processes")								\
	LOSS(LOST_COSTS_FULL, "costs_full",							\
	     "stack walks and passed-over system calls that the overhead lacks: "		\
	     "too many processes",								\
	     "trace fewer processes")								\
	LOSS(LOST_RECORDS_UNREADABLE, "records_unreadable",					\
	     "records of the ring buffer that were too short, or of no kind that is known",	\
	     "none: the BPF programs and memtoll are not of one build")				\
	LOSS(LOST_PAGE_CACHE, "page_cache",							\
	     "faults in files and shared memory whose page was not found in the page cache's tree", \
	     "none: the tree changed at that moment")						\
	LOSS(LOST_DROPS_FULL, "drops_full",							\
	     "pages thrown out whose cause was not counted: too many causes",			\
	     "trace fewer processes")								\
	LOSS(LOST_RING_FILL, "ring_fill",							\
	     "pages that came into the page cache and were not followed: the ring buffer was full", \
	     "raise --buffer")									\
	LOSS(LOST_ANSWERS_FULL, "answers_full",							\
	     "waits for a userfaultfd's handler whose handler was not counted: too many",	\
	     "trace fewer processes")								\
	LOSS(LOST_FAULTS_PASSED, "faults_passed",						\
	     "major faults whose time is not known: begun while only one in several was looked at",\
	     "--overhead-limit none looks at all")						\
	LOSS(LOST_READS_PASSED, "reads_passed",							\
	     "reads passed over in the end, on each CPU, for which none that was looked at speaks",	\
	     "--overhead-limit none looks at all")						\
	LOSS(LOST_BRIEF, "programs_passed",							\
	     "short processes of a storm of new ones: their faults and mapping calls are counted, "	\
	     "their allocator calls and stacks not looked at",					\
	     "--overhead-limit none looks at all")						\
	LOSS(LOST_PIDS_REUSED, "pids_reused",							\
	     "processes whose number another had before: both are one row, with one name",	\
	     "raise sysctl kernel.pid_max")
/* clang-format on */

#define MEMTOLL_LOSS_ID(id, name, meaning, remedy) id,
enum memtoll_loss { MEMTOLL_LOSSES(MEMTOLL_LOSS_ID) MEMTOLL_LOSS_COUNT };
#undef MEMTOLL_LOSS_ID

#endif /* MEMTOLL_LOSSES_H */
