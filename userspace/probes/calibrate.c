// SPDX-License-Identifier: GPL-2.0
#include "probes/calibrate.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/message.h"
#include "bpf/wire/faults.h"
#include "bpf/wire/functions.h"
#include "bpf/wire/pages.h"
#include "bpf/wire/rates.h"
#include "bpf/wire/records.h"
#include "bpf/wire/sums.h"
#include "bpf/wire/targets.h"
#include "events/latency_buckets.h"
#include "events/rates.h"
#include "events/sums.h"
#include "memtoll.skel.h"
#include "probes/calibrate_internal.h"
#include "probes/process_rows.h"
#include "probes/syscalls.h"

/* Times of fault bursts vary by more than a probe costs, those of three in a row much less. */
#define TRIPLES 41

struct calibration {
	pid_t pid;
	int order_fd; /* takes enum calibration_order */
	int result_fd;
	struct round bare[ROUNDS];
};

/* What the probes measured of the child. */
struct seen {
	uint32_t pid;
	uint64_t timed_faults;
	uint64_t timed_cpu_ns;
};

/* Differences between the three fault bursts of a triple, per fault. */
struct fault_triples {
	double bare_ns[TRIPLES];   /* just before the start's program was attached */
	double idle_ns[TRIPLES];   /* with it, stopped */
	double begin_ns[TRIPLES];  /* with the start's program, less with it stopped */
	double end_ns[TRIPLES];	   /* in a window, less outside of one */
	double inside_ns[TRIPLES]; /* as timed by the probes, less with it stopped */
	int untimed;		   /* triples without such a time */
};

static int ask(struct calibration *calibration, enum calibration_order order, struct round *rounds)
{
	size_t done = 0, size = sizeof(struct round) * (order == ORDER_FAULTS ? 1 : ROUNDS);
	char byte = order;
	ssize_t n;

	if (write(calibration->order_fd, &byte, 1) != 1)
		return -errno;
	while (done < size) {
		n = read(calibration->result_fd, (char *)rounds + done, size - done);
		if (n <= 0)
			return n < 0 ? -errno : -EPIPE;
		done += n;
	}
	return 0;
}

struct calibration *calibration_begin(void)
{
	struct calibration *calibration = g_new0(struct calibration, 1);
	int order[2], result[2], err;

	if (pipe2(order, O_CLOEXEC) || pipe2(result, O_CLOEXEC)) {
		message("cannot make a pipe: %s", strerror(errno));
		g_free(calibration);
		return NULL;
	}
	calibration->pid = fork();
	if (!calibration->pid) {
		close(order[1]);
		close(result[0]);
		calibration_child(order[0], result[1]);
	}
	close(order[0]);
	close(result[1]);
	calibration->order_fd = order[1];
	calibration->result_fd = result[0];
	err = calibration->pid < 0 ? -errno : ask(calibration, ORDER_BARE, calibration->bare);
	if (err) {
		message("cannot calibrate: %s", strerror(-err));
		calibration_end(calibration);
		return NULL;
	}
	return calibration;
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void sorted(const struct round *rounds, enum figure figure, double *values)
{
	int i;

	for (i = 0; i < ROUNDS; i++)
		values[i] = rounds[i].ns[figure];
	qsort(values, ROUNDS, sizeof(*values), compare_doubles);
}

static double best(const struct round *rounds, enum figure figure)
{
	double values[ROUNDS];

	sorted(rounds, figure, values);
	return values[0];
}

/*
 * Best against best: other work on the machine only ever adds, and adds to a fault as much as the
 * probe does. How far the middle round lies off shows how sure that is.
 */
static struct price price_of(const struct round *bare, const struct round *probed,
			     enum figure figure)
{
	double without[ROUNDS], with[ROUNDS];
	struct price price = {};

