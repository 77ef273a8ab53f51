/* SPDX-License-Identifier: GPL-2.0 */
/*
 * kernel.h: the kernel as programs of bpf/ see it that run in a test: memory, maps, ring buffers, a
 * clock. The test says what is there, and what fails.
 *
 * Plain C types: it is included beside the kernel's types (tests) and beside the C library's
 * (kernel.c).
 */
#ifndef TESTS_BPF_KERNEL_H
#define TESTS_BPF_KERNEL_H

#define KERNEL_PAGE 4096ULL

/* What the test sets, and may read. */
struct kernel {
	unsigned long long now_ns;
	unsigned int cpu;	    /* that the programs run on */
	unsigned long long tick_ns; /* that the clock moves on each time it was read */
	unsigned long long clock_reads;
	void *task;		       /* struct task_struct that is running */
	void *registers;	       /* struct pt_regs it entered the kernel with */
	unsigned long long cookie;     /* of the probe that was hit */
	unsigned long long function;   /* bpf_get_func_ip() */
	unsigned long long ring_bytes; /* room for records that are not read yet */
	long find_area_fails;	       /* what bpf_find_vma() returns instead, if not 0 */
	int storage_fails;
	unsigned int random; /* the next random number; 0: any */
	unsigned long long user_reads;
};

extern struct kernel kernel;

/* Begin anew: nothing is there. */
void kernel_reset(void);

/* ---- memory ---- */

enum kernel_space { USER, KERNEL };

/* Write so many bytes; the pages they lie on are there from now on. */
void kernel_poke(enum kernel_space space, unsigned long long address, const void *bytes,
		 unsigned long long count);
void kernel_poke_word(enum kernel_space space, unsigned long long address, unsigned long long word);
unsigned long long kernel_peek_word(enum kernel_space space, unsigned long long address);
/* The page of this address cannot be read any more. */
void kernel_unmap(enum kernel_space space, unsigned long long address);
/* An object of the test's that programs may read at its own address. */
void kernel_object(const void *object, unsigned long long bytes);
/* An area (struct vm_area_struct) of the running process: [start, end). */
void kernel_area(void *area, unsigned long long start, unsigned long long end);
long kernel_find_area(unsigned long long address, void **area);
/* A knob, which programs see as a constant. */
void kernel_set(const volatile void *knob, const void *value, unsigned long long bytes);

/* ---- what this kernel is too old for ---- */

/* As in bpf_core_field_exists() and the like: "task->utask". */
void kernel_lacks(const char *name);
int kernel_has(const char *name);
long kernel_refuses(const char *helper);

/* ---- maps ---- */

enum kernel_map_kind { MAP_HASH, MAP_LRU, MAP_ARRAY, MAP_TABLES, MAP_STORAGE, MAP_RING };

/* rows: as many as fit. */
void kernel_map(const void *map, enum kernel_map_kind kind, unsigned key_bytes,
		unsigned value_bytes, unsigned rows);
/* From now on no more fit. */
void kernel_map_rows(const void *map, unsigned rows);
unsigned kernel_map_count(const void *map);
/* Put an array of `rows` values at this index of a MAP_TABLES; its values lie one after another. */
void *kernel_table(const void *tables, unsigned index, unsigned value_bytes, unsigned rows);

/* ---- ring buffers ---- */

/* Take the oldest record that is not read yet, or NULL; it is there until the reset. */
const void *kernel_ring_take(const void *ring, unsigned long long *bytes,
			     unsigned long long *flags);
unsigned kernel_ring_count(const void *ring);

/* ---- helpers ---- */

void *kernel_map_lookup(const void *map, const void *key);
long kernel_map_update(const void *map, const void *key, const void *value,
		       unsigned long long flags);
long kernel_map_delete(const void *map, const void *key);
void *kernel_storage_get(const void *map, const void *task, const void *value,
			 unsigned long long flags);
long kernel_ring_output(const void *ring, const void *record, unsigned long long bytes,
			unsigned long long flags);
void *kernel_ring_reserve(const void *ring, unsigned long long bytes, unsigned long long flags);
void kernel_ring_submit(void *record, unsigned long long flags);
unsigned long long kernel_ring_query(const void *ring, unsigned long long what);
long kernel_read_user(void *to, unsigned bytes, const void *from);
long kernel_read_kernel(void *to, unsigned bytes, const void *from);
long kernel_read_kernel_string(void *to, unsigned bytes, const void *from);
void *kernel_cast(const void *object, unsigned bytes);
unsigned long long kernel_clock(void);
unsigned kernel_random(void);

#endif /* TESTS_BPF_KERNEL_H */
