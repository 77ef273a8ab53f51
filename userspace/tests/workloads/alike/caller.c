// SPDX-License-Identifier: GPL-2.0
/*
 * caller: calls malloc and free from where the return address lies as far into its page as AT says.
 *
 * usage: caller COUNT
 */
#include "../workload.h"

#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)

void *call_malloc(size_t size);
void call_free(void *block);

/* A frame of 8 bytes, then a call of 5, behind which it goes on. */
/* clang-format off */
#define CALLER(name, function)                                                                     \
	".balign 4096\n"                                                                           \
	".skip (" TEXT(AT) " + 4096 - 9) % 4096, 0x90\n"                                           \
	".globl " name "\n"                                                                        \
	".type " name ", @function\n"                                                              \
	name ":\n"                                                                                 \
	"sub $8, %rsp\n"                                                                           \
	"call " function "@PLT\n"                                                                  \
	"add $8, %rsp\n"                                                                           \
	"ret\n"                                                                                    \
	".size " name ", .-" name "\n"
/* clang-format on */

__asm__(".pushsection .text.alike, \"ax\", @progbits\n" CALLER("call_malloc", "malloc")
		CALLER("call_free", "free") ".popsection\n");

int main(int argc, char **argv)
{
	uint64_t count;

	alarm(WORKLOAD_LIFE_S);
	if (argc != 2)
		return 2;
	count = workload_number(argv[0], argv[1]);
	for (uint64_t i = 0; i < count; i++)
		call_free(call_malloc(24 + i % 97));
	workload_report("\"malloc\": %llu", (unsigned long long)count);
	return 0;
}
