// SPDX-License-Identifier: GPL-2.0
#include "top/top_machine_probes.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <glib.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/message.h"
#include "machine.skel.h"

#define DUTY_LEAST 0.02
#define DUTY_FIRST 0.25 /* until it is known what it costs */
#define DUTY_GROWTH 4
#define AIM 0.7		       /* of the limit: a load is known only when it has been paid for */
#define OF_LIMIT 0.6	       /* for programs; the rest is for this process */
#define OF_LIMIT_LEAST 0.1     /* where that takes more than the rest */
#define PRICE_DEFAULT_NS 150.0 /* until it is measured */
#define DISPATCH_NS 50.0       /* before and after a program, which the kernel does not count */
#define MEASURE_NS 100000000ULL
#define MEASURE_EVERY 10 /* intervals */
#define LINKS_OFTEN 3

struct machine_probes {
	struct machine_bpf *bpf;
	GPtrArray *links; /* struct bpf_link */
	struct bpf_link *often[LINKS_OFTEN];
	double limit;
	double duty;
	double own; /* what this process took of the machine, in the last interval */
	int cpus;
	uint64_t begin_ns, length_ns;
	uint64_t watched_since_ns; /* 0: not attached */
	uint64_t watched_ns;	   /* in this interval, before that */
	bool spent;		   /* in this interval: all that it may cost */
	uint64_t counts[MACHINE_COUNTS];
	uint64_t cpu_ns; /* of this process */
	/* Prices: the kernel's own measure, which costs every program of the machine while it is on. */
	int stats_fd;
	uint64_t stats_since_ns;
	unsigned int intervals;
	double price_ns[MACHINE_HIT_OTHER + 1];
};

static uint64_t own_cpu_ns(void)
{
	struct timespec spent;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
	return spent.tv_sec * 1000000000ULL + spent.tv_nsec;
}

static void read_counts(const struct machine_probes *probes, uint64_t counts[MACHINE_COUNTS])
{
	int fd = bpf_map__fd(probes->bpf->maps.counts), possible = libbpf_num_possible_cpus(), cpu;
	g_autofree uint64_t *values = g_new0(uint64_t, MAX(possible, 1));
	uint32_t i;

	for (i = 0; i < MACHINE_COUNTS; i++) {
		counts[i] = 0;
		if (bpf_map_lookup_elem(fd, &i, values))
			continue;
		for (cpu = 0; cpu < possible; cpu++)
			counts[i] += values[cpu];
	}
}

static bool keep(struct machine_probes *probes, struct bpf_link *link)
{
	if (!link)
		return false;
	g_ptr_array_add(probes->links, link);
	return true;
}

static bool attach_major_faults(struct machine_probes *probes)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_PAGE_FAULTS_MAJ,
		.sample_period = 1,
	};
	int cpu, fd, possible = libbpf_num_possible_cpus();
	bool any = false;

	for (cpu = 0; cpu < possible; cpu++) {
		fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
		if (fd < 0)
			continue; /* a processor that is not there */
		if (keep(probes,
			 bpf_program__attach_perf_event(probes->bpf->progs.fault_ended, fd)))
			any = true;
		else
			close(fd);
	}
	return any;
}

/* A kernel without memory cgroups or swap lacks some of these. */
static bool attach(struct machine_probes *probes)
{
	struct machine_bpf *bpf = probes->bpf;

	keep(probes, bpf_program__attach_raw_tracepoint(bpf->progs.reclaim_ended,
							"mm_vmscan_direct_reclaim_end"));
	keep(probes, bpf_program__attach_raw_tracepoint(bpf->progs.reclaim_ended,
							"mm_vmscan_memcg_reclaim_end"));
	keep(probes, bpf_program__attach(bpf->progs.process_execs));
	keep(probes, bpf_program__attach(bpf->progs.direct_began));
	keep(probes, bpf_program__attach(bpf->progs.memcg_began));
	keep(probes, bpf_program__attach(bpf->progs.kswapd_woken));
	keep(probes, bpf_program__attach(bpf->progs.page_written));
	keep(probes, bpf_program__attach(bpf->progs.page_asked_for));
	return attach_major_faults(probes) &&
	       keep(probes, bpf_program__attach(bpf->progs.page_thrown_out)) &&
	       keep(probes, bpf_program__attach(bpf->progs.page_brought_in));
}

