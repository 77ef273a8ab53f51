// SPDX-License-Identifier: GPL-2.0
/* On GTree, which since GLib 2.68 finds the nearest key, as a range lookup needs. */
#include "base/ranges.h"

static gint compare_addresses(gconstpointer a, gconstpointer b, gpointer unused)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	(void)unused;
	return x < y ? -1 : x > y;
}

GTree *ranges_new(GDestroyNotify destroy)
{
	return g_tree_new_full(compare_addresses, NULL, NULL, destroy);
}

/* g_tree_replace(): replaces the key as well, since the old key is in the old range. */
void ranges_add(GTree *ranges, struct range *range)
{
	g_tree_replace(ranges, &range->start, range);
}

/* One by one: g_tree_remove_all() is of GLib 2.70. */
void ranges_clear(GTree *ranges)
{
	GTreeNode *node;

	while ((node = g_tree_node_first(ranges)))
		g_tree_remove(ranges, g_tree_node_key(node));
}

struct range *range_at(GTree *ranges, uint64_t address)
{
	GTreeNode *above = g_tree_upper_bound(ranges, &address);
	GTreeNode *node = above ? g_tree_node_previous(above) : g_tree_node_last(ranges);
	struct range *range = node ? g_tree_node_value(node) : NULL;

	return range && range->end > address ? range : NULL;
}

struct range *range_overlapping(GTree *ranges, uint64_t start, uint64_t end)
{
	struct range *range = range_at(ranges, start);
	GTreeNode *node;

	if (range)
		return range;
	node = g_tree_lower_bound(ranges, &start);
	range = node ? g_tree_node_value(node) : NULL;
	return range && range->start < end ? range : NULL;
}
