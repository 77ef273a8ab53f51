// SPDX-License-Identifier: GPL-2.0
#include "base/version.h"

/* Not linked into memtoll: the object that the Makefile makes defines it first. */
const char memtoll_version[] = "unknown";
