// SPDX-License-Identifier: GPL-2.0
/*
 * test_proc.c: the /proc readers against processes made for it, with names and paths that are as
 * awkward as the kernel lets them be. Witnesses: getrusage(2), fstat(2), dl_iterate_phdr(3).
 */
#define _GNU_SOURCE 1

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/proc.h"

#define PAGE 4096ul

static char directory[] = "/tmp/test_proc.XXXXXX";

struct child {
	pid_t pid;
	int ready; /* a byte comes when the child has set itself up */
};

/* A child that runs setup(), says so and waits to be killed. */
static struct child start(void (*setup)(const void *), const void *argument)
{
	struct child child;
	int pipes[2];
	char byte;

	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	child.pid = fork();
	assert_true(child.pid >= 0);
	if (child.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setup(argument);
		if (write(pipes[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(pipes[1]);
	assert_int_equal(read(pipes[0], &byte, 1), 1);
	child.ready = pipes[0];
	return child;
}

static void stop(struct child *child)
{
	kill(child->pid, SIGKILL);
	assert_int_equal(waitpid(child->pid, NULL, 0), child->pid);
	close(child->ready);
}

static void set_name(const void *name)
{
	prctl(PR_SET_NAME, name);
}

static void test_comm(void **state)
{
	static const char *const names[] = {
		"plain",
		"a) b",
		")",
		") R 1 1 1",
		"(((",
		"new\nline",
		"back\\slash",
		"\\n",
		"\\\\",
		"tab\there",
		" lead",
		"trail ",
		"\xc3\xa4\xff",
		"exactly15chars_",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct child child = start(set_name, names[i]);
		struct proc_stat stat;

		assert_int_equal(proc_stat_read(child.pid, 0, &stat), 0);
		assert_string_equal(stat.comm, names[i]);
		assert_int_equal(stat.ppid, getpid());
		assert_int_equal(stat.threads, 1);
		assert_non_null(strchr("SR", stat.state));
		assert_int_equal(proc_stat_read(child.pid, child.pid, &stat), 0);
		assert_string_equal(stat.comm, names[i]);
		stop(&child);
	}
}

static void test_faults(void **state)
{
	const size_t pages = 1009;
	struct proc_stat before, after;
	struct rusage usage_before, usage_after;
	char *memory = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);

	(void)state;
	assert_ptr_not_equal(memory, MAP_FAILED);
	madvise(memory, pages * PAGE, MADV_NOHUGEPAGE);
	getrusage(RUSAGE_SELF, &usage_before);
	assert_int_equal(proc_stat_read(getpid(), 0, &before), 0);
	for (size_t i = 0; i < pages; i++)
		memory[i * PAGE] = 1;
	assert_int_equal(proc_stat_read(getpid(), 0, &after), 0);
	getrusage(RUSAGE_SELF, &usage_after);
	assert_true(after.minor_faults - before.minor_faults >= pages);
	assert_true(after.minor_faults - before.minor_faults <=
		    (uint64_t)(usage_after.ru_minflt - usage_before.ru_minflt));
	assert_int_equal(after.start_ticks, before.start_ticks);
	assert_true(after.start_ticks > 0);
	assert_int_equal(after.stack_start, before.stack_start);
	/* The environment's strings are above the pointers to them, where the stack begins. */
	assert_true(after.stack_start > 0 && after.stack_start < (uintptr_t)environ[0]);
	munmap(memory, pages * PAGE);
}

static void *wait_at(void *barrier)
{
	pthread_barrier_wait(barrier);
	pthread_barrier_wait(barrier);
	return NULL;
}

/* A child that has touched this many pages more than the parent had. */
static void grow(const void *argument)
{
	size_t bytes = *(const size_t *)argument;
	char *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		_exit(1);
	memset(memory, 1, bytes);
	/* A name that looks like a line of the file. */
	prctl(PR_SET_NAME, "a\nVmRSS:\t7 kB");
}

/* Witness: /proc/PID/statm, which has pages. */
static uint64_t statm_rss(pid_t pid)
{
	unsigned long size, resident = 0;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/statm", pid);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%lu %lu", &size, &resident), 2);
	fclose(file);
	return resident * PAGE;
}

static void test_status(void **state)
{
	const size_t bytes = 1009 * PAGE;
	struct child child = start(grow, &bytes);
	struct proc_status status;

	(void)state;
	assert_int_equal(proc_status_read(child.pid, &status), 0);
	assert_int_equal(status.tgid, child.pid);
	assert_true(status.rss_bytes >= (int64_t)bytes);
	assert_int_equal(status.rss_bytes, statm_rss(child.pid));
	assert_int_equal(status.swap_bytes, 0);
	/* A dead process that is not reaped has no memory, and says so. */
	kill(child.pid, SIGKILL);
	assert_int_equal(waitid(P_PID, child.pid, &(siginfo_t){}, WEXITED | WNOWAIT), 0);
	assert_int_equal(proc_status_read(child.pid, &status), 0);
	assert_int_equal(status.tgid, child.pid);
	assert_int_equal(status.rss_bytes, -1);
	assert_int_equal(status.swap_bytes, -1);
	assert_int_equal(waitpid(child.pid, NULL, 0), child.pid);
	close(child.ready);
	assert_int_equal(proc_status_read(child.pid, &status), -ENOENT);
}

/* Who sleeps gets a CPU again after each sleep; who is stopped gets none. */
static void test_turns(void **state)
{
	const size_t bytes = 2 * PAGE;
	struct child child = start(grow, &bytes);
	uint64_t before = proc_turns(getpid(), gettid());
	siginfo_t info;
	int i;

	(void)state;
	assert_true(before > 0);
	kill(child.pid, SIGSTOP);
	assert_int_equal(waitid(P_PID, child.pid, &info, WSTOPPED | WNOWAIT), 0);
	for (i = 0; i < 13; i++)
		usleep(1000);
	assert_true(proc_turns(getpid(), gettid()) >= before + 13);
	before = proc_turns(child.pid, child.pid);
	assert_true(before > 0);
	usleep(1000);
	assert_int_equal(proc_turns(child.pid, child.pid), before);
	kill(child.pid, SIGKILL);
	assert_int_equal(waitpid(child.pid, NULL, 0), child.pid);
	close(child.ready);
	assert_int_equal(proc_turns(child.pid, child.pid), 0);
}

static void test_unescape(void **state)
{
	static const char *const cases[][2] = {
		{ "", "" },
		{ "plain rest", "plain" },
		{ "a\\040b\\011c\\012d\\134e\tfile", "a b\tc\nd\\e" },
		{ "\\377", "\377" },
		/* No escapes of the kernel's: left as they are, none read past the end. */
		{ "\\", "\\" },
		{ "\\0", "\\0" },
		{ "\\04", "\\04" },
		{ "\\089", "\\089" },
		{ "\\n", "\\n" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char *word = proc_unescape(cases[i][0]);

		assert_string_equal(word, cases[i][1]);
		free(word);
	}
}

static void test_threads(void **state)
{
	pthread_t threads[7];
	pthread_barrier_t barrier;
	struct proc_stat stat;

	(void)state;
	pthread_barrier_init(&barrier, NULL, 8);
	for (int i = 0; i < 7; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, wait_at, &barrier), 0);
	pthread_barrier_wait(&barrier);
	assert_int_equal(proc_stat_read(getpid(), 0, &stat), 0);
	assert_int_equal(stat.threads, 8);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < 7; i++)
		pthread_join(threads[i], NULL);
}

