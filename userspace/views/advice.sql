-- SPDX-License-Identifier: GPL-2.0
--
-- advice.sql: the advice as data. Report, notebook and `memtoll explain` all read these two tables,
-- so that what is said and what is documented cannot differ. Follows figures.sql; verdict.sql
-- decides from them what is said of a recording (views advice_state and finding).
--
-- To add a finding, add one row to `advice` and one or more to `advice_text`. No view need be
-- touched.
--
-- * Expressions (condition, gain, process) are SQL over the one row of view `weighed` (below: all
--   columns of views measure and giveback_weight, and a few more); they may also ask any view that
--   comes before this file: (SELECT ... FROM my_view). NULL is false. A quote is doubled, as
--   everywhere in SQL.
-- * Templates (text, evidence, cost, try) have {names} of table advice_figure in them
--   (figures.sql). A new one is a row more in it, beside the finding: a name, a kind and such an
--   expression. Line breaks and tabs in a template are blanks; in explain, empty lines part
--   paragraphs.
-- * Versions are major * 1000 + minor: glibc 2.26 is 2026. 0: no limit. before: the first that is
--   out. An allocator or version that is not known is never valid where one is demanded.
-- * Opposite situations: name what a part turns in `change` ('up mmap_threshold'): of two findings
--   that turn the same setting opposite ways only the one with the larger gain is given. What is
--   only said aside (aside) is left out itself, and never keeps another finding from being given.
--
-- test_views_advice.py evaluates every expression and fills every template.

CREATE TABLE advice (
	position  INTEGER PRIMARY KEY,	-- order among equal gains, and of `memtoll explain`
	code      TEXT NOT NULL UNIQUE,	-- kebab-case; stable: other tools match it
	title     TEXT NOT NULL,	-- a line without figures
	allocator TEXT NOT NULL DEFAULT '',	-- kind (table allocator) it is valid for; '': any
	since     INTEGER NOT NULL DEFAULT 0,	-- version of that allocator
	before    INTEGER NOT NULL DEFAULT 0,
	process   TEXT NOT NULL DEFAULT 'NULL',	-- expression: pid whose allocator decides; NULL:
						-- all
	condition TEXT NOT NULL,	-- expression: is this the situation?
	gain      TEXT NOT NULL,	-- expression: share of observed time that it can save at
					-- most
	bound     REAL NOT NULL DEFAULT 0.1,	-- given only where gain is above
	evidence  TEXT NOT NULL,	-- template: the counts behind it
	cost      TEXT NOT NULL,	-- template: what it costs if it is wrong
	saves     TEXT NOT NULL DEFAULT '',	-- template: what it saves, where that is not gain
	explain   TEXT NOT NULL		-- the long form, without figures; paragraphs
);

-- What is said, in parts joined by a blank. Of the choices of a part the first is said whose
-- condition holds and which is valid for the allocator; none: nothing.
CREATE TABLE advice_text (
	code      TEXT NOT NULL,
	part      INTEGER NOT NULL,
	choice    INTEGER NOT NULL,
	allocator TEXT NOT NULL DEFAULT '',
	since     INTEGER NOT NULL DEFAULT 0,
	before    INTEGER NOT NULL DEFAULT 0,
	condition TEXT NOT NULL DEFAULT '1',
	text      TEXT NOT NULL,	-- template
	change    TEXT NOT NULL DEFAULT '',	-- 'up mmap_threshold,up trim_threshold'
	try       TEXT NOT NULL DEFAULT '',	-- template: options of `memtoll compare` that prove
						-- it
	aside     INTEGER NOT NULL DEFAULT 0,	-- 1: said aside; opposed, it is left out alone
	PRIMARY KEY (code, part, choice)
) WITHOUT ROWID;

-- What expressions are over: one row.
CREATE VIEW weighed AS
SELECT m.*,
	MAX(m.observed_ns, 1.0) AS base_ns,
	m.zeroing_share > 0.2 AS zeroing_matters, m.swap_share > 0.2 AS swap_matters,
	m.cow_share > 0.2 AS cow_matters, m.file_share - m.shared_share > 0.2 AS file_matters,
	m.shared_share > 0.2 AS shared_matters,
	m.allocator_share > 0.2 AS allocator_matters, m.mapping_share > 0.2 AS mapping_matters,
	m.userfault_share > 0.2 AS userfault_matters,
	20 * m.swap_bytes < m.pushed_bytes AS hardly_back,
	COALESCE(m.kernel_freed >= 2 AND 2 * m.kernel_freed >= m.kernel_made, 0) AS kernel_churns,
	m.kernel_call <> '' AS kernel_followed,
	EXISTS (SELECT 1 FROM not_captured WHERE toll = 'zero.libc') AS alloc_unprobed,
	-- of a stack, the process that it was first seen in
	(SELECT pid FROM stack WHERE stack_id = m.kernel_stack) AS kernel_pid,
	(SELECT pid FROM stack WHERE stack_id = m.mapper_stack) AS mapper_pid,
	-- settings of glibc would keep what the kernel clears, and nothing else says so
	m.kernel_freed >= 2 AND 2 * m.kernel_freed >= m.kernel_made AND m.churn_mapped >= 0.5
		AND NOT g.glibc_storm AND (SELECT pid FROM stack WHERE stack_id = m.kernel_stack)
			NOT IN (SELECT pid FROM glibc_pinned) AS churn_keeps,
	(SELECT pid FROM stack WHERE stack_id = m.alloc_stack) AS alloc_pid, g.*
FROM measure m JOIN giveback_weight g;

-- The allocator that a process really calls, of those it maps: one that is preloaded, which takes
-- all calls (libc's were made by another program before it, as by env), else the one with the most
-- calls, where there are calls. number: its version, major * 1000 + minor; 0: unknown.
CREATE VIEW allocator_used AS
WITH
counted AS (SELECT pid, known_clearing AS glibc, SUM(calls) AS calls FROM call GROUP BY 1, 2),
mapped AS (
	SELECT pid, module, kind, version, kind = 'glibc' AS glibc, linkage = 'preloaded' AS first
	FROM allocator
	UNION ALL SELECT c.pid, '', 'glibc', '', 1, 0 FROM counted c	-- only its rule is known
	WHERE c.glibc AND NOT EXISTS (SELECT 1 FROM allocator a WHERE a.pid = c.pid
		AND a.kind = 'glibc')
)
SELECT pid, module, kind, version, number FROM (
	SELECT m.pid, m.module, m.kind, m.version,
		CAST(m.version AS INTEGER) * 1000 + CASE WHEN INSTR(m.version, '.') > 0
			THEN CAST(SUBSTR(m.version, INSTR(m.version, '.') + 1) AS INTEGER)
				ELSE 0 END
			AS number,
		ROW_NUMBER() OVER (PARTITION BY m.pid
			ORDER BY m.first AND COALESCE(c.calls, 0) > 0 DESC,
				COALESCE(c.calls, 0) DESC, m.glibc, m.module) AS place
	FROM mapped m LEFT JOIN counted c ON c.pid = m.pid AND c.glibc = m.glibc)
WHERE place = 1;

-- Every expression, numbered.
CREATE VIEW advice_rule AS
SELECT ROW_NUMBER() OVER (ORDER BY code, part, choice, what) AS rule, code, part, choice, what,
	expression
FROM (
	SELECT code, 0 AS part, 0 AS choice, 'condition' AS what, condition AS expression
		FROM advice
	UNION ALL SELECT code, 0, 0, 'gain', gain FROM advice
	UNION ALL SELECT code, 0, 0, 'process', process FROM advice
	UNION ALL SELECT code, part, choice, 'text', condition FROM advice_text);

-- The text of views advice_test (rule, value) and figure_value (name, kind, value), which evaluate
-- them: made from the tables and created between this file and verdict.sql, as SQL cannot evaluate
-- text.
CREATE VIEW advice_source AS
SELECT 'CREATE VIEW advice_test AS
SELECT r.rule, CASE r.rule
' || (SELECT group_concat(PRINTF('WHEN %d THEN (%s)', rule, expression), char(10))
	FROM (SELECT rule, expression FROM advice_rule ORDER BY rule)) || '
