// SPDX-License-Identifier: GPL-2.0
#include "targets/jvm_rows.h"

#include <glib.h>
#include <stdint.h>

#include "bpf/wire/unwind_rows.h"
#include "host/target_memory.h"
#include "symbols/symbolize.h"
#include "targets/targets.h"
#include "unwind/unwind_hotspot.h"

/* HotSpot's code cache is 240 MiB at most by default, and of that little is used. */
#define CODE_MAX (64U << 20)
#define PIECE_MAX (512U << 10)
/* Real code has some six for each method. */
#define ROWS_MAX (1U << 20)
/* Read together. */
#define BATCH 64U
/* A mapping's first code is not far from its start. */
#define BEFORE_BYTES (16U << 20)

struct piece {
	uint64_t start;
	uint32_t size;
};

struct pieces {
	GArray *list;
	uint64_t bytes;
	uint64_t end; /* of the last one */
};

/* What overlaps another is an old name, or a lie. */
static void take(void *context, uint64_t start, uint64_t end)
{
	struct pieces *pieces = context;
	struct piece piece = { start, (uint32_t)MIN(end - start, PIECE_MAX) };

	if (start < pieces->end || pieces->bytes + piece.size > CODE_MAX)
		return;
	if (pieces->list->len &&
	    end - g_array_index(pieces->list, struct piece, 0).start >= UINT32_MAX - BEFORE_BYTES)
		return;
	pieces->end = end;
	pieces->bytes += piece.size;
	g_array_append_val(pieces->list, piece);
}

static void add_batch(pid_t pid, uint64_t base, const struct piece *pieces, guint count,
		      GArray *rows)
{
	struct memory_range ranges[BATCH];
	g_autofree uint8_t *code = NULL;
	size_t bytes = 0;
	guint i;

	for (i = 0; i < count; i++)
		bytes += pieces[i].size;
	code = g_malloc(bytes);
	for (i = 0, bytes = 0; i < count; bytes += pieces[i++].size)
		ranges[i] = (struct memory_range){ .address = pieces[i].start,
						   .to = code + bytes,
						   .size = pieces[i].size };
	if (target_memory_read_all(pid, ranges, count))
		return;
	for (i = 0; i < count; i++)
		if (ranges[i].read && rows->len < ROWS_MAX)
			unwind_hotspot_rows(ranges[i].to, ranges[i].size,
					    (uint32_t)(pieces[i].start - base), rows);
}

void jvm_rows_show(struct targets *targets, struct symbolizer *symbolizer, pid_t pid)
{
	g_autoptr(GArray) list = g_array_new(FALSE, FALSE, sizeof(struct piece));
	g_autoptr(GArray) rows = g_array_new(FALSE, FALSE, sizeof(struct memtoll_unwind_row));
	struct memtoll_unwind_row first = { 0, CFA_STOP };
	struct pieces pieces = { .list = list };
	uint64_t base;
	guint i;

	symbolizer_each_generated(symbolizer, pid, take, &pieces);
	if (!list->len)
		return;
	base = g_array_index(list, struct piece, 0).start;
	base -= MIN(base, BEFORE_BYTES);
	g_array_append_val(rows, first);
	for (i = 0; i < list->len; i += BATCH)
		add_batch(pid, base, &g_array_index(list, struct piece, i),
			  MIN(BATCH, list->len - i), rows);
	if (rows->len > 1)
		targets_show_generated(targets, pid, base, rows);
}
