// SPDX-License-Identifier: GPL-2.0
#include "targets/observers.h"

#include <glib.h>

struct observers {
	GArray *table; /* struct observer */
};

struct observers *observers_new(void)
{
	struct observers *observers = g_new0(struct observers, 1);

	observers->table = g_array_new(FALSE, FALSE, sizeof(struct observer));
	return observers;
}

void observers_free(struct observers *observers)
{
	if (!observers)
		return;
	g_array_free(observers->table, TRUE);
	g_free(observers);
}

void observers_add(struct observers *observers, const struct observer *observer)
{
	g_array_append_vals(observers->table, observer, 1);
}

static const struct observer *observer_at(const struct observers *observers, guint i)
{
	return i < observers->table->len ? &g_array_index(observers->table, struct observer, i) :
					   NULL;
}

void observers_forked(const struct observers *observers, enum observer_moment moment, pid_t parent,
		      pid_t child)
{
	const struct observer *observer;
	guint i;

	for (i = 0; (observer = observer_at(observers, i)); i++)
		if (observer->moment == moment && observer->forked)
			observer->forked(observer->state, parent, child);
}

void observers_executed(const struct observers *observers, enum observer_moment moment, pid_t pid)
{
	const struct observer *observer;
	guint i;

	for (i = 0; (observer = observer_at(observers, i)); i++)
		if (observer->moment == moment && observer->executed)
			observer->executed(observer->state, pid);
}

void observers_exited(const struct observers *observers, enum observer_moment moment, pid_t pid)
{
	const struct observer *observer;
	guint i;

	for (i = 0; (observer = observer_at(observers, i)); i++)
		if (observer->moment == moment && observer->exited)
			observer->exited(observer->state, pid);
}

void observers_mapped(const struct observers *observers, pid_t pid, const struct maps *maps,
		      bool new_image)
{
	const struct observer *observer;
	guint i;

	for (i = 0; (observer = observer_at(observers, i)); i++)
		if (observer->mapped)
			observer->mapped(observer->state, pid, maps, new_image);
}

void observers_forgotten(const struct observers *observers, pid_t pid)
{
	const struct observer *observer;
	guint i;

	for (i = 0; (observer = observer_at(observers, i)); i++)
		if (observer->forgotten)
			observer->forgotten(observer->state, pid);
}
