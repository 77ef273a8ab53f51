/* SPDX-License-Identifier: GPL-2.0 */
/*
 * python_reader.h: the thread that names Python frames. Code may be freed a millisecond after it
 * ran (as a module's own code, once it is imported), and the main thread is busy for longer when it
 * writes a slice.
 */
#ifndef MEMTOLL_PYTHON_READER_H
#define MEMTOLL_PYTHON_READER_H

#include "python/python.h"

struct python_reader;

/*
 * Start reading the ring buffer with this descriptor: python_resolve() for each record. NULL and
 * errno on failure.
 */
struct python_reader *python_reader_start(int pythons_fd, struct python *python);

/* Read what is in the ring buffer now: on return all stacks so far are named. */
void python_reader_catch_up(struct python_reader *reader);

/* Catch up and end the thread. */
void python_reader_stop(struct python_reader *reader);

#endif /* MEMTOLL_PYTHON_READER_H */
