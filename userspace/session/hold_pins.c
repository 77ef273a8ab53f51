// SPDX-License-Identifier: GPL-2.0
#include "session/hold_pins.h"

#include <errno.h>
#include <glib.h>
#include <sqlite3.h>
#include <string.h>

#include "events/names.h"
#include "ledger/ledger.h"
#include "ledger/sampled.h"
#include "recording/recording.h"

#define ROWS_MAX 256U /* of a look; what is beyond is of no size and no call site */
#define HEADER 8ULL   /* of a chunk, besides what the program asked for */

/* Each process's array once: for each of its rows the whole process would be parsed again. */
#define ROWS_OF                                                                          \
	"WITH p AS MATERIALIZED (SELECT json_extract(value, '$.pid') AS pid,"            \
	" COALESCE(json_extract(value, '$.malloc.%s'), '[]') AS list"                    \
	" FROM json_each(CASE WHEN json_valid(?1) THEN ?1 ELSE '{}' END, '$.processes')" \
	" WHERE json_type(value, '$.pid') = 'integer')"                                  \
	" SELECT p.pid, "
#define ROWS_FROM " FROM p JOIN json_each(p.list) k"

/* Columns: process, size, hint. */
static const char hints_query[] =
	ROWS_OF "json_extract(k.value, '$.size'), json_extract(k.value, '$.hint')" ROWS_FROM
		" WHERE json_extract(k.value, '$.hint') <> ''";
/* Columns: process, address, size, bytes, hint. */
static const char blocks_query[] =
	ROWS_OF "json_extract(k.value, '$[0]'), json_extract(k.value, '$[1]'),"
		" json_extract(k.value, '$[2]'), NULL" ROWS_FROM;
static const char ends_query[] =
	ROWS_OF "json_extract(k.value, '$.address'), json_extract(k.value, '$.size'),"
		" json_extract(k.value, '$.below'), json_extract(k.value, '$.hint')" ROWS_FROM;

struct pin_row {
	pid_t pid;
	bool end;
	uint8_t fn;
	bool owned;
	uint64_t size;
	uint64_t stack_id;
	uint64_t blocks;
	uint64_t bytes;
	double estimate;
	char *hint;
};

struct pins {
	GHashTable *rows;  /* struct pin_row -> itself */
	GHashTable *hints; /* the same, of process and size only */
	const struct ledger *ledger;
	const struct sampled *sampled;
};

static guint row_hash(gconstpointer key)
{
	const struct pin_row *row = key;
	uint64_t hash = (row->stack_id ^ row->size << 32 ^ (uint64_t)row->pid << 8 ^ row->fn) *
			0x9e3779b97f4a7c15ULL;

	return hash >> 32;
}

static gboolean row_equal(gconstpointer a, gconstpointer b)
{
	const struct pin_row *x = a, *y = b;

	return x->pid == y->pid && x->end == y->end && x->fn == y->fn && x->owned == y->owned &&
	       x->size == y->size && x->stack_id == y->stack_id;
}

static void free_row(gpointer row)
{
	g_free(((struct pin_row *)row)->hint);
	g_free(row);
}

static const char *text_of(sqlite3_stmt *statement, int column)
{
	return (const char *)sqlite3_column_text(statement, column);
}

static struct pin_row *row_of(GHashTable *rows, struct pin_row *key)
{
	struct pin_row *row = g_hash_table_lookup(rows, key);

	if (!row && g_hash_table_size(rows) >= ROWS_MAX) {
		*key = (struct pin_row){ .pid = key->pid, .end = key->end };
		row = g_hash_table_lookup(rows, key);
	}
	if (!row) {
		row = g_memdup2(key, sizeof(*key));
		g_hash_table_add(rows, row);
	}
	return row;
}

static void take_hint(struct pins *pins, sqlite3_stmt *statement)
{
	struct pin_row key = { .pid = sqlite3_column_int(statement, 0),
			       .size = (uint64_t)sqlite3_column_int64(statement, 1) };
	struct pin_row *row = row_of(pins->hints, &key);

	if (!row->hint)
		row->hint = g_strdup(text_of(statement, 2));
}

