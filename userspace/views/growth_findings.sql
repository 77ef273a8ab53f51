-- SPDX-License-Identifier: GPL-2.0
--
-- growth_findings.sql: the advice on blocks that grow in small steps: rows of the tables of
-- advice.sql, which it follows.

INSERT INTO advice_figure (name, kind, expression, source) VALUES
('growth_call', 'x', 'growth_call', 'growth_measure'),
('growth_place', 'x', 'growth_place', 'growth_measure'),
('growth_step', 'b', 'growth_step', 'growth_measure'),
('growth_size', 'b', 'growth_size', 'growth_measure'),
('growth_calls', 'c', 'growth_calls', 'growth_measure'),
('growth_copied_calls', 'c', 'growth_copied_calls', 'growth_measure'),
('growth_copied', 'b', 'growth_copied', 'growth_measure'),
('growth_moved', 'x', 'CASE growth_copied_calls WHEN 0 THEN ''none of them moved it''
	ELSE PRINTF(''%,d of them moved it, and copied %.1f MiB in all'',
		growth_copied_calls, growth_copied / 1048576.0) END',
	'growth_measure'),
('growth_alloc_time', 't', 'growth_alloc_ns', 'growth_measure'),
('growth_inside_time', 't', 'growth_inside_ns', 'growth_measure');

INSERT INTO advice (code, title, condition, gain, evidence, cost, explain) VALUES (
'small-steps', 'a block grows in small steps',
'(SELECT growth FROM growth_measure)',
'(SELECT growth_ns FROM growth_measure) / base_ns',
'{growth_calls} calls of {growth_call} made a block larger, by {growth_step} each; {growth_moved}.
	{growth_alloc_time} in the allocator,
	{growth_inside_time} in faults and mapping calls inside.',
'Until it is cut to size, a block takes up to twice what is in it.',
'A block that realloc cannot make larger where it is comes to another place, and all that is in it
	is copied. Where each call adds the same little, a block of n pieces is copied up to n
	times, and the work grows with the square of its size. What it leaves behind is too small
	for the next step: the allocator gives it back to the kernel, or keeps it in vain.

	Growing by a factor, by half or to the double, makes the copies of all steps together no
	more than twice the final size, whatever that is. A last realloc cuts it to size. Where the
	final size is known, or can be bounded, ask for it at once.

	Whether a step copies depends on the allocator: glibc makes the last block of the heap
	larger in place, and moves blocks with a mapping of their own by mremap, which copies
	nothing and is not counted here; other allocators copy wherever a size class ends.');
INSERT INTO advice_text (code, part, choice, condition, text) VALUES
('small-steps', 1, 1, '1',
'{growth_call} at {growth_place} makes blocks larger by {growth_step} at a time, to {growth_size} on
	average: {growth_calls} calls.'),
('small-steps', 2, 1, '(SELECT growth_copied_calls > 0 FROM growth_measure)',
'{growth_copied_calls} of them moved the block, and copied {growth_copied}.'),
('small-steps', 3, 1, '(SELECT growth_storm FROM growth_measure)',
'What a move leaves behind is given back to the kernel and got again.'),
('small-steps', 4, 1, '1',
'Grow by a factor instead (by half, or to the double), and cut the block to size at the end: then a
	few dozen calls do, and all copies together come to twice its size at most.');
