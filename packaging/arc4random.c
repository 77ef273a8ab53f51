// SPDX-License-Identifier: GPL-2.0
/*
 * arc4random.c: for the tarball that runs on other distributions. libstdc++ asks glibc 2.36 for it, in
 * std::random_device, which comes along with streams and is never used; Ubuntu 22.04 has 2.35.
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

uint32_t arc4random(void);

uint32_t arc4random(void)
{
	uint32_t number;

	/* So few bytes come at once, or, before the first ones of a machine, not yet. */
	while (getrandom(&number, sizeof(number), 0) != sizeof(number))
		;
	return number;
}
