// SPDX-License-Identifier: GPL-2.0
/*
 * The unwinder: from a frame's registers, by the rows of a table, to its caller's. Rules are made
 * here bit by bit as wire/ describes them, and stacks word by word as the psABI has them.
 */
#include "tests/bpf/native.h"

#define PROCESS_TABLE 3
#define MODULE_TABLE 7
#define BIAS 0x400000ULL
#define CODE BIAS
#define CODE_END (BIAS + 0x100000)
#define STACK 0x7ffffffde500ULL
#define PROBE_PAGE 0x7fffffffe000ULL
#define RETURN 0x412345ULL /* in the module */
#define SAVED_BP 0x7ffffffdf000ULL

static struct memtoll_unwind_mapping *mappings;
static struct unwind_chunk *module;
static unsigned rows_added;

/* bits 0-2: how the frame is found; 3-4: where rbp is; 5-21 and 22-31: offsets, in eighths. */
static __u32 rule(unsigned cfa, int offset, unsigned saved, int saved_offset)
{
	return cfa | saved << 3 | (offset / 8 & 0x1ffffU) << 5 | (saved_offset / 8 & 0x3ffU) << 22;
}

/* Of the rules that read a word: 12 bits say where, 5 what to add. */
static __u32 rule_deref(unsigned cfa, int offset, unsigned addend, unsigned saved, int saved_offset)
{
	return cfa | saved << 3 | ((offset / 8 & 0xfffU) << 5 | (addend / 8 & 0x1f)) << 5 |
	       (saved_offset / 8 & 0x3ffU) << 22;
}

static void begin(void)
{
	struct memtoll_target *target;
	__u32 tgid = TGID;

	host_begin();
	mappings = kernel_table(&unwind_tables, PROCESS_TABLE, UNWIND_CHUNK_BYTES,
				UNWIND_MAPPING_CHUNKS);
	memset(mappings, 0xff, UNWIND_CHUNK_BYTES * UNWIND_MAPPING_CHUNKS);
	module = kernel_table(&unwind_tables, MODULE_TABLE, UNWIND_CHUNK_BYTES, 3);
	memset(module, 0xff, 3 * UNWIND_CHUNK_BYTES);
	rows_added = 0;
	mappings[0] = (struct memtoll_unwind_mapping){ CODE, CODE_END, BIAS, MODULE_TABLE, 0 };
	target = kernel_map_lookup(&processes, &tgid);
	target->unwind_table = PROCESS_TABLE;
}

/* From this offset into the module on. */
static void add_row(__u32 pc, __u32 row_rule)
{
	unsigned chunk = 1 + rows_added / UNWIND_CHUNK_ROWS, at = rows_added % UNWIND_CHUNK_ROWS;

	if (!at)
		module[0].index[chunk - 1] = pc;
	module[chunk].rows[at] = (struct memtoll_unwind_row){ pc, row_rule };
	rows_added++;
}

static struct unwind at_instruction(__u64 ip)
{
	return (struct unwind){
		.ip = ip,
		.sp = STACK,
		.bp = SAVED_BP,
		.exact = 1,
		.process_table = PROCESS_TABLE,
	};
}

static void poke(__u64 address, __u64 word)
{
	kernel_poke_word(USER, address, word);
}

static void assert_frame(const struct unwind *walk, __u64 ip, __u64 sp, __u64 bp)
{
	assert_int_equal(walk->stop, UNWIND_STOP_NONE);
	assert_int_equal(walk->ip, ip);
	assert_int_equal(walk->sp, sp);
	assert_int_equal(walk->bp, bp);
}

/* ---- one step ---- */

