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
SELECT column1 AS name, column2 AS columns
FROM (VALUES ('frame_line', 'frame_id'), ('call_unseen', 'pid, call'),
	('process_scale', 'pid, call'));

-- What each frame is called. usable: 0 is a source line of the program's own code, 1 a name of it,
-- 2 a place in it without a name; 3 to 5 the same of what is installed for all programs
-- (system_code); 6 a name of the language's library (library_code), 7 of the C library, 8 nothing.
-- as_named: a place in a program's file that has no name at all, which is as good as a name:
-- farther out there are only libraries that call it, as an event loop does.
-- Code made at run time has no lines that could be installed for it: its name is as good as a line,
-- but where an interpreter's own frames, with lines, stand beside it. A table of its own, as many
-- views ask for stacks, each of which is a few frames.
CREATE VIEW frame_line AS
SELECT frame_id, function, module, file, line, kind, name, place,
	CASE WHEN library THEN CASE WHEN function = '' THEN 8 WHEN libc THEN 7 ELSE 6 END
	     WHEN function = '' AND base = '' AND (line <= 0 OR file = '') THEN 8
	     ELSE 3 * system + CASE WHEN line > 0 AND file <> '' THEN 0
		WHEN function = '' THEN 2
		WHEN kind IN ('jit', 'javascript', 'java') AND NOT (SELECT EXISTS (SELECT 1
			FROM frame WHERE kind IN ('python', 'ruby', 'php'))) THEN 0
		ELSE 1 END END AS usable,
	function = '' AND stripped AND base <> '' AND base NOT LIKE '%.so%' AND NOT library
		AS as_named,
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
			f.module NOT IN (SELECT module FROM frame WHERE function <> '')
				AS stripped,
			f.frame_id IN (SELECT frame_id FROM library_frame) AS library,
			f.frame_id IN (SELECT frame_id FROM library_frame WHERE libc) AS libc,
			f.frame_id IN (SELECT frame_id FROM system_frame) AS system
		FROM frame f));

-- One line per frame of a stack; of one that is in no file the address is its place. The first of
-- the most usable is what a sentence calls the place (said).
CREATE VIEW stack_line AS
SELECT s.stack_id, s.depth, l.function, l.module, l.file, l.line, l.kind, l.name,
	COALESCE(l.place, PRINTF('0x%x', s.address)) AS place, l.usable,
	l.usable - l.as_named AS preference,
	COALESCE(l.said, PRINTF('0x%x', s.address)) AS said
FROM stack_frame s JOIN frame_line l ON l.frame_id = s.frame_id;

-- What a sentence calls the place of a stack. caller: where depth 0 is the allocator's own
-- function, which says nothing; NULL of a stack without callers. called_at: who calls that place;
-- NULL where no code but a library's does. own: it is the program's own code; where a runtime maps
-- memory on a stack of its own there is none.
CREATE VIEW stack_place AS
SELECT s.stack_id,
	(SELECT l.said FROM stack_line l WHERE l.stack_id = s.stack_id
		ORDER BY l.preference, l.depth LIMIT 1) AS code,
	(SELECT l.said FROM stack_line l WHERE l.stack_id = s.stack_id AND l.depth > 0
		ORDER BY l.preference, l.depth LIMIT 1) AS caller,
	(SELECT l.said FROM stack_line l WHERE l.stack_id = s.stack_id AND l.usable < 6
		AND l.depth > (SELECT i.depth FROM stack_line i WHERE i.stack_id = s.stack_id
			AND i.depth > 0 ORDER BY i.preference, i.depth LIMIT 1)
		ORDER BY l.usable / 3, l.depth LIMIT 1) AS called_at,
	(SELECT MIN(l.usable) FROM stack_line l WHERE l.stack_id = s.stack_id) < 6 AS own
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
			IN (f.allocated_stack, f.touched_stack) AND l.usable < 6)
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

-- How much of that time has a stack that ended in code made at run time, where that is a tenth: it
-- keeps no frame pointers, and no file has rules for it. What lies farther out and is in nothing
-- that is known was read where a frame pointer should have been. java: most of it is Java's, or as
-- much as any other's. One row at most.
CREATE VIEW ended_in_made AS
WITH
ended AS MATERIALIZED (
	SELECT s.stack_id, EXISTS (SELECT 1 FROM process p
			WHERE p.pid = s.pid AND p.executable GLOB '*/java')
		OR EXISTS (SELECT 1 FROM stack_frame k JOIN frame f ON f.frame_id = k.frame_id
			WHERE k.stack_id = s.stack_id AND f.module GLOB '*/libjvm.so') AS java
	FROM stack s
	WHERE s.stopped NOT IN ('', 'depth', 'probe') AND 'jit' = (
		SELECT f.kind FROM stack_frame k JOIN frame f ON f.frame_id = k.frame_id
		WHERE k.stack_id = s.stack_id
			AND (f.kind = 'jit' OR f.function <> '' OR f.module <> '')
		ORDER BY k.depth DESC LIMIT 1)
)
SELECT share, 2 * java_ns >= ended_ns AS java
FROM (
	SELECT SUM(ended_ns) / MAX(SUM(time_ns), 1.0) AS share, SUM(ended_ns) AS ended_ns,
		SUM(java * ended_ns) AS java_ns
	FROM (
		SELECT s.time_ns, COALESCE(a.java, t.java, 0) AS java,
			CASE WHEN COALESCE(a.stack_id, t.stack_id) IS NULL THEN 0.0
				ELSE s.time_ns END AS ended_ns
		FROM sites s LEFT JOIN ended a ON a.stack_id = s.allocated_stack
		LEFT JOIN ended t ON t.stack_id = s.touched_stack
		WHERE s.allocated_stack IN (SELECT stack_id FROM stack)
			OR s.touched_stack IN (SELECT stack_id FROM stack)))
WHERE share >= 0.1;

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
		AND (SELECT MIN(l.usable) FROM stack_line l WHERE l.stack_id = k.stack_id)
			NOT IN (0, 1, 3, 4))
GROUP BY module HAVING SUM(share) >= 0.05
ORDER BY SUM(share) DESC, module LIMIT 1;
