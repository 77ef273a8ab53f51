/* SPDX-License-Identifier: GPL-2.0 */
/*
 * slice_writer.h: what the consumers have gathered, and the sums of the kernel, as rows of the
 * recording: once per slice.
 */
#ifndef MEMTOLL_SLICE_WRITER_H
#define MEMTOLL_SLICE_WRITER_H

#include <stdint.h>
#include <sys/types.h>

struct consumers;
struct jvm_names;
struct memtoll_bpf;
struct python;
struct python_reader;
struct recording;
struct symbolizer;
struct targets;
struct budget;

struct slice_writer;

struct slice_writer_config {
	struct memtoll_bpf *bpf;
	struct recording *recording;
	struct symbolizer *symbolizer;
	struct python *python;
	struct python_reader *python_reader;
	struct jvm_names *jvm_names; /* NULL: no JVM is asked */
	struct targets *targets;
	struct budget *budget;
	struct consumers *consumers;
	void (*service)(void *context); /* called repeatedly while a slice is written */
	void *service_context;
};

struct slice_writer *slice_writer_new(const struct slice_writer_config *config);
void slice_writer_free(struct slice_writer *writer);

/* Before exec's new image is shown to the symbolizer: name the stacks of the old one. */
void slice_name_stacks(struct slice_writer *writer, pid_t pid);

/*
 * Write everything of the slice [start_ns, end_ns) and commit it. The caller has drained the ring
 * buffer and read the targets' counters. 0, or -errno of the recording.
 */
int slice_commit(struct slice_writer *writer, uint64_t start_ns, uint64_t end_ns);

#endif /* MEMTOLL_SLICE_WRITER_H */
