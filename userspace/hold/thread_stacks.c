// SPDX-License-Identifier: GPL-2.0
#include "hold/thread_stacks.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/proc.h"
#include "host/timed_call.h"

#define READ_MS 2000

/* Owned by the worker thread: the caller may give up waiting. */
struct threads_job {
	pid_t pid;
	uint64_t threads;
	GArray *stacks;
};

static void threads_job_free(gpointer data)
{
	struct threads_job *job = data;

	g_array_unref(job->stacks);
	g_free(job);
}

/* "nr args... sp pc", "-1 sp pc", or "running". */
static uint64_t stack_pointer(pid_t pid, pid_t tid)
{
	g_autofree char *path = g_strdup_printf("/proc/%d/task/%d/syscall", pid, tid);
	FILE *file = fopen(path, "re");
	char line[256] = "", *last, *sp;

	if (!file)
		return 0;
	if (!fgets(line, sizeof(line), file))
		*line = '\0';
	fclose(file);
	last = strrchr(line, ' ');
	if (!last)
		return 0;
	*last = '\0';
	sp = strrchr(line, ' ');
	return sp ? strtoull(sp, NULL, 16) : 0;
}

static void ask_threads(void *data)
{
	struct threads_job *job = data;
	g_autofree char *path = g_strdup_printf("/proc/%d/task", job->pid);
	DIR *directory = opendir(path);
	const struct dirent *entry;

	while (directory && (entry = readdir(directory))) {
		struct thread_stack stack = { .tid = atoi(entry->d_name) };
		struct proc_stat stat;

		if (stack.tid <= 0)
			continue;
		job->threads++;
		if (job->stacks->len >= THREAD_STACKS_MAX ||
		    proc_stat_read(job->pid, stack.tid, &stat))
			continue;
		g_strlcpy(stack.comm, stat.comm, sizeof(stack.comm));
		stack.pointer = stack_pointer(job->pid, stack.tid);
		g_array_append_val(job->stacks, stack);
	}
	if (directory)
		closedir(directory);
}

static struct thread_stack *find_unknown(GArray *stacks, pid_t tid)
{
	guint i;

	for (i = 0; i < stacks->len; i++) {
		struct thread_stack *stack = &g_array_index(stacks, struct thread_stack, i);

		if (stack->tid == tid && !stack->pointer)
			return stack;
	}
	return NULL;
}

static guint count_unknown(const GArray *stacks)
{
	guint count = 0, i;

	for (i = 0; i < stacks->len; i++)
		count += !g_array_index(stacks, struct thread_stack, i).pointer;
	return count;
}

/*
 * Where in a descriptor, which begins with its own address (the x86-64 psABI: %fs:0), its thread's
 * number is: struct pthread of glibc (nptl/descr.h: behind tcbhead_t, 704 bytes, and a list's two
 * pointers) and of musl (src/internal/pthread_impl.h).
 */
static const size_t tid_places[] = { 720, 48 };

/* Of the page that a mapping ends with. */
static bool take_descriptor(const uint8_t *page, uint64_t address, GArray *stacks)
{
	size_t at, i;

	for (at = 0; at + sizeof(uint64_t) <= VIEW_PAGE; at += sizeof(uint64_t)) {
		uint64_t self;

		memcpy(&self, page + at, sizeof(self));
		if (self != address + at)
			continue;
		for (i = 0; i < G_N_ELEMENTS(tid_places); i++) {
			struct thread_stack *stack;
			int32_t tid;

			if (at + tid_places[i] + sizeof(tid) > VIEW_PAGE)
				continue;
			memcpy(&tid, page + at + tid_places[i], sizeof(tid));
			stack = tid > 0 ? find_unknown(stacks, tid) : NULL;
			if (!stack)
				continue;
			stack->pointer = self;
			return true;
		}
	}
	return false;
}

void thread_stacks_from_descriptors(pid_t pid, const struct memory_view *view,
				    const struct maps *maps, GArray *stacks)
{
	guint unknown = count_unknown(stacks);
	uint8_t page[VIEW_PAGE], state;
	size_t i;

	for (i = 0; i < maps->count && unknown; i++) {
		const struct mapping *mapping = &maps->entries[i];
		uint64_t last = mapping->end - VIEW_PAGE;

		if (!mapping->read || !mapping->write || mapping->shared)
			continue;
		if (!strcmp(mapping->path, "[stack]")) {
			struct thread_stack *first = find_unknown(stacks, pid);

			if (first)
				first->pointer = last;
			unknown -= !!first;
		} else if (!*mapping->path && view->pages(view->context, last, 1, &state) &&
			   state == PAGE_RESIDENT &&
			   view->read(view->context, last, page, sizeof(page))) {
			unknown -= take_descriptor(page, last, stacks);
		}
	}
}

GArray *thread_stacks_find(pid_t pid, const struct memory_view *view, uint64_t *threads)
{
	struct threads_job *job = g_new0(struct threads_job, 1);
	struct maps maps = { 0 };
	GArray *stacks;

	job->pid = pid;
	job->stacks = g_array_new(FALSE, FALSE, sizeof(struct thread_stack));
	*threads = 0;
	if (!timed_call(pid, READ_MS, ask_threads, job, threads_job_free))
		return g_array_new(FALSE, FALSE, sizeof(struct thread_stack));
	*threads = job->threads;
	stacks = g_array_ref(job->stacks);
	threads_job_free(job);
	if (count_unknown(stacks) && !maps_read(pid, &maps))
		thread_stacks_from_descriptors(pid, view, &maps, stacks);
	maps_free(&maps);
	return stacks;
}
