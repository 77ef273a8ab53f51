/* SPDX-License-Identifier: GPL-2.0 */
/*
 * fault_window.h: when the ends of minor faults are watched.
 *
 * To time a minor fault costs more than to count it, so they are timed in windows: the targets'
 * first tenth of a second of CPU time whole, so that short programs are timed at all, but for no
 * more than two seconds, since faults of everybody on the machine pay meanwhile; then four times a
 * second, for as long as some hundred faults took in the slice before, 1 to 25 ms. Within a slice
 * of up to a second all are of one length, since a slice's faults cost what those in its windows
 * did: shorter ones where faults are many weigh these too little. In one of minutes they follow the
 * program nonetheless, or a storm would be timed as if it were a calm; and where faults begin to rest
 * in the middle of one, windows of the old length would cost four times what is allowed.
 * When they open is drawn by lot: programs have periods, too. Where faults are seen in windows only
 * (state/fault_rest.bpf.h) there are four times as many, a quarter as long, of which every fourth
 * times them and is as long as ever: to make and to take away what sees their ends takes longer than
 * the others, and the first faults after that are slow.
 */
#ifndef MEMTOLL_FAULT_WINDOW_H
#define MEMTOLL_FAULT_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

struct fault_window {
	bool open;
	bool first;
	bool rests; /* faults are seen in windows only: set by the caller */
	bool timed; /* the ends of faults are to be seen in the one that is open, or was last */
	unsigned int resting; /* windows so far in which it rested */
	uint64_t edge_ns;     /* when it opens or, if open, closes; none of the first */
	uint64_t opened_ns;
	uint64_t wanted_ns; /* how long four a second are to be, by the slice before */
	uint64_t slice_ns;  /* when that was found, and the targets' faults by then */
	uint64_t slice_faults;
};

/*
 * The first window opens. now_ns: of a clock that never goes back. faults: counted so far, which
 * are not the targets'.
 */
void fault_window_begin(struct fault_window *window, uint64_t now_ns, uint64_t faults);

/* A slice begins, or another second of a long one. faults: counted so far. */
void fault_window_slice(struct fault_window *window, uint64_t now_ns, uint64_t faults);

/*
 * Open or close it, as it is to be by now. cpu_ns: CPU time of all targets so far, needed in the
 * first window only. lot: evenly from 0 to 1, another one each time.
 */
void fault_window_step(struct fault_window *window, uint64_t now_ns, uint64_t cpu_ns, double lot);

#endif /* MEMTOLL_FAULT_WINDOW_H */
