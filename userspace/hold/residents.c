// SPDX-License-Identifier: GPL-2.0
#include "hold/residents.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "host/timed_call.h"

#define ATTEMPTS 3
#define READ_MS 10000 /* page tables of some hundred GB */
#define OTHER_FILES "(other files)"

const char *resident_kind_name(enum resident_kind kind)
{
	static const char *const names[RESIDENT_KINDS] = {
		[RESIDENT_MALLOC] = "malloc",	    [RESIDENT_STACKS] = "stacks",
		[RESIDENT_FILES] = "files",	    [RESIDENT_SHARED] = "shared",
		[RESIDENT_ANONYMOUS] = "anonymous", [RESIDENT_SPECIAL] = "special",
	};

	return names[kind];
}

struct area {
	uint64_t start;
	uint64_t end;
	enum resident_kind kind;
	bool shared; /* MAP_SHARED */
	char *path;
	struct resident_sum sum;
};

struct parser {
	struct residents *residents;
	const GArray *owned;
	guint next;	   /* of owned: the first that may reach into what comes */
	GHashTable *files; /* path -> index + 1 */
	struct area area;
	bool open;
};

static void add_sum(struct resident_sum *sum, const struct resident_sum *other)
{
	sum->mappings += other->mappings;
	sum->rss += other->rss;
	sum->pss += other->pss;
	sum->swap += other->swap;
	sum->swap_pss += other->swap_pss;
	sum->dirty += other->dirty;
	sum->huge += other->huge;
}

static uint64_t part_of(uint64_t value, double share)
{
	return (uint64_t)((double)value * share);
}

/* The bytes of an area that are an allocator's, and what of them is resident and swapped out. */
static struct page_bytes owned_of(struct parser *parser)
{
	const struct area *area = &parser->area;
	struct page_bytes sum = { 0 };
	guint i;

	for (i = parser->next; i < parser->owned->len; i++) {
		const struct owned_range *range =
			&g_array_index(parser->owned, struct owned_range, i);
		uint64_t start = MAX(range->start, area->start), end = MIN(range->end, area->end);
		double share;

		if (range->end <= area->start) {
			parser->next = i + 1;
			continue;
		}
		if (range->start >= area->end)
			break;
		share = (double)(end - start) / (double)(range->end - range->start);
		sum.bytes += end - start;
		sum.resident += part_of(range->bytes.resident, share);
		sum.swapped += part_of(range->bytes.swapped, share);
	}
	return sum;
}

/* Give the allocator its part of the area. */
static void take_owned(struct parser *parser)
{
	struct page_bytes owned = owned_of(parser);
	struct resident_sum *sum = &parser->area.sum, part = { .mappings = 1 };
	double share;

	if (!owned.bytes)
		return;
	/* All but what is less than a page at its end. */
	if (owned.bytes + VIEW_PAGE > parser->area.end - parser->area.start)
		owned = (struct page_bytes){ owned.bytes, sum->rss, sum->swap };
	share = sum->rss ? (double)MIN(owned.resident, sum->rss) / (double)sum->rss : 0;
	part.rss = MIN(owned.resident, sum->rss);
	part.pss = part_of(sum->pss, share);
	part.dirty = part_of(sum->dirty, share);
	part.huge = part_of(sum->huge, share);
	part.swap = MIN(owned.swapped, sum->swap);
	part.swap_pss =
		sum->swap ? part_of(sum->swap_pss, (double)part.swap / (double)sum->swap) : 0;
	add_sum(&parser->residents->sums[RESIDENT_MALLOC], &part);
	sum->rss -= part.rss;
	sum->pss -= part.pss;
	sum->dirty -= part.dirty;
	sum->huge -= part.huge;
	sum->swap -= part.swap;
	sum->swap_pss -= part.swap_pss;
}

/* The stack of the thread whose stack pointer is in the area, unless that is a heap's. */
static bool take_stack(const struct parser *parser)
{
	const struct area *area = &parser->area;
	struct resident_stack *first = NULL;
	guint i;

	for (i = 0; i < parser->residents->stacks->len; i++) {
		struct resident_stack *stack =
			&g_array_index(parser->residents->stacks, struct resident_stack, i);

		if (stack->thread.pointer >= area->start && stack->thread.pointer < area->end &&
		    !first)
			first = stack;
	}
	if (!first)
		return false;
	add_sum(&first->sum, &area->sum);
	return true;
}

