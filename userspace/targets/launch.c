// SPDX-License-Identifier: GPL-2.0
#include "targets/launch.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <signal.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <linux/ptrace.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/message.h"
#include "host/own_limits.h"
#include "host/privileges.h"
#include "host/proc.h"
#include "targets/storm.h"

#define FOLLOW (FOLLOW_PROCESSES | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXIT)
#define FOLLOW_PROCESSES \
	(PTRACE_O_TRACEEXEC | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACESYSGOOD)
#define SYSCALL_STOP (SIGTRAP | 0x80)

/*
 * A process that has made so many threads does not stop any more where it makes another or one
 * ends: that takes longer than the thread itself. The kernel side tells of what they do meanwhile.
 */
#define CROWD 128

/* A followed thread. */
struct tracee {
	pid_t tid;
	bool known;	   /* its first stop has been handled */
	bool starting;	   /* between exec and the end of dynamic loading */
	bool mapping;	   /* in an mmap that makes a file executable */
	bool will_signal;  /* its loader will send SIGURG at that end: not held at system calls */
	bool undisturbed;  /* it does not stop for threads: set_undisturbed() */
	unsigned int made; /* threads, by its process, of which it is the first; up to CROWD */
	pid_t tgid;	   /* its process; 0: not known yet */
	pid_t parent;	   /* the process that made it; 0: not known yet */
	uint64_t exec_ns;
	uint64_t loader_start;
	uint64_t loader_end;
};

/* A thread that is not followed as long as there is a storm. */
struct parted {
	pid_t tid;
	pid_t tgid;
	uint64_t start_ticks; /* distinguishes it from others of its number */
};

struct launch {
	pid_t pid;
	int go_fd;    /* written to let the child exec */
	int error_fd; /* the child writes errno here when exec fails */
	bool executed;
	bool ended;
	int wait_status;
	GHashTable *tracees; /* tid -> struct tracee */
	const struct launch_events *events;
	void *context;
	unsigned int will_signal; /* that many tracees */
	struct storm storm;
	GQueue parted; /* struct parted */
	uint64_t held_ns;
};

/* Processes are handled for so long at a time: windows, slices and signals wait. */
#define POLL_NS 10000000ULL
/* How long to wait for tracees to stop: one that waits inside the kernel does not. */
#define LET_GO_NS 1000000000ULL
#define LET_GO_STEP_NS 1000000

/* A loader that has not sent SIGURG for so long never will. */
#define SIGNAL_NS 200000000ULL

static struct tracee *tracee_get(struct launch *launch, pid_t tid)
{
	struct tracee *tracee = g_hash_table_lookup(launch->tracees, GINT_TO_POINTER(tid));

	if (!tracee) {
		tracee = g_new0(struct tracee, 1);
		tracee->tid = tid;
		g_hash_table_insert(launch->tracees, GINT_TO_POINTER(tid), tracee);
	}
	return tracee;
}

static struct tracee *tracee_find(const struct launch *launch, pid_t tid)
{
	return g_hash_table_lookup(launch->tracees, GINT_TO_POINTER(tid));
}

static bool is_crowd(const struct launch *launch, pid_t tgid)
{
	const struct tracee *first = tracee_find(launch, tgid);

	return first && first->made >= CROWD;
}

/*
 * What a thread of a crowd stops for. Its first one does at its end: nothing of the process's memory
 * is gone then, if all end at once.
 */
static unsigned long crowd_options(pid_t tid, pid_t tgid)
{
	return FOLLOW_PROCESSES | (tid == tgid ? PTRACE_O_TRACEEXIT : 0);
}

static void set_undisturbed(struct tracee *tracee, bool undisturbed)
{
	unsigned long options = undisturbed ? crowd_options(tracee->tid, tracee->tgid) : FOLLOW;

	if (!ptrace(PTRACE_SETOPTIONS, tracee->tid, NULL, options))
		tracee->undisturbed = undisturbed;
}

