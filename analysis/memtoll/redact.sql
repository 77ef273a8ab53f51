-- SPDX-License-Identifier: GPL-2.0
--
-- redact.sql: a copy of a recording without what is nobody else's business: arguments, names of
-- files, programs, containers and hosts, and addresses. Each has one pseudonym throughout, so that
-- rows can still be told apart and joined. Functions keep their names: they are what it is about.
--
-- Run on a copy with this version's tables, before a view is read (recording_redact.c, opening.py):
-- what the views judge by is kept, so that all figures stay as they are. That a file is libc's or
-- CPython's they know by its name: of such a one the part that tells is kept.

-- Texts, and what is said instead. kind: path, name (of a program or thread), container ...
CREATE TEMP TABLE hidden (
	kind   TEXT NOT NULL,
	was    TEXT NOT NULL,
	number INTEGER,
	said   TEXT,
	PRIMARY KEY (kind, was)
) WITHOUT ROWID;

INSERT OR IGNORE INTO temp.hidden (kind, was)
SELECT 'path', executable FROM process WHERE executable <> ''
UNION SELECT 'path', module FROM allocator
UNION SELECT 'path', module FROM allocator_probe
UNION SELECT 'path', module FROM past_cache
UNION SELECT 'path', module FROM frame WHERE module <> ''
UNION SELECT 'path', file FROM frame WHERE file <> ''
UNION SELECT CASE WHEN area_name LIKE '/%' THEN 'path' ELSE 'name' END, area_name
	FROM (SELECT area_name FROM fault UNION SELECT area_name FROM access
		UNION SELECT area_name FROM sample UNION SELECT area_name FROM page_fill)
	WHERE area_name <> ''
UNION SELECT 'path', path FROM file
UNION SELECT 'path', path FROM swap_device
UNION SELECT 'path', source FROM own_cache WHERE source NOT IN ('command line', 'default')
UNION SELECT 'name', comm FROM process WHERE comm <> ''
UNION SELECT 'name', comm FROM page_drop WHERE comm <> ''
UNION SELECT 'name', comm FROM handler
UNION SELECT 'name', process FROM handler
UNION SELECT 'container', title FROM container
UNION SELECT 'container id', id FROM container
UNION SELECT 'image', image FROM container WHERE image IS NOT NULL
UNION SELECT 'pod', pod FROM container WHERE pod IS NOT NULL
UNION SELECT 'namespace', pod_namespace FROM container WHERE pod_namespace IS NOT NULL;

-- program-1 is who was asked for, and those who only reclaimed memory beside it come last.
UPDATE temp.hidden SET number = r.number FROM (
	SELECT h.kind AS of, h.was AS it,
		ROW_NUMBER() OVER (PARTITION BY h.kind
			ORDER BY p.position IS NULL, p.position, h.was) AS number
	FROM temp.hidden h LEFT JOIN (
		SELECT 'name' AS kind, comm, MIN(position) AS position
		FROM (SELECT comm, ROW_NUMBER() OVER (
				ORDER BY role <> 'target', start_ns, pid) AS position
			FROM process)
		GROUP BY comm) p ON p.kind = h.kind AND p.comm = h.was) r
WHERE kind = r.of AND was = r.it;

UPDATE temp.hidden SET said = CASE kind WHEN 'name' THEN 'program-' || number
	WHEN 'container id' THEN 'container-id-' || number ELSE kind || '-' || number END;

-- Which kind of source it is may be seen.
CREATE TEMP TABLE suffix (text TEXT PRIMARY KEY);
INSERT INTO temp.suffix VALUES ('.c'), ('.h'), ('.cc'), ('.cpp'), ('.cxx'), ('.hpp'), ('.py'),
	('.rs'), ('.go'), ('.js'), ('.java'), ('.so');

-- What is kept of a library's path, of library_code's pattern: all but what stood for anything. Of
-- what is installed for all programs: that it is. Those of the lowest position come first.
CREATE TEMP TABLE known (
	position INTEGER NOT NULL,
	pattern  TEXT NOT NULL,
	besides  TEXT NOT NULL,
	kept     TEXT NOT NULL,
	whole    INTEGER NOT NULL	-- nothing is to follow
);
INSERT INTO temp.known
SELECT position, pattern, besides, REPLACE(REPLACE(REPLACE(REPLACE(pattern, '[23]', '3'),
	'[5.]', '5'), '[[]', '['), '*', ''), position = 1
