// SPDX-License-Identifier: GPL-2.0
/*
 * front: a library to be preloaded whose malloc, which calls libc's, begins as far into its page as
 * AT says.
 */
#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)

__asm__(".pushsection .text.alike, \"ax\", @progbits\n"
	".balign 4096\n"
	".skip " TEXT(AT) ", 0x90\n"
			  ".globl malloc\n"
			  ".type malloc, @function\n"
			  "malloc:\n"
			  "push %rbx\n"
			  "call __libc_malloc@PLT\n"
			  "pop %rbx\n"
			  "ret\n"
			  ".size malloc, .-malloc\n"
			  ".popsection\n");
