// SPDX-License-Identifier: GPL-2.0
/* libpages.so: many pages of constant data, for a program that maps it while it runs. */
#include "libpages.h"

__attribute__((visibility("default"))) const char libpages_data[LIBPAGES * 4096] = { 1, 2, 3 };
