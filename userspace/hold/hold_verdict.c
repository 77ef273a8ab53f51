// SPDX-License-Identifier: GPL-2.0
#include "hold/hold_verdict.h"

#include <inttypes.h>

#include "base/text.h"

#define ADVICE_BYTES (1U << 20) /* less is not worth a word */
#define ADVICE_SHARE 0.02
#define CACHED_SHARE 0.1

const char *hold_part_name(enum hold_part part)
{
	static const char *const names[HOLD_PARTS] = {
		[PART_LIVE] = "live",	    [PART_TRIM] = "trim",
		[PART_PINNED] = "pinned",   [PART_TOPS] = "arena_tops",
		[PART_CACHED] = "caches",   [PART_UNREAD] = "unread",
		[PART_STACKS] = "stacks",   [PART_FILES] = "files",
		[PART_SHARED] = "shared",   [PART_ANONYMOUS] = "anonymous",
		[PART_SPECIAL] = "special", [PART_LOCKED] = "locked",
	};

	return names[part];
}

/* What of the heaps is resident, by part. */
static void split_heaps(const struct hold_process *process, uint64_t parts[HOLD_PARTS])
{
	const struct arena_sum *all = &process->heaps.all;
	uint64_t kept;
	guint i;

	for (i = 1; i < process->heaps.arenas->len; i++) {
		const struct arena_sum *arena =
			&g_array_index(process->heaps.arenas, struct arena_sum, i);

		parts[PART_TOPS] += arena->bytes[CHUNK_TOP].resident;
	}
	parts[PART_LIVE] = all->bytes[CHUNK_LIVE].resident + all->overhead.resident +
			   process->mapped.bytes.resident;
	parts[PART_TRIM] = all->trim.resident;
	parts[PART_LOCKED] = all->locked.resident;
	parts[PART_CACHED] = all->bytes[CHUNK_CACHED].resident;
	parts[PART_UNREAD] = all->unread.resident + all->hidden.resident + all->unfollowed.resident;
	kept = arena_free(all).resident - parts[PART_CACHED];
	parts[PART_PINNED] =
		kept - MIN(kept, parts[PART_TRIM] + parts[PART_LOCKED] + parts[PART_TOPS]);
}

static void add_heaps(struct hold_sum *sum, const struct hold_process *process, bool shared)
{
	static const enum hold_part only_read[] = { PART_LIVE,	 PART_TRIM,   PART_TOPS,
						    PART_PINNED, PART_LOCKED, PART_CACHED,
						    PART_UNREAD };
	const struct resident_sum *malloc = &process->residents.sums[RESIDENT_MALLOC];
	uint64_t parts[HOLD_PARTS] = { 0 }, whole = 0, trim_top;
	double scale = 1;
	unsigned int i;

	split_heaps(process, parts);
	for (i = 0; i < HOLD_PARTS; i++)
		whole += parts[i];
	/* Pages that were only read count in no sum of the kernel's; who reads has the block, mostly. */
	for (i = 0; i < G_N_ELEMENTS(only_read) && whole > malloc->rss; i++) {
		uint64_t beyond = MIN(parts[only_read[i]], whole - malloc->rss);

		parts[only_read[i]] -= beyond;
		whole -= beyond;
	}
	if (shared && malloc->rss)
		scale = (double)malloc->pss / (double)malloc->rss;
	for (i = 0; i < HOLD_PARTS; i++)
		sum->parts[i] += (uint64_t)((double)parts[i] * scale);
	sum->arenas += process->heaps.arenas->len;
	trim_top = (uint64_t)((double)MIN(process->heaps.all.trim_top.resident, parts[PART_TRIM]) *
			      scale);
	if (trim_top > sum->trim_top) {
		sum->trim_top = trim_top;
		sum->trim_threshold = process->numbers.trim_threshold;
	}
}

/* Whether it has memory of which more could be known. */
static bool is_closed(const struct hold_process *process, const struct hold_allocator *allocator)
{
	if (!allocator->unknown || allocator->kind == ALLOCATOR_UNKNOWN)
		return false;
	return allocator->kind != ALLOCATOR_GLIBC || (!process->has_heaps && process->lost_heaps);
}

static void add_counters(struct hold_sum *sum, const struct hold_allocator *allocator)
{
	const struct allocator_counters *counters = &allocator->counters;
	const uint64_t kept = counters->dirty + counters->muzzy;

	if (!counters->known)
		return;
	sum->counted_active += counters->active + counters->committed;
	sum->counted_free += kept;
	if (sum->counted == ALLOCATOR_UNKNOWN || kept > sum->counted_most) {
		sum->counted = allocator->kind;
		sum->counted_most = kept;
	}
}

