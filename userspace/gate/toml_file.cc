// SPDX-License-Identifier: GPL-2.0
/* toml_file.cc: between toml++ and C. No exception leaves it, as it is built without. */
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#define TOML_ENABLE_WINDOWS_COMPAT 0
#define TOML_MAX_NESTED_VALUES 16
/*
 * toml++ 3.3 asserts in parse_key() what "[[" before the end of a line does not hold, and says what is
 * wrong a few lines below: it is not ended there, nor is what it asserts assumed, as NDEBUG would.
 */
#undef NDEBUG
#define TOML_ASSERT(expression) static_cast<void>(0)
#include <toml++/toml.h>

#include "gate/toml_file.h"

#define DOTS_MOST 128 /* of a line, comments with it */

namespace
{

void value_free(gpointer data)
{
	auto value = static_cast<toml_value *>(data);

	g_strfreev(value->keys);
	g_free(value->text);
	g_free(value);
}

char *copy(std::string_view text)
{
	return g_strndup(text.data(), text.size());
}

/* C's texts end at a NUL, which TOML's may have. */
bool is_text(std::string_view text)
{
	return text.find('\0') == text.npos;
}

/* keys: of the tables around it, and its own. */
void add_value(GPtrArray *values, GPtrArray *keys, const toml::node &node)
{
	auto value = g_new0(toml_value, 1);

	value->keys = g_new0(char *, keys->len + 1);
	for (guint i = 0; i < keys->len; i++)
		value->keys[i] = g_strdup(static_cast<char *>(g_ptr_array_index(keys, i)));
	value->line = node.source().begin.line;
	value->kind = TOML_OTHER;
	if (auto text = node.as_string(); text && is_text(text->get())) {
		value->kind = TOML_TEXT;
		value->text = copy(text->get());
	} else if (auto number = node.as_integer()) {
		value->kind = TOML_INTEGER;
		value->number = number->get();
	}
	g_ptr_array_add(values, value);
}

/* How deep tables lie in tables is bounded by toml++ and is_shallow(). */
void add_table(GPtrArray *values, GPtrArray *keys, const toml::table &table)
{
	for (auto &&[key, node] : table) {
		/* No word that a bound has, and none that is shown as one. */
		g_ptr_array_add(keys, is_text(key.str()) ? copy(key.str()) : g_strdup("\\u0000"));
		if (auto inner = node.as_table())
			add_table(values, keys, *inner);
		else
			add_value(values, keys, node);
		g_ptr_array_set_size(keys, keys->len - 1);
	}
}

gint by_line(gconstpointer one, gconstpointer two)
{
	auto a = *static_cast<toml_value *const *>(one), b = *static_cast<toml_value *const *>(two);

	return (a->line > b->line) - (a->line < b->line);
}

/*
 * Each dot of a key may be a table in a table, and toml++ goes down into them by calling itself: a
 * line of a hundred thousand would end at the stack's end. *line: of the first that has too many.
 */
bool is_shallow(std::string_view text, unsigned int *line)
{
	size_t dots = 0;

	*line = 1;
	for (char c : text) {
		dots = c == '\n' ? 0 : dots + (c == '.');
		if (dots > DOTS_MOST)
			return false;
		*line += c == '\n';
	}
	return true;
}

} // namespace

GPtrArray *toml_values(const char *text, size_t length, char **error, unsigned int *line)
{
	GPtrArray *values, *keys;

	if (!is_shallow(std::string_view(text, length), line)) {
		*error = g_strdup_printf("more than %d dots in a line", DOTS_MOST);
		return nullptr;
	}
	toml::parse_result result = toml::parse(std::string_view(text, length));
	if (!result) {
		*error = copy(result.error().description());
		*line = result.error().source().begin.line;
		return nullptr;
	}
	values = g_ptr_array_new_with_free_func(value_free);
	keys = g_ptr_array_new_with_free_func(g_free);
	add_table(values, keys, result.table());
	g_ptr_array_unref(keys);
	g_ptr_array_sort(values, by_line);
	return values;
}
