// SPDX-License-Identifier: GPL-2.0
/* attach.c: tracepoints and perf events. */
#include "probes/attach.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <glib.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/message.h"
#include "bpf/wire/faults.h"
#include "host/swapdevice.h"
#include "memtoll.skel.h"
#include "probes/links.h"
#include "probes/programs.h"
#include "probes/syscalls.h"

struct probes {
	GPtrArray *links; /* struct bpf_link */
	struct syscalls *syscalls;
	struct workqueue detaching;
	GArray *window_fds;	 /* perf events of minor faults, one per CPU, in a window */
	GPtrArray *fault_begins; /* struct bpf_link; empty while faults rest */
	bool times_faults;
	struct memtoll_bpf *bpf;
	bool swap_followed;
	bool swap_in_counted;
	bool handlers_followed;
};

static int perf_open(struct perf_event_attr *attr, int cpu)
{
	attr->size = sizeof(*attr);
	/* All processes on one CPU: events of single tasks would cost at every context switch. */
	return syscall(SYS_perf_event_open, attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static int software_event(unsigned long config, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = config,
		.sample_period = 1,
		.disabled = 1,
	};

	if (config == PERF_COUNT_SW_CPU_CLOCK) {
		attr.freq = 1;
		attr.sample_freq = SAMPLE_FREQUENCY;
	}
	return perf_open(&attr, cpu);
}

static int attach_software_event(struct probes *probes, struct bpf_program *program,
				 unsigned long config)
{
	int cpu, fd, cpus = libbpf_num_possible_cpus(), err;
	struct bpf_link *link;

	for (cpu = 0; cpu < cpus; cpu++) {
		fd = software_event(config, cpu);
		if (fd < 0 && errno == ENODEV)
			continue; /* a CPU that is not online */
		if (fd < 0)
			return -errno;
		link = bpf_program__attach_perf_event(program, fd);
		if (!link)
			close(fd);
		err = keep_link(probes->links, link);
		if (err)
			return err;
	}
	return 0;
}

/*
 * Made for each window: while an event of this kind exists, though disabled, every fault on the
 * machine looks for it (kernel/events/core.c, perf_swevent_enabled): 50 to 110 ns.
 */
static int open_window(struct probes *probes)
{
	int program = bpf_program__fd(probes->bpf->progs.fault_end_minor);
	int cpu, fd, cpus = libbpf_num_possible_cpus();

	for (cpu = 0; cpu < cpus; cpu++) {
		fd = software_event(PERF_COUNT_SW_PAGE_FAULTS_MIN, cpu);
		if (fd < 0 && errno == ENODEV)
			continue;
		if (fd < 0)
			return -errno;
		g_array_append_val(probes->window_fds, fd);
		if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, program) ||
		    ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
			return -errno;
	}
	return 0;
}

static void close_window(struct probes *probes)
{
	guint i;

	for (i = 0; i < probes->window_fds->len; i++)
		close(g_array_index(probes->window_fds, int, i));
	g_array_set_size(probes->window_fds, 0);
}

static int attach_program(struct probes *probes, struct bpf_program *program)
{
	int err = keep_link(probes->links, bpf_program__attach(program));

	if (err)
		message("cannot attach %s: %s", bpf_program__name(program), strerror(-err));
	return err;
}

/* The end first: a begin never waits for an end that is not watched. */
static void attach_stall(struct probes *probes, struct bpf_program *begin, const char *end)
{
	struct bpf_program *program = probes->bpf->progs.reclaim_end;

	if (!keep_link(probes->links, bpf_program__attach_raw_tracepoint(program, end)))
		keep_link(probes->links, bpf_program__attach(begin));
}

/* Reclaim is a refinement: a kernel without memory cgroups lacks two of the tracepoints. */
static void attach_reclaim(struct probes *probes, struct memtoll_bpf *bpf)
{
	attach_stall(probes, bpf->progs.direct_begin, "mm_vmscan_direct_reclaim_end");
	attach_stall(probes, bpf->progs.memcg_begin, "mm_vmscan_memcg_reclaim_end");
}

static bool is_loaded(const struct bpf_program *program)
{
	return bpf_program__fd(program) >= 0;
}

static void attach_swap(struct probes *probes, struct memtoll_bpf *bpf)
{
	if (is_loaded(bpf->progs.rss_changed))
		attach_program(probes, bpf->progs.rss_changed);
	if (is_loaded(bpf->progs.folio_written))
		attach_program(probes, bpf->progs.folio_written);
	if (is_loaded(bpf->progs.memcg_counted))
		probes->swap_in_counted = !attach_program(probes, bpf->progs.memcg_counted);
}

/* It was off when the others were loaded. */
static bool swap_is_late(const struct memtoll_bpf *bpf)
{
	return (has_exact_rss_stat() || has_memcg_events()) && !is_loaded(bpf->progs.rss_changed) &&
	       !is_loaded(bpf->progs.memcg_counted);
}

bool probes_follow_swap(struct probes *probes)
{
	struct memtoll_bpf *bpf = probes->bpf, *late = NULL;

	if (probes->swap_followed || !swap_is_on())
		return probes->swap_in_counted;
	probes->swap_followed = true;
	if (swap_is_late(bpf)) {
		bpf = late = programs_load_swap(bpf);
		if (!late)
			message("cannot load what follows swap: %s", strerror(errno));
	}
	if (bpf)
		attach_swap(probes, bpf);
	memtoll_bpf__destroy(late);
	return probes->swap_in_counted;
}

void probes_follow_handlers(struct probes *probes)
{
	struct memtoll_bpf *late;

	if (probes->handlers_followed)
		return;
	probes->handlers_followed = true;
	late = programs_load_handlers(probes->bpf);
	if (late)
		attach_program(probes, late->progs.fault_answered);
	else
		message("cannot load what follows handlers of faults: %s", strerror(errno));
	memtoll_bpf__destroy(late);
}

