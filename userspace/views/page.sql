-- SPDX-License-Identifier: GPL-2.0
--
-- page.sql: sites as the report in text lists them. Follows verdict.sql.

-- Stacks of the sites as a page of 80 columns shows them. alike: one number for those of which the
-- same lines are shown, and as many are not. A line is made once for each frame, and for each
-- address where no file is known, as an address is all that it says then.
CREATE VIEW alike_page AS
WITH
part AS (
	SELECT s.stack_id, s.depth, s.frame_id, CASE f.module WHEN '' THEN s.address
		ELSE 0 END AS address
	FROM (SELECT allocated_stack AS stack_id FROM sites UNION SELECT touched_stack FROM sites) w
	JOIN stack_frame s ON s.stack_id = w.stack_id JOIN frame f ON f.frame_id = s.frame_id
	WHERE s.depth < 6
),
made AS (
	SELECT stack_id, depth, frame_id, address,
		CASE ROW_NUMBER() OVER (PARTITION BY frame_id, address)
		WHEN 1 THEN (SELECT l.name || char(9) || l.place FROM stack_shown l
			WHERE l.stack_id = part.stack_id AND l.depth = part.depth) END AS line
	FROM part
),
every AS (
	SELECT stack_id, depth, MAX(line) OVER (PARTITION BY frame_id, address) AS line FROM made
)
SELECT stack_id, DENSE_RANK() OVER (ORDER BY lines, depth) AS alike
FROM (
	SELECT stack_id, group_concat(line, char(10)) AS lines,
		(SELECT MAX(f.depth) FROM stack_frame f
		WHERE f.stack_id = l.stack_id) AS depth
	FROM (SELECT stack_id, line FROM every ORDER BY stack_id, depth) l GROUP BY stack_id);

-- Sites as that page shows them: those that it would show the same way are one row, their figures
-- added up. at_least: more was cleared than bytes says.
CREATE VIEW site_page AS
WITH
site AS (
	SELECT s.*, COALESCE(s.known_clearing = 0, 0) AS at_least, CASE WHEN LENGTH(s.area) > 64
		THEN SUBSTR(s.area, 1, 61) || '...' ELSE s.area END AS area_shown
	FROM sites s
)
SELECT ROW_NUMBER() OVER (ORDER BY w.time_ns DESC, w.bytes DESC, w.first) AS rank, w.*,
	CASE WHEN o.observed_ns > 0 THEN MIN(1.0, w.time_ns / o.observed_ns) ELSE 0.0 END AS share
FROM (
	SELECT s.toll, s.call, s.area_shown AS area, s.at_least, s.allocated_stack, s.touched_stack,
		MIN(s.rank) AS first, SUM(s.time_ns) AS time_ns, SUM(s.bytes) AS bytes,
		SUM(s.count) AS count
	FROM site s LEFT JOIN alike_page a ON a.stack_id = s.allocated_stack
	LEFT JOIN alike_page t ON t.stack_id = s.touched_stack
	GROUP BY s.toll, s.call, s.area_shown, s.at_least, a.alike, t.alike
) w JOIN observed o;

-- Where a sentence would say that a site is ('' where nothing tells): allocated, touched.
CREATE VIEW site_place_short AS
WITH
place AS MATERIALIZED (
	-- lines of Go's runtime alone say nothing of the program
	SELECT p.stack_id, CASE WHEN NOT p.own AND EXISTS (SELECT 1 FROM stack_line l
		WHERE l.stack_id = p.stack_id AND l.depth = 0 AND l.function GLOB 'runtime.*')
		THEN 'Go''s runtime' ELSE COALESCE(p.code, '') END AS code,
		COALESCE(p.caller, p.code, '') AS caller
	FROM (SELECT allocated_stack AS stack_id FROM sites UNION SELECT touched_stack FROM sites) w
	JOIN stack_place p ON p.stack_id = w.stack_id
)
SELECT s.rank, CASE WHEN s.toll = 'map' OR s.call IN ('mmap', 'madvise')
	THEN COALESCE(a.code, '') ELSE COALESCE(a.caller, '') END AS allocated,
	COALESCE(t.code, '') AS touched
FROM sites s LEFT JOIN place a ON a.stack_id = s.allocated_stack
LEFT JOIN place t ON t.stack_id = s.touched_stack;

-- Sites by what they do and where: the toll, the call, the place of the allocation and that of the
-- touch as a sentence would name them. How the code got there is left to the stacks.
CREATE VIEW site_short AS
SELECT ROW_NUMBER() OVER (ORDER BY SUM(s.time_ns) DESC, SUM(s.bytes) DESC, MIN(s.rank)) AS rank,
	s.toll, s.call, s.area, p.allocated, p.touched, SUM(s.time_ns) AS time_ns,
	MIN(1.0, SUM(s.share)) AS share, SUM(s.count) AS count, SUM(s.bytes) AS bytes,
	MAX(COALESCE(s.known_clearing = 0, 0)) AS at_least	-- more was cleared than bytes says
FROM sites s JOIN site_place_short p ON p.rank = s.rank
GROUP BY s.toll, s.call, s.area, p.allocated, p.touched;