static void child_exec(char *const argv[], int go_fd, int error_fd)
{
	sigset_t none;
	char byte;
	int err;

	/* The tracer blocks the signals it reads from a descriptor; a mask survives exec. */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	own_limits_give_back();
	privileges_keep_from_command();
	if (read(go_fd, &byte, 1) != 1)
		_exit(127);
	execvp(argv[0], argv);
	err = errno;
	if (write(error_fd, &err, sizeof(err)) != sizeof(err))
		_exit(126);
	_exit(127);
}

struct launch *launch_new(char *const argv[], const struct launch_events *events, void *context)
{
	int go[2] = { -1, -1 }, error[2] = { -1, -1 };
	struct launch *launch = NULL;
	pid_t pid;

	if (pipe2(go, O_CLOEXEC) || pipe2(error, O_CLOEXEC)) {
		message("cannot make a pipe: %s", strerror(errno));
		goto fail;
	}
	pid = fork();
	if (pid < 0) {
		message("cannot fork: %s", strerror(errno));
		goto fail;
	}
	if (!pid) {
		close(go[1]);
		close(error[0]);
		child_exec(argv, go[0], error[1]);
	}
	close(go[0]);
	close(error[1]);
	if (ptrace(PTRACE_SEIZE, pid, NULL, FOLLOW)) {
		message("cannot follow the command: %s", strerror(errno));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		go[0] = -1;
		error[1] = -1;
		goto fail;
	}
	launch = g_new0(struct launch, 1);
	launch->pid = pid;
	launch->go_fd = go[1];
	launch->error_fd = error[0];
	launch->tracees = g_hash_table_new_full(NULL, NULL, NULL, g_free);
	launch->events = events;
	launch->context = context;
	tracee_get(launch, pid)->known = true;
	tracee_get(launch, pid)->tgid = pid;
	return launch;
fail:
	for (int i = 0; i < 2; i++) {
		if (go[i] >= 0)
			close(go[i]);
		if (error[i] >= 0)
			close(error[i]);
	}
	return NULL;
}

/* AT_BASE: where the kernel mapped the dynamic loader; 0 for a static program. */
static uint64_t loader_base(pid_t pid)
{
	char path[64];
	Elf64_auxv_t entry;
	uint64_t base = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/auxv", pid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	while (fread(&entry, sizeof(entry), 1, file) == 1 && entry.a_type != AT_NULL)
		if (entry.a_type == AT_BASE)
			base = entry.a_un.a_val;
	fclose(file);
	return base;
}

static void find_loader(struct tracee *tracee)
{
	uint64_t base = loader_base(tracee->tid);
	const struct mapping *first = NULL;
	struct maps maps = {};
	size_t i;

	tracee->loader_start = 0;
	tracee->loader_end = 0;
	if (base && !maps_read(tracee->tid, &maps)) {
		first = maps_find(&maps, base);
		for (i = 0; first && i < maps.count; i++) {
			if (!is_same_file(&maps.entries[i], first))
				continue;
			if (!tracee->loader_start)
				tracee->loader_start = maps.entries[i].start;
			tracee->loader_end = maps.entries[i].end;
		}
	}
	maps_free(&maps);
}

/* The message of an event: who was made, who called exec. 0 when the tracee is gone. */
static pid_t event_message(pid_t tid)
{
	unsigned long message = 0;

	return ptrace(PTRACE_GETEVENTMSG, tid, NULL, &message) ? 0 : (pid_t)message;
}

/* A signal that is blocked does not stop the tracee. 8: the kernel's sigset_t, in bytes. */
static bool is_blocked(pid_t tid, int signal)
{
	uint64_t mask;

	return ptrace(PTRACE_GETSIGMASK, tid, (void *)8, &mask) || mask >> (signal - 1) & 1;
}

