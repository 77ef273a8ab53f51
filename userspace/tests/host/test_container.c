// SPDX-License-Identifier: GPL-2.0
/*
 * test_container.c: containers by the paths that runtimes give their cgroups, by the files that they
 * keep of them, and by name. Paths and files are as the runtimes named here write them.
 */
#define _GNU_SOURCE 1
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <glib.h>
#include <glib/gstdio.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/container.h"
#include "host/container_find.h"
#include "trees.h"

#define A "0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9"
#define B "0a1b2c3d99999999999999999999999999999999999999999999999999999fff"
#define C "ccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc1"
#define POD "1b4e28ba-2fa1-11d2-883f-0016d3cca427"
#define POD_ "1b4e28ba_2fa1_11d2_883f_0016d3cca427"
#define STATIC "d2a5f8c0e1b34a6789abcdef01234567"
#define BURSTABLE "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" POD_ ".slice"
#define USER "/user.slice/user-1000.slice/user@1000.service/user.slice"

static char *root; /* stands for the root directory */

static const struct {
	const char *path;
	const char *id; /* NULL: of no container */
	const char *runtime;
	const char *pod_uid;
	const char *own; /* its own cgroup; NULL: the path */
} shapes[] = {
	/* Docker: cgroupfs, systemd, and what a container has made below; in another one. */
	{ "/docker/" A, A, "docker", NULL, NULL },
	{ "/system.slice/docker-" A ".scope", A, "docker", NULL, NULL },
	{ "/system.slice/docker-" A ".scope/init.scope", A, "docker", NULL,
	  "/system.slice/docker-" A ".scope" },
	{ "/docker/" A "/system.slice/nginx.service", A, "docker", NULL, "/docker/" A },
	{ "/docker/" B "/docker/" A, A, "docker", NULL, NULL },
	{ "/docker/" B "/kubelet/kubepods/besteffort/pod" POD "/" A, A, NULL, POD, NULL },
	{ "/kubepods/pod" POD "/" A, A, NULL, POD, NULL },
	{ "/kubepods/burstable/pod" POD "/" A, A, NULL, POD, NULL },
	{ "/kubepods/burstable/pod" STATIC "/" A, A, NULL, STATIC, NULL },
	{ "/kubepods/besteffort/pod" POD "/crio-" A, A, "cri-o", POD, NULL },
	{ BURSTABLE "/cri-containerd-" A ".scope", A, "containerd", POD, NULL },
	{ BURSTABLE "/crio-" A ".scope", A, "cri-o", POD, NULL },
	{ BURSTABLE "/crio-" A ".scope/container", A, "cri-o", POD, BURSTABLE "/crio-" A ".scope" },
	{ BURSTABLE "/docker-" A ".scope", A, "docker", POD, NULL },
	{ "/kubepods.slice/kubepods-pod" POD_ ".slice/cri-containerd-" A ".scope", A, "containerd",
	  POD, NULL },
	{ "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" STATIC ".slice/crio-" A
	  ".scope",
	  A, "cri-o", STATIC, NULL },
	{ "/system.slice/containerd.service/kubepods-besteffort-pod" POD_
	  ".slice:cri-containerd:" A,
	  A, "containerd", POD, NULL },
	{ "/system.slice:docker:" A, A, "docker", NULL, NULL },
	{ "/system.slice/nerdctl-" A ".scope", A, "containerd", NULL, NULL },
	{ "/default/" A, A, NULL, NULL, NULL },
	{ "/machine.slice/libpod-" A ".scope", A, "podman", NULL, NULL },
	{ "/machine.slice/libpod-" A ".scope/container", A, "podman", NULL,
	  "/machine.slice/libpod-" A ".scope" },
	{ USER "/libpod-" A ".scope/container", A, "podman", NULL, USER "/libpod-" A ".scope" },
	{ "/libpod_parent/libpod-" A, A, "podman", NULL, NULL },
	{ "/libpod_parent/" A, A, "podman", NULL, NULL },
	{ "/machine.slice/machine-libpod_pod_" B ".slice/libpod-" A ".scope", A, "podman", NULL,
	  NULL },
	{ "/system.slice/podman-web.service/libpod-payload-" A, A, "podman", NULL, NULL },
	/* Of none: what looks after one, a pod without one, other units, and no ids. */
	{ "/machine.slice/libpod-conmon-" A ".scope", NULL, NULL, NULL, NULL },
	{ BURSTABLE "/crio-conmon-" A ".scope", NULL, NULL, NULL, NULL },
	{ BURSTABLE, NULL, NULL, NULL, NULL },
	{ "/kubepods/burstable/pod" POD, NULL, NULL, NULL, NULL },
	{ "/", NULL, NULL, NULL, NULL },
	{ "", NULL, NULL, NULL, NULL },
	{ "////", NULL, NULL, NULL, NULL },
	{ ":::", NULL, NULL, NULL, NULL },
	{ "/system.slice/docker.service", NULL, NULL, NULL, NULL },
	{ "/docker", NULL, NULL, NULL, NULL },
	{ "/docker/buildkit", NULL, NULL, NULL, NULL },
	{ "/docker/" A "0", NULL, NULL, NULL, NULL },
	{ "/docker/0" A ".scope", NULL, NULL, NULL, NULL },
	{ "/docker/0A1B2C3D4E5F60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9", NULL, NULL,
	  NULL, NULL },
	{ "/docker/0a1b2c3d4e5f", NULL, NULL, NULL, NULL },
	{ "/system.slice/docker-.scope", NULL, NULL, NULL, NULL },
	{ ".scope", NULL, NULL, NULL, NULL },
	/* Names that lie: a pod's is taken whole or not at all. */
	{ "/xpod" POD "/" A, A, NULL, NULL, NULL },
	{ "/pod1234/" A, A, NULL, NULL, NULL },
	{ "pod/" A, A, NULL, NULL, NULL },
};

