// SPDX-License-Identifier: GPL-2.0
/* four_threads.cc: four threads that fill maps of strings and vectors, each as often as the first argument says. */
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>

static size_t work(int thread, int rounds)
{
	size_t numbers = 0;

	for (int round = 0; round < rounds; round++) {
		std::map<std::string, std::vector<int>> table;

		for (int i = 0; i < 500; i++)
			table["the key number " + std::to_string(i * thread)].assign(i % 50 + 1, i);
		for (const auto &entry : table)
			numbers += entry.second.size();
		std::vector<char> block(300000 + 1000 * thread);
		numbers += block.size();
	}
	return numbers;
}

int main(int argc, char **argv)
{
	const int rounds = argc > 1 ? atoi(argv[1]) : 1;
	std::vector<std::thread> threads;
	std::vector<size_t> numbers(4);

	for (int i = 0; i < 4; i++)
		threads.emplace_back([&numbers, i, rounds] { numbers[i] = work(i + 1, rounds); });
	for (auto &thread : threads)
		thread.join();
	return numbers[0] == 0;
}