/* push %rbp; mov %rsp,%rbp; sub $16,%rsp: wherever it stands, the caller is the same. */
static void test_prologue(void **state)
{
	static const struct {
		__u32 pc;
		__u64 sp, bp;
	} places[] = {
		{ 0x1100, STACK, SAVED_BP },
		{ 0x1101, STACK - 8, SAVED_BP },
		{ 0x1104, STACK - 8, STACK - 8 },
		{ 0x1140, STACK - 24, STACK - 8 },
	};
	struct unwind walk;
	size_t i;

	begin();
	add_row(0x1100, rule(CFA_RSP, 8, RBP_SAME, 0));
	add_row(0x1101, rule(CFA_RSP, 16, RBP_AT_CFA, -16));
	add_row(0x1104, rule(CFA_RBP, 16, RBP_AT_CFA, -16));
	add_row(0x1200, rule(CFA_STOP, 0, 0, 0));
	poke(STACK, RETURN);
	poke(STACK - 8, SAVED_BP);
	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		walk = at_instruction(BIAS + places[i].pc);
		walk.sp = places[i].sp;
		walk.bp = places[i].bp;
		assert_int_equal(unwind_step(&walk), 1);
		assert_frame(&walk, RETURN, STACK + 8, SAVED_BP);
		assert_int_equal(walk.exact, 0);
		assert_int_equal(walk.irregular, 0);
	}
}

static void test_rules(void **state)
{
	const __u64 bp = STACK + 0x100;
	const struct {
		__u32 rule;
		__u64 cfa, expected_bp;
	} rows[] = {
		{ rule(CFA_RSP, 0x48, RBP_SAME, 0), STACK + 0x48, bp },
		{ rule(CFA_RSP, 0x48, RBP_UNKNOWN, 0), STACK + 0x48, bp },
		{ rule(CFA_RSP, 0x48, RBP_AT_CFA, -0x38), STACK + 0x48, 0xb0b0 },
		/* 2^16 - 1 eighths, and the least of rbp's. */
		{ rule(CFA_RSP, 8 * 65535, RBP_AT_CFA, -8 * 512), STACK + 8 * 65535, 0xb0b0 },
		{ rule(CFA_RSP, -0x40, RBP_SAME, 0), STACK - 0x40, bp },
		{ rule(CFA_RBP, 0x10, RBP_AT_CFA, -0x10), bp + 0x10, 0xb0b0 },
		{ rule(CFA_RBP, -0x20, RBP_AT_CFA, -0x18), bp - 0x20, 0xb0b0 },
		/* main() with its stack realigned: the frame's address is kept in it. */
		{ rule_deref(CFA_RBP_DEREF, -8, 0, RBP_AT_RBP, 0), STACK + 0x208, 0xb0b0 },
		{ rule_deref(CFA_RBP_DEREF, -0x110, 0x10, RBP_AT_RBP, 0x18), STACK + 0x208,
		  0xb0b0 },
		{ rule_deref(CFA_RSP_DEREF, 0x28, 8, RBP_SAME, 0), STACK + 0x208, bp },
		{ rule_deref(CFA_RSP_DEREF, 8 * 2047, 0xf8, RBP_SAME, 0), STACK + 0x208, bp },
	};
	struct unwind walk;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		begin();
		add_row(0x1000, rows[i].rule);
		poke(rows[i].cfa - 16, 0x1616);
		poke(rows[i].cfa - 8, RETURN);
		if (i == 7)
			poke(bp - 8, STACK + 0x208);
		else if (i == 8)
			poke(bp - 0x110, STACK + 0x208 - 0x10);
		else if (i == 9)
			poke(STACK + 0x28, STACK + 0x208 - 8);
		else if (i == 10)
			poke(STACK + 8 * 2047, STACK + 0x208 - 0xf8);
		/* Where each of them has its rbp. */
		if (i == 2)
			poke(STACK + 0x48 - 0x38, 0xb0b0);
		else if (i == 3)
			poke(rows[i].cfa - 8 * 512, 0xb0b0);
		else if (i == 5)
			poke(bp, 0xb0b0);
		else if (i == 6)
			poke(bp - 0x38, 0xb0b0);
		else if (i == 7)
			poke(bp, 0xb0b0);
		else if (i == 8)
			poke(bp + 0x18, 0xb0b0);
		walk = at_instruction(BIAS + 0x1010);
		walk.bp = bp;
		assert_int_equal(unwind_step(&walk), 1);
		assert_frame(&walk, RETURN, rows[i].cfa, rows[i].expected_bp);
	}
}