	sorted(bare, figure, without);
	sorted(probed, figure, with);
	price.hit_ns = MAX(0, with[0] - without[0]);
	price.error_ns = with[ROUNDS / 2] - with[0] + without[ROUNDS / 2] - without[0];
	return price;
}

static double middle(double *values, double *error)
{
	qsort(values, TRIPLES, sizeof(*values), compare_doubles);
	/* 1.96 standard errors of a median (1.25 sigma / sqrt(n)), sigma by the quartiles. */
	*error = 1.8 * (values[3 * TRIPLES / 4] - values[TRIPLES / 4]) / sqrt(TRIPLES);
	return values[TRIPLES / 2];
}

static int on_event(void *context, void *data, size_t size)
{
	const struct memtoll_run *run = data;
	struct seen *seen = context;

	if (size >= sizeof(*run) && run->kind == EVENT_RUN && run->tgid == seen->pid &&
	    run->fault_class == FAULT_ZERO) {
		seen->timed_faults += run->timed_faults;
		seen->timed_cpu_ns += run->timed_cpu_ns;
	}
	return 0;
}

/* The sums of calls and of map_calls have keys of one shape, process and function first. */
struct sum_key {
	uint32_t pid;
	uint32_t fn; /* of map_calls: made outside the allocator */
	uint64_t stack_id;
};

G_STATIC_ASSERT(sizeof(struct sum_key) == sizeof(struct memtoll_call_key));
G_STATIC_ASSERT(sizeof(struct sum_key) == sizeof(struct memtoll_map_key));

struct durations {
	double calls;
	double cpu_ns;
};

static void add_calls(struct durations *sum, const void *value)
{
	const struct memtoll_call *call = value;

	sum->calls += latency_calls(call->latency);
	sum->cpu_ns += call->sum.cpu_ns;
}

static void add_map_calls(struct durations *sum, const void *value)
{
	const struct memtoll_map_sum *call = value;

	sum->calls += call->calls;
	sum->cpu_ns += call->cpu_ns;
}

/* What the probes measured for a function of the child. size: of the map's value. */
static void add_measured(struct bpf_map *map, pid_t pid, uint32_t fn, size_t size,
			 void (*add)(struct durations *sum, const void *value),
			 struct durations *sum)
{
	int fd = bpf_map__fd(map), cpus = libbpf_num_possible_cpus(), cpu;
	g_autofree char *values = g_malloc0(size * cpus);
	struct sum_key key, *previous = NULL;

