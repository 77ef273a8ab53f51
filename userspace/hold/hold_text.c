// SPDX-License-Identifier: GPL-2.0
#include "hold/hold_text.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "hold/hold_verdict.h"

#define ROWS 5	     /* of files, stacks, arenas, pins */
#define PROCESSES 20 /* of several */
#define NAME_WIDTH 34
#define CELL 16

static const char *cell(char text[CELL], uint64_t bytes)
{
	if (bytes)
		format_bytes(text, CELL, (double)bytes);
	else
		g_strlcpy(text, "-", CELL);
	return text;
}

/* Names of files and threads are the process's. */
static void print_name(FILE *out, const char *name, int width)
{
	g_autofree char *text = text_printable(name);

	if (g_utf8_strlen(text, -1) > width) {
		const char *last = strrchr(text, '/');

		if (last && last[1]) {
			g_autofree char *tail = g_strdup_printf(".../%s", last + 1);

			g_free(text);
			text = g_steal_pointer(&tail);
		}
		text_cut(text, width);
	}
	fprintf(out, "  %s%*s", text, (int)MAX(width - g_utf8_strlen(text, -1), 0), "");
}

static void print_resident(FILE *out, const char *name, const struct resident_sum *sum)
{
	char rss[CELL], pss[CELL], swap[CELL], dirty[CELL];

	print_name(out, name, NAME_WIDTH);
	fprintf(out, " %10s %10s %10s %10s\n", cell(rss, sum->rss), cell(pss, sum->pss),
		cell(dirty, sum->dirty), cell(swap, sum->swap));
}

static void print_huge(FILE *out, uint64_t bytes, const struct huge_use *use)
{
	char all[CELL], zero[CELL], low[CELL], high[CELL];

	fprintf(out, "  in huge pages: %s", cell(all, bytes));
	if (!use->known)
		fputs("; how much of it is used is not known: Linux 6.7 and later tell\n", out);
	else if (use->looked < use->pages)
		fprintf(out,
			", of it some %s (%s to %s) nothing but zeros;\n"
			"    %" PRIu64 " of %" PRIu64 " were looked at\n",
			cell(zero, use->zero), cell(low, use->low), cell(high, use->high),
			use->looked, use->pages);
	else
		fprintf(out, ", of it %s nothing but zeros\n", cell(zero, use->zero));
}

static void print_residents(FILE *out, const struct hold_process *process)
{
	static const char *const names[RESIDENT_KINDS] = {
		[RESIDENT_MALLOC] = "glibc's malloc",
		[RESIDENT_STACKS] = "stacks",
		[RESIDENT_FILES] = "file mappings",
		[RESIDENT_SHARED] = "shared memory",
		[RESIDENT_ANONYMOUS] = "other anonymous memory",
		[RESIDENT_SPECIAL] = "mappings of the kernel's",
	};
	const struct residents *residents = &process->residents;
	struct resident_sum sum = residents_sum(residents);
	char tables[CELL];
	unsigned int i;

	fprintf(out, "\n  %-*s %10s %10s %10s %10s\n", NAME_WIDTH, "what", "resident", "Pss",
		"written", "swapped");
	for (i = 0; i < RESIDENT_KINDS; i++)
		if (residents->sums[i].rss || residents->sums[i].swap)
			print_resident(out, names[i], &residents->sums[i]);
	print_resident(out, "sum", &sum);
	print_resident(out, "the kernel's own sum", &residents->whole);
	if (!residents_agree(residents))
		fputs("  These differ by more than 1 %: the process changed while it was read.\n",
		      out);
	fprintf(out, "  page tables, which are not in it: %s\n",
		cell(tables, residents->page_tables));
	if (sum.huge)
		print_huge(out, sum.huge, &process->huge);
}

static void print_kind(FILE *out, const char *name, uint64_t count, const struct page_bytes *bytes)
{
	char all[CELL], resident[CELL], swapped[CELL], number[24] = "";

	if (!bytes->bytes)
		return;
	if (count)
		g_snprintf(number, sizeof(number), "%" PRIu64, count);
	fprintf(out, "  %-*s %12s %10s %10s %10s\n", NAME_WIDTH - 2, name, number,
		cell(all, bytes->bytes), cell(resident, bytes->resident),
		cell(swapped, bytes->swapped));
}

/* Of those that are not shown yet; their number: all are. */
static guint most_free(const GArray *arenas, const bool *shown)
{
	uint64_t most = 0;
	guint i, found = arenas->len;

	for (i = 0; i < arenas->len; i++) {
		const uint64_t bytes =
			arena_free(&g_array_index(arenas, struct arena_sum, i)).resident;

		if (shown[i] || (found < arenas->len && bytes <= most))
			continue;
		most = bytes;
		found = i;
	}
	return found;
}

