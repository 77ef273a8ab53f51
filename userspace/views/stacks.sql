-- SPDX-License-Identifier: GPL-2.0
--
-- stacks.sql: stacks line by line, what they are called and shown as, and how whole they are.
-- Follows library_code.sql.

-- Views that stay views where the others are made tables (report.c, analysis/memtoll/views.py):
-- they are looked up by stack, which the tables below them can do by their keys, take an argument,
-- have a row for each row of a fact table, or no report asks for them (counts.sql).
CREATE VIEW kept_view AS
SELECT column1 AS name
FROM (VALUES ('kept_view'), ('stack_line'), ('stack_place'), ('stack_shown'), ('frames_json'),
	('square_root'), ('map_net'), ('exact_count'), ('count_doubt'),
	('place_doubt'), ('stack_site'));

-- ... and the columns that tables are looked up by: each gets an index.
CREATE VIEW indexed_view AS
SELECT column1 AS name, column2 AS columns FROM (VALUES ('frame_line', 'frame_id'));

-- What each frame is called. usable: 0 is a source line of the program's own code, 1 a name of it,
-- 2 a place in it without a name; then names of the language's library (library_code), then of the
-- C library. A table of its own, as many views ask for stacks, each of which is a few frames.
CREATE VIEW frame_line AS
SELECT frame_id, function, module, file, line, kind, name, place,
	CASE WHEN NOT library AND line > 0 AND file <> '' THEN 0
	     WHEN NOT library AND function <> '' THEN 1
	     WHEN NOT library AND base <> '' THEN 2
	     WHEN function = '' THEN 5 WHEN libc THEN 4 ELSE 3 END AS usable,
	CASE WHEN function = '' THEN place
	     WHEN line > 0 AND file <> '' THEN place || ' (' || function || ')'
	     WHEN base <> '' THEN function || ' (' || base || ')'
	     ELSE function END AS said
FROM (
	SELECT *, CASE WHEN function <> '' THEN function ELSE '?' END AS name,
		CASE WHEN line > 0 AND file <> ''
			THEN SUBSTR(file_end, 1 + LENGTH(RTRIM(file_end,
				REPLACE(file_end, '/', ''))))
				|| ':' || line
		     WHEN base <> '' AND module_offset > 0
			THEN base || PRINTF('+0x%x', module_offset)
		     WHEN base <> '' THEN base END AS place
	FROM (
		SELECT f.frame_id, f.function, f.module, f.file, f.line, f.kind, f.module_offset,
			-- what lies last in a path has 255 bytes at most, and a text of the file's
			-- any number
			SUBSTR(f.file, -256) AS file_end,
			-- RTRIM takes off all that is no slash: the directory stays
			SUBSTR(SUBSTR(f.module, -256), 1 + LENGTH(RTRIM(SUBSTR(f.module, -256),
				REPLACE(SUBSTR(f.module, -256), '/', '')))) AS base,
			f.frame_id IN (SELECT frame_id FROM library_frame) AS library,
			f.frame_id IN (SELECT frame_id FROM library_frame WHERE libc) AS libc
		FROM frame f));

-- One line per frame of a stack; of one that is in no file the address is its place. The first of
-- the most usable is what a sentence calls the place (said).
CREATE VIEW stack_line AS
SELECT s.stack_id, s.depth, l.function, l.module, l.file, l.line, l.kind, l.name,
	COALESCE(l.place, PRINTF('0x%x', s.address)) AS place, l.usable,
	COALESCE(l.said, PRINTF('0x%x', s.address)) AS said
FROM stack_frame s JOIN frame_line l ON l.frame_id = s.frame_id;

-- What a sentence calls the place of a stack. caller: where depth 0 is the allocator's own
-- function, which says nothing; NULL of a stack without callers. own: it is the program's own
-- code; where a runtime maps memory on a stack of its own there is none.
CREATE VIEW stack_place AS
SELECT s.stack_id,
	(SELECT l.said FROM stack_line l WHERE l.stack_id = s.stack_id
		ORDER BY l.usable, l.depth LIMIT 1) AS code,
	(SELECT l.said FROM stack_line l WHERE l.stack_id = s.stack_id AND l.depth > 0
		ORDER BY l.usable, l.depth LIMIT 1) AS caller,
	(SELECT MIN(l.usable) FROM stack_line l WHERE l.stack_id = s.stack_id) < 3 AS own
