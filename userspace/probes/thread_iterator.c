// SPDX-License-Identifier: GPL-2.0
#include "probes/thread_iterator.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <unistd.h>

#include "memtoll.skel.h"

int threads_iterate(struct memtoll_bpf *bpf)
{
	struct bpf_link *link = bpf_program__attach_iter(bpf->progs.drain_threads, NULL);
	char byte[64];
	int fd, err;

	if (!link)
		return -errno;
	fd = bpf_iter_create(bpf_link__fd(link));
	err = fd < 0 ? fd : 0;
	/* Nothing is printed: the end comes when all have been looked at. */
	while (!err && read(fd, byte, sizeof(byte)) > 0)
		;
	if (fd >= 0)
		close(fd);
	bpf_link__destroy(link);
	return err;
}
