# SPDX-License-Identifier: GPL-2.0
#
# memtoll: `make demo` builds it and shows it at work, `make test` runs all tests, `make help` lists
# the rest. Installs what is missing to build from the distribution's packages (.ci/deps).

# As many jobs as there are processors, unless make was told otherwise.
ifeq ($(MAKELEVEL)$(findstring jobserver,$(MAKEFLAGS)),0)
MAKEFLAGS += -j$(shell nproc)
endif

O ?= .output
# One name for one place: what objects depend on is kept by their names.
override O := $(patsubst $(CURDIR)/%,%,$(abspath $(O)))
PREFIX ?= /usr/local
DESTDIR ?=
CLANG ?= clang
BPFTOOL ?= $(firstword $(wildcard $(shell command -v bpftool 2>/dev/null) /usr/sbin/bpftool))
PKG_CONFIG ?= pkg-config
CLANG_FORMAT ?= clang-format
CLANG_TIDY ?= clang-tidy

ARCH := $(shell uname -m | sed 's/x86_64/x86/; s/aarch64/arm64/')
VERSION := $(shell packaging/version)

LIBS := libbpf libelf libdw sqlite3 zlib liblzma glib-2.0 ncursesw
WARNINGS := -Wall -Wextra -Wtype-limits -Werror
CFLAGS ?= -O2 -g
ALL_CFLAGS = -std=gnu11 -D_GNU_SOURCE $(WARNINGS) -iquote . -iquote userspace -I$(O) $(CFLAGS) $(SANITIZE) \
	     $(shell $(PKG_CONFIG) --cflags $(LIBS) 2>/dev/null)
# What the demo shows has its name in a stripped binary, too.
EXPORTED := -Wl,--export-dynamic-symbol=clear_block
# What is a C++ library's (toml++) is compiled as such, and needs no libstdc++ beside the binary.
ALL_CXXFLAGS = -std=c++17 -fno-exceptions -fno-rtti -D_GNU_SOURCE $(WARNINGS) -iquote userspace $(CFLAGS) $(SANITIZE) \
	       $(shell $(PKG_CONFIG) --cflags glib-2.0 2>/dev/null)
ALL_LIBS = $(shell $(PKG_CONFIG) --libs $(LIBS) 2>/dev/null) -lZydis -liberty -l:libstdc++.a -lpthread -lm
BPF_CFLAGS := -g -O2 -mcpu=v3 -target bpf -D__TARGET_ARCH_$(ARCH) -Ivmlinux/$(ARCH) -Ibpf \
	      -Wall -Wextra -Wno-unused-parameter -Werror

# SAN=1: userspace with address and undefined-behaviour sanitizers, in a place of its own.
ifeq ($(SAN),1)
override O := $(O)/san
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
endif

ifeq ($(V),1)
Q :=
say = @:
else
Q := @
say = @printf '  %-8s %s\n' '$(1)' '$(patsubst $(O)/%,%,$(2))'
endif

# What defines a map comes before what uses it: bpftool before 7.4 mixes them up otherwise.
BPF_FIRST := state/settings state/losses state/emit state/processes state/threads stacks/stack \
	     stacks/unwind_tables stacks/memo stacks/python stacks/ruby stacks/php stacks/v8 stacks/java \
	     memory/page_state probes/read
