// SPDX-License-Identifier: GPL-2.0
/*
 * What a process maps is read once per look at it, for all who want it: opens of /proc/PID/maps are
 * counted here, whoever makes them. And observers are told of processes, each at its moment.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <glib.h>
#include <linux/types.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bpf/wire/records.h"
#include "host/cgroup.h"
#include "host/mapped_files.h"
#include "host/maps.h"
#include "memtoll.skel.h"
#include "python/python.h"
#include "recording/recording.h"
#include "session/consumers.h"
#include "symbols/symbolize.h"
#include "targets/observers.h"
#include "targets/targets.h"

static gint opened;

static int count_and_open(const char *path, int flags, mode_t mode)
{
	char own[64];

	snprintf(own, sizeof(own), "/proc/%d/maps", getpid());
	if (!strcmp(path, own) || !strcmp(path, "/proc/self/maps"))
		g_atomic_int_inc(&opened);
	return syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

/* Before libc's, for this program and its libraries. */
int open(const char *path, int flags, ...)
{
	va_list list;
	mode_t mode;

	va_start(list, flags);
	mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0;
	va_end(list);
	return count_and_open(path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
	va_list list;
	mode_t mode;

	va_start(list, flags);
	mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0;
	va_end(list);
	return count_and_open(path, flags, mode);
}

static int reads(void)
{
	int count = g_atomic_int_get(&opened);

	g_atomic_int_set(&opened, 0);
	return count;
}

/* What a session has; nothing is loaded. */
struct parts {
	struct memtoll_bpf *bpf;
	struct symbolizer *symbolizer;
	struct python *python;
	struct recording *recording;
	struct memory_cgroups *memory_cgroups;
	struct observers *observers;
	struct consumers *consumers;
	struct targets *targets;
};

static int set_up(void **state)
{
	struct parts *parts = g_new0(struct parts, 1);

	parts->bpf = memtoll_bpf__open();
	assert_non_null(parts->bpf);
	parts->symbolizer = symbolizer__new();
	parts->python = python_new();
	parts->recording = recording_create(NULL, false);
	assert_non_null(parts->recording);
	parts->memory_cgroups = memory_cgroups_new();
	parts->observers = observers_new();
	parts->consumers = consumers_new(&(struct consumers_config){
		.bpf = parts->bpf,
		.recording = parts->recording,
		.symbolizer = parts->symbolizer,
		.python = parts->python,
		.observers = parts->observers,
		.min_size = 1 << 16,
	});
	parts->targets = targets_new(&(struct targets_config){
		.bpf = parts->bpf,
		.observers = parts->observers,
		.python = parts->python,
		.recording = parts->recording,
		.memory_cgroups = parts->memory_cgroups,
		.thresholds = parts->consumers->thresholds,
		.maps_reported = true,
	});
	*state = parts;
	return 0;
}

static int tear_down(void **state)
{
	struct parts *parts = *state;

	targets_free(parts->targets);
	consumers_free(parts->consumers);
	observers_free(parts->observers);
	memory_cgroups_free(parts->memory_cgroups);
	recording_close(parts->recording);
	python_free(parts->python);
	symbolizer__free(parts->symbolizer);
	memtoll_bpf__destroy(parts->bpf);
	g_free(parts);
	return 0;
}

static void test_a_refresh_reads_once(void **state)
{
	struct parts *parts = *state;
	pid_t pid = getpid();

	/* No map takes its row: it is known all the same, and that is enough here. */
	targets_add(parts->targets, pid);
	assert_non_null(targets_find(parts->targets, pid));
	assert_true(reads() > 0);
	targets_refresh(parts->targets);
	assert_int_equal(reads(), 0);
	targets_changed(parts->targets, pid);
	targets_refresh(parts->targets);
	assert_int_equal(reads(), 1);
	assert_true(symbolizer_has_code(parts->symbolizer, pid,
					(uintptr_t)test_a_refresh_reads_once));
	targets_mapped(parts->targets, pid);
	assert_int_equal(reads(), 1);
	targets_ready(parts->targets, pid);
	assert_int_equal(reads(), 1);
}

/* A fault in a library that was seen by a refresh needs no look at the process. */
static void test_a_refresh_names_files(void **state)
{
	struct memtoll_file library = { .kind = EVENT_FILE, .name = "last part" };
	struct parts *parts = *state;
	pid_t pid = getpid();
	struct maps maps;
	const struct mapping *mapping;

	assert_int_equal(maps_read(pid, &maps), 0);
	mapping = maps_find(&maps, (uintptr_t)strtol);
	assert_non_null(mapping);
	targets_add(parts->targets, pid);
	reads();
	library.tgid = pid;
	library.dev = mapping->dev_major << 20 | mapping->dev_minor;
	library.inode = mapping->inode;
	mapped_files_learn(parts->consumers->areas, &library);
	assert_int_equal(reads(), 0);
	assert_string_equal(mapped_files_path(parts->consumers->areas, library.dev, library.inode),
			    mapping->path);
	assert_true(mapped_files_is_library(parts->consumers->areas, library.dev, library.inode));
	maps_free(&maps);
}

/* What was unmapped before it could be asked for has the name that maps would have shown. */
static void test_names_of_what_is_gone(void **state)
{
	static const char *const names[][2] = {
		{ "memfd:x", "/memfd:x" },
		{ "SYSV0000a731", "/SYSV0000a731" },
		{ "SYSVINIT", "SYSVINIT" },
		{ "data.mdb", "data.mdb" },
	};
	struct parts *parts = *state;
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(names); i++) {
		struct memtoll_file file = { .kind = EVENT_FILE,
					     .tgid = getpid(),
					     .inode = (1ULL << 41) + i };

		g_strlcpy(file.name, names[i][0], sizeof(file.name));
		mapped_files_learn(parts->consumers->areas, &file);
		assert_string_equal(mapped_files_path(parts->consumers->areas, 0, file.inode),
				    names[i][1]);
	}
}