FROM stack s;

-- The lines of a stack that a report in text has room for, cut to its columns.
CREATE VIEW stack_shown AS
SELECT stack_id, depth,
	CASE WHEN LENGTH(name) > 38 THEN SUBSTR(name, 1, 35) || '...' ELSE name END AS name,
	CASE WHEN LENGTH(place) > 24 THEN SUBSTR(place, 1, 21) || '...' ELSE place END AS place
FROM stack_line WHERE depth < 6;

-- Stacks through code that is in no file, as far as is known, and that no perf map has named.
CREATE VIEW nameless_stack AS
SELECT DISTINCT stack_id FROM stack_frame
WHERE frame_id IN (SELECT frame_id FROM frame WHERE function = '' AND module = '');

-- How much of the time has such stacks, where that is a tenth; unsaid: of it, where no other code
-- of the program's own is in the stack, so that the place is unknown. unwatched: it may be of
-- files, as mapping calls were not traced. One row at most.
CREATE VIEW fileless AS
SELECT share, unsaid, EXISTS (SELECT 1 FROM not_captured WHERE toll = 'map') AS unwatched
FROM (
	SELECT TOTAL(time_ns) / MAX(all_ns, 1.0) AS share,
		TOTAL(CASE WHEN NOT EXISTS (SELECT 1 FROM stack_line l WHERE l.stack_id
			IN (f.allocated_stack, f.touched_stack) AND l.usable < 3)
			THEN time_ns END) / MAX(all_ns, 1.0) AS unsaid
	FROM (
		SELECT allocated_stack, touched_stack, time_ns,
			(SELECT SUM(time_ns) FROM sites) AS all_ns
		FROM sites WHERE allocated_stack IN (SELECT stack_id FROM nameless_stack)
			OR touched_stack IN (SELECT stack_id FROM nameless_stack)) f)
WHERE share >= 0.1;

-- Of the time of the sites that have a stack: how much has its stacks whole (stopped ''), and what
-- ended the others. A site with two stacks is whole where both are.
CREATE VIEW stack_quality AS
SELECT stopped, time_ns, CASE WHEN SUM(time_ns) OVER () > 0
	THEN time_ns / SUM(time_ns) OVER () ELSE 0.0 END AS share
FROM (
	SELECT COALESCE(NULLIF(a.stopped, ''), t.stopped, '') AS stopped, SUM(s.time_ns) AS time_ns
	FROM sites s LEFT JOIN stack a ON a.stack_id = s.allocated_stack
	LEFT JOIN stack t ON t.stack_id = s.touched_stack
	WHERE a.stack_id IS NOT NULL OR t.stack_id IS NOT NULL
	GROUP BY 1);

-- The file without debug symbols that the code of most time is in: its places are addresses. Frames
-- of the first few, as further ones are in no sentence, and only where no code of the stack's own
-- has a name: that is what a sentence calls the place. One row at most.
CREATE VIEW nameless AS
SELECT module, MAX(build_id) AS build_id, MIN(1.0, SUM(share)) AS share,
	SUBSTR(module, 1 + LENGTH(RTRIM(module, REPLACE(module, '/', '')))) AS base
FROM (
	SELECT DISTINCT s.rank, s.share, f.module, f.build_id
	FROM sites s CROSS JOIN stack_frame k ON k.stack_id IN (s.allocated_stack, s.touched_stack)
		AND k.depth < 4
	CROSS JOIN frame f ON f.frame_id = k.frame_id
	WHERE s.share >= 0.001 AND f.function = '' AND f.kind = 'native' AND f.module LIKE '/%'
		AND NOT EXISTS (SELECT 1 FROM stack_line l WHERE l.stack_id = k.stack_id
			AND l.usable < 2))
GROUP BY module HAVING SUM(share) >= 0.05
ORDER BY SUM(share) DESC, module LIMIT 1;
