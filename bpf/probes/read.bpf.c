// SPDX-License-Identifier: GPL-2.0
/*
 * read.bpf.c: reads of regular files and block devices by the target: how many, how long, and which
 * part of the file.
 *
 * The tracepoints of these system calls alone are used, not raw sys_enter: that would run for every
 * system call of the machine. Reads of other things (sockets, pipes, /proc) are ignored as soon
 * as the descriptor's file is known. Where a program hardly reads anything else by read(2), the
 * budget takes that call's tracepoints away (governor.c), and where it reads no file at all, those
 * of all calls go (syscall_idle.c): unwatched.bpf.c then watches for file reads.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "wire/functions.h"
#include "wire/records.h"
#include "wire/sums.h"
#include "state/emit.bpf.h"
#include "state/loop.bpf.h"
#include "state/losses.bpf.h"
#include "state/numbers.bpf.h"
#include "state/rates.bpf.h"
#include "state/row.bpf.h"
#include "state/settings.bpf.h"
#include "state/threads.bpf.h"
#include "state/windows.bpf.h"
#include "memory/page_state.bpf.h"
#include "stacks/stack.bpf.h"
#include "probes/fault.bpf.h"
#include "probes/fault_thinning.bpf.h"
#include "probes/mapping.bpf.h"
#include "probes/page_cache.bpf.h"
#include "probes/populate.bpf.h"
#include "probes/read.bpf.h"
#include "probes/read_file.bpf.h"
#include "probes/syscall.bpf.h"

/* include/uapi/linux/io_uring.h, enum io_uring_op */
enum { URING_READV = 1, URING_READ_FIXED = 4, URING_READ = 22, URING_READ_MULTISHOT = 49 };

/* include/uapi/linux/aio_abi.h */
enum { AIO_PREAD = 0, AIO_PREADV = 7 };

#define AIO_REQUESTS 128 /* looked at of one io_submit */
#define AIO_VECTORS 16	 /* of one request */

/* A row for each file and site: a program that reads a tree makes thousands at once. */
SUM_TABLE(file_reads, 65536, 16384, struct memtoll_read_key, struct memtoll_read_sum);

PROCESS_SUM_TABLE(passes, 8704, struct memtoll_pass_key, struct memtoll_pass_sum);

static __always_inline void pass_add(const struct memtoll_pass_key *key,
				     const struct memtoll_pass_sum *more)
{
	static const struct memtoll_pass_sum zero;
	struct memtoll_pass_sum *sum = process_row_get(&passes, key, &zero);

	if (!sum) {
		lose(LOST_COSTS_FULL, more->passes + more->syscalls + more->passed);
		return;
	}
	__sync_fetch_and_add(&sum->passes, more->passes);
	__sync_fetch_and_add(&sum->syscalls, more->syscalls);
	__sync_fetch_and_add(&sum->passed, more->passed);
}

__hidden int passes_flush(struct task_struct *task, struct thread *thread)
{
	struct memtoll_pass_key key = { .tgid = task->tgid };
	struct memtoll_pass_sum more = {
		.passes = thread->passes,
		.syscalls = thread->syscalls,
		.passed = thread->passed,
	};
	struct memtoll_rates *rates = rates_here();

	if (!more.passes && !more.syscalls && !more.passed)
		return 0;
	thread->passes = 0;
	thread->passed = 0;
	thread->syscalls = 0;
	if (rates) {
		rates->other_reads += more.passes;
		rates->syscalls += more.syscalls;
	}
	pass_add(&key, &more);
	return 0;
}

int reads_emit(struct thread *thread)
{
	if (thread && thread->reads.reads) {
		/* What was read came in before. */
		if (thread->fill.pages)
			fills_emit(thread);
		emit(&thread->reads, sizeof(thread->reads), LOST_RING_READ, thread->reads.reads,
		     false);
		thread->reads.reads = 0;
	}
	return 0;
}

/* ---- sums and runs ---- */

/*
 * The user stack of a system call. Walking it costs more than many a read: a thread that is at the
 * same place as before, with the same words on top of its stack, has the same stack. Not so where
 * an interpreter runs: its frames are elsewhere.
 */
