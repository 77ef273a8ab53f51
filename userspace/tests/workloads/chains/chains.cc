// SPDX-License-Identifier: GPL-2.0
/*
 * The same in C++: templates, virtual functions, functions in libstdc++ that allocate or call back,
 * exceptions.
 *
 * usage: chains; waits for a line, then runs every scenario
 */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

namespace chains {

constexpr int rounds = 23;
constexpr std::size_t block_size = 100UL << 10;

struct Job {
	std::size_t size;
};

static volatile int back;
static void *volatile sink;

NOINLINE void touch(char *block, std::size_t size)
{
	for (std::size_t at = 0; at < size; at += 4096)
		static_cast<volatile char *>(block)[at] = 1;
}

template <int N> struct Link {
	static NOINLINE void down(const Job &job)
	{
		Link<N - 1>::down(job);
		back = back + 1;
	}
};

template <> struct Link<1> {
	static NOINLINE void down(const Job &job)
	{
		char *block = static_cast<char *>(std::malloc(job.size));

		sink = block;
		touch(block, job.size);
		back = back + 1;
	}
};

NOINLINE void by_new(const Job &job)
{
	char *block = new char[job.size];

	sink = block;
	touch(block, job.size);
	back = back + 1;
}

/* The string grows inside libstdc++. */
NOINLINE void by_string(const Job &job)
{
	static std::string *text;

	text = new std::string("a");
	text->reserve(job.size - 1);
	sink = text;
	back = back + 1;
}

struct Base {
	virtual void go(const Job &job) = 0;
	virtual ~Base() = default;
};

struct Derived : Base {
	NOINLINE void go(const Job &job) override
	{
		Link<1>::down(job);
		back = back + 1;
	}
};

NOINLINE void by_virtual(const Job &job)
{
	static Derived derived;
	static Base *volatile base = &derived;

	base->go(job);
	back = back + 1;
}

NOINLINE void thrower()
{
	throw std::runtime_error("on purpose");
}

NOINLINE void by_catch(const Job &job)
{
	try {
		thrower();
	} catch (const std::exception &error) {
		Link<1>::down(job);
		back = back + error.what()[0];
	}
}

struct Guard {
	const Job &job;
	NOINLINE ~Guard()
	{
		Link<1>::down(job);
		back = back + 1;
	}
};

/* An allocation while the stack is being unwound for an exception, below _Unwind_Resume. */
NOINLINE void guarded(const Job &job)
{
	Guard guard{job};

	thrower();
}

NOINLINE void by_unwind(const Job &job)
{
	try {
		guarded(job);
	} catch (const std::exception &error) {
		back = back + error.what()[0];
	}
}

static void thread_body(const Job *job)
{
	Link<1>::down(*job);
	back = back + 2;
}

NOINLINE void by_thread(const Job &job)
{
	std::thread thread(thread_body, &job);

	thread.join();
	back = back + 1;
}

static const struct Scenario {
	const char *name;
	void (*run)(const Job &);
} scenarios[] = {
	{"malloc_1", Link<1>::down}, {"malloc_7", Link<7>::down}, {"malloc_30", Link<30>::down},
	{"new", by_new}, {"string", by_string}, {"virtual", by_virtual}, {"catch", by_catch},
	{"unwind", by_unwind}, {"thread", by_thread},
};

static void wait_for_line()
{
	char byte;

	std::printf("{\"pid\": %d, \"ready\": true}\n", getpid());
	std::fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) == 1 && byte != '\n')
		;
}

} // namespace chains

int main()
{
	using namespace chains;
	int number = 0;

	alarm(120);
	wait_for_line();
	for (const Scenario &scenario : scenarios) {
		const Job job{block_size + 16 * static_cast<std::size_t>(number++)};

		for (int round = 0; round < rounds; round++) {
			scenario.run(job);
			back = back + 1;
		}
		std::printf("{\"pid\": %d, \"scenario\": \"%s\", \"size\": %zu, \"calls\": %d}\n",
			    getpid(), scenario.name, job.size, rounds);
	}
	std::printf("{\"pid\": %d, \"done\": true}\n", getpid());
	std::fflush(stdout);
	return 0;
}
