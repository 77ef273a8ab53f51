-- SPDX-License-Identifier: GPL-2.0
--
-- copies.sql: who copies the pages that fork has shared, the process that forked or its children.
-- Follows huge.sql.

-- One row; pages of files are not among it, nor relocations, which each start of a program makes in
-- pages of its libraries. by_parent: copies made by processes that have children of their own
-- program, and go on writing while those live; by_child: by such children. In a chain of forks who
-- has children counts as parent. merged: of pages that KSM had made one of equal ones. All NULL where
-- nothing was copied.
CREATE VIEW copied_measure AS
WITH
kin AS MATERIALIZED (
	SELECT c.pid, c.parent_pid FROM process c JOIN process p ON p.pid = c.parent_pid
	WHERE c.executable = p.executable
),
copied AS MATERIALIZED (
	SELECT f.pid, SUM(f.pages) AS pages,
		SUM(CASE f.class WHEN 'cow_merged' THEN f.pages ELSE 0 END) AS merged,
		f.pid IN (SELECT parent_pid FROM kin) AS parent,
		f.pid IN (SELECT pid FROM kin) AS child
	FROM fault f JOIN fault_class k ON k.class = f.class
	WHERE k.toll = 'cow' AND f.area NOT IN ('file', 'library') GROUP BY f.pid
)
SELECT 4096 * SUM(pages) AS copied_bytes, 4096 * SUM(merged) AS merged_bytes,
	4096 * SUM(CASE WHEN parent THEN pages ELSE 0 END) AS by_parent_bytes,
	4096 * SUM(CASE WHEN child AND NOT parent THEN pages ELSE 0 END) AS by_child_bytes
FROM copied;
