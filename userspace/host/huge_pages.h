/* SPDX-License-Identifier: GPL-2.0 */
/* huge_pages.h: the kernel's controls of huge pages (admin-guide/mm/transhuge.rst). */
#ifndef MEMTOLL_HUGE_PAGES_H
#define MEMTOLL_HUGE_PAGES_H

#include <stdbool.h>

#define HUGE_PAGES_CONTROL "/sys/kernel/mm/transparent_hugepage/enabled"

/* Whether this word is selected in a control such as "always [madvise] never". */
bool huge_pages_chosen(const char *control, const char *word);

/* The system's setting: always, madvise or never; NULL: the kernel has none. */
const char *huge_pages_setting(void);

#endif /* MEMTOLL_HUGE_PAGES_H */