static void test_gone(void **state)
{
	struct child child = start(set_name, "zombie");
	struct proc_stat stat;
	struct maps maps;
	siginfo_t info;
	pid_t *pids;
	ssize_t count;
	char *text;

	(void)state;
	kill(child.pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)child.pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(proc_stat_read(child.pid, 0, &stat), 0);
	assert_int_equal(stat.state, 'Z');
	assert_true(proc_stat_has_ended(&stat));
	assert_int_equal(stat.exit_code, SIGKILL);
	assert_int_equal(maps_read(child.pid, &maps), -ESRCH);
	maps_free(&maps);
	count = proc_find_name("zombie", &pids);
	assert_int_equal(count, 0);
	free(pids);
	text = proc_cmdline(child.pid);
	assert_string_equal(text, "[zombie]");
	free(text);
	stop(&child);
	assert_int_equal(proc_stat_read(child.pid, 0, &stat), -ENOENT);
	assert_int_equal(maps_read(child.pid, &maps), -ENOENT);
	maps_free(&maps);
	assert_null(proc_cmdline(child.pid));
	assert_null(proc_exe(child.pid));
}

static int check_loaded(struct dl_phdr_info *info, size_t size, void *argument)
{
	const struct maps *maps = argument;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *phdr = &info->dlpi_phdr[i];
		const struct mapping *mapping;

		if (phdr->p_type != PT_LOAD || !(phdr->p_flags & PF_X))
			continue;
		mapping = maps_find(maps, info->dlpi_addr + phdr->p_vaddr);
		assert_non_null(mapping);
		assert_true(mapping->exec && mapping->read && !mapping->write && !mapping->shared);
		/* The vDSO has no file, and its program headers count from its own start. */
		if (mapping->inode)
			assert_int_equal(mapping->offset +
						 (info->dlpi_addr + phdr->p_vaddr - mapping->start),
					 phdr->p_offset);
	}
	return 0;
}