/*
 * A lazy entry of the PLT: from its eleventh byte on it has pushed a word (binutils, elf_x86_64).
 */
static void test_plt(void **state)
{
	struct unwind walk;
	unsigned at;

	begin();
	add_row(0x1000, rule(CFA_PLT, 11 * 8, RBP_SAME, 0));
	for (at = 0; at < 16; at++) {
		walk = at_instruction(BIAS + 0x1230 + at);
		walk.sp = at >= 11 ? STACK - 8 : STACK;
		poke(STACK, RETURN);
		poke(STACK - 8, 0xdead);
		assert_int_equal(unwind_step(&walk), 1);
		assert_frame(&walk, RETURN, STACK + 8, SAVED_BP);
	}
}

/* arch/x86/include/uapi/asm: struct ucontext with a struct sigcontext in it. */
#define CONTEXT(field) \
	(offsetof(struct ucontext, uc_mcontext) + offsetof(struct sigcontext_64, field))

static void test_signal(void **state)
{
	struct unwind walk = {};

	begin();
	add_row(0x1000, rule(CFA_SIGNAL, 0, 0, 0));
	poke(STACK + CONTEXT(sp), STACK + 0x3008);
	poke(STACK + CONTEXT(ip), 0x415151);
	poke(STACK + CONTEXT(bp), 0x7777);
	walk = at_instruction(BIAS + 0x1000);
	assert_int_equal(unwind_step(&walk), 1);
	assert_frame(&walk, 0x415151, STACK + 0x3008, 0x7777);
	/* It was interrupted there: no return address. */
	assert_int_equal(walk.exact, 1);
}

/* The last instruction of a function may be a call: what it returns to is the next function's. */
static void test_return_address_behind_its_function(void **state)
{
	struct unwind walk;

	begin();
	add_row(0x1000, rule(CFA_RSP, 24, RBP_SAME, 0));
	add_row(0x1200, rule(CFA_RSP, 8, RBP_SAME, 0));
	poke(STACK, 0x410000);
	poke(STACK + 16, RETURN);
	walk = at_instruction(BIAS + 0x1200);
	walk.exact = 0;
	assert_int_equal(unwind_step(&walk), 1);
	assert_frame(&walk, RETURN, STACK + 24, SAVED_BP);
	walk = at_instruction(BIAS + 0x1200);
	assert_int_equal(unwind_step(&walk), 1);
	assert_frame(&walk, 0x410000, STACK + 8, SAVED_BP);
}

/* The page below the return address is about to be made, by the push at the function's entry. */
static void test_stack_that_grows(void **state)
{
	const __u64 page = STACK & ~(MEMTOLL_PAGE_SIZE - 1);
	struct unwind walk;

	begin();
	add_row(0x1000, rule(CFA_RSP, 8, RBP_SAME, 0));
	add_row(0x2000, rule(CFA_RSP, 8, RBP_AT_CFA, -16));
	poke(page, RETURN);
	walk = at_instruction(BIAS + 0x1000);
	walk.sp = page;
	assert_int_equal(unwind_step(&walk), 1);
	assert_frame(&walk, RETURN, page + 8, SAVED_BP);
	/* There it ought to have rbp. */
	walk = at_instruction(BIAS + 0x2000);
	walk.sp = page;
	assert_int_equal(unwind_step(&walk), 0);
	assert_int_equal(walk.stop, UNWIND_STOP_MEMORY);
}

static void test_first_frame(void **state)
{
	struct unwind walk;

	begin();
	add_row(0x1000, rule(CFA_END, 0, 0, 0));
	walk = at_instruction(BIAS + 0x1000);
	assert_int_equal(unwind_step(&walk), 0);
	assert_int_equal(walk.flags, STACK_COMPLETE);
	assert_int_equal(walk.stop, UNWIND_STOP_NONE);
}

