/* SPDX-License-Identifier: GPL-2.0 */
/* sampling_table.h: the logarithms that bpf/wire/sampling.h draws its gaps by. */
#ifndef MEMTOLL_SAMPLING_TABLE_H
#define MEMTOLL_SAMPLING_TABLE_H

#include <stdint.h>

/* log: room for SAMPLING_LOG_ENTRIES. */
void sampling_fill(uint32_t *log);

#endif /* MEMTOLL_SAMPLING_TABLE_H */