static void set_signalling(struct launch *launch, struct tracee *tracee, bool will_signal)
{
	launch->will_signal += will_signal - tracee->will_signal;
	tracee->will_signal = will_signal;
}

static void on_ready(struct launch *launch, struct tracee *tracee)
{
	tracee->starting = false;
	set_signalling(launch, tracee, false);
	launch->events->ready(launch->context, tracee->tid);
}

static void on_exec(struct launch *launch, struct tracee *tracee)
{
	pid_t caller = event_message(tracee->tid);
	bool will_signal;

	launch->executed = true;
	set_signalling(launch, tracee, false);
	tracee->known = true;
	tracee->tgid = tracee->tid;
	tracee->mapping = false;
	tracee->made = 0;
	/* The kernel's options are those of the thread that called, this entry is the leader's. */
	set_undisturbed(tracee, false);
	/* Its own number is gone: it has the process's. */
	if (caller != tracee->tid)
		g_hash_table_remove(launch->tracees, GINT_TO_POINTER(caller));
	find_loader(tracee);
	will_signal =
		launch->events->exec(launch->context, tracee->tid, caller ? caller : tracee->tid,
				     tracee->loader_start, !is_blocked(tracee->tid, SIGURG));
	tracee->starting = tracee->loader_start != 0;
	tracee->exec_ns = now_ns();
	set_signalling(launch, tracee, will_signal);
	if (!tracee->starting)
		on_ready(launch, tracee);
}

/*
 * One step of dynamic loading. The loader makes its system calls itself, so the first one from
 * elsewhere shows that it is done, and everything mapped before was seen.
 */
static void on_syscall(struct launch *launch, struct tracee *tracee)
{
	struct __ptrace_syscall_info info;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, tracee->tid, sizeof(info), &info) <= 0) {
		tracee->starting = false;
		return;
	}
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
		if (info.instruction_pointer < tracee->loader_start ||
		    info.instruction_pointer >= tracee->loader_end) {
			on_ready(launch, tracee);
			return;
		}
		tracee->mapping = info.entry.nr == SYS_mmap && (info.entry.args[2] & PROT_EXEC) &&
				  !(info.entry.args[3] & MAP_ANONYMOUS);
	} else if (info.op == PTRACE_SYSCALL_INFO_EXIT && tracee->mapping) {
		tracee->mapping = false;
		if (!info.exit.is_error)
			launch->events->mapped(launch->context, tracee->tid);
	}
}

/*
 * /proc/TID/status exists for every thread; only a group leader is its own process. 0: it is gone.
 */
static pid_t process_of(pid_t tid)
{
	struct proc_status status;

	return proc_status_read(tid, &status) ? 0 : status.tgid;
}

static void on_ended(struct launch *launch, pid_t tid, int status)
{
	set_signalling(launch, tracee_get(launch, tid), false);
	g_hash_table_remove(launch->tracees, GINT_TO_POINTER(tid));
	if (tid == launch->pid) {
		launch->ended = true;
		launch->wait_status = status;
	}
}

static bool is_creation(int event)
{
	return event == PTRACE_EVENT_CLONE || event == PTRACE_EVENT_FORK ||
	       event == PTRACE_EVENT_VFORK;
}

/*
 * It is traced from its start, but its first stop has perhaps not been seen; by then its parent may
 * be gone.
 */
static void on_creation(struct launch *launch, struct tracee *tracee, int event)
{
	pid_t created = event_message(tracee->tid);
	struct tracee *first;

	if (created)
		tracee_get(launch, created)->parent = tracee->tgid;
	if (event != PTRACE_EVENT_CLONE) {
		storm_started(&launch->storm, now_ns());
		return;
	}
	first = tracee_find(launch, tracee->tgid);
	if (first && first->made < CROWD)
		first->made++;
	if (is_crowd(launch, tracee->tgid))
		set_undisturbed(tracee, true);
}

