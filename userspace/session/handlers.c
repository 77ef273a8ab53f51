// SPDX-License-Identifier: GPL-2.0
#include "session/handlers.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <string.h>

#include "events/latency_buckets.h"
#include "events/names.h"
#include "memtoll.skel.h"
#include "targets/targets.h"

uint64_t handlers_stack(const struct memtoll_answer_key *key)
{
	return key->stack_id;
}

/* What it has done most. */
static unsigned int request_of(const struct memtoll_answer_sum *sum)
{
	unsigned int request, most = 0;

	for (request = 1; request < ANSWER_REQUESTS; request++)
		if (sum->requests[request] > sum->requests[most])
			most = request;
	return sum->requests[most] ? most : ANSWER_REQUESTS;
}

static int write_latency(struct recording *recording, pid_t pid, const uint32_t *counts)
{
	unsigned int bucket;
	int err = 0;

	for (bucket = 0; bucket < LATENCY_BUCKETS && !err; bucket++)
		if (counts[bucket])
			err = recording_wait(recording, pid, latency_bound(bucket),
					     latency_bound(bucket + 1), counts[bucket]);
	return err;
}

int handlers_write(struct recording *recording, struct memtoll_bpf *bpf, struct targets *targets,
		   const struct memtoll_answer_key *key, const struct memtoll_answer *answer)
{
	struct memtoll_handler handler = {};
	int err;

	if (!targets_find(targets, key->tgid))
		return 0;
	bpf_map_lookup_elem(bpf_map__fd(bpf->maps.handlers), &key->tid, &handler);
	handler.comm[sizeof(handler.comm) - 1] = '\0';
	handler.process[sizeof(handler.process) - 1] = '\0';
	err = recording_handler(recording,
				&(struct handler_fact){
					.pid = key->tgid,
					.handler_pid = handler.tgid,
					.handler_tid = key->tid,
					.comm = handler.comm,
					.process = handler.process,
					.request = handler_request_name(request_of(&answer->sum)),
					.stack_id = key->stack_id,
					.waits = answer->sum.waits,
					.wait_ns = answer->sum.wait_ns,
				});
	return err ? err : write_latency(recording, key->tgid, answer->latency);
}

struct commit {
	struct recording *recording;
	int fd;
	void (*want_stack)(void *context, uint64_t stack_id);
	void *context;
	int err;
};

static void write_longest(void *context, struct target *target)
{
	struct commit *commit = context;
	struct memtoll_longest_wait longest;
	uint32_t tgid = target->pid;

	if (commit->err || bpf_map_lookup_elem(commit->fd, &tgid, &longest))
		return;
	commit->want_stack(commit->context, longest.stack_id);
	commit->err = recording_longest_wait(commit->recording, target->pid, &longest);
}

int handlers_commit(struct recording *recording, struct memtoll_bpf *bpf, struct targets *targets,
		    void (*want_stack)(void *context, uint64_t stack_id), void *context)
{
	struct commit commit = {
		.recording = recording,
		.fd = bpf_map__fd(bpf->maps.longest_waits),
		.want_stack = want_stack,
		.context = context,
	};

	if (bpf->bss->handler_suspected)
		targets_each(targets, write_longest, &commit);
	return commit.err;
}
