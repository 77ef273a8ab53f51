// SPDX-License-Identifier: GPL-2.0
#include "session/progress.h"

#include <stdio.h>

#include "base/message.h"
#include "session/session.h"

#define S 1000000000ULL

static const char *target(const struct session_config *config, char *text, size_t size)
{
	if (config->cgroup)
		snprintf(text, size, "%s", config->cgroup);
	else if (config->pid_count == 1)
		snprintf(text, size, "process %d", config->pids[0]);
	else
		snprintf(text, size, "%zu processes", config->pid_count);
	return text;
}

void progress_attaching(const struct session_config *config, const char *step)
{
	char text[128];

	if (!config->command)
		status_line("attaching to %s: %s", target(config, text, sizeof(text)), step);
}

void progress_recording(const struct session_config *config, uint64_t elapsed_ns)
{
	char text[128];

	if (config->command)
		return;
	target(config, text, sizeof(text));
	if (config->duration_ns)
		status_line("recording %s: %.0f of %.3g s; ^C ends it now", text,
			    (double)elapsed_ns / S, (double)config->duration_ns / S);
	else
		status_line("recording %s: %.0f s; ^C ends it", text, (double)elapsed_ns / S);
}

void progress_ending(const struct session_config *config, const char *step)
{
	if (config->command)
		return;
	if (step)
		status_line("ending: %s", step);
	else
		status_line(NULL);
}