/* It has what its maker stopped for, which may be another process's thread. */
static void on_first_stop(struct launch *launch, struct tracee *tracee)
{
	tracee->known = true;
	tracee->tgid = process_of(tracee->tid);
	if (tracee->tgid == tracee->tid) {
		set_undisturbed(tracee, false);
		launch->events->forked(launch->context, tracee->tid, tracee->parent);
	} else if (is_crowd(launch, tracee->tgid)) {
		set_undisturbed(tracee, true);
	}
}

/*
 * In a storm of processes the thread that makes them is let go: to stop where it makes one, and again
 * at the signal that tells of its end, takes longer than many a program. False: it is not.
 */
static bool part(struct launch *launch, pid_t tid, int event)
{
	const struct tracee *tracee = tracee_find(launch, tid);
	struct parted parted = { .tid = tid };
	struct proc_stat stat;

	if ((event != PTRACE_EVENT_FORK && event != PTRACE_EVENT_VFORK) || !tracee ||
	    tracee->starting || !storm_is_on(&launch->storm, now_ns()) ||
	    proc_stat_read(tracee->tgid, tid, &stat))
		return false;
	parted.tgid = tracee->tgid;
	parted.start_ticks = stat.start_ticks;
	if (ptrace(PTRACE_DETACH, tid, NULL, NULL))
		return false;
	g_hash_table_remove(launch->tracees, GINT_TO_POINTER(tid));
	g_queue_push_tail(&launch->parted, g_memdup2(&parted, sizeof(parted)));
	return true;
}

static void on_stopped(struct launch *launch, pid_t tid, int status)
{
	struct tracee *tracee = tracee_get(launch, tid);
	int event = status >> 16, deliver = 0;

	if (event == PTRACE_EVENT_STOP) {
		if (!tracee->known) {
			on_first_stop(launch, tracee);
		} else if (WSTOPSIG(status) != SIGTRAP) {
			/* A stop by SIGSTOP, SIGTSTP...: stay stopped, as without a tracer. */
			ptrace(PTRACE_LISTEN, tid, NULL, NULL);
			return;
		} else if (tracee->will_signal) {
			on_ready(launch, tracee);
		}
	} else if (event == PTRACE_EVENT_EXEC) {
		on_exec(launch, tracee);
	} else if (is_creation(event)) {
		on_creation(launch, tracee, event);
		if (part(launch, tid, event))
			return;
	} else if (event == PTRACE_EVENT_EXIT) {
		if (tracee->will_signal)
			on_ready(launch, tracee);
		launch->events->dying(launch->context, tid);
	} else if (!event && WSTOPSIG(status) == SYSCALL_STOP) {
		if (tracee->starting)
			on_syscall(launch, tracee);
	} else if (!event && tracee->will_signal && WSTOPSIG(status) == SIGURG) {
		/* Swallowed: a program that has not begun ignores it anyway. */
		if (launch->events->started(launch->context, tid))
			on_ready(launch, tracee);
	} else if (!event) {
		deliver = WSTOPSIG(status);
	}
	ptrace(tracee->starting && !tracee->will_signal ? PTRACE_SYSCALL : PTRACE_CONT, tid, NULL,
	       (void *)(intptr_t)deliver);
}

/* One change of state; false when there is none. */
static bool poll_one(struct launch *launch, int flags)
{
	siginfo_t info = {};
	uint64_t stopped_ns;
	int status;

	/* Look first, reap later: a dead process has its counters until it is reaped. */
	if (waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOWAIT | __WALL | flags) || !info.si_pid)
		return false;
	/* The command, where it is not followed, and nobody's to let go on: the report is taken. */
	if (info.si_code == CLD_STOPPED) {
		waitid(P_PID, (id_t)info.si_pid, &info, WSTOPPED | WNOHANG | __WALL);
		return true;
	}
	stopped_ns = now_ns();
	if (info.si_code == CLD_EXITED || info.si_code == CLD_KILLED ||
	    info.si_code == CLD_DUMPED) {
		status = info.si_code == CLD_EXITED ? (info.si_status & 0xff) << 8 :
						      info.si_status & 0x7f;
		if (process_of(info.si_pid) == info.si_pid)
			launch->events->exiting(launch->context, info.si_pid, status);
	}
	if (waitpid(info.si_pid, &status, __WALL | WNOHANG) != info.si_pid)
		return true;
	if (WIFSTOPPED(status))
		on_stopped(launch, info.si_pid, status);
	else
		on_ended(launch, info.si_pid, status);
	launch->held_ns += now_ns() - stopped_ns;
	return true;
}