/* Whether the process is looked at for the name of a file that it has just mapped for the first time. */
static bool is_looked_at(struct parts *parts)
{
	static uint64_t inode = 1ULL << 40;
	struct memtoll_file file = {
		.kind = EVENT_FILE, .tgid = getpid(), .inode = ++inode, .name = "last part"
	};

	mapped_files_learn(parts->consumers->areas, &file);
	assert_string_equal(mapped_files_path(parts->consumers->areas, 0, inode), "last part");
	return reads();
}

/* Who maps file after file is not looked at each time; once there is time again it is. */
static void test_looks_for_names_end(void **state)
{
	struct parts *parts = *state;

	reads();
	assert_true(is_looked_at(parts));
	while (is_looked_at(parts))
		;
	while (!is_looked_at(parts))
		;
}

struct seen {
	char text[256];
};

static void add(struct seen *seen, const char *what, pid_t pid, pid_t other)
{
	size_t length = strlen(seen->text);

	snprintf(seen->text + length, sizeof(seen->text) - length, "%s %d %d;", what, pid, other);
}

static void on_fork(void *seen, pid_t parent, pid_t child)
{
	add(seen, "fork", parent, child);
}

static void on_exec(void *seen, pid_t pid)
{
	add(seen, "exec", pid, 0);
}

static void on_exit_of(void *seen, pid_t pid)
{
	add(seen, "exit", pid, 0);
}

static void on_mapped(void *seen, pid_t pid, const struct maps *maps, bool new_image)
{
	assert_null(maps);
	add(seen, "mapped", pid, new_image);
}

static void on_forgotten(void *seen, pid_t pid)
{
	add(seen, "forgotten", pid, 0);
}

static void test_observers_are_called_at_their_moment(void **state)
{
	struct observers *observers = observers_new();
	struct seen with_records = {}, at_once = {}, sparse = {};
	struct observer observer = {
		.moment = WITH_RECORDS,
		.state = &with_records,
		.forked = on_fork,
		.executed = on_exec,
		.exited = on_exit_of,
		.forgotten = on_forgotten,
	};

	(void)state;
	observers_add(observers, &observer);
	observer.moment = AT_ONCE;
	observer.state = &at_once;
	observer.mapped = on_mapped;
	observers_add(observers, &observer);
	observers_add(observers, &(struct observer){ .moment = AT_ONCE,
						     .state = &sparse,
						     .exited = on_exit_of });
	observers_forked(observers, AT_ONCE, 1, 2);
	observers_mapped(observers, 2, NULL, true);
	observers_executed(observers, AT_ONCE, 2);
	observers_forked(observers, WITH_RECORDS, 1, 2);
	observers_executed(observers, WITH_RECORDS, 2);
	observers_exited(observers, WITH_RECORDS, 2);
	observers_exited(observers, AT_ONCE, 2);
	observers_forgotten(observers, 2);
	assert_string_equal(with_records.text, "fork 1 2;exec 2 0;exit 2 0;forgotten 2 0;");
	assert_string_equal(at_once.text, "fork 1 2;mapped 2 1;exec 2 0;exit 2 0;forgotten 2 0;");
	assert_string_equal(sparse.text, "exit 2 0;");
	observers_free(observers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_refresh_reads_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_refresh_names_files, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_names_of_what_is_gone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_looks_for_names_end, set_up, tear_down),
		cmocka_unit_test(test_observers_are_called_at_their_moment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
