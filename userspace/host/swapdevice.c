// SPDX-License-Identifier: GPL-2.0
#include "host/swapdevice.h"

#include <glib.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "host/proc.h"

struct device {
	char *path;
	const char *kind; /* "disk", "file", "zram" */
	uint64_t size_bytes;
	int priority;
};

struct swap_devices {
	char *prefix;
	GArray *devices; /* struct device, in the kernel's order */
};

static void device_clear(gpointer data)
{
	struct device *device = data;

	g_free(device->path);
}

static GArray *devices_new(void)
{
	GArray *devices = g_array_new(FALSE, TRUE, sizeof(struct device));

	g_array_set_clear_func(devices, device_clear);
	return devices;
}

/*
 * By the kernel's name of the block device: udev chooses the names of device nodes, and a container
 * may have none.
 */
static bool is_zram(const char *prefix, const char *path)
{
	g_autofree char *node = g_strconcat(prefix, path, NULL);
	g_autofree char *link = NULL, *target = NULL, *name = NULL;
	struct stat status;

	if (!stat(node, &status) && S_ISBLK(status.st_mode)) {
		link = g_strdup_printf("%s/sys/dev/block/%u:%u", prefix, major(status.st_rdev),
				       minor(status.st_rdev));
		target = g_file_read_link(link, NULL);
	}
	name = g_path_get_basename(target ? target : path);
	return g_str_has_prefix(name, "zram") && g_ascii_isdigit(name[strlen("zram")]);
}

/* "path type size used priority", blanks or tabs between; sizes in KiB. */
static bool parse_device(const char *prefix, const char *line, struct device *device)
{
	static const char deleted[] = " (deleted)";
	unsigned long long size;
	char type[16];
	char *path;

	if (sscanf(line, "%*s %15s %llu %*s %d", type, &size, &device->priority) != 3 ||
	    line[0] != '/')
		return false;
	path = proc_unescape(line);
	if (g_str_has_suffix(path, deleted))
		path[strlen(path) - strlen(deleted)] = '\0';
	device->path = path;
	device->size_bytes = size > UINT64_MAX / 1024 ? UINT64_MAX : size * 1024;
	if (!strcmp(type, "file"))
		device->kind = "file";
	else
		device->kind = is_zram(prefix, path) ? "zram" : "disk";
	return true;
}

static GArray *read_devices(const char *prefix)
{
	g_autofree char *path = g_strconcat(prefix, "/proc/swaps", NULL);
	g_autofree char *text = NULL;
	g_auto(GStrv) lines = NULL;
	GArray *devices = devices_new();
	size_t i;

	if (!g_file_get_contents(path, &text, NULL, NULL))
		return devices;
	lines = g_strsplit(text, "\n", -1);
	/* The first line holds the columns' names. */
	for (i = 1; lines[0] && lines[i] && devices->len < SWAP_TYPES; i++) {
		struct device device = {};

		if (parse_device(prefix, lines[i], &device))
			g_array_append_val(devices, device);
	}
	return devices;
}

bool swap_is_on(void)
{
	g_autoptr(GArray) devices = read_devices("");

	return devices->len > 0;
}

static bool equal(const GArray *a, const GArray *b)
{
	guint i;

	if (a->len != b->len)
		return false;
	for (i = 0; i < a->len; i++) {
		const struct device *one = &g_array_index(a, struct device, i);
		const struct device *other = &g_array_index(b, struct device, i);

		if (strcmp(one->path, other->path) || strcmp(one->kind, other->kind) ||
		    one->size_bytes != other->size_bytes || one->priority != other->priority)
			return false;
	}
	return true;
}

struct swap_devices *swap_devices_read_below(const char *root)
{
	struct swap_devices *devices = g_new0(struct swap_devices, 1);

	devices->prefix = g_strdup(root);
	devices->devices = read_devices(root);
	return devices;
}

struct swap_devices *swap_devices_read(void)
{
	return swap_devices_read_below("");
}

void swap_devices_free(struct swap_devices *devices)
{
	if (!devices)
		return;
	g_array_free(devices->devices, TRUE);
	g_free(devices->prefix);
	g_free(devices);
}

bool swap_devices_refresh(struct swap_devices *devices)
{
	GArray *now = read_devices(devices->prefix);
	bool changed = !equal(devices->devices, now);

	g_array_free(changed ? devices->devices : now, TRUE);
	if (changed)
		devices->devices = now;
	return changed;
}

size_t swap_devices_count(const struct swap_devices *devices)
{
	return devices->devices->len;
}

/*
 * Range of devices that may have this number: numbers ascend with the list, so device i has at
 * least the number i, and each number seen below or above belongs to one more device on that side.
 * False: none, the list is older or newer than the numbers.
 */
static bool candidates(const struct swap_devices *devices, const bool *types_seen,
		       unsigned int type, size_t *first, size_t *last)
{
	size_t count = devices->devices->len, below = 0, above = 0;
	unsigned int i;

	for (i = 0; i < SWAP_TYPES; i++) {
		if (types_seen[i] && i < type)
			below++;
		if (types_seen[i] && i > type)
			above++;
	}
	if (type >= SWAP_TYPES || below + above + 1 > count)
		return false;
	*first = below;
	*last = MIN(type, count - 1 - above);
	return *first <= *last;
}

bool swap_devices_is_zram(const struct swap_devices *devices, const bool *types_seen,
			  unsigned int type, bool *known)
{
	size_t first, last, i, zram = 0;

	*known = false;
	if (!candidates(devices, types_seen, type, &first, &last))
		return false;
	for (i = first; i <= last; i++)
		zram += !strcmp(g_array_index(devices->devices, struct device, i).kind, "zram");
	*known = !zram || zram == last - first + 1;
	return *known && zram;
}

/* Number of a device; -1 where the numbers seen leave several possible. */
static int type_of(const struct swap_devices *devices, const bool *types_seen, size_t index)
{
	size_t first, last;
	unsigned int type;

	for (type = 0; types_seen && type < SWAP_TYPES; type++)
		if (types_seen[type] && candidates(devices, types_seen, type, &first, &last) &&
		    first == index && last == index)
			return (int)type;
	return -1;
}

int swap_devices_each(const struct swap_devices *devices, const bool *types_seen,
		      int (*each)(void *context, const struct swap_device *device), void *context)
{
	int err = 0;
	size_t i;

	for (i = 0; i < devices->devices->len && !err; i++) {
		const struct device *device = &g_array_index(devices->devices, struct device, i);

		err = each(context, &(struct swap_device){
					    .path = device->path,
					    .kind = device->kind,
					    .size_bytes = device->size_bytes,
					    .priority = device->priority,
					    .type = type_of(devices, types_seen, i),
				    });
	}
	return err;
}
