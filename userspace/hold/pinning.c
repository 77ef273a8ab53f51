// SPDX-License-Identifier: GPL-2.0
#include "hold/pinning.h"

#define SEED 29 /* the same blocks again, where nothing has changed */

void pinning_init(struct pinning *pinning)
{
	pinning->blocks = g_array_new(FALSE, FALSE, sizeof(struct pinning_block));
	pinning->ends = g_array_new(FALSE, FALSE, sizeof(struct pinning_end));
}

void pinning_free(struct pinning *pinning)
{
	g_clear_pointer(&pinning->blocks, g_array_unref);
	g_clear_pointer(&pinning->ends, g_array_unref);
}

static void halve(GArray *blocks, GRand *random)
{
	struct pinning_block *all = (struct pinning_block *)(void *)blocks->data;
	guint i, kept = 0;

	for (i = 0; i + 1 < blocks->len; i += 2) {
		const uint64_t sum = all[i].bytes + all[i + 1].bytes;
		const bool second = g_rand_double(random) * (double)sum >= (double)all[i].bytes;

		all[kept] = all[i + second];
		all[kept++].bytes = sum;
	}
	if (i < blocks->len)
		all[kept++] = all[i];
	g_array_set_size(blocks, kept);
}

void pinning_thin(struct pinning *pinning, guint most)
{
	g_autoptr(GRand) random = g_rand_new_with_seed(SEED + pinning->blocks->len);

	while (pinning->blocks->len > MAX(most, 1))
		halve(pinning->blocks, random);
}

void pinning_add(struct pinning *pinning, const struct pinning_block *block)
{
	if (pinning->blocks->len >= PINNING_MAX)
		pinning_thin(pinning, PINNING_MAX / 2);
	g_array_append_vals(pinning->blocks, block, 1);
}
