// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE 1

#include "symbols/object.h"

#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <gelf.h>
#include <glib.h>

#include "host/target_rights.h"
#include "symbols/debugfile.h"
#include "symbols/demangle.h"
#include "symbols/dwfl_checks.h"
#include "symbols/go_module.h"

/* Linkers create four to ten segments. */
#define SEGMENTS_MAX 256
/* The largest of the x86-64 and arm64 ABIs; mappings begin on pages, segments need not. */
#define PAGE_MAX 65536ULL
/* How many symbols before the address to try: a larger one may cover it. */
#define OVERLAPS_MAX 256

struct segment {
	uint64_t offset; /* in the file */
	uint64_t file_size;
	uint64_t address;
	uint64_t memory_size;
	bool exec;
};

struct symbol {
	uint64_t start;
	uint64_t end;
	const char *name; /* in the file's string table */
	uint8_t type;
	uint8_t binding;
	bool sized;
};

enum state {
	STATE_UNREAD = 0,
	STATE_READ = 1,
	STATE_LOST = 2, /* no ELF program, or broken: not used any more */
};

struct object {
	enum state state;
	int fd; /* -1 as soon as libdwfl owns it */
	int root;
	char *path;
	char build_id[BUILD_ID_TEXT];
	bool without_lines;
	bool faulted;		/* SIGBUS inside libdwfl: its state is undefined */
	bool alternative_found; /* the file made by dwz */
	struct segment *segments;
	size_t segment_count;
	Dwfl *dwfl;
	Dwfl_Module *module;
	struct target_rights *rights; /* for its debug files; NULL: our own */
	GArray *symbols;	      /* struct symbol, ascending by start, one for each start */
	struct scopes *scopes;	      /* NULL: no DWARF */
	struct go_table *go;	      /* NULL: there is DWARF, or it is no Go program */
	struct object *next;	      /* in abandoned */
};

/*
 * Objects with a fault inside libdwfl: its structures may be inconsistent, so they are never freed;
 * they stay reachable, for leak checkers.
 */
static struct object *abandoned;

/* libdwfl maps files; reading beyond the end of one that was truncated raises SIGBUS. */

static _Thread_local sigjmp_buf *guard;
static struct sigaction guard_before;
static unsigned int guard_installed;

static void on_sigbus(int number)
{
	if (guard)
		siglongjmp(*guard, 1);
	/* Not ours: restore the old handler; the instruction is repeated and raises it again. */
	sigaction(number, &guard_before, NULL);
}

void object_guard_install(void)
{
	struct sigaction action = { .sa_handler = on_sigbus, .sa_flags = SA_NODEFER };
	struct sigaction now;

	guard_installed++;
	/* Again if somebody else has replaced our handler. */
	if (sigaction(SIGBUS, NULL, &now) == 0 && now.sa_handler != on_sigbus) {
		guard_before = now;
		sigaction(SIGBUS, &action, NULL);
	}
}

void object_guard_remove(void)
{
	if (guard_installed && --guard_installed == 0)
		sigaction(SIGBUS, &guard_before, NULL);
}

static bool guarded(void (*work)(void *), void *argument)
{
	sigjmp_buf here;

	if (sigsetjmp(here, 0)) {
		guard = NULL;
		return false;
	}
	guard = &here;
	work(argument);
	guard = NULL;
	return true;
}

static bool read_segments(struct object *object, Elf *elf)
{
	GElf_Ehdr header;
	GElf_Phdr raw;
	size_t count;
	size_t i;

	if (!gelf_getehdr(elf, &header) || (header.e_type != ET_EXEC && header.e_type != ET_DYN))
		return false;
	if (elf_getphdrnum(elf, &count))
		return false;
	object->segments = g_new0(struct segment, MIN(count, SEGMENTS_MAX));
	for (i = 0; i < count && object->segment_count < SEGMENTS_MAX; i++) {
		struct segment *segment = &object->segments[object->segment_count];

		if (!gelf_getphdr(elf, (int)i, &raw) || raw.p_type != PT_LOAD)
			continue;
		if (raw.p_offset > UINT64_MAX - raw.p_filesz ||
		    raw.p_vaddr > UINT64_MAX - raw.p_memsz)
			continue;
		segment->offset = raw.p_offset;
		segment->file_size = raw.p_filesz;
		segment->address = raw.p_vaddr;
		segment->memory_size = raw.p_memsz;
		segment->exec = raw.p_flags & PF_X;
		object->segment_count++;
	}
	return object->segment_count > 0;
}

