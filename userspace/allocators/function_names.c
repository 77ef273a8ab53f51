// SPDX-License-Identifier: GPL-2.0
/*
 * function_names.c: manuals of glibc (3.2.3), jemalloc(3), gperftools, mimalloc; the operators as
 * the Itanium C++ ABI mangles them. Those with an alignment take the size first, as the others do.
 */
#include "allocators/function_names.h"

#include "allocators/placement.h"

#define RDI PLACEMENT_RDI
#define RSI PLACEMENT_RSI
#define RDX PLACEMENT_RDX

const struct family_function family_functions[] = {
	{ "malloc", FN_MALLOC, RDI, false },
	{ "calloc", FN_CALLOC, RDI | RSI, false },
	{ "realloc", FN_REALLOC, RDI | RSI, false },
	{ "reallocarray", FN_REALLOCARRAY, RDI | RSI | RDX, false },
	{ "free", FN_FREE, RDI, false },
	{ "posix_memalign", FN_POSIX_MEMALIGN, RDI | RSI | RDX, false },
	{ "aligned_alloc", FN_ALIGNED_ALLOC, RDI | RSI, false },
	{ "memalign", FN_MEMALIGN, RDI | RSI, false },
	{ "valloc", FN_MALLOC, RDI, false },
	{ "pvalloc", FN_MALLOC, RDI, false },
	{ "cfree", FN_FREE, RDI, false },
	{ "free_sized", FN_FREE, RDI, false },
	{ "free_aligned_sized", FN_FREE, RDI, false },
	/* jemalloc's own, which Rust programs call */
	{ "mallocx", FN_MALLOC, RDI, false },
	{ "rallocx", FN_REALLOC, RDI | RSI, false },
	{ "dallocx", FN_FREE, RDI, false },
	{ "sdallocx", FN_FREE, RDI, false },
	{ "_Znwm", FN_MALLOC, RDI, true },
	{ "_Znam", FN_MALLOC, RDI, true },
	{ "_ZnwmRKSt9nothrow_t", FN_MALLOC, RDI, true },
	{ "_ZnamRKSt9nothrow_t", FN_MALLOC, RDI, true },
	{ "_ZnwmSt11align_val_t", FN_MALLOC, RDI, true },
	{ "_ZnamSt11align_val_t", FN_MALLOC, RDI, true },
	{ "_ZnwmSt11align_val_tRKSt9nothrow_t", FN_MALLOC, RDI, true },
	{ "_ZnamSt11align_val_tRKSt9nothrow_t", FN_MALLOC, RDI, true },
	{ "_ZdlPv", FN_FREE, RDI, true },
	{ "_ZdaPv", FN_FREE, RDI, true },
	{ "_ZdlPvm", FN_FREE, RDI, true },
	{ "_ZdaPvm", FN_FREE, RDI, true },
	{ "_ZdlPvRKSt9nothrow_t", FN_FREE, RDI, true },
	{ "_ZdaPvRKSt9nothrow_t", FN_FREE, RDI, true },
	{ "_ZdlPvSt11align_val_t", FN_FREE, RDI, true },
	{ "_ZdaPvSt11align_val_t", FN_FREE, RDI, true },
	{ "_ZdlPvmSt11align_val_t", FN_FREE, RDI, true },
	{ "_ZdaPvmSt11align_val_t", FN_FREE, RDI, true },
	{ "_ZdlPvSt11align_val_tRKSt9nothrow_t", FN_FREE, RDI, true },
	{ "_ZdaPvSt11align_val_tRKSt9nothrow_t", FN_FREE, RDI, true },
};

const size_t family_count = sizeof(family_functions) / sizeof(family_functions[0]);

_Static_assert(sizeof(family_functions) / sizeof(family_functions[0]) <= FAMILY_MAX,
	       "FAMILY_MAX is too small");
