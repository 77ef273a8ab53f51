// SPDX-License-Identifier: GPL-2.0
#include "top/top_machine.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/message.h"
#include "base/text.h"
#include "host/proc.h"
#include "host/timed_call.h"
#include "top/top_counters.h"
#include "top/top_groups.h"
#include "top/top_machine_probes.h"
#include "top/top_pseudonyms.h"

#define STEP_NS 25000000ULL
#define FIRST_NS 500000000ULL /* something is on the screen soon */
#define PAGE_BYTES 4096.0
#define COMMAND_MOST 1024 /* bytes */

enum process_value {
	VALUE_PAGES, /* all that follow, as one number to sort by */
	VALUE_ZEROED,
	VALUE_SWAP,
	VALUE_FILE,
	VALUE_BACK,
	VALUE_PUSHED,
	VALUE_WAITED,
	VALUE_RECLAIM,
	PROCESS_VALUES,
};

enum push_value { PUSH_PAGES, PUSH_BACK, PUSH_WAITED, PUSH_SWAP, PUSH_FILE, PUSH_VALUES };

static const struct top_columns process_columns = {
	.name = "processes",
	.label = "NAME",
	.label_key = "name",
	.text = "CGROUP",
	.text_keys = { "command", "cgroup" },
	.count = PROCESS_VALUES,
	.columns = {
		[VALUE_PAGES] = { "PAGES", "pages", TOP_COUNT },
		[VALUE_ZEROED] = { "ZEROED", "zeroed_bytes", TOP_BYTES },
		[VALUE_SWAP] = { "SWAPIN", "swap_faults", TOP_COUNT },
		[VALUE_FILE] = { "FILEIN", "file_faults", TOP_COUNT },
		[VALUE_BACK] = { "BACK", "refaulted_pages", TOP_COUNT },
		[VALUE_PUSHED] = { "PUSHED", "pushed_pages", TOP_COUNT },
		[VALUE_WAITED] = { "WAITED", "waited_s", TOP_TIME },
		[VALUE_RECLAIM] = { "RECLM", "reclaim_s", TOP_TIME },
	},
};

static const struct top_columns push_columns = {
	.name = "pushes",
	.label = "PUSHED BY",
	.label_key = "pusher",
	.text = "PAGES OF",
	.text_keys = { "victim" },
	.count = PUSH_VALUES,
	.columns = {
		[PUSH_PAGES] = { "PAGES", "pages", TOP_COUNT },
		[PUSH_BACK] = { "BACK", "back_pages", TOP_COUNT },
		[PUSH_WAITED] = { "WAITED", "waited_s", TOP_TIME },
		[PUSH_SWAP] = { "SWAP", "swap_pages", TOP_COUNT },
		[PUSH_FILE] = { "FILE", "file_pages", TOP_COUNT },
	},
};

/* As of the last interval. */
struct kept_push {
	struct machine_push push;
	double waited_ns; /* so far */
};

struct push_pair {
	struct machine_push_key key;
	struct machine_push push;
	struct kept_push before;
};

struct top_machine {
	const struct machine_config *config;
	struct machine_probes *probes;
	struct top_groups *groups;
	struct top_counters *counters;
	GHashTable *processes;	/* uint32_t -> struct machine_process, as of the last interval */
	GHashTable *group_rows; /* uint64_t -> struct machine_group */
	GHashTable *pushes;	/* struct machine_push_key -> struct kept_push */
	uint64_t start_ns, begin_ns;
	/* So far, for the sentence. */
	struct {
		struct machine_push_key key;
		char *pusher, *victim;
		double pages, waited_ns;
	} worst;
};

static guint hash_push(gconstpointer data)
{
	const struct machine_push_key *key = data;

	return (guint)(key->pusher * 31 + key->victim * 131 + key->by_kswapd);
}

static gboolean same_push(gconstpointer a, gconstpointer b)
{
	return !memcmp(a, b, sizeof(struct machine_push_key));
}