static void test_maps(void **state)
{
	/* Not the address of a variable: AddressSanitizer keeps those elsewhere. */
	uint64_t here = (uint64_t)__builtin_frame_address(0);
	struct maps maps;

	(void)state;
	assert_int_equal(maps_read(getpid(), &maps), 0);
	for (size_t i = 0; i < maps.count; i++) {
		assert_true(maps.entries[i].start < maps.entries[i].end);
		assert_true(i == 0 || maps.entries[i - 1].end <= maps.entries[i].start);
	}
	dl_iterate_phdr(check_loaded, &maps);
	assert_string_equal(maps_find(&maps, here)->path, "[stack]");
	assert_null(maps_find(&maps, 0));
	assert_null(maps_find(&maps, UINT64_MAX));
	assert_ptr_equal(maps_find(&maps, maps.entries[1].start), &maps.entries[1]);
	assert_ptr_equal(maps_find(&maps, maps.entries[0].end - 1), &maps.entries[0]);
	maps_free(&maps);
}

static uint64_t own_code(void)
{
	struct maps maps;
	uint64_t code;

	assert_int_equal(maps_read(getpid(), &maps), 0);
	code = maps_code(&maps);
	maps_free(&maps);
	return code;
}

/* Of code alone: other memory comes and goes all the time. */
static void test_maps_code(void **state)
{
	uint64_t before = own_code();
	void *data, *code;

	(void)state;
	data = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(data, MAP_FAILED);
	assert_int_equal(own_code(), before);
	code = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(code, MAP_FAILED);
	assert_int_not_equal(own_code(), before);
	munmap(code, PAGE);
	assert_int_equal(own_code(), before);
	munmap(data, PAGE);
}

/* Asked one by one and read as text: the same. */
static void test_both_ways(void **state)
{
	struct child child = start(set_name, "same");
	struct maps asked, text;
	size_t i;

	(void)state;
	assert_int_equal(maps_read(child.pid, &asked), 0);
	assert_int_equal(maps_read_text(child.pid, &text), 0);
	assert_true(asked.count > 4);
	assert_int_equal(asked.count, text.count);
	for (i = 0; i < asked.count; i++) {
		const struct mapping *a = &asked.entries[i], *b = &text.entries[i];

		assert_int_equal(a->start, b->start);
		assert_int_equal(a->end, b->end);
		assert_int_equal(a->offset, b->offset);
		assert_true(is_same_file(a, b));
		assert_string_equal(a->path, b->path);
		assert_true(a->read == b->read && a->write == b->write && a->exec == b->exec &&
			    a->shared == b->shared && a->deleted == b->deleted);
	}
	maps_free(&asked);
	maps_free(&text);
	stop(&child);
}

/* Files with code of this process, as its map has them in text; only some may be followed. */
static unsigned int count_code_files(void)
{
	g_autoptr(GHashTable) files = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	FILE *map = fopen("/proc/self/maps", "re");
	char line[8192], device[32], inode[32], flags[8];

	assert_non_null(map);
	while (fgets(line, sizeof(line), map))
		if (sscanf(line, "%*s %7s %*s %31s %31s", flags, device, inode) == 3 &&
		    flags[2] == 'x' && strcmp(inode, "0"))
			g_hash_table_add(files, g_strconcat(device, " ", inode, NULL));
	fclose(map);
	return g_hash_table_size(files);
}

