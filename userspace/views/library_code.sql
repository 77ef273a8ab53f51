-- SPDX-License-Identifier: GPL-2.0
--
-- library_code.sql: which frames are the language's library, the allocator or the C library, and
-- not the program's own code. A sentence names the first frame that is; stacks show them all.
-- Precedes stacks.sql.

-- A frame is library code where its function, file or module is like a pattern (GLOB) and not like
-- `besides`.
CREATE TABLE library_code (
	what    TEXT NOT NULL,		-- function, file or module
	pattern TEXT NOT NULL,
	besides TEXT NOT NULL DEFAULT '',
	reason  TEXT NOT NULL,
	PRIMARY KEY (what, pattern)
) WITHOUT ROWID;

INSERT INTO library_code (what, pattern, besides, reason) VALUES
('file', '*/include/c++/*', '', 'C++: headers of libstdc++ and libc++'),
('file', '*/libstdc++-v3/*', '', 'C++: libstdc++, with debug information'),
('module', '*/libstdc++.so*', '', 'C++: libstdc++'),
('module', '*/libc++.so*', '', 'C++: libc++'),
('module', '*/libc++abi.so*', '', 'C++: libc++'),
('module', '*/libgcc_s.so*', '', 'the compiler''s own library'),
('function', 'std::*', '', 'C++ and Rust: the standard library'),
('function', 'void std::*', '', 'C++: a template of it, with its type'),
('function', '__gnu_cxx::*', '', 'C++: libstdc++'),
('function', 'operator new*', '', 'C++: calls malloc'),
('function', 'operator delete*', '', 'C++: calls free'),
('function', '__cxa_*', '', 'C++: the runtime'),
('file', '/rustc/*', '', 'Rust: the standard library as it is shipped'),
('file', '/rust/deps/*', '', 'Rust: what the standard library is made of (hashbrown)'),
('file', '*/rustlib/src/rust/*', '', 'Rust: the standard library from its sources'),
('file', '/usr/src/rustc-*', '', 'Rust: the standard library of distributions'),
-- C++ has namespaces of such names, and parameters behind its functions.
('function', 'core::*', '*(*', 'Rust: the library without an allocator'),
('function', 'alloc::*', '*(*', 'Rust: the library that allocates'),
('function', '<core::*', '*(*', 'Rust: a trait of it'),
('function', '<alloc::*', '*(*', 'Rust: a trait of it'),
('function', '<std::*', '', 'Rust: a trait of it'),
('function', '<? as core::*', '*(*', 'Rust: a trait of it, for any type'),
('function', '<? as alloc::*', '*(*', 'Rust: a trait of it, for any type'),
('function', '__rust_*', '', 'Rust: shims that call the allocator'),
('function', '__rustc::*', '', 'Rust: shims that call the allocator, since 1.87'),
('function', '__rdl_*', '', 'Rust: the default allocator'),
('function', '__rg_*', '', 'Rust: an allocator that the program has chosen'),
('file', '<frozen *', '', 'Python: what brings in modules and programs'),
('file', '*/lib/python[23]*', '*-packages/*', 'Python: the standard library'),
('file', '*/lib64/python[23]*', '*-packages/*', 'Python: the standard library'),
('module', '*/libpython[23]*', '', 'Python: the interpreter'),
('module', '*/python[23]*/lib-dynload/*', '', 'Python: the standard library, what of it is in C'),
('module', '*/bin/python[23]*', '', 'Python: the interpreter'),
('function', 'PyMem_*', '', 'Python: calls malloc'),
('function', '_PyMem_*', '', 'Python: calls malloc'),
('function', 'PyObject_[MCRF]*alloc', '', 'Python: calls malloc'),
('function', '_PyObject_[MCRF]*alloc', '', 'Python: calls malloc'),
('function', 'runtime.*', '', 'Go: the runtime'),
('function', 'runtime/*', '', 'Go: the runtime'),
('function', 'internal/runtime/*', '', 'Go: the runtime'),
('file', '/usr/local/go/src/*', '', 'Go: the standard library'),
('file', '/usr/lib/go*/src/*', '', 'Go: the standard library'),
('file', '/usr/share/go*/src/*', '', 'Go: the standard library'),
('module', '*/bin/node', '', 'JavaScript: Node and V8'),
('module', '*/bin/nodejs', '', 'JavaScript: Node and V8'),
('module', '*/libnode.so*', '', 'JavaScript: Node and V8'),
('file', 'node:*', '', 'JavaScript: what Node has written in it'),
('function', 'node::*', '', 'JavaScript: Node'),
('function', 'v8::*', '', 'JavaScript: V8'),
('function', 'Builtins_*', '', 'JavaScript: V8'),
('function', 'Builtin:*', '', 'JavaScript: V8, by the perf map'),
('function', 'BytecodeHandler:*', '', 'JavaScript: V8, by the perf map'),
('function', 'Stub:*', '', 'JavaScript: V8, by the perf map'),
('module', '*/libjvm.so', '', 'Java: the virtual machine'),
('module', '*/libjli.so', '', 'Java: what starts it'),
('module', '*/libjava.so', '', 'Java: the standard library, what of it is in C'),
('module', '*/libnio.so', '', 'Java: the standard library, what of it is in C'),
('module', '*/libnet.so', '', 'Java: the standard library, what of it is in C'),
('module', '*/libzip.so', '', 'Java: the standard library, what of it is in C'),
('module', '*/libjimage.so', '', 'Java: the standard library, what of it is in C'),
('module', '*/bin/java', '', 'Java: what starts it'),
('function', 'Interpreter', '', 'Java: methods that are not compiled, by the perf map'),
('function', 'StubRoutines (*', '', 'Java: the virtual machine, by the perf map'),
('function', '* Runtime1 stub', '', 'Java: the virtual machine, by the perf map'),
('function', 'C2 Runtime *', '', 'Java: the virtual machine, by the perf map'),
('function', '_new_*_Java', '', 'Java: the virtual machine, by the perf map'),
('function', '_multianewarray*_Java', '', 'Java: the virtual machine, by the perf map'),
('function', 'java.*(*', '', 'Java: the standard library'),
('function', 'jdk.*(*', '', 'Java: the standard library'),
('function', 'sun.*(*', '', 'Java: the standard library'),
('module', '*/bin/php*', '', 'PHP: the interpreter'),
('module', '*/libphp*.so*', '', 'PHP: the interpreter'),
('module', '*/php/20[0-9]*/*.so', '', 'PHP: its extensions'),
('module', '*/bin/ruby*', '', 'Ruby: the interpreter'),
('file', '<internal:*', '', 'Ruby: what the interpreter has of it in itself'),
('file', '*/lib/ruby/[0-9]*', '*/gems/*', 'Ruby: the standard library'),
('module', '*/ruby/[0-9]*.so', '*/gems/*', 'Ruby: the standard library, what of it is in C'),
('module', '*/libruby*.so*', '', 'Ruby: the interpreter'),
('module', '*/bin/luajit*', '', 'Lua: LuaJIT'),
('module', '*/libluajit*.so*', '', 'Lua: LuaJIT'),
('module', '*/bin/lua[5.]*', '', 'Lua: the interpreter'),
('module', '*/liblua5*.so*', '', 'Lua: the interpreter'),
('module', '*/bin/perl*', '', 'Perl: the interpreter'),
('module', '*/libperl.so*', '', 'Perl: the interpreter'),
('module', '*/libmimalloc*.so*', '', 'an allocator'),
('module', '*/libjemalloc*.so*', '', 'an allocator'),
('module', '*/libtcmalloc*.so*', '', 'an allocator'),
('module', '*/libc.so*', '', 'C: glibc'),
('module', '*/libc-2.*', '', 'C: glibc before 2.34'),
('module', '*/libpthread*.so*', '', 'C: threads of glibc before 2.34'),
('module', '*/ld-linux*', '', 'C: glibc''s loader'),
('module', '*/ld-musl-*', '', 'C: musl'),
('module', '*/libc.musl-*', '', 'C: musl'),
-- As parts of a program that is linked statically.
('function', '_start', '', 'C: calls main'),
('function', '__libc_*', '', 'C: glibc'),
('function', 'start_thread', '', 'C: the first function of a thread'),
('function', 'clone', '', 'C: makes a thread'),
('function', 'pthread_create*', '', 'C: makes a thread'),
('function', '__nptl_*', '', 'C: threads of glibc'),
('function', 'advise_stack_range', '', 'C: gives a thread''s stack back'),
('function', 'clone3', '', 'C: makes a thread'),
('function', '__clone*', '', 'C: makes a thread'),
('function', '_int_malloc', '', 'C: glibc''s allocator'),
('function', '_int_realloc', '', 'C: glibc''s allocator'),
('function', '_int_free', '', 'C: glibc''s allocator'),
('function', 'sysmalloc*', '', 'C: glibc''s allocator'),
('function', 'systrim*', '', 'C: glibc''s allocator'),
('function', 'malloc', '', 'C: the allocator'),
('function', 'calloc', '', 'C: the allocator'),
('function', 'realloc', '', 'C: the allocator'),
('function', 'free', '', 'C: the allocator'),
('function', 'memset', '', 'C: fills'),
('function', '__memset_*', '', 'C: fills, as this processor does it best'),
('function', 'memcpy', '', 'C: copies'),
('function', 'memmove', '', 'C: copies'),
('function', '__memcpy_*', '', 'C: copies, as this processor does it best'),
('function', '__memmove_*', '', 'C: copies, as this processor does it best'),
('function', 'mmap', '', 'C: a system call'),
('function', 'mmap64', '', 'C: a system call'),
('function', '__mmap', '', 'C: a system call'),
('function', '__mmap64', '', 'C: a system call'),
('function', 'munmap', '', 'C: a system call'),
('function', '__munmap', '', 'C: a system call'),
('function', 'madvise', '', 'C: a system call'),
('function', '__madvise', '', 'C: a system call'),
-- By custom.
('function', 'xmalloc', '', 'calls malloc, and ends the program where that fails'),
('function', 'xcalloc', '', 'the same'),
('function', 'xrealloc', '', 'the same'),
('function', 'xzalloc', '', 'the same'),
('function', 'xmalloc(*', '', 'the same, in C++'),
('function', 'xcalloc(*', '', 'the same'),
('function', 'xrealloc(*', '', 'the same'),
('function', 'xzalloc(*', '', 'the same'),
('function', 'g_malloc*', '', 'GLib: the same'),
('function', 'g_try_malloc*', '', 'GLib: calls malloc'),
('function', 'g_realloc*', '', 'GLib: calls realloc');

