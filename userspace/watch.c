// SPDX-License-Identifier: GPL-2.0
#include "watch.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <glib.h>
#include <string.h>
#include <time.h>

#include "governor.h"
#include "memtoll.skel.h"
#include "names.h"

/* A group of probes in one slice. */
struct watched {
	uint64_t windows;
	uint64_t ns;
	uint64_t cpu_ns;	/* of the target meanwhile */
	bool missed;		/* not all of the slice */
};

struct watch {
	struct watch_config config;
	struct governor *governor;
	struct memtoll_rates *cpus;	/* scratch: a value for each CPU */
	int cpu_count;
	unsigned int open;
	unsigned int attached;
	bool missed;
	uint64_t accounted_ns;		/* of the last change */
	uint64_t accounted_cpu_ns;
	struct watched groups[PROBE_GROUPS];
	struct watched ended[PROBE_GROUPS];	/* of the slice that has ended */
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

struct watch *watch_new(const struct watch_config *config, const struct calibration_result *prices)
{
	struct watch *watch = g_new0(struct watch, 1);
	int group;

	watch->config = *config;
	watch->open = watch->attached = GROUPS_ALL;
	watch->cpu_count = libbpf_num_possible_cpus();
	watch->cpus = g_new0(struct memtoll_rates, watch->cpu_count);
	if (config->limit > 0)
		watch->governor = governor_new(config->limit, config->command, prices);
	for (group = 0; group < PROBE_GROUPS; group++)
		watch->groups[group].windows = 1;
	return watch;
}

void watch_begin(struct watch *watch)
{
	watch->accounted_ns = now_ns();
	watch_step(watch);
}

void watch_free(struct watch *watch)
{
	if (!watch)
		return;
	governor_free(watch->governor);
	g_free(watch->cpus);
	g_free(watch);
}

static void read_rates(struct watch *watch, struct memtoll_rates *rates)
{
	uint64_t *sum = (uint64_t *)rates;
	uint32_t zero = 0;
	size_t i;
	int cpu;

	memset(rates, 0, sizeof(*rates));
	if (bpf_map_lookup_elem(bpf_map__fd(watch->config.bpf->maps.rates), &zero, watch->cpus))
		return;
	for (cpu = 0; cpu < watch->cpu_count; cpu++)
		for (i = 0; i < sizeof(*rates) / sizeof(*sum); i++)
			sum[i] += ((uint64_t *)&watch->cpus[cpu])[i];
}

bool watch_has_missed(const struct watch *watch)
{
	return watch->missed;
}

static void account(struct watch *watch, uint64_t now, uint64_t cpu_ns)
{
	int group;

	for (group = 0; group < PROBE_GROUPS; group++) {
		if (watch->open & 1U << group) {
			watch->groups[group].ns += now - watch->accounted_ns;
			watch->groups[group].cpu_ns += cpu_ns - watch->accounted_cpu_ns;
		} else {
			watch->groups[group].missed = true;
		}
	}
	watch->accounted_ns = now;
	watch->accounted_cpu_ns = cpu_ns;
}

void watch_end_slice(struct watch *watch)
{
	int group;

	if (!watch->governor)
		return;
	account(watch, now_ns(), targets_cpu_ns(watch->config.targets));
	memcpy(watch->ended, watch->groups, sizeof(watch->ended));
	for (group = 0; group < PROBE_GROUPS; group++)
		watch->groups[group] = (struct watched){
			.windows = watch->open >> group & 1,
			.missed = !(watch->open & 1U << group),
		};
}

/* The functions of these groups as the BPF side has them: bit n is function n. */
static uint32_t functions_of(unsigned int groups)
{
	uint32_t functions = 0;
	unsigned int fn;

	for (fn = FN_MALLOC; fn < FN_COUNT; fn++)
		if (groups & 1U << probe_group_of(fn))
			functions |= 1U << fn;
	return functions;
}

static void set_open(struct watch *watch, unsigned int open)
{
	int group;

	for (group = 0; group < PROBE_GROUPS; group++) {
		if (open & ~watch->open & 1U << group)
			watch->groups[group].windows++;
		watch->groups[group].missed |= !(open & 1U << group);
	}
	watch->open = open;
	watch->missed |= open != GROUPS_ALL;
	watch->config.bpf->bss->closed_fns = functions_of(GROUPS_ALL & ~open);
}

static void set_attached(struct watch *watch, unsigned int attached)
{
	uint32_t gone = functions_of(watch->attached & ~attached);
	uint64_t now = now_ns();
	unsigned int fn;

	/* Calls still open are given up: their returns will not be seen. */
	for (fn = FN_MALLOC; fn < FN_COUNT; fn++)
		if (gone & 1U << fn)
			watch->config.bpf->bss->detached_ns[fn] = now;
	watch->attached = attached;
	targets_watch(watch->config.targets, attached);
}

uint64_t watch_step(struct watch *watch)
{
	struct governor_reading reading;
	struct governor_order order;

	if (!watch->governor)
		return UINT64_MAX;
	do {
		read_rates(watch, &reading.rates);
		reading.cpu_ns = targets_cpu_ns(watch->config.targets);
		reading.now_ns = now_ns();
		order = governor_step(watch->governor, &reading);
		if (order.open != watch->open) {
			account(watch, reading.now_ns, reading.cpu_ns);
			set_open(watch, order.open);
		}
		if (order.attached != watch->attached)
			set_attached(watch, order.attached);
	} while (order.next_ns <= reading.now_ns);
	return order.next_ns;
}

bool watch_in_window(const struct watch *watch)
{
	return watch->governor && governor_in_window(watch->governor);
}

int watch_write(struct watch *watch)
{
	unsigned int fn;
	int err = 0;

	for (fn = FN_MALLOC; fn < FN_COUNT && !err; fn++) {
		const struct watched *watched = &watch->ended[probe_group_of(fn)];

		if (watched->missed)
			err = recording_watch(watch->config.recording, fn_name(fn),
					      watched->windows, watched->ns, watched->cpu_ns);
	}
	return err;
}
