/* SPDX-License-Identifier: GPL-2.0 */
/*
 * php.h: PHP's frames and code, for python_offsets.h and python_code.h: by a table for each version,
 * from the sources' Zend/zend_compile.h, zend_globals.h and zend_types.h.
 */
#ifndef MEMTOLL_PHP_H
#define MEMTOLL_PHP_H

#include "python/python_code.h"
#include "python/python_offsets.h"
#include "symbols/image.h"

/* The interpreter in an image. 0 or -ENOTSUP: of another version, or built with threads. */
int php_layout_find(const struct image *image, uint64_t bias, const struct python_symbols *symbols,
		    struct python_layout *layout);

void php_code_peek(pid_t pid, const struct python_layout *layout, const uint64_t *addresses,
		   size_t count, struct python_code_key *keys);
/* Function and file of code whose key is known; NULL where they cannot be read. */
void php_code_name(pid_t pid, const struct python_layout *layout, struct python_code *code);
GArray *php_code_runs(pid_t pid, const struct python_layout *layout,
		      const struct python_code_key *key);
bool php_code_has(const struct python_code_key *key, uint32_t byte);

#endif /* MEMTOLL_PHP_H */