static void print_arenas(FILE *out, const struct hold_process *process)
{
	g_autofree bool *shown = g_new0(bool, process->heaps.arenas->len);
	unsigned int row;

	if (process->heaps.arenas->len < 2)
		return;
	fprintf(out, "\n  %-*s %12s %10s %10s %10s\n", NAME_WIDTH - 2, "arenas with most free",
		"threads", "live", "free", "come back");
	for (row = 0; row < ROWS; row++) {
		const guint at = most_free(process->heaps.arenas, shown);
		const struct arena_sum *arena;
		char name[32], live[CELL], kept[CELL], trim[CELL];

		if (at == process->heaps.arenas->len)
			break;
		arena = &g_array_index(process->heaps.arenas, struct arena_sum, at);
		shown[at] = true;
		g_snprintf(name, sizeof(name), at ? "%u, of threads" : "main", at);
		fprintf(out, "  %-*s %12" PRIu64 " %10s %10s %10s\n", NAME_WIDTH - 2, name,
			arena->threads, cell(live, arena->bytes[CHUNK_LIVE].resident),
			cell(kept, arena_free(arena).resident), cell(trim, arena->trim.resident));
	}
}

static void print_hint(FILE *out, const char *who, const char *hint)
{
	g_autofree char *name = *hint ? text_printable(hint) : NULL;

	if (name)
		fprintf(out, "    %s begin%s with a pointer to %s\n", who,
			g_str_equal(who, "it") ? "s" : "", name);
}

static void print_pins(FILE *out, const struct hold_process *process)
{
	const GArray *pins = process->heaps.pins;
	char bytes[CELL];
	guint i;

	if (!pins->len || g_array_index(pins, struct pin, 0).bytes < 256 * VIEW_PAGE)
		return;
	fprintf(out, "\n  %-*s %12s %10s\n", NAME_WIDTH - 2, "live blocks before what stays",
		"blocks", "stays");
	for (i = 0; i < MIN(pins->len, ROWS); i++) {
		const struct pin *pin = &g_array_index(pins, struct pin, i);
		char name[32];

		if (pin->bytes < 16 * VIEW_PAGE)
			break;
		g_snprintf(name, sizeof(name), "of %" PRIu64 " bytes", pin->size);
		fprintf(out, "  %-*s %12" PRIu64 " %10s\n", NAME_WIDTH - 2, name, pin->chunks,
			cell(bytes, pin->bytes));
		print_hint(out, "most", pin->hint);
	}
}

/* What would go back by itself, but for a block. */
static void print_ends(FILE *out, const struct hold_process *process)
{
	const GArray *ends = process->heaps.pinning.ends;
	char below[CELL], above[CELL];
	guint i, rows = 0;

	for (i = 0; i < ends->len && rows < ROWS; i++) {
		const struct pinning_end *end = &g_array_index(ends, struct pinning_end, i);

		if (end->below < 256 * VIEW_PAGE)
			continue;
		if (!rows++)
			fprintf(out, "\n  %-*s %12s %10s\n", NAME_WIDTH - 2,
				"live blocks at ends of heaps", "live there", "free below");
		fprintf(out, "  0x%" PRIx64 ", of %-*" PRIu64 " %12s %10s\n", end->address,
			(int)MAX(NAME_WIDTH - 2 - 20, 1), end->size, cell(above, end->above),
			cell(below, end->below));
		print_hint(out, "it", end->hint);
	}
}

/* What could not be read, and what follows from it. */
static void print_doubts(FILE *out, const struct hold_process *process)
{
	const struct heap_sum *heaps = &process->heaps;
	char bytes[CELL];

	if (heaps->damages)
		fprintf(out,
			"  %s were passed over, where the heap fits no chunk; the first place is 0x%" PRIx64
			",\n  %s.\n",
			cell(bytes, heaps->all.unread.bytes), heaps->damage.address,
			heaps->corrupt ? "which stays as it is: the heap is corrupt" :
					 "which was changing");
	if (heaps->all.hidden.bytes)
		fprintf(out,
			"  %s lie behind pages that are swapped out and are not read; "
			"--read-swapped brings\n  them back.\n",
			cell(bytes, heaps->all.hidden.bytes));
	if (process->lost_heaps)
		fprintf(out, "  %" PRIu64 " heaps or arenas were not found.\n",
			process->lost_heaps);
	if (heaps->cached.torn)
		fprintf(out,
			"  %" PRIu64
			" lists of free chunks changed while they were read: what is in "
			"them may count as live.\n",
			heaps->cached.torn);
	if (heaps->cached.cut)
		fprintf(out,
			"  %" PRIu64
			" lists of free chunks have too many to be followed: %s are in "
			"them, or live.\n",
			heaps->cached.cut, cell(bytes, heaps->all.unfollowed.bytes));
	if (heaps->left_out)
		fprintf(out,
			"  %" PRIu64
			" blocks were too many to look at again: more may be free, and come "
			"back.\n",
			heaps->left_out);
	if (process->numbers.mmaps >= 0 &&
	    process->mapped.count != (uint64_t)process->numbers.mmaps)
		fprintf(out,
			"  malloc says that it has mapped %" PRId64
			" blocks: the others count as anonymous memory.\n",
			process->numbers.mmaps);
}

