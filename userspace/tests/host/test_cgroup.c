// SPDX-License-Identifier: GPL-2.0
/*
 * test_cgroup.c: which group accounts a process's memory, and its limits. Version 1 or 2 for real,
 * whichever the machine's memory controller has, in groups made for it (as root); both, and what a
 * container sees, in a faked tree.
 */
#define _GNU_SOURCE 1
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/cgroup.h"
#include "recording/machine_facts.h"
#include "recording/recording.h"
#include "trees.h"

#define PAGE 4096ul
#define MIB (1ul << 20)
#define PID 4242

static char *fake; /* stands for the root directory */

static void write_file(const char *directory, const char *name, const char *text)
{
	g_autofree char *path = g_build_filename(directory, name, NULL);
	g_autofree char *parent = g_path_get_dirname(path);

	assert_int_equal(g_mkdir_with_parents(parent, 0700), 0);
	assert_true(g_file_set_contents(path, text, -1, NULL));
}

/* A group of the faked tree: files "name=value", separated by blanks. */
static void make_group(const char *path, const char *files)
{
	g_autofree char *directory = g_strconcat(fake, path, NULL);
	g_auto(GStrv) words = g_strsplit(files, " ", -1);
	size_t i;

	write_file(directory, "cgroup.procs", "");
	for (i = 0; words[i] && *words[i]; i++) {
		char *value = strchr(words[i], '=');

		*value++ = '\0';
		write_file(directory, words[i], value);
	}
}

static void make_process(const char *cgroups, const char *mounts)
{
	g_autofree char *file = g_strdup_printf("proc/%d/cgroup", PID);
	g_autofree char *status = g_strdup_printf("proc/%d/status", PID);

	write_file(fake, file, cgroups);
	write_file(fake, status, "Name:\tx\nTgid:\t4242\nVmSize:\t 8 kB\nVmRSS:\t 4 kB\n");
	write_file(fake, "proc/self/mountinfo", mounts);
}

static int make_fake(void **state)
{
	(void)state;
	fake = g_dir_make_tmp("memtoll-cgroup-XXXXXX", NULL);
	return fake ? 0 : -1;
}

static int remove_fake(void **state)
{
	(void)state;
	remove_tree(fake);
	g_clear_pointer(&fake, g_free);
	return 0;
}

static void assert_directory(const struct memory_cgroup *group, const char *expected)
{
	g_autofree char *path = g_strconcat(fake, expected, NULL);

	assert_string_equal(group->directory, path);
}

static const char unified[] =
	"22 27 0:21 / /proc rw,relatime - proc proc rw\n"
	"31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";

static void test_unified(void **state)
{
	struct memory_cgroup group;

	(void)state;
	make_process("0::/system.slice/db.service/pool\n", unified);
	make_group("/sys/fs/cgroup", "");
	make_group("/sys/fs/cgroup/system.slice", "memory.max=1000000007 memory.high=max"
						  " memory.swap.max=70000003");
	make_group("/sys/fs/cgroup/system.slice/db.service", "memory.max=max memory.high=700000001"
							     " memory.swap.max=max");
	make_group("/sys/fs/cgroup/system.slice/db.service/pool",
		   "memory.max=900000011"
		   " memory.high=max memory.swap.max=90000049 memory.current=123457"
		   " memory.peak=234571");
	assert_true(cgroup_of_process_below(fake, PID, &group));
	assert_int_equal(group.version, 2);
	assert_string_equal(group.path, "/system.slice/db.service/pool");
	assert_directory(&group, "/sys/fs/cgroup/system.slice/db.service/pool");
	assert_int_equal(group.limit_bytes, 700000001);
	assert_string_equal(group.limit_path, "/system.slice/db.service");
	assert_int_equal(group.swap_limit_bytes, 70000003);
	assert_int_equal(group.usage_bytes, 123457);
	assert_int_equal(group.peak_bytes, 234571);
	memory_cgroup_free(&group);
}