void object_set_rights(struct object *object, const struct target_rights *rights)
{
	g_free(object->rights);
	object->rights = g_memdup2(rights, rights ? sizeof(*rights) : 0);
}

struct object *object_new(int fd, const char *path, int root, const struct target_rights *rights)
{
	struct object *object = g_new0(struct object, 1);
	Elf *elf = NULL;

	elf_version(EV_CURRENT);
	object->fd = fd;
	object->root = root;
	object_set_rights(object, rights);
	object->path = g_strdup(path);
	object->symbols = g_array_new(FALSE, FALSE, sizeof(struct symbol));
	object->state = STATE_LOST;
	if (!is_elf_file(fd))
		goto out;
	/* Read, not mapped: truncation cannot raise SIGBUS here. */
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!elf || !read_segments(object, elf))
		goto out;
	build_id_of(elf, object->build_id);
	object->state = STATE_UNREAD;
out:
	if (elf)
		elf_end(elf);
	if (object->state == STATE_LOST)
		object_drop_fd(object);
	return object;
}

void object_drop_fd(struct object *object)
{
	if (object->fd >= 0)
		close(object->fd);
	object->fd = -1;
	if (object->state == STATE_UNREAD)
		object->state = STATE_LOST;
}

void object_without_lines(struct object *object)
{
	object->without_lines = true;
}

static void release(void *argument)
{
	struct object *object = argument;

	scopes_free(object->scopes);
	if (object->dwfl)
		dwfl_end(object->dwfl);
}

void object_free(struct object *object)
{
	if (!object)
		return;
	if (!object->faulted && !guarded(release, object))
		object->faulted = true;
	if (object->fd >= 0)
		close(object->fd);
	if (object->faulted) {
		object->next = abandoned;
		abandoned = object;
		return;
	}
	g_array_free(object->symbols, TRUE);
	g_free(object->go);
	g_free(object->segments);
	g_free(object->rights);
	g_free(object->path);
	g_free(object);
}

bool object_is_open(const struct object *object)
{
	return object->state != STATE_LOST;
}

const char *object_build_id(const struct object *object)
{
	return object->build_id;
}

bool object_address(const struct object *object, uint64_t file_offset, uint64_t *address)
{
	uint64_t slack;
	size_t i;

	for (i = 0; i < object->segment_count; i++) {
		const struct segment *segment = &object->segments[i];

		if (segment->exec && file_offset >= segment->offset &&
		    file_offset - segment->offset < segment->file_size) {
			*address = segment->address + (file_offset - segment->offset);
			return true;
		}
	}
	/* The kernel maps whole pages, with the bytes around a segment. */
	for (i = 0; i < object->segment_count; i++) {
		const struct segment *segment = &object->segments[i];

		if (!segment->exec)
			continue;
		slack = segment->offset % PAGE_MAX;
		if (file_offset >= segment->offset - slack &&
		    file_offset < segment->offset + segment->file_size + PAGE_MAX) {
			*address = segment->address + (file_offset - segment->offset);
			return true;
		}
	}
	return false;
}

static int no_elf(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base,
		  char **file_name, Elf **elf)
{
	(void)module;
	(void)user;
	(void)name;
	(void)base;
	(void)file_name;
	(void)elf;
	return -1;
}

/*
 * libdwfl asks for the debug file of the module, and once that has DWARF, for the file that
 * dwz(1) moved common parts to (.gnu_debugaltlink).
 */
