// SPDX-License-Identifier: GPL-2.0
/* libchain: what chains opens after it was attached to: three functions on the way back into it. */
#include "../workload.h"

static volatile int back;

void library_enter(void (*then)(const void *), const void *argument);

static NOINLINE void library_last(void (*then)(const void *), const void *argument)
{
	then(argument);
	back++;
}

static NOINLINE void library_middle(void (*then)(const void *), const void *argument)
{
	library_last(then, argument);
	back++;
}

void library_enter(void (*then)(const void *), const void *argument)
{
	library_middle(then, argument);
	back++;
}
