// SPDX-License-Identifier: GPL-2.0
#include "watch/trigger.h"

#include <glib.h>
#include <string.h>

#include "base/options.h"

#define DEPTH_MAX 16
#define NODES_MAX 64

enum kind { GREATER, AT_LEAST, LESS, AT_MOST, AND, OR };

/* Left and right are indices of nodes that were made before. */
struct node {
	enum kind kind;
	char *name;
	double number;
	guint left, right;
};

struct trigger {
	char *text;
	GArray *nodes; /* struct node; the last one is the whole */
	uint64_t for_ns;
	bool fired;
	uint64_t differs_since_ns; /* from what it is; 0: it does not */
};

struct parser {
	const char *at;
	GArray *nodes;
	bool (*known)(const char *name);
	unsigned int depth;
	char *error;
};

static bool fail(struct parser *parser, const char *wanted)
{
	if (!parser->error)
		parser->error =
			*parser->at ? g_strdup_printf("%s is wanted at '%s'", wanted, parser->at) :
				      g_strdup_printf("%s is wanted at its end", wanted);
	return false;
}

static void skip_blanks(struct parser *parser)
{
	while (g_ascii_isspace(*parser->at))
		parser->at++;
}

static bool is_of_name(char letter)
{
	return g_ascii_isalnum(letter) || letter == '.' || letter == '_';
}

static bool take_word(struct parser *parser, const char *word)
{
	size_t length = strlen(word);

	skip_blanks(parser);
	if (strncmp(parser->at, word, length) || is_of_name(parser->at[length]))
		return false;
	parser->at += length;
	return true;
}

static bool take_sign(struct parser *parser, const char *sign)
{
	skip_blanks(parser);
	if (!g_str_has_prefix(parser->at, sign))
		return false;
	parser->at += strlen(sign);
	return true;
}

static bool add_node(struct parser *parser, struct node node, guint *index)
{
	*index = parser->nodes->len;
	g_array_append_val(parser->nodes, node);
	return parser->nodes->len <= NODES_MAX || fail(parser, "something shorter");
}

static bool parse_condition(struct parser *parser, guint *index);

static bool parse_comparison(struct parser *parser, guint *index)
{
	static const struct {
		const char *sign;
		enum kind kind;
	} signs[] = { { ">=", AT_LEAST }, { "<=", AT_MOST }, { ">", GREATER }, { "<", LESS } };
	struct node node = { 0 };
	const char *begin;
	char *end;
	size_t i;

	if (take_sign(parser, "(")) {
		bool good = parser->depth++ < DEPTH_MAX ? parse_condition(parser, index) :
							  fail(parser, "something simpler");

		parser->depth--;
		return good && (take_sign(parser, ")") || fail(parser, "')'"));
	}
	skip_blanks(parser);
	begin = parser->at;
	while (is_of_name(*parser->at))
		parser->at++;
	node.name = g_strndup(begin, parser->at - begin);
	if (!add_node(parser, node, index))
		return false;
	if (!parser->known(node.name)) {
		parser->at = begin;
		return fail(parser, "a name (swap.share, zeroing.share, psi.memory.some ...)");
	}
	for (i = 0; i < G_N_ELEMENTS(signs); i++)
		if (take_sign(parser, signs[i].sign))
			break;
	if (i == G_N_ELEMENTS(signs))
		return fail(parser, "one of > >= < <=");
	skip_blanks(parser);
	node.kind = signs[i].kind;
	node.number = g_ascii_strtod(parser->at, &end);
	if (end == parser->at || !(node.number >= 0 && node.number < 1e18))
		return fail(parser, "a number");
	parser->at = end;
	g_array_index(parser->nodes, struct node, *index) = node;
	return true;
}

static bool parse_chain(struct parser *parser, const char *word, enum kind kind,
			bool (*part)(struct parser *parser, guint *index), guint *index)
{
	bool good = part(parser, index);

	while (good && take_word(parser, word)) {
		struct node node = { .kind = kind, .left = *index };

		good = part(parser, &node.right) && add_node(parser, node, index);
	}
	return good;
}

static bool parse_term(struct parser *parser, guint *index)
{
	return parse_chain(parser, "and", AND, parse_comparison, index);
}

static bool parse_condition(struct parser *parser, guint *index)
{
	return parse_chain(parser, "or", OR, parse_term, index);
}

static bool parse_for(struct parser *parser, uint64_t *for_ns)
{
	g_autofree char *time = NULL;

	if (!take_word(parser, "for"))
		return true;
	skip_blanks(parser);
	time = g_strchomp(g_strdup(parser->at));
	if (!parse_duration(time, for_ns))
		return fail(parser, "a time (30s, 2m)");
	parser->at += strlen(parser->at);
	return true;
}

static void clear_node(gpointer data)
{
	g_free(((struct node *)data)->name);
}

struct trigger *trigger_parse(const char *text, bool (*known)(const char *name), char **error)
{
	struct trigger *trigger = g_new0(struct trigger, 1);
	struct parser parser = { .at = text, .known = known };
	guint whole;

	trigger->text = g_strdup(text);
	trigger->nodes = parser.nodes = g_array_new(FALSE, FALSE, sizeof(struct node));
	g_array_set_clear_func(trigger->nodes, clear_node);
	*error = NULL;
	if (parse_condition(&parser, &whole) && parse_for(&parser, &trigger->for_ns)) {
		skip_blanks(&parser);
		if (!*parser.at)
			return trigger;
		fail(&parser, "and, or, or for TIME");
	}
	*error = parser.error;
	trigger_free(trigger);
	return NULL;
}

void trigger_free(struct trigger *trigger)
{
	g_array_free(trigger->nodes, TRUE);
	g_free(trigger->text);
	g_free(trigger);
}

const char *trigger_text(const struct trigger *trigger)
{
	return trigger->text;
}

bool trigger_holds(const struct trigger *trigger,
		   bool (*value)(void *context, const char *name, double *number), void *context)
{
	bool holds[NODES_MAX] = { false };
	double number;
	guint i;

	for (i = 0; i < trigger->nodes->len; i++) {
		const struct node *node = &g_array_index(trigger->nodes, struct node, i);

		if (node->kind == AND)
			holds[i] = holds[node->left] && holds[node->right];
		else if (node->kind == OR)
			holds[i] = holds[node->left] || holds[node->right];
		else if (!value(context, node->name, &number))
			holds[i] = false;
		else if (node->kind == GREATER)
			holds[i] = number > node->number;
		else if (node->kind == AT_LEAST)
			holds[i] = number >= node->number;
		else if (node->kind == LESS)
			holds[i] = number < node->number;
		else
			holds[i] = number <= node->number;
	}
	return holds[trigger->nodes->len - 1];
}

bool trigger_step(struct trigger *trigger, uint64_t now_ns, bool holds)
{
	if (holds == trigger->fired) {
		trigger->differs_since_ns = 0;
		return trigger->fired;
	}
	if (!trigger->differs_since_ns)
		trigger->differs_since_ns = now_ns;
	if (now_ns - trigger->differs_since_ns >= trigger->for_ns) {
		trigger->fired = holds;
		trigger->differs_since_ns = 0;
	}
	return trigger->fired;
}