/* jemalloc's option background_thread: threads of this name (src/background_thread.c). */
static bool has_background_thread(const struct residents *residents)
{
	guint i;

	for (i = 0; i < residents->stacks->len; i++)
		if (!strcmp(g_array_index(residents->stacks, struct resident_stack, i).thread.comm,
			    "jemalloc_bg_thd"))
			return true;
	return false;
}

/* Of the files themselves: shared memory has names, too. NULL: there is none. */
static const struct resident_file *largest_file(const struct residents *residents)
{
	guint i;

	for (i = 0; i < residents->files->len; i++) {
		const struct resident_file *file =
			&g_array_index(residents->files, struct resident_file, i);

		if (file->kind == RESIDENT_FILES)
			return file;
	}
	return NULL;
}

/* What names the most of its kind. */
static void note_names(struct hold_sum *sum, const struct hold_process *process)
{
	const struct resident_file *largest = largest_file(&process->residents);
	guint i;

	if (largest && largest->sum.rss > sum->file_bytes) {
		sum->file = largest->path;
		sum->file_bytes = largest->sum.rss;
	}
	for (i = 0; i < process->allocators->len && !sum->other; i++) {
		const struct hold_allocator *allocator =
			&g_array_index(process->allocators, struct hold_allocator, i);

		if (is_closed(process, allocator))
			sum->other = allocator_kind_name(allocator->kind);
	}
	for (i = 0; i < process->allocators->len; i++)
		add_counters(sum, &g_array_index(process->allocators, struct hold_allocator, i));
	sum->purges |= has_background_thread(&process->residents);
	if (!sum->other && process->lost_heaps && !process->has_heaps)
		sum->other = "an allocator";
	if (process->has_heaps && process->heaps.pins->len) {
		const struct pin *pin = &g_array_index(process->heaps.pins, struct pin, 0);

		if (pin->bytes > sum->pin_bytes) {
			sum->pin_size = pin->size;
			sum->pin_bytes = pin->bytes;
			sum->pin_hint = pin->hint;
		}
	}
}

void hold_sum_add(struct hold_sum *sum, const struct hold_process *process, bool shared)
{
	static const enum hold_part of[RESIDENT_KINDS] = {
		[RESIDENT_STACKS] = PART_STACKS,   [RESIDENT_FILES] = PART_FILES,
		[RESIDENT_SHARED] = PART_SHARED,   [RESIDENT_ANONYMOUS] = PART_ANONYMOUS,
		[RESIDENT_SPECIAL] = PART_SPECIAL,
	};
	struct resident_sum all = residents_sum(&process->residents);
	unsigned int i;

	if (process->has_heaps)
		add_heaps(sum, process, shared);
	for (i = RESIDENT_MALLOC + 1; i < RESIDENT_KINDS; i++)
		sum->parts[of[i]] +=
			shared ? process->residents.sums[i].pss : process->residents.sums[i].rss;
	sum->rss += all.rss;
	sum->pss += all.pss;
	sum->swap += shared ? all.swap_pss : all.swap;
	sum->page_tables += process->residents.page_tables;
	sum->threads += process->residents.threads;
	sum->huge_zero += process->huge.zero;
	sum->processes++;
	sum->partial |= hold_is_partial(process);
	note_names(sum, process);
}

enum hold_part hold_sum_most(const struct hold_sum *sum)
{
	enum hold_part most = PART_LIVE;
	unsigned int i;

	for (i = 0; i < HOLD_PARTS; i++)
		if (sum->parts[i] > sum->parts[most])
			most = i;
	return most;
}

/*
 * What mimalloc counts is both. All of them count pages that the program has not touched, too: what
 * is resident may be less.
 */
static char *counted_sentence(const struct hold_sum *sum)
{
	bool more = sum->counted_active + sum->counted_free > sum->parts[PART_ANONYMOUS];
	const char *untouched = more ? ", touched or not" : "";
	char active[32], kept[32];

	format_bytes(active, sizeof(active), (double)sum->counted_active);
	format_bytes(kept, sizeof(kept), (double)sum->counted_free);
	return sum->counted_free ?
		       g_strdup_printf("anonymous memory: %s counts %s in use and keeps %s that "
				       "is free%s",
				       allocator_kind_name(sum->counted), active, kept, untouched) :
		       g_strdup_printf("anonymous memory, of which %s counts %s as its own%s",
				       allocator_kind_name(sum->counted), active, untouched);
}

