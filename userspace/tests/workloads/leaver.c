// SPDX-License-Identifier: GPL-2.0
/*
 * leaver: mallocs that do not return and mallocs that do, alternately, at the same depth of the stack,
 * from two places. Needs libfront.so.
 *
 * usage: leaver COUNT
 */
#include <dlfcn.h>
#include <setjmp.h>

#include "workload.h"

static volatile int back;

static NOINLINE void left(void)
{
	workload_sink = malloc(61); /* SITE left */
	back++;
}

static NOINLINE void kept(void)
{
	workload_sink = malloc(67); /* SITE kept */
	back++;
}

int main(int argc, char **argv)
{
	uint64_t count = workload_number("COUNT", argc > 1 ? argv[1] : "1009"), i;
	jmp_buf *volatile *leave = (jmp_buf *volatile *)dlsym(RTLD_DEFAULT, "front_exit");
	static jmp_buf here;

	alarm(WORKLOAD_LIFE_S);
	if (!leave)
		return 2;
	for (i = 0; i < count; i++) {
		if (!setjmp(here)) {
			*leave = &here;
			left();
		}
		*leave = NULL;
		kept();
		free(workload_sink);
	}
	workload_report("\"returned\": %d", back);
	return 0;
}