/* Who made the block; the weight that it has among those of its size. */
static double find_owner(const struct pins *pins, uint64_t address, struct pin_row *key)
{
	key->owned = ledger_owner(pins->ledger, key->pid, address, &key->stack_id, &key->fn) &&
		     key->fn != ALLOCATED_MMAP;
	if (key->owned)
		return 1;
	key->stack_id = key->fn = 0;
	key->owned = sampled_owner(pins->sampled, key->pid, address, &key->stack_id, &key->fn);
	if (key->owned)
		return sampled_weight(pins->sampled, key->size - MIN(key->size, HEADER));
	key->stack_id = key->fn = 0;
	return 1;
}

static void take_block(struct pins *pins, sqlite3_stmt *statement, bool end)
{
	struct pin_row key = { .pid = sqlite3_column_int(statement, 0),
			       .end = end,
			       .size = (uint64_t)sqlite3_column_int64(statement, 2) };
	const uint64_t bytes = (uint64_t)sqlite3_column_int64(statement, 3);
	double weight = find_owner(pins, (uint64_t)sqlite3_column_int64(statement, 1), &key);
	struct pin_row *row = row_of(pins->rows, &key);

	row->blocks++;
	row->bytes += bytes;
	row->estimate += weight * (double)bytes;
	if (end && !row->hint)
		row->hint = g_strdup(text_of(statement, 4));
}

/* Each row of a query over one array of malloc's; 0 or -errno. */
static int each(sqlite3 *database, const char *query, const char *array, const char *json,
		void (*take)(struct pins *pins, sqlite3_stmt *statement), struct pins *pins)
{
	g_autofree char *text = g_strdup_printf(query, array);
	sqlite3_stmt *statement;
	int result = sqlite3_prepare_v2(database, text, -1, &statement, NULL);

	if (result == SQLITE_OK)
		result = sqlite3_bind_text(statement, 1, json, -1, SQLITE_STATIC);
	while (result == SQLITE_OK || result == SQLITE_ROW) {
		result = sqlite3_step(statement);
		if (result == SQLITE_ROW)
			take(pins, statement);
	}
	sqlite3_finalize(statement);
	return result == SQLITE_DONE ? 0 : -EIO;
}

static void take_page(struct pins *pins, sqlite3_stmt *statement)
{
	take_block(pins, statement, false);
}

static void take_end(struct pins *pins, sqlite3_stmt *statement)
{
	take_block(pins, statement, true);
}

static int write_row(const struct pins *pins, struct recording *recording, uint64_t look,
		     const struct pin_row *row)
{
	const struct pin_row key = { .pid = row->pid, .size = row->size };
	const struct pin_row *hint = g_hash_table_lookup(pins->hints, &key);
	const struct hold_pin_fact fact = {
		.pid = row->pid,
		.at = row->end ? "end" : "page",
		.size = row->size,
		.call = row->owned ? fn_name(row->fn) : NULL,
		.stack_id = row->stack_id,
		.blocks = row->blocks,
		.bytes = row->bytes,
		.estimate = row->estimate,
		.hint = row->end ? row->hint :
			hint	 ? hint->hint :
				   NULL,
	};

	return recording_hold_pin(recording, look, &fact);
}

int hold_pins_write(struct recording *recording, uint64_t look, const char *json,
		    const struct ledger *ledger, const struct sampled *sampled)
{
	struct pins pins = { .ledger = ledger, .sampled = sampled };
	sqlite3 *database = recording_database(recording);
	GHashTableIter iterator;
	gpointer row;
	int err;

	pins.rows = g_hash_table_new_full(row_hash, row_equal, free_row, NULL);
	pins.hints = g_hash_table_new_full(row_hash, row_equal, free_row, NULL);
	err = each(database, hints_query, "pins", json, take_hint, &pins);
	if (!err)
		err = each(database, blocks_query, "pinning", json, take_page, &pins);
	if (!err)
		err = each(database, ends_query, "ends", json, take_end, &pins);
	g_hash_table_iter_init(&iterator, pins.rows);
	while (!err && g_hash_table_iter_next(&iterator, &row, NULL))
		err = write_row(&pins, recording, look, row);
	g_hash_table_destroy(pins.rows);
	g_hash_table_destroy(pins.hints);
	return err;
}
