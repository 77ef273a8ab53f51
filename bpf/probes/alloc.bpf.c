// SPDX-License-Identifier: GPL-2.0
/*
 * alloc.bpf.c: the malloc family: entry, return, in-kernel sums.
 *
 * One pair of handlers serves every function; the cookie says which one was hit. Only the
 * outermost call of a thread counts: what an allocator's function calls of its own kind (realloc
 * calling malloc, a preloaded calloc calling libc's malloc) is counted as nested.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "wire/config.h"
#include "wire/cookies.h"
#include "wire/pages.h"
#include "wire/records.h"
#include "wire/sums.h"
#include "state/emit.bpf.h"
#include "state/losses.bpf.h"
#include "state/numbers.bpf.h"
#include "state/rates.bpf.h"
#include "state/row.bpf.h"
#include "state/settings.bpf.h"
#include "state/threads.bpf.h"
#include "state/windows.bpf.h"
#include "memory/page_state.bpf.h"
#include "stacks/call_stack.bpf.h"
#include "stacks/return_probe.bpf.h"
#include "stacks/site.bpf.h"
#include "probes/chunk.bpf.h"
#include "probes/fault.bpf.h"
#include "probes/growth.bpf.h"
#include "probes/latency.bpf.h"
#include "probes/request.bpf.h"

#define IDLE_HITS_BATCH 64

/* Cookies of the probes at entries, by offset within a page. Set before they are attached. */
volatile __u64 entry_cookies[MEMTOLL_PAGE_SIZE] = {};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, CALL_PLACES);
	__type(key, __u32);
	__type(value, struct memtoll_call_place);
} call_places SEC(".maps");

SUM_TABLE(calls, 32768, 4096, struct memtoll_call_key, struct memtoll_call);

struct block_key {
	__u32 tgid;
	__u32 unused;
	__u64 addr;
};

/* Live blocks of at least cfg_min_size bytes, by which their frees are recognized. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 262144);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct block_key);
	__type(value, __u64);
} blocks SEC(".maps");

/*
 * Counting filter over live blocks: 0 proves that a block is not followed, as most are not that are
 * freed, and saves the look-up. Raised before a block is in the table and lowered after it has
 * left, so that it is never too low.
 */
#define BLOCK_FILTER_LOG 14
static __u32 block_filter[1 << BLOCK_FILTER_LOG];

static __always_inline __u32 *block_counter(__u32 tgid, __u64 addr)
{
	return &block_filter[(addr + tgid) * STACK_HASH_SEED >> (64 - BLOCK_FILTER_LOG)];
}

/* Its size; NULL: it is not followed. */
static __always_inline __u64 *followed_size(__u32 tgid, __u64 addr)
{
	struct block_key key = { .tgid = tgid, .addr = addr };

	return addr && *block_counter(tgid, addr) ? bpf_map_lookup_elem(&blocks, &key) : NULL;
}

static __always_inline void follow_block(__u32 tgid, __u64 addr, __u64 size)
{
	struct block_key key = { .tgid = tgid, .addr = addr };
	__u32 *counter = block_counter(tgid, addr);
	long err;

	__sync_fetch_and_add(counter, 1);
	err = bpf_map_update_elem(&blocks, &key, &size, BPF_NOEXIST);
	if (!err)
		return;
	__sync_fetch_and_add(counter, -1);
	/* There already: its free was not seen. */
	if (err != -EEXIST || bpf_map_update_elem(&blocks, &key, &size, BPF_ANY))
		lose(LOST_BLOCKS_FULL, 1);
}

static __always_inline void forget_block(__u32 tgid, __u64 addr)
{
	struct block_key key = { .tgid = tgid, .addr = addr };

	if (!bpf_map_delete_elem(&blocks, &key))
		__sync_fetch_and_add(block_counter(tgid, addr), -1);
}

static __always_inline bool is_key(const struct memtoll_call_key *a,
				   const struct memtoll_call_key *b)
{
	return a->stack_id == b->stack_id && a->fn == b->fn && a->tgid == b->tgid;
}