static int find_debuginfo(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base,
			  const char *file_name, const char *link, GElf_Word crc, char **found)
{
	struct object *object = *user;
	struct debugfile_query query = {
		.path = object->path,
		.build_id = object->build_id,
		.link = link,
		.crc = crc,
		.root = object->root,
		.rights = object->rights,
	};
	char build_id[BUILD_ID_TEXT];
	bool is_alternative = false;
	Dwarf_Addr bias = (Dwarf_Addr)-1;
	const char *debug_path = NULL;
	const char *alternative;
	const void *bits;
	char *path = NULL;
	ssize_t len;
	int fd;

	(void)name;
	(void)base;
	(void)file_name;
	dwfl_module_info(module, NULL, NULL, NULL, &bias, NULL, NULL, &debug_path);
	/* -1: DWARF not accessed yet (libdwfl.h). */
	if (bias != (Dwarf_Addr)-1 && link) {
		len = dwelf_dwarf_gnu_debugaltlink(dwfl_module_getdwarf(module, &bias),
						   &alternative, &bits);
		is_alternative = len > 0 && strcmp(alternative, link) == 0;
		if (is_alternative) {
			build_id_text(bits, (size_t)len, build_id);
			query.build_id = build_id;
			query.path = debug_path ? debug_path : object->path;
		}
	}
	fd = debugfile_open(&query, &path);
	if (is_alternative)
		object->alternative_found = fd >= 0;
	/* libdwfl frees it by free(). */
	*found = path ? strdup(path) : NULL;
	g_free(path);
	return fd;
}

static bool is_code(const struct object *object, uint64_t address)
{
	size_t i;

	for (i = 0; i < object->segment_count; i++) {
		const struct segment *segment = &object->segments[i];

		if (segment->exec && address >= segment->address &&
		    address - segment->address < segment->memory_size)
			return true;
	}
	return false;
}

/*
 * Which of two names of an address is reported: functions before labels, exported before local
 * names, then fewer leading underscores and the shorter name: malloc, not __libc_malloc. Global and
 * weak are equal, as glibc makes public names weak.
 */
static int compare_names(const struct symbol *a, const struct symbol *b)
{
	bool local_a = a->binding == STB_LOCAL;
	bool local_b = b->binding == STB_LOCAL;
	bool label_a = a->type == STT_NOTYPE;
	bool label_b = b->type == STT_NOTYPE;
	size_t bars_a;
	size_t bars_b;
	size_t length_a;
	size_t length_b;

	if (a->sized != b->sized)
		return a->sized ? -1 : 1;
	if (label_a != label_b)
		return label_a ? 1 : -1;
	if (local_a != local_b)
		return local_a ? 1 : -1;
	bars_a = strspn(a->name, "_");
	bars_b = strspn(b->name, "_");
	if (bars_a != bars_b)
		return bars_a < bars_b ? -1 : 1;
	/* Versions, which .symtab writes into the names, do not count. */
	length_a = strcspn(a->name, "@");
	length_b = strcspn(b->name, "@");
	if (length_a != length_b)
		return length_a < length_b ? -1 : 1;
	return strcmp(a->name, b->name);
}

static int compare_symbols(const void *left, const void *right)
{
	const struct symbol *a = left;
	const struct symbol *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return compare_names(a, b);
}

/* End of the section a symbol without size lies in; 0 where that is not known. */
static uint64_t section_end(Elf *elf, GElf_Word index, GElf_Addr bias, uint64_t address)
{
	Elf_Scn *section = elf ? elf_getscn(elf, index) : NULL;
	GElf_Shdr header;

	if (!section || !gelf_getshdr(section, &header) || header.sh_addr + bias > address ||
	    address - (header.sh_addr + bias) >= header.sh_size)
		return 0;
	return header.sh_addr + bias + header.sh_size;
}

