-- SPDX-License-Identifier: GPL-2.0
--
-- copies.sql: who copies the pages that fork has shared, the process that forked or its children.
-- Follows huge.sql.

-- One row; what a process takes that had become its own is no copy, pages of files are not among
-- it, nor relocations, which each start of a program makes in pages of its libraries. by_parent:
-- copies made by processes that have children of their own program, and go on writing while
-- those live; by_child: by such children. In a chain of forks who has children counts as parent.
-- merged: of pages that KSM had made one of equal ones. by_collector: by CPython's cyclic
-- garbage collector, which has its state in each object, where its functions have names
-- (gcmodule.c, from 3.13 on gc.c); by_reference: where the interpreter itself, or what it calls
-- for one operation, writes: a reference count, which is in the object, too. All NULL where
-- nothing was copied.
CREATE VIEW copied_measure AS
WITH
kin AS MATERIALIZED (
	SELECT c.pid, c.parent_pid FROM process c JOIN process p ON p.pid = c.parent_pid
	WHERE c.executable = p.executable
),
collecting AS MATERIALIZED (
	SELECT DISTINCT s.stack_id FROM stack_frame s JOIN frame f ON f.frame_id = s.frame_id
	WHERE f.function IN ('gc_collect_main', 'collect', 'PyGC_Collect', '_PyGC_Collect',
		'_Py_RunGC', 'gc_collect_region', 'gc_collect_young', 'gc_collect_full',
		'gc_collect_increment', 'update_refs', 'subtract_refs', 'deduce_unreachable')
),
interpreting AS MATERIALIZED (
	SELECT DISTINCT s.stack_id FROM stack_frame s JOIN frame f ON f.frame_id = s.frame_id
	WHERE f.kind = 'python' AND s.depth <= 2 AND s.stack_id NOT IN collecting
),
copied AS MATERIALIZED (
	SELECT f.pid, SUM(f.pages) AS pages,
		SUM(CASE f.class WHEN 'cow_merged' THEN f.pages ELSE 0 END) AS merged,
		f.pid IN (SELECT parent_pid FROM kin) AS parent,
		f.pid IN (SELECT pid FROM kin) AS child,
		SUM(CASE WHEN f.touched_stack IN collecting THEN f.pages ELSE 0 END) AS collected,
		SUM(CASE WHEN f.touched_stack IN interpreting THEN f.pages ELSE 0 END) AS counted
	FROM fault f JOIN fault_class k ON k.class = f.class
	WHERE k.toll = 'cow' AND k.writes_page AND f.area NOT IN ('file', 'library') GROUP BY f.pid
)
SELECT 4096 * SUM(pages) AS copied_bytes, 4096 * SUM(merged) AS merged_bytes,
	4096 * SUM(collected) AS by_collector_bytes, 4096 * SUM(counted) AS by_reference_bytes,
	4096 * SUM(CASE WHEN parent THEN pages ELSE 0 END) AS by_parent_bytes,
	4096 * SUM(CASE WHEN child AND NOT parent THEN pages ELSE 0 END) AS by_child_bytes
FROM copied;