/* ---- without a rule: by the frame pointer, or the end, and why ---- */

static void test_frame_pointer(void **state)
{
	struct unwind walk;

	begin();
	walk = at_instruction(0x7f0000001000); /* code made at run time */
	walk.bp = STACK + 0x40;
	poke(STACK + 0x40, SAVED_BP);
	poke(STACK + 0x48, RETURN);
	assert_int_equal(unwind_step(&walk), 1);
	assert_frame(&walk, RETURN, STACK + 0x50, SAVED_BP);
	assert_int_equal(walk.flags, STACK_SOME_FP);
	/* Nothing but the return address is there yet. */
	walk = at_instruction(0x7f0000001000);
	walk.leaf = 1;
	poke(STACK, RETURN);
	assert_int_equal(unwind_step(&walk), 1);
	assert_frame(&walk, RETURN, STACK + 8, SAVED_BP);
}

/* Of a runtime whose code runs on another stack than what has called it: above it, as it happens. */
static void test_stack_below(void **state)
{
	static const struct {
		__u64 ip, saved, word;
		int steps;
	} rows[] = {
		{ 0x601000, STACK - 0x8000 + 0x40, 0x602000, 1 },
		{ BIAS + 0x2000, STACK - 0x8000 + 0x40, RETURN, 1 },
		/* It leads nowhere, down, or far away. */
		{ 0x601000, STACK - 0x8000, 0x602000, 0 },
		{ 0x601000, STACK - 0x8040, 0x602000, 0 },
		{ 0x601000, STACK - 0x8000 + (1 << 20) + 8, 0x602000, 0 },
		/* Code, but of another module; or there is none. */
		{ 0x601000, STACK - 0x8000 + 0x40, RETURN, 0 },
		{ 0x7f0000001000, STACK - 0x8000 + 0x40, 0x7f0000001100, 0 },
	};
	struct unwind walk;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		begin();
		mappings[1] = (struct memtoll_unwind_mapping){ 0x600000, 0x700000, 0x600000, 0, 0 };
		add_row(0x2000, rule(CFA_STOP, 0, 0, 0));
		poke(STACK - 0x8000, rows[i].saved);
		poke(STACK - 0x8000 + 8, rows[i].word);
		walk = at_instruction(rows[i].ip);
		walk.bp = STACK - 0x8000;
		assert_int_equal(unwind_step(&walk), rows[i].steps);
		if (!rows[i].steps)
			continue;
		assert_frame(&walk, rows[i].word, STACK - 0x8000 + 16, rows[i].saved);
		/* Once. */
		walk.bp = STACK - 0x9000;
		poke(STACK - 0x9000, STACK - 0x9000 + 0x40);
		poke(STACK - 0x9000 + 8, rows[i].word);
		assert_int_equal(unwind_step(&walk), 0);
	}
}