static __always_inline __u64 stack_of_read(struct task_struct *task, struct thread *thread)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	struct read_site *site = &thread->read_site;
	__u64 hash = STACK_HASH_SEED, ip = regs->ip, sp = regs->sp;
	int i;

	/* A worker that the kernel made for the process has no user stack. */
	if (!ip)
		return 0;
	if (python_seen || bpf_probe_read_user(site->words, sizeof(site->words), (void *)sp)) {
		hash = 0;
	} else {
		for (i = 0; i < READ_SITE_WORDS; i++)
			hash = mix(hash, site->words[i]);
		hash |= 1;
	}
	if (!hash || site->hash != hash || site->ip != ip || site->sp != sp) {
		site->stack_id = stack_at(thread, &thread->stack, task->tgid, ip, sp, regs->bp,
					  is_return_address(sp));
		site->hash = hash;
		site->ip = ip;
		site->sp = sp;
	}
	return site->stack_id;
}

/* A function: what a read goes on to after it needs the stack. */
static __noinline struct memtoll_read_sum *sum_of(const struct memtoll_read_key *key)
{
	static const struct memtoll_read_sum zero;
	struct memtoll_read_sum *sum = row_get(&file_reads, &file_reads_shared, key, &zero);

	if (!sum)
		lose(LOST_READS_FULL, 1);
	return sum;
}

/* Add [start, end) to the thread's open run, or send that and begin another. */
static __always_inline void run_of_reads(struct task_struct *task, struct thread *thread,
					 const struct memtoll_read_key *key, __u64 start,
					 __u64 bytes)
{
	struct memtoll_read *run = &thread->reads;

	if (!run->reads || run->inode != key->inode || run->dev != key->dev || run->end != start) {
		reads_emit(thread);
		run->kind = EVENT_READ;
		run->tgid = task->tgid;
		run->dev = key->dev;
		run->flags = key->flags;
		run->inode = key->inode;
		run->start = start;
		run->end = start;
	}
	run->end += bytes;
	run->reads++;
}

static __always_inline void key_fill(struct memtoll_read_key *key, struct task_struct *task,
				     __u32 read_fn)
{
	__builtin_memset(key, 0, sizeof(*key));
	key->tgid = task->tgid;
	key->read_fn = read_fn;
}

/* ---- which are looked at ---- */

/* As of faults: the cost of one depends on what it begins. */
#define READ_TIMED 64

/*
 * The read that begins: whether it is timed, and whether it is passed over, as faults are
 * (fault_thinning.bpf.h).
 */
__noinline int read_is_passed(struct thread *thread, __u32 read_fn)
{
	struct memtoll_rates *rates = rates_here();
	struct open_read *read;
	__u32 draw;

	if (!thread)
		return 0;
	read = &thread->read;
	read->began_ns = 0;
	read->times = 1;
	read->rested = 0;
	/* One call that submits many reads is looked at. */
	if (!rates || read_fn == READ_FN_IO_SUBMIT)
		return 0;
	draw = ++rates->thinned_reads;
	if (draw * GOLDEN_RATIO <= ~0U / READ_TIMED)
		read->began_ns = bpf_ktime_get_ns();
	/* Where they rest few are seen at all, unless the tracer has been stopped. */
	if (fault_draw != ~0U && draw * ROOT_OF_TWO > fault_draw &&
	    !(calls_rest == CALLS_REST && timed_window_is_open())) {
		rates->passed_reads++;
		rates->passed_reads_open++;
		if (read->began_ns)
			rates->read_ns += READ_TIMED * (bpf_ktime_get_ns() - read->began_ns);
		return 1;
	}
	read->rested = read_rest_spoken_for(thread);
	read->times += rates->passed_reads_open + read->rested;
	rates->passed_reads_open = 0;
	return 0;
}

/* What the programs of one that was timed took before and after its own time. */
static __always_inline void read_account(const struct open_read *read, __u64 ended_ns)
{
	struct memtoll_rates *rates = rates_here();

	if (read->began_ns && rates)
		rates->read_ns += READ_TIMED * (read->timed_ns + bpf_ktime_get_ns() - ended_ns);
}

/* ---- read, pread64, readv, preadv, preadv2 ---- */