/* No limit anywhere, no peak (Linux before 5.19), and no memory files at all in the root. */
static void test_unlimited(void **state)
{
	struct memory_cgroup group;

	(void)state;
	make_process("0::/\n", unified);
	make_group("/sys/fs/cgroup", "");
	assert_true(cgroup_of_process_below(fake, PID, &group));
	assert_string_equal(group.path, "/");
	assert_directory(&group, "/sys/fs/cgroup");
	assert_int_equal(group.limit_bytes, -1);
	assert_null(group.limit_path);
	assert_int_equal(group.swap_limit_bytes, -1);
	assert_int_equal(group.usage_bytes, -1);
	assert_int_equal(group.peak_bytes, -1);
	memory_cgroup_free(&group);

	make_process("0::/a\n", unified);
	make_group("/sys/fs/cgroup/a", "memory.max=max memory.high=max memory.swap.max=max"
				       " memory.current=7");
	assert_true(cgroup_of_process_below(fake, PID, &group));
	assert_int_equal(group.limit_bytes, -1);
	assert_int_equal(group.swap_limit_bytes, -1);
	assert_int_equal(group.usage_bytes, 7);
	assert_int_equal(group.peak_bytes, -1);
	memory_cgroup_free(&group);
}

/* 0 is a limit, too: no swap. */
static void test_no_swap_allowed(void **state)
{
	struct memory_cgroup group;

	(void)state;
	make_process("0::/a\n", unified);
	make_group("/sys/fs/cgroup", "");
	make_group("/sys/fs/cgroup/a", "memory.max=1009 memory.swap.max=0");
	assert_true(cgroup_of_process_below(fake, PID, &group));
	assert_int_equal(group.limit_bytes, 1009);
	assert_int_equal(group.swap_limit_bytes, 0);
	memory_cgroup_free(&group);
}

static const char legacy[] =
	"31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
	"32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
	"35 31 0:32 / /sys/fs/cgroup/memory\\040and\\040more rw shared:7 master:2 - cgroup cgroup"
	" rw,hugetlb,memory\n"
	"41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

static void test_legacy(void **state)
{
	struct memory_cgroup group;

	(void)state;
	make_process("9:name=systemd:/init\n0::/elsewhere\n4:hugetlb,memory:/box:1/in\n1:cpu:/\n",
		     legacy);
	make_group("/sys/fs/cgroup/memory and more",
		   "memory.limit_in_bytes=9223372036854771712"
		   " memory.memsw.limit_in_bytes=9223372036854771712");
	make_group("/sys/fs/cgroup/memory and more/box:1",
		   "memory.limit_in_bytes=83886080"
		   " memory.memsw.limit_in_bytes=104857600");
	make_group("/sys/fs/cgroup/memory and more/box:1/in",
		   "memory.limit_in_bytes=9223372036854771712"
		   " memory.memsw.limit_in_bytes=9223372036854771712"
		   " memory.usage_in_bytes=40009728 memory.max_usage_in_bytes=83886080");
	make_group("/sys/fs/cgroup/unified/elsewhere", "memory.max=5");
	assert_true(cgroup_of_process_below(fake, PID, &group));
	assert_int_equal(group.version, 1);
	assert_string_equal(group.path, "/box:1/in");
	assert_int_equal(group.limit_bytes, 83886080);
	assert_string_equal(group.limit_path, "/box:1");
	assert_int_equal(group.swap_limit_bytes, 20971520);
	assert_int_equal(group.usage_bytes, 40009728);
	assert_int_equal(group.peak_bytes, 83886080);
	memory_cgroup_free(&group);
}

/*
 * In a container: the mount shows one group's part of the hierarchy only. What limits it from
 * above version 1 tells all the same, but not which group that is.
 */
static void test_container(void **state)
{
	struct memory_cgroup group;

	(void)state;
	make_process("4:memory:/docker/c0ffee/worker\n",
		     "40 30 0:32 /docker/c0ffee /sys/fs/cgroup/memory ro - cgroup cgroup"
		     " rw,memory\n");
	make_group("/sys/fs/cgroup/memory", "memory.limit_in_bytes=700000001"
					    " memory.memsw.limit_in_bytes=800000011");
	make_group("/sys/fs/cgroup/memory/worker", "memory.limit_in_bytes=9223372036854771712");
	assert_true(cgroup_of_process_below(fake, PID, &group));
	assert_string_equal(group.path, "/docker/c0ffee/worker");
	assert_directory(&group, "/sys/fs/cgroup/memory/worker");
	assert_int_equal(group.limit_bytes, 700000001);
	assert_string_equal(group.limit_path, "/docker/c0ffee");
	assert_int_equal(group.swap_limit_bytes, 100000010);
	memory_cgroup_free(&group);

	write_file(fake, "sys/fs/cgroup/memory/worker/memory.stat",
		   "cache 5\nhierarchical_memory_limit 500000003\n"
		   "hierarchical_memsw_limit 9223372036854771712\ntotal_pgfault 7\n");
	assert_true(cgroup_of_process_below(fake, PID, &group));
	assert_int_equal(group.limit_bytes, 500000003);
	assert_null(group.limit_path);
	assert_int_equal(group.swap_limit_bytes, 300000008);
	memory_cgroup_free(&group);
}

