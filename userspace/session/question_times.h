/* SPDX-License-Identifier: GPL-2.0 */
/*
 * question_times.h: when a program that makes code is asked again what code it has made. Pure.
 *
 * What a question costs the program grows with the code there is (the compilers of a JVM wait for
 * some 7 ms per thousand methods), what is new becomes less with the time: so after 1, 2, 4, 8 s and
 * so on; and sooner where a stack has ended in code without a name: those questions take a hundredth
 * of the time at most.
 */
#ifndef MEMTOLL_QUESTION_TIMES_H
#define MEMTOLL_QUESTION_TIMES_H

#include <stdbool.h>
#include <stdint.h>

struct question_times {
	uint64_t seen_ns;
	uint64_t asked_ns;
	uint64_t due_ns;
	uint64_t soon_ns; /* when it is due if it is wanted */
	bool wanted;	  /* code without a name was met since it was asked last */
};

/* Due at once. */
void question_times_begin(struct question_times *times, uint64_t now_ns);

bool question_is_due(const struct question_times *times, uint64_t now_ns);

void question_was_asked(struct question_times *times, uint64_t now_ns);

/* wrote: names of its code; false: it is not ready yet. */
void question_was_answered(struct question_times *times, uint64_t now_ns, bool wrote);

#endif /* MEMTOLL_QUESTION_TIMES_H */
