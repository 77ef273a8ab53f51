# SPDX-License-Identifier: GPL-2.0
#
# What goes with the binary, where all of it is installed, and packages of it. Included by the Makefile.

BINDIR ?= $(PREFIX)/bin
MANDIR ?= $(PREFIX)/share/man
DOCDIR ?= $(PREFIX)/share/doc/memtoll
BASHDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR ?= $(PREFIX)/share/zsh/site-functions
FISHDIR ?= $(PREFIX)/share/fish/vendor_completions.d
UNITDIR ?= $(PREFIX)/lib/systemd/system

P := $(O)/packaging

# A command's page is there when its file is. Its options, as completion's, are what the program says of itself.
MAN_PAGES := $(patsubst packaging/man/%,$(P)/man/%,$(wildcard packaging/man/*.8))
COMPLETIONS := $(P)/memtoll.bash $(P)/memtoll.zsh $(P)/memtoll.fish
UNITS := $(patsubst packaging/systemd/%,$(P)/systemd/%,$(wildcard packaging/systemd/*.service packaging/systemd/*.timer))
# A dashboard, alerts and settings of the service: to be copied from there.
MONITORING := $(sort $(wildcard packaging/monitoring/*))
DOCS := $(P)/doc/README.md $(patsubst userspace/doc/%,$(P)/doc/%,$(wildcard userspace/doc/*.md))

.PHONY: install install-built uninstall dist deb wheel test-packages deps-packages

install: all ## binary, manual pages, completion and documents to $(DESTDIR)$(PREFIX)
	$(Q)$(MAKE) --no-print-directory install-built

install-built: $(O)/memtoll $(MAN_PAGES) $(COMPLETIONS) $(UNITS) $(DOCS)
	$(Q)install -D -m 755 $(O)/memtoll $(DESTDIR)$(BINDIR)/memtoll
	$(Q)install -d $(DESTDIR)$(MANDIR)/man8 $(DESTDIR)$(DOCDIR)
	$(Q)install -m 644 $(MAN_PAGES) $(DESTDIR)$(MANDIR)/man8
	$(Q)install -D -m 644 $(P)/memtoll.bash $(DESTDIR)$(BASHDIR)/memtoll
	$(Q)install -D -m 644 $(P)/memtoll.zsh $(DESTDIR)$(ZSHDIR)/_memtoll
	$(Q)install -D -m 644 $(P)/memtoll.fish $(DESTDIR)$(FISHDIR)/memtoll.fish
	$(Q)install -m 644 LICENSE $(DOCS) $(DESTDIR)$(DOCDIR)
	$(Q)install -d $(DESTDIR)$(DOCDIR)/examples
	$(Q)install -m 644 $(MONITORING) $(DESTDIR)$(DOCDIR)/examples
	$(Q)$(if $(UNITS),install -d $(DESTDIR)$(UNITDIR) && install -m 644 $(UNITS) $(DESTDIR)$(UNITDIR))

uninstall: ## remove what install put there
	$(Q)rm -f $(DESTDIR)$(BINDIR)/memtoll $(MAN_PAGES:$(P)/man/%=$(DESTDIR)$(MANDIR)/man8/%) \
		$(DESTDIR)$(BASHDIR)/memtoll $(DESTDIR)$(ZSHDIR)/_memtoll $(DESTDIR)$(FISHDIR)/memtoll.fish \
		$(UNITS:$(P)/systemd/%=$(DESTDIR)$(UNITDIR)/%) \
		$(MONITORING:packaging/monitoring/%=$(DESTDIR)$(DOCDIR)/examples/%) \
		$(DESTDIR)$(DOCDIR)/LICENSE $(DOCS:$(P)/doc/%=$(DESTDIR)$(DOCDIR)/%)
	$(Q)rmdir $(DESTDIR)$(DOCDIR)/examples $(DESTDIR)$(DOCDIR) 2>/dev/null || true

$(P)/man/memtoll.8: packaging/man/memtoll.8 packaging/man/options.awk $(O)/memtoll
	$(call say,MAN,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(O)/memtoll --list-commands | awk -f packaging/man/options.awk - $< > $@

$(P)/man/memtoll-%.8: packaging/man/memtoll-%.8 packaging/man/options.awk $(O)/memtoll
	$(call say,MAN,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(O)/memtoll $* --list-options > $@.list
	$(Q)awk -f packaging/man/options.awk $@.list $< > $@
	$(Q)rm $@.list

$(P)/options: packaging/options $(O)/memtoll
	$(Q)mkdir -p $(@D)
	$(Q)packaging/options $(O)/memtoll > $@

$(P)/memtoll.%: packaging/completion/memtoll.% packaging/completion/list.awk packaging/completion/%.awk \
		$(P)/options
	$(call say,COMPLETE,$@)
	$(Q)awk -f packaging/completion/list.awk -f packaging/completion/$*.awk $(P)/options $(P)/options $< > $@

$(P)/systemd/%: packaging/systemd/% FORCE
	$(Q)mkdir -p $(@D)
	$(Q)sed 's,@BINDIR@,$(BINDIR),g' $< > $@

# They lie beside one another there. What they link to that is not installed is in the sources.
at_home = sed 's,(userspace/doc/,(,g; s,(\.\./\.\./README\.md,(README.md,g' $< > $@

$(P)/doc/README.md: README.md
	$(Q)mkdir -p $(@D)
	$(Q)$(at_home)

$(P)/doc/%.md: userspace/doc/%.md
	$(Q)mkdir -p $(@D)
	$(Q)$(at_home)

# ---- packages ----

deps-packages:
	$(Q).ci/deps packages

dist: all ## a tarball that runs on other distributions, in .output/dist
	$(Q)$(MAKE) --no-print-directory O=$(O) dist-built

deb: deps-packages ## a Debian package, in .output/deb
	$(Q)packaging/deb $(abspath $(O)/deb)

wheel: ## the Python package memtoll as a wheel, in .output/wheel
	$(Q)packaging/wheel $(abspath $(O)/wheel)

test-packages: deps-lint deps-packages ## build and try the packages, in Debian's root file systems; needs a network
	$(Q)$(MAKE) --no-print-directory dist deb wheel
	$(Q)MEMTOLL=$(abspath $(O)/memtoll) $$([ "$$(id -u)" = 0 ] || echo sudo -E) \
		/usr/bin/python3 -B userspace/tests/rootfs.py bookworm trixie
	$(Q)$(RUN) packages

# Each library that has an archive here is linked in; what has none goes along in lib/memtoll. libc stays the
# machine's own: a static one could not read its users and time zones, and is no smaller.
STATIC_NAMES = $(patsubst -l%,%,$(filter -l%,$(shell $(PKG_CONFIG) --static --libs $(LIBS) 2>/dev/null) -lZydis -lZycore -liberty -lstdc++))
has_archive = $(filter-out lib$(1).a,$(shell $(CC) -print-file-name=lib$(1).a))
KEPT_DYNAMIC := c m pthread dl rt
DIST_LIBS = -Wl,--as-needed -Wl,--start-group $(foreach name,$(STATIC_NAMES),$(if $(filter $(name),$(KEPT_DYNAMIC)),,\
	    $(if $(call has_archive,$(name)),-l:lib$(name).a,-l$(name)))) -Wl,--end-group -lpthread -lm -ldl

.PHONY: dist-built
dist-built: $(P)/memtoll $(MAN_PAGES) $(COMPLETIONS) $(UNITS) $(DOCS)
	+$(Q)packaging/dist $(P) $(O)/dist $(filter-out $(KEPT_DYNAMIC),$(sort $(STATIC_NAMES)))

$(P)/arc4random.o: packaging/arc4random.c Makefile
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -c $< -o $@

# Beside the binary; where that has file capabilities the loader takes no such path, but only a plain one.
$(P)/memtoll: $(O)/userspace/cli/main.o $(O)/version.o $(P)/arc4random.o $(LIBRARY)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $(EXPORTED) $^ $(DIST_LIBS) -static-libgcc \
		'-Wl,-rpath,$$ORIGIN/../lib/memtoll:/usr/local/lib/memtoll' -o $@