FROM (SELECT CASE what WHEN 'module' THEN 1 ELSE 2 END AS position, pattern, besides
	FROM library_code WHERE what <> 'function'
	-- the advice on code without names
	UNION ALL VALUES (1, '*/node', ''), (1, '*/java', '')
	UNION ALL SELECT CASE what WHEN 'package' THEN 5 WHEN 'script' THEN 8 ELSE 4 END,
		pattern, besides FROM system_code
	-- whose own it is by where the program lies
	UNION ALL VALUES (6, '/usr/local/bin/*', ''), (7, '/usr/local/*', ''));

-- Go's library: by the files of its runtime, or of its packages, as library_frame has it.
INSERT INTO temp.known
SELECT DISTINCT 3, SUBSTR(file, 1, INSTR(file, '/src/runtime/') + 4) || '*', '',
	'/usr/local/go/src/', 0
FROM frame WHERE function GLOB 'runtime.*' AND file GLOB '/*/src/runtime/*'
UNION ALL
SELECT 3, d.column1 || p.name || '/*' || s.column1, '', '/usr/local/go/src/', 0
FROM go_package p JOIN (VALUES (''), ('./')) d JOIN (VALUES ('.go'), ('.s')) s;

CREATE TEMP TABLE of_code (path TEXT PRIMARY KEY);
INSERT INTO temp.of_code SELECT module FROM frame UNION SELECT file FROM frame
UNION SELECT executable FROM process WHERE executable IS NOT NULL;

UPDATE temp.hidden SET said = COALESCE((
	SELECT CASE WHEN pattern LIKE '*%' THEN '/' || number ELSE '' END || kept
		|| CASE WHEN whole THEN '' ELSE
			CASE WHEN kept GLOB '*[/: ]' THEN '' ELSE '/' END || 'file-' || number
				|| COALESCE((SELECT text FROM temp.suffix
					WHERE was LIKE '%' || text), '')
		END
	FROM temp.known
	WHERE was GLOB pattern AND NOT was GLOB besides
		AND (position < 3 OR was IN (SELECT path FROM temp.of_code))
	ORDER BY position, pattern LIMIT 1),
	-- shared memory without a file, which is told from files
	CASE WHEN was IN ('/SYSV00000000', '/SYSV00000000 (deleted)') THEN '/SYSV00000000'
	     WHEN was GLOB '/SYSV[0-9a-f]*' THEN PRINTF('/SYSV%08x', number)
	     WHEN was IN ('/dev/zero', '/dev/zero (deleted)') THEN '/dev/zero'
	     WHEN was GLOB '/memfd:*' THEN '/memfd:file-' || number
	     WHEN was IN ('[heap]', '[stack]', '[vdso]', '[vsyscall]', '[uprobes]') THEN was
	     ELSE CASE WHEN was LIKE '/%' THEN '/' ELSE '' END || 'file-' || number
		|| COALESCE((SELECT text FROM temp.suffix WHERE was LIKE '%' || text), '') END)
	|| CASE WHEN was LIKE '% (deleted)' THEN ' (deleted)' ELSE '' END
WHERE kind = 'path';

-- Paths of cgroups part by part: of two the one may lie in the other.
CREATE TEMP TABLE group_path (was TEXT PRIMARY KEY, said TEXT);
INSERT OR IGNORE INTO temp.group_path (was)
SELECT path FROM memory_cgroup UNION SELECT limit_path FROM memory_cgroup WHERE limit_path <> ''
UNION SELECT path FROM memory_cgroup_counter
UNION SELECT memory_cgroup FROM process WHERE memory_cgroup <> ''
UNION SELECT memory_cgroup FROM page_drop WHERE memory_cgroup <> '';

CREATE TEMP TABLE group_part (was TEXT, position INTEGER, part TEXT, PRIMARY KEY (was, position));
INSERT INTO temp.group_part
WITH RECURSIVE piece(was, position, part, rest) AS (
	SELECT was, 0, '', LTRIM(was, '/') || '/' FROM temp.group_path
	UNION ALL
	SELECT was, position + 1, SUBSTR(rest, 1, INSTR(rest, '/') - 1),
		SUBSTR(rest, INSTR(rest, '/') + 1)
	FROM piece WHERE rest <> '' AND position < 64
)
SELECT was, position, part FROM piece WHERE part <> '';

UPDATE temp.group_path SET said = CASE WHEN was LIKE '/%' THEN '/' ELSE '' END || COALESCE((
	SELECT group_concat('group-' || number, '/') FROM (
		SELECT n.number FROM temp.group_part p JOIN (
			SELECT part, ROW_NUMBER() OVER (ORDER BY part) AS number
			FROM (SELECT DISTINCT part FROM temp.group_part)) n ON n.part = p.part
		WHERE p.was = group_path.was ORDER BY p.position)), '');