-- The frames that are, by their numbers. libc: of the C library, which says least of all.
CREATE VIEW library_frame AS
WITH module AS MATERIALIZED (	-- few, of many frames
	SELECT f.module, f.module LIKE '%/libc.so%' OR f.module LIKE '%/libc-2.%'
		OR f.module LIKE '%/ld-musl-%' OR f.module LIKE '%/libc.musl-%' AS libc,
		-- a program may have its allocator in it
		EXISTS (SELECT 1 FROM allocator a WHERE a.module = f.module
			AND a.linkage IN ('dynamic', 'preloaded'))
		OR EXISTS (SELECT 1 FROM library_code c WHERE c.what = 'module'
			AND f.module GLOB c.pattern AND NOT f.module GLOB c.besides) AS library
	FROM (SELECT DISTINCT module FROM frame) f
)
SELECT f.frame_id, m.libc
FROM frame f CROSS JOIN module m ON m.module = f.module
WHERE m.library OR m.libc
OR EXISTS (SELECT 1 FROM library_code c WHERE c.what = 'function' AND f.function <> ''
	AND f.function GLOB c.pattern AND NOT f.function GLOB c.besides)
OR EXISTS (SELECT 1 FROM library_code c WHERE c.what = 'file' AND f.file <> ''
	AND f.file GLOB c.pattern AND NOT f.file GLOB c.besides);
