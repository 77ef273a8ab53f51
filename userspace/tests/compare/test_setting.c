// SPDX-License-Identifier: GPL-2.0
/* test_setting.c: what becomes of variables that are set already, and of `env VAR=... prog`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "compare/setting.h"

static void merged(const char *name, const char *before, const char *value, const char *wanted)
{
	g_autofree char *is = setting_merge(name, before, value);

	assert_string_equal(is, wanted);
}

static void lists_keep_what_is_not_named(void **state)
{
	const char *tunables = "GLIBC_TUNABLES";

	(void)state;
	merged(tunables, NULL, "a.b=1", "a.b=1");
	merged(tunables, "", "a.b=1", "a.b=1");
	merged(tunables, "a.b=2:a.bc=3", "a.b=1", "a.bc=3:a.b=1");
	merged(tunables, "c=1:a=2:d=3:a=4", "a=1:b=2", "c=1:d=3:a=1:b=2");
	merged(tunables, "a=1", "", "");
	merged("MALLOC_CONF", "narenas:1,dirty_decay_ms:0", "dirty_decay_ms:-1",
	       "narenas:1,dirty_decay_ms:-1");
	merged("_RJEM_MALLOC_CONF", "narenas:1", "dirty_decay_ms:-1",
	       "narenas:1,dirty_decay_ms:-1");
	merged("GODEBUG", "gctrace=1", "madvdontneed=0", "gctrace=1,madvdontneed=0");
	/* The first library wins, and none is loaded twice. */
	merged("LD_PRELOAD", "/a.so:/b.so", "/b.so:/c.so", "/b.so:/c.so:/a.so");
}

static void single_values_are_replaced(void **state)
{
	(void)state;
	merged("MIMALLOC_PURGE_DELAY", "10", "100", "100");
	merged("TCMALLOC_RELEASE_RATE", "1", "0", "0");
	merged("MALLOC_ARENA_MAX", "8", "1", "1");
	merged("FOO", "a=1:b=2", "a=3", "a=3");
}

static GPtrArray *changes_of(const char *const *changes)
{
	GPtrArray *array = g_ptr_array_new();

	while (*changes)
		g_ptr_array_add(array, (char *)*changes++);
	return array;
}

/* Words are given as one string, parted by blanks. */
static void becomes(const char *command, const char *wanted)
{
	static const char *const changes[] = { "GLIBC_TUNABLES=x=1:y=2", "FOO=3", NULL };
	static const char *const environment[] = { "GLIBC_TUNABLES=z=9:x=9", "PATH=/bin", NULL };
	GPtrArray *array = changes_of(changes);
	g_auto(GStrv) words = g_strsplit(command, " ", -1);
	g_auto(GStrv) is = setting_command(words, array, (char **)environment);
	g_autofree char *line = g_strjoinv(" ", is);

	assert_string_equal(line, wanted);
	g_ptr_array_unref(array);
}

static void env_does_not_take_it_back(void **state)
{
	(void)state;
	becomes("prog A=b", "prog A=b");
	becomes("env prog A=b", "env prog A=b"); /* changes nothing: the environment does it */
	becomes("env A=b GLIBC_TUNABLES=x=5:w=6 prog arg",
		"env A=b GLIBC_TUNABLES=x=5:w=6 GLIBC_TUNABLES=w=6:x=1:y=2 FOO=3 prog arg");
	becomes("/usr/bin/env A=b prog GLIBC_TUNABLES=no",
		"/usr/bin/env A=b GLIBC_TUNABLES=z=9:x=1:y=2 FOO=3 prog GLIBC_TUNABLES=no");
	becomes("env -i prog", "env -i GLIBC_TUNABLES=x=1:y=2 FOO=3 prog");
	becomes("env - A=b prog", "env - A=b GLIBC_TUNABLES=x=1:y=2 FOO=3 prog");
	becomes("env -u GLIBC_TUNABLES -C / prog",
		"env -u GLIBC_TUNABLES -C / GLIBC_TUNABLES=x=1:y=2 FOO=3 prog");
	becomes("env -viuGLIBC_TUNABLES --chdir=/ -- prog",
		"env -viuGLIBC_TUNABLES --chdir=/ -- GLIBC_TUNABLES=x=1:y=2 FOO=3 prog");
	becomes("env --unset=GLIBC_TUNABLES --chdir / prog",
		"env --unset=GLIBC_TUNABLES --chdir / GLIBC_TUNABLES=x=1:y=2 FOO=3 prog");
	becomes("env A=b env GLIBC_TUNABLES=y=5 prog",
		"env A=b env GLIBC_TUNABLES=y=5 GLIBC_TUNABLES=x=1:y=2 FOO=3 prog");
	/* What is not understood stays as it is. */
	becomes("env A=b", "env A=b");
	becomes("env -u", "env -u");
	becomes("env -S prog A=b", "env -S prog A=b");
}

static void what_sets_it_out_of_reach_is_found(void **state)
{
	static const char *const changes[] = { "FOO=3", "GLIBC_TUNABLES=x=1", NULL };
	GPtrArray *array = changes_of(changes);
	char *shell[] = { "sh", "-c", "GLIBC_TUNABLES=y=2 prog", NULL };
	char *split[] = { "env", "-S", "FOO=1 prog", NULL };
	char *plain[] = { "env", "FOO=1", "prog", "BAR=1", NULL };

	(void)state;
	assert_string_equal(setting_out_of_reach(shell, array), "GLIBC_TUNABLES=y=2 prog");
	assert_string_equal(setting_out_of_reach(split, array), "FOO=1 prog");
	assert_null(setting_out_of_reach(plain, array));
	g_ptr_array_unref(array);
}

static void environment_of_the_process(void **state)
{
	static const char *const changes[] = { "MALLOC_CONF=a:1", "MALLOC_CONF=b:2", NULL };
	GPtrArray *array = changes_of(changes);

	(void)state;
	setenv("MALLOC_CONF", "a:0,c:3", 1);
	setting_enter(array);
	assert_string_equal(getenv("MALLOC_CONF"), "c:3,a:1,b:2");
	g_ptr_array_unref(array);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_keep_what_is_not_named),
		cmocka_unit_test(single_values_are_replaced),
		cmocka_unit_test(env_does_not_take_it_back),
		cmocka_unit_test(what_sets_it_out_of_reach_is_found),
		cmocka_unit_test(environment_of_the_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