	while (!bpf_map_get_next_key(fd, previous, &key)) {
		previous = &key;
		if (key.pid != (uint32_t)pid || key.fn != fn ||
		    bpf_map_lookup_elem(fd, &key, values))
			continue;
		for (cpu = 0; cpu < cpus; cpu++)
			add(sum, values + cpu * size);
	}
}

static double mean_of(const struct durations *sum)
{
	return sum->calls ? sum->cpu_ns / sum->calls : 0;
}

static double measured_call(struct memtoll_bpf *bpf, pid_t pid, uint32_t fn)
{
	int fd = bpf_map__fd(bpf->maps.call_places), cpus = libbpf_num_possible_cpus(), cpu;
	g_autofree struct memtoll_call_place *places = g_new0(struct memtoll_call_place, cpus);
	struct durations sum = {};
	uint32_t at;

	for (at = 0; at < CALL_PLACES; at++) {
		if (bpf_map_lookup_elem(fd, &at, places))
			continue;
		for (cpu = 0; cpu < cpus; cpu++)
			if (places[cpu].key.tgid == (uint32_t)pid && places[cpu].key.fn == fn)
				add_calls(&sum, &places[cpu].call);
	}
	add_measured(bpf->maps.calls, pid, fn, sizeof(struct memtoll_call), add_calls, &sum);
	add_measured(bpf->maps.calls_shared, pid, fn, sizeof(struct memtoll_call), add_calls, &sum);
	return mean_of(&sum);
}

static double measured_map_call(struct memtoll_bpf *bpf, pid_t pid)
{
	struct durations sum = {};

	add_measured(bpf->maps.map_calls, pid, MAP_FN_BRK, sizeof(struct memtoll_map_sum),
		     add_map_calls, &sum);
	add_measured(bpf->maps.map_calls_shared, pid, MAP_FN_BRK, sizeof(struct memtoll_map_sum),
		     add_map_calls, &sum);
	return mean_of(&sum);
}

/* Of reads, whose sums have keys of another shape. Of a map for all CPUs the others' are zero. */
static void add_reads(struct bpf_map *map, pid_t pid, struct durations *sum)
{
	int fd = bpf_map__fd(map), cpus = libbpf_num_possible_cpus(), cpu;
	g_autofree struct memtoll_read_sum *sums = g_new0(struct memtoll_read_sum, cpus);
	struct memtoll_read_key key, *previous = NULL;

	while (!bpf_map_get_next_key(fd, previous, &key)) {
		previous = &key;
		if (key.tgid != (uint32_t)pid || bpf_map_lookup_elem(fd, &key, sums))
			continue;
		for (cpu = 0; cpu < cpus; cpu++) {
			sum->calls += sums[cpu].calls;
			sum->cpu_ns += sums[cpu].cpu_ns;
		}
	}
}

static double measured_read(struct memtoll_bpf *bpf, pid_t pid)
{
	struct durations sum = {};

	add_reads(bpf->maps.file_reads, pid, &sum);
	add_reads(bpf->maps.file_reads_shared, pid, &sum);
	return mean_of(&sum);
}

/* inside: what was measured beyond the bare time, between 0 and the whole price. */
static void set_inside(struct price *price, double measured, double bare)
{
	price->inside_ns = CLAMP(measured - bare, 0, price->hit_ns);
}

static void fill_result(const struct calibration *calibration, struct memtoll_bpf *bpf,
			const struct round *probed, const struct round *idle,
			const struct round *counted, struct calibration_result *result)
{
	const struct round *bare = calibration->bare;
	double bytes = PAGES * MEMTOLL_PAGE_SIZE, near_ns;

	result->malloc = price_of(bare, probed, F_MALLOC);
	result->calloc = price_of(bare, probed, F_CALLOC);
	result->free = price_of(bare, probed, F_FREE);
	result->idle = price_of(bare, idle, F_MALLOC);
	result->map = price_of(bare, probed, F_MAP);
	result->read = price_of(bare, probed, F_READ);
	result->read_other = price_of(bare, probed, F_READ_OTHER);
	result->syscall = price_of(bare, probed, F_SYSCALL);
	result->syscall_counted = price_of(probed, counted, F_SYSCALL);
	result->fault_ns = best(bare, F_FAULT);
	result->malloc_ns = best(bare, F_MALLOC);
	set_inside(&result->malloc, measured_call(bpf, calibration->pid, FN_MALLOC),
		   best(bare, F_MALLOC));
	set_inside(&result->calloc, measured_call(bpf, calibration->pid, FN_CALLOC),
		   best(bare, F_CALLOC));
	set_inside(&result->free, measured_call(bpf, calibration->pid, FN_FREE),
		   best(bare, F_FREE));
	set_inside(&result->map, measured_map_call(bpf, calibration->pid), best(bare, F_MAP));
	set_inside(&result->read, measured_read(bpf, calibration->pid), best(bare, F_READ));
	result->memset_bytes_per_s = bytes / best(bare, F_MEMSET) * 1e9;
	result->memset_near_bytes_per_s = NEAR_BYTES / best(bare, F_MEMSET_NEAR) * 1e9;
	near_ns = best(bare, F_MEMSET_NEAR) * SHORT_BYTES / NEAR_BYTES;
	result->memset_begin_ns = MAX(0, best(bare, F_MEMSET_SHORT) - near_ns);
	result->string_begin_ns = MAX(0, best(bare, F_STRING_SHORT) - near_ns);
	result->memset_middle_bytes_per_s = MIDDLE_BYTES / best(bare, F_MEMSET_MIDDLE) * 1e9;
	result->memset_far_bytes_per_s = FAR_BYTES / best(bare, F_MEMSET_FAR) * 1e9;
	result->memcpy_bytes_per_s = 0.5 * bytes / best(bare, F_COPY) * 1e9;
	result->loops_per_s = 1e9 / best(bare, F_LOOP);
	result->clear_4k_bytes_per_s = FAR_BYTES / best(bare, F_CLEAR) * 1e9;
	/* A huge fault less the work of a small one is its clearing. */
	if (best(bare, F_HUGE) > result->fault_ns)
		result->clear_2m_bytes_per_s = HUGE / (best(bare, F_HUGE) - result->fault_ns) * 1e9;
	else
		result->clear_2m_bytes_per_s = result->clear_4k_bytes_per_s;
}

/* Each mapping call here has its stack looked at, which is paid for apart: walk_ns. */
static void fill_maps(const struct memtoll_rates *before, const struct memtoll_rates *after,
		      struct calibration_result *result)
{
	double maps = after->maps - before->maps;