static void test_stops(void **state)
{
	static const struct {
		__u64 ip, bp, word;
		int why;
	} rows[] = {
		/*
		 * No frame pointer: below the stack pointer, not aligned, not the program's,
		 * unreadable.
		 */
		{ 0x7f0000001000, STACK - 8, RETURN, UNWIND_STOP_NO_MAPPING },
		{ 0x7f0000001000, STACK + 0x44, RETURN, UNWIND_STOP_NO_MAPPING },
		{ 0x7f0000001000, 0xffff888000001000, RETURN, UNWIND_STOP_NO_MAPPING },
		{ 0x7f0000001000, 0x7fff12340000, RETURN, UNWIND_STOP_NO_MAPPING },
		/* What it points to is no code. */
		{ 0x7f0000001000, STACK + 0x40, 17, UNWIND_STOP_NO_MAPPING },
		{ 0x7f0000001000, STACK + 0x40, 1ULL << 47, UNWIND_STOP_NO_MAPPING },
		/* In a module without rows, or where its rows say nothing. */
		{ 0x601000, 1, RETURN, UNWIND_STOP_NO_ROW },
		{ BIAS + 0x2000, 1, RETURN, UNWIND_STOP_RULE },
		/* Before the first row. */
		{ BIAS + 0x10, 1, RETURN, UNWIND_STOP_RULE },
		/* The frame cannot be read. */
		{ BIAS + 0x3000, 1, RETURN, UNWIND_STOP_MEMORY },
		{ BIAS + 0x4000, 1, RETURN, UNWIND_STOP_MEMORY },
		{ BIAS + 0x5000, 1, RETURN, UNWIND_STOP_MEMORY },
		{ BIAS + 0x6000, 1, RETURN, UNWIND_STOP_MEMORY },
	};
	struct unwind walk;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		begin();
		mappings[1] = (struct memtoll_unwind_mapping){ 0x600000, 0x700000, 0x600000, 0, 0 };
		add_row(0x1000, rule(CFA_RSP, 8, RBP_SAME, 0));
		add_row(0x2000, rule(CFA_STOP, 0, 0, 0));
		add_row(0x3000, rule(CFA_RSP, 8 * 60000, RBP_SAME, 0));
		add_row(0x4000, rule_deref(CFA_RBP_DEREF, -8, 0, RBP_SAME, 0));
		add_row(0x5000, rule(CFA_RSP, 8, RBP_AT_RBP, 0));
		add_row(0x6000, rule(CFA_SIGNAL, 0, 0, 0));
		poke(STACK - 8, SAVED_BP);
		poke(STACK, RETURN);
		poke(STACK + 0x48, rows[i].word);
		kernel_unmap(USER, STACK + 8 * 60000);
		walk = at_instruction(rows[i].ip);
		walk.bp = rows[i].bp;
		if (rows[i].ip == BIAS + 0x6000)
			walk.sp = 0x7fff12340000;
		assert_int_equal(unwind_step(&walk), 0);
		assert_int_equal(walk.stop, rows[i].why);
		assert_int_equal(walk.flags & STACK_COMPLETE, 0);
	}
}

/* Where the stack has ended that the kernel made for exec, nothing is missing. */
static void test_loader(void **state)
{
	static const struct {
		__u64 below;
		unsigned complete;
	} rows[] = { { 0, 1 }, { 8, 1 }, { 64, 1 }, { 72, 0 }, { (__u64)-8, 0 } };
	struct unwind walk;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		begin();
		walk = at_instruction(0x7f0000001000);
		walk.sp = START_STACK - rows[i].below;
		walk.bp = 0;
		assert_int_equal(unwind_step(&walk), 0);
		assert_int_equal(walk.flags & STACK_COMPLETE,
				 rows[i].complete ? STACK_COMPLETE : 0);
		assert_int_equal(walk.stop, rows[i].complete ? 0 : UNWIND_STOP_NO_MAPPING);
	}
}

/* ---- tables ---- */

/* Each pc has the rule of the last row that is not above it. */
static void test_bisect(void **state)
{
	static __u32 pcs[3001];
	unsigned i, at, count = sizeof(pcs) / sizeof(pcs[0]);
	__u32 pc = 0x1000;

	begin();
	for (i = 0; i < count; i++) {
		pcs[i] = pc;
		add_row(pc, rule(CFA_RSP, 8 * (i + 1), RBP_SAME, 0));
		pc += 1 + i * 7919 % 23;
	}
	/* Twice: what was looked up is remembered. */
	for (i = 0; i < 2; i++) {
		for (at = 0, pc = 0xff0; pc < pcs[count - 1] + 100; pc++) {
			while (at < count && pcs[at] <= pc)
				at++;
			assert_int_equal(unwind_rule(MODULE_TABLE, pc),
					 at ? rule(CFA_RSP, 8 * at, RBP_SAME, 0) : 0);
		}
	}
	assert_int_equal(unwind_rule(MODULE_TABLE + 1, pcs[5]), 0);
}

