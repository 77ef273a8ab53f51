// SPDX-License-Identifier: GPL-2.0
/* fuzz_options.c: option files of database servers, which a traced process names. */
#define _GNU_SOURCE 1

#include "fuzz.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/server_cache.h"

/* Stands for the name of the file, so that it can include itself. */
#define SELF '@'

static char *with_names(const uint8_t *data, size_t size, const char *name, size_t *length)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, length);
	size_t i, names = 0;

	for (i = 0; out && i < size; i++) {
		if (data[i] == SELF && names++ < 100)
			fputs(name, out);
		else
			fputc(data[i], out);
	}
	if (!out || fclose(out))
		abort();
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *path = fuzz_file("", 0), *name = strrchr(path, '/');
	char *directory = strndup(path, (size_t)(name - path)), option[256], config[256];
	char *const mariadb[] = { "mariadbd", option, NULL };
	char *const postgresql[] = { "postgres", "-c", config, NULL };
	int root = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct server_cache cache;
	size_t length;
	char *text = with_names(data, size, name, &length);

	if (root < 0)
		abort();
	fuzz_file(text, length);
	snprintf(option, sizeof(option), "--defaults-file=%s", name);
	snprintf(config, sizeof(config), "config_file=%s", name);
	if (!server_cache_of("mariadbd", mariadb, root, "/nowhere", &cache) || cache.bytes < -1)
		abort();
	server_cache_clear(&cache);
	if (!server_cache_of("postgres", postgresql, root, "/nowhere", &cache))
		abort();
	server_cache_clear(&cache);
	free(text);
	free(directory);
	close(root);
	return 0;
}