-- In what is redacted already pseudonyms stay as they are: with others, row by row, one would meet
-- that of a row which still has its old one. They differ from those made here in digits alone.
CREATE TEMP TABLE bare (text TEXT PRIMARY KEY, bare TEXT);
INSERT OR IGNORE INTO temp.bare
WITH RECURSIVE stripped(text, bare, digit) AS (
	SELECT text, text, 0
	FROM (SELECT was AS text FROM temp.hidden UNION SELECT said FROM temp.hidden
		UNION SELECT was FROM temp.group_path UNION SELECT said FROM temp.group_path)
	WHERE EXISTS (SELECT 1 FROM meta WHERE key = 'redacted')
	UNION ALL
	SELECT text, REPLACE(bare, digit, ''), digit + 1 FROM stripped WHERE digit < 10
)
SELECT text, bare FROM stripped WHERE digit = 10;
UPDATE temp.hidden SET said = was WHERE (SELECT bare FROM temp.bare WHERE text = was)
	= (SELECT bare FROM temp.bare WHERE text = said);
UPDATE temp.group_path SET said = was WHERE (SELECT bare FROM temp.bare WHERE text = was)
	= (SELECT bare FROM temp.bare WHERE text = said);

-- Here they are put in.
-- Of a program of a storm neither command nor file is known: program_unseen tells it by that.
UPDATE process SET command = CASE command WHEN '' THEN '' ELSE COALESCE((SELECT said
		FROM temp.hidden WHERE kind = 'name' AND was = comm), 'program') || ' ...' END,
	executable = (SELECT said FROM temp.hidden WHERE kind = 'path' AND was = executable),
	comm = (SELECT said FROM temp.hidden WHERE kind = 'name' AND was = comm),
	memory_cgroup = (SELECT said FROM temp.group_path WHERE was = memory_cgroup),
	container = (SELECT said FROM temp.hidden WHERE kind = 'container id' AND was = container);
UPDATE process SET executable = '' WHERE executable IS NULL;
UPDATE process SET comm = '' WHERE comm IS NULL;

-- Settings of numbers are what is advised on; others name files.
UPDATE allocator SET
	module = (SELECT said FROM temp.hidden WHERE kind = 'path' AND was = module),
	tunables = CASE WHEN tunables GLOB '*[^A-Za-z0-9_.=:, -]*' OR tunables LIKE '%prefix%'
		OR tunables NOT LIKE '%=%' THEN '' ELSE tunables END;
UPDATE allocator_probe SET
	module = (SELECT said FROM temp.hidden WHERE kind = 'path' AND was = module);
UPDATE past_cache SET
	module = (SELECT said FROM temp.hidden WHERE kind = 'path' AND was = module);

-- Names of code made at run time tell its file, after a blank; others do where code has no name.
UPDATE frame SET function = CASE
	WHEN INSTR(SUBSTR(function, 1, INSTR(function, '/')), ' ') THEN
		SUBSTR(function, 1, INSTR(function, ' ')) || 'function-' || frame_id
	ELSE 'function-' || frame_id END
WHERE kind = 'jit' AND INSTR(function, '/') OR INSTR(function, ' /') OR function LIKE '/%'
	OR INSTR(function, '(/');
UPDATE frame SET build_id = '',
	module = COALESCE((SELECT said FROM temp.hidden WHERE kind = 'path' AND was = module), ''),
	file = COALESCE((SELECT said FROM temp.hidden WHERE kind = 'path' AND was = file), '');

UPDATE fault SET area_name = (SELECT said FROM temp.hidden WHERE was = area_name
	AND kind = CASE WHEN area_name LIKE '/%' THEN 'path' ELSE 'name' END) WHERE area_name <> '';
UPDATE access SET area_name = (SELECT said FROM temp.hidden WHERE was = area_name
	AND kind = CASE WHEN area_name LIKE '/%' THEN 'path' ELSE 'name' END) WHERE area_name <> '';
UPDATE sample SET area_name = (SELECT said FROM temp.hidden WHERE was = area_name
	AND kind = CASE WHEN area_name LIKE '/%' THEN 'path' ELSE 'name' END) WHERE area_name <> '';
UPDATE page_fill SET area_name = (SELECT said FROM temp.hidden WHERE was = area_name
	AND kind = CASE WHEN area_name LIKE '/%' THEN 'path' ELSE 'name' END) WHERE area_name <> '';
