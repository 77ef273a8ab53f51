// SPDX-License-Identifier: GPL-2.0
/*
 * mmap_only: no C library and no allocator at all; maps memory, touches it and unmaps it.
 * Built with -nostdlib -static by the tests themselves.
 *
 * usage: mmap_only ROUNDS PAGES [--wait]
 */
#define PAGE 4096L
#define SYS_READ 0
#define SYS_WRITE 1
#define SYS_MMAP 9
#define SYS_MUNMAP 11
#define SYS_MADVISE 28
#define SYS_ALARM 37
#define SYS_EXIT_GROUP 231
#define PROT_READ_WRITE 3
#define MAP_PRIVATE_ANONYMOUS 0x22
#define MADV_NOHUGEPAGE 15

static long call6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

static long call3(long nr, long a, long b, long c)
{
	return call6(nr, a, b, c, 0, 0, 0);
}

static _Noreturn void leave(long status)
{
	for (;;)
		call3(SYS_EXIT_GROUP, status, 0, 0);
}

static long number(const char *text)
{
	long value = 0;

	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			leave(2);
		value = value * 10 + (*text - '0');
	}
	return value;
}

static char *put_text(char *at, const char *text)
{
	while (*text)
		*at++ = *text++;
	return at;
}

static char *put_number(char *at, long value)
{
	char digits[24];
	int n = 0;

	do {
		digits[n++] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	while (n)
		*at++ = digits[--n];
	return at;
}

static void wait_for_line(void)
{
	static const char ready[] = "{\"ready\": true}\n";
	char byte;

	call3(SYS_WRITE, 1, (long)ready, sizeof(ready) - 1);
	while (call3(SYS_READ, 0, (long)&byte, 1) == 1 && byte != '\n')
		;
}

__attribute__((noinline)) static void touch_pages(volatile char *map, long pages)
{
	for (long i = 0; i < pages; i++)
		map[i * PAGE] = 1; /* SITE touch */
}

static void one_round(long pages)
{
	long map = call6(SYS_MMAP, 0, pages * PAGE, PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS, -1, 0);

	if (map < 0 && map > -4096)
		leave(1);
	/* Fails where the kernel has no huge pages, and then there is nothing to refuse. */
	call3(SYS_MADVISE, map, pages * PAGE, MADV_NOHUGEPAGE);
	touch_pages((volatile char *)map, pages);
	if (call3(SYS_MUNMAP, map, pages * PAGE, 0))
		leave(1);
}

/* rsp at entry: argc, argv[0], argv[1] ... (System V AMD64 ABI, 3.4.1). */
__attribute__((used)) static _Noreturn void start(long *stack)
{
	char **argv = (char **)(stack + 1);
	long rounds, pages;
	char line[128], *at = line;

	call3(SYS_ALARM, 120, 0, 0);
	if (stack[0] < 3)
		leave(2);
	rounds = number(argv[1]);
	pages = number(argv[2]);
	if (stack[0] > 3)
		wait_for_line();
	for (long i = 0; i < rounds; i++)
		one_round(pages);
	at = put_text(at, "{\"rounds\": ");
	at = put_number(at, rounds);
	at = put_text(at, ", \"pages\": ");
	at = put_number(at, rounds * pages);
	at = put_text(at, "}\n");
	call3(SYS_WRITE, 1, (long)line, at - line);
	leave(0);
}

__asm__(".globl _start\n"
	"_start:\n"
	"	xor %ebp, %ebp\n"
	"	mov %rsp, %rdi\n"
	"	and $-16, %rsp\n"
	"	call start\n");
