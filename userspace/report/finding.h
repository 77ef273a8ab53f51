/* SPDX-License-Identifier: GPL-2.0 */
/*
 * finding.h: what a check of recordings found, one at a time, and the formats that terminals, pull
 * requests and CI servers read. Who finds and who prints know nothing of each other: a comparison, a
 * budget, a test fill the same list.
 */
#ifndef MEMTOLL_FINDING_H
#define MEMTOLL_FINDING_H

#include <glib.h>
#include <stdbool.h>
#include <stdio.h>

/*
 * All texts are plain and may come from a recording: each format escapes them. title, before, after
 * and key are there; of the others NULL is what is not known.
 */
struct finding {
	char *title;	   /* what it is, without figures: "calloc clears more memory" */
	char *site;	   /* the code, as a sentence names it: "parse_row, by calloc" */
	char *file;	   /* its source file, as the debug information has it */
	unsigned int line; /* in it; 0: not known */
	char *before;	   /* figures with their unit: "1.00 GiB"; "limit 10.0 MiB" */
	char *after;
	/* The same for programs: "bytes", "count", with "_per_second"; static. NULL: no numbers. */
	const char *unit;
	double number[2];
	const char *accuracy; /* of them: "exact", "estimate", "at_least"; static */
	char *reason;	      /* the likely one, one sentence */
	char *key;   /* what it is known by from run to run: a toll and a site, no figures */
	bool failed; /* it is over a limit, and no mere observation */
};

struct finding_list {
	char *title;	      /* of the whole, one line: "memtoll: 2 places cost more" */
	char *summary;	      /* one sentence: what was set against what */
	GPtrArray *findings;  /* struct finding, the worst first */
	unsigned int checked; /* sites, or bounds, that were looked at, those that hold included */
	GPtrArray *notes;     /* char: what a reader must know before trusting it */
	GPtrArray *reproduce; /* char: command lines, one after the other */
};

enum finding_format {
	FINDING_TEXT,
	FINDING_MARKDOWN, /* GitHub's and GitLab's: CommonMark with tables */
	FINDING_JUNIT,	  /* XML that CI servers read as results of tests */
	FINDING_GITHUB,	  /* workflow commands: annotations at the line */
	FINDING_GITLAB,	  /* a Code Quality report, JSON */
	FINDING_JSON,	  /* all there is, for a program: of --json, and no name of a format */
};

/* Findings that a screen has room for, in text and Markdown. */
#define FINDINGS_SHOWN 10
/* Of a site's name, which may be that of a template. */
#define FINDING_SITE_COLUMNS 160

struct finding_list *finding_list_new(void);
void finding_list_free(struct finding_list *list);

/* An empty one at the end of the list, which keeps it. */
struct finding *finding_add(struct finding_list *list);
void finding_note(struct finding_list *list, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* "text", "markdown", "junit", "github", "gitlab"; false: none of them. */
bool finding_format_parse(const char *name, enum finding_format *format);
#define FINDING_FORMATS "text, markdown, junit, github, gitlab"

/* 0 or -errno, after a message. */
int finding_print(const struct finding_list *list, enum finding_format format, FILE *out);

/*
 * The file as a forge knows it: without the checkout's directory, which is GITHUB_WORKSPACE,
 * CI_PROJECT_DIR or the current one. What lies elsewhere stays as it is.
 */
char *finding_path(const char *file);

/* Of one format each. */
void finding_print_markdown(const struct finding_list *list, FILE *out);
void finding_print_junit(const struct finding_list *list, FILE *out);
void finding_print_github(const struct finding_list *list, FILE *out);
int finding_print_gitlab(const struct finding_list *list, FILE *out);
int finding_print_json(const struct finding_list *list, FILE *out);
/* "site: before -> after. reason" */
char *finding_sentence(const struct finding *finding);

#endif /* MEMTOLL_FINDING_H */