/* More mappings than a chunk has; between them there is nothing. */
static void test_many_mappings(void **state)
{
	const unsigned count = 2003;
	struct unwind walk;
	unsigned i;

	begin();
	for (i = 0; i < count; i++)
		mappings[i] =
			(struct memtoll_unwind_mapping){ 0x500000 + i * 0x3000ULL,
							 0x502000 + i * 0x3000ULL, i, i + 1, 0 };
	for (i = 0; i < count; i++) {
		walk = (struct unwind){ .process_table = PROCESS_TABLE };
		assert_true(unwind_mapping(&walk, 0x500000 + i * 0x3000ULL));
		assert_int_equal(walk.table, i + 1);
		assert_int_equal(walk.bias, i);
		assert_true(unwind_mapping(&walk, 0x501fff + i * 0x3000ULL));
		assert_int_equal(walk.table, i + 1);
		assert_false(unwind_mapping(&walk, 0x502000 + i * 0x3000ULL));
	}
	assert_false(unwind_mapping(&walk, 0x4fffff));
	assert_false(unwind_mapping(&walk, 0));
	assert_false(unwind_mapping(&walk, ~0ULL));
	assert_false(unwind_mapping(&walk, 0xffffffff81000000));
}

/* ---- whole stacks ---- */

static struct uprobe_task uprobe_task;
static struct xol_area xol_area;

/* A chain of so many frames of 32 bytes, the last of which is a thread's first. */
static void begin_chain(unsigned frames)
{
	unsigned i;

	begin();
	add_row(0x1000, rule(CFA_RSP, 32, RBP_SAME, 0));
	add_row(0x8000, rule(CFA_END, 0, 0, 0));
	for (i = 1; i < frames; i++)
		poke(STACK + 32 * i - 8, i == frames - 1 ? BIAS + 0x8001 : BIAS + 0x2000 + i);
	/* What is in between is the program's. */
	for (i = 0; i < frames; i++)
		poke(STACK + 32 * i, 0xdada + i);
	memset(&uprobe_task, 0, sizeof(uprobe_task));
	xol_area.vaddr = PROBE_PAGE;
	host.mm.uprobes_state.xol_area = &xol_area;
	host.task.utask = &uprobe_task;
	kernel_object(&uprobe_task, sizeof(uprobe_task));
	kernel_object(&xol_area, sizeof(xol_area));
	thread_create(&host.task);
}

static const struct memtoll_stack *walk_chain(void)
{
	struct thread *thread = host_thread();

	host.regs = (struct pt_regs){ .ip = BIAS + 0x2000, .sp = STACK, .bp = SAVED_BP };
	memo_stack(thread, &host.regs, false);
	return &thread->stack;
}

static void assert_chain(const struct memtoll_stack *stack, unsigned frames)
{
	unsigned i;

	assert_int_equal(stack->depth, frames);
	assert_int_equal(stack->how, UNWIND_CFI);
	assert_int_equal(stack->stop, UNWIND_STOP_NONE);
	assert_int_equal(stack->exact[0], 1);
	assert_int_equal(stack->exact[1], 0);
	for (i = 0; i < frames - 1; i++)
		assert_int_equal(stack->frames[i], BIAS + 0x2000 + i);
}

static void test_chain(void **state)
{
	static const unsigned depths[] = { 2, 3, 48, 49, 63, 64, 65, 126, 127 };
	unsigned i, loops;

	for (loops = 0; loops < 2; loops++) {
		for (i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
			begin_chain(depths[i]);
			if (!loops)
				kernel_lacks("BPF_FUNC_loop");
			assert_chain(walk_chain(), depths[i]);
			assert_int_equal(host_thread()->stack.flags, STACK_COMPLETE);
			assert_lost_only(0, 0);
		}
	}
}

