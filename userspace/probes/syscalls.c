// SPDX-License-Identifier: GPL-2.0
#include "probes/syscalls.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <glib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/message.h"
#include "memtoll.skel.h"
#include "probes/tracepoint.h"

struct syscalls {
	struct memtoll_bpf *bpf;
	bool mappings;
	bool reads;
	bool locks;		   /* futex calls are wanted, too */
	GPtrArray *always;	   /* struct bpf_link: what reports reads besides system calls */
	GPtrArray *calls;	   /* struct bpf_link, of all but read(2); NULL: detached */
	GPtrArray *plain_reads;	   /* of read(2) */
	GPtrArray *missed;	   /* counts calls that are detached; NULL: none is */
	bool missed_maps;	   /* of mapping calls, too */
	struct bpf_link *counting; /* NULL: calls are not counted */
	struct workqueue detaching;
};

/* Both sides of a call, the exit first: an entry never waits for an exit that is not watched. */
static int attach_call(GPtrArray *links, struct bpf_program *entry, struct bpf_program *exit,
		       int tracefs, const char *call)
{
	char name[64];
	int err;

	snprintf(name, sizeof(name), "syscalls/sys_exit_%s", call);
	err = attach_tracepoint(links, exit, tracefs, name);
	snprintf(name, sizeof(name), "syscalls/sys_enter_%s", call);
	return err ? err : attach_tracepoint(links, entry, tracefs, name);
}

/* failed: the call that could not be attached to. */
static int attach_mappings(const struct syscalls *syscalls, GPtrArray *links, int tracefs,
			   const char **failed)
{
	static const char *const calls[] = { "mmap",	 "munmap", "mremap", "brk",	"madvise",
					     "mprotect", "mlock",  "mlock2", "mlockall" };
	struct bpf_program *entry = syscalls->bpf->progs.map_enter;
	int err = 0;
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(calls) && !err; i++) {
		*failed = calls[i];
		err = attach_call(links, entry, syscalls->bpf->progs.map_exit, tracefs, calls[i]);
	}
	return err;
}

/* A kernel may be built without some (AIO). */
static int attach_reads(const struct syscalls *syscalls, GPtrArray *links, int tracefs,
			const char **failed)
{
	static const char *const calls[] = { "pread64", "readv", "preadv", "preadv2", "io_submit" };
	int err = 0;
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(calls) && !err; i++) {
		*failed = calls[i];
		err = attach_call(links, syscalls->bpf->progs.read_enter,
				  syscalls->bpf->progs.read_exit, tracefs, calls[i]);
		if (err == -ENOENT && !strcmp(calls[i], "io_submit"))
			err = 0;
	}
	return err;
}

static int attach_locks(const struct syscalls *syscalls, GPtrArray *links, int tracefs)
{
	return attach_call(links, syscalls->bpf->progs.lock_enter, syscalls->bpf->progs.lock_exit,
			   tracefs, "futex");
}

/* All but read(2). NULL: see err. */
static GPtrArray *attach_calls(struct syscalls *syscalls, int tracefs, const char **failed,
			       int *err)
{
	GPtrArray *links = g_ptr_array_new();

	*err = 0;
	if (syscalls->mappings)
		*err = attach_mappings(syscalls, links, tracefs, failed);
	if (syscalls->reads && !*err)
		*err = attach_reads(syscalls, links, tracefs, failed);
	/* A refinement: without it a wait is inferred from nothing else having happened. */
	if (syscalls->locks && !*err)
		attach_locks(syscalls, links, tracefs);
	if (!*err)
		return links;
	detach_links(&syscalls->detaching, links);
	return NULL;
}

static GPtrArray *attach_plain_reads(struct syscalls *syscalls, int tracefs, const char **failed,
				     int *err)
{
	GPtrArray *links = g_ptr_array_new();

	*failed = "read";
	*err = attach_call(links, syscalls->bpf->progs.read_enter, syscalls->bpf->progs.read_exit,
			   tracefs, *failed);
	if (!*err)
		return links;
	detach_links(&syscalls->detaching, links);
	return NULL;
}

struct syscalls *syscalls_attach(struct memtoll_bpf *bpf, bool mappings, bool reads)
{
	struct syscalls *syscalls = g_new0(struct syscalls, 1);
	const char *failed = NULL;
	int tracefs = tracefs_open(), err = tracefs < 0 ? tracefs : 0;

	syscalls->bpf = bpf;
	syscalls->mappings = mappings;
	syscalls->reads = reads;
	syscalls->always = g_ptr_array_new();
	workqueue_init(&syscalls->detaching);
	if ((mappings || reads) && !err)
		syscalls->calls = attach_calls(syscalls, tracefs, &failed, &err);
	if (reads && !err)
		syscalls->plain_reads = attach_plain_reads(syscalls, tracefs, &failed, &err);
	if (tracefs >= 0)
		close(tracefs);
	if (failed && err)
		message("cannot attach to the tracepoints of %s: %s", failed, strerror(-err));
	else if (err)
		message("cannot use tracefs: %s; mount it at /sys/kernel/tracing", strerror(-err));
	if (err) {
		syscalls_detach(syscalls);
		errno = -err;
		return NULL;
	}
	if (reads)
		keep_link(syscalls->always, bpf_program__attach(bpf->progs.read_uring));
	return syscalls;
}

bool syscalls_may_leave_plain_reads(const struct syscalls *syscalls)
{
	return syscalls->reads && bpf_program__autoload(syscalls->bpf->progs.read_unwatched);
}

