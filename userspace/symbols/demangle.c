// SPDX-License-Identifier: GPL-2.0
/*
 * By libiberty: it knows Itanium C++ and both Rust schemes (libstdc++'s __cxa_demangle lacks Rust
 * v0), reports through a callback, so that names that expand without end can be cut, and is static,
 * so that the program needs no C++ runtime.
 */
#define _GNU_SOURCE 1

#include "symbols/demangle.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdbool.h>
#include <string.h>

#include <libiberty/demangle.h>

/* Longer names are not demangled; real ones seldom pass 10,000 bytes. */
#define MANGLED_MAX 32768

struct sink {
	char *text;
	size_t size;
	size_t used;
	jmp_buf full;
};

static void sink_append(const char *piece, size_t len, void *data)
{
	struct sink *sink = data;
	size_t room = sink->size - 1 - sink->used;
	size_t take = len < room ? len : room;

	memcpy(sink->text + sink->used, piece, take);
	sink->used += take;
	sink->text[sink->used] = '\0';
	/*
	 * A few hundred mangled bytes can stand for 2^60 readable ones (substitutions double), and
	 * the callback has no other way to end it. libiberty keeps its state on the stack here.
	 */
	if (len > room)
		longjmp(sink->full, 1);
}

static bool expand(const char *mangled, char *text, size_t size)
{
	/* A template's type would stand before its name: whose it is could not be told. */
	const int options = DMGL_PARAMS | DMGL_ANSI | DMGL_RET_DROP;
	struct sink sink = { .text = text, .size = size };

	if (setjmp(sink.full))
		return true;
	if (rust_demangle_callback(mangled, options, sink_append, &sink))
		return true;
	sink.used = 0;
	return cplus_demangle_v3_callback(mangled, options, sink_append, &sink) != 0;
}

/*
 * Where the clone suffixes of gcc and clang begin, and how Go's linker marks the calling convention
 * (cmd/link/internal/ld/symtab.go), of which Go's own tables know nothing. Dots are legal in symbols
 * of other languages (Go: "runtime.mallocgc"), so only known suffixes are removed.
 */
static size_t clone_start(const char *name, size_t len)
{
	static const char *const suffixes[] = {
		".cold",  ".part.",	 ".isra.", ".constprop.",  ".lto_priv.",
		".llvm.", ".localalias", ".abi0",  ".abiinternal",
	};
	size_t start = len;
	size_t i;

	for (i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		const char *at = memmem(name, len, suffixes[i], strlen(suffixes[i]));
		size_t end;

		if (!at || at == name)
			continue;
		end = (size_t)(at - name) + strlen(suffixes[i]);
		if (suffixes[i][strlen(suffixes[i]) - 1] == '.' ?
			    end < len && isxdigit((unsigned char)name[end]) :
			    end == len || name[end] == '.')
			start = (size_t)(at - name) < start ? (size_t)(at - name) : start;
	}
	return start;
}

static size_t linker_name_length(const char *name)
{
	size_t len = strnlen(name, MANGLED_MAX);
	const char *version = len > 1 ? memchr(name + 1, '@', len - 1) : NULL;

	if (version)
		len = (size_t)(version - name);
	return clone_start(name, len);
}

void demangle(const char *name, char *text, size_t size)
{
	char mangled[MANGLED_MAX + 1];
	size_t len = linker_name_length(name);

	text[0] = '\0';
	memcpy(mangled, name, len);
	mangled[len] = '\0';
	if (mangled[0] == '_' && len < MANGLED_MAX && expand(mangled, text, size))
		return;
	if (len > size - 1)
		len = size - 1;
	memcpy(text, mangled, len);
	text[len] = '\0';
}