/* Scaled, where it was watched a part of the time only. */
static double scaled(uint64_t now, uint64_t before, double watched)
{
	return now > before ? (double)(now - before) / watched : 0;
}

/* Of now, as it may have been made before an exec. */
static void read_name(uint32_t pid, char name[MACHINE_COMM])
{
	g_autofree char *path = g_strdup_printf("/proc/%u/comm", pid), *text = NULL;

	if (g_file_get_contents(path, &text, NULL, NULL) && *text)
		g_strlcpy(name, g_strchomp(text), MACHINE_COMM);
}

/* What can be told by; a linker's may be some hundred thousand letters. */
static char *read_command(uint32_t pid)
{
	char *text = proc_cmdline((pid_t)pid);

	if (text && strlen(text) > COMMAND_MOST)
		text[COMMAND_MOST] = '\0';
	return text;
}

/* What they are called; freed by the caller. */
static void name_process(const struct top_machine *machine, uint32_t pid,
			 const char comm[MACHINE_COMM], char **name, char **command)
{
	struct top_pseudonyms *pseudonyms = machine->config->pseudonyms;
	char now[MACHINE_COMM];

	memcpy(now, comm, sizeof(now));
	read_name(pid, now);
	*name = top_pseudonym(pseudonyms, "program", now);
	*command = pseudonyms ? g_strconcat(*name, " ...", NULL) : read_command(pid);
	if (!*command)
		*command = g_strdup(*name);
}

static void add_process(struct top_machine *machine, struct top_snapshot *snapshot, uint32_t pid,
			const struct machine_process *now, const struct machine_cost *cost)
{
	static const struct machine_process none;
	const struct machine_process *before = g_hash_table_lookup(machine->processes, &pid);
	g_autofree char *name = NULL, *command = NULL;
	double values[PROCESS_VALUES], timed, waited;
	struct top_row *row;

	if (!before || before->born_ns != now->born_ns)
		before = &none;
	timed = (double)(now->timed_faults - before->timed_faults);
	waited = (double)(now->waited_ns - before->waited_ns);
	values[VALUE_ZEROED] =
		PAGE_BYTES * scaled(now->zeroed_pages, before->zeroed_pages, cost->watched);
	values[VALUE_SWAP] = scaled(now->swap_faults, before->swap_faults, 1);
	values[VALUE_FILE] = scaled(now->file_faults, before->file_faults, 1);
	values[VALUE_BACK] = scaled(now->refaulted_pages, before->refaulted_pages, 1);
	values[VALUE_PUSHED] = scaled(now->pushed_pages, before->pushed_pages, 1);
	values[VALUE_RECLAIM] = scaled(now->reclaim_ns, before->reclaim_ns, 1);
	/* Those that were not timed waited as long as the others did. */
	values[VALUE_WAITED] =
		timed > 0 ? waited / timed * (values[VALUE_SWAP] + values[VALUE_FILE]) : 0;
	values[VALUE_PAGES] = values[VALUE_ZEROED] / PAGE_BYTES + values[VALUE_SWAP] +
			      values[VALUE_FILE] + values[VALUE_BACK] + values[VALUE_PUSHED];
	if (values[VALUE_PAGES] <= 0 && values[VALUE_RECLAIM] <= 0)
		return;
	name_process(machine, pid, now->comm, &name, &command);
	row = top_row_add(&snapshot->processes, pid, name, command,
			  top_group(machine->groups, now->group));
	memcpy(row->values, values, sizeof(values));
}

