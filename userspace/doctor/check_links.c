// SPDX-License-Identifier: GPL-2.0
#include "doctor/check_links.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "check_arguments.skel.h"

void check_places_init(struct check_places *places)
{
	places->offsets = g_array_new(FALSE, FALSE, sizeof(__u64));
	places->cookies = g_array_new(FALSE, FALSE, sizeof(__u64));
}

void check_places_add(struct check_places *places, __u64 offset, __u64 cookie)
{
	g_array_append_val(places->offsets, offset);
	g_array_append_val(places->cookies, cookie);
}

void check_places_free(struct check_places *places)
{
	g_array_free(places->offsets, TRUE);
	g_array_free(places->cookies, TRUE);
}

struct check_arguments_bpf *check_load(enum uprobe_mechanism mechanism, const char *const *names)
{
	struct check_arguments_bpf *bpf = check_arguments_bpf__open();
	int err;

	if (!bpf)
		return NULL;
	for (size_t i = 0; names[i]; i++) {
		struct bpf_program *program = bpf_object__find_program_by_name(bpf->obj, names[i]);

		bpf_program__set_autoload(program, true);
		if (mechanism != UPROBE_PERF)
			bpf_program__set_expected_attach_type(program, ATTACH_UPROBE_MULTI);
	}
	err = check_arguments_bpf__load(bpf);
	if (!err)
		return bpf;
	check_arguments_bpf__destroy(bpf);
	errno = -err;
	return NULL;
}

static void destroy_link(gpointer link)
{
	bpf_link__destroy(link);
}

static int attach_perf(const struct bpf_program *program, pid_t pid, const char *path,
		       const struct check_places *places, struct check_links *links)
{
	for (guint i = 0; i < places->offsets->len; i++) {
		LIBBPF_OPTS(bpf_uprobe_opts, opts,
			    .bpf_cookie = g_array_index(places->cookies, __u64, i));
		struct bpf_link *link = bpf_program__attach_uprobe_opts(
			program, pid, path, g_array_index(places->offsets, __u64, i), &opts);

		if (!link)
			return -errno;
		g_ptr_array_add(links->links, link);
	}
	return 0;
}

int check_attach(const struct bpf_program *program, enum uprobe_mechanism mechanism, pid_t pid,
		 int fd, const struct check_places *places, struct check_links *links)
{
	char path[64];

	links->fd = -1;
	links->links = g_ptr_array_new_with_free_func(destroy_link);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (mechanism == UPROBE_PERF)
		return attach_perf(program, pid, path, places, links);
	links->fd = uprobe_link_multi(bpf_program__fd(program), ATTACH_UPROBE_MULTI, false, path,
				      pid, (const __u64 *)(void *)places->offsets->data,
				      (const __u64 *)(void *)places->cookies->data,
				      places->offsets->len);
	return links->fd < 0 ? links->fd : 0;
}

void check_detach(struct check_links *links)
{
	if (!links->links)
		return;
	if (links->fd >= 0)
		close(links->fd);
	g_ptr_array_free(links->links, TRUE);
	links->links = NULL;
}