static void assert_text(const char *found, const char *expected)
{
	if (expected)
		assert_string_equal(found, expected);
	else
		assert_null(found);
}

static void test_shapes(void **state)
{
	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(shapes); i++) {
		struct container container;
		bool found = container_of_path(shapes[i].path, &container);
		const char *own = shapes[i].own ? shapes[i].own : shapes[i].path;

		assert_int_equal(found, shapes[i].id != NULL);
		if (found) {
			assert_string_equal(container.id, shapes[i].id);
			assert_int_equal(container.path_length, strlen(own));
		}
		assert_text(container.runtime, shapes[i].runtime);
		assert_text(container.pod_uid, shapes[i].pod_uid);
		container_clear(&container);
	}
}

/* ---- what runtimes keep of them ---- */

static void put(const char *path, const char *text)
{
	g_autofree char *name = g_build_filename(root, path, NULL);
	g_autofree char *directory = g_path_get_dirname(name);

	assert_int_equal(g_mkdir_with_parents(directory, 0755), 0);
	assert_true(g_file_set_contents(name, text, -1, NULL));
}

#define DOCKER "var/lib/docker/containers/"
#define TASKS "run/containerd/io.containerd.runtime.v2.task/"
#define STORAGE "var/lib/containers/storage/overlay-containers/"
#define CRIO "run/containers/storage/overlay-containers/"
#define LABELS(kind)                                                                   \
	"\"io.kubernetes." kind "name\":\"app\",\"io.kubernetes.pod.name\":\"web-1\"," \
	"\"io.kubernetes.pod.namespace\":\"shop\",\"io.kubernetes.pod.uid\":\"" POD "\""