static void map_files(const void *unused)
{
	const unsigned int files = MAPS_FILES_MAX + 101;
	char name[64];
	unsigned int i;
	int fd;

	(void)unused;
	for (i = 0; i < files; i++) {
		snprintf(name, sizeof(name), "code%u", i);
		fd = memfd_create(name, MFD_CLOEXEC);
		if (fd < 0 || ftruncate(fd, PAGE) ||
		    mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
			_exit(1);
		close(fd);
	}
}

static void test_more_files_than_are_followed(void **state)
{
	struct child child = start(map_files, NULL);
	unsigned int own = count_code_files();
	struct maps asked, text;

	(void)state;
	assert_int_equal(maps_read(child.pid, &asked), 0);
	assert_int_equal(maps_read_text(child.pid, &text), 0);
	assert_int_equal(asked.left_out, own + 101);
	assert_int_equal(text.left_out, own + 101);
	maps_free(&asked);
	maps_free(&text);
	stop(&child);
}

/* Names of pages each, which together may not fill memory: the last are cut, and not lost. */
static void map_long_names(const void *argument)
{
	char name[251], file[32];
	unsigned int i;
	int fd;

	memset(name, 'd', 250);
	name[250] = '\0';
	if (chdir(argument))
		_exit(1);
	for (i = 0; i < 15; i++)
		if ((mkdir(name, 0700) && errno != EEXIST) || chdir(name))
			_exit(1);
	for (i = 0; i < 2311; i++) {
		snprintf(file, sizeof(file), "file%u", i);
		fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		if (fd < 0 || mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED)
			_exit(1);
		close(fd);
		unlink(file);
	}
	for (i = 0; i < 15; i++)
		if (chdir("..") || rmdir(name))
			_exit(1);
}

static void test_long_names(void **state)
{
	struct child child = start(map_long_names, directory);
	unsigned int found = 0, whole = 0;
	size_t bytes = 0, i;
	struct maps maps;

	(void)state;
	assert_int_equal(maps_read(child.pid, &maps), 0);
	for (i = 0; i < maps.count; i++) {
		const char *last = strrchr(maps.entries[i].path, '/');

		if (!last || !g_str_has_prefix(last, "/file"))
			continue;
		found++;
		bytes += strlen(maps.entries[i].path);
		whole += !g_str_has_prefix(maps.entries[i].path, "/.../");
	}
	assert_int_equal(found, 2311);
	assert_true(whole > 0 && whole < 2311);
	assert_true(bytes <= MAPS_PATHS_MAX + 2311 * 16);
	maps_free(&maps);
	stop(&child);
}

/* Map a file named name in the test's directory, delete it if asked, and look it up again. */
static void check_file(const char *name, bool delete)
{
	const struct mapping *mapping;
	struct stat original, opened;
	struct maps maps;
	char path[512];
	void *memory;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 3 * PAGE), 0);
	assert_int_equal(fstat(fd, &original), 0);
	memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 2 * PAGE);
	assert_ptr_not_equal(memory, MAP_FAILED);
	close(fd);
	if (delete)
		unlink(path);
	assert_int_equal(maps_read(getpid(), &maps), 0);
	mapping = maps_find(&maps, (uint64_t)memory);
	assert_non_null(mapping);
	assert_string_equal(mapping->path, path);
	assert_int_equal(mapping->deleted, delete);
	assert_int_equal(mapping->offset, 2 * PAGE);
	assert_int_equal(mapping->inode, original.st_ino);
	assert_int_equal(mapping->dev_major, major(original.st_dev));
	assert_int_equal(mapping->dev_minor, minor(original.st_dev));
	assert_true(mapping->read && mapping->write && !mapping->exec && mapping->shared);
	fd = mapping_open(getpid(), mapping);
	if (delete &&fd < 0 && geteuid()) {
		/* What no name leads to is opened by /proc/PID/map_files alone: CAP_SYS_ADMIN. */
		assert_int_equal(fd, -EPERM);
	} else {
		assert_true(fd >= 0);
		assert_int_equal(fstat(fd, &opened), 0);
		assert_int_equal(opened.st_ino, original.st_ino);
		assert_int_equal(opened.st_dev, original.st_dev);
		close(fd);
	}
	maps_free(&maps);
	munmap(memory, PAGE);
	if (!delete)
		unlink(path);
}