/* Groups that the mounts do not show: the path is known, nothing else. */
static void test_out_of_sight(void **state)
{
	static const char *const paths[] = {
		"4:memory:/docker/c0ffee2\n",	  "4:memory:/\n",
		"4:memory:/../other\n",		  "4:memory:/docker/c0ffee/../beef\n",
		"4:memory:/docker/c0ffee/gone\n",
	};
	struct memory_cgroup group;
	size_t i;

	(void)state;
	make_group("/sys/fs/cgroup/memory", "memory.limit_in_bytes=700000001");
	make_group("/sys/fs/cgroup/beef", "memory.limit_in_bytes=5");
	for (i = 0; i < G_N_ELEMENTS(paths); i++) {
		make_process(paths[i], "40 30 0:32 /docker/c0ffee /sys/fs/cgroup/memory ro - cgroup"
				       " cgroup rw,memory\n");
		assert_true(cgroup_of_process_below(fake, PID, &group));
		assert_int_equal(group.version, 1);
		assert_null(group.directory);
		assert_int_equal(group.limit_bytes, -1);
		assert_int_equal(group.usage_bytes, -1);
		memory_cgroup_free(&group);
	}
}

/* Of several mounts, the one that shows most. */
static void test_two_mounts(void **state)
{
	struct memory_cgroup group;

	(void)state;
	make_process("0::/a/b\n", "40 30 0:32 /a /mnt/part rw - cgroup2 none rw\n"
				  "41 30 0:32 / /mnt/whole rw - cgroup2 none rw\n"
				  "42 30 0:32 /a/b /mnt/leaf rw - cgroup2 none rw\n");
	make_group("/mnt/part/b", "");
	make_group("/mnt/leaf", "");
	make_group("/mnt/whole", "");
	make_group("/mnt/whole/a", "memory.max=300007");
	make_group("/mnt/whole/a/b", "memory.max=max");
	assert_true(cgroup_of_process_below(fake, PID, &group));
	assert_directory(&group, "/mnt/whole/a/b");
	assert_int_equal(group.limit_bytes, 300007);
	assert_string_equal(group.limit_path, "/a");
	memory_cgroup_free(&group);
}

static void test_odd_files(void **state)
{
	static const char *const cgroups[] = {
		"",	     "\n",  ":",	 "::",	 "4:memory",
		"4:memory:", "0::", "0:cpu:/\n", "x\0y", "7:memory:relative\n"
	};
	static const char *const mounts[] = { "",
					      " - ",
					      "- cgroup2 ",
					      "1 2 3 4 5 6 - cgroup2\n",
					      "1 2 3 - cgroup2 none rw\n",
					      "1 2 3:4 \\ \\04 rw - cgroup2 \n" };
	struct memory_cgroup group;
	size_t i;

	(void)state;
	assert_false(cgroup_of_process_below(fake, PID, &group));
	memory_cgroup_free(&group);
	for (i = 0; i < G_N_ELEMENTS(cgroups); i++) {
		make_process(cgroups[i], unified);
		assert_false(cgroup_of_process_below(fake, PID, &group));
		assert_null(group.path);
		memory_cgroup_free(&group);
	}
	for (i = 0; i < G_N_ELEMENTS(mounts); i++) {
		make_process("0::/\n", mounts[i]);
		assert_true(cgroup_of_process_below(fake, PID, &group));
		assert_null(group.directory);
		memory_cgroup_free(&group);
	}
}