static void take_file(struct parser *parser)
{
	GArray *files = parser->residents->files;
	const char *path = parser->area.path;
	size_t index = GPOINTER_TO_SIZE(g_hash_table_lookup(parser->files, path));
	struct resident_file file = { .kind = parser->area.kind };

	if (!index && files->len >= RESIDENT_FILES_MAX) {
		path = OTHER_FILES;
		index = GPOINTER_TO_SIZE(g_hash_table_lookup(parser->files, path));
	}
	if (!index) {
		file.path = g_strdup(path);
		g_array_append_val(files, file);
		index = files->len;
		g_hash_table_insert(parser->files, file.path, GSIZE_TO_POINTER(index));
	}
	add_sum(&g_array_index(files, struct resident_file, index - 1).sum, &parser->area.sum);
}

static void end_area(struct parser *parser)
{
	struct area *area = &parser->area;
	struct page_bytes owned;

	if (!parser->open)
		return;
	parser->open = false;
	area->sum.mappings = 1;
	/* A private mapping of shared memory, or of /dev/zero, whose pages are its own copies. */
	if (area->kind == RESIDENT_SHARED && !area->shared &&
	    2 * (area->sum.anonymous + area->sum.swap) > area->sum.rss + area->sum.swap)
		area->kind = RESIDENT_ANONYMOUS;
	if (area->kind == RESIDENT_ANONYMOUS) {
		owned = owned_of(parser);
		if (owned.bytes)
			take_owned(parser);
		else if (!parser->residents->heap_stacks && take_stack(parser))
			area->kind = RESIDENT_STACKS;
	} else if (area->kind == RESIDENT_STACKS) {
		take_stack(parser);
	} else if (area->kind == RESIDENT_FILES || area->kind == RESIDENT_SHARED) {
		take_file(parser);
	}
	add_sum(&parser->residents->sums[area->kind], &area->sum);
	g_clear_pointer(&area->path, g_free);
}

static enum resident_kind kind_of(const char *path, bool shared)
{
	static const char *const memory[] = { "/memfd:",   "/dev/shm/",	     "/SYSV",
					      "/dev/zero", "/anon_hugepage", "[anon_shmem" };
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(memory); i++)
		if (g_str_has_prefix(path, memory[i]))
			return RESIDENT_SHARED;
	if (shared && *path != '/')
		return RESIDENT_SHARED;
	if (*path == '/')
		return RESIDENT_FILES;
	if (!strcmp(path, "[stack]"))
		return RESIDENT_STACKS;
	if (!*path || !strcmp(path, "[heap]") || g_str_has_prefix(path, "[anon"))
		return RESIDENT_ANONYMOUS;
	return RESIDENT_SPECIAL;
}

/* "55d0c000-55d0e000 rw-p 00000000 00:00 0    [heap]" */
static bool begin_area(struct parser *parser, char *line)
{
	unsigned long start, end;
	char rights[5];
	int at = 0;
	char *path;

	if (sscanf(line, "%lx-%lx %4s %*x %*x:%*x %*u%n", &start, &end, rights, &at) != 3 || !at ||
	    start >= end)
		return false;
	end_area(parser);
	path = line + at + strspn(line + at, " \t");
	parser->area = (struct area){ .start = start,
				      .end = end,
				      .kind = kind_of(path, rights[3] == 's'),
				      .shared = rights[3] == 's',
				      .path = g_strdup(path) };
	parser->open = true;
	return true;
}

/* "Rss:     12 kB" */
static void take_value(struct resident_sum *sum, const char *line)
{
	const struct {
		const char *name;
		uint64_t *value;
	} values[] = {
		{ "Rss:", &sum->rss },
		{ "Pss:", &sum->pss },
		{ "Private_Dirty:", &sum->dirty },
		{ "Anonymous:", &sum->anonymous },
		{ "AnonHugePages:", &sum->huge },
		{ "Swap:", &sum->swap },
		{ "SwapPss:", &sum->swap_pss },
	};
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(values); i++)
		if (g_str_has_prefix(line, values[i].name))
			*values[i].value = MIN(strtoull(line + strlen(values[i].name), NULL, 10),
					       UINT64_MAX >> 20)
					   << 10;
}

static gint by_file(gconstpointer a, gconstpointer b)
{
	const struct resident_file *left = a, *right = b;

	if (left->sum.rss != right->sum.rss)
		return left->sum.rss < right->sum.rss ? 1 : -1;
	return strcmp(left->path, right->path);
}

static gint by_stack(gconstpointer a, gconstpointer b)
{
	const struct resident_stack *left = a, *right = b;

	if (left->sum.rss != right->sum.rss)
		return left->sum.rss < right->sum.rss ? 1 : -1;
	return left->thread.tid - right->thread.tid;
}

void residents_parse(FILE *smaps, const GArray *owned, struct residents *residents)
{
	struct parser parser = { .residents = residents, .owned = owned };
	char *line = NULL;
	size_t size = 0;
	ssize_t length;

	parser.files = g_hash_table_new(g_str_hash, g_str_equal);
	while ((length = getline(&line, &size, smaps)) > 0) {
		if (line[length - 1] == '\n')
			line[length - 1] = '\0';
		if (!begin_area(&parser, line) && parser.open)
			take_value(&parser.area.sum, line);
	}
	end_area(&parser);
	free(line);
	g_hash_table_destroy(parser.files);
	g_array_sort(residents->files, by_file);
	g_array_sort(residents->stacks, by_stack);
}

