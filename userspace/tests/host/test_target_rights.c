// SPDX-License-Identifier: GPL-2.0
/* Rights of a process, where ours cannot be changed to them, as in a container. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "host/privileges.h"
#include "host/target_rights.h"

/* In a child, as rights are not given back. */
static bool may_take(unsigned int user, enum privileges kept)
{
	const struct target_rights rights = { .user = user, .group = user };
	pid_t pid = fork();
	int status;

	if (!pid) {
		privileges_keep(kept);
		_exit(target_rights_take(&rights) ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return !WEXITSTATUS(status);
}

static void test_root_that_may_not_change_its_ids(void **state)
{
	(void)state;
	if (geteuid())
		skip();
	assert_true(may_take(0, PRIVILEGES_LEAVE));
	assert_true(may_take(RIGHTS_NOBODY, PRIVILEGES_LEAVE));
	assert_true(may_take(0, PRIVILEGES_READ));
	assert_false(may_take(RIGHTS_NOBODY, PRIVILEGES_READ));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_root_that_may_not_change_its_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
