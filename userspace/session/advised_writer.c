// SPDX-License-Identifier: GPL-2.0
#include "session/advised_writer.h"

#include "events/names.h"
#include "ledger/advised.h"

struct writing {
	struct recording *recording;
	void (*want_stack)(void *context, uint64_t stack_id);
	void *context;
	int err;
};

static void on_sum(void *context, const struct advised_sum *sum)
{
	struct writing *writing = context;
	const struct advised_fact fact = {
		.pid = sum->pid,
		.advice = sum->advice == ADVISED_COLD ? "cold" : "dontneed",
		.stack_id = sum->stack_id,
		.fault_class =
			sum->again_pages ? fault_class_name(sum->fault_class, sum->major) : "",
		.calls = sum->calls,
		.bytes = sum->bytes,
		.again_faults = sum->again_faults,
		.again_pages = sum->again_pages,
	};

	if (writing->err)
		return;
	writing->want_stack(writing->context, sum->stack_id);
	writing->err = recording_advised(writing->recording, &fact);
}

int advised_write(struct advised *advised, struct recording *recording,
		  void (*want_stack)(void *context, uint64_t stack_id), void *context)
{
	struct writing writing = { recording, want_stack, context, 0 };

	advised_drain(advised, on_sum, &writing);
	return writing.err;
}
