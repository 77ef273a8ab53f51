// SPDX-License-Identifier: GPL-2.0
#include "recording/machine_facts.h"

#include "host/cgroup.h"
#include "host/swapdevice.h"
#include "host/vmstat.h"
#include "recording/recording.h"

static int record_group(void *recording, const struct memory_cgroup *group)
{
	return recording_memory_cgroup(recording,
				       &(struct memory_cgroup_fact){
					       .path = group->path,
					       .version = group->version,
					       .limit_bytes = group->limit_bytes,
					       .limit_path = group->limit_path,
					       .swap_limit_bytes = group->swap_limit_bytes,
					       .usage_bytes = group->usage_bytes,
					       .peak_bytes = group->peak_bytes,
					       .file_bytes = group->file_bytes,
					       .beside_bytes = group->beside_bytes,
				       });
}

static int record_counter(void *recording, const char *path, const char *name, int64_t count)
{
	return recording_memory_cgroup_counter(recording, path, name, count);
}

int memory_cgroups_record(struct memory_cgroups *groups, struct recording *recording)
{
	return memory_cgroups_visit(groups, &(struct memory_cgroup_visitor){
						    .group = record_group,
						    .counter = record_counter,
						    .context = recording,
					    });
}

static int record_device(void *recording, const struct swap_device *device)
{
	return recording_swap_device(recording, &(struct swap_device_fact){
							.path = device->path,
							.kind = device->kind,
							.size_bytes = device->size_bytes,
							.priority = device->priority,
							.type = device->type,
						});
}

int swap_devices_record(const struct swap_devices *devices, const bool *types_seen,
			struct recording *recording)
{
	return swap_devices_each(devices, types_seen, record_device, recording);
}

static int record_system_counter(void *recording, const char *name, int64_t count)
{
	return recording_system_counter(recording, name, count);
}

int system_counters_record(const struct system_counters *since, struct recording *recording)
{
	return system_counters_each(since, record_system_counter, recording);
}