BPF_SOURCES := $(filter-out bpf/checks/% bpf/machine/%,$(wildcard bpf/*/*.bpf.c))
BPF_OBJECTS := $(patsubst bpf/%.c,$(O)/bpf/%.o,$(BPF_FIRST:%=bpf/%.bpf.c) \
	       $(filter-out $(BPF_FIRST:%=bpf/%.bpf.c),$(BPF_SOURCES)))
SKELETONS := $(O)/memtoll.skel.h $(O)/check_pagetable.skel.h $(O)/check_arguments.skel.h \
	     $(O)/machine.skel.h $(O)/memory_figures.skel.h
# At advice_source a view is created whose text is in the tables of advice.sql.
SQL := $(addprefix userspace/views/,$(shell sed '/^advice_source$$/,$$d' userspace/views/order))
VERDICT_SQL := $(addprefix userspace/views/,$(shell sed '1,/^advice_source$$/d' userspace/views/order))
GENERATED := $(SKELETONS) $(O)/recording_sql.h $(O)/report_schema.h $(O)/interval_schema.h $(O)/top_schema.h $(O)/hold_schema.h \
	$(O)/timeline_sql.h $(O)/redact_sql.h

SOURCES := $(filter-out userspace/tests/%,$(wildcard userspace/*/*.c))
CXX_SOURCES := $(wildcard userspace/*/*.cc)
OBJECTS := $(SOURCES:userspace/%.c=$(O)/userspace/%.o) $(CXX_SOURCES:userspace/%.cc=$(O)/userspace/%.o)
LIBRARY := $(O)/libmemtoll.a
UNIT_SOURCES := $(wildcard userspace/tests/*/test_*.c)
UNIT_TESTS := $(patsubst %.c,$(O)/tests/%,$(notdir $(UNIT_SOURCES)))
vpath test_%.c $(sort $(dir $(UNIT_SOURCES)))
WORKLOADS := $(patsubst userspace/tests/workloads/%.c,$(O)/workloads/%,\
	     $(filter-out userspace/tests/workloads/lib%,$(wildcard userspace/tests/workloads/*.c))) \
	     $(patsubst userspace/tests/workloads/%.c,$(O)/workloads/%.so,\
	     $(wildcard userspace/tests/workloads/lib*.c))
FUZZERS := $(patsubst userspace/tests/fuzz/%.c,$(O)/fuzz/%,$(wildcard userspace/tests/fuzz/fuzz_*.c))

.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: all help deps deps-lint deps-test demo test test-releases test-extras test-measure test-kernels \
	test-mutants test-margins bench bench-table fuzz soak check tests-build lint lint-format lint-tidy format clean

all: deps ## build memtoll (default)
	$(Q)$(MAKE) --no-print-directory $(O)/memtoll

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' Makefile packaging/packaging.mk
	@printf '\n%s\n' 'Variables: V=1 shows commands, SAN=1 builds with sanitizers, O=DIR builds there,' \
		'PREFIX=DIR and DESTDIR=DIR for install, CC= and CLANG= choose compilers.'

deps:
	$(Q).ci/deps

deps-lint:
	$(Q).ci/deps lint

deps-test:
	$(Q).ci/deps test

demo: all ## build, trace a real program and print its verdict
	$(Q)echo
	$(Q)$$([ "$$(id -u)" = 0 ] || echo sudo) $(O)/memtoll demo

tests-build: deps-test
	$(Q)$(MAKE) --no-print-directory $(O)/memtoll $(O)/bench/empty_probes $(UNIT_TESTS) $(WORKLOADS) \
		$(FUZZERS)
	$(Q)$(MAKE) --no-print-directory SAN=1 O=$(O) san-tests
	$(Q)MEMTOLL=$(abspath $(O)/memtoll) PYTHONPATH=userspace/tests \
		/usr/bin/python3 -B analysis/tests/extras_environment.py

.PHONY: san-tests
san-tests: $(O)/memtoll $(UNIT_TESTS) $(FUZZERS)

SAN_TESTS = $(UNIT_TESTS:$(O)/%=$(O)/san/%)
# With sanitizers the same code shows more; make check runs it without. Here both, where a test's source
# tells them apart.
PLAIN_TESTS = $(patsubst %.c,$(O)/tests/%,$(notdir $(shell grep -l __SANITIZE_ADDRESS__ $(UNIT_SOURCES))))
RUN = MEMTOLL=$(abspath $(O)/memtoll) MEMTOLL_SAN=$(abspath $(O)/san/memtoll) userspace/tests/run

test: tests-build ## all that is true on any machine; asks for root only for what traces
	$(Q)$(RUN) test $(PLAIN_TESTS) $(SAN_TESTS)

test-releases: tests-build ## runtimes and libraries of releases that the distribution does not have; two minutes
	$(Q)$(RUN) releases

test-extras: tests-build ## the optional parts of the Python package, in an environment that has what they need
	$(Q)$(RUN) extras

test-measure: tests-build ## what decides by times and prices; wants a quiet machine
	$(Q)$(RUN) measure

# Debian's names for 5.10, 6.1, 6.12 and its newest; systemd: as process 1 of a guest. A part of them:
# make test-kernels SUITES=sid
SUITES ?= bullseye bookworm trixie sid systemd
test-kernels: tests-build ## end-to-end tests in Debian's kernels under emulation; some minutes
	$(Q)MEMTOLL_KERNELS='$(SUITES)' $(RUN) kernels

test-mutants: deps-test ## break memtoll on purpose, in two dozen places: do the tests notice? half an hour
	$(Q)/usr/bin/python3 -B userspace/tests/mutants/mutants.py

# At least two.
RUNS ?= 3
test-margins: tests-build ## make test RUNS times: which bounds lie near what varies? half an hour
	$(Q)MEMTOLL=$(abspath $(O)/memtoll) /usr/bin/python3 -B userspace/tests/margins.py $(RUNS)

HOURS ?= 1
soak: deps-test ## watch and top on a machine whose programs start and end: does anything grow, or get lost?
	$(Q)$(MAKE) --no-print-directory $(O)/memtoll $(WORKLOADS)
	$(Q)$$([ "$$(id -u)" = 0 ] || echo sudo) env MEMTOLL=$(abspath $(O)/memtoll) /usr/bin/python3 -B \
		userspace/tests/soak/soak.py $(HOURS)

# FUZZ_SECONDS for each of them; FUZZ_SEED makes the tries of an earlier run again.
FUZZ_SECONDS ?= 60
fuzz: deps-test ## damaged recordings, ELF files, what programs name and write, until something breaks
	$(Q)$(MAKE) --no-print-directory $(WORKLOADS)
	$(Q)$(MAKE) --no-print-directory SAN=1 O=$(O) san-fuzzers
	$(Q)mkdir -p $(O)/fuzz
	$(Q)MEMTOLL_SAN=$(abspath $(O)/san/memtoll) userspace/tests/fuzz/run --seconds $(FUZZ_SECONDS) \
		$(if $(FUZZ_SEED),--seed $(FUZZ_SEED)) --keep $(O)/fuzz

.PHONY: san-fuzzers
san-fuzzers: $(O)/memtoll $(FUZZERS)

# T=ledger, T=test_cli_usage.py, T=userspace/tests/ledger/test_ledger.c: only that; whatever is built already is taken.
ifdef T
ONE_UNIT := $(notdir $(basename $(firstword $(wildcard userspace/tests/*/test_$(T).c userspace/tests/*/$(T).c) \
	    $(filter %.c,$(wildcard $(T))))))
# The fuzzers with sanitizers.
check: $(if $(ONE_UNIT),$(O)/tests/$(ONE_UNIT),$(O)/memtoll $(WORKLOADS)) $(if $(findstring fuzz,$(T)),tests-build)
	$(Q)$(if $(ONE_UNIT),$<,$(RUN) one '$(T)')
else
check: deps-test ## the tests that need no root and are quick, in a minute; T=NAME or T=PATH: one of all the tests
	$(Q)$(MAKE) --no-print-directory $(O)/memtoll $(UNIT_TESTS) $(WORKLOADS) $(FUZZERS)
	$(Q)$(RUN) check $(UNIT_TESTS)
endif

# Full: five interleaved rounds against what else is installed; BENCH='--rounds 9' and the like.
bench: tests-build ## measure what tracing costs, renew doc/overhead.md; half an hour
	$(Q)$$([ "$$(id -u)" = 0 ] || echo sudo) env MEMTOLL=$(abspath $(O)/memtoll) /usr/bin/python3 -B \
		userspace/tests/bench/bench.py $(BENCH)

bench-table: ## the tables of doc/overhead.md from the last results
	$(Q)/usr/bin/python3 -B userspace/tests/bench/table.py

lint: deps-lint ## what can be said without running it: format, common bugs, types, shell
	$(Q)$(RUN) lint

C_FILES = $(shell git ls-files '*.c' '*.h' ':(glob)userspace/*/*.cc' | grep -v ^vmlinux/)

lint-format:
	$(Q)$(CLANG_FORMAT) --dry-run -Werror $(C_FILES)

format: deps-lint ## write the C sources as .clang-format has it
	$(Q)$(CLANG_FORMAT) -i $(C_FILES)

# The workloads do on purpose what is a mistake elsewhere; what stands in for the kernel is compiled otherwise.
TIDY_SOURCES := $(SOURCES) $(filter-out userspace/tests/workloads/% userspace/tests/bpf/%,\
		$(wildcard userspace/tests/*/*.c))
TIDY_STAMPS := $(TIDY_SOURCES:userspace/%.c=$(O)/tidy/%.stamp)
# A third of the time that paths through all called functions take, and found as much.
TIDY_FLAGS := $(foreach flag,-Xclang -analyzer-config -Xclang mode=shallow,--extra-arg=$(flag))

lint-tidy: $(TIDY_STAMPS)

$(O)/tidy/%.stamp: userspace/%.c .clang-tidy | $(GENERATED)
	$(call say,TIDY,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -iquote userspace/tests $(ALL_CFLAGS) -MM -MP -MT $@ -MF $(@:.stamp=.d) $<
	$(Q)said=$$($(CLANG_TIDY) --quiet $(TIDY_FLAGS) $< -- -iquote userspace/tests $(ALL_CFLAGS) 2>/dev/null) || \
		{ printf '%s\n' "$$said"; exit 1; }
	$(Q)touch $@

clean: ## remove everything built
	$(Q)rm -rf $(O)

# ---- BPF ----

$(O)/bpf/%.bpf.o: bpf/%.bpf.c Makefile
	$(call say,BPF,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -MMD -MP -c $< -o $@

$(O)/bpf/memtoll.linked.o: $(BPF_OBJECTS)
	$(call say,LINK,$@)
	$(Q)$(BPFTOOL) gen object $@ $^

$(O)/bpf/check_pagetable.linked.o: $(O)/bpf/checks/check_pagetable.bpf.o
	$(call say,LINK,$@)
	$(Q)$(BPFTOOL) gen object $@ $^

$(O)/bpf/check_arguments.linked.o: $(O)/bpf/checks/check_arguments.bpf.o \
		$(O)/bpf/checks/check_slow_path.bpf.o
	$(call say,LINK,$@)
	$(Q)$(BPFTOOL) gen object $@ $^

$(O)/bpf/machine.linked.o: $(O)/bpf/machine/machine.bpf.o
	$(call say,LINK,$@)
	$(Q)$(BPFTOOL) gen object $@ $^

$(O)/bpf/memory_figures.linked.o: $(O)/bpf/machine/memory_figures.bpf.o
	$(call say,LINK,$@)
	$(Q)$(BPFTOOL) gen object $@ $^

$(O)/%.skel.h: $(O)/bpf/%.linked.o
	$(call say,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name $*_bpf > $@

# ---- userspace ----

# As an array of bytes: a string literal may have only 4095 characters in ISO C, and needs quoting.
as_array = echo 'static const char $(1)[] = {'; cat $(2) | od -An -v -td1 -w16 | \
	   sed 's/\(-\{0,1\}[0-9][0-9]*\)/\1,/g'; echo '0 };'

$(O)/recording_sql.h: $(SQL) $(VERDICT_SQL) userspace/views/order Makefile
	$(call say,SQL,$@)
	$(Q)mkdir -p $(@D)
	$(Q){ $(call as_array,recording_sql,$(SQL)); $(call as_array,verdict_sql,$(VERDICT_SQL)); } > $@

$(O)/%_schema.h: userspace/report/%.schema.json Makefile
	$(call say,JSON,$@)
	$(Q)mkdir -p $(@D)
	$(Q){ $(call as_array,$*_schema,$<); } > $@

$(O)/top_schema.h: userspace/top/top.schema.json Makefile
	$(call say,JSON,$@)
	$(Q)mkdir -p $(@D)
	$(Q){ $(call as_array,top_schema,$<); } > $@

$(O)/hold_schema.h: userspace/hold/hold.schema.json Makefile
	$(call say,JSON,$@)
	$(Q)mkdir -p $(@D)
	$(Q){ $(call as_array,hold_schema,$<); } > $@

TIMELINE_SQL := analysis/memtoll/timeline_reads.sql analysis/memtoll/timeline.sql

$(O)/userspace/report/examples.o: $(wildcard analysis/memtoll/examples/*.memtoll)

$(O)/timeline_sql.h: $(TIMELINE_SQL) Makefile
	$(call say,SQL,$@)
	$(Q)mkdir -p $(@D)
	$(Q){ $(call as_array,timeline_sql,$(TIMELINE_SQL)); } > $@

$(O)/redact_sql.h: analysis/memtoll/redact.sql Makefile
	$(call say,SQL,$@)
	$(Q)mkdir -p $(@D)
	$(Q){ $(call as_array,redact_sql,$<); } > $@

# Rewritten only when the version changed. Its object is memtoll's alone, and stands in its link before
# the library, which has a version.o for all others: a commit rebuilds nothing else.
$(O)/version.c: FORCE
	$(Q)mkdir -p $(@D)
	$(Q)printf '#include "base/version.h"\n\nconst char memtoll_version[] = "%s";\n' '$(VERSION)' > $@.new
	$(Q)cmp -s $@.new $@ && rm -f $@.new || mv $@.new $@

$(O)/version.o: $(O)/version.c userspace/base/version.h Makefile
	$(call say,CC,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -c $< -o $@

.PHONY: FORCE
FORCE:

$(O)/userspace/%.o: userspace/%.c Makefile | $(GENERATED)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c $< -o $@

$(O)/userspace/%.o: userspace/%.cc Makefile
	$(call say,CXX,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) $(ALL_CXXFLAGS) -MMD -MP -c $< -o $@

$(LIBRARY): $(filter-out %/main.o,$(OBJECTS))
	$(call say,AR,$@)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^

$(O)/memtoll: $(O)/userspace/cli/main.o $(O)/version.o $(LIBRARY)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(SANITIZE) $(LDFLAGS) $(EXPORTED) $^ $(ALL_LIBS) -o $@

include packaging/packaging.mk

# ---- tests ----

$(O)/tests/%: %.c $(LIBRARY) Makefile
	$(call say,TEST,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -iquote userspace/tests $(ALL_CFLAGS) -MMD -MP $< $(LIBRARY) $(ALL_LIBS) -lcmocka -ldl -o $@

# What of bpf/ is logic, compiled for this machine: the helpers are functions of kernel.c. Without the
# library, and so in seconds: of the sanitizers' checks all that is inlined made 19 s, not optimized 4.
# To BPF the address of a field at NULL is one that cannot be read, no more.
NATIVE_CFLAGS := -I userspace/tests/bpf/shim -I bpf -I vmlinux/$(ARCH) -D__TARGET_ARCH_$(ARCH) \
		 -Wno-unused-parameter -Wno-unused-function -Wno-sign-compare \
		 $(if $(SANITIZE),-fno-sanitize=null -O0)

$(O)/tests/test_bpf_%: test_bpf_%.c $(O)/tests/kernel.o Makefile
	$(call say,TEST,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(NATIVE_CFLAGS) -MMD -MP $< $(O)/tests/kernel.o $(ALL_LIBS) -lcmocka -o $@

$(O)/tests/kernel.o: userspace/tests/bpf/kernel.c Makefile
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c $< -o $@

$(O)/fuzz/%: userspace/tests/fuzz/%.c userspace/tests/fuzz/driver.c $(wildcard userspace/tests/fuzz/*.h) $(LIBRARY) Makefile
	$(call say,FUZZER,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(filter %.c,$^) $(LIBRARY) $(ALL_LIBS) -o $@

$(O)/bench/%: userspace/tests/bench/%.c $(LIBRARY) Makefile
	$(call say,BENCH,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP $< $(LIBRARY) $(ALL_LIBS) -o $@

# With frame pointers, and without the compiler's knowledge of malloc: it would drop the calls.
WORKLOAD_CFLAGS := -std=gnu11 -O1 -g -fno-omit-frame-pointer -fno-builtin -Wall -Wextra -Werror

$(O)/workloads/lib%.so: userspace/tests/workloads/lib%.c Makefile
	$(call say,WORKLOAD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(WORKLOAD_CFLAGS) -MMD -MP -fPIC -shared $< -o $@ -ldl

$(O)/workloads/%: userspace/tests/workloads/%.c Makefile
	$(call say,WORKLOAD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(WORKLOAD_CFLAGS) -MMD -MP $< -o $@ -pthread -ldl

-include $(wildcard $(O)/bpf/*/*.d $(O)/userspace/*/*.d $(O)/tests/*.d $(O)/bench/*.d $(O)/workloads/*.d \
	$(O)/tidy/*/*.d $(O)/tidy/tests/*/*.d)
