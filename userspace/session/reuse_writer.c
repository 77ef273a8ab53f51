// SPDX-License-Identifier: GPL-2.0
#include "session/reuse_writer.h"

#include "bpf/wire/pages.h"

struct reuse_writer {
	struct recording *recording;
	const char *subject;
	int64_t file;
	int err;
};

static void write_distance(void *context, uint64_t low, uint64_t high, double uses)
{
	struct reuse_writer *writer = context;

	if (!writer->err)
		writer->err = recording_reuse_distance(writer->recording, writer->subject,
						       writer->file, low, high, uses);
}

int reuse_write(struct recording *recording, const char *subject, int64_t file,
		const struct reuse *reuse)
{
	struct reuse_writer writer = {
		.recording = recording,
		.subject = subject,
		.file = file,
	};
	struct reuse_summary summary;

	reuse_sum_up(reuse, &summary);
	writer.err = recording_reuse(recording, &(struct reuse_fact){
							.subject = subject,
							.file = file,
							.block_bytes = MEMTOLL_PAGE_SIZE,
							.uses = summary.uses,
							.different = summary.different,
							.first = summary.first,
							.rate = summary.rate,
							.error = summary.error,
							.max_distance = summary.max_distance,
						});
	reuse_each(reuse, write_distance, &writer);
	return writer.err;
}
