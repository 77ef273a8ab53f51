// SPDX-License-Identifier: GPL-2.0
#include "hold/hold_json.h"

#include <inttypes.h>

#include "base/text.h"
#include "hold/hold_verdict.h"
#include "hold_schema.h"

#define FILES_MAX 100 /* of a process, those with most */
#define STACKS_MAX 100
#define PINS_SHOWN 20

/* Names are the process's. */
static void put_string(FILE *out, const char *text)
{
	g_autofree char *printable = text_printable(text);
	const char *at;

	fputc('"', out);
	for (at = printable; *at; at++) {
		if (*at == '"' || *at == '\\')
			fputc('\\', out);
		fputc(*at, out);
	}
	fputc('"', out);
}

static void put_name(FILE *out, const char *name, bool first)
{
	fprintf(out, "%s\"%s\":", first ? "" : ",", name);
}

static void put_number(FILE *out, const char *name, uint64_t value, bool first)
{
	put_name(out, name, first);
	fprintf(out, "%" PRIu64, value);
}

static void put_bytes(FILE *out, const char *name, const struct page_bytes *bytes, bool first)
{
	put_name(out, name, first);
	fprintf(out, "{\"bytes\":%" PRIu64 ",\"resident\":%" PRIu64 ",\"swapped\":%" PRIu64 "}",
		bytes->bytes, bytes->resident, bytes->swapped);
}

static void put_resident(FILE *out, const struct resident_sum *sum)
{
	fprintf(out,
		"{\"rss\":%" PRIu64 ",\"pss\":%" PRIu64 ",\"private_dirty\":%" PRIu64
		",\"huge\":%" PRIu64 ",\"swap\":%" PRIu64 ",\"swap_pss\":%" PRIu64 "}",
		sum->rss, sum->pss, sum->dirty, sum->huge, sum->swap, sum->swap_pss);
}

static void put_kinds(FILE *out, const struct arena_sum *sum)
{
	unsigned int i;

	fputs(",\"chunks\":{", out);
	for (i = 0; i < CHUNK_KINDS; i++) {
		put_name(out, chunk_kind_name(i), !i);
		fprintf(out,
			"{\"count\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"resident\":%" PRIu64
			",\"swapped\":%" PRIu64 "}",
			sum->counts[i], sum->bytes[i].bytes, sum->bytes[i].resident,
			sum->bytes[i].swapped);
	}
	fputc('}', out);
	put_bytes(out, "overhead", &sum->overhead, false);
	put_bytes(out, "unread", &sum->unread, false);
	put_bytes(out, "hidden", &sum->hidden, false);
	put_bytes(out, "unfollowed", &sum->unfollowed, false);
	put_bytes(out, "trim", &sum->trim, false);
	put_bytes(out, "locked", &sum->locked, false);
}

static void put_arena(FILE *out, const struct arena_sum *sum)
{
	put_number(out, "heaps", sum->heaps, true);
	put_number(out, "threads", sum->threads, false);
	put_number(out, "system_bytes", sum->system_bytes, false);
	put_kinds(out, sum);
}

/* The last member of an object. */
static void put_hint(FILE *out, const char *hint)
{
	if (*hint) {
		fputs(",\"hint\":", out);
		put_string(out, hint);
	}
	fputc('}', out);
}

static void put_pins(FILE *out, const GArray *pins)
{
	guint i;

	fputs(",\"pins\":[", out);
	for (i = 0; i < MIN(pins->len, PINS_SHOWN); i++) {
		const struct pin *pin = &g_array_index(pins, struct pin, i);

		fprintf(out, "%s{\"size\":%" PRIu64 ",\"count\":%" PRIu64 ",\"resident\":%" PRIu64,
			i ? "," : "", pin->size, pin->chunks, pin->bytes);
		put_hint(out, pin->hint);
	}
	fputc(']', out);
}

/* most: blocks, of which each is three numbers. */
static void put_pinning(FILE *out, struct pinning *pinning, guint most)
{
	guint i;

	fputs(",\"ends\":[", out);
	for (i = 0; i < MIN(pinning->ends->len, PINS_SHOWN); i++) {
		const struct pinning_end *end =
			&g_array_index(pinning->ends, struct pinning_end, i);

		fprintf(out,
			"%s{\"address\":%" PRIu64 ",\"size\":%" PRIu64 ",\"below\":%" PRIu64
			",\"above\":%" PRIu64,
			i ? "," : "", end->address, end->size, end->below, end->above);
		put_hint(out, end->hint);
	}
	fputc(']', out);
	if (!most)
		return;
	pinning_thin(pinning, most);
	fputs(",\"pinning\":[", out);
	for (i = 0; i < pinning->blocks->len; i++) {
		const struct pinning_block *block =
			&g_array_index(pinning->blocks, struct pinning_block, i);

		fprintf(out, "%s[%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", i ? "," : "",
			block->address, block->size, block->bytes);
	}
	fputc(']', out);
}

