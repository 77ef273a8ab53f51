// SPDX-License-Identifier: GPL-2.0
/*
 * test_target_rows.c: what userspace writes of a process, and what BPF counts of it, do not meet. A
 * thread of the process ends each time between userspace's look at the row and its update of it:
 * this program has a bpf_map_update_elem() of its own, before libbpf's. As root only.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memtoll.skel.h"
#include "probes/process_rows.h"
#include "targets/targets_internal.h"
#include "unwind/unwind_load.h"

#define PAGE 4096ul
#define PAGES 1009
#define THREADS 7

/* ---- the process ---- */

static pid_t thread_id;

static void *touch(void *unused)
{
	char *memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	size_t i;

	for (i = 0; i < PAGES; i++)
		memory[i * PAGE] = 1;
	thread_id = gettid();
	return unused;
}

/* A thread begins, touches its pages and ends, for each byte that comes; then one goes back. */
static void act(int in, int out)
{
	pthread_t thread;
	char byte;

	while (read(in, &byte, 1) == 1) {
		if (pthread_create(&thread, NULL, touch, NULL) || pthread_join(thread, NULL))
			_exit(1);
		/* pthread_join() returns before the kernel has counted it out. */
		while (!syscall(SYS_tgkill, getpid(), thread_id, 0))
			sched_yield();
		if (write(out, &byte, 1) != 1)
			_exit(1);
	}
	_exit(0);
}

/* ---- the tracer ---- */

static struct {
	int to, from;	    /* pipes of the process */
	int fd;		    /* the map whose updates are to find a thread gone; 0: none */
	unsigned int ended; /* threads so far */
} process;

static void end_a_thread(void)
{
	char byte = 0;

	assert_int_equal(write(process.to, &byte, 1), 1);
	assert_int_equal(read(process.from, &byte, 1), 1);
	process.ended++;
}

int bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags)
{
	int (*update)(int, const void *, const void *, __u64) =
		(int (*)(int, const void *, const void *, __u64))dlsym(RTLD_NEXT,
								       "bpf_map_update_elem");

	if (process.fd && fd == process.fd)
		end_a_thread();
	return update(fd, key, value, flags);
}

static struct memtoll_bpf *load(void)
{
	struct memtoll_bpf *bpf = memtoll_bpf__open();
	struct bpf_program *program;
	int fd;

	assert_non_null(bpf);
	bpf_object__for_each_program (program, bpf->obj)
		bpf_program__set_autoload(program, program == bpf->progs.process_exit);
	fd = unwinder_prepare(bpf);
	assert_true(fd >= 0);
	assert_int_equal(memtoll_bpf__load(bpf), 0);
	close(fd);
	return bpf;
}

static int on_event(void *context, void *data, size_t size)
{
	const struct memtoll_process *record = data;

	if (size == sizeof(*record) && record->kind == EVENT_PROCESS)
		*(struct memtoll_process *)context = *record;
	return 0;
}

static pid_t start(void)
{
	int to[2], from[2];
	pid_t pid;

	assert_int_equal(pipe(to), 0);
	assert_int_equal(pipe(from), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		close(to[1]);
		close(from[0]);
		act(to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	process.to = to[1];
	process.from = from[0];
	return pid;
}

static void test_threads_end_between(void **state)
{
	const struct memtoll_target row = { .unwind_table = 1 };
	const struct memtoll_target_state begun = {};
	struct memtoll_process told = {};
	struct followed followed = {};
	struct targets targets = {};
	struct ring_buffer *ring;
	struct memtoll_bpf *bpf;
	struct bpf_link *link;
	struct rusage usage;
	int status, i;
	pid_t pid;

	(void)state;
	if (geteuid())
		skip();
	bpf = load();
	link = bpf_program__attach(bpf->progs.process_exit);
	assert_non_null(link);
	ring = ring_buffer__new(bpf_map__fd(bpf->maps.events), on_event, &told, NULL);
	assert_non_null(ring);
	pid = start();
	assert_int_equal(process_row_put(bpf, pid, &row, false), 0);
	/* None of its threads began before. */
	assert_int_equal(bpf_map_update_elem(bpf_map__fd(bpf->maps.process_states), &pid, &begun,
					     BPF_ANY),
			 0);
	process.fd = bpf_map__fd(bpf->maps.processes);
	targets.config.bpf = bpf;
	targets.config.uprobes = true;
	followed.target.pid = pid;
	followed.callocs.count = 1;
	for (i = 1; i < THREADS; i++) {
		followed.callocs.address[0] = i * PAGE;
		targets_publish_callocs(&targets, &followed);
	}
	targets_publish_table(&targets, pid, 2);
	assert_int_equal(process.ended, THREADS);
	process.fd = 0;
	close(process.to);
	assert_int_equal(wait4(pid, &status, 0, &usage), pid);
	assert_int_equal(status, 0);
	ring_buffer__consume(ring);
	assert_int_equal(told.what, PROCESS_EXIT);
	assert_int_equal(told.tgid, pid);
	assert_true(told.minor_faults >= THREADS * PAGES);
	assert_int_equal(told.minor_faults, usage.ru_minflt);
	assert_int_equal(told.major_faults, usage.ru_majflt);
	close(process.from);
	ring_buffer__free(ring);
	bpf_link__destroy(link);
	memtoll_bpf__destroy(bpf);
}

/* The kernel side counts from the fork on, whose record may be read after the sums. */
static void test_owner_before_the_record_of_its_fork(void **state)
{
	const struct memtoll_target row = { .unwind_table = 1 };
	struct followed followed = {};
	struct targets targets = {};
	pid_t pid = getpid();

	(void)state;
	if (geteuid())
		skip();
	targets.config.bpf = load();
	targets.followed = g_hash_table_new(NULL, NULL);
	assert_int_equal(targets_owner(&targets, 0), OWNER_KNOWN);
	assert_int_equal(targets_owner(&targets, pid), OWNER_GONE);
	assert_int_equal(process_row_put(targets.config.bpf, pid, &row, false), 0);
	assert_int_equal(targets_owner(&targets, pid), OWNER_COMING);
	g_hash_table_insert(targets.followed, GINT_TO_POINTER(pid), &followed);
	assert_int_equal(targets_owner(&targets, pid), OWNER_KNOWN);
	followed.target.exited = true;
	assert_int_equal(targets_owner(&targets, pid), OWNER_GONE);
	g_hash_table_destroy(targets.followed);
	memtoll_bpf__destroy(targets.config.bpf);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_owner_before_the_record_of_its_fork),
		cmocka_unit_test(test_threads_end_between),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