static int attach_faults(struct probes *probes, struct memtoll_bpf *bpf)
{
	int err;

	err = attach_software_event(probes, bpf->progs.fault_end_major,
				    PERF_COUNT_SW_PAGE_FAULTS_MAJ);
	/* Whether it can be done is known before anything is traced. */
	if (!err)
		err = open_window(probes);
	close_window(probes);
	if (err) {
		message("cannot open page-fault events: %s", strerror(-err));
		return err;
	}
	attach_reclaim(probes, bpf);
	probes_follow_swap(probes);
	return 0;
}

int probes_begin_faults(struct probes *probes)
{
	static const char *const names[] = { "page_fault_user", "page_fault_kernel" };
	struct bpf_program *program = probes->bpf->progs.fault_begin;
	int err = 0;
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(names) && probes->times_faults && !err; i++) {
		err = keep_link(probes->fault_begins,
				bpf_program__attach_raw_tracepoint(program, names[i]));
		if (err)
			message("cannot attach to %s: %s", names[i], strerror(-err));
	}
	return err;
}

static void leave_faults(struct probes *probes)
{
	guint i;

	for (i = 0; i < probes->fault_begins->len; i++)
		bpf_link__destroy(g_ptr_array_index(probes->fault_begins, i));
	g_ptr_array_set_size(probes->fault_begins, 0);
}

/* All of them, or none. */
static int see_faults(struct probes *probes)
{
	int err = probes->fault_begins->len ? 0 : probes_begin_faults(probes);

	if (err)
		leave_faults(probes);
	return err;
}

int probes_rest_faults(struct probes *probes, bool rest)
{
	struct memtoll_bpf *bpf = probes->bpf;
	int err = 0;

	if (!probes->times_faults)
		return 0;
	bpf->bss->faults_rest = rest ? FAULTS_REST : FAULTS_HAVE_RESTED;
	if (rest && !bpf->bss->ends_seen)
		leave_faults(probes);
	else if (!rest)
		err = see_faults(probes);
	/* Windows try again. */
	if (err)
		bpf->bss->faults_rest = FAULTS_REST;
	/* What threads took for the fault that follows in order lies before a rest. */
	__sync_fetch_and_add(&bpf->data->area_generation, 1);
	return err;
}

static bool faults_rest(const struct probes *probes)
{
	return probes->bpf->bss->faults_rest == FAULTS_REST;
}

struct probes *probes_attach(struct memtoll_bpf *bpf, const struct probe_set *set)
{
	struct probes *probes = g_new0(struct probes, 1);
	int err;

	probes->bpf = bpf;
	probes->links = g_ptr_array_new();
	workqueue_init(&probes->detaching);
	probes->window_fds = g_array_new(FALSE, FALSE, sizeof(int));
	probes->fault_begins = g_ptr_array_new();
	err = attach_program(probes, bpf->progs.process_exit);
	if (!err)
		err = attach_program(probes, bpf->progs.process_exec);
	if (!err)
		err = attach_program(probes, bpf->progs.process_freed);
	if (!err)
		err = attach_program(probes, bpf->progs.process_fork);
	probes->times_faults = set->faults;
	if (!err && set->faults)
		err = attach_faults(probes, bpf);
	if (!err) {
		probes->syscalls = syscalls_attach(bpf, set->mappings, set->reads);
		err = probes->syscalls ? 0 : -errno;
	}
	if (!err && (set->faults || set->reads)) {
		keep_link(probes->links, bpf_program__attach(bpf->progs.page_filled));
		keep_link(probes->links, bpf_program__attach(bpf->progs.page_dropped));
	}
	if (!err && set->samples) {
		err = attach_software_event(probes, bpf->progs.cpu_sample, PERF_COUNT_SW_CPU_CLOCK);
		if (err)
			message("cannot sample the CPUs: %s", strerror(-err));
	}
	if (err) {
		probes_detach(probes);
		errno = -err;
		return NULL;
	}
	return probes;
}

struct syscalls *probes_syscalls(const struct probes *probes)
{
	return probes->syscalls;
}

int probes_rest_calls(struct probes *probes, bool rest)
{
	return syscalls_rest(probes->syscalls, rest);
}

bool probes_calls_rest(const struct probes *probes)
{
	return syscalls_do_rest(probes->syscalls);
}

int probes_see(struct probes *probes, bool see)
{
	int err = syscalls_see(probes->syscalls, see);

	if (!faults_rest(probes))
		return err;
	if (see)
		return see_faults(probes) ?: err;
	leave_faults(probes);
	return err;
}

int probes_window(struct probes *probes, bool open)
{
	int err = 0;

	/*
	 * First: a fault whose end is seen has to know its beginning. Where faults rest one that does
	 * not know is recognised (rest_saw_begin()), and as few as possible are seen while perf
	 * events come and go, which takes milliseconds.
	 */
	if (open)
		probes->bpf->bss->ends_seen = 1;
	else
		probes_see(probes, false);
	if (open && probes->times_faults)
		err = open_window(probes);
	else
		close_window(probes);
	if (open && !err)
		err = probes_see(probes, true);
	if (!open)
		probes->bpf->bss->ends_seen = 0;
	return err;
}

void probes_detach(struct probes *probes)
{
	if (!probes)
		return;
	leave_faults(probes);
	g_ptr_array_free(probes->fault_begins, TRUE);
	detach_links(&probes->detaching, probes->links);
	syscalls_detach(probes->syscalls);
	workqueue_wait(&probes->detaching);
	close_window(probes);
	g_array_free(probes->window_fds, TRUE);
	g_free(probes);
}