static void print_heaps(FILE *out, const struct hold_process *process)
{
	static const char *const names[CHUNK_KINDS] = {
		[CHUNK_LIVE] = "live",
		[CHUNK_CACHED] = "free, in threads' caches",
		[CHUNK_FAST] = "free, in fast lists",
		[CHUNK_SMALL] = "free, small",
		[CHUNK_LARGE] = "free, of 1 KiB and more",
		[CHUNK_UNSORTED] = "free, not sorted yet",
		[CHUNK_TOP] = "free, at the ends of heaps",
	};
	const struct arena_sum *all = &process->heaps.all;
	unsigned int i;

	fprintf(out, "\n  %-*s %12s %10s %10s %10s\n", NAME_WIDTH - 2, "malloc's blocks", "blocks",
		"bytes", "resident", "swapped");
	for (i = 0; i < CHUNK_KINDS; i++)
		print_kind(out, names[i], all->counts[i], &all->bytes[i]);
	print_kind(out, "live, each mapped by itself", process->mapped.count,
		   &process->mapped.bytes);
	print_kind(out, "of malloc itself", all->heaps, &all->overhead);
	print_kind(out, "not read: fits no chunk", process->heaps.damages, &all->unread);
	print_kind(out, "not read: swapped out", 0, &all->hidden);
	print_kind(out, "live, or in too long a list", 0, &all->unfollowed);
	print_kind(out, "malloc_trim(0) would give back", 0, &all->trim);
	print_kind(out, "and this, but it is locked", 0, &all->locked);
	print_doubts(out, process);
	print_arenas(out, process);
	print_pins(out, process);
	print_ends(out, process);
}

static void print_counter(FILE *out, const char *name, uint64_t bytes)
{
	char text[CELL];

	if (bytes)
		fprintf(out, "  %-*s %12s %10s\n", NAME_WIDTH - 2, name, "", cell(text, bytes));
}

static void print_counters(FILE *out, const struct hold_allocator *allocator)
{
	const struct allocator_counters *counters = &allocator->counters;
	g_autofree char *title =
		g_strdup_printf("%s's own count", allocator_kind_name(allocator->kind));

	fprintf(out, "\n  %-*s %12s %10s\n", NAME_WIDTH - 2, title, "", "bytes");
	print_counter(out, "in pages with live blocks", counters->active);
	print_counter(out, "in free pages that it keeps", counters->dirty);
	print_counter(out, "in free pages, on loan (MADV_FREE)", counters->muzzy);
	print_counter(out, "committed, live or free", counters->committed);
	print_counter(out, "address space without memory", counters->retained);
}

static void print_allocators(FILE *out, const struct hold_process *process)
{
	guint i;

	for (i = 0; i < process->allocators->len; i++) {
		const struct hold_allocator *allocator =
			&g_array_index(process->allocators, struct hold_allocator, i);
		g_autofree char *line = NULL, *printable = NULL;

		if (allocator->counters.known)
			print_counters(out, allocator);
		if (!allocator->unknown)
			continue;
		line = g_strdup_printf("%s%s%s (%s): not known, %s.",
				       allocator_kind_name(allocator->kind),
				       *allocator->version ? " " : "", allocator->version,
				       allocator->path, allocator->unknown);
		printable = text_printable(line);
		text_wrap(out, "  ", 2, printable);
	}
}

static void print_most(FILE *out, const struct hold_process *process)
{
	const struct residents *residents = &process->residents;
	guint i;

	if (residents->files->len)
		fprintf(out, "\n  %-*s %10s %10s %10s %10s\n", NAME_WIDTH, "files with most",
			"resident", "Pss", "written", "swapped");
	for (i = 0; i < MIN(residents->files->len, ROWS); i++) {
		const struct resident_file *file =
			&g_array_index(residents->files, struct resident_file, i);

		if (file->sum.rss || file->sum.swap)
			print_resident(out, file->path, &file->sum);
	}
	if (residents->threads < 2)
		return;
	fprintf(out, "\n  %-*s %10s %10s %10s %10s\n", NAME_WIDTH, "stacks with most", "resident",
		"Pss", "written", "swapped");
	for (i = 0; i < MIN(residents->stacks->len, ROWS); i++) {
		const struct resident_stack *stack =
			&g_array_index(residents->stacks, struct resident_stack, i);
		g_autofree char *name =
			g_strdup_printf("%d %s", stack->thread.tid, stack->thread.comm);

		if (stack->sum.rss || stack->sum.swap)
			print_resident(out, name, &stack->sum);
	}
}