/* So many at most; how many others there are. */
static uint64_t put_ranges(FILE *out, const char *name, const GArray *ranges, guint most)
{
	const guint told = MIN(ranges->len, most);
	guint i;

	fprintf(out, ",\"%s\":[", name);
	for (i = 0; i < told; i++) {
		const struct trim_range *range = &g_array_index(ranges, struct trim_range, i);

		fprintf(out, "%s[%" PRIu64 ",%" PRIu64 ",%d]", i ? "," : "", range->start,
			range->end, range->resident);
	}
	fputc(']', out);
	return ranges->len - told;
}

static void put_trim_ranges(FILE *out, const struct heap_sum *heaps, guint most)
{
	uint64_t left = heaps->trim_ranges_left;

	left += put_ranges(out, "heap_ranges", heaps->heap_ranges, most);
	left += put_ranges(out, "trim_ranges", heaps->trim_ranges, most);
	put_number(out, "trim_ranges_left", left, false);
}

static void put_malloc(FILE *out, struct hold_process *process, guint blocks)
{
	struct heap_sum *heaps = &process->heaps;
	guint i;

	fputs(",\"malloc\":{", out);
	put_arena(out, &heaps->all);
	fputs(",\"arenas\":[", out);
	for (i = 0; i < heaps->arenas->len; i++) {
		fputs(i ? ",{" : "{", out);
		put_arena(out, &g_array_index(heaps->arenas, struct arena_sum, i));
		fputc('}', out);
	}
	fputs("],\"mapped\":{", out);
	put_number(out, "count", process->mapped.count, true);
	put_number(out, "bytes", process->mapped.bytes.bytes, false);
	put_number(out, "resident", process->mapped.bytes.resident, false);
	put_number(out, "swapped", process->mapped.bytes.swapped, false);
	if (process->numbers.mmaps >= 0) {
		put_number(out, "counted", process->numbers.mmaps, false);
		put_number(out, "counted_bytes", process->numbers.mmapped, false);
	}
	fputc('}', out);
	put_pins(out, heaps->pins);
	put_pinning(out, &heaps->pinning, blocks);
	if (blocks)
		put_trim_ranges(out, heaps, blocks);
	put_number(out, "caches", heaps->cached.caches, false);
	put_number(out, "torn_lists", heaps->cached.torn, false);
	put_number(out, "cut_lists", heaps->cached.cut, false);
	put_number(out, "damages", heaps->damages, false);
	fprintf(out, ",\"corrupt\":%s", heaps->corrupt ? "true" : "false");
	put_number(out, "lost_heaps", process->lost_heaps, false);
	put_number(out, "left_out", heaps->left_out, false);
	fputc('}', out);
}

static void put_counters(FILE *out, const struct allocator_counters *counters)
{
	fputs(",\"counters\":{", out);
	put_number(out, "active", counters->active, true);
	put_number(out, "dirty", counters->dirty, false);
	put_number(out, "muzzy", counters->muzzy, false);
	put_number(out, "retained", counters->retained, false);
	put_number(out, "committed", counters->committed, false);
	fputc('}', out);
}

static void put_allocators(FILE *out, const struct hold_process *process)
{
	guint i;

	fputs(",\"allocators\":[", out);
	for (i = 0; i < process->allocators->len; i++) {
		const struct hold_allocator *allocator =
			&g_array_index(process->allocators, struct hold_allocator, i);

		fprintf(out, "%s{\"kind\":\"%s\",\"version\":", i ? "," : "",
			allocator_kind_name(allocator->kind));
		put_string(out, allocator->version);
		fputs(",\"path\":", out);
		put_string(out, allocator->path);
		if (allocator->unknown) {
			fputs(",\"unknown\":", out);
			put_string(out, allocator->unknown);
		}
		if (allocator->counters.known)
			put_counters(out, &allocator->counters);
		fputc('}', out);
	}
	fputc(']', out);
}