static void test_file_names(void **state)
{
	static const char *const names[] = {
		"plain",    "with space", "two\nlines\n",  "back\\slash",
		"\\101",    "end ",	  "(paren)",	   "7f00-8f00 r-xp 0 0:0 1 x",
		"\xff\xfe", "\\01",	  "x (deleted) y",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		check_file(names[i], false);
		check_file(names[i], true);
	}
}

/* A file put in place of the mapped one must not be opened for it; devices are not opened. */
static void test_replaced_file(void **state)
{
	struct mapping mapping = { 0 };
	struct stat st;
	char path[512];
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "%s/replaced", directory);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	close(fd);
	/* No such range is mapped, so that only the path is left. */
	mapping.start = PAGE;
	mapping.end = 2 * PAGE;
	mapping.path = path;
	mapping.inode = st.st_ino;
	mapping.dev_major = major(st.st_dev);
	mapping.dev_minor = minor(st.st_dev);
	fd = mapping_open(getpid(), &mapping);
	assert_true(fd >= 0);
	close(fd);
	mapping.inode++;
	assert_int_equal(mapping_open(getpid(), &mapping), -ESTALE);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(mapping_open(getpid(), &mapping), -EINVAL);
	unlink(path);
	assert_int_equal(mapping_open(getpid(), &mapping), -ENOENT);
	mapping.inode = 0;
	assert_int_equal(mapping_open(getpid(), &mapping), -ENOENT);
}

/* A copy of a program under a long name, deleted while it runs. */
static pid_t start_copy(const char *path, int *out)
{
	int in[2], back[2];
	char byte = 'x';
	pid_t pid;

	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(back, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		dup2(in[0], 0);
		dup2(back[1], 1);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(path, "cat", "-u", "--", "-", NULL);
		_exit(127);
	}
	close(in[0]);
	close(back[1]);
	assert_int_equal(write(in[1], &byte, 1), 1);
	assert_int_equal(read(back[0], &byte, 1), 1);
	close(back[0]);
	*out = in[1];
	return pid;
}

static void expect_found(const char *name, pid_t pid, bool expected)
{
	bool found = false;
	pid_t *pids;
	ssize_t count = proc_find_name(name, &pids);

	assert_true(count >= 0);
	for (ssize_t i = 0; i < count; i++)
		found |= pids[i] == pid;
	free(pids);
	assert_int_equal(found, expected);
}

static void test_find_name(void **state)
{
	char path[512], command[1200], *text;
	int in;
	pid_t pid;

	(void)state;
	snprintf(path, sizeof(path), "%s/a very long) name", directory);
	snprintf(command, sizeof(command), "cp /bin/cat '%s'", path);
	assert_int_equal(system(command), 0);
	pid = start_copy(path, &in);
	text = proc_exe(pid);
	assert_string_equal(text, path);
	free(text);
	unlink(path);
	text = proc_exe(pid);
	assert_string_equal(text, path);
	free(text);
	text = proc_cmdline(pid);
	assert_string_equal(text, "cat -u -- -");
	free(text);
	expect_found("a very long) name", pid, true);
	expect_found("a very long) na", pid, true);
	expect_found("a very long) nax", pid, true); /* only 15 bytes can be compared */
	expect_found("a very long) n", pid, false);
	expect_found("a very long) n?", pid, false);
	expect_found("cat", pid, false);
	close(in);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	expect_found("a very long) name", pid, false);
	expect_found("test_proc", getpid(), false);
	expect_found("kthreadd", 2, false);
}

static void test_find_odd_names(void **state)
{
	struct child child = start(set_name, "odd\n) name");
	pid_t *pids;

	(void)state;
	expect_found("odd\n) name", child.pid, true);
	expect_found("odd", child.pid, false);
	assert_int_equal(proc_find_name("", &pids), -EINVAL);
	stop(&child);
}

static int make_directory(void **state)
{
	(void)state;
	return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
	(void)state;
	return rmdir(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_comm),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_status),
		cmocka_unit_test(test_turns),
		cmocka_unit_test(test_unescape),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_gone),
		cmocka_unit_test(test_maps),
		cmocka_unit_test(test_maps_code),
		cmocka_unit_test(test_both_ways),
		cmocka_unit_test(test_more_files_than_are_followed),
		cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_file_names),
		cmocka_unit_test(test_replaced_file),
		cmocka_unit_test(test_find_name),
		cmocka_unit_test(test_find_odd_names),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
