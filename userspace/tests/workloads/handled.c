// SPDX-License-Identifier: GPL-2.0
/*
 * handled: faults that the kernel does not answer by a page of its own. Each part has its own
 * number of pages; the handlers take their time, and count what they were asked for.
 *
 * usage: handled MISSING OUTSIDE PROTECTED MINOR FORBIDDEN
 *
 *   MISSING    not there: brought by a thread (UFFDIO_COPY)
 *   OUTSIDE    the same, brought by another process
 *   PROTECTED  write-protected by userfaultfd: a thread takes the protection away
 *   MINOR      in the page cache, but not mapped: a thread allows that (UFFDIO_CONTINUE)
 *   FORBIDDEN  read-only by mprotect: the program's handler of SIGSEGV makes each writable
 */
#define _GNU_SOURCE
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "witness.h"

#define LATENCY_NS 150000

static int userfault = -1;
static uint64_t answered;
static volatile uint64_t forbidden;
static char source[PAGE] __attribute__((aligned(PAGE)));

static void must(int result)
{
	if (result < 0)
		_exit(100 + errno % 20);
}

static NOINLINE void answer(const struct uffd_msg *message)
{
	uint64_t page = message->arg.pagefault.address & ~(PAGE - 1);
	struct uffdio_copy copy = { .dst = page, .src = (uint64_t)source, .len = PAGE };
	struct uffdio_continue go = { .range = { page, PAGE } };
	struct uffdio_writeprotect allow = { .range = { page, PAGE } };
	const struct timespec pause = { .tv_nsec = LATENCY_NS };

	nanosleep(&pause, NULL);
	if (message->arg.pagefault.flags & UFFD_PAGEFAULT_FLAG_WP)
		must(ioctl(userfault, UFFDIO_WRITEPROTECT, &allow)); /* SITE allow */
	else if (message->arg.pagefault.flags & UFFD_PAGEFAULT_FLAG_MINOR)
		must(ioctl(userfault, UFFDIO_CONTINUE, &go)); /* SITE go */
	else
		must(ioctl(userfault, UFFDIO_COPY, &copy)); /* SITE copy */
	answered++;
}

static void *handle(void *unused)
{
	struct uffd_msg message;

	while (read(userfault, &message, sizeof(message)) == sizeof(message))
		answer(&message);
	return unused;
}

static void open_userfault(void)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_MINOR_SHMEM };

	userfault = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	must(userfault);
	must(ioctl(userfault, UFFDIO_API, &api));
}

static void watch(char *memory, uint64_t len, uint64_t mode)
{
	struct uffdio_register range = { .range = { (uint64_t)memory, len }, .mode = mode };

	must(ioctl(userfault, UFFDIO_REGISTER, &range));
}

static char *map(uint64_t len)
{
	char *memory = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must(memory == MAP_FAILED ? -1 : 0);
	madvise(memory, len, MADV_NOHUGEPAGE);
	return memory;
}

static NOINLINE void touch_missing(volatile char *memory, uint64_t len)
{
	for (uint64_t at = 0; at < len; at += PAGE)
		memory[at]++; /* SITE missing */
}

static NOINLINE void touch_outside(volatile char *memory, uint64_t len)
{
	for (uint64_t at = 0; at < len; at += PAGE)
		memory[at]++; /* SITE outside */
}

static NOINLINE void touch_protected(volatile char *memory, uint64_t len)
{
	for (uint64_t at = 0; at < len; at += PAGE)
		memory[at]++; /* SITE protected */
}

static NOINLINE void touch_minor(volatile char *memory, uint64_t len)
{
	for (uint64_t at = 0; at < len; at += PAGE)
		memory[at]++; /* SITE minor */
}

static NOINLINE void touch_forbidden(volatile char *memory, uint64_t len)
{
	for (uint64_t at = 0; at < len; at += PAGE)
		memory[at]++; /* SITE forbidden */
}

/* In another process: what it copies from is its own, where it copies to its parent's. */
static void run_outside(uint64_t pages)
{
	char *memory = map(pages * PAGE);
	pid_t child;

	open_userfault();
	watch(memory, pages * PAGE, UFFDIO_REGISTER_MODE_MISSING);
	child = fork();
	must(child);
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		handle(NULL);
		_exit(0);
	}
	touch_outside(memory, pages * PAGE);
	kill(child, SIGKILL);
	close(userfault);
}

static void run_minor(uint64_t pages)
{
	uint64_t len = pages * PAGE;
	int fd = memfd_create("handled", MFD_CLOEXEC);
	char *filled, *memory;

	must(fd);
	must(ftruncate(fd, (off_t)len));
	filled = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	memory = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	must(filled == MAP_FAILED || memory == MAP_FAILED ? -1 : 0);
	memset(filled, 3, len);
	watch(memory, len, UFFDIO_REGISTER_MODE_MINOR);
	touch_minor(memory, len);
}

static void allow(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	must(mprotect((void *)((uint64_t)info->si_addr & ~(PAGE - 1)), PAGE,
		      PROT_READ | PROT_WRITE));
	forbidden++;
}

static void run_forbidden(uint64_t pages)
{
	struct sigaction action = { .sa_sigaction = allow, .sa_flags = SA_SIGINFO };
	char *memory = map(pages * PAGE);

	memset(memory, 1, pages * PAGE);
	must(sigaction(SIGSEGV, &action, NULL));
	must(mprotect(memory, pages * PAGE, PROT_READ));
	touch_forbidden(memory, pages * PAGE);
}

int main(int argc, char **argv)
{
	uint64_t pages[5], i;
	struct uffdio_writeprotect protect;
	pthread_t thread;
	char *memory;

	alarm(WORKLOAD_LIFE_S);
	if (argc != 6)
		return 2;
	for (i = 0; i < 5; i++)
		pages[i] = workload_number("pages", argv[i + 1]);
	memset(source, 7, sizeof(source));
	run_outside(pages[1]);
	open_userfault();
	must(-pthread_create(&thread, NULL, handle, NULL));
	memory = map(pages[0] * PAGE);
	watch(memory, pages[0] * PAGE, UFFDIO_REGISTER_MODE_MISSING);
	touch_missing(memory, pages[0] * PAGE);
	memory = map(pages[2] * PAGE);
	memset(memory, 1, pages[2] * PAGE);
	watch(memory, pages[2] * PAGE, UFFDIO_REGISTER_MODE_WP);
	protect = (struct uffdio_writeprotect){ .range = { (uint64_t)memory, pages[2] * PAGE },
						.mode = UFFDIO_WRITEPROTECT_MODE_WP };
	must(ioctl(userfault, UFFDIO_WRITEPROTECT, &protect));
	touch_protected(memory, pages[2] * PAGE);
	run_minor(pages[3]);
	run_forbidden(pages[4]);
	workload_report("\"answered\": %llu, \"forbidden\": %llu", (unsigned long long)answered,
			(unsigned long long)forbidden);
	return 0;
}