static void test_deeper_than_a_stack_holds(void **state)
{
	begin_chain(131);
	assert_int_equal(walk_chain()->depth, MEMTOLL_STACK_DEPTH);
	assert_int_equal(host_thread()->stack.flags, STACK_TRUNCATED);
	assert_int_equal(host_thread()->stack.frames[126], BIAS + 0x2000 + 126);
}

/* A loop that never ends is cut off. */
static void test_endless(void **state)
{
	begin_chain(3);
	add_row(0x9000, rule(CFA_RSP, 0, RBP_SAME, 0));
	poke(STACK + 24, BIAS + 0x9001);
	assert_true(walk_chain()->depth <= MEMTOLL_STACK_DEPTH);
}

static void test_loss_says_why(void **state)
{
	begin_chain(5);
	kernel_poke_word(USER, STACK + 32 * 3 - 8, 0x7f0000001000);
	assert_int_equal(walk_chain()->depth, 4);
	assert_int_equal(host_thread()->stack.stop, UNWIND_STOP_NO_MAPPING);
	assert_lost_only(LOST_UNWIND_MAPPING, 1);
}

/* A return probe has taken a place on the stack: the kernel knows the true address. */
static void test_return_probe_on_the_way(void **state)
{
	static struct return_instance inner, outer;

	begin_chain(7);
	inner = (struct return_instance){
		.stack = STACK + 32 * 2 - 8,
		.orig_ret_vaddr = BIAS + 0x2002,
		.next = &outer,
	};
	outer = (struct return_instance){
		.stack = STACK + 32 * 4 - 8,
		.orig_ret_vaddr = BIAS + 0x2004,
	};
	kernel_object(&inner, sizeof(inner));
	kernel_object(&outer, sizeof(outer));
	uprobe_task.return_instances = &inner;
	poke(inner.stack, PROBE_PAGE);
	poke(outer.stack, PROBE_PAGE);
	kernel_poke(USER, PROBE_PAGE, "\xcc", 1);
	assert_chain(walk_chain(), 7);
	assert_lost_only(0, 0);
}

/* ---- memos ---- */

static void test_memo(void **state)
{
	__u64 first, reads;
	unsigned i;

	begin_chain(11);
	walk_chain();
	first = host_thread()->stack.id;
	reads = kernel.user_reads;
	/* What no step goes by may change. */
	for (i = 0; i < 10; i++)
		poke(STACK + 32 * i, 0xeded + i);
	assert_int_equal(memo_stack(host_thread(), &host.regs, false), first);
	assert_int_equal(kernel.user_reads - reads, 1);
	/* A return address has changed: another stack. */
	poke(STACK + 32 * 6 - 8, BIAS + 0x2777);
	assert_int_not_equal(memo_stack(host_thread(), &host.regs, false), first);
	assert_int_equal(host_thread()->stack.frames[6], BIAS + 0x2777);
	/* Of both there is a memo now. */
	poke(STACK + 32 * 6 - 8, BIAS + 0x2006);
	reads = kernel.user_reads;
	assert_int_equal(memo_stack(host_thread(), &host.regs, false), first);
	assert_in_range(kernel.user_reads - reads, 1, 2);
	/* From another place on the stack it is another walk. */
	host.regs.sp += 32;
	assert_int_not_equal(memo_stack(host_thread(), &host.regs, false), first);
}

/* ---- sites ---- */

/* The site of a call by frame 1 of the chain, whose callers these are. 0: as the chain has it. */
/* passed: it is none of the calls in eight that are looked at where there was one caller so far. */
static __u64 site_with(__u64 second, __u64 third, bool passed)
{
	struct thread *thread = host_thread();

	poke(STACK + 32 * 2 - 8, BIAS + 0x2000 + (second ? second : 2));
	poke(STACK + 32 * 3 - 8, BIAS + 0x2000 + (third ? third : 3));
	thread->call.ip = BIAS + 0x9000;
	thread->call.caller = BIAS + 0x2001;
	thread->call.sp = STACK + 32 - 8;
	thread->call.bp = SAVED_BP;
	kernel.random = passed ? 1 : 8;
	return site_of_call(thread, TGID);
}

