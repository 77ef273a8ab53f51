/* SPDX-License-Identifier: GPL-2.0 */
/*
 * units.h: how figures read: kind, value (ns, bytes, a share, a number), in a table of a report,
 * and in a sentence. base/text.c (test_text.c), view figure (test_views_units.py) and
 * analysis/memtoll/text.py (test_text.py) all follow it.
 */
/* clang-format off */
{ "t", 0, "0 ns", "0 ns" },
{ "t", 0.4, "0.40 ns", "0.40 ns" },
{ "t", 9.99, "9.99 ns", "9.99 ns" },
{ "t", 9.996, "10.0 ns", "10.0 ns" },
{ "t", 99.96, "100 ns", "100 ns" },
{ "t", 999.4, "999 ns", "999 ns" },
{ "t", 1000, "1.00 us", "1.00 us" },
{ "t", 83010, "83.0 us", "83.0 us" },
{ "t", 1000000, "1.00 ms", "1.00 ms" },
{ "t", 123456789, "123 ms", "123 ms" },
{ "t", 1000000000, "1.00 s", "1.00 s" },
{ "t", 86400000000000, "86400 s", "86400 s" },
{ "b", 0, "0 B", "0 bytes" },
{ "b", 1023, "1023 B", "1023 bytes" },
{ "b", 1024, "1.00 KiB", "1.00 KiB" },
{ "b", 10485760, "10.0 MiB", "10.0 MiB" },
{ "b", 1073741823, "1024 MiB", "1024 MiB" },
{ "b", 1073741824, "1.00 GiB", "1.00 GiB" },
{ "s", 0, "0.0 %", "0 %" },
{ "s", 0.004, "0.4 %", "0.4 %" },
{ "s", 0.0123, "1.2 %", "1 %" },
{ "s", 0.976, "97.6 %", "98 %" },
{ "c", 0, "0", "0" },
{ "c", 1234567, "1,234,567", "1,234,567" },