/* Rows of processes that are gone make room. */
static void read_processes(struct top_machine *machine, struct top_snapshot *snapshot,
			   const struct machine_cost *cost)
{
	int fd = machine_probes_processes(machine->probes);
	g_autoptr(GArray) gone = g_array_new(FALSE, FALSE, sizeof(uint32_t));
	uint32_t pid, *last = NULL, *copy;
	guint i;

	while (!bpf_map_get_next_key(fd, last, &pid)) {
		/* Before its row is read: what it does until it ends is in there, too. */
		bool ended = kill((pid_t)pid, 0) && errno == ESRCH;
		struct machine_process now;

		last = &pid;
		if (bpf_map_lookup_elem(fd, &pid, &now))
			continue;
		now.comm[MACHINE_COMM - 1] = '\0';
		add_process(machine, snapshot, pid, &now, cost);
		if (ended) {
			g_array_append_val(gone, pid);
			continue;
		}
		copy = g_new(uint32_t, 1);
		*copy = pid;
		g_hash_table_replace(machine->processes, copy, g_memdup2(&now, sizeof(now)));
	}
	for (i = 0; i < gone->len; i++) {
		bpf_map_delete_elem(fd, &g_array_index(gone, uint32_t, i));
		g_hash_table_remove(machine->processes, &g_array_index(gone, uint32_t, i));
	}
}

/* Of a group whose pages were pushed out. */
struct victim {
	uint64_t number;
	double pages;	  /* pushed out so far, as what it waits for now was pushed out before */
	double waited_ns; /* in this interval */
};

/* How long the processes of a group waited for such pages in this interval. */
static double group_waited(struct top_machine *machine, uint64_t number)
{
	static const struct machine_group none;
	const struct machine_group *before = g_hash_table_lookup(machine->group_rows, &number);
	struct machine_group now;
	double timed;

	if (bpf_map_lookup_elem(machine_probes_groups(machine->probes), &number, &now))
		return 0;
	before = before ? before : &none;
	timed = (double)(now.timed_faults - before->timed_faults);
	return timed > 0 ? (double)(now.waited_ns - before->waited_ns) / timed *
				   (double)(now.faults - before->faults) :
			   0;
}

/* Rows of groups that are gone are never asked for: where there are many, all begin anew. */
static void forget_rows(int fd, GHashTable *rows, unsigned int most)
{
	GHashTableIter each;
	gpointer key;

	if (g_hash_table_size(rows) < most)
		return;
	g_hash_table_iter_init(&each, rows);
	while (g_hash_table_iter_next(&each, &key, NULL))
		bpf_map_delete_elem(fd, key);
	g_hash_table_remove_all(rows);
}

static void keep_groups(struct top_machine *machine)
{
	int fd = machine_probes_groups(machine->probes);
	uint64_t number, *last = NULL, *copy;
	struct machine_group now;

	while (!bpf_map_get_next_key(fd, last, &number)) {
		last = &number;
		if (bpf_map_lookup_elem(fd, &number, &now))
			continue;
		copy = g_memdup2(&number, sizeof(number));
		g_hash_table_replace(machine->group_rows, copy, g_memdup2(&now, sizeof(now)));
	}
}

static double pages_of(const struct machine_push *push)
{
	return (double)(push->swap_pages + push->file_pages);
}

static GArray *read_pushes(struct top_machine *machine)
{
	int fd = machine_probes_pushes(machine->probes);
	GArray *pairs = g_array_new(FALSE, TRUE, sizeof(struct push_pair));
	struct machine_push_key key, *last = NULL;

	while (!bpf_map_get_next_key(fd, last, &key)) {
		struct push_pair pair = { .key = key };
		const struct kept_push *before = g_hash_table_lookup(machine->pushes, &key);

		last = &key;
		if (bpf_map_lookup_elem(fd, &key, &pair.push))
			continue;
		if (before)
			pair.before = *before;
		g_array_append_val(pairs, pair);
	}
	return pairs;
}

static void keep_push(struct top_machine *machine, const struct push_pair *pair, double waited_ns)
{
	const struct kept_push kept = { pair->push, waited_ns };

	g_hash_table_replace(machine->pushes, g_memdup2(&pair->key, sizeof(pair->key)),
			     g_memdup2(&kept, sizeof(kept)));
}

