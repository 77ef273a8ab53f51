// SPDX-License-Identifier: GPL-2.0
#include "top/top_screen.h"

#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/message.h"
#include "top/top_keys.h"

#define ESCAPE_MS 50 /* how long the rest of a key may take */

struct top_screen {
	SCREEN *terminal;
	FILE *in, *out;
	int kept[3]; /* what the standard descriptors were; -1: was no terminal */
	/* For leave_at_once(): as the terminal was, and what is to be written to it. */
	struct termios before;
	char leaving[128];
	bool ascii;
	attr_t inks[INK_COUNT];
};

static void choose_inks(struct top_screen *screen)
{
	static const short colors[INK_COUNT] = {
		[INK_ZEROING] = COLOR_RED,
		[INK_SWAP] = COLOR_MAGENTA,
		[INK_FILE] = COLOR_BLUE,
		[INK_MEMORY] = COLOR_YELLOW,
	};
	const char *no_color = getenv("NO_COLOR");
	int i;

	screen->inks[INK_BOLD] = A_BOLD;
	screen->inks[INK_TITLE] = A_REVERSE;
	screen->inks[INK_CHOSEN] = A_BOLD | A_UNDERLINE;
	screen->inks[INK_ALERT] = A_BOLD;
	screen->inks[INK_QUIET] = A_DIM;
	if (!has_colors() || (no_color && *no_color))
		return;
	start_color();
	use_default_colors();
	for (i = 0; i < INK_COUNT; i++)
		if (colors[i] && init_pair((short)(i + 1), colors[i], -1) == OK)
			screen->inks[i] |= COLOR_PAIR(i + 1);
	if (init_pair(INK_COUNT + 1, COLOR_RED, -1) == OK)
		screen->inks[INK_ALERT] |= COLOR_PAIR(INK_COUNT + 1);
}

/* The terminal is curses' alone. */
static void take_over(struct top_screen *screen)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), i;

	for (i = 0; i < 3; i++) {
		screen->kept[i] = -1;
		if (null < 0 || !isatty(i))
			continue;
		screen->kept[i] = fcntl(i, F_DUPFD_CLOEXEC, 3);
		if (screen->kept[i] >= 0)
			dup2(null, i);
	}
	if (null >= 0)
		close(null);
}

static void give_back(struct top_screen *screen)
{
	int i;

	for (i = 0; i < 3; i++) {
		if (screen->kept[i] < 0)
			continue;
		dup2(screen->kept[i], i);
		close(screen->kept[i]);
		screen->kept[i] = -1;
	}
}

/* What curses writes at its end, which cannot be asked for when other threads hang. */
static void note_leaving(struct top_screen *screen)
{
	static const char *const names[] = { "sgr0", "rmkx", "cnorm", "rmcup" };
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(names); i++) {
		const char *text = tigetstr(names[i]);

		/* One with times to wait is for slow terminals of old. */
		if (text && text != (const char *)-1 && !strstr(text, "$<"))
			g_strlcat(screen->leaving, text, sizeof(screen->leaving));
	}
}

/* Before the process is ended by another thread. What is drawn meanwhile goes nowhere. */
static void leave_at_once(void *context)
{
	struct top_screen *screen = context;
	int drawn = fileno(screen->out), out = fcntl(drawn, F_DUPFD_CLOEXEC, 3);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), i;

	if (null >= 0)
		dup2(null, drawn);
	/* Where it is gone there is nothing to be put right. */
	if (write(out, screen->leaving, strlen(screen->leaving)) >= 0)
		tcsetattr(out, TCSANOW, &screen->before);
	for (i = 0; i < 3; i++)
		if (screen->kept[i] >= 0)
			dup2(screen->kept[i], i);
}