	if (maps <= 0)
		return;
	result->map_program_ns = (after->map_ns - before->map_ns) / maps;
	result->map.hit_ns = MAX(result->map_program_ns,
				 result->map.hit_ns - (after->walk_ns - before->walk_ns) / maps);
}

/*
 * Entering and leaving a program costs what it does when it is stopped. That is measured around its
 * attaching: seconds later the machine is in another state. What it took by its own clock is the
 * least that the rest costs.
 */
static void fill_faults(struct fault_triples *triples, const struct memtoll_rates *before,
			const struct memtoll_rates *after, struct calibration_result *result)
{
	struct price *begin = &result->fault, *end = &result->fault_end;
	double bare_error, idle_error, way_ns, way_error;

	way_ns = middle(triples->idle_ns, &idle_error) - middle(triples->bare_ns, &bare_error);
	way_ns = MAX(0, way_ns);
	way_error = hypot(idle_error, bare_error);
	if (after->faults > before->faults)
		result->fault_begin_ns = 1.0 * (after->fault_ns - before->fault_ns) /
					 (after->faults - before->faults);
	if (after->reads > before->reads)
		result->read_program_ns =
			1.0 * (after->read_ns - before->read_ns) / (after->reads - before->reads);
	begin->hit_ns =
		MAX(middle(triples->begin_ns, &begin->error_ns), result->fault_begin_ns) + way_ns;
	begin->error_ns = hypot(begin->error_ns, way_error);
	/* A fault inside a call adds its whole start probe to the call's duration. */
	begin->inside_ns = begin->hit_ns;
	end->hit_ns = MAX(0, middle(triples->end_ns, &end->error_ns));
	if (triples->untimed)
		return;
	result->fault_timed_inside_ns =
		middle(triples->inside_ns, &result->fault_timed_error_ns) + way_ns;
	result->fault_timed_error_ns = hypot(result->fault_timed_error_ns, way_error);
}

void calibration_apply(struct memtoll_bpf *bpf, const struct calibration_result *result)
{
	uint32_t fn;

	for (fn = FN_MALLOC; fn < FN_COUNT; fn++)
		bpf->bss->price_inside_ns[fn] = fn == FN_CALLOC ? result->calloc.inside_ns :
						fn == FN_FREE	? result->free.inside_ns :
								  result->malloc.inside_ns;
	bpf->bss->price_fault_ns = result->fault.inside_ns;
}

static void forget_sums(struct bpf_map *map, uint32_t pid)
{
	struct sum_key key, next;
	int fd = bpf_map__fd(map);
	bool more;

	for (more = !bpf_map_get_next_key(fd, NULL, &key); more; key = next) {
		more = !bpf_map_get_next_key(fd, &key, &next);
		if (key.pid == pid)
			bpf_map_delete_elem(fd, &key);
	}
}

static void forget_reads(struct bpf_map *map, uint32_t pid)
{
	struct memtoll_read_key key, next;
	int fd = bpf_map__fd(map);
	bool more;

	for (more = !bpf_map_get_next_key(fd, NULL, &key); more; key = next) {
		more = !bpf_map_get_next_key(fd, &key, &next);
		if (key.tgid == pid)
			bpf_map_delete_elem(fd, &key);
	}
}

static void forget_child(struct memtoll_bpf *bpf, uint32_t pid)
{
	forget_reads(bpf->maps.file_reads, pid);
	forget_reads(bpf->maps.file_reads_shared, pid);
	process_row_remove(bpf, pid);
	sums_free_places(bpf->maps.call_places);
	forget_sums(bpf->maps.calls, pid);
	forget_sums(bpf->maps.calls_shared, pid);
	forget_sums(bpf->maps.map_calls, pid);
	forget_sums(bpf->maps.map_calls_shared, pid);
}

/* One attachment for each group; false with errno set. */
static bool attach_child(struct calibration *calibration, struct memtoll_bpf *bpf,
			 enum uprobe_mechanism mechanism, struct uprobe_attachment **attachments)
{
	struct allocator_module *modules = NULL;
	bool attached = false;
	int group;
	struct maps maps = {};
	size_t count = 0;

	if (!maps_read(calibration->pid, &maps) &&
	    !allocator_modules_find(calibration->pid, &maps, &modules, &count) && count) {
		attached = true;
		for (group = GROUP_PAIR; attached && group < PROBE_GROUPS; group++) {
			attachments[group] = uprobe_attach(bpf, mechanism, calibration->pid,
							   &modules[0], NULL, group);
			attached = attachments[group] != NULL;
		}
	}
	allocator_modules_free(modules, count);
	maps_free(&maps);
	return attached;
}

static int ask_faults(struct calibration *calibration, struct ring_buffer *ring, struct seen *seen,
		      double *ns)
{
	struct round round;
	int err;

	ring_buffer__consume(ring);
	seen->timed_faults = seen->timed_cpu_ns = 0;
	err = ask(calibration, ORDER_FAULTS, &round);
	ring_buffer__consume(ring);
	*ns = round.ns[F_FAULT];
	return err;
}

/* Time faults without any probe, then attach to the beginning of faults. */
static int time_bare(struct calibration *calibration, struct probes *probes,
		     struct ring_buffer *ring, struct seen *seen, struct fault_triples *triples)
{
	int i, err = 0;

