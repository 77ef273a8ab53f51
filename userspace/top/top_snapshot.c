// SPDX-License-Identifier: GPL-2.0
#include "top/top_snapshot.h"

#include "base/text.h"

void top_row_free(gpointer data)
{
	struct top_row *row = data;

	g_free(row->label);
	g_free(row->text[0]);
	g_free(row->text[1]);
	g_free(row);
}

static void open_table(struct top_table *table, const struct top_columns *columns)
{
	table->columns = columns;
	table->rows = g_ptr_array_new_with_free_func(top_row_free);
}

struct top_snapshot *top_snapshot_new(const char *kind, const struct top_columns *processes,
				      const struct top_columns *details)
{
	struct top_snapshot *snapshot = g_new0(struct top_snapshot, 1);

	snapshot->kind = kind;
	snapshot->measures = g_array_new(FALSE, FALSE, sizeof(struct top_measure));
	snapshot->losses = g_array_new(FALSE, FALSE, sizeof(struct top_loss));
	open_table(&snapshot->processes, processes);
	open_table(&snapshot->details, details);
	return snapshot;
}

void top_snapshot_free(struct top_snapshot *snapshot)
{
	if (!snapshot)
		return;
	g_ptr_array_free(snapshot->processes.rows, TRUE);
	g_ptr_array_free(snapshot->details.rows, TRUE);
	g_array_free(snapshot->measures, TRUE);
	g_array_free(snapshot->losses, TRUE);
	g_free(snapshot->target);
	g_free(snapshot->sentence);
	g_free(snapshot);
}

struct top_row *top_row_add(struct top_table *table, int64_t pid, const char *label,
			    const char *first, const char *second)
{
	struct top_row *row = g_new0(struct top_row, 1);

	row->pid = pid;
	row->label = text_printable(label ? label : "?");
	row->text[0] = text_printable(first ? first : "");
	row->text[1] = second ? text_printable(second) : NULL;
	g_ptr_array_add(table->rows, row);
	return row;
}