SEC("?tp_btf/sys_enter")
int read_enter(__u64 *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread = thread_get(task);
	struct open_read *read;
	struct pt_regs *regs;
	struct file *file;
	__u32 read_fn = read_fn_of(ctx[1]);

	if (!thread)
		return 0;
	thread->unbegun = 0;
	if (read_fn != READ_FN_READ && !calls_are_watched())
		return 0;
	read = &thread->read;
	/* Its end was not seen: it has spoken for nobody. */
	if (calls_rest && read->read_fn && !in_read(thread))
		thread->reads_rested += read->times;
	read_rest_catch_up(task, thread);
	if (read_is_passed(thread, read_fn)) {
		read->read_fn = READ_FN_NONE;
		return 0;
	}
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	if (read_fn == READ_FN_IO_SUBMIT) {
		read->position = PT_REGS_PARM3_SYSCALL(regs);
		read->inode = 0;
	} else {
		file = (struct file *)current_file(PT_REGS_PARM1_SYSCALL(regs));
		if (!file || !file_judge((__u64)file, &read->inode, &read->dev, &read->flags)) {
			read->read_fn = READ_FN_NONE;
			/* What those cost that were only counted is in the rates already. */
			thread->passes += read_fn == READ_FN_READ;
			thread->passed += read->times - 1 - read->rested;
			read->last_known = 0;
			if (thread->passes >= PASSES_AT_ONCE)
				passes_flush(task, thread);
			return 0;
		}
		read->position = read_fn == READ_FN_READ || read_fn == READ_FN_READV ?
					 -1 :
					 PT_REGS_PARM4_SYSCALL(regs);
		/* preadv2 takes -1 for it, too */
		if (read->position == (__u64)-1)
			read->position = BPF_CORE_READ(file, f_pos);
	}
	fault_settle(thread);
	if (thread->drained != drain_epoch) {
		thread->drained = drain_epoch;
		run_emit(thread);
		reads_emit(thread);
		maps_settle(thread, task->tgid);
	}
	read->faults = 0;
	read->minor_before = task->min_flt;
	read->fault_cpu_ns = 0;
	read->fault_blocked_ns = 0;
	read->fault_switches = 0;
	read->reclaim_cpu_ns = 0;
	read->reclaim_blocked_ns = 0;
	read->filled_pages = 0;
	read->read_fn = read_fn;
	rate_read(read_fn == READ_FN_READ);
	stamp_take(task, &read->start);
	if (read->began_ns)
		read->timed_ns = read->start.ns - read->began_ns;
	return 0;
}

/* A request of io_submit that reads a file: its bytes; into key its file. 0: it is none. */
static __always_inline __u64 aio_bytes(const struct iocb *request, struct memtoll_read_key *key)
{
	struct file *file;
	struct iovec vector;
	__u64 bytes = 0;
	__u32 i;

	if (request->aio_lio_opcode != AIO_PREAD && request->aio_lio_opcode != AIO_PREADV)
		return 0;
	file = (struct file *)current_file(request->aio_fildes);
	if (!file || !file_judge((__u64)file, &key->inode, &key->dev, &key->flags))
		return 0;
	if (request->aio_lio_opcode == AIO_PREAD)
		return request->aio_nbytes;
	for (i = 0; i < AIO_VECTORS; i++) {
		if (i >= request->aio_nbytes)
			return bytes;
		if (bpf_probe_read_user(&vector, sizeof(vector),
					(void *)(request->aio_buf + i * sizeof(vector))))
			break;
		bytes += vector.iov_len;
	}
	if (request->aio_nbytes > i)
		lose(LOST_READ_ASYNC, 1);
	return bytes;
}

/*
 * Count one request of io_submit, whose pointer lies at `place`, as read in full. first: it gets
 * the time of the whole call as well. A global function: looked at once by the verifier, not at
 * each turn of the loop.
 */
int read_count_aio(__u64 place, __u64 stack_id, __u64 cpu_ns, __u64 blocked_ns)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread = thread_find(task);
	struct memtoll_read_key *key;
	struct memtoll_read_sum *sum;
	struct iocb request;
	__u64 address, bytes;

	if (!thread)
		return 0;
	if (bpf_probe_read_user(&address, sizeof(address), (void *)place) ||
	    bpf_probe_read_user(&request, sizeof(request), (void *)address)) {
		lose(LOST_READ_ASYNC, 1);
		return 0;
	}
	key = &thread->read_key;
	key_fill(key, task, READ_FN_IO_SUBMIT);
	bytes = aio_bytes(&request, key);
	if (!bytes)
		return 0;
	key->stack_id = stack_id;
	run_of_reads(task, thread, key, request.aio_offset, bytes);
	sum = sum_of(key);
	if (!sum)
		return 0;
	__sync_fetch_and_add(&sum->calls, 1);
	__sync_fetch_and_add(&sum->bytes, bytes);
	__sync_fetch_and_add(&sum->cpu_ns, cpu_ns);
	__sync_fetch_and_add(&sum->blocked_ns, blocked_ns);
	return 1;
}

