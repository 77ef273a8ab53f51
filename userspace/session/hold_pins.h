/* SPDX-License-Identifier: GPL-2.0 */
/*
 * hold_pins.h: who made the live blocks because of which free memory was kept in a look: as far as
 * the ledger follows them, or they were sampled.
 */
#ifndef MEMTOLL_HOLD_PINS_H
#define MEMTOLL_HOLD_PINS_H

#include <stdint.h>

struct ledger;
struct recording;
struct sampled;

/*
 * Table hold_pin: of a look, as hold.schema.json has it; anything else has none. Blocks that live
 * now are taken for those of the look: what pins lives long. 0 or -errno.
 */
int hold_pins_write(struct recording *recording, uint64_t look, const char *json,
		    const struct ledger *ledger, const struct sampled *sampled);

#endif /* MEMTOLL_HOLD_PINS_H */
