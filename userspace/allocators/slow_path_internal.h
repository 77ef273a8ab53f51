/* SPDX-License-Identifier: GPL-2.0 */
/* slow_path_internal.h: what slow_path.c and slow_path_free.c share. */
#ifndef MEMTOLL_SLOW_PATH_INTERNAL_H
#define MEMTOLL_SLOW_PATH_INTERNAL_H

#include "allocators/code_flow.h"
#include "allocators/slow_path.h"

struct slow_search {
	const struct slow_library *library;
	struct slow_paths *paths;
	struct flow_code code;
};

__attribute__((format(printf, 2, 3))) void slow_refuse(struct slow_path *path, const char *format,
						       ...);
bool slow_is_arena(const struct slow_search *search, const struct flow_value *value);
bool slow_is_exported(const struct slow_search *search, uint64_t address);
void slow_enter(const struct flow_state *state, bool is_call, struct flow_state *next);
bool slow_is_emulated(const uint8_t *code, size_t len);
/* Place and depth of an instruction; false: the kernel would single-step it, or no depth. */
bool slow_site_fill(const struct flow_state *state, const struct instruction *one,
		    const struct flow_code *code, struct slow_site *site);

/* free, when the arena is known. */
void slow_find_free(struct slow_search *search);

#endif /* MEMTOLL_SLOW_PATH_INTERNAL_H */
