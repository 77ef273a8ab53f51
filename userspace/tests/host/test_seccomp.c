// SPDX-License-Identifier: GPL-2.0
/* test_seccomp.c: who is confined, and which kernels end whoever is at a return probe. */
#define _GNU_SOURCE 1

#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "host/seccomp.h"

static void test_confined(void **state)
{
	pid_t pid;

	(void)state;
	assert_false(seccomp_confines(getpid()));
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* A line that its name makes is none. */
		prctl(PR_SET_NAME, "a\nSeccomp: 0");
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
		for (;;)
			;
	}
	assert_true(pid > 0);
	while (!seccomp_confines(pid))
		assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_false(seccomp_confines(pid));
}

static void test_kernels(void **state)
{
	struct utsname machine;
	int major, minor;

	(void)state;
	assert_int_equal(uname(&machine), 0);
	assert_int_equal(sscanf(machine.release, "%d.%d", &major, &minor), 2);
	/* Between them it depends on the stable release and the distribution. */
	if (major * 1000 + minor < 6011 || major * 1000 + minor >= 6014) {
		assert_false(seccomp_may_refuse_returns());
		assert_false(seccomp_refuses_returns());
	}
	assert_int_equal(seccomp_refuses_returns(), seccomp_refuses_returns());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_confined),
		cmocka_unit_test(test_kernels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
