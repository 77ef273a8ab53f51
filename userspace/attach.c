// SPDX-License-Identifier: GPL-2.0
/* attach.c: tracepoints and perf events. */
#include "attach.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "memtoll.skel.h"
#include "message.h"

struct probes {
	GPtrArray *links;	/* struct bpf_link */
	GPtrArray *plain_reads;	/* likewise, of read(2); NULL: not watched */
	struct bpf_link *unwatched;	/* tells of reads of files meanwhile */
	GThreadPool *aside;	/* detaches */
	bool may_leave_reads;
	GArray *window_fds;	/* perf events of minor faults, one per CPU, in a window */
	bool times_faults;
	struct memtoll_bpf *bpf;
	bool swap_followed;
	bool swap_in_counted;
	bool locks_followed;
};

static int perf_open(struct perf_event_attr *attr, int cpu)
{
	attr->size = sizeof(*attr);
	/* All processes on one CPU: events of single tasks would cost at every context switch. */
	return syscall(SYS_perf_event_open, attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static int keep_link(GPtrArray *links, struct bpf_link *link)
{
	if (!link)
		return -errno;
	g_ptr_array_add(links, link);
	return 0;
}

int tracefs_open(void)
{
	int fs, mount = -1, fd;

	fd = open("/sys/kernel/tracing/events", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	fs = fsopen("tracefs", FSOPEN_CLOEXEC);
	if (fs < 0)
		return -errno;
	if (!fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		mount = fsmount(fs, FSMOUNT_CLOEXEC, 0);
	close(fs);
	if (mount < 0)
		return -errno;
	fd = openat(mount, "events", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	close(mount);
	return fd < 0 ? -errno : fd;
}

static int attach_tracepoint(GPtrArray *links, struct bpf_program *program, int tracefs,
			     const char *name)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_TRACEPOINT };
	struct bpf_link *link;
	char path[128], text[32] = "";
	ssize_t length = -1;
	int fd;

	snprintf(path, sizeof(path), "%s/id", name);
	fd = openat(tracefs, path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		length = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	if (length <= 0)
		return -ENOENT;
	attr.config = strtoull(text, NULL, 10);
	/* A BPF program on a tracepoint runs on every CPU, whichever the event was opened on. */
	fd = perf_open(&attr, 0);
	if (fd < 0)
		return -errno;
	link = bpf_program__attach_perf_event(program, fd);
	if (!link)
		close(fd);
	return keep_link(links, link);
}

static int attach_mappings(struct probes *probes, struct memtoll_bpf *bpf)
{
	static const char *const calls[] = { "mmap", "munmap", "mremap", "brk", "madvise",
					     "mprotect" };
	int tracefs = tracefs_open(), err = 0;
	char name[64];
	size_t i;

	if (tracefs < 0) {
		message("cannot use tracefs: %s; mount it at /sys/kernel/tracing",
			strerror(-tracefs));
		return tracefs;
	}
	/* Exits first: an entry never waits for an exit that is not watched. */
	for (i = 0; i < G_N_ELEMENTS(calls) - 1 && !err; i++) {
		snprintf(name, sizeof(name), "syscalls/sys_exit_%s", calls[i]);
		err = attach_tracepoint(probes->links, bpf->progs.map_exit, tracefs, name);
	}
	for (i = 0; i < G_N_ELEMENTS(calls) && !err; i++) {
		snprintf(name, sizeof(name), "syscalls/sys_enter_%s", calls[i]);
		err = attach_tracepoint(probes->links, bpf->progs.map_enter, tracefs, name);
	}
	close(tracefs);
	if (err)
		message("cannot attach to tracepoint %s: %s", name, strerror(-err));
	return err;
}

/* Both sides of a system call that reads, the exit first as above. */
static int attach_read(GPtrArray *links, struct memtoll_bpf *bpf, int tracefs, const char *call)
{
	char name[64];
	int err;

	snprintf(name, sizeof(name), "syscalls/sys_exit_%s", call);
	err = attach_tracepoint(links, bpf->progs.read_exit, tracefs, name);
	snprintf(name, sizeof(name), "syscalls/sys_enter_%s", call);
	if (!err)
		err = attach_tracepoint(links, bpf->progs.read_enter, tracefs, name);
	return err;
}

/* What a kernel was built without (AIO, io_uring) is not read by. */
static int attach_reads(struct probes *probes, struct memtoll_bpf *bpf)
{
	static const char *const calls[] = { "read", "pread64", "readv", "preadv", "preadv2",
					     "io_submit" };
	int tracefs = tracefs_open(), err = tracefs < 0 ? tracefs : 0;
	const char *call = calls[0];
	size_t i;

	probes->plain_reads = g_ptr_array_new();
	for (i = 0; i < G_N_ELEMENTS(calls) && !err; i++) {
		call = calls[i];
		err = attach_read(i ? probes->links : probes->plain_reads, bpf, tracefs, call);
		if (err == -ENOENT && !strcmp(call, "io_submit"))
			err = 0;
	}
	if (tracefs >= 0)
		close(tracefs);
	if (err) {
		message("cannot attach to the tracepoints of %s: %s", call, strerror(-err));
		return err;
	}
	keep_link(probes->links, bpf_program__attach(bpf->progs.read_filled));
	keep_link(probes->links, bpf_program__attach(bpf->progs.read_uring));
	if (bpf_program__autoload(bpf->progs.read_unwatched))
		probes->may_leave_reads = true;
	return 0;
}

bool probes_may_leave_reads(const struct probes *probes)
{
	return probes->may_leave_reads;
}

static void destroy_link(gpointer link, gpointer unused)
{
	(void)unused;
	bpf_link__destroy(link);
}

static void detach_all_aside(struct probes *probes, GPtrArray *links)
{
	guint i;

	/* Each waits for grace periods of its own when done one by one: 70 ms a tracepoint. */
	if (!probes->aside)
		probes->aside = g_thread_pool_new(destroy_link, NULL, 16, FALSE, NULL);
	for (i = 0; i < links->len; i++)
		g_thread_pool_push(probes->aside, g_ptr_array_index(links, i), NULL);
	g_ptr_array_free(links, TRUE);
}

void probes_watch_reads(struct probes *probes, struct memtoll_bpf *bpf, bool watched)
{
	GPtrArray *links;
	int tracefs;

	if (!probes->may_leave_reads || watched == (probes->plain_reads != NULL))
		return;
	if (watched) {
		tracefs = tracefs_open();
		links = g_ptr_array_new();
		if (tracefs < 0 || attach_read(links, bpf, tracefs, "read")) {
			detach_all_aside(probes, links);
			links = NULL;
		}
		if (tracefs >= 0)
			close(tracefs);
		probes->plain_reads = links;
		if (!links)
			return;
		bpf_link__destroy(probes->unwatched);
		probes->unwatched = NULL;
		return;
	}
	probes->unwatched = bpf_program__attach(bpf->progs.read_unwatched);
	if (!probes->unwatched)
		return;
	detach_all_aside(probes, probes->plain_reads);
	probes->plain_reads = NULL;
}

bool probes_follow_locks(struct probes *probes, struct memtoll_bpf *bpf)
{
	int tracefs;

	if (!probes->locks_followed && bpf_program__autoload(bpf->progs.lock_enter)) {
		tracefs = tracefs_open();
		if (tracefs < 0)
			return false;
		/* The exit first: an entry never waits for an exit that is not watched. */
		probes->locks_followed =
			!attach_tracepoint(probes->links, bpf->progs.lock_exit, tracefs,
					   "syscalls/sys_exit_futex") &&
			!attach_tracepoint(probes->links, bpf->progs.lock_enter, tracefs,
					   "syscalls/sys_enter_futex");
		close(tracefs);
	}
	return probes->locks_followed;
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
			continue;	/* a CPU that is not online */
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

/*
 * Reclaim is a refinement: a kernel without memory cgroups lacks two of the tracepoints. Ends
 * first: a begin never waits for an end that is not watched.
 */
static void attach_reclaim(struct probes *probes, struct memtoll_bpf *bpf)
{
	if (!keep_link(probes->links, bpf_program__attach(bpf->progs.direct_end)))
		keep_link(probes->links, bpf_program__attach(bpf->progs.direct_begin));
	if (!keep_link(probes->links, bpf_program__attach(bpf->progs.memcg_end)))
		keep_link(probes->links, bpf_program__attach(bpf->progs.memcg_begin));
}

/* Whether any swap is on: /proc/swaps has a line below its heading. */
static bool swap_is_on(void)
{
	char line[512];
	FILE *file = fopen("/proc/swaps", "re");
	bool on;

	if (!file)
		return false;
	on = fgets(line, sizeof(line), file) && fgets(line, sizeof(line), file);
	fclose(file);
	return on;
}

bool probes_follow_swap(struct probes *probes, struct memtoll_bpf *bpf)
{
	if (probes->swap_followed || !swap_is_on())
		return probes->swap_in_counted;
	probes->swap_followed = true;
	if (bpf_program__autoload(bpf->progs.rss_changed))
		attach_program(probes, bpf->progs.rss_changed);
	if (bpf_program__autoload(bpf->progs.memcg_counted))
		probes->swap_in_counted = !attach_program(probes, bpf->progs.memcg_counted);
	return probes->swap_in_counted;
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
	probes_follow_swap(probes, bpf);
	return 0;
}

int probes_begin_faults(struct probes *probes)
{
	int err = 0;

	if (probes->times_faults)
		err = attach_program(probes, probes->bpf->progs.fault_user);
	if (probes->times_faults && !err)
		err = attach_program(probes, probes->bpf->progs.fault_kernel);
	return err;
}

struct probes *probes_attach(struct memtoll_bpf *bpf, const struct probe_set *set)
{
	struct probes *probes = g_new0(struct probes, 1);
	int err;

	probes->bpf = bpf;
	probes->links = g_ptr_array_new();
	probes->window_fds = g_array_new(FALSE, FALSE, sizeof(int));
	err = attach_program(probes, bpf->progs.process_exit);
	if (!err)
		err = attach_program(probes, bpf->progs.process_exec);
	if (!err)
		err = attach_program(probes, bpf->progs.process_fork);
	probes->times_faults = set->faults;
	if (!err && set->faults)
		err = attach_faults(probes, bpf);
	if (!err && set->mappings)
		err = attach_mappings(probes, bpf);
	if (!err && set->reads)
		err = attach_reads(probes, bpf);
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

int probes_window(struct probes *probes, bool open)
{
	int err = 0;

	/* First: a fault whose end is seen has to know its beginning. */
	if (open)
		probes->bpf->bss->ends_seen = 1;
	if (open && probes->times_faults)
		err = open_window(probes);
	else
		close_window(probes);
	if (!open)
		probes->bpf->bss->ends_seen = 0;
	return err;
}

void probes_detach(struct probes *probes)
{
	if (!probes)
		return;
	if (probes->plain_reads)
		detach_all_aside(probes, probes->plain_reads);
	if (probes->unwatched)
		g_ptr_array_add(probes->links, probes->unwatched);
	detach_all_aside(probes, probes->links);
	g_thread_pool_free(probes->aside, FALSE, TRUE);
	close_window(probes);
	g_array_free(probes->window_fds, TRUE);
	g_free(probes);
}