/* Requests of one io_submit that are being counted. */
struct counting {
	__u64 place; /* of the pointer to the first */
	__u64 count;
	__u64 stack_id;
	__u64 cpu_ns; /* of the whole call, until one of them has got it */
	__u64 blocked_ns;
};

/* One request more; 1: there is none. */
static int count_on(__u32 i, void *context)
{
	struct counting *counting = context;

	if (i >= counting->count)
		return 1;
	if (read_count_aio(counting->place + i * sizeof(__u64), counting->stack_id,
			   counting->cpu_ns, counting->blocked_ns)) {
		counting->cpu_ns = 0;
		counting->blocked_ns = 0;
	}
	return 0;
}

static __always_inline void aio_submitted(struct task_struct *task, struct thread *thread,
					  __s64 count, __u64 cpu_ns, __u64 blocked_ns)
{
	struct counting counting = {
		.place = thread->read.position,
		.count = count,
		.cpu_ns = cpu_ns,
		.blocked_ns = blocked_ns,
	};

	if (count <= 0)
		return;
	counting.stack_id = stack_of_read(task, thread);
	repeat(AIO_REQUESTS, count_on, &counting);
	if (count > AIO_REQUESTS)
		lose(LOST_READ_ASYNC, count - AIO_REQUESTS);
}

/*
 * Past the page cache the device writes to the program's own pages: those that are not there yet
 * the kernel faults in itself. How many.
 */
static __always_inline __u64 read_populated(struct task_struct *task, struct thread *thread,
					    __u64 now, __u64 stack_id)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	struct populated *populated = &thread->populated;
	const struct open_read *read = &thread->read;
	__u64 address = PT_REGS_PARM2_SYSCALL(regs);

	if (!(read->flags & READ_DIRECT))
		return 0;
	populated->faults = sub_sat(task->min_flt - read->minor_before, read->faults);
	if (!populated->faults)
		return 0;
	thread->order.minor_seen += populated->faults;
	if (read->read_fn != READ_FN_READ && read->read_fn != READ_FN_PREAD &&
	    bpf_probe_read_user(&address, sizeof(address), (void *)address))
		return 0;
	thread->map.may_populate = 0;
	populated->address = address;
	populated->len = 0;
	populated->majors = 0;
	populated->cpu_ns = 0;
	populated->now = now;
	populated->stack_id = stack_id;
	populated->reads = 0;
	populate_end(thread);
	return populated->faults;
}

static __always_inline void count_waited(__u64 wall_ns)
{
	struct memtoll_rates *rates = rates_here();

	if (rates)
		rates->waited_read_ns += wall_ns;
}

/*
 * A thread is counted no further: what it has read since the last window is like what it read last,
 * but for its time. Of one that was never met nothing is known.
 */
int reads_count_out(struct task_struct *task, struct thread *thread)
{
	struct memtoll_read_sum *sum;
	__u64 reads;

	if (!calls_rest || !task)
		return 0;
	if (!thread) {
		reads = reads_counted(task);
		if (reads)
			lose(LOST_READS_UNWATCHED, reads);
		return 0;
	}
	/* One whose end is not seen has spoken for nobody; it has one of its own, if that has been. */
	if (thread->read.read_fn)
		thread->reads_rested += thread->read.times - in_read(thread);
	thread->read.read_fn = READ_FN_NONE;
	read_rest_catch_up(task, thread);
	reads = thread->reads_rested;
	thread->reads_rested = 0;
	if (!reads || !thread->read.last_known)
		return 0;
	sum = sum_of(&thread->read_key);
	if (!sum)
		return 0;
	__sync_fetch_and_add(&sum->calls, reads);
	__sync_fetch_and_add(&sum->rested, reads);
	__sync_fetch_and_add(&sum->bytes, reads * thread->read.last_bytes);
	return 0;
}

int reads_settle_thread(struct task_struct *task, struct thread *thread)
{
	if (task && thread)
		read_rest_settle(task, thread);
	return 0;
}