/*
 * The sum in the site's place on this CPU, or NULL: another site has it. A thread may be preempted
 * or migrate anywhere in here, so what is taken is never given to another site.
 */
static __always_inline struct memtoll_call *site_in_place(const struct memtoll_call_key *key,
							  struct thread *thread)
{
	__u32 at =
		(key->stack_id + key->fn + key->tgid) * STACK_HASH_SEED >> (64 - CALL_PLACES_LOG);
	struct memtoll_call_place *place = bpf_map_lookup_elem(&call_places, &at);

	if (!place)
		return NULL;
	if (place->state == PLACE_TAKEN)
		return is_key(&place->key, key) ? &place->call : NULL;
	if (__sync_val_compare_and_swap(&place->state, PLACE_FREE, PLACE_BEING_TAKEN) != PLACE_FREE)
		return NULL;
	if (key->stack_id)
		stack_keep(thread, key->stack_id);
	place->key = *key;
	/* With a barrier: the key is there before the place is. */
	__sync_val_compare_and_swap(&place->state, PLACE_BEING_TAKEN, PLACE_TAKEN);
	return &place->call;
}

/*
 * The sum of this function and call site. The site of a followed block is its whole stack, of
 * others the function and its nearest callers (site.bpf.h): some hashing instead of a stack walk
 * per call.
 */
static __always_inline struct memtoll_call *site_get(struct memtoll_call_key *key,
						     struct thread *thread)
{
	struct memtoll_call *site = site_in_place(key, thread);
	struct memtoll_call_key anywhere;
	static const struct memtoll_call zero;

	if (!site)
		site = row_find(&calls, &calls_shared, key, &zero);
	if (site)
		return site;
	if (key->stack_id)
		stack_keep(thread, key->stack_id);
	site = row_make(&calls, &calls_shared, key, &zero);
	if (site)
		return site;
	/* Both are full: the call counts for its function, without its place. */
	lose(LOST_CALL_SITES, 1);
	anywhere = *key;
	anywhere.stack_id = 0;
	site = row_get(&calls, &calls_shared, &anywhere, &zero);
	if (!site)
		lose(LOST_CALLS_FULL, 1);
	return site;
}

static __always_inline void add(__u64 *counter, __u64 value)
{
	__sync_fetch_and_add(counter, value);
}

/* From here on faults read the clock again: memory has another owner. */
static __always_inline void block_emit(struct memtoll_block *event)
{
	__sync_fetch_and_add(&block_generation, 1);
	emit(event, sizeof(*event), LOST_RING_BLOCK, 1, false);
}

/* free, or the old block of a realloc: reported before the allocator can hand it out again. */
static __always_inline void block_ended(struct task_struct *task, struct thread *thread, __u32 fn,
					__u64 addr)
{
	struct memtoll_block event = {
		.kind = EVENT_BLOCK,
		.tgid = task->tgid,
		.tid = task->pid,
		.fn = fn,
		.old_addr = addr,
		.start_ns = thread->call.start.ns,
		.end_ns = thread->call.start.ns,
	};

	thread->call.large_stack = stack_from_call(thread);
	event.stack_id = thread->call.large_stack;
	if (fn == FN_FREE) {
		fault_settle(thread);
		run_emit(thread);
		forget_block(task->tgid, addr);
		block_emit(&event);
	}
}

/*
 * A function where no return probe can be set: counted at its entry. Past the thread's cache without
 * its site, unless that is known already: not all of a site's calls come there.
 */
static __always_inline void count_untimed(struct task_struct *task, struct thread *thread, __u32 fn,
					  __u64 cookie)
{
	struct memtoll_call_key key = { task->tgid, fn, thread->call.large_stack };
	struct memtoll_call *site;

	if (!key.stack_id && !(cookie & COOKIE_SLOW)) {
		if (!call_find_caller(thread))
			lose(LOST_UNWIND_PROBE, 1);
		key.stack_id = site_of_call(thread, task->tgid);
	}
	site = site_get(&key, thread);
	if (site)
		add(&site->sum.untimed_calls, 1);
}