static void watch(struct machine_probes *probes, bool on, uint64_t now)
{
	struct machine_bpf *bpf = probes->bpf;
	int i;

	if (on == (probes->watched_since_ns != 0))
		return;
	if (on) {
		probes->often[0] = bpf_program__attach(bpf->progs.page_allocated);
		probes->often[1] = bpf_program__attach_raw_tracepoint(bpf->progs.fault_began,
								      "page_fault_user");
		probes->often[2] = bpf_program__attach_raw_tracepoint(bpf->progs.fault_began,
								      "page_fault_kernel");
		probes->watched_since_ns = now;
		bpf->bss->watch_epoch++;
		return;
	}
	bpf->bss->watch_epoch++;
	for (i = 0; i < LINKS_OFTEN; i++) {
		bpf_link__destroy(probes->often[i]);
		probes->often[i] = NULL;
	}
	probes->watched_ns += now - MAX(probes->watched_since_ns, probes->begin_ns);
	probes->watched_since_ns = 0;
}

static void destroy_link(gpointer link)
{
	bpf_link__destroy(link);
}

struct machine_probes *machine_probes_open(double limit, bool *unsupported)
{
	struct machine_probes *probes = g_new0(struct machine_probes, 1);
	size_t i;

	*unsupported = false;
	probes->limit = limit;
	probes->duty = limit > 0 ? DUTY_FIRST : 1;
	probes->stats_fd = -1;
	probes->cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
	probes->links = g_ptr_array_new_with_free_func(destroy_link);
	for (i = 0; i < G_N_ELEMENTS(probes->price_ns); i++)
		probes->price_ns[i] = PRICE_DEFAULT_NS;
	probes->bpf = machine_bpf__open_and_load();
	if (probes->bpf && attach(probes)) {
		watch(probes, true, now_ns());
		read_counts(probes, probes->counts);
		probes->cpu_ns = own_cpu_ns();
		if (probes->often[0])
			return probes;
	}
	message("this kernel refuses to watch the whole machine: %s; see memtoll doctor",
		strerror(errno));
	*unsupported = true;
	machine_probes_close(probes);
	return NULL;
}

void machine_probes_close(struct machine_probes *probes)
{
	if (!probes)
		return;
	if (probes->bpf)
		watch(probes, false, now_ns());
	g_ptr_array_free(probes->links, TRUE);
	if (probes->stats_fd >= 0)
		close(probes->stats_fd);
	machine_bpf__destroy(probes->bpf);
	g_free(probes);
}

int machine_probes_processes(const struct machine_probes *probes)
{
	return bpf_map__fd(probes->bpf->maps.payers);
}

int machine_probes_groups(const struct machine_probes *probes)
{
	return bpf_map__fd(probes->bpf->maps.groups);
}

int machine_probes_pushes(const struct machine_probes *probes)
{
	return bpf_map__fd(probes->bpf->maps.pushes);
}

static void take_price(struct machine_probes *probes, const struct bpf_program *program, int which)
{
	struct bpf_prog_info info = {};
	uint32_t size = sizeof(info);

	if (!bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size) && info.run_cnt)
		probes->price_ns[which] = (double)info.run_time_ns / info.run_cnt + DISPATCH_NS;
}

/* What they took since they were loaded, as far as it was measured. */
static void take_prices(struct machine_probes *probes)
{
	const typeof(probes->bpf->progs) *progs = &probes->bpf->progs;

	take_price(probes, progs->page_allocated, MACHINE_HIT_PAGE);
	take_price(probes, progs->fault_began, MACHINE_HIT_FAULT);
	take_price(probes, progs->fault_ended, MACHINE_HIT_MAJOR);
	take_price(probes, progs->page_brought_in, MACHINE_HIT_OTHER);
}

