// SPDX-License-Identifier: GPL-2.0
/*
 * huge_looks.c. Faults are heard of a while after they were, when their memory may be gone again.
 * So the latest few are kept as candidates, and each time the latest of those that are old enough
 * are taken up, if they are still there. One that is gone counts as it was last seen, which was
 * after half of its life at the latest.
 */
#include "session/huge_looks.h"

#include <errno.h>
#include <glib.h>
#include <stdbool.h>

#include "base/clock.h"
#include "bpf/wire/pages.h"
#include "bpf/wire/records.h"
#include "host/target_memory.h"
#include "recording/recording.h"

#define HUGE_BYTES (2ULL << 20)
#define HUGE_PAGES (HUGE_BYTES / MEMTOLL_PAGE_SIZE)
#define MS 1000000ULL

#define CANDIDATES 32
#define OF_A_SWEEP 4
#define FOLLOWED 48
/* Who has just got a page may be about to fill it: that takes a tenth of this. */
#define YOUNGEST_NS (1 * MS)
/*
 * So many are made at once, and then none for so many times as long as they took; but for the first
 * ones, without which nothing is known.
 */
#define LOOKS_AT_ONCE 4
#define PAUSE_FACTOR 50
#define FIRST 64
/* A page that was looked at so long after its fault is known well enough. */
#define OLDEST_NS (8000 * MS)

struct page {
	pid_t pid;
	uint64_t address;
	uint64_t fault_ns;
	uint64_t due_ns;
	int64_t used; /* pages that were not zero when it was last looked at; -1: not yet */
};

struct total {
	uint64_t looked;
	uint64_t used;
	uint64_t gone;
};

struct huge_looks {
	struct page candidates[CANDIDATES]; /* a ring; pid 0: none */
	unsigned int next;
	GArray *followed;   /* struct page */
	GHashTable *totals; /* pid -> struct total, of pages that are followed no more */
	uint64_t made;	    /* looks */
	uint64_t pause_ns;  /* no look before */
	bool changed;	    /* since it was written */
};

struct huge_looks *huge_looks_new(void)
{
	struct huge_looks *looks = g_new0(struct huge_looks, 1);

	looks->followed = g_array_new(FALSE, FALSE, sizeof(struct page));
	looks->totals = g_hash_table_new_full(NULL, NULL, NULL, g_free);
	return looks;
}

void huge_looks_free(struct huge_looks *looks)
{
	if (!looks)
		return;
	g_array_free(looks->followed, TRUE);
	g_hash_table_destroy(looks->totals);
	g_free(looks);
}

/* Of a sweep a few, the last one last: it is the latest. */
void huge_looks_fault(struct huge_looks *looks, const struct memtoll_run *run)
{
	uint64_t pages = run->pages / HUGE_PAGES, step = MAX(pages / OF_A_SWEEP, 1), i;

	if (run->fault_class != FAULT_ZERO_HUGE || run->pages % HUGE_PAGES)
		return;
	for (i = (pages - 1) % step; i < pages; i += step) {
		looks->candidates[looks->next] = (struct page){
			.pid = (pid_t)run->tgid,
			.address = run->address + i * HUGE_BYTES,
			.fault_ns = run->last_ns,
			.used = -1,
		};
		looks->next = (looks->next + 1) % CANDIDATES;
	}
}

static struct total *total_of(GHashTable *totals, pid_t pid)
{
	struct total *total = g_hash_table_lookup(totals, GINT_TO_POINTER(pid));

	if (!total) {
		total = g_new0(struct total, 1);
		g_hash_table_insert(totals, GINT_TO_POINTER(pid), total);
	}
	return total;
}

static void add_to(GHashTable *totals, const struct page *page)
{
	struct total *total = total_of(totals, page->pid);

	if (page->used < 0) {
		total->gone++;
		return;
	}
	total->looked++;
	total->used += (uint64_t)page->used;
}

/* False: it is not there any more. */
static bool look(struct huge_looks *looks, struct page *page, uint64_t now)
{
	uint64_t used;

	looks->changed = true;
	if (target_memory_used(page->pid, page->address, HUGE_BYTES, &used))
		return false;
	page->used = (int64_t)used;
	page->due_ns = now + (now - page->fault_ns);
	return true;
}

/* The latest that is old enough, taken out. False: none. */
static bool take_candidate(struct huge_looks *looks, uint64_t now, struct page *page)
{
	struct page *candidate;
	unsigned int i;

	for (i = 1; i <= CANDIDATES; i++) {
		candidate = &looks->candidates[(looks->next + CANDIDATES - i) % CANDIDATES];
		if (!candidate->pid || candidate->fault_ns + YOUNGEST_NS > now)
			continue;
		*page = *candidate;
		candidate->pid = 0;
		return true;
	}
	return false;
}

static void look_at_candidate(struct huge_looks *looks, uint64_t now, struct page *page)
{
	if (!look(looks, page, now))
		add_to(looks->totals, page);
	else
		g_array_append_val(looks->followed, *page);
}

/* Whether one was due. */
static bool look_at_followed(struct huge_looks *looks, uint64_t now)
{
	struct page *page;
	guint i;

	for (i = 0; i < looks->followed->len; i++) {
		page = &g_array_index(looks->followed, struct page, i);
		if (page->due_ns > now)
			continue;
		if (!look(looks, page, now) || now - page->fault_ns >= OLDEST_NS) {
			add_to(looks->totals, page);
			g_array_remove_index_fast(looks->followed, i);
		}
		return true;
	}
	return false;
}

void huge_looks_look(struct huge_looks *looks, uint64_t now)
{
	unsigned int made = 0;
	struct page page;

	if (now < looks->pause_ns)
		return;
	while (made < LOOKS_AT_ONCE && looks->followed->len < FOLLOWED &&
	       take_candidate(looks, now, &page)) {
		look_at_candidate(looks, now, &page);
		made++;
	}
	while (made < LOOKS_AT_ONCE && look_at_followed(looks, now))
		made++;
	if (!made)
		return;
	looks->made += made;
	if (looks->made >= FIRST)
		looks->pause_ns = now + PAUSE_FACTOR * (now_ns() - now);
}

void huge_looks_end(struct huge_looks *looks, pid_t pid)
{
	struct page *page;
	guint i;

	for (i = 0; i < CANDIDATES; i++)
		if (looks->candidates[i].pid == pid)
			looks->candidates[i].pid = 0;
	for (i = looks->followed->len; i-- > 0;) {
		page = &g_array_index(looks->followed, struct page, i);
		if (page->pid != pid)
			continue;
		add_to(looks->totals, page);
		g_array_remove_index_fast(looks->followed, i);
	}
}

int huge_looks_write(struct huge_looks *looks, struct recording *recording)
{
	GHashTable *now;
	GHashTableIter each;
	gpointer pid, value;
	int err = 0;
	guint i;

	if (!looks->changed)
		return 0;
	looks->changed = false;
	now = g_hash_table_new_full(NULL, NULL, NULL, g_free);
	g_hash_table_iter_init(&each, looks->totals);
	while (g_hash_table_iter_next(&each, &pid, &value))
		*total_of(now, GPOINTER_TO_INT(pid)) = *(const struct total *)value;
	for (i = 0; i < looks->followed->len; i++)
		add_to(now, &g_array_index(looks->followed, struct page, i));
	g_hash_table_iter_init(&each, now);
	while (!err && g_hash_table_iter_next(&each, &pid, &value)) {
		const struct total *total = value;

		err = recording_huge_look(recording, GPOINTER_TO_INT(pid), total->looked,
					  total->used, total->gone);
	}
	g_hash_table_destroy(now);
	return err;
}