/*
 * Of the times between two hits of a thread the lowest tenth: two traps and what the program does
 * between them, which then is next to nothing. A running quantile: where one gap in ten is below,
 * nine steps down and one up are even.
 */
static __always_inline void gap_add(struct memtoll_gaps *gaps, __u64 *low_ns, __u64 gap_ns)
{
	__u64 low = *low_ns ? *low_ns : gap_ns, step = (low >> 7) + 1;

	if (gap_ns >= GAP_MOST_NS)
		return;
	*low_ns = gap_ns < low ? sub_sat(low, 9 * step) : low + step;
	gaps->count++;
	gaps->low_ns += *low_ns;
}

/* A hit that is not counted: it costs all the same. fn: of which function; FN_NONE: of no call. */
static __always_inline void pass_over(struct task_struct *task, struct thread *thread,
				      struct memtoll_rates *rates, __u32 fn)
{
	struct memtoll_call_key key = { task->tgid, FN_NONE, 0 };
	struct memtoll_call *site;
	__u64 now;

	rates->idle[fn]++;
	now = bpf_ktime_get_ns();
	gap_add(&rates->idle_gaps, &thread->idle_gap_ns, now - thread->passed_ns);
	thread->passed_ns = now;
	/* In batches: a look-up each time would double the price. */
	if (++thread->idle_hits % IDLE_HITS_BATCH == 0) {
		site = site_get(&key, thread);
		if (site)
			add(&site->sum.untimed_calls, IDLE_HITS_BATCH);
	}
}

/* Whether this hit is to be counted. */
static __always_inline bool window_is_open(__u32 fn)
{
	return !(idle_fns & (1U << fn)) && shut_ns <= open_until_ns;
}

/* Whether --sample chooses this block; moves on by its size. */
static __always_inline bool sample_chooses(struct thread *thread, __u64 size)
{
	if (!thread->sampling) {
		thread->sampling = 1;
		thread->sample_left =
			sampling_gap(cfg_sampling_log, cfg_sample, bpf_get_prandom_u32());
	}
	thread->sample_left -= size;
	if (thread->sample_left > 0)
		return false;
	thread->sample_left = sampling_gap(cfg_sampling_log, cfg_sample, bpf_get_prandom_u32());
	return true;
}

/*
 * With --sample: a malloc that is not chosen, or the free of a block that is not followed, is only
 * counted, without its place, and its return is not wanted. calloc goes the whole way in any case:
 * what it clears is seen at its return.
 */
static __always_inline bool passes_by(struct task_struct *task, struct thread *thread, __u32 fn)
{
	struct memtoll_call_key key = { task->tgid, fn, 0 };
	struct open_call *call = &thread->call;
	struct memtoll_call *site;

	call->chosen = 0;
	if (!cfg_sample)
		return false;
	if (fn != FN_FREE && call->size && call->size < cfg_min_size)
		call->chosen = sample_chooses(thread, call->size);
	if ((fn != FN_MALLOC && fn != FN_FREE) || call->chosen || call->size >= cfg_min_size ||
	    call->large_stack)
		return false;
	site = site_get(&key, thread);
	if (!site)
		return true;
	add(&site->sum.untimed_calls, 1);
	add(&site->sum.bytes, call->size);
	return true;
}

/*
 * Whether the open call of this thread is still there when one begins at sp: then that is nested,
 * or, at the same place, where the return address is the return probe's, a tail call. Else the open
 * call was left without return.
 */
static __always_inline bool is_nested(struct task_struct *task, struct thread *thread, __u64 sp)
{
	__u64 word = 0;

	if (sp != thread->call.sp)
		return sp < thread->call.sp;
	bpf_probe_read_user(&word, sizeof(word), (void *)sp);
	return is_trampoline(task, word);
}

static __always_inline void count_nested(struct task_struct *task, struct thread *thread, __u32 fn)
{
	struct memtoll_call_key key = { task->tgid, fn, 0 };
	struct memtoll_call *site = site_get(&key, thread);

	if (site)
		add(&site->sum.nested_calls, 1);
}