SEC("?tp_btf/sys_exit")
int read_exit(__u64 *ctx)
{
	__s64 ret = ctx[1];
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread = thread_find(task);
	struct memtoll_read_key *key;
	struct memtoll_read_sum *sum;
	struct open_read *read;
	__u64 now, cpu_ns, blocked_ns = 0;
	bool waited;

	if (!thread || !is_counted(thread) || !thread->read.read_fn)
		return 0;
	read = &thread->read;
	if (!in_read(thread)) {
		read->read_fn = READ_FN_NONE;
		if (calls_rest)
			thread->reads_rested += read->times;
		else
			lose(LOST_READS_UNWATCHED, read->times);
		return 0;
	}
	now = bpf_ktime_get_ns();
	cpu_ns = stamp_cpu_ns(task, &read->start, now);
	waited = task->nvcsw != read->start.voluntary + read->fault_switches;
	if (task->nvcsw != read->start.voluntary)
		blocked_ns = now - read->start.ns - cpu_ns;
	cpu_ns = sub_sat(cpu_ns, read->fault_cpu_ns + read->reclaim_cpu_ns);
	blocked_ns = sub_sat(blocked_ns, read->fault_blocked_ns + read->reclaim_blocked_ns);
	if (read->read_fn == READ_FN_IO_SUBMIT) {
		aio_submitted(task, thread, ret, cpu_ns, blocked_ns);
		read->read_fn = READ_FN_NONE;
		return 0;
	}
	key = &thread->read_key;
	key_fill(key, task, read->read_fn);
	key->dev = read->dev;
	key->inode = read->inode;
	key->flags = read->flags;
	key->stack_id = stack_of_read(task, thread);
	read->faults += read_populated(task, thread, now, key->stack_id);
	read->read_fn = READ_FN_NONE;
	if (ret > 0)
		run_of_reads(task, thread, key, read->position, ret);
	sum = sum_of(key);
	if (!sum)
		return 0;
	if (waited || read->filled_pages)
		count_waited(now - read->start.ns);
	read->last_bytes = ret > 0 ? ret : 0;
	read->last_known = 1;
	__sync_fetch_and_add(&sum->calls, read->times);
	__sync_fetch_and_add(&sum->rested, read->rested);
	__sync_fetch_and_add(&sum->cpu_ns, read->times * cpu_ns);
	__sync_fetch_and_add(&sum->blocked_ns, read->times * blocked_ns);
	__sync_fetch_and_add(&sum->filled_pages, read->times * read->filled_pages);
	__sync_fetch_and_add(&sum->faults, read->times * read->faults);
	if (ret <= 0) {
		__sync_fetch_and_add(&sum->failed, read->times);
	} else {
		__sync_fetch_and_add(&sum->bytes, read->times * ret);
		if (!waited && !read->filled_pages && !(read->flags & READ_DIRECT)) {
			__sync_fetch_and_add(&sum->cached_calls, read->times);
			__sync_fetch_and_add(&sum->cached_bytes, read->times * ret);
		}
	}
	read_account(read, now);
	return 0;
}

/* ---- io_uring ---- */

/*
 * A request of io_uring has ended, in the context of one of the process's threads. Only the first
 * two of its arguments are the same in all versions (6.13 changed the third). There is no time:
 * how long a thread waits in io_uring_enter is not known.
 */
SEC("?raw_tp/io_uring_complete")
int read_uring(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread = thread_get(task);
	struct io_kiocb *request = (struct io_kiocb *)ctx->args[1];
	struct memtoll_read_key key;
	struct memtoll_read_sum *sum;
	struct file *file;
	__s32 bytes;
	__u8 opcode;

	if (!thread || !request)
		return 0;
	opcode = BPF_CORE_READ(request, opcode);
	bytes = BPF_CORE_READ(request, cqe.res);
	if (bytes <= 0 || (opcode != URING_READ && opcode != URING_READV &&
			   opcode != URING_READ_FIXED && opcode != URING_READ_MULTISHOT))
		return 0;
	file = BPF_CORE_READ(request, file);
	key_fill(&key, task, READ_FN_IO_URING);
	if (!file || !file_judge((__u64)file, &key.inode, &key.dev, &key.flags))
		return 0;
	key.stack_id = stack_of_read(task, thread);
	/* By now its position has moved on by what was read. */
	run_of_reads(task, thread, &key,
		     BPF_CORE_READ((struct io_rw *)request, kiocb.ki_pos) - bytes, bytes);
	sum = sum_of(&key);
	if (!sum)
		return 0;
	__sync_fetch_and_add(&sum->calls, 1);
	__sync_fetch_and_add(&sum->bytes, bytes);
	return 0;
}
