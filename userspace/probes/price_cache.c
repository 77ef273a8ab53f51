// SPDX-License-Identifier: GPL-2.0
#include "probes/price_cache.h"

#include <glib.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/version.h"
#include "host/boot_cache.h"

#define KIND "prices"
/* Of an error above it prices are measured again, but no more than so many times in an hour. */
#define SURE_SHARE 0.25
#define MEASURED_OFTEN 3

struct kept_prices {
	uint32_t measured; /* how many times */
	int64_t time;	   /* of the first, CLOCK_BOOTTIME, seconds */
	struct calibration_result prices;
};

static int64_t now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return now.tv_sec;
}

/* All that prices depend on besides the boot. Freed by the caller; NULL: not known. */
static char *key_text(const struct price_key *key)
{
	struct stat self;

	if (stat("/proc/self/exe", &self))
		return NULL;
	return g_strdup_printf("%s %ju %ju %jd.%09ld %d %d %d %d %d %d", memtoll_version,
			       (uintmax_t)self.st_dev, (uintmax_t)self.st_ino,
			       (intmax_t)self.st_ctim.tv_sec, self.st_ctim.tv_nsec, key->mechanism,
			       key->uprobes, key->set.faults, key->set.mappings, key->set.samples,
			       key->set.reads);
}

static bool read_recent(const char *key, struct kept_prices *kept)
{
	int64_t now = now_s();

	return boot_cache_read(KIND, key, kept, sizeof(*kept)) && kept->time <= now &&
	       now - kept->time < PRICES_SECONDS;
}

/* The largest error of the prices that are paid most, as a share of them. */
static double unsure(const struct calibration_result *prices)
{
	const struct price *list[] = { &prices->malloc, &prices->free, &prices->fault, &prices->map,
				       &prices->read };
	double error = 0, hit = 0;
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(list); i++) {
		error += list[i]->error_ns;
		hit += list[i]->hit_ns;
	}
	return hit > 0 ? error / hit : 1;
}

bool price_cache_read(const struct price_key *key, struct calibration_result *prices, double *age_s)
{
	g_autofree char *text = key_text(key);
	struct kept_prices kept;

	if (!text || !read_recent(text, &kept) ||
	    (kept.measured < MEASURED_OFTEN && unsure(&kept.prices) > SURE_SHARE))
		return false;
	*prices = kept.prices;
	*age_s = (double)(now_s() - kept.time);
	return true;
}

void price_cache_write(const struct price_key *key, struct calibration_result *prices,
		       double *age_s)
{
	g_autofree char *text = key_text(key);
	struct kept_prices kept, old;

	*age_s = 0;
	if (!text)
		return;
	/* Padding is written, too. */
	memset(&kept, 0, sizeof(kept));
	kept.measured = 1;
	kept.time = now_s();
	if (read_recent(text, &old)) {
		kept.measured = old.measured + 1;
		kept.time = old.time;
		if (unsure(&old.prices) < unsure(prices)) {
			*prices = old.prices;
			*age_s = (double)(now_s() - old.time);
		}
	}
	kept.prices = *prices;
	boot_cache_write(KIND, text, &kept, sizeof(kept));
}