int launch_go(struct launch *launch)
{
	int error = 0;

	if (write(launch->go_fd, "", 1) != 1)
		return -errno;
	close(launch->go_fd);
	launch->go_fd = -1;
	while (!launch->executed && !launch->ended)
		poll_one(launch, 0);
	if (!launch->executed && read(launch->error_fd, &error, sizeof(error)) == sizeof(error))
		return -error;
	return launch->executed ? 0 : -ECHILD;
}

uint64_t launch_held_ns(const struct launch *launch)
{
	return launch->held_ns;
}

pid_t launch_pid(const struct launch *launch)
{
	return launch->pid;
}

/* Stop those whose loaders have not sent SIGURG for any reason: the rest is found then. */
static void stop_late(struct launch *launch)
{
	uint64_t now = now_ns();
	GHashTableIter iter;
	gpointer value;

	g_hash_table_iter_init(&iter, launch->tracees);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		struct tracee *tracee = value;

		if (tracee->will_signal && now - tracee->exec_ns > SIGNAL_NS) {
			tracee->exec_ns = now;
			ptrace(PTRACE_INTERRUPT, tracee->tid, NULL, NULL);
		}
	}
}

bool launch_poll(struct launch *launch)
{
	uint64_t until = now_ns() + POLL_NS;

	if (launch->will_signal)
		stop_late(launch);
	while (poll_one(launch, WNOHANG))
		if (now_ns() >= until)
			return true;
	return false;
}

/* From now on; it is not stopped for that. */
static bool seize(struct launch *launch, pid_t tid, pid_t tgid, unsigned long options)
{
	struct tracee *tracee;

	if (ptrace(PTRACE_SEIZE, tid, NULL, options))
		return false;
	tracee = tracee_get(launch, tid);
	set_signalling(launch, tracee, false);
	*tracee = (struct tracee){ .tid = tid, .known = true, .tgid = tgid };
	return true;
}

void launch_pay_starts(struct launch *launch, uint64_t every_ns)
{
	launch->storm.every_ns = every_ns;
}

void launch_started(struct launch *launch)
{
	storm_started(&launch->storm, now_ns());
}

/* So many at a time. */
#define FOLLOW_AGAIN 16

void launch_follow_again(struct launch *launch)
{
	uint64_t now = now_ns();
	bool on = storm_is_on(&launch->storm, now);
	unsigned int left = on ? 1 : FOLLOW_AGAIN;
	struct parted *parted;
	struct proc_stat stat;

	if (on && !storm_takes_sample(&launch->storm, now))
		return;
	while (left && (parted = g_queue_pop_head(&launch->parted))) {
		/* One that has ended meanwhile is no sample. */
		if (!tracee_find(launch, parted->tid) &&
		    !proc_stat_read(parted->tgid, parted->tid, &stat) &&
		    stat.start_ticks == parted->start_ticks &&
		    seize(launch, parted->tid, parted->tgid, FOLLOW))
			left--;
		g_free(parted);
	}
}

void launch_adopt(struct launch *launch, pid_t pid)
{
	seize(launch, pid, pid, FOLLOW);
}

