/* SPDX-License-Identifier: GPL-2.0 */
/* pages.h: sizes of pages, as x86-64 and arm64 with 4 KiB pages have them. */
#ifndef MEMTOLL_WIRE_PAGES_H
#define MEMTOLL_WIRE_PAGES_H

#define MEMTOLL_PAGE_SIZE 4096ULL

#endif /* MEMTOLL_WIRE_PAGES_H */