static GHashTable *read_victims(struct top_machine *machine, const GArray *pairs)
{
	GHashTable *victims = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, g_free);
	guint i;

	for (i = 0; i < pairs->len; i++) {
		const struct push_pair *pair = &g_array_index(pairs, struct push_pair, i);
		struct victim *victim = g_hash_table_lookup(victims, &pair->key.victim);

		if (!victim) {
			victim = g_new0(struct victim, 1);
			victim->number = pair->key.victim;
			victim->waited_ns = group_waited(machine, victim->number);
			g_hash_table_insert(victims, &victim->number, victim);
		}
		victim->pages += pages_of(&pair->push);
	}
	return victims;
}

/* Whose victim has waited longest so far; where none has, who pushed out most. */
static void note_worst(struct top_machine *machine, const struct push_pair *pair, double waited_ns)
{
	double pages = pages_of(&pair->push);

	if (pair->key.pusher == pair->key.victim || !pair->key.victim || !pair->key.pusher ||
	    waited_ns < machine->worst.waited_ns ||
	    (waited_ns <= machine->worst.waited_ns && pages < machine->worst.pages))
		return;
	g_free(machine->worst.pusher);
	g_free(machine->worst.victim);
	/* Whoever may make a group may call it anything. */
	machine->worst.pusher = text_printable(top_group(machine->groups, pair->key.pusher));
	machine->worst.victim = text_printable(top_group(machine->groups, pair->key.victim));
	machine->worst.pages = pages;
	machine->worst.waited_ns = waited_ns;
	machine->worst.key = pair->key;
}

static void add_pushes(struct top_machine *machine, struct top_snapshot *snapshot)
{
	g_autoptr(GArray) pairs = read_pushes(machine);
	g_autoptr(GHashTable) victims = read_victims(machine, pairs);
	guint i;

	for (i = 0; i < pairs->len; i++) {
		const struct push_pair *pair = &g_array_index(pairs, struct push_pair, i);
		const struct victim *victim = g_hash_table_lookup(victims, &pair->key.victim);
		double waited, pages, back;
		g_autofree char *pusher = NULL;
		struct top_row *row;

		waited = victim->pages > 0 ?
				 victim->waited_ns * pages_of(&pair->push) / victim->pages :
				 0;
		note_worst(machine, pair, pair->before.waited_ns + waited);
		keep_push(machine, pair, pair->before.waited_ns + waited);
		pages = pages_of(&pair->push) - pages_of(&pair->before.push);
		back = (double)(pair->push.back_pages - pair->before.push.back_pages);
		if (pages <= 0 && back <= 0 && waited <= 0)
			continue;
		pusher = g_strconcat(top_group(machine->groups, pair->key.pusher),
				     pair->key.by_kswapd ? " (kswapd)" : "", NULL);
		row = top_row_add(&snapshot->details, 0, pusher,
				  top_group(machine->groups, pair->key.victim), NULL);
		row->values[PUSH_PAGES] = pages;
		row->values[PUSH_SWAP] =
			(double)(pair->push.swap_pages - pair->before.push.swap_pages);
		row->values[PUSH_FILE] =
			(double)(pair->push.file_pages - pair->before.push.file_pages);
		row->values[PUSH_BACK] = back;
		row->values[PUSH_WAITED] = waited;
	}
	keep_groups(machine);
	forget_rows(machine_probes_groups(machine->probes), machine->group_rows,
		    MACHINE_GROUPS_MOST * 3 / 4);
	forget_rows(machine_probes_pushes(machine->probes), machine->pushes,
		    MACHINE_PUSHES_MOST * 3 / 4);
}