static void take_symbol(struct object *object, int index)
{
	struct symbol symbol = { 0 };
	GElf_Word section;
	GElf_Addr address;
	GElf_Addr bias;
	GElf_Sym raw;
	Elf *elf;

	symbol.name = dwfl_module_getsym_info(object->module, index, &raw, &address, &section, &elf,
					      &bias);
	if (!symbol.name || !*symbol.name || *symbol.name == '$' || section == SHN_UNDEF ||
	    section == SHN_ABS)
		return;
	symbol.type = GELF_ST_TYPE(raw.st_info);
	symbol.binding = GELF_ST_BIND(raw.st_info);
	if ((symbol.type != STT_FUNC && symbol.type != STT_GNU_IFUNC &&
	     symbol.type != STT_NOTYPE) ||
	    !is_code(object, address))
		return;
	symbol.start = address;
	symbol.sized = raw.st_size > 0;
	if (symbol.sized)
		symbol.end =
			raw.st_size > UINT64_MAX - address ? UINT64_MAX : address + raw.st_size;
	else
		symbol.end = section_end(elf, section, bias, address);
	if (symbol.end > symbol.start)
		g_array_append_val(object->symbols, symbol);
}

/* Keep the best name of each address, and end symbols without size where the next begins. */
static void tidy_symbols(struct object *object, bool complete)
{
	struct symbol *symbols = (struct symbol *)(void *)object->symbols->data;
	guint kept = 0;
	guint i;

	for (i = 0; i < object->symbols->len; i++) {
		if (kept && symbols[kept - 1].start == symbols[i].start)
			continue;
		if (kept && !symbols[kept - 1].sized && symbols[kept - 1].end > symbols[i].start)
			symbols[kept - 1].end = symbols[i].start;
		/*
		 * In a stripped file static functions without a symbol may follow a label, so that
		 * it names only its own address.
		 */
		if (!symbols[i].sized && !complete)
			symbols[i].end = symbols[i].start + 1;
		symbols[kept++] = symbols[i];
	}
	g_array_set_size(object->symbols, kept);
}

static void read_symbols(struct object *object)
{
	int count = dwfl_module_getsymtab(object->module);
	bool complete = false;
	GElf_Word section;
	GElf_Addr address;
	GElf_Sym raw;
	int i;

	for (i = 1; i < count; i++) {
		take_symbol(object, i);
		/* Only .symtab has file names in it, so the table is not .dynsym alone. */
		if (!complete && dwfl_module_getsym_info(object->module, i, &raw, &address,
							 &section, NULL, NULL))
			complete = GELF_ST_TYPE(raw.st_info) == STT_FILE;
	}
	g_array_sort(object->symbols, compare_symbols);
	tidy_symbols(object, complete);
}

static void read_scopes(struct object *object)
{
	Dwarf_Addr bias;
	Dwarf *dwarf = dwfl_module_getdwarf(object->module, &bias);

	if (dwarf && (object->alternative_found || alternative_is_regular(dwarf)))
		object->scopes = scopes_new(dwarf, bias);
}

static void read_go(struct object *object)
{
	Dwarf_Addr bias;
	Elf *elf = dwfl_module_getelf(object->module, &bias);

	object->go = g_new0(struct go_table, 1);
	if (!elf || !go_module_read(elf, object->go))
		g_clear_pointer(&object->go, g_free);
}

static void read_object(struct object *object)
{
	static const Dwfl_Callbacks callbacks = {
		.find_elf = no_elf,
		.find_debuginfo = find_debuginfo,
		.section_address = dwfl_offline_section_address,
	};
	Elf *elf = elf_begin(object->fd, ELF_C_READ, NULL);
	bool sane = elf && debugdata_is_small(elf);
	Dwarf_Addr bias;
	void **user;

	if (elf)
		elf_end(elf);
	if (!sane)
		return;
	object->dwfl = dwfl_begin(&callbacks);
	if (!object->dwfl)
		return;
	dwfl_report_begin(object->dwfl);
	/* At base 0, so that libdwfl's addresses are the file's. It takes the descriptor. */
	object->module =
		dwfl_report_elf(object->dwfl, object->path, object->path, object->fd, 0, true);
	if (object->module)
		object->fd = -1;
	dwfl_report_end(object->dwfl, NULL, NULL);
	if (!object->module)
		return;
	dwfl_module_info(object->module, &user, NULL, NULL, NULL, NULL, NULL, NULL);
	*user = object;
	if (!object->without_lines)
		read_scopes(object);
	elf = dwfl_module_getelf(object->module, &bias);
	if (elf && symbols_are_bounded(elf, bias))
		read_symbols(object);
	if (!object->scopes)
		read_go(object);
	object->state = STATE_READ;
}

