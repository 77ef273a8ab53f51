// SPDX-License-Identifier: GPL-2.0
#include "probes/links.h"

#include <bpf/libbpf.h>
#include <errno.h>

int keep_link(GPtrArray *links, struct bpf_link *link)
{
	if (!link)
		return -errno;
	g_ptr_array_add(links, link);
	return 0;
}

static void destroy_link(void *link)
{
	bpf_link__destroy(link);
}

void detach_links(struct workqueue *queue, GPtrArray *links)
{
	guint i;

	for (i = 0; i < links->len; i++)
		workqueue_push(queue, destroy_link, g_ptr_array_index(links, i));
	g_ptr_array_free(links, TRUE);
}
