// SPDX-License-Identifier: GPL-2.0
/* test_watch_parts.c: addresses of this machine alone, pressure as the kernel tells it, the service manager. */
#include <glib.h>
#include <glib/gstdio.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "watch/listen_address.h"
#include "watch/notify.h"
#include "watch/psi.h"
#include "watch/target_set.h"

static void test_local_addresses(void **state)
{
	static const char *const local[] = { "127.0.0.1:9712", "127.1.2.3:0", "localhost:80",
					     "[::1]:65535", "unix:/run/a.sock" };
	static const char *const others[] = {
		"0.0.0.0:9712",
		"10.0.0.1:9712",
		"[::]:9712",
		"::1:9712",
		"9712",
		":9712",
		"127.0.0.1",
		"127.0.0.1:",
		"127.0.0.1:65536",
		"127.0.0.1:-1",
		"localhost.x:9712",
		"unix:relative",
		"unix:",
		"[::ffff:127.0.0.1]:1",
		"",
		"128.0.0.1:1",
	};
	struct listen_address address;
	size_t i;

	(void)state;
	for (i = 0; i < G_N_ELEMENTS(local); i++)
		if (!listen_address_parse(local[i], &address))
			fail_msg("%s was refused", local[i]);
	for (i = 0; i < G_N_ELEMENTS(others); i++)
		if (listen_address_parse(others[i], &address))
			fail_msg("%s was taken", others[i]);
}

/* A socket that was left is replaced; one that is used, and any other file, is not. */
static void test_unix_socket(void **state)
{
	g_autofree char *directory = g_dir_make_tmp("memtoll-listen-XXXXXX", NULL);
	g_autofree char *path = g_build_filename(directory, "sock", NULL);
	g_autofree char *text = g_strconcat("unix:", path, NULL);
	struct listen_address address;
	struct stat status;
	int first, second;

	(void)state;
	assert_true(listen_address_parse(text, &address));
	first = listen_address_open(&address);
	assert_true(first >= 0);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0660);
	assert_true(listen_address_open(&address) < 0);
	close(first);
	second = listen_address_open(&address);
	assert_true(second >= 0);
	close(second);
	unlink(path);
	assert_true(g_file_set_contents(path, "mine", -1, NULL));
	assert_true(listen_address_open(&address) < 0);
	assert_int_equal(unlink(path), 0);
	rmdir(directory);
}

static void test_pressure(void **state)
{
	g_autofree char *directory = g_dir_make_tmp("memtoll-psi-XXXXXX", NULL);
	g_autofree char *path = g_build_filename(directory, "memory", NULL);
	double percent = -1;

	(void)state;
	assert_false(psi_read_below(directory, "memory.some", &percent));
	assert_true(g_file_set_contents(path,
					"some avg10=12.34 avg60=0.17 avg300=1.11 total=58761459\n"
					"full avg10=5.00 avg60=0.00 avg300=0.00 total=1\n",
					-1, NULL));
	assert_true(psi_read_below(directory, "memory.some", &percent));
	assert_true(percent == 12.34);
	assert_true(psi_read_below(directory, "memory.full", &percent));
	assert_true(percent == 5);
	assert_false(psi_read_below(directory, "memory.all", &percent));
	assert_false(psi_read_below(directory, "../memory.some", &percent));
	unlink(path);
	rmdir(directory);
}