/* A dead process is in the root, the kernel says, but that is not where its memory was. */
static void test_dead(void **state)
{
	struct memory_cgroups *groups;
	struct memory_cgroup group;
	const char *path;
	pid_t child;

	(void)state;
	make_process("0::/a\n", unified);
	groups = memory_cgroups_new_below(fake);
	path = memory_cgroups_of(groups, PID, NULL);
	assert_string_equal(path, "/a");
	make_process("0::/\n", unified);
	write_file(fake, "proc/4242/status", "Name:\tx\nState:\tZ (zombie)\nTgid:\t4242\n");
	assert_null(memory_cgroups_of(groups, PID, path));
	assert_false(cgroup_of_process_below(fake, PID, &group));
	memory_cgroup_free(&group);
	memory_cgroups_free(groups);

	child = fork();
	if (!child)
		_exit(0);
	assert_int_equal(waitid(P_PID, child, &(siginfo_t){}, WEXITED | WNOWAIT), 0);
	assert_false(cgroup_of_process(child, &group));
	memory_cgroup_free(&group);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

/* ---- counters ---- */

static int64_t query(struct recording *recording, const char *sql)
{
	sqlite3_stmt *statement = NULL;
	int64_t value = INT64_MIN; /* no row, or NULL */

	assert_int_equal(sqlite3_prepare_v2(recording_database(recording), sql, -1, &statement,
					    NULL),
			 SQLITE_OK);
	if (sqlite3_step(statement) == SQLITE_ROW &&
	    sqlite3_column_type(statement, 0) != SQLITE_NULL)
		value = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return value;
}

static int64_t counter(struct recording *recording, const char *name)
{
	g_autofree char *sql = g_strdup_printf("SELECT value FROM memory_cgroup_counter"
					       " WHERE path = '/a' AND name = '%s'",
					       name);

	return query(recording, sql);
}

static void test_counters(void **state)
{
	struct memory_cgroups *groups;
	struct recording *recording = recording_create(NULL, false);
	g_autofree char *directory = g_strconcat(fake, "/sys/fs/cgroup/a", NULL);
	g_autofree char *aside = g_strconcat(fake, "/sys/fs/cgroup/old", NULL);
	const char *path;

	(void)state;
	assert_non_null(recording);
	make_process("0::/a\n", unified);
	make_group("/sys/fs/cgroup", "");
	make_group("/sys/fs/cgroup/a", "memory.max=1009");
	write_file(directory, "memory.stat", "anon 5\npgfault 100003\npswpin 17\nfile 3\n");
	groups = memory_cgroups_new_below(fake);
	assert_string_equal(memory_cgroups_of(groups, PID, NULL), "/a");
	assert_null(memory_cgroups_of(groups, PID + 1, NULL));

	write_file(directory, "memory.stat", "anon 7\npgfault 100110\npswpin 30\nfile 3\n");
	path = memory_cgroups_of(groups, PID, NULL);
	assert_ptr_equal(memory_cgroups_of(groups, PID, NULL), path);
	assert_ptr_equal(memory_cgroups_of(groups, PID, path), path);
	assert_int_equal(memory_cgroups_record(groups, recording), 0);
	assert_int_equal(counter(recording, "pgfault"), 107);
	assert_int_equal(counter(recording, "pswpin"), 13);
	assert_int_equal(query(recording, "SELECT COUNT(*) FROM memory_cgroup_counter"), 2);
	assert_int_equal(query(recording, "SELECT limit_bytes FROM memory_cgroup"), 1009);

	/* Limits are read again; rows are replaced. */
	write_file(directory, "memory.max", "2003");
	write_file(directory, "memory.stat", "pgfault 100204\npswpin 30\n");
	assert_int_equal(memory_cgroups_record(groups, recording), 0);
	assert_int_equal(counter(recording, "pgfault"), 201);
	assert_int_equal(query(recording, "SELECT limit_bytes FROM memory_cgroup"), 2003);

	/* Removed: what was known stays. Made again: it counts on. */
	assert_int_equal(g_rename(directory, aside), 0);
	assert_int_equal(memory_cgroups_record(groups, recording), 0);
	assert_int_equal(counter(recording, "pgfault"), 201);
	assert_int_equal(query(recording, "SELECT limit_bytes FROM memory_cgroup"), 2003);
	make_group("/sys/fs/cgroup/a", "memory.max=max");
	write_file(directory, "memory.stat", "pgfault 11\npswpin 2\n");
	assert_int_equal(memory_cgroups_record(groups, recording), 0);
	assert_int_equal(counter(recording, "pgfault"), 212);
	assert_int_equal(counter(recording, "pswpin"), 15);
	assert_int_equal(query(recording, "SELECT limit_bytes FROM memory_cgroup"), INT64_MIN);
	memory_cgroups_free(groups);
	recording_close(recording);
}

/* Version 1 has figures of the group alone and, with a prefix, of all below: the latter count. */
static void test_legacy_counters(void **state)
{
	struct memory_cgroups *groups;
	struct recording *recording = recording_create(NULL, false);
	g_autofree char *directory = g_strconcat(fake, "/m/a", NULL);

	(void)state;
	assert_non_null(recording);
	make_process("4:memory:/a\n", "35 31 0:32 / /m rw - cgroup cgroup rw,memory\n");
	make_group("/m/a", "");
	write_file(directory, "memory.stat", "pgfault 5\ntotal_pgfault 1009\n");
	groups = memory_cgroups_new_below(fake);
	assert_string_equal(memory_cgroups_of(groups, PID, NULL), "/a");
	write_file(directory, "memory.stat", "pgfault 6\ntotal_pgfault 2012\ntotal_rss 3\n");
	assert_int_equal(memory_cgroups_record(groups, recording), 0);
	assert_int_equal(counter(recording, "pgfault"), 1003);
	assert_int_equal(query(recording, "SELECT COUNT(*) FROM memory_cgroup_counter"), 1);
	assert_int_equal(query(recording, "SELECT version FROM memory_cgroup"), 1);
	memory_cgroups_free(groups);
	recording_close(recording);
}

/* ---- this machine's ---- */

struct real {
	bool legacy;
	char *outer, *inner; /* directories, one in the other */
	char *path;	     /* of the inner one in its hierarchy */
	pid_t child;
	int ready;
};

static struct real real;

static bool set(const char *directory, const char *file, const char *value)
{
	g_autofree char *path = g_build_filename(directory, file, NULL);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && write(fd, value, strlen(value)) == (ssize_t)strlen(value);

	if (fd >= 0)
		close(fd);
	return done;
}

/* Where the machine has its memory controller, by the usual places. */
static int make_real(void **state)
{
	static const char legacy_root[] = "/sys/fs/cgroup/memory";
	g_autofree char *name = g_strdup_printf("memtoll-unit-%d", (int)getpid());

	(void)state;
	memset(&real, 0, sizeof(real));
	real.ready = -1;
	real.legacy =
		g_file_test("/sys/fs/cgroup/memory/memory.limit_in_bytes", G_FILE_TEST_EXISTS);
	if (geteuid() ||
	    (!real.legacy && !g_file_test("/sys/fs/cgroup/cgroup.controllers", G_FILE_TEST_EXISTS)))
		return 0;
	if (!real.legacy)
		set("/sys/fs/cgroup", "cgroup.subtree_control", "+memory");
	real.outer = g_build_filename(real.legacy ? legacy_root : "/sys/fs/cgroup", name, NULL);
	real.inner = g_build_filename(real.outer, "in", NULL);
	real.path = g_strconcat("/", name, "/in", NULL);
	if (mkdir(real.outer, 0755) || mkdir(real.inner, 0755) ||
	    (!real.legacy && !set(real.outer, "cgroup.subtree_control", "+memory")))
		g_clear_pointer(&real.path, g_free);
	return 0;
}

static int remove_real(void **state)
{
	(void)state;
	if (real.child > 0) {
		kill(real.child, SIGKILL);
		waitpid(real.child, NULL, 0);
	}
	if (real.ready >= 0)
		close(real.ready);
	/* A group is busy until its last process is all gone, which wait() does not wait for. */
	while (real.inner && rmdir(real.inner) && errno == EBUSY)
		sched_yield();
	while (real.outer && rmdir(real.outer) && errno == EBUSY)
		sched_yield();
	g_free(real.outer);
	g_free(real.inner);
	g_free(real.path);
	return 0;
}

static long faults_so_far(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt;
}

/* A child in the inner group; on request it touches 1009 pages and reports its faults. */
static int start_child(void)
{
	int go[2], done[2];
	long faults;
	char byte;

	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	assert_int_equal(pipe2(done, O_CLOEXEC), 0);
	real.child = fork();
	assert_true(real.child >= 0);
	if (!real.child) {
		char *memory;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!set(real.inner, "cgroup.procs", "0") || write(done[1], "x", 1) != 1 ||
		    read(go[0], &byte, 1) != 1)
			_exit(1);
		faults = faults_so_far();
		memory = mmap(NULL, 1009 * PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		madvise(memory, 1009 * PAGE, MADV_NOHUGEPAGE);
		memset(memory, 1, 1009 * PAGE);
		faults = faults_so_far() - faults;
		if (write(done[1], &faults, sizeof(faults)) != sizeof(faults))
			_exit(1);
		for (;;)
			pause();
	}
	close(go[0]);
	close(done[1]);
	real.ready = done[0];
	assert_int_equal(read(real.ready, &byte, 1), 1);
	return go[1];
}

static void test_real(void **state)
{
	struct recording *recording;
	struct memory_cgroups *groups;
	struct memory_cgroup group;
	g_autofree char *outer_path = NULL, *sql = NULL;
	char *limit_file = real.legacy ? "memory.limit_in_bytes" : "memory.max";
	/* The kernel sums up late: 64 of each CPU may not be in yet (MEMCG_CHARGE_BATCH). */
	long faults, late = 64 * sysconf(_SC_NPROCESSORS_CONF) + 16;
	int go;

	(void)state;
	if (!real.path)
		skip(); /* no right to make groups, or no memory controller */
	outer_path = g_path_get_dirname(real.path);
	assert_true(set(real.outer, limit_file, "83886080"));
	go = start_child();
	assert_true(cgroup_of_process(real.child, &group));
	assert_int_equal(group.version, real.legacy ? 1 : 2);
	assert_string_equal(group.path, real.path);
	assert_string_equal(group.directory, real.inner);
	assert_int_equal(group.limit_bytes, 80 * MIB);
	assert_string_equal(group.limit_path, outer_path);
	memory_cgroup_free(&group);
	assert_int_equal(cgroup_memory_limit(real.inner), 80 * MIB);

	/* The inner one's is lower now; the kernel's own figure must not confuse. */
	assert_true(set(real.inner, limit_file, "50003968"));
	assert_true(cgroup_of_process(real.child, &group));
	assert_int_equal(group.limit_bytes, 50003968);
	assert_string_equal(group.limit_path, real.path);
	memory_cgroup_free(&group);

	recording = recording_create(NULL, false);
	assert_non_null(recording);
	groups = memory_cgroups_new();
	assert_string_equal(memory_cgroups_of(groups, real.child, NULL), real.path);
	assert_int_equal(write(go, "x", 1), 1);
	close(go);
	assert_int_equal(read(real.ready, &faults, sizeof(faults)), sizeof(faults));
	assert_true(faults >= 1009);
	assert_int_equal(memory_cgroups_record(groups, recording), 0);
	assert_in_range(query(recording, "SELECT usage_bytes FROM memory_cgroup"), 1009 * PAGE,
			80 * MIB);
	if (query(recording, "SELECT peak_bytes FROM memory_cgroup") != INT64_MIN)
		assert_in_range(query(recording, "SELECT peak_bytes FROM memory_cgroup"),
				1009 * PAGE, 80 * MIB);
	sql = g_strdup_printf("SELECT value FROM memory_cgroup_counter WHERE path = '%s' AND"
			      " name = 'pgfault'",
			      real.path);
	assert_in_range(query(recording, sql), faults - MIN(faults, late), faults + late);
	memory_cgroups_free(groups);
	recording_close(recording);
}

static void test_find(void **state)
{
	g_autofree char *name = NULL, *found = NULL;
	g_autoptr(GArray) pids = g_array_new(FALSE, FALSE, sizeof(pid_t));

	(void)state;
	assert_null(cgroup_find("/no/such/group"));
	assert_null(cgroup_find("no-such-group"));
	if (!real.path)
		skip();
	found = cgroup_find(real.inner);
	assert_string_equal(found, real.inner);
	g_clear_pointer(&found, g_free);
	found = cgroup_find(real.path);
	assert_string_equal(found, real.inner);
	g_clear_pointer(&found, g_free);
	found = cgroup_find(real.path + 1);
	assert_string_equal(found, real.inner);
	g_clear_pointer(&found, g_free);
	/* Below /sys/fs/cgroup, with the hierarchy's name. */
	name = g_strdup(real.inner + strlen("/sys/fs/cgroup/"));
	found = cgroup_find(name);
	assert_string_equal(found, real.inner);

	close(start_child());
	assert_int_equal(cgroup_processes(real.outer, pids), 0);
	assert_int_equal(pids->len, 1);
	assert_int_equal(g_array_index(pids, pid_t, 0), real.child);
	assert_int_equal(cgroup_processes("/no/such/group", pids), -ENOENT);
}

#define FAKED(test) cmocka_unit_test_setup_teardown(test, make_fake, remove_fake)
#define REAL(test) cmocka_unit_test_setup_teardown(test, make_real, remove_real)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FAKED(test_unified),	FAKED(test_unlimited),	     FAKED(test_no_swap_allowed),
		FAKED(test_legacy),	FAKED(test_container),	     FAKED(test_out_of_sight),
		FAKED(test_two_mounts), FAKED(test_odd_files),	     FAKED(test_dead),
		FAKED(test_counters),	FAKED(test_legacy_counters), REAL(test_real),
		REAL(test_find),
	};

	alarm(100); /* a hang is a failure */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
