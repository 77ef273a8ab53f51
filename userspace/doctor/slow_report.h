/* SPDX-License-Identifier: GPL-2.0 */
/* slow_report.h: what doctor says of the way past the thread's cache. */
#ifndef MEMTOLL_SLOW_REPORT_H
#define MEMTOLL_SLOW_REPORT_H

#include <sqlite3.h>
#include <stdbool.h>

#include "doctor/doctor_load.h"
#include "doctor/slow_check.h"

/* Of one module. */
struct slow_finding {
	struct slow_paths paths;
	struct slow_check checks[FAMILY_MAX];
	bool read;    /* looked for */
	bool checked; /* and watched */
};

/* Look for it in a module of glibc's. */
void slow_finding_read(pid_t pid, const struct allocator_module *module,
		       struct slow_finding *finding);

/* A paragraph below the point's line. */
void slow_print(const struct slow_finding *finding, const struct probe_point *point,
		const struct slow_check *check, const struct probe_prices *prices);

/* The tables slow and slow_site, and JSON of the row of table point that is at hand. */
int slow_tables(sqlite3 *database);
int slow_fill(sqlite3 *database, const struct slow_finding *finding,
	      const struct allocator_module *module, const struct probe_prices *prices);
#define SLOW_JSON                                                                                    \
	"(SELECT json_object('found', json(iif(s.found, 'true', 'false')), 'refusal', s.refusal,"    \
	"  'bypassed', json(iif(s.bypassed, 'true', 'false')), 'entered', s.entered,"                \
	"  'agreed', s.agreed, 'differed', s.differed,"                                              \
	"  'entered_per_s', ROUND(s.entered_per_s, 1), 'slow_per_s', ROUND(s.slow_per_s, 1),"        \
	"  'entry_hit_ns', ROUND(s.entry_ns, 1), 'slow_hit_ns', ROUND(s.slow_ns, 1),"                \
	"  'places', (SELECT json_group_array(json_object('address', t.address, 'offset', t.offset," \
	"    'instruction', t.instruction, 'register', t.register, 'value', t.value,"                \
	"    'again', json(iif(t.again, 'true', 'false')),"                                          \
	"    'mapped', json(iif(t.mapped, 'true', 'false'))))"                                       \
	"    FROM slow_site t WHERE t.module = s.module AND t.symbol = s.symbol))"                   \
	" FROM slow s WHERE s.module = point.module AND s.symbol = point.symbol)"

#endif /* MEMTOLL_SLOW_REPORT_H */
