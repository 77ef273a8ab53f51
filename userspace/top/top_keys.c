// SPDX-License-Identifier: GPL-2.0
#include "top/top_keys.h"

#include <string.h>

#define CONTROL(letter) ((letter)&0x1f)
#define ESCAPE 0x1b
#define PAGE 5

static void prompt(struct top_model *model, enum top_prompt which)
{
	model->prompt = which;
	model->input[0] = '\0';
	top_model_say(model, NULL);
}

/* The note is recorded by whoever gathers; empty, it is a mark all the same. */
static void mark(struct top_model *model)
{
	const struct top_snapshot *last = model->last;
	g_autofree char *said = NULL;

	if (!last || !last->recorded || model->ended) {
		top_model_say(model, last && !last->recorded ?
					     "not marked: no recording is kept (-o FILE)" :
					     "not marked: nothing is recorded now");
		return;
	}
	said = g_strdup_printf("marked at %.1f s: %s", last->elapsed_ns / 1e9, model->input);
	g_ptr_array_add(model->marks, g_strdup(model->input));
	top_model_say(model, said);
}

static void set_filter(struct top_model *model)
{
	g_clear_pointer(&model->filter, g_free);
	if (*model->input)
		model->filter = g_strdup(model->input);
	top_model_choose(model, 0);
}

static void edit(struct top_model *model, unsigned int key)
{
	size_t length = strlen(model->input);
	char letter[7] = "";

	switch (key) {
	case '\r':
	case '\n':
		if (model->prompt == TOP_MARK)
			mark(model);
		else
			set_filter(model);
		model->prompt = TOP_NO_PROMPT;
		break;
	case ESCAPE:
	case CONTROL('C'):
		model->prompt = TOP_NO_PROMPT;
		break;
	case CONTROL('U'):
		model->input[0] = '\0';
		break;
	case TOP_KEY_RUBOUT:
	case 0x7f:
	case CONTROL('H'):
		if (length)
			*g_utf8_find_prev_char(model->input, model->input + length) = '\0';
		break;
	default:
		if (key < TOP_KEY_NONE && g_unichar_isprint(key) &&
		    g_utf8_strlen(model->input, -1) < TOP_INPUT - 1) {
			g_unichar_to_utf8(key, letter);
			g_strlcat(model->input, letter, sizeof(model->input));
		}
	}
}

static void scroll(struct top_model *model, int by)
{
	g_autoptr(GPtrArray) rows = top_model_details(model);
	int most = MAX(0, (int)rows->len - 1);

	model->scrolled = CLAMP((int)model->scrolled + by, 0, most);
}

static void move(struct top_model *model, unsigned int key)
{
	switch (key) {
	case TOP_KEY_CURSOR_UP:
	case 'k':
		top_model_choose(model, -1);
		break;
	case TOP_KEY_CURSOR_DOWN:
	case 'j':
		top_model_choose(model, 1);
		break;
	case TOP_KEY_CURSOR_LEFT:
	case '<':
		top_model_sort_next(model, -1);
		break;
	case TOP_KEY_CURSOR_RIGHT:
	case '>':
		top_model_sort_next(model, 1);
		break;
	case TOP_KEY_PAGE_UP:
		scroll(model, -PAGE);
		break;
	case TOP_KEY_PAGE_DOWN:
		scroll(model, PAGE);
		break;
	default:
		break;
	}
}

void top_key(struct top_model *model, unsigned int key)
{
	if (model->prompt) {
		edit(model, key);
		return;
	}
	if (key < TOP_KEY_NONE)
		top_model_say(model, NULL);
	switch (key) {
	case 'q':
	case CONTROL('C'):
		model->quit = true;
		break;
	case '?':
	case 'h':
		model->help = !model->help;
		break;
	case ESCAPE:
		model->help = false;
		break;
	case 'p':
	case ' ':
		top_model_pause(model);
		break;
	case 'o':
		model->owner = !model->owner;
		break;
	case 't':
		model->totals = !model->totals;
		model->scrolled = 0;
		top_model_choose(model, 0);
		break;
	case 'r':
		model->backward = !model->backward;
		top_model_choose(model, 0);
		break;
	case '/':
		prompt(model, TOP_FILTER);
		break;
	case 'm':
		prompt(model, TOP_MARK);
		break;
	default:
		move(model, key);
	}
}