static const struct symbol *find_symbol(const struct object *object, uint64_t address)
{
	const struct symbol *symbols = (const struct symbol *)(void *)object->symbols->data;
	guint low = 0;
	guint high = object->symbols->len;
	guint i;

	while (low < high) {
		guint middle = low + (high - low) / 2;

		if (symbols[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (i = 0; i < OVERLAPS_MAX && low > 0; i++)
		if (address < symbols[--low].end)
			return &symbols[low];
	return NULL;
}

struct search {
	struct object *object;
	uint64_t address;
	struct object_frame *frames;
	size_t count;
};

static char *readable(const char *name)
{
	char text[DEMANGLE_MAX + 1];

	demangle(name, text, sizeof(text));
	return g_strdup(text);
}

static char *whole_path(const struct scope *scope)
{
	if (!scope->file)
		return g_strdup("");
	if (scope->file[0] == '/' || !scope->directory)
		return g_strndup(scope->file, DEMANGLE_MAX);
	return g_strdup_printf("%.*s/%.*s", DEMANGLE_MAX / 2, scope->directory, DEMANGLE_MAX / 2,
			       scope->file);
}

/* As DWARF would have them. */
static size_t find_in_go(const struct go_table *table, uint64_t address, struct scope *scopes)
{
	struct go_frame frames[SCOPES_MAX];
	size_t count = go_table_find(table, address, frames, SCOPES_MAX);
	size_t i;

	for (i = 0; i < count; i++)
		scopes[i] = (struct scope){
			.name = frames[i].function,
			.file = *frames[i].file ? frames[i].file : NULL,
			.line = frames[i].line,
			.start = frames[i].start,
			.physical = i == count - 1,
		};
	return count;
}

static void search(void *argument)
{
	struct search *search = argument;
	struct object *object = search->object;
	const struct symbol *symbol;
	struct scope scopes[SCOPES_MAX];
	size_t count = 0;
	size_t i;

	if (object->state == STATE_UNREAD) {
		/* Stays so if reading faults. */
		object->state = STATE_LOST;
		read_object(object);
	}
	if (object->state != STATE_READ)
		return;
	symbol = find_symbol(object, search->address);
	if (object->scopes)
		count = scopes_find(object->scopes, search->address, scopes);
	else if (object->go)
		count = find_in_go(object->go, search->address, scopes);
	if (!count && symbol) {
		memset(&scopes[0], 0, sizeof(scopes[0]));
		scopes[0].physical = true;
		count = 1;
	}
	for (i = 0; i < count; i++) {
		struct object_frame *frame = &search->frames[i];
		const char *name = scopes[i].name;

		frame->line = scopes[i].line;
		frame->start = symbol ? symbol->start : scopes[count - 1].start;
		/* By the symbol: in DWARF malloc is __libc_malloc. */
		if (scopes[i].physical && symbol)
			name = symbol->name;
		frame->function = readable(name ? name : "");
		frame->file = whole_path(&scopes[i]);
		search->count = i + 1;
	}
}

size_t object_find(struct object *object, uint64_t address, struct object_frame *frames)
{
	struct search what = { .object = object, .address = address, .frames = frames };

	if (object->state == STATE_LOST)
		return 0;
	if (!guarded(search, &what)) {
		object->faulted = true;
		object->state = STATE_LOST;
	}
	if (object->state == STATE_LOST)
		object_drop_fd(object);
	return what.count;
}

void object_frames_free(struct object_frame *frames, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		g_free(frames[i].function);
		g_free(frames[i].file);
	}
}