static const struct {
	const char *file; /* NULL: the one of before */
	const char *text;
	const char *path;
	const char *title, *image, *uid, *runtime;
} kept[] = {
	{ DOCKER A "/config.v2.json",
	  "{\"ID\":\"" A "\",\"Name\":\"/web\",\"Config\":{\"Image\":\"redis:7\","
	  "\"Env\":[\"A=/b\"],\"Labels\":{\"com.docker.compose.service\":\"x\"}}}",
	  "/docker/" A, "web", "redis:7", NULL, "docker" },
	{ DOCKER A "/config.v2.json",
	  "{\"ID\":\"" A "\",\"Name\":\"/k8s_app_web-1\",\"Config\":{\"Image\":\"sha256:1\","
	  "\"Labels\":{" LABELS("container.") "}}}",
	  "/kubepods/pod" POD "/" A, "shop/web-1/app", "sha256:1", POD, "docker" },
	/* Without names, and of another container. */
	{ DOCKER A "/config.v2.json", "{\"ID\":\"" A "\"}", "/docker/" A, "0a1b2c3d4e5f", NULL,
	  NULL, "docker" },
	{ DOCKER A "/config.v2.json", "{\"ID\":\"" B "\",\"Name\":\"/web\"}", "/docker/" A,
	  "0a1b2c3d4e5f", NULL, NULL, "docker" },
	{ TASKS "k8s.io/" A "/config.json",
	  "{\"ociVersion\":\"1.1.0\",\"annotations\":{"
	  "\"io.kubernetes.cri.container-name\":\"app\","
	  "\"io.kubernetes.cri.container-type\":\"container\","
	  "\"io.kubernetes.cri.image-name\":\"docker.io/library/redis:7\","
	  "\"io.kubernetes.cri.sandbox-name\":\"web-1\","
	  "\"io.kubernetes.cri.sandbox-namespace\":\"shop\","
	  "\"io.kubernetes.cri.sandbox-uid\":\"" POD "\"}}",
	  "/default/" A, "shop/web-1/app", "docker.io/library/redis:7", POD, "containerd" },
	{ TASKS "k8s.io/" A "/config.json",
	  "{\"annotations\":{\"io.kubernetes.cri.container-type\":\"sandbox\","
	  "\"io.kubernetes.cri.sandbox-name\":\"web-1\","
	  "\"io.kubernetes.cri.sandbox-namespace\":\"shop\"}}",
	  BURSTABLE "/cri-containerd-" A ".scope", "shop/web-1/POD", NULL, POD, "containerd" },
	{ TASKS "default/" A "/config.json", "{\"annotations\":{\"nerdctl/name\":\"web\"}}",
	  "/system.slice/nerdctl-" A ".scope", "web", NULL, NULL, "containerd" },
	{ CRIO A "/userdata/config.json",
	  "{\"annotations\":{" LABELS("container.") ",\"io.kubernetes.cri-o.ImageName\":"
						    "\"quay.io/redis:7\"}}",
	  BURSTABLE "/crio-" A ".scope", "shop/web-1/app", "quay.io/redis:7", POD, "cri-o" },
	{ STORAGE "containers.json",
	  "[{\"id\":\"" B "\",\"names\":[\"db\"]},7,null,{\"id\":\"" A "\",\"names\":[\"web\"],"
	  "\"metadata\":\"{\\\"image-name\\\":\\\"docker.io/redis:7\\\",\\\"name\\\":\\\"web\\\"}\"}]",
	  "/machine.slice/libpod-" A ".scope/container", "web", "docker.io/redis:7", NULL,
	  "podman" },
	{ STORAGE "volatile-containers.json", "[{\"id\":\"" A "\",\"names\":[\"brief\"]}]",
	  "/machine.slice/libpod-" A ".scope", "brief", NULL, NULL, "podman" },
	/* Nothing is there at all. */
	{ "var/x", "", "/docker/" A, "0a1b2c3d4e5f", NULL, NULL, "docker" },
	/* What is no JSON, or not what it should be, or a name that no runtime allows. */
	{ DOCKER A "/config.v2.json", "{", "/docker/" A, "0a1b2c3d4e5f", NULL, NULL, "docker" },
	{ DOCKER A "/config.v2.json", "[[[[]]]]", "/docker/" A, "0a1b2c3d4e5f", NULL, NULL,
	  "docker" },
	{ DOCKER A "/config.v2.json",
	  "{\"ID\":\"" A "\",\"Name\":{\"a\":1},\"Config\":{\"Labels\":\"x\",\"Image\":7}}",
	  "/docker/" A, "0a1b2c3d4e5f", NULL, NULL, "docker" },
	{ DOCKER A "/config.v2.json", "{\"ID\":\"" A "\",\"Name\":\"a\\u001b[2Jb\"}", "/docker/" A,
	  "0a1b2c3d4e5f", NULL, NULL, "docker" },
	{ DOCKER A "/config.v2.json", "{\"ID\":\"" A "\",\"Name\":\"a b\"}", "/docker/" A,
	  "0a1b2c3d4e5f", NULL, NULL, "docker" },
	{ STORAGE "containers.json", "{\"id\":\"" A "\"}", "/machine.slice/libpod-" A ".scope",
	  "0a1b2c3d4e5f", NULL, NULL, "podman" },
};

static void assert_names(const char *path, const char *title, const char *image, const char *uid,
			 const char *runtime)
{
	struct container container;
	g_autofree char *shown = NULL;

	assert_true(container_of_path(path, &container));
	container_read_names(root, &container);
	shown = container_title(&container);
	assert_string_equal(shown, title);
	assert_text(container.image, image);
	assert_text(container.pod_uid, uid);
	assert_text(container.runtime, runtime);
	container_clear(&container);
}

static void test_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(kept); i++) {
		g_autofree char *file = g_build_filename(root, kept[i].file, NULL);

		put(kept[i].file, kept[i].text);
		assert_names(kept[i].path, kept[i].title, kept[i].image, kept[i].uid,
			     kept[i].runtime);
		assert_int_equal(unlink(file), 0);
	}
}