UPDATE file SET path = (SELECT said FROM temp.hidden WHERE kind = 'path' AND was = path);
UPDATE swap_device SET path = (SELECT said FROM temp.hidden WHERE kind = 'path' AND was = path);
UPDATE own_cache SET source = (SELECT said FROM temp.hidden WHERE kind = 'path' AND was = source)
WHERE source NOT IN ('command line', 'default');
UPDATE page_drop SET comm = (SELECT said FROM temp.hidden WHERE kind = 'name' AND was = comm)
WHERE comm <> '';
UPDATE page_drop SET memory_cgroup = (SELECT said FROM temp.group_path WHERE was = memory_cgroup)
WHERE memory_cgroup <> '';
UPDATE handler SET comm = (SELECT said FROM temp.hidden WHERE kind = 'name' AND was = comm),
	process = (SELECT said FROM temp.hidden WHERE kind = 'name' AND was = process);
UPDATE memory_cgroup SET path = (SELECT said FROM temp.group_path WHERE was = path),
	limit_path = (SELECT said FROM temp.group_path WHERE was = limit_path);
UPDATE memory_cgroup_counter SET path = (SELECT said FROM temp.group_path WHERE was = path);

UPDATE container SET
	name = CASE WHEN name IS NOT NULL
		THEN (SELECT said FROM temp.hidden WHERE kind = 'container' AND was = title) END,
	image = (SELECT said FROM temp.hidden WHERE kind = 'image' AND was = image),
	pod = (SELECT said FROM temp.hidden WHERE kind = 'pod' AND was = pod),
	pod_namespace = (SELECT said FROM temp.hidden
		WHERE kind = 'namespace' AND was = pod_namespace),
	pod_uid = NULL,
	id = (SELECT said FROM temp.hidden WHERE kind = 'container id' AND was = id),
	title = (SELECT said FROM temp.hidden WHERE kind = 'container' AND was = title);

-- What somebody has noted is told apart by its time.
UPDATE mark SET note = 'note';

-- Of what is said of the whole nothing stays but what is known to tell nothing.
DELETE FROM meta WHERE key NOT IN ('tool_version', 'kernel', 'machine', 'overhead_limit', 'probes',
		'end_reason', 'complete', 'uprobe_mechanism', 'target_command', 'host', 'cgroup',
		'container', 'command_line')
	AND value GLOB '*[^0-9.]*';
UPDATE meta SET value = CASE key WHEN 'host' THEN 'host' WHEN 'cgroup' THEN '/group'
	WHEN 'container' THEN COALESCE((SELECT said FROM temp.hidden
		WHERE kind = 'container' AND was = value), 'container')
	WHEN 'command_line' THEN 'memtoll ...'
	WHEN 'target_command' THEN COALESCE((SELECT 'container ' || said FROM temp.hidden
		WHERE kind = 'container' AND was = SUBSTR(value, 11) AND value LIKE 'container %'),
		(SELECT command FROM process
		ORDER BY role <> 'target', start_ns, pid LIMIT 1), 'program ...')
	ELSE 'error' END
WHERE key IN ('host', 'cgroup', 'container', 'command_line', 'target_command')
	OR (key = 'end_reason' AND value LIKE 'error%');
INSERT OR REPLACE INTO meta VALUES ('redacted', '1');

-- Code that is in no file goes by its address: by its number from here on.
CREATE TEMP TABLE place (address INTEGER PRIMARY KEY, number INTEGER);
INSERT INTO temp.place
SELECT address, ROW_NUMBER() OVER (ORDER BY address)
FROM (SELECT DISTINCT address FROM stack_frame);
UPDATE stack_frame SET address = (SELECT number FROM temp.place p
	WHERE p.address = stack_frame.address);

-- Memory: how far pages are from each other stays, as long as it is less than a gigabyte. What lies
-- farther apart (the heap, libraries, the stack) was placed at random; now it is a terabyte.
CREATE TEMP TABLE page (
	pid  INTEGER,
	page INTEGER,
	now  INTEGER,
	PRIMARY KEY (pid, page)
) WITHOUT ROWID;
INSERT INTO temp.page
WITH gap AS (
	SELECT pid, page, COALESCE(page - LAG(page)
		OVER (PARTITION BY pid ORDER BY page) > 262144, 1) AS is_first
	FROM (SELECT DISTINCT pid, address >> 12 AS page FROM fault_run)
),
part AS (
	SELECT pid, page, SUM(is_first) OVER (PARTITION BY pid ORDER BY page) AS part FROM gap
)
SELECT pid, page, (part << 28) + page - MIN(page) OVER (PARTITION BY pid, part) FROM part;
UPDATE fault_run SET address = (SELECT now << 12 FROM temp.page p WHERE p.pid = fault_run.pid
	AND p.page = fault_run.address >> 12);
UPDATE longest_wait SET address = 0;

DROP TABLE temp.page;
DROP TABLE temp.place;
DROP TABLE temp.bare;
DROP TABLE temp.group_part;
DROP TABLE temp.group_path;
DROP TABLE temp.known;
DROP TABLE temp.suffix;
DROP TABLE temp.hidden;