static __always_inline int on_entry(struct pt_regs *ctx, __u64 cookie, struct task_struct *task,
				    struct thread *thread)
{
	struct memtoll_rates *rates = rates_here();
	__u32 fn = cookie & COOKIE_FN_MASK;
	struct entered *entered;
	struct open_call *call;
	__u64 sp;

	if (!thread || !rates || fn >= FN_COUNT)
		return 1;
	thread->entry_ip = PT_REGS_IP(ctx);
	entered = &thread->entered;
	if (!request_enter(ctx, cookie, entered))
		fn = FN_NONE;
	if (!fn || !window_is_open(fn)) {
		pass_over(task, thread, rates, fn);
		return 1;
	}
	rates->calls[fn]++;
	sp = entered->sp;
	if (thread->in_fn) {
		if (is_nested(task, thread, sp)) {
			count_nested(task, thread, fn);
			return 1;
		}
		lose(LOST_RETURN_MISSED, 1);
		thread->in_fn = FN_NONE;
		thread->abandoned = 1;
	}
	call = &thread->call;
	call->sp = sp;
	call->end_sp = entered->end_sp;
	call->bp = entered->bp;
	call->ip = entered->ip;
	call->retried = entered->retried;
	call->caller = 0;
	call->glibc = (cookie & COOKIE_GLIBC) != 0;
	call->large_stack = 0;
	call->map_cpu_ns = 0;
	call->fault_cpu_ns = 0;
	call->reclaim_cpu_ns = 0;
	call->reclaim_ns = 0;
	call->lock_waits = 0;
	call->lock_ns = 0;
	call->probe_ns = 0;
	call->map_calls = 0;
	call->faults = 0;
	call->faults_timed = 0;
	call->fresh_from = 0;
	call->old_size = 0;
	call->remapped = 0;
	request_read(ctx, cookie, call, fn);
	if (fn == FN_CALLOC)
		call->heap_top = current_heap_top();
	if (fn == FN_FREE && call->pointer)
		thread->frees++;
	if (fn == FN_FREE || fn == FN_REALLOC || fn == FN_REALLOCARRAY) {
		__u64 *size = followed_size(task->tgid, call->pointer);

		if (size) {
			call->old_size = *size;
			call->start.ns = bpf_ktime_get_ns();
			block_ended(task, thread, fn, call->pointer);
		}
	}
	if (passes_by(task, thread, fn))
		return 1;
	if (cookie & COOKIE_ENTRY_ONLY) {
		count_untimed(task, thread, fn, cookie);
		return 1;
	}
	thread->in_fn = fn;
	stamp_take(task, &call->start);
	gap_add(&rates->gaps, &thread->gap_ns, call->start.ns - thread->returned_ns);
	return 0;
}

/*
 * The open call has made a block that is followed, or moved one, or failed to. A global function, as
 * what comes before it in a return comes in many ways.
 */
__noinline int block_made(struct thread *thread, __u32 fn, __u64 end_ns, __u64 stack_id)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct memtoll_block event = { .kind = EVENT_BLOCK, .fn = fn };
	const struct call_end *end;
	struct open_call *call;
	__u64 addr;

	if (!thread)
		return 0;
	call = &thread->call;
	end = &thread->ended;
	addr = end->addr;
	event.tgid = task->tgid;
	event.tid = task->pid;
	event.flags = end->flags | (addr ? 0 : BLOCK_FAILED) | (call->chosen ? BLOCK_SAMPLED : 0);
	event.addr = addr;
	event.old_addr = fn == FN_REALLOC || fn == FN_REALLOCARRAY ? call->pointer : 0;
	event.size = call->size;
	event.cleared_bytes = end->cleared;
	event.start_ns = call->start.ns;
	event.end_ns = end_ns;
	event.stack_id = stack_id;
	if (event.old_addr && (addr || !call->size))
		forget_block(task->tgid, event.old_addr);
	if (addr && (call->size >= cfg_min_size || call->chosen))
		follow_block(task->tgid, addr, call->size);
	block_emit(&event);
	return 0;
}