#define WEB "{\"ID\":\"" A "\",\"Name\":\"/web\"}"
#define UNKNOWN "/docker/" A, "0a1b2c3d4e5f", NULL, NULL, "docker"

/* What leads elsewhere, is no file, is too long, or was put there by somebody else. */
static void test_hostile_files(void **state)
{
	g_autofree char *own = g_build_filename(root, DOCKER A, NULL);
	g_autofree char *file = g_build_filename(own, "config.v2.json", NULL);
	g_autofree char *all = g_build_filename(root, DOCKER, NULL);
	g_autofree char *elsewhere = g_build_filename(root, "elsewhere/config.v2.json", NULL);
	g_autofree char *there = g_path_get_dirname(elsewhere), *blanks = NULL;

	(void)state;
	put("elsewhere/config.v2.json", WEB);
	put(DOCKER A "/config.v2.json", WEB);
	assert_names("/docker/" A, "web", NULL, NULL, "docker");

	assert_int_equal(chmod(all, 0777), 0);
	assert_names(UNKNOWN);
	assert_int_equal(chmod(all, 0710), 0);
	assert_names("/docker/" A, "web", NULL, NULL, "docker");

	assert_int_equal(unlink(file), 0);
	assert_int_equal(symlink(elsewhere, file), 0);
	assert_names(UNKNOWN);
	assert_int_equal(unlink(file), 0);
	assert_int_equal(mkfifo(file, 0600), 0); /* nobody writes: it would wait for ever */
	assert_names(UNKNOWN);
	assert_int_equal(unlink(file), 0);
	assert_int_equal(mkdir(file, 0700), 0);
	assert_names(UNKNOWN);
	assert_int_equal(rmdir(file), 0);

	blanks = g_strnfill(9 << 20, ' ');
	memcpy(blanks, WEB, strlen(WEB));
	put(DOCKER A "/config.v2.json", blanks);
	assert_names(UNKNOWN);
	blanks[7 << 20] = '\0';
	put(DOCKER A "/config.v2.json", blanks);
	assert_names("/docker/" A, "web", NULL, NULL, "docker");

	/* So deep that a reader by recursion would end. */
	memset(blanks, '[', 1 << 20);
	put(DOCKER A "/config.v2.json", blanks);
	assert_names(UNKNOWN);
	assert_int_equal(unlink(file), 0);
	assert_int_equal(rmdir(own), 0);
	assert_int_equal(symlink(there, own), 0);
	assert_names(UNKNOWN);
	assert_int_equal(unlink(own), 0);
}

#define AT_HOME "home/x/.local/share/"
#define ROOTLESS AT_HOME "containers/storage/overlay-containers/"
#define SESSION(user) "/user.slice/user-" user ".slice/user@" user ".service/user.slice/"

/* Where the daemon's settings have moved them, and where users keep theirs, as the passwords' file says. */
static void test_elsewhere(void **state)
{
	g_autofree char *user = g_strdup_printf("%u", (unsigned int)geteuid());
	g_autofree char *passwd = g_strdup_printf("nobody:x:65534:65534::/:/bin/false\n"
						  "x:x:%s:%s::/home/x:/bin/sh\n",
						  user, user);
	g_autofree char *podman =
		g_strdup_printf(SESSION("%s") "libpod-" A ".scope/container", user, user);
	g_autofree char *docker = g_strdup_printf(SESSION("%s") "docker-" A ".scope", user, user);
	g_autofree char *storage = g_build_filename(root, ROOTLESS, NULL);

	(void)state;
	put("srv/docker/containers/" A "/config.v2.json", WEB);
	assert_names(UNKNOWN);
	put("etc/docker/daemon.json", "{\"data-root\": \"/srv/docker\"}");
	assert_names("/docker/" A, "web", NULL, NULL, "docker");
	put("etc/docker/daemon.json", "{\"data-root\": [\"/srv/docker\"]}");
	assert_names(UNKNOWN);
	put("etc/docker/daemon.json", "{}");
	assert_names(UNKNOWN);

	put(ROOTLESS "containers.json", "[{\"id\":\"" A "\",\"names\":[\"own\"]}]");
	put(AT_HOME "docker/containers/" A "/config.v2.json", WEB);
	assert_names(podman, "0a1b2c3d4e5f", NULL, NULL, "podman");
	put("etc/passwd", passwd);
	assert_names(podman, "own", NULL, NULL, "podman");
	assert_names(docker, "web", NULL, NULL, "docker");
	/* Another user's session, and no user's at all. */
	assert_names(SESSION("4242") "libpod-" A ".scope", "0a1b2c3d4e5f", NULL, NULL, "podman");
	assert_names("/machine.slice/libpod-" A ".scope", "0a1b2c3d4e5f", NULL, NULL, "podman");
	/* Others could have written it. */
	assert_int_equal(chmod(storage, 0777), 0);
	assert_names(podman, "0a1b2c3d4e5f", NULL, NULL, "podman");
	assert_int_equal(chmod(storage, 0700), 0);
	if (!geteuid()) {
		assert_int_equal(chown(storage, 65534, 65534), 0);
		assert_names(podman, "0a1b2c3d4e5f", NULL, NULL, "podman");
	}
}