static void print_verdict(FILE *out, const struct hold_sum *sum)
{
	g_autofree char *sentence = hold_sentence(sum), *printable = text_printable(sentence);
	g_autoptr(GArray) advice = hold_advise(sum);
	guint i;

	fputc('\n', out);
	text_wrap(out, "Verdict: ", 9, printable);
	for (i = 0; i < advice->len; i++) {
		const struct hold_advice *one = &g_array_index(advice, struct hold_advice, i);
		g_autofree char *prefix = NULL;
		char bytes[CELL];

		prefix = g_strdup_printf("  %s: ", cell(bytes, one->bytes));
		text_wrap(out, prefix, 4, one->text);
	}
}

static void print_one(FILE *out, const struct hold_process *process)
{
	g_autofree char *name = text_printable(process->name);
	struct hold_sum sum = { 0 };

	hold_sum_add(&sum, process, false);
	fprintf(out, "Who holds the memory of process %d (%s)\n", process->pid, name);
	print_verdict(out, &sum);
	print_residents(out, process);
	if (process->has_heaps)
		print_heaps(out, process);
	print_allocators(out, process);
	print_most(out, process);
}

static gint by_pss(gconstpointer a, gconstpointer b)
{
	const struct hold_process *left = *(struct hold_process *const *)a;
	const struct hold_process *right = *(struct hold_process *const *)b;
	uint64_t one = residents_sum(&left->residents).pss,
		 other = residents_sum(&right->residents).pss;

	return one < other ? 1 : one > other ? -1 : left->pid - right->pid;
}

static void print_row(FILE *out, const char *name, const struct hold_sum *sum)
{
	char cells[6][CELL];
	const uint64_t *parts = sum->parts;

	print_name(out, name, 22);
	fprintf(out, " %8s %8s %8s %8s %8s %8s\n", cell(cells[0], sum->rss),
		cell(cells[1], sum->pss), cell(cells[2], sum->swap),
		cell(cells[3], parts[PART_LIVE]), cell(cells[4], parts[PART_TRIM]),
		cell(cells[5], parts[PART_PINNED] + parts[PART_LOCKED] + parts[PART_TOPS] +
				       parts[PART_CACHED]));
}

static void print_several(FILE *out, const char *title, const GPtrArray *processes)
{
	g_autoptr(GPtrArray) sorted = g_ptr_array_copy((GPtrArray *)processes, NULL, NULL);
	g_autofree char *printable = text_printable(title);
	struct hold_sum all = { 0 };
	guint i;

	g_ptr_array_set_free_func(sorted, NULL);
	g_ptr_array_sort(sorted, by_pss);
	for (i = 0; i < sorted->len; i++)
		hold_sum_add(&all, g_ptr_array_index(sorted, i), true);
	fprintf(out, "Who holds the memory of %u processes (%s)\n", sorted->len, printable);
	print_verdict(out, &all);
	fprintf(out, "\n  %-22s %8s %8s %8s %8s %8s %8s\n", "process", "resident", "Pss", "swapped",
		"live", "trim", "pinned");
	for (i = 0; i < MIN(sorted->len, PROCESSES); i++) {
		const struct hold_process *process = g_ptr_array_index(sorted, i);
		g_autofree char *name = g_strdup_printf("%d %s", process->pid, process->name);
		struct hold_sum sum = { 0 };

		hold_sum_add(&sum, process, true);
		print_row(out, name, &sum);
	}
	if (sorted->len > PROCESSES)
		fprintf(out, "  and %u more\n", sorted->len - PROCESSES);
	print_row(out, "sum", &all);
	fprintf(out,
		"\nShared pages count once, in Pss and in what is right of it. The inside of one:\n"
		"  memtoll hold -p %d\n",
		((const struct hold_process *)g_ptr_array_index(sorted, 0))->pid);
}

void hold_text(FILE *out, const char *title, const GPtrArray *processes,
	       const struct hold_missing *missing)
{
	if (processes->len == 1)
		print_one(out, g_ptr_array_index(processes, 0));
	else
		print_several(out, title, processes);
	if (missing->unread)
		fprintf(out, "\nProcesses that could not be looked at, and are in no figure: %u\n",
			missing->unread);
}