/* Faults inside the call wait in the ledger for the block that comes next. */
static __always_inline void block_follows(struct thread *thread, __u32 fn, __u64 end_ns,
					  __u64 stack_id)
{
	fault_settle(thread);
	if (thread->run.faults && thread->run.last_ns >= thread->call.start.ns)
		run_emit(thread);
	block_made(thread, fn, end_ns, stack_id);
}

/* A call that is over, to its site's sums. */
int call_add(struct memtoll_call *site, const struct open_call *call, const struct call_end *end)
{
	struct memtoll_call_sum *sum;

	if (!site || !call || !end)
		return 0;
	sum = &site->sum;
	add(&sum->cpu_ns, end->cpu_ns);
	if (!call->glibc)
		add(&sum->foreign_calls, 1);
	if (end->failed)
		add(&sum->failed, 1);
	else if (call->size)
		add(&sum->bytes, call->size);
	if (call->map_calls) {
		add(&sum->map_calls, call->map_calls);
		add(&sum->map_cpu_ns, call->map_cpu_ns);
	}
	if (call->faults) {
		add(&sum->faults, call->faults);
		add(&sum->faults_timed, call->faults_timed);
		add(&sum->fault_cpu_ns, call->fault_cpu_ns);
	}
	if (end->flags & BLOCK_MMAPPED)
		add(&sum->mmapped_calls, 1);
	if (end->cleared) {
		add(&sum->cleared_calls, 1);
		add(&sum->cleared_bytes, end->cleared);
		add(&sum->cleared_cpu_ns, end->cpu_ns);
		add(&sum->cleared_faults, call->faults);
	}
	growth_add(sum, call, end);
	latency_add(site, call, end);
	return 0;
}

/*
 * Reads the open call from memory each time: with a value that it knows, the verifier would follow
 * the path of each function separately.
 */
static __always_inline bool is_open(const struct thread *thread, __u32 fn)
{
	return *(const volatile __u32 *)&thread->in_fn == fn;
}

static __always_inline bool is_followed_call(const struct open_call *call)
{
	return *(const volatile __u32 *)&call->followed;
}

/* Its times; of what became of it nothing yet. */
static __always_inline void end_begin(const struct task_struct *task, const struct open_call *call,
				      struct call_end *end, __u64 now)
{
	end->cleared = 0;
	end->flags = 0;
	end->cpu_ns = stamp_cpu_ns(task, &call->start, now);
	end->off_ns = now - call->start.ns - end->cpu_ns;
	end->cpu_ns = sub_sat(end->cpu_ns, call->reclaim_cpu_ns + call->probe_ns);
	end->slept = task->nvcsw != call->start.voluntary;
}

static __always_inline int on_return(struct pt_regs *ctx, struct task_struct *task,
				     struct thread *thread)
{
	__u64 now = bpf_ktime_get_ns(), addr = PT_REGS_RC(ctx);
	struct memtoll_call_key key = {};
	struct memtoll_call *site;
	struct open_call *call;
	struct call_end *end;
	__u32 fn;