static void adopt_threads(struct launch *launch, pid_t tgid)
{
	g_autofree char *path = g_strdup_printf("/proc/%d/task", tgid);
	GDir *threads = g_dir_open(path, 0, NULL);
	const char *name;

	while (threads && (name = g_dir_read_name(threads))) {
		pid_t tid = atoi(name);

		if (!tracee_find(launch, tid) && seize(launch, tid, tgid, crowd_options(tid, tgid)))
			tracee_find(launch, tid)->undisturbed = true;
	}
	if (threads)
		g_dir_close(threads);
}

void launch_adopt_threads(struct launch *launch)
{
	g_autoptr(GArray) crowds = g_array_new(FALSE, FALSE, sizeof(pid_t));
	GHashTableIter iter;
	gpointer value;
	guint i;

	g_hash_table_iter_init(&iter, launch->tracees);
	while (g_hash_table_iter_next(&iter, NULL, &value))
		if (((struct tracee *)value)->made >= CROWD)
			g_array_append_val(crowds, ((struct tracee *)value)->tid);
	for (i = 0; i < crowds->len; i++)
		adopt_threads(launch, g_array_index(crowds, pid_t, i));
}

bool launch_ended(const struct launch *launch, int *wait_status)
{
	if (launch->ended && wait_status)
		*wait_status = launch->wait_status;
	return launch->ended;
}

void launch_terminate(struct launch *launch)
{
	if (!launch->ended)
		kill(launch->pid, SIGTERM);
}

/*
 * Stop a tracee; false where it will not stop: it is no tracee any more, or it is a leader that has
 * ended before other threads of its process, and whose end is reported only after theirs.
 */
static bool will_stop(pid_t tid)
{
	struct proc_stat stat;

	return !ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) && !proc_stat_read(tid, 0, &stat) &&
	       stat.state != 'Z' && stat.state != 'X';
}

/* A tracee that has stopped is detached, and so is what it has just made. */
static void let_one_go(struct launch *launch, pid_t tid, int status)
{
	int event = status >> 16;
	bool is_signal = !event && WSTOPSIG(status) != SYSCALL_STOP;
	pid_t created = is_creation(event) ? event_message(tid) : 0;

	if (created && will_stop(created))
		tracee_get(launch, created);
	/* The thread that called exec has its process's number now. */
	if (event == PTRACE_EVENT_EXEC)
		g_hash_table_remove(launch->tracees, GINT_TO_POINTER(event_message(tid)));
	ptrace(PTRACE_DETACH, tid, NULL, (void *)(intptr_t)(is_signal ? WSTOPSIG(status) : 0));
}

/*
 * Only a stopped tracee can be detached. All are interrupted before the first is waited for: one
 * that calls exec waits for its other threads to end, and those wait for us at their end. The
 * kernel detaches those that do not stop in time when we exit.
 */
static void let_go(struct launch *launch)
{
	const struct timespec step = { .tv_nsec = LET_GO_STEP_NS };
	uint64_t until = now_ns() + LET_GO_NS;
	GHashTableIter iter;
	gpointer key;
	int status;

	g_hash_table_iter_init(&iter, launch->tracees);
	while (g_hash_table_iter_next(&iter, &key, NULL))
		if (!will_stop(GPOINTER_TO_INT(key)))
			g_hash_table_iter_remove(&iter);
	while (g_hash_table_size(launch->tracees)) {
		pid_t tid = waitpid(-1, &status, __WALL | WNOHANG);

		if (!tid && now_ns() < until) {
			nanosleep(&step, NULL);
			continue;
		}
		if (tid <= 0)
			break;
		if (WIFSTOPPED(status))
			let_one_go(launch, tid, status);
		g_hash_table_remove(launch->tracees, GINT_TO_POINTER(tid));
	}
}

void launch_free(struct launch *launch)
{
	if (!launch)
		return;
	let_go(launch);
	if (launch->go_fd >= 0)
		close(launch->go_fd);
	close(launch->error_fd);
	g_hash_table_destroy(launch->tracees);
	g_queue_clear_full(&launch->parted, g_free);
	g_free(launch);
}