static void site_begin(void)
{
	begin_chain(11);
	memset(site_notes, 0, sizeof(site_notes));
}

/* Once a function is called by others as well, they are part of the site; and theirs as well. */
static void test_site(void **state)
{
	__u64 one, other, beyond;

	site_begin();
	one = site_with(0, 0, false);
	assert_int_equal(site_with(0, 0, false), one);
	other = site_with(0x777, 0, false);
	assert_int_not_equal(other, one);
	assert_int_equal(site_with(0x777, 0, true), other);
	/* The first caller's calls are told apart as well now. */
	assert_int_not_equal(site_with(0, 0, true), one);
	beyond = site_with(0x777, 0x779, false);
	assert_int_not_equal(beyond, other);
	assert_int_equal(site_with(0x777, 0x779, true), beyond);
}

/* Of a function with one caller seven calls in eight are not looked at. */
static void test_site_of_one_caller(void **state)
{
	__u64 one, reads;

	site_begin();
	one = site_with(0, 0, false);
	reads = kernel.user_reads;
	assert_int_equal(site_with(0x777, 0, true), one);
	assert_int_equal(kernel.user_reads, reads);
}

static void test_site_of_recursion(void **state)
{
	__u64 one;

	site_begin();
	one = site_with(0, 0, false);
	assert_int_equal(site_with(1, 0, false), one);
}

/* A frame whose size differs from call to call: what lies at the old place is no caller. */
static void test_site_of_frame_that_varies(void **state)
{
	struct thread *thread;
	__u64 one;

	site_begin();
	add_row(0x9000, rule(CFA_RBP, 16, RBP_SAME, 0));
	site_with(0, 0, false);
	thread = host_thread();
	thread->call.caller = BIAS + 0x9001;
	thread->call.bp = STACK + 32 * 2 - 16;
	one = site_of_call(thread, TGID);
	/* The frame is larger this time: where the caller was lies something else. */
	thread->call.bp = STACK + 32 * 3 - 16;
	poke(STACK + 32 * 2 - 8, 0xdadadb);
	assert_int_equal(site_of_call(thread, TGID), one);
}

/* Notes of a process that is gone make room. */
static void test_site_takes_the_place_of_a_dead_process(void **state)
{
	__u64 one;
	__u32 i;

	site_begin();
	for (i = 0; i < 1 << SITE_NOTES_LOG; i++)
		site_notes[i] = (struct site_note){ .id = 7, .tgid = TGID };
	one = site_with(0, 0, false);
	assert_int_equal(site_with(0x777, 0, false), one);
	for (i = 0; i < 1 << SITE_NOTES_LOG; i++)
		site_notes[i].tgid = TGID + 1;
	assert_int_equal(site_with(0, 0, false), one);
	assert_int_not_equal(site_with(0x777, 0, false), one);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_prologue),
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_plt),
		cmocka_unit_test(test_signal),
		cmocka_unit_test(test_return_address_behind_its_function),
		cmocka_unit_test(test_stack_that_grows),
		cmocka_unit_test(test_first_frame),
		cmocka_unit_test(test_frame_pointer),
		cmocka_unit_test(test_stack_below),
		cmocka_unit_test(test_stops),
		cmocka_unit_test(test_loader),
		cmocka_unit_test(test_bisect),
		cmocka_unit_test(test_many_mappings),
		cmocka_unit_test(test_chain),
		cmocka_unit_test(test_deeper_than_a_stack_holds),
		cmocka_unit_test(test_endless),
		cmocka_unit_test(test_loss_says_why),
		cmocka_unit_test(test_return_probe_on_the_way),
		cmocka_unit_test(test_memo),
		cmocka_unit_test(test_site),
		cmocka_unit_test(test_site_of_one_caller),
		cmocka_unit_test(test_site_of_recursion),
		cmocka_unit_test(test_site_of_frame_that_varies),
		cmocka_unit_test(test_site_takes_the_place_of_a_dead_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
