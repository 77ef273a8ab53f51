// SPDX-License-Identifier: GPL-2.0
#include "probes/memory_kfuncs.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <glib.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "memory_figures.skel.h"
#include "probes/programs.h"

struct memory_kfuncs {
	struct memory_figures_bpf *bpf;
};

struct memory_kfuncs *memory_kfuncs_open(void)
{
	struct memory_kfuncs *kfuncs;
	struct memory_figures_bpf *bpf;

	bpf = has_memory_kfuncs() ? memory_figures_bpf__open_and_load() : NULL;
	if (!bpf)
		return NULL;
	kfuncs = g_new0(struct memory_kfuncs, 1);
	kfuncs->bpf = bpf;
	return kfuncs;
}

void memory_kfuncs_close(struct memory_kfuncs *kfuncs)
{
	if (!kfuncs)
		return;
	memory_figures_bpf__destroy(kfuncs->bpf);
	g_free(kfuncs);
}

bool memory_kfuncs_read(const struct memory_kfuncs *kfuncs, const char *directory,
			struct memory_figures *figures)
{
	LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = figures, .ctx_size_in = sizeof(*figures));
	struct statfs system;
	struct stat status;

	if (statfs(directory, &system) || system.f_type != CGROUP2_SUPER_MAGIC ||
	    stat(directory, &status))
		return false;
	figures->cgroup = status.st_ino;
	return !bpf_prog_test_run_opts(bpf_program__fd(kfuncs->bpf->progs.memory_figures_read),
				       &run) &&
	       run.retval;
}
