/* SPDX-License-Identifier: GPL-2.0 */
/*
 * price_cache.h: prices of probes that an earlier run has measured since the machine was booted, so
 * that starting does not take the time to measure them again. They depend on the kernel and how it
 * was booted, on memtoll's own programs, and on which of them are attached: on nothing of the target.
 * boot_cache.h says where they are.
 */
#ifndef MEMTOLL_PRICE_CACHE_H
#define MEMTOLL_PRICE_CACHE_H

#include <stdbool.h>

#include "probes/calibrate.h"

/* Older ones are measured again: clocks and neighbours change. */
#define PRICES_SECONDS 3600

/* What prices depend on besides the boot and memtoll itself. */
struct price_key {
	enum uprobe_mechanism mechanism;
	bool uprobes;
	struct probe_set set;
};

/*
 * Prices that need not be measured again: of the last hour, and either sure or measured often
 * enough. age_s: how long ago. false: none.
 */
bool price_cache_read(const struct price_key *key, struct calibration_result *prices,
		      double *age_s);

/*
 * Keep what was measured now, unless what is there is surer; prices: the surer of both, which are to
 * be used; age_s: how long ago they were measured, 0: now. Failing to store is no error.
 */
void price_cache_write(const struct price_key *key, struct calibration_result *prices,
		       double *age_s);

#endif /* MEMTOLL_PRICE_CACHE_H */