	for (i = -1; i < TRIPLES && !err; i++)
		err = ask_faults(calibration, ring, seen, &triples->bare_ns[MAX(i, 0)]);
	return err ? err : probes_begin_faults(probes);
}

/* The first triple is not counted: it warms caches. */
static int time_triples(struct calibration *calibration, struct memtoll_bpf *bpf,
			struct probes *probes, struct ring_buffer *ring, struct seen *seen,
			struct fault_triples *triples)
{
	int i, err = 0;

	for (i = -1; i < TRIPLES && !err; i++) {
		double idle_ns, begun_ns, timed_ns;
		int at = MAX(i, 0);

		bpf->bss->stopped = STOPPED;
		err = ask_faults(calibration, ring, seen, &idle_ns);
		bpf->bss->stopped = 0;
		if (!err)
			err = ask_faults(calibration, ring, seen, &begun_ns);
		if (err)
			break;
		probes_window(probes, true);
		err = ask_faults(calibration, ring, seen, &timed_ns);
		probes_window(probes, false);
		triples->idle_ns[at] = idle_ns;
		triples->begin_ns[at] = begun_ns - idle_ns;
		triples->end_ns[at] = timed_ns - begun_ns;
		if (seen->timed_faults)
			triples->inside_ns[at] =
				1.0 * seen->timed_cpu_ns / seen->timed_faults - idle_ns;
		else
			triples->untimed++;
	}
	return err;
}

int calibration_run(struct calibration *calibration, struct memtoll_bpf *bpf,
		    enum uprobe_mechanism mechanism, struct probes *probes, bool with_uprobes,
		    struct calibration_result *result)
{
	uint32_t pid = calibration->pid;
	const struct memtoll_target row = {};
	struct round probed[ROUNDS], idle[ROUNDS], counted[ROUNDS];
	struct fault_triples triples = {};
	struct uprobe_attachment *attachments[PROBE_GROUPS] = {};
	struct ring_buffer *ring = NULL;
	struct seen seen = { .pid = pid };
	struct memtoll_rates before, after;
	int err, group;

	memset(result, 0, sizeof(*result));
	err = process_row_put(bpf, pid, &row, false);
	if (err)
		goto out;
	ring = ring_buffer__new(bpf_map__fd(bpf->maps.events), on_event, &seen, NULL);
	if (!ring) {
		err = -errno;
		goto out;
	}
	if (with_uprobes && !attach_child(calibration, bpf, mechanism, attachments)) {
		err = -errno;
		goto out;
	}
	err = time_bare(calibration, probes, ring, &seen, &triples);
	if (!err)
		err = time_triples(calibration, bpf, probes, ring, &seen, &triples);
	if (err)
		goto out;
	rates_read(bpf, &before);
	err = ask(calibration, ORDER_PROBED, probed);
	if (err)
		goto out;
	rates_read(bpf, &after);
	bpf->bss->idle_fns = ~0U;
	err = ask(calibration, ORDER_BLOCKS, idle);
	bpf->bss->idle_fns = 0;
	if (err)
		goto out;
	syscalls_count(probes_syscalls(probes), true);
	err = ask(calibration, ORDER_SYSCALLS, counted);
	syscalls_count(probes_syscalls(probes), false);
	if (err)
		goto out;
	fill_result(calibration, bpf, probed, idle, counted, result);
	fill_maps(&before, &after, result);
	fill_faults(&triples, &before, &after, result);
out:
	if (err)
		message("cannot calibrate: %s", strerror(-err));
	ring_buffer__free(ring);
	for (group = GROUP_PAIR; group < PROBE_GROUPS; group++)
		uprobe_detach_aside(attachments[group]);
	forget_child(bpf, pid);
	return err;
}

void calibration_end(struct calibration *calibration)
{
	if (!calibration)
		return;
	close(calibration->order_fd);
	close(calibration->result_fd);
	if (calibration->pid > 0) {
		kill(calibration->pid, SIGKILL);
		waitpid(calibration->pid, NULL, 0);
	}
	g_free(calibration);
}