static void put_residents(FILE *out, const struct residents *residents)
{
	struct resident_sum sum = residents_sum(residents);
	guint i;

	fputs(",\"resident\":{", out);
	for (i = 0; i < RESIDENT_KINDS; i++) {
		put_name(out, resident_kind_name(i), !i);
		put_resident(out, &residents->sums[i]);
	}
	fputs("},\"sum\":", out);
	put_resident(out, &sum);
	fputs(",\"kernel\":", out);
	put_resident(out, &residents->whole);
	fprintf(out, ",\"agree\":%s", residents_agree(residents) ? "true" : "false");
	put_number(out, "page_tables", residents->page_tables, false);
	put_number(out, "threads", residents->threads, false);
	fputs(",\"files\":[", out);
	for (i = 0; i < MIN(residents->files->len, FILES_MAX); i++) {
		const struct resident_file *file =
			&g_array_index(residents->files, struct resident_file, i);

		fprintf(out, "%s{\"path\":", i ? "," : "");
		put_string(out, file->path);
		fputs(",\"memory\":", out);
		put_resident(out, &file->sum);
		fputc('}', out);
	}
	fputs("],\"stacks\":[", out);
	for (i = 0; i < MIN(residents->stacks->len, STACKS_MAX); i++) {
		const struct resident_stack *stack =
			&g_array_index(residents->stacks, struct resident_stack, i);

		fprintf(out, "%s{\"tid\":%d,\"name\":", i ? "," : "", stack->thread.tid);
		put_string(out, stack->thread.comm);
		fputs(",\"memory\":", out);
		put_resident(out, &stack->sum);
		fputc('}', out);
	}
	fputc(']', out);
}

static void put_huge(FILE *out, const struct huge_use *use)
{
	fputs(",\"huge\":{", out);
	put_number(out, "pages", use->pages, true);
	put_number(out, "looked", use->looked, false);
	put_number(out, "zero", use->zero, false);
	put_number(out, "zero_low", use->low, false);
	put_number(out, "zero_high", use->high, false);
	fputc('}', out);
}

static void put_parts(FILE *out, const char *name, const struct hold_sum *sum)
{
	unsigned int i;

	fprintf(out, ",\"%s\":{", name);
	for (i = 0; i < HOLD_PARTS; i++)
		put_number(out, hold_part_name(i), sum->parts[i], !i);
	fputc('}', out);
}

static void put_verdict(FILE *out, const struct hold_sum *sum)
{
	g_autofree char *sentence = hold_sentence(sum);
	g_autoptr(GArray) advice = hold_advise(sum);
	unsigned int i;

	fprintf(out,
		"\"verdict\":{\"holder\":\"%s\",\"sentence\":", hold_part_name(hold_sum_most(sum)));
	put_string(out, sentence);
	put_parts(out, "parts", sum);
	fputs(",\"advice\":[", out);
	for (i = 0; i < advice->len; i++) {
		const struct hold_advice *one = &g_array_index(advice, struct hold_advice, i);

		fprintf(out, "%s{\"code\":\"%s\",\"bytes\":%" PRIu64 ",\"text\":", i ? "," : "",
			one->code, one->bytes);
		put_string(out, one->text);
		fputc('}', out);
	}
	fputs("]}", out);
}

static void put_process(FILE *out, struct hold_process *process, guint blocks, bool several)
{
	struct hold_sum sum = { 0 }, once = { 0 };

	hold_sum_add(&sum, process, false);
	fprintf(out, "{\"pid\":%d,\"name\":", process->pid);
	put_string(out, process->name);
	fprintf(out, ",\"complete\":%s,", hold_is_partial(process) ? "false" : "true");
	put_verdict(out, &sum);
	if (several) {
		hold_sum_add(&once, process, true);
		put_parts(out, "once", &once);
	}
	put_residents(out, &process->residents);
	if (process->huge.known)
		put_huge(out, &process->huge);
	put_allocators(out, process);
	if (process->has_heaps)
		put_malloc(out, process, blocks);
	fputc('}', out);
}

void hold_json(FILE *out, const GPtrArray *processes, const struct hold_missing *missing,
	       guint blocks)
{
	struct hold_sum all = { 0 }, judged = { 0 };
	guint i;

	/* Shared pages count once in the figures; the verdict on one process is what is resident. */
	for (i = 0; i < processes->len; i++) {
		hold_sum_add(&all, g_ptr_array_index(processes, i), true);
		hold_sum_add(&judged, g_ptr_array_index(processes, i), processes->len > 1);
	}
	fprintf(out,
		"{\"format\":1,\"complete\":%s,\"ended\":%u,\"unread\":%u,\"rss\":%" PRIu64
		",\"pss\":%" PRIu64 ",\"swap_pss\":%" PRIu64 ",",
		all.partial || missing->unread ? "false" : "true", missing->ended, missing->unread,
		all.rss, all.pss, all.swap);
	put_verdict(out, &judged);
	fputs(",\"processes\":[", out);
	for (i = 0; i < processes->len; i++) {
		fputs(i ? ",\n" : "\n", out);
		put_process(out, g_ptr_array_index(processes, i),
			    blocks ? MAX(blocks / processes->len, 1) : 0, processes->len > 1);
	}
	fputs("]}\n", out);
}

void hold_json_schema(FILE *out)
{
	fputs(hold_schema, out);
}