	if (!thread)
		return 0;
	thread->return_ip = PT_REGS_IP(ctx);
	if (!thread->in_fn || stopped)
		return 0;
	call = &thread->call;
	end = &thread->ended;
	/* The return of a nested call, where the kernel cannot skip it: its stack lies deeper. */
	if (PT_REGS_SP(ctx) != call->end_sp)
		return 0;
	/* The kernel has put back what its probe took the place of. */
	if (call->end_sp == call->sp + 8)
		call->caller = thread->return_ip;
	else
		bpf_probe_read_user(&call->caller, sizeof(call->caller), (void *)call->sp);
	end_begin(task, call, end, now);
	fn = thread->in_fn;
	/*
	 * Before it is put by, and not put by before: Linux 6.1 does not carry a check over to
	 * copies on the stack.
	 */
	barrier_var(fn);
	if (fn >= FN_COUNT)
		return 0;
	barrier_var(fn);
	if (is_open(thread, FN_POSIX_MEMALIGN)) {
		__u64 where = call->pointer;

		if ((int)addr || bpf_probe_read_user(&addr, sizeof(addr), (void *)where))
			addr = 0;
	} else if (is_open(thread, FN_FREE)) {
		addr = 0;
	} else if (!addr && call->retried) {
		/* The next one is the same call. */
		thread->in_fn = FN_NONE;
		return 0;
	}
	end->addr = addr;
	end->failed = !addr && call->size && !is_open(thread, FN_FREE);
	call->followed = !is_open(thread, FN_FREE) &&
			 (call->size >= cfg_min_size || call->large_stack || call->chosen);
	if (addr && call->glibc && (is_open(thread, FN_CALLOC) || is_followed_call(call)))
		read_chunk(call, fn, addr, end);
	key.tgid = task->tgid;
	key.fn = fn;
	if (call->large_stack)
		key.stack_id = call->large_stack;
	else if (is_followed_call(call))
		key.stack_id = stack_from_call(thread);
	else
		key.stack_id = site_of_call(thread, task->tgid);
	end->net_ns = latency_net(call, fn, now);
	site = site_get(&key, thread);
	if (site)
		call_add(site, call, end);
	if (is_outlier(thread, fn, end->net_ns)) {
		if (!is_followed_call(call) && !call->large_stack)
			key.stack_id = stack_from_call(thread);
		outlier_emit(thread, key.stack_id);
	}
	if (call->size >= LARGE_REQUEST)
		thread->frees = 0;
	if (is_followed_call(call))
		block_follows(thread, fn, now, key.stack_id);
	thread->in_fn = FN_NONE;
	thread->returned_ns = now;
	windows_end(now);
	return 0;
}

/*
 * Since 6.13, and in stable releases before, programs of this type have a private stack, one for
 * each CPU, where their frame has 64 bytes and more (kernel commit a76ab5731e32): a program that is
 * running on a CPU is not entered there again. But uprobes run preemptible (88bf18581375): another
 * thread hits the same probe and overwrites the frame, and the kernel takes what it finds there for
 * a pointer (seen on 7.2). A program with a tail call keeps to the stack of its thread. One that is
 * never reached will do, and costs nothing: the verifier takes it out.
 */
static __always_inline void keep_off_private_stack(struct pt_regs *ctx)
{
	if (cfg_never)
		bpf_tail_call(ctx, NULL, 0);
}

/*
 * Whether this hit is a return, decided without a call into the kernel, which would cost as much as
 * all that is done here. cookie: that of the probes at entries at this offset within a page. At a
 * return the instruction pointer is the caller's: mostly there is no such probe; should there be
 * one at the same offset, a call of the thread is open, or was given up and its return may still
 * come. (A call that is given up because its probes were detached has no return: the kernel calls
 * new probes for their own calls only.)
 */
static __always_inline bool is_return(struct pt_regs *ctx, __u64 cookie,
				      const struct thread *thread)
{
	if (cookie == COOKIE_NONE)
		return true;
	return (!thread || thread->in_fn || thread->abandoned) &&
	       PT_REGS_IP(ctx) != bpf_get_func_ip(ctx);
}

/*
 * uprobe.session, one link for all functions: the same program at entry and return. 0, of an entry
 * whose return is to be seen, sets a return probe; where none can be set never.
 */
SEC("?uprobe")
int alloc_session(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread = thread_of(task);
	__u64 cookie = entry_cookies[PT_REGS_IP(ctx) & (MEMTOLL_PAGE_SIZE - 1)];

	keep_off_private_stack(ctx);
	if (is_return(ctx, cookie, thread)) {
		on_return(ctx, task, thread);
		return 1;
	}
	if (cookie == COOKIE_DIFFERS)
		cookie = bpf_get_attach_cookie(ctx);
	return on_entry(ctx, cookie, task, thread_check(task, thread));
}

/* uprobe.multi and perf-style links: a program for each side. */
SEC("?uprobe")
int alloc_entry(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();

	keep_off_private_stack(ctx);
	on_entry(ctx, bpf_get_attach_cookie(ctx), task, thread_check(task, thread_of(task)));
	return 0;
}

SEC("?uprobe")
int alloc_return(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();

	keep_off_private_stack(ctx);
	return on_return(ctx, task, thread_of(task));
}
