/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMTOLL_LIBPAGES_H
#define MEMTOLL_LIBPAGES_H

#define LIBPAGES 307

#endif /* MEMTOLL_LIBPAGES_H */