static void test_notify(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	g_autofree char *directory = g_dir_make_tmp("memtoll-notify-XXXXXX", NULL);
	g_autofree char *path = g_build_filename(directory, "notify", NULL);
	g_autofree char *pid = g_strdup_printf("%d", (int)getpid());
	char got[64] = "";
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	(void)state;
	notify_send("READY=1"); /* nobody asks */
	strcpy(address.sun_path, path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	setenv("NOTIFY_SOCKET", path, 1);
	notify_send("STATUS=%d", 7);
	assert_int_equal(recv(fd, got, sizeof(got) - 1, MSG_DONTWAIT), 8);
	assert_string_equal(got, "STATUS=7");
	setenv("WATCHDOG_USEC", "3000000", 1);
	setenv("WATCHDOG_PID", pid, 1);
	assert_int_equal(notify_watchdog_ns(), 1500000000);
	setenv("WATCHDOG_PID", "1", 1);
	assert_int_equal(notify_watchdog_ns(), 0);
	close(fd);
	unlink(path);
	rmdir(directory);
}

static struct target_set *set_of(const char *first, const char *second)
{
	struct target_set *set = target_set_new();

	assert_true(target_set_add_name(set, first));
	if (second)
		assert_true(target_set_add_cgroup(set, second));
	return set;
}

static struct target_set *set_of_many(const char *prefix, guint count)
{
	struct target_set *set = target_set_new();
	guint i;

	for (i = 0; i < count; i++) {
		g_autofree char *name = g_strdup_printf("%s%u", prefix, i);

		assert_true(target_set_add_name(set, name));
	}
	return set;
}

/* Numbers that were told stay, whoever comes and goes. */
static void test_other_targets(void **state)
{
	struct target_set *set = set_of("a", NULL), *same = set_of("a", NULL);
	struct target_set *more = set_of("b", "a");

	(void)state;
	assert_false(target_set_become(set, same));
	assert_true(target_set_become(set, more));
	assert_false(target_set_become(set, more));
	assert_int_equal(target_set_count(set), 2);
	assert_string_equal(target_set_label(set, 0), "a");
	assert_string_equal(target_set_label(set, 1), "b");
	assert_int_equal(target_set_first(set), 0);
	target_set_free(more);
	more = set_of("b", NULL);
	assert_true(target_set_become(set, more));
	assert_int_equal(target_set_count(set), 2);
	assert_int_equal(target_set_first(set), 1);
	assert_true(target_set_become(set, same));
	assert_int_equal(target_set_first(set), 0);
	assert_int_equal(target_set_number(set, 0), 0);
	assert_int_equal(target_set_number(set, 1), 1);
	target_set_free(more);
	target_set_free(same);
	target_set_free(set);
}

/* Only who is looked for counts: others make room, the first of them first, and no more than needed. */
static void test_as_many_other_targets(void **state)
{
	struct target_set *set = set_of_many("a", TARGETS_MAX - 1);
	struct target_set *others = set_of_many("b", TARGETS_MAX), *two = set_of("a5", "d");
	guint i;

	(void)state;
	assert_false(target_set_add_name(others, "c"));
	/* One comes, and all but one go: there is room for all. */
	assert_true(target_set_become(set, two));
	assert_int_equal(target_set_count(set), TARGETS_MAX);
	assert_int_equal(target_set_number(set, TARGETS_MAX - 1), TARGETS_MAX - 1);
	assert_true(target_set_become(set, others));
	assert_int_equal(target_set_count(set), TARGETS_MAX);
	for (i = 0; i < TARGETS_MAX; i++) {
		assert_string_equal(target_set_label(set, i), target_set_label(others, i));
		assert_int_equal(target_set_number(set, i), TARGETS_MAX + i);
	}
	/* Who comes back is a new one. The one that is looked for stays, whoever makes room. */
	target_set_free(two);
	two = set_of("b0", "a5");
	assert_true(target_set_become(set, two));
	assert_int_equal(target_set_count(set), TARGETS_MAX);
	assert_int_equal(target_set_number(set, 0), TARGETS_MAX);
	assert_string_equal(target_set_label(set, 1), "b2");
	assert_string_equal(target_set_label(set, TARGETS_MAX - 1), "a5");
	assert_int_equal(target_set_number(set, TARGETS_MAX - 1), 2 * TARGETS_MAX);
	target_set_free(two);
	target_set_free(others);
	target_set_free(set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_local_addresses),
		cmocka_unit_test(test_unix_socket),
		cmocka_unit_test(test_pressure),
		cmocka_unit_test(test_notify),
		cmocka_unit_test(test_other_targets),
		cmocka_unit_test(test_as_many_other_targets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