static char *files_sentence(const struct hold_sum *sum)
{
	char bytes[32];

	if (!sum->file)
		return g_strdup("file mappings");
	/* Several share it, and what one of them has says little of the sum. */
	if (sum->processes > 1)
		return g_strdup_printf("file mappings, the largest of one process %s", sum->file);
	if (2 * sum->file_bytes >= sum->parts[PART_FILES])
		return g_strdup_printf("file mappings, most of it of %s", sum->file);
	format_bytes(bytes, sizeof(bytes), (double)sum->file_bytes);
	return g_strdup_printf("file mappings, the largest %s of %s", bytes, sum->file);
}

static char *sentence_of(const struct hold_sum *sum, enum hold_part most)
{
	switch (most) {
	case PART_LIVE:
		return g_strdup(
			"blocks of malloc that the program has not freed: its own data, which no "
			"setting of malloc frees");
	case PART_TRIM:
		return g_strdup(
			"blocks that the program has freed and malloc keeps: malloc_trim(0) "
			"would give it back");
	case PART_PINNED:
		return sum->pin_size ?
			       g_strdup_printf(
				       "free, but on pages that live blocks are on, most of them "
				       "of %" PRIu64
				       " bytes: malloc_trim(0) would not give it back",
				       sum->pin_size) :
			       g_strdup(
				       "free, but on pages that live blocks are on: malloc_trim(0) would "
				       "not give it back");
	case PART_LOCKED:
		return g_strdup(
			"blocks that the program has freed and malloc keeps, locked in memory (mlock, "
			"mlockall): malloc_trim(0) would not give it back");
	case PART_TOPS:
		return g_strdup_printf(
			"free at the ends of the heaps of %" PRIu64
			" arenas of threads, which malloc_trim(0) does not give back",
			sum->arenas - MIN(sum->arenas, 1));
	case PART_CACHED:
		return g_strdup(
			"free in threads' caches (tcache), which malloc_trim(0) does not give back");
	case PART_UNREAD:
		return g_strdup(
			"in heaps of malloc, but they could not be read: what it is, is not known");
	case PART_STACKS:
		return g_strdup_printf("stacks of %" PRIu64 " threads", sum->threads);
	case PART_FILES:
		return files_sentence(sum);
	case PART_SHARED:
		return g_strdup("shared memory");
	case PART_ANONYMOUS:
		if (sum->counted != ALLOCATOR_UNKNOWN)
			return counted_sentence(sum);
		return sum->other ?
			       g_strdup_printf(
				       "anonymous memory of which no more is known: there is "
				       "%s, whose inside is not read",
				       sum->other) :
			       g_strdup("anonymous memory that is not glibc's malloc's: what the "
					"program maps itself");
	case PART_SPECIAL:
	case HOLD_PARTS:
		break;
	}
	return g_strdup("of the kernel's own mappings");
}

char *hold_sentence(const struct hold_sum *sum)
{
	enum hold_part most = hold_sum_most(sum);
	uint64_t whole = sum->processes > 1 ? sum->pss : sum->rss;
	g_autofree char *what = sentence_of(sum, most);
	char bytes[32], all[32], share[32];

	format_bytes(bytes, sizeof(bytes), (double)sum->parts[most]);
	format_bytes(all, sizeof(all), (double)whole);
	format_share(share, sizeof(share),
		     whole ? MIN((double)sum->parts[most] / (double)whole, 1) : 0);
	return g_strdup_printf("%s%s of %s resident (%s) are %s.", sum->partial ? "At least " : "",
			       bytes, all, share, what);
}

static bool matters(const struct hold_sum *sum, uint64_t bytes, double share)
{
	uint64_t whole = sum->processes > 1 ? sum->pss : sum->rss;

	return bytes >= ADVICE_BYTES && (double)bytes >= share * (double)whole;
}

static void advise(GArray *list, const char *code, uint64_t bytes, char *text)
{
	const struct hold_advice advice = { .code = code, .bytes = bytes, .text = text };

	g_array_append_val(list, advice);
}

static gint by_bytes(gconstpointer a, gconstpointer b)
{
	const struct hold_advice *left = a, *right = b;

	return left->bytes < right->bytes ? 1 : left->bytes > right->bytes ? -1 : 0;
}

static void clear_advice(gpointer data)
{
	g_free(((struct hold_advice *)data)->text);
}

