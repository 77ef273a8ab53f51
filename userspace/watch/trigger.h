/* SPDX-License-Identifier: GPL-2.0 */
/*
 * trigger.h: "swap.share > 0.3 and psi.memory.some > 10 for 30s": when to look closer.
 *
 *	trigger    = condition [ "for" TIME ]
 *	condition  = term { "or" term }
 *	term       = comparison { "and" comparison }
 *	comparison = NAME ( ">" | ">=" | "<" | "<=" ) NUMBER | "(" condition ")"
 */
#ifndef MEMTOLL_TRIGGER_H
#define MEMTOLL_TRIGGER_H

#include <stdbool.h>
#include <stdint.h>

struct trigger;

/* NULL where it is none; *error says why then, freed by the caller with g_free(). known: of names. */
struct trigger *trigger_parse(const char *text, bool (*known)(const char *name), char **error);
void trigger_free(struct trigger *trigger);

const char *trigger_text(const struct trigger *trigger);

/* value: of a name; false where nobody knows it now, and no comparison with it holds. */
bool trigger_holds(const struct trigger *trigger,
		   bool (*value)(void *context, const char *name, double *number), void *context);

/*
 * Told regularly whether the condition holds: true from when it has held as long as asked for, until
 * it has not held as long.
 */
bool trigger_step(struct trigger *trigger, uint64_t now_ns, bool holds);

#endif /* MEMTOLL_TRIGGER_H */