static void clear_file(gpointer data)
{
	g_free(((struct resident_file *)data)->path);
}

void residents_init(struct residents *residents)
{
	*residents = (struct residents){ 0 };
	residents->files = g_array_new(FALSE, FALSE, sizeof(struct resident_file));
	g_array_set_clear_func(residents->files, clear_file);
	residents->stacks = g_array_new(FALSE, FALSE, sizeof(struct resident_stack));
}

void residents_free(struct residents *residents)
{
	g_clear_pointer(&residents->files, g_array_unref);
	g_clear_pointer(&residents->stacks, g_array_unref);
}

struct resident_sum residents_sum(const struct residents *residents)
{
	struct resident_sum sum = { 0 };
	unsigned int i;

	for (i = 0; i < RESIDENT_KINDS; i++)
		add_sum(&sum, &residents->sums[i]);
	return sum;
}

static bool is_close(uint64_t ours, uint64_t theirs)
{
	uint64_t apart = ours > theirs ? ours - theirs : theirs - ours;

	return apart <= MAX(theirs / 100, 64 << 10);
}

bool residents_agree(const struct residents *residents)
{
	struct resident_sum sum = residents_sum(residents);

	return is_close(sum.rss, residents->whole.rss) && is_close(sum.pss, residents->whole.pss) &&
	       is_close(sum.swap, residents->whole.swap);
}

/* Owned by the worker thread: the caller may give up waiting. */
struct residents_job {
	pid_t pid;
	int err;
	struct residents_known known;
	GArray *owned, *stacks; /* the job's own, which known has */
	struct residents residents;
};

static void residents_job_free(gpointer data)
{
	struct residents_job *job = data;

	residents_free(&job->residents);
	g_array_unref(job->owned);
	g_array_unref(job->stacks);
	g_free(job);
}

static FILE *open_file(pid_t pid, const char *name)
{
	g_autofree char *path = g_strdup_printf("/proc/%d/%s", pid, name);

	return fopen(path, "re");
}

static void take_threads(const struct residents_known *known, struct residents *residents)
{
	guint i;

	residents->threads = known->threads;
	residents->heap_stacks = known->heap_stacks;
	for (i = 0; i < known->stacks->len; i++) {
		struct resident_stack stack = {
			.thread = g_array_index(known->stacks, struct thread_stack, i),
		};

		g_array_append_val(residents->stacks, stack);
	}
}

static void read_whole(pid_t pid, struct residents *residents)
{
	FILE *file = open_file(pid, "smaps_rollup");
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		take_value(&residents->whole, line);
	if (file)
		fclose(file);
	file = open_file(pid, "status");
	while (file && fgets(line, sizeof(line), file))
		if (g_str_has_prefix(line, "VmPTE:"))
			residents->page_tables = strtoull(line + 6, NULL, 10) << 10;
	if (file)
		fclose(file);
}

static void read_all(void *data)
{
	struct residents_job *job = data;
	unsigned int i;

	for (i = 0; i < ATTEMPTS; i++) {
		FILE *smaps = open_file(job->pid, "smaps");

		job->err = smaps ? 0 : -errno;
		if (!smaps)
			return;
		residents_free(&job->residents);
		residents_init(&job->residents);
		take_threads(&job->known, &job->residents);
		residents_parse(smaps, job->known.owned, &job->residents);
		job->err = ferror(smaps) ? -ESRCH : 0;
		fclose(smaps);
		read_whole(job->pid, &job->residents);
		if (job->err || residents_agree(&job->residents))
			return;
	}
}

static GArray *copy_of(const GArray *array)
{
	guint size = g_array_get_element_size((GArray *)array);
	GArray *copy = g_array_new(FALSE, FALSE, size);

	g_array_append_vals(copy, array->data, array->len);
	return copy;
}

int residents_read(pid_t pid, const struct residents_known *known, struct residents *residents)
{
	struct residents_job *job = g_new0(struct residents_job, 1);
	int err;

	job->pid = pid;
	job->owned = copy_of(known->owned);
	job->stacks = copy_of(known->stacks);
	job->known = *known;
	job->known.owned = job->owned;
	job->known.stacks = job->stacks;
	residents_init(&job->residents);
	if (!timed_call(pid, READ_MS, read_all, job, residents_job_free)) {
		residents_init(residents);
		return -ETIMEDOUT;
	}
	*residents = job->residents;
	residents_init(&job->residents);
	err = job->err;
	residents_job_free(job);
	return err;
}