/* ---- by name ---- */

static void make_group(const char *path)
{
	g_autofree char *name = g_strconcat(root, "/cgroup", path, NULL);

	assert_int_equal(g_mkdir_with_parents(name, 0755), 0);
}

static unsigned int find(const char *name, char **said)
{
	g_autofree char *hierarchy = g_build_filename(root, "cgroup", NULL);
	struct container_found found;
	unsigned int count;

	count = container_find(hierarchy, root, name, &found, said);
	if (count == 1)
		*said = g_strdup_printf("%s %s", found.title, found.directory + strlen(hierarchy));
	container_found_clear(&found);
	return count;
}

static void assert_found(const char *name, unsigned int expected, const char *text)
{
	g_autofree char *said = NULL;

	assert_int_equal(find(name, &said), expected);
	assert_text(said, text);
}

static void test_find(void **state)
{
	(void)state;
	make_group("/docker/" A);
	make_group("/docker/" A "/init.scope");
	make_group("/docker/" B);
	make_group(BURSTABLE "/cri-containerd-" C ".scope");
	make_group("/system.slice/web.service");
	put(DOCKER A "/config.v2.json", WEB);
	put(TASKS "k8s.io/" C "/config.json",
	    "{\"annotations\":{\"io.kubernetes.cri.container-name\":\"app\","
	    "\"io.kubernetes.cri.sandbox-name\":\"web-1\","
	    "\"io.kubernetes.cri.sandbox-namespace\":\"shop\"}}");
	assert_found("web", 1, "web /docker/" A);
	assert_found("app", 1, "shop/web-1/app " BURSTABLE "/cri-containerd-" C ".scope");
	assert_found("web-1/app", 1, "shop/web-1/app " BURSTABLE "/cri-containerd-" C ".scope");
	assert_found("shop/web-1/app", 1,
		     "shop/web-1/app " BURSTABLE "/cri-containerd-" C ".scope");
	assert_found("web-1", 1, "shop/web-1 " BURSTABLE);
	assert_found("shop/web-1", 1, "shop/web-1 " BURSTABLE);
	assert_found(C, 1, "shop/web-1/app " BURSTABLE "/cri-containerd-" C ".scope");
	assert_found("0a1b2c3d4e5f6", 1, "web /docker/" A);
	assert_found("0a1", 0, NULL);
	assert_found("we", 0, NULL);
	assert_found("pp", 0, NULL);
	assert_found("", 0, NULL);
	assert_found("..", 0, NULL);

	/* Which of them is not for memtoll to say. */
	{
		g_autofree char *said = NULL;

		assert_int_equal(find("0a1b2c3d", &said), 2);
		assert_non_null(strstr(said, "web (0a1b2c3d4e5f)"));
		assert_non_null(strstr(said, "0a1b2c3d9999"));
		assert_null(strchr(said, '\n'));
	}
	put(DOCKER B "/config.v2.json", "{\"ID\":\"" B "\",\"Name\":\"/web\"}");
	{
		g_autofree char *said = NULL;

		assert_int_equal(find("web", &said), 2);
		assert_string_equal(said, "web (0a1b2c3d4e5f), web (0a1b2c3d9999)");
	}
}

static int make_root(void **state)
{
	(void)state;
	root = g_dir_make_tmp("memtoll-XXXXXX", NULL);
	return root ? 0 : -1;
}

static int remove_root(void **state)
{
	(void)state;
	remove_tree(root);
	g_clear_pointer(&root, g_free);
	return 0;
}

#define IN_ROOT(test) cmocka_unit_test_setup_teardown(test, make_root, remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shapes), IN_ROOT(test_names), IN_ROOT(test_hostile_files),
		IN_ROOT(test_elsewhere),       IN_ROOT(test_find),
	};

	return cmocka_run_group_tests_name("container", tests, NULL, NULL);
}
