/* SPDX-License-Identifier: GPL-2.0 */
/* compare_print.h: a comparison as text or JSON. */
#ifndef MEMTOLL_COMPARE_PRINT_H
#define MEMTOLL_COMPARE_PRINT_H

#include "compare/compare_run.h"

/*
 * The sentence that says what the change did to the observed time: less, more, or no difference,
 * which is said where its 99 % bounds hold 0, where it is below 2 %, and where the runs that were
 * not traced moved the other way. *verdict: "less", "more", "none" or "unknown" (no bounds). Freed
 * by g_free().
 */
char *compare_conclusion(const struct compare_plan *plan, const struct comparison *comparison,
			 const char **verdict);

void compare_print_text(const struct compare_plan *plan, const struct comparison *comparison,
			const char *losses);

/* 0, or -ENOMEM after one message. */
int compare_print_json(const struct compare_plan *plan, const struct comparison *comparison,
		       const char *losses);

#endif /* MEMTOLL_COMPARE_PRINT_H */
