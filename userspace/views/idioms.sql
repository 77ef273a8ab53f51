-- SPDX-License-Identifier: GPL-2.0
--
-- idioms.sql: how a language itself says what an advice asks for: one sentence behind it. Follows
-- figures.sql and giveback.sql; verdict.sql appends it.
--
-- To add one, add a row to `idiom`. Of those that fit, the one with the lowest position is said.

CREATE TABLE idiom (
	position INTEGER PRIMARY KEY,
	code     TEXT NOT NULL,	-- of the advice, like a pattern (GLOB)
	language TEXT NOT NULL,	-- as library_code's reasons begin
	function TEXT NOT NULL DEFAULT '',	-- a frame has such a function (GLOB); '': any
	text     TEXT NOT NULL
);

INSERT INTO idiom (position, code, language, function, text) VALUES
(1, '*storm', 'Go', 'runtime/debug.FreeOSMemory',
'In Go leave debug.FreeOSMemory() out: GOMEMLIMIT bounds what the runtime keeps.'),
(2, '*storm', 'Go', '',
'In Go a higher GOGC, or GOGC=off with a GOMEMLIMIT, keeps it; GODEBUG=madvdontneed=0 uses
	MADV_FREE.'),
(3, '*app*', 'Go', '',
'In Go make() clears what it returns: keep the slice and cut it (buf = buf[:0], then append), or
	take it from a sync.Pool.'),
(4, '*', 'Python', 'sock_recv*',
'In Python socket.recv_into() and a memoryview read into a bytearray that is kept.'),
(5, '*', 'Python', '_ssl__SSLSocket_read*',
'In Python SSLSocket.recv_into() and a memoryview read into a bytearray that is kept.'),
(6, '*', 'Python', '_io_FileIO_read*',
'In Python readinto() reads into a bytearray that is kept.'),
(7, 'first-touch', 'Python', '*[Uu][Ff]unc_*',
'In NumPy out= writes into an array that is kept.'),
(8, '*storm', 'Python', '*[Uu][Ff]unc_*',
'In NumPy out= writes into an array that is kept.'),
(9, 'calloc-*', 'Python', 'PyArray_Zeros*',
'In NumPy numpy.empty() does not clear, and array.fill(0) clears one that is kept.'),
(10, 'calloc-*', 'JavaScript', '',
'In Node.js Buffer.allocUnsafe() does not clear; a Buffer that is kept is read into again
	(fs.readSync(fd, buffer)).'),
(11, 'memset-app', 'JavaScript', '',
'In Node.js Buffer.allocUnsafe() does not clear; a Buffer that is kept is read into again
	(fs.readSync(fd, buffer)).'),
(12, '*app*', 'Java', '',
'In Java an array or a ByteBuffer is cleared when it is made: keep it, or a pool of them.'),
(13, '*storm', 'Java', '',
'In Java -Xms as large as -Xmx keeps the heap.'),
(14, 'calloc-*', 'Rust', '',
'In Rust Vec::with_capacity() does not clear, and vec![0; n] does; clear() keeps a Vec''s memory.'),
(15, 'memset-app', 'Rust', '',
'In Rust Vec::with_capacity() does not clear, and resize() and vec![0; n] do; clear() keeps a Vec''s
	memory.'),
(16, 'cow', 'Ruby', '',
'In Ruby the collector writes to each object until it is an old one: Process.warmup before the fork
	(3.3 and later), or GC.compact (2.7 and later), spares the children that.'),
(17, '*storm', 'Ruby', '',
'In Ruby io.read(n, buffer) and io.readpartial(n, buffer) read into a String that is kept.'),
(18, 'own-storm', 'PHP', '',
'In PHP each block of 2 MiB or more is mapped and unmapped by itself (ZendMM''s huge blocks): what
	is handled in pieces of 1 MiB is taken from memory that ZendMM keeps.'),
(19, 'purge-storm', 'Python', '*je_arrow_*',
'Arrow has other allocators, too: ARROW_DEFAULT_MEMORY_POOL=mimalloc is one that keeps more.'),
(20, '*storm', 'JavaScript', '',
'In Node.js a Buffer or an array that is kept and filled again stays (fs.readSync(fd, buffer)): one
	that nobody has goes with the next collection, and if it is large so do its pages.');

-- What a collector looks at is all that is alive, however long the program has not used it. By what
-- its threads run, and stops of the program are for: its marking has a hundred names.
INSERT INTO idiom (position, code, language, function, text)
SELECT 20 + ROW_NUMBER() OVER (), 'swap-in', column1, column2,
	'In ' || column1 || ' the collector touches them, which looks at all that is alive, however'
	|| ' long nobody has used it: it stays in memory with ' || column3
	|| ' below what it may keep, or where less stays alive.'
FROM (VALUES ('Java', '*GangWorker::*', '-Xmx'), ('Java', 'WorkerThread::run*', '-Xmx'),
	('Java', 'ConcurrentGCThread::run*', '-Xmx'),
	('Java', 'VM_*Collect*::doit*', '-Xmx'), ('Java', 'VM_Parallel*::doit*', '-Xmx'),
	('Go', 'runtime.gcDrain*', 'GOMEMLIMIT'),
	('JavaScript', 'v8::internal::*Mark*', '--max-old-space-size'));

-- The stacks that an advice is about: of the site with the most time of its toll, or of the storm.
CREATE VIEW advised_stack AS
SELECT DISTINCT code, stack_id FROM (
	SELECT a.code, CASE s.end WHEN 1 THEN t.allocated_stack ELSE t.touched_stack END AS stack_id
	FROM (VALUES ('calloc-*', 'zero.libc'), ('memset-app', 'zero.app'),
		('app-double-clear', 'zero.app'), ('first-touch', 'zero.kernel'),
		('cow', 'cow'), ('swap-in', 'swap.in')) c
	JOIN advice a ON a.code GLOB c.column1 JOIN top_site t ON t.toll = c.column2
	CROSS JOIN (SELECT 1 AS end UNION ALL SELECT 2) s
	UNION ALL
	SELECT a.code, CASE s.end WHEN 1 THEN g.gave_stack ELSE g.got_stack END
	FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY allocator ORDER BY rank) AS number
		FROM giveback_site) g
	JOIN advice a ON a.code = CASE g.allocator WHEN '' THEN 'own-storm'
		WHEN 'jemalloc' THEN 'purge-storm' ELSE 'allocator-storm' END
		OR (g.allocator = 'glibc' AND a.code IN ('map-storm', 'heap-storm', 'trim-storm'))
	CROSS JOIN (SELECT 1 AS end UNION ALL SELECT 2) s WHERE g.number = 1)
WHERE stack_id <> 0;

-- The language of a stack: of its library's code, or of the program's own by its files.
CREATE VIEW advised_language AS
SELECT DISTINCT s.code, CASE
	WHEN l.kind = 'python' THEN 'Python' WHEN l.kind = 'ruby' THEN 'Ruby'
	WHEN l.kind = 'php' THEN 'PHP' WHEN l.kind = 'javascript' THEN 'JavaScript'
	WHEN l.kind = 'java' THEN 'Java'
	WHEN l.file GLOB '*.go' THEN 'Go'
	WHEN l.file GLOB '*.rs' THEN 'Rust'
	ELSE (SELECT i.language FROM library_code c JOIN idiom i
		ON i.language = SUBSTR(c.reason, 1, INSTR(c.reason, ':') - 1)
		WHERE c.what = 'module' AND l.module GLOB c.pattern LIMIT 1) END AS language
FROM advised_stack s JOIN stack_line l ON l.stack_id = s.stack_id;

CREATE VIEW advice_idiom AS
SELECT code, TRIM(REPLACE(REPLACE(text, char(9), ''), char(10), ' ')) AS text FROM (
	SELECT l.code, i.text, ROW_NUMBER() OVER (PARTITION BY l.code ORDER BY i.position) AS number
	FROM advised_language l JOIN idiom i ON i.language = l.language AND l.code GLOB i.code
	WHERE i.function = '' OR EXISTS (SELECT 1 FROM advised_stack s JOIN stack_line f
		ON f.stack_id = s.stack_id WHERE s.code = l.code AND f.function GLOB i.function))
WHERE number = 1;