static void measure(struct machine_probes *probes, uint64_t now)
{
	if (probes->stats_fd < 0 || now - probes->stats_since_ns < MEASURE_NS)
		return;
	take_prices(probes);
	close(probes->stats_fd);
	probes->stats_fd = -1;
}

void machine_probes_begin(struct machine_probes *probes, uint64_t now, uint64_t length_ns)
{
	probes->begin_ns = now;
	probes->length_ns = length_ns;
	probes->watched_ns = 0;
	probes->spent = false;
	if (probes->stats_fd < 0 && probes->intervals++ % MEASURE_EVERY == 0) {
		probes->stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
		probes->stats_since_ns = now;
	}
	watch(probes, true, now);
}

/* For programs: part of the machine. */
static double most_of_programs(const struct machine_probes *probes)
{
	const double limit = AIM * probes->limit;

	return CLAMP(limit - probes->own, OF_LIMIT_LEAST * limit, OF_LIMIT * limit);
}

/* By the programs, in this interval so far. */
static double spent_ns(const struct machine_probes *probes, uint64_t counts[MACHINE_COUNTS])
{
	double spent = 0;
	int i;

	read_counts(probes, counts);
	for (i = 0; i <= MACHINE_HIT_OTHER; i++)
		spent += (double)(counts[i] - probes->counts[i]) * probes->price_ns[i];
	return spent;
}

/*
 * A part of each quarter, by what it cost before; should it cost more now, that was all of this
 * interval.
 */
void machine_probes_step(struct machine_probes *probes, uint64_t now)
{
	double most_ns = most_of_programs(probes) * probes->length_ns * probes->cpus;
	uint64_t quarter_ns = probes->length_ns / 4, counts[MACHINE_COUNTS];

	measure(probes, now);
	if (probes->limit <= 0 || probes->spent)
		return;
	probes->spent = probes->watched_since_ns && spent_ns(probes, counts) >= most_ns;
	watch(probes,
	      !probes->spent && (now - probes->begin_ns) % quarter_ns < probes->duty * quarter_ns,
	      now);
}

double machine_duty(double duty, double cost, double limit)
{
	double most = DUTY_GROWTH * duty;
	double next = limit <= 0 ? 1 : cost <= 0 ? most : MIN(most, duty * limit / cost);

	return CLAMP(next, DUTY_LEAST, 1);
}

void machine_probes_end(struct machine_probes *probes, uint64_t now, struct machine_cost *cost)
{
	double whole_ns = MAX(1.0, (double)(now - probes->begin_ns) * probes->cpus), spent;
	uint64_t counts[MACHINE_COUNTS], watched_ns = probes->watched_ns, cpu_ns = own_cpu_ns();

	if (probes->watched_since_ns)
		watched_ns += now - MAX(probes->watched_since_ns, probes->begin_ns);
	spent = spent_ns(probes, counts);
	/* Most of it once an interval: one that is cut short has as much as a whole one. */
	probes->own = (double)(cpu_ns - probes->cpu_ns) /
		      MAX(whole_ns, (double)probes->length_ns * probes->cpus);
	cost->overhead = spent / whole_ns + probes->own;
	cost->watched = CLAMP((double)watched_ns / MAX(1, now - probes->begin_ns), 0.001, 1);
	cost->lost[0] = counts[MACHINE_PROCESSES_FULL] - probes->counts[MACHINE_PROCESSES_FULL];
	cost->lost[1] = counts[MACHINE_GROUPS_FULL] - probes->counts[MACHINE_GROUPS_FULL];
	probes->duty = machine_duty(probes->duty, spent / whole_ns, most_of_programs(probes));
	/* What is done until the next one begins, reading and printing, is part of that. */
	memcpy(probes->counts, counts, sizeof(counts));
	probes->cpu_ns = cpu_ns;
}