bool syscalls_may_leave(const struct syscalls *syscalls)
{
	const struct memtoll_bpf *bpf = syscalls->bpf;

	return (syscalls->mappings || syscalls->reads) &&
	       (!syscalls->mappings || bpf_program__autoload(bpf->progs.map_unwatched)) &&
	       (!syscalls->reads || (bpf_program__autoload(bpf->progs.read_unwatched) &&
				     bpf_program__autoload(bpf->progs.read_submitted)));
}

static void destroy_link(gpointer link)
{
	bpf_link__destroy(link);
}

/* What counts calls that are detached; NULL where that cannot be had: then they stay. */
static GPtrArray *attach_missed(const struct syscalls *syscalls, bool maps)
{
	struct bpf_program *const programs[] = {
		maps ? syscalls->bpf->progs.map_unwatched : NULL,
		maps ? syscalls->bpf->progs.map_changed : NULL,
		syscalls->reads ? syscalls->bpf->progs.read_unwatched : NULL,
		maps && syscalls->reads ? syscalls->bpf->progs.read_submitted : NULL,
	};
	GPtrArray *links = g_ptr_array_new_with_free_func(destroy_link);
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(programs); i++)
		if (programs[i] && keep_link(links, bpf_program__attach(programs[i]))) {
			g_ptr_array_free(links, TRUE);
			return NULL;
		}
	return links;
}

static void leave(struct syscalls *syscalls, GPtrArray **links)
{
	if (*links)
		detach_links(&syscalls->detaching, *links);
	*links = NULL;
}

/* Attach what is wanted and detached. Whether all of it is attached. */
static bool bring_back(struct syscalls *syscalls, bool calls, bool plain_reads)
{
	bool wanted = (calls && !syscalls->calls) || (plain_reads && !syscalls->plain_reads);
	const char *failed;
	int tracefs, err;

	if (!wanted)
		return true;
	tracefs = workqueue_is_busy(&syscalls->detaching) ? -EBUSY : tracefs_open();
	if (tracefs < 0)
		return false;
	if (calls && !syscalls->calls)
		syscalls->calls = attach_calls(syscalls, tracefs, &failed, &err);
	if (plain_reads && !syscalls->plain_reads)
		syscalls->plain_reads = attach_plain_reads(syscalls, tracefs, &failed, &err);
	close(tracefs);
	return (!calls || syscalls->calls) && (!plain_reads || syscalls->plain_reads);
}

void syscalls_watch(struct syscalls *syscalls, bool watched, bool plain_reads)
{
	bool calls = watched || !syscalls_may_leave(syscalls);
	bool plain = syscalls->reads &&
		     (!syscalls_may_leave_plain_reads(syscalls) || (calls && plain_reads));
	bool all = plain || !syscalls->reads;
	GPtrArray *missed = NULL;

	if (!syscalls->mappings && !syscalls->reads)
		return;
	if (calls == !!syscalls->calls && plain == !!syscalls->plain_reads)
		return;
	/* What counts the missed calls is attached first, and detached last. */
	if (!calls || !all) {
		if (!syscalls->missed || syscalls->missed_maps != !calls) {
			missed = attach_missed(syscalls, !calls);
			if (!missed)
				return;
		}
	}
	if (!bring_back(syscalls, calls, plain)) {
		if (missed)
			g_ptr_array_free(missed, TRUE);
		return;
	}
	if (!calls)
		leave(syscalls, &syscalls->calls);
	if (!plain)
		leave(syscalls, &syscalls->plain_reads);
	if (syscalls->missed && (missed || (calls && all))) {
		g_ptr_array_free(syscalls->missed, TRUE);
		syscalls->missed = NULL;
	}
	if (missed) {
		syscalls->missed = missed;
		syscalls->missed_maps = !calls;
	}
}

bool syscalls_are_watched(const struct syscalls *syscalls)
{
	return syscalls->calls || !(syscalls->mappings || syscalls->reads);
}

bool syscalls_plain_reads_are_watched(const struct syscalls *syscalls)
{
	return syscalls->plain_reads || !syscalls->reads;
}

bool syscalls_count(struct syscalls *syscalls, bool counting)
{
	counting = counting && (syscalls->calls || syscalls->plain_reads) &&
		   bpf_program__autoload(syscalls->bpf->progs.syscall_counted);
	if (counting && !syscalls->counting)
		syscalls->counting = bpf_program__attach(syscalls->bpf->progs.syscall_counted);
	if (!counting && syscalls->counting) {
		bpf_link__destroy(syscalls->counting);
		syscalls->counting = NULL;
	}
	return syscalls->counting;
}

bool syscalls_follow_locks(struct syscalls *syscalls)
{
	int tracefs;

	if (!syscalls->locks && bpf_program__autoload(syscalls->bpf->progs.lock_enter)) {
		syscalls->locks = true;
		if (!syscalls->calls && syscalls_may_leave(syscalls))
			return true; /* with the others, when they are attached again */
		tracefs = tracefs_open();
		if (tracefs < 0)
			return false;
		if (!syscalls->calls)
			syscalls->calls = g_ptr_array_new();
		syscalls->locks = !attach_locks(syscalls, syscalls->calls, tracefs);
		close(tracefs);
	}
	return syscalls->locks;
}

void syscalls_detach(struct syscalls *syscalls)
{
	if (!syscalls)
		return;
	syscalls_count(syscalls, false);
	leave(syscalls, &syscalls->calls);
	leave(syscalls, &syscalls->plain_reads);
	leave(syscalls, &syscalls->always);
	if (syscalls->missed)
		g_ptr_array_free(syscalls->missed, TRUE);
	workqueue_wait(&syscalls->detaching);
	g_free(syscalls);
}