/* Who pushes out whom; or who has most cleared. */
static char *say(const struct top_machine *machine, const struct top_snapshot *snapshot)
{
	const struct top_row *most = NULL;
	guint i;

	if (machine->worst.pusher) {
		g_autofree char *pusher = g_path_get_basename(machine->worst.pusher);
		g_autofree char *victim = g_path_get_basename(machine->worst.victim);

		return g_strdup_printf("%s%s pushes out %s, %.0f pages, waited %.1f s", pusher,
				       machine->worst.key.by_kswapd ? " (kswapd)" : "", victim,
				       machine->worst.pages, machine->worst.waited_ns / 1e9);
	}
	for (i = 0; i < snapshot->processes.rows->len; i++) {
		const struct top_row *row = g_ptr_array_index(snapshot->processes.rows, i);

		if (!most || row->values[VALUE_ZEROED] > most->values[VALUE_ZEROED])
			most = row;
	}
	if (!most || most->values[VALUE_ZEROED] <= 0)
		return g_strdup("nobody pushes out others' pages");
	return g_strdup_printf("no group pushes out another; now %s zeroes most", most->label);
}

static void add_losses(struct top_snapshot *snapshot, const struct machine_cost *cost)
{
	static const char *const names[] = { "processes_full", "groups_full" };
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(names); i++)
		if (cost->lost[i])
			g_array_append_val(snapshot->losses,
					   ((struct top_loss){ names[i], cost->lost[i], true }));
}

static void tell(struct top_machine *machine, struct top_show *show, uint64_t now)
{
	struct top_snapshot *snapshot =
		top_snapshot_new("machine", &process_columns, &push_columns);
	struct machine_cost cost;

	machine_probes_end(machine->probes, now, &cost);
	top_groups_refresh(machine->groups);
	snapshot->target = g_strdup("whole machine");
	snapshot->elapsed_ns = now - machine->start_ns;
	snapshot->interval_ns = now - machine->begin_ns;
	snapshot->overhead = cost.overhead;
	snapshot->limit = machine->config->limit;
	snapshot->estimated = cost.watched < 0.99;
	read_processes(machine, snapshot, &cost);
	top_counters_add(machine->counters, snapshot);
	add_pushes(machine, snapshot);
	add_losses(snapshot, &cost);
	snapshot->sentence = say(machine, snapshot);
	top_show_snapshot(show, snapshot);
}

static bool is_asked_to_end(uint64_t wait_ns)
{
	const struct timespec timeout = { .tv_nsec = (long)wait_ns };
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	return sigtimedwait(&signals, NULL, &timeout) > 0;
}

static void run(struct top_machine *machine, struct top_show *show)
{
	const struct machine_config *config = machine->config;
	uint64_t now = now_ns(), length = MIN(FIRST_NS, config->interval_ns);
	bool over = false;

	machine->start_ns = machine->begin_ns = now;
	machine_probes_begin(machine->probes, now, length);
	while (!over) {
		over = is_asked_to_end(STEP_NS);
		now = now_ns();
		over |= config->duration_ns && now - machine->start_ns >= config->duration_ns;
		machine_probes_step(machine->probes, now);
		if (now - machine->begin_ns < length && !over)
			continue;
		tell(machine, show, now); /* the rest of the last one, too: sums are to be whole */
		length = config->interval_ns;
		machine->begin_ns = now;
		if (!over)
			machine_probes_begin(machine->probes, machine->begin_ns, length);
	}
}

int top_machine_run(const struct machine_config *config, struct top_show *show)
{
	struct top_machine machine = { .config = config };
	bool unsupported;

	machine.probes = machine_probes_open(config->limit, &unsupported);
	if (!machine.probes)
		return unsupported ? STATUS_UNSUPPORTED : STATUS_FAILED;
	machine.groups = top_groups_new(NULL, config->pseudonyms);
	machine.counters = top_counters_new();
	machine.processes = g_hash_table_new_full(g_int_hash, g_int_equal, g_free, g_free);
	machine.group_rows = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
	machine.pushes = g_hash_table_new_full(hash_push, same_push, g_free, g_free);
	run(&machine, show);
	timed_call_finish();
	machine_probes_close(machine.probes);
	top_groups_free(machine.groups);
	top_counters_free(machine.counters);
	g_hash_table_destroy(machine.processes);
	g_hash_table_destroy(machine.group_rows);
	g_hash_table_destroy(machine.pushes);
	g_free(machine.worst.pusher);
	g_free(machine.worst.victim);
	return STATUS_DONE;
}