static bool open_terminal(struct top_screen *screen)
{
	const char *term = getenv("TERM");
	int out = isatty(STDOUT_FILENO) ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3) : -1;
	int in = isatty(STDIN_FILENO) ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) :
					open("/dev/tty", O_RDONLY | O_CLOEXEC);

	screen->out = out >= 0 ? fdopen(out, "w") : NULL;
	screen->in = in >= 0 ? fdopen(in, "r") : NULL;
	if (!screen->out || !screen->in || !term || !strcmp(term, "dumb")) {
		message("top needs a terminal; use --batch or --json");
		return false;
	}
	setlocale(LC_CTYPE, "");
	screen->ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
	set_escdelay(ESCAPE_MS);
	tcgetattr(out, &screen->before);
	screen->terminal = newterm(NULL, screen->out, screen->in);
	if (!screen->terminal)
		message("top cannot use this terminal (TERM=%s); use --batch or --json", term);
	return screen->terminal != NULL;
}

static void free_screen(struct top_screen *screen)
{
	if (screen->in)
		fclose(screen->in);
	if (screen->out)
		fclose(screen->out);
	g_free(screen);
}

struct top_screen *top_screen_open(void)
{
	struct top_screen *screen = g_new0(struct top_screen, 1);

	if (!open_terminal(screen)) {
		free_screen(screen);
		return NULL;
	}
	take_over(screen);
	/* ^C and ^Z are keys: a command in the foreground is not to get them as well. */
	raw();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	curs_set(0);
	choose_inks(screen);
	note_leaving(screen);
	message_before_last(leave_at_once, screen);
	return screen;
}

void top_screen_close(struct top_screen *screen)
{
	if (!screen)
		return;
	message_before_last(NULL, NULL);
	endwin();
	delscreen(screen->terminal);
	give_back(screen);
	free_screen(screen);
}

bool top_screen_is_ascii(const struct top_screen *screen)
{
	return screen->ascii;
}

int top_screen_descriptor(const struct top_screen *screen)
{
	return fileno(screen->in);
}

/* Asked for, not waited for: the signal may come to any thread. */
struct top_canvas *top_screen_canvas(struct top_screen *screen)
{
	struct winsize size = { 0 };

	if (!ioctl(fileno(screen->out), TIOCGWINSZ, &size) && size.ws_row && size.ws_col &&
	    is_term_resized(size.ws_row, size.ws_col))
		resizeterm(size.ws_row, size.ws_col);
	return top_canvas_new((unsigned int)COLS, (unsigned int)LINES);
}

static wchar_t shown(const struct top_screen *screen, gunichar letter)
{
	return screen->ascii && letter > 0x7e ? L'?' : (wchar_t)letter;
}

void top_screen_show(struct top_screen *screen, const struct top_canvas *canvas)
{
	unsigned int line, column;

	for (line = 0; line < canvas->lines; line++) {
		move((int)line, 0);
		for (column = 0; column < canvas->columns; column++) {
			size_t place = (size_t)line * canvas->columns + column;
			wchar_t letter[2] = { shown(screen, canvas->cells[place]), 0 };

			attrset(screen->inks[canvas->inks[place]]);
			addnwstr(letter, 1);
		}
	}
	refresh();
}

void top_screen_redraw(struct top_screen *screen)
{
	(void)screen;
	clearok(curscr, TRUE);
}

unsigned int top_screen_key(struct top_screen *screen)
{
	static const struct {
		wint_t theirs;
		unsigned int ours;
	} keys[] = {
		{ KEY_UP, TOP_KEY_CURSOR_UP },	   { KEY_DOWN, TOP_KEY_CURSOR_DOWN },
		{ KEY_LEFT, TOP_KEY_CURSOR_LEFT }, { KEY_RIGHT, TOP_KEY_CURSOR_RIGHT },
		{ KEY_PPAGE, TOP_KEY_PAGE_UP },	   { KEY_NPAGE, TOP_KEY_PAGE_DOWN },
		{ KEY_BACKSPACE, TOP_KEY_RUBOUT }, { KEY_ENTER, '\n' },
		{ KEY_RESIZE, TOP_KEY_REDRAW },
	};
	wint_t key;
	size_t i;

	(void)screen;
	switch (get_wch(&key)) {
	case OK:
		return key == 0x0c ? TOP_KEY_REDRAW : key;
	case KEY_CODE_YES:
		for (i = 0; i < G_N_ELEMENTS(keys); i++)
			if (keys[i].theirs == key)
				return keys[i].ours;
		return TOP_KEY_OTHER;
	default:
		return TOP_KEY_NONE;
	}
}
