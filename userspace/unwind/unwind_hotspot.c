// SPDX-License-Identifier: GPL-2.0
#include "unwind/unwind_hotspot.h"

#include <string.h>

#include "bpf/wire/unwind_rows.h"

/* Before its prologue a method that is no static one checks the class, and is aligned. */
#define PROLOGUE_WITHIN 128
/* From the epilogue to its end: a safepoint poll. */
#define RETURN_WITHIN 48
/* Of a frame; HotSpot has stacks of a MiB. */
#define FRAME_MAX (256 * 1024U)
#define BANG_BYTES 7 /* mov [rsp - N], eax: touches the stack far below */

struct frame_code {
	size_t start;  /* of the prologue */
	size_t pushed; /* behind the push; 0: there is none */
	size_t moved;  /* behind the sub */
	size_t body;   /* behind all of it */
	uint32_t size; /* of the frame, with the return address */
};

/* CFA: rsp + cfa. saved: rbp is below the return address. */
static uint32_t rule_of(uint32_t cfa, bool saved)
{
	uint32_t rule = CFA_RSP | (cfa / 8) << UNWIND_CFA_SHIFT;

	if (saved)
		rule |= RBP_AT_CFA << 3 | (uint32_t)(-16 / 8) << UNWIND_RBP_SHIFT;
	return rule;
}

static void add(GArray *rows, uint32_t pc, uint32_t rule)
{
	struct memtoll_unwind_row row = { pc, rule }, *last;

	last = rows->len ? &g_array_index(rows, struct memtoll_unwind_row, rows->len - 1) : NULL;
	if (last && last->pc == pc)
		last->rule = rule;
	else if (!last || last->rule != rule)
		g_array_append_val(rows, row);
}

static uint32_t word(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/* `sub rsp, N` (which: 0xec) or `add rsp, N` (0xc4): its length, 0: it is none. */
static size_t read_move(const uint8_t *at, size_t left, uint8_t which, uint32_t *bytes)
{
	if (left < 4 || at[0] != 0x48 || at[2] != which)
		return 0;
	if (at[1] == 0x83) {
		*bytes = at[3];
		return *bytes < 0x80 ? 4 : 0;
	}
	if (at[1] != 0x81 || left < 7)
		return 0;
	*bytes = word(at + 3);
	return *bytes < FRAME_MAX ? 7 : 0;
}

/* The first five bytes become a jump when the method is not to be entered any more. */
static bool is_bang(const uint8_t *at)
{
	bool whole = at[0] == 0x89 && at[1] == 0x84 && at[2] == 0x24;

	return (whole && at[6] == 0xff) || (at[0] == 0xe9 && at[6] == 0xff && at[5] >= 0x80);
}

static bool read_pushing(const uint8_t *code, size_t size, size_t at, struct frame_code *frame)
{
	uint32_t bytes = 0;
	size_t length;

	if (size - at < BANG_BYTES + 5 || !is_bang(code + at) || code[at + BANG_BYTES] != 0x55)
		return false;
	frame->start = at;
	frame->pushed = at + BANG_BYTES + 1;
	length = read_move(code + frame->pushed, size - frame->pushed, 0xec, &bytes);
	frame->moved = frame->body = frame->pushed + length;
	frame->size = bytes + 16;
	return length && bytes % 8 == 0;
}

/* `mov [rsp + offset], rbp`: its length, 0: it is none. */
static size_t read_save(const uint8_t *at, size_t left, uint32_t offset)
{
	if (left < 4 || at[0] != 0x48 || at[1] != 0x89 || at[3] != 0x24)
		return 0;
	if (!offset)
		return at[2] == 0x2c ? 4 : 0;
	if (at[2] == 0x6c)
		return left >= 5 && at[4] == offset ? 5 : 0;
	return left >= 8 && at[2] == 0xac && word(at + 4) == offset ? 8 : 0;
}

static bool read_saving(const uint8_t *code, size_t size, size_t at, struct frame_code *frame)
{
	uint32_t bytes = 0;
	size_t length = read_move(code + at, size - at, 0xec, &bytes), saved;

	if (!length || bytes < 8 || bytes % 8)
		return false;
	frame->start = at;
	frame->pushed = 0;
	frame->moved = at + length;
	saved = read_save(code + frame->moved, size - frame->moved, bytes - 8);
	frame->body = frame->moved + saved;
	frame->size = bytes + 8;
	return saved;
}

static bool find_frame(const uint8_t *code, size_t size, struct frame_code *frame)
{
	size_t at;

	for (at = 0; at < size && at < PROLOGUE_WITHIN; at++)
		if (read_pushing(code, size, at, frame) || read_saving(code, size, at, frame))
			return true;
	return false;
}

/* The frame is gone from the `add` on, until another path of the method follows the `ret`. */
static void add_epilogues(const uint8_t *code, size_t size, uint32_t pc,
			  const struct frame_code *frame, GArray *rows)
{
	size_t at = frame->body, length, after, end;
	uint32_t bytes;

	while (at < size) {
		length = read_move(code + at, size - at, 0xc4, &bytes);
		after = at + length;
		if (!length || bytes + 16 != frame->size || after >= size || code[after] != 0x5d) {
			at++;
			continue;
		}
		add(rows, pc + after, rule_of(16, true));
		add(rows, pc + after + 1, rule_of(8, false));
		end = after + 1;
		while (end < size && end < after + RETURN_WITHIN && code[end] != 0xc3)
			end++;
		at = MIN(end + 1, size);
		add(rows, pc + at, rule_of(frame->size, true));
	}
}

bool unwind_hotspot_rows(const uint8_t *code, size_t size, uint32_t pc, GArray *rows)
{
	struct frame_code frame;

	if (!find_frame(code, size, &frame))
		return false;
	add(rows, pc, rule_of(8, false));
	if (frame.pushed)
		add(rows, pc + frame.pushed, rule_of(16, true));
	else
		add(rows, pc + frame.moved, rule_of(frame.size, false));
	add(rows, pc + frame.body, rule_of(frame.size, true));
	add_epilogues(code, size, pc, &frame, rows);
	add(rows, pc + size, CFA_STOP);
	return true;
}
