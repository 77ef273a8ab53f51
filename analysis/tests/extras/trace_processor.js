// SPDX-License-Identifier: GPL-2.0
//
// trace_processor.js DIRECTORY REQUESTS ANSWERS: Perfetto's trace processor, as the web page of its
// trace viewer has it in DIRECTORY, answers a stream of remote procedure calls.
"use strict";

const fs = require("fs");
const path = require("path");
const vm = require("vm");

const [directory, requests, answers] = process.argv.slice(2);
const out = fs.openSync(answers, "w");

function fail(error) {
	// The engine is one line of 100 KB, which node would print.
	console.error(String(error && error.message).slice(0, 500));
	process.exit(1);
}
process.on("uncaughtException", fail);
process.on("unhandledRejection", fail);

// The engine is made for a web worker: it looks for these, and fetches its module by name.
const worker = {
	WorkerGlobalScope: function () {},
	XMLHttpRequest: class {
		open(_method, url) {
			this.name = path.basename(url);
		}
		send() {
			const bytes = fs.readFileSync(path.join(directory, this.name));
			this.response = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
		}
	},
	location: { href: "file:///" },
	console: { log() {}, warn() {}, error: console.error },
	TextDecoder, TextEncoder, URL, performance, setTimeout, clearTimeout, crypto: require("crypto").webcrypto,
};
worker.self = worker;
vm.createContext(worker);
vm.runInContext(fs.readFileSync(path.join(directory, "engine_bundle.js"), "utf8"), worker);

const port = { postMessage: (bytes) => fs.writeSync(out, bytes) };
worker.onmessage({ data: port });
// The module is compiled by now; what waits for that are promises, which go before this.
setImmediate(() => {
	const Bytes = vm.runInContext("Uint8Array", worker);
	port.onmessage({ data: new Bytes(fs.readFileSync(requests)) });
	fs.closeSync(out);
});
