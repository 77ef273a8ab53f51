// SPDX-License-Identifier: GPL-2.0
/*
 * usage: memory.js clears|keeps|returns|lists ROUNDS BYTES
 *        memory.js stacks [WORKERS]
 * It says that it is there, and begins when it reads a line.
 * clears: a cleared buffer each round. keeps: one that is filled again. returns: one that is not cleared but filled,
 * and collected then; lists: an array of numbers likewise. stacks: allocates at known places, and says
 * what V8 itself says of who called whom there, and ends with the next line: names are read of what is there. With
 * workers each of them does so, in an engine of its own. At the end a line of JSON: minor page faults of what was done,
 * by the kernel's count.
 */
'use strict';

const { readSync } = require('fs');
const { setFlagsFromString } = require('v8');
const { runInNewContext } = require('vm');
const { Worker, isMainThread, parentPort } = require('worker_threads');

const COUNT = 13, BLOCK = 8 << 20;
const said = [];

function answer(bytes) { /* SITE clears */
	return Buffer.alloc(bytes).length;
}

function change(kept, round) { /* SITE keeps */
	let sum = 0;

	for (let at = 0; at < kept.length; at += 7)
		sum += kept[at] = round;
	return sum;
}

function fetch(bytes) { /* SITE returns */
	return Buffer.allocUnsafeSlow(bytes).fill(1).length;
}

function list(bytes) { /* SITE lists */
	return new Array(bytes / 8).fill(0.5).length;
}

/* Names alone: V8 says of calls where they are, memtoll where the function begins. */
function say(name) {
	const frames = new Error().stack.split('\n').slice(2).map((line) => line.trim().split(' '));
	const named = frames.filter((words) => words.length > 2 && !words.at(-1).startsWith('(<anonymous>'));

	said.push({
		case: name,
		chain: named.map((words) => words.at(-2).split('.').at(-1)),
		count: COUNT,
		bytes: BLOCK,
	});
}

function allocate() { /* SITE allocates */
	for (let i = 0; i < COUNT; i++)
		Buffer.alloc(BLOCK);
}

function nested(level) {
	if (level)
		return nested(level - 1);
	say('nested');
	return allocate();
}

function through(level) {
	[level].forEach(function each(left) {
		if (left)
			return through(left - 1);
		say('through the engine');
		return allocate();
	});
}

class Holder {
	constructor() {
		say('constructor');
		allocate();
	}

	größe() {
		say('not ASCII');
		allocate();
	}
}

function stacks() {
	Error.stackTraceLimit = 100;
	nested(3);
	through(2);
	new Holder().größe();
}

function tell(cases) {
	for (const one of cases)
		console.log(JSON.stringify(one));
}

function inWorkers(count, then) {
	let left = count;

	function heard(cases) {
		tell(cases);
		if (!--left)
			then();
	}
	for (let worker = 0; worker < count; worker++)
		new Worker(__filename).on('message', heard);
}

function collector() {
	setFlagsFromString('--expose-gc');
	return runInNewContext('gc');
}

function work(what, rounds, bytes) { /* SITE works */
	const made = { clears: answer, returns: fetch, lists: list }[what];
	const kept = Buffer.alloc(bytes);
	const collect = what === 'returns' || what === 'lists' ? collector() : null;

	for (let round = 0; round < rounds; round++) {
		if (made)
			made(bytes);
		else
			change(kept, round);
		if (collect)
			collect();
	}
}

function main(what, first, second) {
	console.log(JSON.stringify({ ready: true }));
	readSync(0, Buffer.alloc(1));
	const before = process.resourceUsage().minorPageFault;
	const end = () => {
		console.log(JSON.stringify({ faults: process.resourceUsage().minorPageFault - before }));
		if (what === 'stacks')
			readSync(0, Buffer.alloc(1));
	};

	if (what === 'stacks' && first) {
		inWorkers(Number(first), end);
		return;
	}
	if (what === 'stacks') {
		stacks();
		tell(said);
	} else {
		work(what, Number(first), Number(second));
	}
	end();
}

if (isMainThread) {
	main(...process.argv.slice(2));
} else {
	stacks();
	parentPort.postMessage(said);
	Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0); /* until all have been read */
}
