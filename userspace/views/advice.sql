-- SPDX-License-Identifier: GPL-2.0
--
-- advice.sql: the advice as data. Report, notebook and `memtoll explain` all read these two tables,
-- so that what is said and what is documented cannot differ. Follows figures.sql; verdict.sql
-- decides from them what is said of a recording (views advice_state and finding).
--
-- To add a finding, add one row to `advice` and one or more to `advice_text`, in the file of its
-- kind (*_findings.sql). No view need be touched.
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
	m.kernel_call <> '' AS kernel_followed,
	EXISTS (SELECT 1 FROM not_captured WHERE toll = 'zero.libc') AS alloc_unprobed,
	-- of a stack, the process that it was first seen in
	(SELECT pid FROM stack WHERE stack_id = m.kernel_stack) AS kernel_pid,
	(SELECT pid FROM stack WHERE stack_id = m.mapper_stack) AS mapper_pid,
	-- settings of glibc would keep what the kernel clears, and nothing else says so
	m.kernel_churns AND m.churn_mapped >= 0.5
		AND m.kernel_call NOT LIKE 'realloc%'	-- copied then, where mremap moves it now
		AND NOT g.glibc_storm AND (SELECT pid FROM stack WHERE stack_id = m.kernel_stack)
			NOT IN (SELECT pid FROM glibc_pinned) AS churn_keeps,
	(SELECT pid FROM stack WHERE stack_id = m.alloc_stack) AS alloc_pid, g.*,
	-- mapping calls that nothing else promises, and of them those of blocks that are never
	-- used: two for each
	MAX(0.0, m.map_ns - g.storm_gave_ns - a.let_go_ns - u.ended_ns) AS map_rest_ns,
	m.blocks_unused * MAX(0.0, MIN(m.map_ns - g.storm_gave_ns - a.let_go_ns - u.ended_ns,
		(m.map_ns - m.map_sampled_ns)
			* MIN(1.0, 2.0 * m.unused_blocks / MAX(m.map_calls, 1)))) AS unused_ns
FROM measure m JOIN giveback_weight g JOIN advised_measure a JOIN populate_measure u;

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

-- The text of views advice_test (a rule and its value) and figure_value (name, kind, value), which
-- evaluate them: made from the tables and created between this file and verdict.sql, as SQL cannot
-- evaluate text. Rules are looked up in two steps: of each, all WHEN before its own are compared.
CREATE VIEW advice_source AS
SELECT 'CREATE VIEW advice_test AS
SELECT r.rule, r.code, r.part, r.choice, r.what, CASE r.rule / 16
' || (SELECT group_concat(PRINTF('WHEN %d THEN CASE r.rule
%s END', block, cases), char(10))
	FROM (SELECT rule / 16 AS block,
			group_concat(PRINTF('WHEN %d THEN (%s)', rule, expression), char(10))
				AS cases
		FROM (SELECT rule, expression FROM advice_rule ORDER BY rule) GROUP BY 1)) || '
END AS value
FROM weighed CROSS JOIN advice_rule r;
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
