// SPDX-License-Identifier: GPL-2.0
#include "recording/query_number.h"

#include <stddef.h>

int query_number(sqlite3 *database, const char *sql, int64_t *value)
{
	sqlite3_stmt *statement = NULL;
	int status = sqlite3_prepare_v2(database, sql, -1, &statement, NULL);

	if (status == SQLITE_OK)
		status = sqlite3_step(statement);
	if (status == SQLITE_ROW)
		*value = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return status;
}

int64_t query_number_or(sqlite3 *database, const char *sql, int64_t otherwise)
{
	query_number(database, sql, &otherwise);
	return otherwise;
}