END AS value
FROM weighed CROSS JOIN (SELECT rule FROM advice_rule) r;
CREATE VIEW figure_value AS
' || (SELECT group_concat(PRINTF('SELECT %s AS name, f.kind, CASE f.name
%s
END AS value FROM %s s CROSS JOIN (SELECT name, kind FROM advice_figure WHERE source = %Q) f',
		CASE WHEN kinds THEN 'REPLACE(f.name, ''*'', s.kind)' ELSE 'f.name' END, cases,
			source, source),
		char(10) || 'UNION ALL ')
	FROM (SELECT source, MAX(INSTR(name, '*') > 0) AS kinds,
		group_concat(PRINTF('WHEN %Q THEN (%s)',
			name, expression), char(10)) AS cases
		FROM advice_figure GROUP BY source ORDER BY source)) AS sql;

-- ---------------------------------------------------------------- zeroing

INSERT INTO advice (code, title, allocator, process, condition, gain, evidence, cost,
	explain) VALUES (
'calloc-reuse-memset', 'calloc clears blocks that glibc reuses from its heap', 'glibc', 'libc_pid',
'zeroing_matters AND libc_whole AND libc_pin_ns > 0.1 * base_ns',
'libc_pin_ns / base_ns',
'{libc_cleared} of {libc_calls} calls came from the heap (chunk header) and cleared {libc_bytes} in
	{libc_time}.',
'Every page that the program then uses costs a fault again, {libc_touch} a call when the whole block
	is used, against {libc_each} now; and every block two mapping calls.',
'A block that calloc cuts from memory that was used before has to be cleared by hand: glibc calls
	memset on all of it, whether the program will use it or not. A block with a mapping of its
	own is not cleared: pages fresh from the kernel are zero, and the kernel clears only those
	that are touched.

	Which of the two happens is decided by size: from mmap_threshold on (128 KiB at the start) a
	block gets its own mapping. But the threshold moves: the first free of such a block raises
	it to that block''s size, up to 32 MiB, so that from then on blocks of this size come from
	the heap.

	Setting glibc.malloc.mmap_threshold (GLIBC_TUNABLES, from 2.26 on; MALLOC_MMAP_THRESHOLD_ in
	the environment before; mallopt(M_MMAP_THRESHOLD) in the program) pins it. That helps where
	little of each block is used. Where all of it is used it makes things far worse, as every
	page then costs a fault: compare the two prices in the text. What the program does with
	reused blocks raises no fault and is not seen. How much of a block it uses is known from
	those that came fresh from the kernel, and taken out of the gain; where none was seen the
	gain is an upper bound, and memtoll compare tells the truth.

	The remedy that is right in both cases is in the program: keep one buffer, clear only what
	was used, or call malloc where everything is overwritten anyway.');
INSERT INTO advice_text (code, part, choice, condition, since, text, change, try) VALUES
('calloc-reuse-memset', 1, 1, '1', 0,
'calloc at {libc_place} gets blocks of {libc_asked} from the heap, and glibc memsets all of each:
	{libc_each} a call. The mmap_threshold is dynamic: it starts at 131,072 bytes, and the first
	free of an mmapped block raises it to that block''s size, so that smaller requests are then
	served from the heap.', '', ''),
('calloc-reuse-memset', 2, 1, 'threshold_low IS NULL', 0,
'It is at least {libc_block} now, not seen exactly.', '', ''),
('calloc-reuse-memset', 2, 2, 'threshold_low = threshold_high', 0, 'It is {threshold_low} now.', '',
	''),
('calloc-reuse-memset', 2, 3, 'threshold_high IS NULL', 0, 'It is at least {threshold_low} now.',
	'', ''),
('calloc-reuse-memset', 2, 4, '1', 0, 'It is between {threshold_low} and {threshold_high} now.', '',
	''),
('calloc-reuse-memset', 3, 1, '1', 2026,
'GLIBC_TUNABLES=glibc.malloc.mmap_threshold=131072, or mallopt(M_MMAP_THRESHOLD, 131072), pins it:
	each call then maps fresh zero pages and nothing is memset.', 'down mmap_threshold',
'--set GLIBC_TUNABLES=glibc.malloc.mmap_threshold=131072'),
('calloc-reuse-memset', 3, 2, '1', 0,
'MALLOC_MMAP_THRESHOLD_=131072 in the environment, or mallopt(M_MMAP_THRESHOLD, 131072), pins it:
	each call then maps fresh zero pages and nothing is memset.', 'down mmap_threshold',
'--set MALLOC_MMAP_THRESHOLD_=131072'),
('calloc-reuse-memset', 4, 1, '1', 0,
'The price: every page the program then uses costs a fault, {libc_pages} faults x {fault} =
	{libc_touch} a call when the whole block is used, against {libc_each} now.', '', ''),
('calloc-reuse-memset', 5, 1, 'libc_used IS NOT NULL', 0,
'Of blocks that came fresh from the kernel the program used {libc_used}: that is taken out of what
	it saves.', '', ''),
('calloc-reuse-memset', 5, 2, 'libc_touch_ns > 0 AND libc_each_ns >= libc_touch_ns', 0,
'Here that is cheaper however much of the block is used.', '', ''),
('calloc-reuse-memset', 5, 3, 'libc_touch_ns > 0', 0,
'How much is used was not seen. Use it only when less than about {break_even} of each block is used;
	otherwise reuse one buffer, or call malloc where everything is overwritten anyway.',
'', ''),
('calloc-reuse-memset', 5, 4, '1', 0,
'Use it only when little of each block is used; otherwise reuse one buffer, or call malloc where
	everything is overwritten anyway.', '', '');

INSERT INTO advice (code, title, process, condition, gain, evidence, cost, explain) VALUES (
'calloc-memset', 'calloc clears reused memory', 'libc_pid',
'zeroing_matters AND libc_whole AND NOT COALESCE(libc_pin_ns > 0.1 * base_ns, 0)',
'libc_ns / base_ns',
'{libc_cleared} of {libc_calls} calls cleared {libc_bytes} in {libc_time} (chunk header).',
'A buffer that is reused without clearing shows what it held before: where the program relies on
	zeroes it has to clear them itself.',
'calloc clears every block that it cuts from memory that was used before. Blocks below the
	mmap_threshold (128 KiB, or where a tunable pins it) always come from the heap, so no
	setting of the allocator takes this away without making page faults of it.

	Keep a buffer and clear only the part that was used; or call malloc, where the program
	overwrites the block before it reads it.

	Of larger blocks, whose mmap_threshold could be lowered, most is used: to map them would
	cost a fault for every page, and those cost more than the memset.');
INSERT INTO advice_text (code, part, choice, condition, allocator, text) VALUES
('calloc-memset', 1, 1, '1', '',
'calloc at {libc_place} clears {libc_block} of reused memory a call, {libc_each} each. Reuse one
	buffer and clear only what was used, or call malloc where everything is overwritten
	anyway.'),
('calloc-memset', 2, 1, 'libc_pin_ns IS NOT NULL', 'glibc',
'A lower mmap_threshold would not help: of blocks that came fresh from the kernel {libc_used} was
	used, and a fault for each page costs more than the memset.'),
('calloc-memset', 2, 2, 'threshold_dynamic = 0 AND libc_block >= 131072', 'glibc',
'The mmap_threshold is pinned, by a tunable or mallopt, at a size above these blocks; a lower one
	would map fresh zero pages, at {fault} for every page that is used.');

INSERT INTO advice (code, title, process, condition, gain, evidence, cost, explain) VALUES (
'calloc-double-clear', 'calloc clears pages that the kernel had just cleared', 'kernel_pid',
'zeroing_matters AND twice_calloc_bytes > 0 AND 2 * trim_storm_twice < twice_calloc_bytes',
'(twice_calloc_ns + foreign_ns) / base_ns',
'{twice_calloc_bytes} first touched by the memset inside calloc, {twice_calloc_time} of faults;
	{all_libc_time} of memset.',
'Memory that is kept instead of given back counts as resident until the program ends.',
'A page that the kernel hands out is zero already. When calloc memsets it, it is cleared twice, and
	pages that the program would never have touched are faulted in for it.

	Allocators do that when they do not know that memory is fresh. Some never know, or not for
	some sizes. glibc knows it for mappings and for the top of the heap, but only as far as the
	heap had never reached before: after a trim gave the top back, the pages that come again are
	fresh, and calloc clears them all the same. There trim_threshold, which keeps the top, takes
	away both.');
INSERT INTO advice_text (code, part, choice, condition, allocator, since, text, change, try) VALUES
('calloc-double-clear', 1, 1, '1', '', 0,
'calloc memsets pages that the kernel had just cleared: {twice_calloc_bytes} were cleared twice.',
	'', ''),
('calloc-double-clear', 2, 1, 'foreign_ns > 0 OR foreign_kind IS NOT NULL', '', 0,
'The allocator should return fresh mappings (mmap, MADV_DONTNEED) without a memset: calloc''s zeroes
	are already there, and pages the program never uses would not be faulted in at all. Use
	another allocator or a newer one, or allocate such blocks by mmap.', '', ''),
('calloc-double-clear', 2, 2, 'trim_pid IS NOT NULL', 'glibc', 2026,
'glibc gave the top of the heap back and got it again: GLIBC_TUNABLES={trim_storm_tunables} keeps
	it; resident memory then stays at its peak.', 'up trim_threshold',
'--set GLIBC_TUNABLES={trim_storm_tunables}'),
('calloc-double-clear', 2, 3, 'trim_pid IS NOT NULL', 'glibc', 0,
'glibc gave the top of the heap back and got it again: {trim_storm_variables} in its environment
	keeps it; resident memory then stays at its peak.',
'up trim_threshold', '--set {trim_storm_sets}');

INSERT INTO advice (code, title, condition, gain, evidence, cost, explain) VALUES (
'app-double-clear', 'the program clears pages that the kernel had just cleared',
'zeroing_matters AND twice_app_ns > 0.1 * base_ns',
'(twice_app_ns + app_ns) / base_ns',
'{twice_app_bytes} first touched by a memset to zero, {twice_app_time} of faults; {app_samples} CPU
	samples in memset.',
'calloc clears reused blocks itself: where blocks are mostly reused nothing is saved.',
'The first touch of these pages is a memset to zero by the program or a library outside the
	allocator. The kernel had cleared them in that very fault. calloc knows which pages are
	fresh and leaves them alone; pages that are never used are then never faulted in.

	Where the block is overwritten anyway (read into, copied over), malloc without memset is
	enough.');
INSERT INTO advice_text (code, part, choice, text) VALUES
('app-double-clear', 1, 1,
'memset at {app_place} clears pages that the kernel had just cleared: {twice_app_bytes} were cleared
	twice. Call calloc instead of malloc and memset, or keep the block and clear only what was
	used: fresh pages are zero already, and those never used would not be faulted in at all.');

INSERT INTO advice (code, title, condition, gain, evidence, cost, explain) VALUES (
'memset-app', 'the program clears memory itself',
'zeroing_matters AND twice_app_ns <= 0.1 * base_ns',
'app_ns / base_ns',
'{app_samples} CPU samples lie in code that stores zeros, at {app_place}: about {app_bytes}.',
'What is not cleared keeps its old content: the program must not read it.',
'CPU samples lie in code that stores nothing but zeros, memset or other, of the program or a
	library outside the allocator, on pages that were there already. No setting changes that: it
	is in the code at the named place.

	Clear only the part that was used since the last time, or once instead of every round; do
	not clear what the next step overwrites.');
INSERT INTO advice_text (code, part, choice, condition, text) VALUES
('memset-app', 1, 1, 'alloc_unprobed',
'Clearing (calloc''s own too: the allocator was not probed) takes {app_time}, most at
	{app_place}.'),
('memset-app', 1, 2, '1',
'Clearing outside the allocator takes {app_time}, most at {app_place}{app_memory}.'),
('memset-app', 2, 1, '1', 'Clear only the part that was used, or once instead of every round.');

INSERT INTO advice (code, title, process, condition, gain, evidence, cost, explain) VALUES (
'first-touch', 'the kernel clears pages at their first touch', 'kernel_pid',
'zeroing_matters AND NOT kernel_strange',
-- what was given back and came again, is cleared inside a system call, in blocks that grow, or for
-- nothing in huge pages, has advice of its own: nothing is promised twice
'(kernel_ns - twice_calloc_ns - twice_app_ns - storm_touch_ns
	- (SELECT populated_ns FROM populate_measure)
	- (SELECT growth_beside_ns FROM growth_measure)
	- (SELECT CASE WHEN huge_sparse THEN huge_saves_ns ELSE 0.0 END FROM huge_measure))
	/ base_ns',
'{kernel_faults} first-touch faults cleared {kernel_bytes}; the largest site has
	{kernel_site_faults} of them, {kernel_site_bytes}.',
'Memory that is kept counts as resident until the program ends, and calloc has to clear what is
	reused; huge pages are cleared whole, also where only a part of each is used.',
'Every page that a program touches for the first time costs a fault, in which the kernel clears it.
	Once is the price of the memory. Again and again means that blocks are given back to the
	kernel and got anew each time: by munmap of blocks with their own mapping, by trimming the
	heap, by madvise.

	On glibc two settings are needed together: mmap_threshold above the block''s size, so that
	it comes from the heap, and trim_threshold above that, so that the heap is not given back at
	each free. With the first alone nothing is gained. (Without any setting glibc raises both
	after the first free, to the block''s size and twice that, but only for blocks up to 32
	MiB.)

	Reusing one buffer in the program does the same without any setting. For calloc the choice
	is between faults for what is used and a memset of everything: the cheaper one is named.

	The work of a fault and the clearing proper are kept apart: huge pages save most of the
	first (512 faults become one) and nothing of the second.');
INSERT INTO advice_text (code, part, choice, condition, allocator, since, text, change, try) VALUES
('first-touch', 1, 1, 'kernel_churns AND kernel_followed', '', 0,
'Blocks of {kernel_call} at {kernel_place} are made and freed again and again ({kernel_made} made,
	{kernel_freed} freed, {kernel_block} each), and each time the kernel clears every page that
	is used. Keep the buffer and reuse it.', '', ''),
('first-touch', 1, 2, 'kernel_followed', '', 0,
'Blocks of {kernel_call} at {kernel_place} are used for the first time: one fault and one clearing
	for each page.', '', ''),
('first-touch', 1, 3, 'kernel_segment IS NOT NULL', '', 0,
'New pages of shared memory{kernel_segment}, touched at {kernel_touched}, are cleared at their first
	use: one fault and one clearing for each page. A segment that is kept and used again has
	them.', '', ''),
('first-touch', 1, 4, '1', '', 0,
'Memory outside the followed blocks, touched at {kernel_touched}, is used for the first time: one
	fault and one clearing for each page.', '', ''),
('first-touch', 2, 1, 'kernel_churns AND kernel_followed AND kernel_memset_ns >= kernel_each_ns',
	'', 0,
'Letting the allocator keep them would not help: calloc would then memset all of each block,
	{kernel_memset} instead of {kernel_each} of faults.', '', ''),
('first-touch', 2, 2, 'churn_keeps', 'glibc', 2036,
'Or let glibc keep it: GLIBC_TUNABLES={churn_tunables} (all of it: with the mmap_threshold alone the
	heap is trimmed at each free). Resident memory then stays at its peak, and calloc of these
	blocks would memset them.', 'up mmap_threshold,up trim_threshold',
'--set GLIBC_TUNABLES={churn_tunables}'),
('first-touch', 2, 3, 'churn_keeps', 'glibc', 2026,
'Or let glibc keep it: GLIBC_TUNABLES={churn_old_tunables} (all of it: with the mmap_threshold alone
	the heap is trimmed at each free). Resident memory then stays at its peak, and calloc of
	these blocks would memset them.', 'up mmap_threshold,up trim_threshold',
'--set GLIBC_TUNABLES={churn_old_tunables}'),
('first-touch', 2, 4, 'churn_keeps', 'glibc', 0,
'Or let glibc keep it: {churn_variables} in its environment (with the first alone the heap is
	trimmed at each free). Resident memory then stays at its peak, and calloc of these blocks
	would memset them.', 'up mmap_threshold,up trim_threshold', '--set {churn_sets}'),
('first-touch', 2, 5, 'kernel_churns AND churn_known = 0', '', 0,
'An allocator that gives memory back at once can often be told to wait (decay or trim threshold).
	Resident memory then stays at its peak.', '', ''),
('first-touch', 3, 1, 'NOT kernel_huge AND kernel_segment IS NOT NULL', '', 0,
'Of the {kernel_time}, {kernel_clear} is the clearing itself and {kernel_work} the work of the
	faults. Huge pages can save most of the latter, never the former: of hugetlbfs (SHM_HUGETLB,
	MFD_HUGETLB), or madvise(MADV_HUGEPAGE) where
	/sys/kernel/mm/transparent_hugepage/shmem_enabled allows it.', '', ''),
('first-touch', 3, 2, 'NOT kernel_huge AND kernel_small', '', 0,
'Of the {kernel_time}, {kernel_clear} is the clearing itself and {kernel_work} the work of the
	faults.', '', '');
INSERT INTO advice_text (code, part, choice, condition, text, change, aside) VALUES
('first-touch', 3, 4, '(SELECT 2 * huge_bytes > kernel_bytes FROM huge_measure)',
'These are huge pages: {huge_each} is cleared by one fault, {kernel_clear} of the {kernel_time}.',
'', 0),
('first-touch', 3, 3, 'NOT kernel_huge',
'Of the {kernel_time}, {kernel_clear} is the clearing itself and {kernel_work} the work of the
	faults: where most of each block is used, huge pages (madvise MADV_HUGEPAGE) can save most
	of the latter, never the former.', 'up huge_pages', 1);

INSERT INTO advice (code, title, condition, gain, evidence, cost, explain) VALUES (
'never-used', 'most of what is allocated is never used',
'mapping_matters AND 2 * unused_bytes >= freed_bytes AND unused_bytes > 0',
-- Pages that are never used are not cleared: what they cost are mapping calls.
'mapping_share * unused_bytes / MAX(made_bytes, freed_bytes)',
'No fault ever touched {unused_bytes} of {freed_bytes} freed, in blocks with a mapping of their
	own.',
'A smaller buffer needs more rounds where a block is now and then used whole.',
'A block with a mapping of its own that is freed without a fault in it was never used: no page of it
	was read or written. Of blocks in the heap this is not known.

	Usually a buffer was sized for the worst case. Ask for what is needed, or grow it when it
	is.');
INSERT INTO advice_text (code, part, choice, text) VALUES
('never-used', 1, 1,
'{unused_bytes} ({unused_part}) of the blocks that were freed had never been used. Ask for less:
	such memory costs address space and mapping calls.');

-- ---------------------------------------------------------------- mapping, allocator

INSERT INTO advice (code, title, process, condition, gain, evidence, cost, explain) VALUES (
'map-churn', 'mapping calls for every block', 'mapper_pid',
-- calls that give back what comes again have advice of their own
'mapping_matters AND 2 * storm_gave_ns < map_ns',
'map_ns / base_ns',
'{map_calls} mapping calls took {map_time}.',
'Memory that is kept counts as resident until the program ends; calloc from the heap memsets each
	block.',
'Each block from mmap_threshold on costs an mmap and a munmap, and munmap has to give every used
	page back. Where such blocks come and go all the time, the calls themselves are the cost.

	Blocks of malloc can be kept in glibc''s heap, by mmap_threshold and trim_threshold together
	(see map-storm). Blocks of calloc should not be: from the heap each would be memset whole,
	which costs more than the calls as soon as the block is not tiny. Reusing a buffer is right
	for both.');
INSERT INTO advice_text (code, part, choice, condition, allocator, since, text, change, try) VALUES
('map-churn', 1, 1, '(mapper_call IS NULL OR mapper_share < 0.5)
	AND (SELECT 2 * freed_ns FROM populate_measure) > map_ns
	AND NOT (unused_bytes > 0 AND 2 * unused_bytes >= freed_bytes)', '', 0,
'Unmapping memory and freeing its pages takes {freed_time}, most in {map_call} at {map_place}. Keep
	memory and use it again instead of giving it back.', '', ''),
('map-churn', 1, 2, '(mapper_call IS NULL OR mapper_share < 0.5)
	AND (SELECT 2 * map_sampled_ns FROM populate_measure) > map_ns', '', 0,
'Making pages takes {map_time}, most in {map_call} at {map_place}. Make only what is used, and keep
	it.', '', ''),
('map-churn', 1, 3, 'mapper_call IS NULL OR mapper_share < 0.5', '', 0,
'{map_calls} mapping calls, {map_each} each, most {map_call} at {map_place}. Map larger pieces, less
	often, and keep them.', '', ''),
('map-churn', 1, 4, '1', '', 0,
'{mapper_call} at {mapper_place} makes blocks of {mapper_block} with a mapping of their own:
	{mapper_each} of mapping calls a block.', '', ''),
('map-churn', 2, 1,
'mapper_call = ''calloc'' AND mapper_share >= 0.5 AND mapper_memset_ns >= mapper_each_ns',
'glibc', 0,
'Do not raise the mmap_threshold: from the heap calloc would memset each block, {mapper_memset}
	instead of {mapper_each}. Reuse one buffer, or ask for less.', '', ''),
('map-churn', 2, 2, 'mapper_call = ''calloc'' AND mapper_share >= 0.5', 'glibc', 0,
'Reuse one buffer. A higher mmap_threshold would serve them from the heap and memset each block,
	{mapper_memset} instead of {mapper_each}.', '', ''),
('map-churn', 2, 3, 'mapper_share >= 0.5 AND mapper_call <> ''''', '', 0,
'Reuse one buffer, or ask for less.', '', '');

INSERT INTO advice (code, title, condition, gain, evidence, cost, explain) VALUES (
'alloc-cpu', 'the allocator''s own work',
'allocator_matters',
-- what short calls are only taken to cost is no ground for advice; growth has advice of its own
'MAX(0.0, alloc_ns - (SELECT SUM(unresolved_ns) FROM call_cost)
	- (SELECT growth_alloc_ns FROM growth_measure)) / base_ns',
'{alloc_time} in allocator functions, faults, mapping calls and clearing taken out.',
'Objects kept for reuse stay resident, and keep what they held.',
'What is left of the time inside malloc, calloc, realloc and free when faults, mapping calls,
	clearing and the probes themselves are taken out: searching, splitting and merging chunks,
	waiting for an arena that another thread holds.

	Many short calls: allocate less often, larger, or keep objects for reuse. Few long ones:
	look at what they did (consolidation of many freed chunks, a lock).');
INSERT INTO advice_text (code, part, choice, text) VALUES
('alloc-cpu', 1, 1,
'The allocator''s own work: {alloc_calls} calls, {alloc_each} each on average (a small malloc here
	takes {malloc}), most in {alloc_call} at {alloc_place}. Fewer and larger allocations, or
	objects kept for reuse, save it; if single calls are long, look for consolidation and for
	threads waiting for one arena.');

-- What it saves is no throughput but a stall, of a millisecond and a thousand times the median at
-- least: hence next to no bound.
INSERT INTO advice (code, title, allocator, before, process, condition, gain, bound, evidence, cost,
	saves, explain)
VALUES (
'consolidation', 'one call pays for the frees before it', 'glibc', 2043,
'(SELECT consolidation_pid FROM latency_measure)',
'(SELECT consolidation_ns >= 1000000 AND consolidation_factor >= 1000 FROM latency_measure)',
'(SELECT consolidation_all_ns / base_ns FROM latency_measure)', 0.000001,
'{consolidation_time} of CPU time in one call, after {consolidation_frees} frees by its thread,
	where the median call takes {consolidation_median}; no fault, no system call and no lock
	inside. That it was malloc_consolidate is inferred from this, unless a CPU sample names
	it.',
'With mxfast=0 each free of a small block that the thread cache does not take joins it with its
	neighbours at once: the same work, spread over the frees. None of it is saved, and programs
	that alternately free and allocate small blocks do more of it.',
'no time in all; a stall of {consolidation_time} becomes part of {consolidation_frees} frees',
'glibc up to 2.42 puts freed blocks of up to 128 bytes that its thread cache does not take into fast
	bins and leaves them there. A later request of 1001 bytes and more, or a free that leaves 64
	KiB in one piece, joins them all with their neighbours (malloc_consolidate): one call then
	pays for millions of frees. glibc 2.43 removed fast bins, and with them this stall.

	GLIBC_TUNABLES=glibc.malloc.mxfast=0 does the work at each free instead. Freeing a large
	structure in the background, or keeping its memory in a pool of its own, avoids it in any
	version.');
INSERT INTO advice_text (code, part, choice, text, change, try) VALUES
('consolidation', 1, 1,
'A {consolidation_call} at {consolidation_place} took {consolidation_time}, the median
	{consolidation_median}: it joined what {consolidation_frees} frees had left in fast bins
	(malloc_consolidate, which glibc 2.43 removed). GLIBC_TUNABLES=glibc.malloc.mxfast=0 moves
	that work to the frees, where no single call is long.',
'down mxfast', '--set GLIBC_TUNABLES=glibc.malloc.mxfast=0');

INSERT INTO advice (code, title, process, condition, gain, evidence, cost, explain) VALUES (
'arena-lock', 'threads wait for each other''s arena',
'(SELECT lock_pid FROM latency_measure)',
'(SELECT 2 * lock_call_share >= 1 FROM latency_measure)',
'(SELECT MIN(1.0, lock_ns / base_ns) FROM latency_measure)',
'{lock_waits} futex waits inside the allocator took {lock_time}; {lock_call_share} of the time in
	{lock_call}.',
'More arenas take more memory: what one thread freed another one cannot use.',
'Every arena has a lock; threads that share one wait for each other. glibc makes up to eight arenas
	a core and gives each new thread one; MALLOC_ARENA_MAX and the tunable
	glibc.malloc.arena_max lower that.

	The time is spent asleep: it is not part of the observed time, and no toll has it. What
	holds a lock long are copies in realloc, trims, and faults inside; fewer of those help as
	well as more arenas.');
INSERT INTO advice_text (code, part, choice, allocator, condition, text, change) VALUES
('arena-lock', 1, 1, '', '1',
'Waiting for the lock of an arena is most of what calls of {lock_call} take ({lock_call_share};
	{lock_time} in all functions together).', ''),
('arena-lock', 2, 1, 'glibc', '(SELECT arenas_limited FROM latency_measure)',
'The number of arenas is limited by its environment (MALLOC_ARENA_MAX or glibc.malloc.arena_max):
	raise it.',
'up arena_max'),
('arena-lock', 2, 2, '', '1',
'Let fewer threads allocate at once, or use an allocator with caches for each thread and size.',
	'');

-- ---------------------------------------------------------------- swap

INSERT INTO advice (code, title, condition, gain, evidence, cost, explain) VALUES (
'swap-in', 'the working set does not fit',
-- The few pages that one pass over much memory takes along may be slow to come back, too, from a
-- disk that is busy with what goes out; pushing out is what has to stop (reclaim-stall).
'swap_matters AND NOT (hardly_back AND swap_ns < reclaim_ns)',
-- What comes back had to be pushed out, and something else for it: those stalls would stop, too.
'(swap_ns + reclaim_ns * MIN(1.0, 1.0 * swap_bytes / MAX(pushed_bytes, 1.0))) / base_ns',
'{swap_bytes} came back from swap ({swap_from}) in {swap_time}; resident at most {rss_peak}, swapped
	at most {swap_peak}.',
'Memory given to this program is taken from others; the size that would do is an estimate, rather
	too high.',
'Pages were pushed out to swap and came back when the program used them again. Reading one back
	costs far more than any fault on a fresh page, and no setting of the allocator changes it.

	Either the limit is too low (of the memory cgroup, or the machine''s memory), or the program
	goes over more memory than it needs at a time. In a cyclic sweep each page is pushed out
	just before its next turn: doing all passes over a part that fits before going on saves all
	of it, where a little more memory saves nothing. In random order each bit of memory saves
	its part.');
INSERT INTO advice_text (code, part, choice, condition, text) VALUES
('swap-in', 1, 1, '1',
'The program uses more memory than it may keep: {swap_faults} faults on swapped pages, most at
	{swap_place}.'),
('swap-in', 2, 0, '(SELECT 2 * given_share > 1 FROM dropper WHERE what = ''swap'')',
'Do not give back what is used again.{swap_by}'),
('swap-in', 2, 1, '2 * out_other > out_pages',
'Other processes push it out: limit them, or protect this one (memory.low of its cgroup, mlock of
	what must not wait).'),
('swap-in', 2, 2, 'fits_bytes > limit_bytes AND limit_path IS NOT NULL',
'With a limit of about {fits} instead of {memory_limit} ({memory_of}) the swap-ins would stop:
	{came_back} came back at least once, and at most {swap_peak} were out at a time.'),
('swap-in', 2, 3, 'fits_bytes > limit_bytes',
'With about {fits} of memory instead of {memory_limit}, or as much less used by others, the swap-ins
	would stop: {came_back} came back at least once, and at most {swap_peak} were out at a
	time.'),
('swap-in', 2, 4, '1', 'Give it more memory (or a higher cgroup limit).'),
('swap-in', 3, 1, 'back_pattern = ''cyclic sweep''',
'Or do all passes over a part that fits before going on to the next part.'),
('swap-in', 3, 2, 'back_pattern = ''random''',
'Or make what is in use smaller, and keep on one page what is used together.'),
('swap-in', 3, 3, '1', 'Or make its working set smaller.'),
('swap-in', 4, 1, 'swap_segment LIKE ''/%'' AND swap_segment NOT LIKE ''/memfd:%''',
'What is kept on tmpfs ({swap_segment}) is memory: delete there what is not needed any more, or put
	it on a disk.'),
('swap-in', 4, 2, 'swap_segment IS NOT NULL',
'It is shared memory: a smaller segment (a pool, buffers) that fits beside the rest saves all of it.
	Locked (mlock, SHM_LOCK) or in huge pages of hugetlbfs (MFD_HUGETLB, SHM_HUGETLB) it is
	never pushed out, but something else is instead.'),
('swap-in', 4, 3, '1', 'This is no matter of the allocator''s settings.'),
('swap-in', 5, 1, '(SELECT swap_half_bytes < swap_most_bytes FROM read_measure)',
'Less helps in part: {swap_half} more would save half of the swap-ins, {swap_most} more
	{swap_most_saved}.'),
('swap-in', 5, 2, '(SELECT swap_most_bytes > 0 FROM read_measure)',
'Less than {swap_most} more saves next to nothing.');

INSERT INTO advice (code, title, condition, gain, evidence, cost, explain) VALUES (
'reclaim-stall', 'the program stalls to push its own pages out',
'swap_matters AND reclaim_count > 0',
'reclaim_ns / base_ns',
'{reclaim_count} stalls, {reclaim_time}; {out_bytes} pushed out{out_by}.',
'Memory given to this program is taken from others.',
'Where memory is full (the machine''s, or the memory cgroup''s), whoever wants a page has to free
	one first. That is direct reclaim: the program itself stands still for it, in the middle of
	a fault.

	When what was pushed out never comes back this is no thrash: one pass over more memory than
	there is. Working in smaller parts, each freed or reused before the next, avoids it. When it
	comes back the working set does not fit (see swap-in).');
INSERT INTO advice_text (code, part, choice, condition, text) VALUES
('reclaim-stall', 1, 1, '1',
'Each page that is used for the first time, or again, has to push another one out first:
	{reclaim_of} is full.'),
('reclaim-stall', 2, 1, 'hardly_back',
'What was pushed out hardly ever came back, so this is no thrash: a pass over more memory than there
	is. Work in smaller parts and free or reuse each, or raise the limit.'),
('reclaim-stall', 2, 2, '1',
'Much of what was pushed out came back: the working set does not fit. Raise the limit, or make the
	working set smaller.');

-- ---------------------------------------------------------------- other faults

INSERT INTO advice (code, title, condition, gain, evidence, cost, explain) VALUES (
'cow', 'writes copy shared pages',
'cow_matters',
'cow_ns / base_ns',
'{cow_faults} faults, {cow_bytes}, {cow_time}.',
'A fork that comes earlier, or shared memory, changes what the processes see of each other.',
'After fork parent and child share their pages until one of them writes: the kernel then copies the
	page, in a fault of the writer. The same happens at the first write to a private mapping of
	a file. It is a copy, not a clearing, and no setting of the allocator changes it.

	Fork before the memory is filled, write less after it, or use vfork or posix_spawn where a
	new program is run at once. A forking server that writes to inherited memory (reference
	counts, a garbage collector) copies it page by page.');
INSERT INTO advice_text (code, part, choice, text) VALUES
('cow', 1, 1,
'Pages shared with another process (after fork) or with a file are copied at the first write, most
	at {cow_place}. Write less after the fork, fork before the memory is filled, or use vfork,
	posix_spawn or shared memory.');

INSERT INTO advice (code, title, condition, gain, evidence, cost, explain) VALUES (
'file-thrash', 'pages of files are pushed out and read again',
'file_matters AND (SELECT thrash FROM page_cache)',
'(SELECT COALESCE(fault_again_share, 0.0) * file_ns + COALESCE(read_again_share, 0.0)
	* COALESCE((SELECT MAX(read_uncached_ns, read_ns * MIN(1.0, 4096.0 * read_fill
		/ MAX(read_bytes, 1))) FROM read_measure), 0.0)
	+ reclaim_ns * again_pages / wanted_pages FROM page_cache) / base_ns',
'{cache_filled} came into the page cache, {cache_again} of it again after it had been used,
	{cache_vain} before; the kernel counts {cache_refaults} that came again
	(workingset_refault_file).',
'Memory given to this program is taken from others; the size that would do is an estimate, rather
	too high.',
'What a program reads from files, and its own code, is kept in memory as long as there is room: the
	page cache. Where there is none, pages are thrown out and read from the device again when
	they are used again. Nothing is written to swap and none is needed for it: in a container
	with a memory limit this is the way in which too little memory shows.

	Either the limit is too low (of the memory cgroup, or the machine''s memory), or the program
	goes over more of its files than it needs at a time, or memory of the program''s own leaves
	the page cache too little: a cache in the program that holds what the page cache holds as
	well keeps it twice.

	In a cyclic sweep each page is thrown out just before its next turn: doing all passes over a
	part that fits before going on saves all of it, where a little more memory saves nothing.
	In random order each bit of memory saves its part.

	Reading ahead, or reading by read() instead of a mapping, changes nothing: it is the same
	page cache. The kernel counts such returns as workingset_refault_file, in memory.stat of
	the group and in /proc/vmstat; read-ahead that is thrown out before its turn is among
	them, and in this a single pass shows some, too.');
INSERT INTO advice_text (code, part, choice, condition, text) VALUES
('file-thrash', 1, 1, '(SELECT code FROM page_cache)',
'Pages of the program''s own code (text) are pushed out and read again, most of {cache_path}:
	memory is so short that not even what runs stays.'),
('file-thrash', 1, 2, '1',
'Pages of {cache_path} that are used again and again are thrown out in between.'),
('file-thrash', 2, 0, '(SELECT 2 * given_share > 1 FROM page_cache)',
'Do not give back what is used again.{cache_by}'),
('file-thrash', 2, 1, '(SELECT 2 * asked_share > 1 FROM page_cache)',
'Do not ask the kernel to take back what is used again.{cache_by}'),
('file-thrash', 2, 2, '(SELECT 2 * other_share > 1 FROM page_cache)',
'Limit those that push it out, or protect this one (memory.low of its cgroup).{cache_by}'),
('file-thrash', 2, 3, '(SELECT fits_bytes > box_bytes AND box_path IS NOT NULL FROM page_cache)',
'With a limit of about {cache_fits} instead of {cache_box} (its memory cgroup, {cache_box_path})
	they would stay in memory: {cache_working} of files, beside {cache_beside} of other
	memory.'),
('file-thrash', 2, 4, '(SELECT box_bytes IS NULL FROM page_cache)',
'With {cache_working} for the page cache they would stay in memory: give the machine more, or let
	others use as much less.'),
('file-thrash', 2, 5, '1',
'Give it more memory (or a higher cgroup limit): {cache_working} of files would stay then.'),
('file-thrash', 3, 1, '(SELECT own_program IS NOT NULL FROM read_measure)',
'{own_program} keeps a cache of its own ({own_setting}, {own_cache}) beside: what is in both is kept
	twice; a smaller one leaves more to the page cache.'),
('file-thrash', 3, 2, '(SELECT 3 * beside_bytes > box_bytes FROM page_cache)',
'Other memory of the group takes {cache_beside} of the limit: where that is a cache of the same
	data it keeps it twice, and a smaller one leaves more to the page cache.'),
('file-thrash', 4, 0, '(SELECT 2 * (given_share + asked_share) > 1 FROM page_cache)', ''),
('file-thrash', 4, 1, '(SELECT code FROM page_cache)',
'Or lock what must not wait (mlock), or use less other memory in the group.'),
('file-thrash', 4, 2, '(SELECT pattern = ''cyclic sweep'' FROM page_cache)',
'Or do all passes over a part that fits before going on to the next part.'),
('file-thrash', 4, 3, '1',
'Or make what is in use smaller, and keep on one page what is used together.'),
('file-thrash', 5, 1, '1',
'Neither reading ahead nor another way of reading changes it.');

INSERT INTO advice (code, title, condition, gain, evidence, cost, explain) VALUES (
'read-around', 'read-ahead brings in what is never used',
'file_matters AND (SELECT wasteful FROM page_cache)',
'(SELECT (1.0 - 1.0 * wide_used / wide_fill) * CASE wide_cause WHEN ''read''
	THEN COALESCE((SELECT read_uncached_ns FROM read_measure), 0.0) ELSE file_ns END
	FROM page_cache) / base_ns',
'{wide_filled} came in, {wide_each} pages for each request; {wide_used} of it at most were used.',
'Where neighbouring pages are used soon after all, each costs a request of its own.',
'A fault on a page of a mapped file that has to be read brings in its neighbours, too (as many as
	read_ahead_kb of the device says, 128 KiB or far more), and so do reads that look as if they
	went on. Where pages are wanted in no order most of that is read in vain: it takes the
	device''s time, and throws out of the page cache what would have been used again.

	madvise(MADV_RANDOM) on the mapping, or posix_fadvise(POSIX_FADV_RANDOM), turns it
	off. How much was used is an upper bound: a fault maps what is in memory around it, up to
	64 KiB, and all of that counts as used.');
INSERT INTO advice_text (code, part, choice, condition, text) VALUES
('read-around', 1, 1, '(SELECT wide_cause = ''read'' FROM page_cache)',
'Each read that has to wait brings in {wide_each} pages, in no order, and most are never used. Turn
	read-ahead off: posix_fadvise(POSIX_FADV_RANDOM).'),
('read-around', 1, 2, '1',
'Each fault that has to read brings in {wide_each} pages around, in no order, and most are never
	used. Turn read-ahead off: madvise(MADV_RANDOM) on the mapping.');

INSERT INTO advice (code, title, condition, gain, evidence, cost, explain) VALUES (
'read-ahead-off', 'pages are used in order, and each is read by itself',
'file_matters AND (SELECT single FROM page_cache)',
'(SELECT CASE wide_cause WHEN ''read''
	THEN COALESCE((SELECT read_uncached_ns FROM read_measure), 0.0) ELSE file_ns END
	FROM page_cache) / base_ns',
'{wide_filled} came in, {wide_each} pages for each request, in order.',
'Reading ahead fills memory with what may not be wanted, and pushes out what is.',
'Read-ahead would bring in the next pages before they are wanted, many with one request. Here each
	was waited for by itself, though they are used in order: MADV_RANDOM (or POSIX_FADV_RANDOM)
	was set, the device''s read_ahead_kb is 0, or the file system does not read ahead. It does
	not make pages stay: where they are pushed out and read again they are read again sooner.');
INSERT INTO advice_text (code, part, choice, text) VALUES
('read-ahead-off', 1, 1,
'Pages of {cache_path} are used in order, and each is waited for by itself: leave read-ahead on
	(no MADV_RANDOM, or MADV_SEQUENTIAL for this pass; read_ahead_kb of the device).');

INSERT INTO advice (code, title, condition, gain, evidence, cost, explain) VALUES (
'shared-map', 'shared memory is mapped in page by page',
'shared_matters',
'shared_ns / base_ns',
'{shared_faults} faults mapped {shared_bytes} of shared memory into {shared_processes} in
	{shared_time}.',
'Huge pages of hugetlbfs are set aside for it, and stay so when it needs less.',
'Each process that uses shared memory has page tables of its own for it: a page that another one has
	made, or that lies there from before, still costs each of them a fault, in which nothing is
	read, cleared or copied. What is only read comes in up to 16 pages at a time, what is
	written page by page.

	A huge page is one entry instead of 512, and takes as much less room in page tables, which a
	large segment fills in each of its processes. Locking or populating a mapping brings the
	pages in at once, and each process pays for it all the same.');
INSERT INTO advice_text (code, part, choice, condition, text) VALUES
('shared-map', 1, 1, '1',
'Shared memory that is there already{shared_segment} is mapped in page by page, most at
	{file_place}: nothing is read or cleared for it.'),
('shared-map', 2, 1, 'file_segment LIKE ''/%'' AND file_segment NOT LIKE ''/memfd:%''',
'Huge pages make one entry of 512: mount the tmpfs with huge=within_size, or put it on hugetlbfs.'),
('shared-map', 2, 2, '1',
'Huge pages make one entry of 512: those of hugetlbfs (SHM_HUGETLB, MFD_HUGETLB; huge_pages of
	PostgreSQL), or madvise(MADV_HUGEPAGE) where
	/sys/kernel/mm/transparent_hugepage/shmem_enabled allows it.'),
('shared-map', 3, 1, 'shared_processes > 2',
'Each of {shared_processes} pays for what it uses: fewer ones that stay (a pool of
	connections), or threads, pay less.'),
('shared-map', 3, 2, '1',
'A mapping that is kept pays once; a new one, or one after MADV_DONTNEED, begins without any
	page.');

INSERT INTO advice (code, title, condition, gain, evidence, cost, explain) VALUES (
'file-fault', 'mapped file pages are faulted in',
'file_matters AND NOT (SELECT thrash OR wasteful OR single FROM page_cache)',
'file_ns / base_ns',
'{file_faults} faults in {file_time}.',
'Reading ahead fills memory with pages that may not be wanted.',
'The program uses a file by mapping it, and each group of pages costs a fault: minor where the page
	is in memory already, major where it has to be read first. A major fault is not a swap-in:
	it reads the file.

	MADV_WILLNEED or MAP_POPULATE bring pages in ahead. A file that is gone through once is
	often cheaper by read() with a large buffer. What is pushed out and read again is another
	matter (see file-thrash).');
INSERT INTO advice_text (code, part, choice, condition, text) VALUES
('file-fault', 1, 1, '1',
'Mapped file pages are faulted in, most at {file_place}; {file_major} faults had to read.'),
('file-fault', 2, 1, '(SELECT pattern LIKE ''%sweep'' OR pattern IS NULL FROM page_cache)',
'Read ahead (MADV_WILLNEED, MAP_POPULATE) or use read() with a large buffer if the file is used
	once.'),
('file-fault', 2, 2, '1',
'They are wanted in no order: ask for several at a time (MADV_WILLNEED of what is known to come,
	threads).');

-- ---------------------------------------------------------------- reads

INSERT INTO advice (code, title, condition, gain, evidence, cost, explain) VALUES (
'file-reread', 'the same parts of files are read again and again',
'file_matters AND (SELECT reread_share > 0.1 AND (own_program IS NOT NULL
	OR NOT (SELECT thrash FROM page_cache)) FROM read_measure)',
'(SELECT reread_share * read_uncached_ns FROM read_measure) / base_ns',
'{read_calls} reads of {read_bytes}, {read_different} of them different: {reread} times each;
	{read_time}, of it {read_asleep} asleep. {read_cached} came from the page cache.',
'Memory for a larger cache is taken from others; where it does not fit it is pushed to swap, and the
	program''s own counters do not show that.',
'A program with a cache of its own reads a part of a file again when it did not keep it. To the
	system it then looks idle: there are no page faults and no swap, only reads.

	How much more cache would help follows from how many different blocks are read between two
	reads of the same block: a cache larger than that would have had it. What the cache finds in
	itself is not visible from outside, so the blocks that it always has come on top: the size
	that is advised is the furthest such distance and the present cache together, and a
	sixteenth for its bookkeeping.

	A cache that is too small for one whole pass over the data gains nothing until it holds all
	of it. Where that much memory is not there, fewer or smaller passes are the way: an index, a
	smaller row, another order.');
INSERT INTO advice_text (code, part, choice, condition, text) VALUES
('file-reread', 1, 1, '1',
'{read_path} (with {read_path_share} of the time of all reads) is what is read most. Each part that
	was read was read {reread} times on average: the program''s own cache is too small to keep
	it.'),
('file-reread', 2, 1, '(SELECT own_program = ''InnoDB'' FROM read_measure)',
'With {pool_setting} InnoDB would read nothing twice; now it is {own_cache} ({own_source}).'),
('file-reread', 2, 2, '(SELECT own_program = ''PostgreSQL'' FROM read_measure)',
'With {pool_setting} PostgreSQL would read nothing twice; now it is {own_cache} ({own_source}).
	Memory left to the page cache serves the same reads, a little slower.'),
('file-reread', 2, 3, '1',
'With a cache of {pool} (the page cache, unless it reads past that, or one of its own) nothing would
	be read twice.'),
('file-reread', 3, 1, '(SELECT reread_half_bytes < 0.7 * reread_enough_bytes FROM read_measure)',
'About {reread_half} more would save half of what is read again.'),
('file-reread', 3, 2, '1',
	'Much less saves next to nothing: it goes over {read_different} before it comes back.'),
('file-reread', 4, 1, '1',
'Hits in the program''s own cache are not visible here: the size is an estimate, rather too high.');

INSERT INTO advice (code, title, condition, gain, evidence, cost, explain) VALUES (
'file-read', 'the program waits for what it reads, once',
'file_matters AND (SELECT reread_share <= 0.1 FROM read_measure)',
'(SELECT read_uncached_ns FROM read_measure) / base_ns',
'{read_calls} reads of {read_bytes}, {read_different} of them different; {read_time}, of it
	{read_asleep} asleep. {read_cached} came from the page cache.',
'Reading ahead fills memory with what may not be wanted.',
'Nearly every part that was read was read once: no cache of any size would have had it. What is left
	is to wait less for each: larger reads, reading ahead (posix_fadvise, readahead), several at
	a time, a faster device; or to read less.');
INSERT INTO advice_text (code, part, choice, text) VALUES
('file-read', 1, 1,
'{read_path} (with {read_path_share} of the time of all reads) is what is read most, hardly any of
	it more than once: a larger cache would not help. Read larger pieces or ahead
	(posix_fadvise, readahead), several at a time, or less.');
