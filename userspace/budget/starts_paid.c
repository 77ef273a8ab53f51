// SPDX-License-Identifier: GPL-2.0
#include "budget/starts_paid.h"

#include <glib.h>

/*
 * What a look takes of a CPU: files of /proc, probes that are attached and detached, rows of the
 * recording; of a command's process also that it is held meanwhile.
 */
#define LOOK_NS 1250000ULL
#define DEFAULT_LIMIT 0.05
/* Some are always looked at, and a limit that pays for thousands a second is none. */
#define SELDOM_NS (200 * LOOK_NS)

uint64_t starts_paid_every_ns(double limit)
{
	double every_ns = LOOK_NS / (limit > 0 ? limit : DEFAULT_LIMIT);

	return CLAMP(every_ns, LOOK_NS, SELDOM_NS);
}