static const char *purge_words(const struct hold_sum *sum)
{
	if (sum->counted != ALLOCATOR_JEMALLOC)
		return "tcmalloc keeps pages that are free: "
		       "MallocExtension::instance()->ReleaseFreeMemory() gives them back now, a higher "
		       "TCMALLOC_RELEASE_RATE sooner.";
	if (sum->purges)
		return "jemalloc keeps pages that are free for a while, and its threads give them back "
		       "then (never where dirty_decay_ms is -1): a smaller dirty_decay_ms sooner, "
		       "mallctl(\"arena.4096.purge\") now.";
	return "jemalloc keeps pages that are free: MALLOC_CONF=background_thread:true gives them back "
	       "also in a program that rests, a smaller dirty_decay_ms sooner, and "
	       "mallctl(\"arena.4096.purge\") now.";
}

GArray *hold_advise(const struct hold_sum *sum)
{
	/* What an allocator counts need not be resident. */
	uint64_t purged = MIN(sum->counted_free, sum->parts[PART_ANONYMOUS]);
	GArray *list = g_array_new(FALSE, FALSE, sizeof(struct hold_advice));
	char bytes[32];

	g_array_set_clear_func(list, clear_advice);
	if (matters(sum, sum->parts[PART_TRIM], ADVICE_SHARE))
		advise(list, "trim", sum->parts[PART_TRIM],
		       g_strdup(
			       "Have the program call malloc_trim(0) when it has freed much, or now. "
			       "What it uses again has to be faulted in again; record --hold 10s tells "
			       "how much that is."));
	if (matters(sum, sum->parts[PART_LOCKED], ADVICE_SHARE))
		advise(list, "locked", sum->parts[PART_LOCKED],
		       g_strdup(
			       "So much is free in whole pages that are locked, and the kernel takes "
			       "no locked page back (madvise fails with EINVAL): munlock() or "
			       "munlockall() first, then malloc_trim(0), and lock only what needs it."));
	if (matters(sum, sum->trim_top, ADVICE_SHARE) && sum->trim_threshold > ADVICE_BYTES) {
		format_bytes(bytes, sizeof(bytes), (double)sum->trim_threshold);
		advise(list, "trim-threshold", sum->trim_top,
		       g_strdup_printf(
			       "The end of the main heap is kept up to trim_threshold, now %s: a "
			       "smaller MALLOC_TRIM_THRESHOLD_ gives it back when it is free, and "
			       "faults it in again when it is not. It also keeps mmap_threshold as it "
			       "is at the start: set MALLOC_MMAP_THRESHOLD_ with it, or large blocks "
			       "are mapped anew each time.",
			       bytes));
	}
	/* With two, nothing would change; and what a trim gives back needs no other arenas. */
	if (sum->arenas > 2 * sum->processes && matters(sum, sum->parts[PART_TOPS], CACHED_SHARE))
		advise(list, "arena-max", sum->parts[PART_TOPS],
		       g_strdup_printf(
			       "%" PRIu64
			       " arenas each keep so much free at the ends of their heaps: "
			       "with MALLOC_ARENA_MAX=2 threads share it, and wait for each other. Less "
			       "comes back where they need it at the same time.",
			       sum->arenas));
	if (matters(sum, sum->parts[PART_CACHED], CACHED_SHARE))
		advise(list, "tcache", sum->parts[PART_CACHED],
		       g_strdup("Threads keep freed blocks in caches: "
				"GLIBC_TUNABLES=glibc.malloc.tcache_count=0 switches them off, and "
				"free() costs more then."));
	if (sum->pin_size && matters(sum, sum->parts[PART_PINNED], CACHED_SHARE))
		advise(list, "pinned", sum->parts[PART_PINNED],
		       g_strdup_printf(
			       "Live blocks of %" PRIu64
			       " bytes%s%s lie between the free ones: what lives long needs memory "
			       "apart from what is freed soon (a pool, or allocated first). "
			       "record --hold 10s names who makes them.",
			       sum->pin_size, *sum->pin_hint ? ", most with a pointer to " : "",
			       sum->pin_hint));
	if (matters(sum, sum->huge_zero, ADVICE_SHARE))
		advise(list, "huge-pages", sum->huge_zero,
		       g_strdup(
			       "So much of its huge pages is zeros, which were cleared and stay whole "
			       "where a part is used: madvise(MADV_NOHUGEPAGE) for memory that is used "
			       "in places, or PR_SET_THP_DISABLE. Each small page then costs a fault."));
	if (matters(sum, purged, CACHED_SHARE))
		advise(list, "purge", purged, g_strdup(purge_words(sum)));
	g_array_sort(list, by_bytes);
	return list;
}
