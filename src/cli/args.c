/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/verbs.h"

#include "base/mem.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdint.h>

/* What every verb has that talks to the API. */
static const struct flag common_flags[] = {
	{ 'n', "namespace", "NAME", "The namespace to look in." },
	{ 0, "kubeconfig", "FILE", "Where the API is, and who asks." },
	{ 0, "context", "NAME", "Which of the kubeconfig's contexts; else its current one." },
};
static const struct flag help_flag = { 'h', "help", NULL, "Show this." };

const struct verb *verb_find(const char *name)
{
	for (const struct verb *v = verbs; v->name; v++)
		if (streq(v->name, name))
			return v;
	return NULL;
}

int verb_unknown(const char *name)
{
	const char *names[64], *near;
	size_t n = 0;

	for (const struct verb *v = verbs; v->name && n < ARRAY_SIZE(names) - 1; v++)
		if (!v->internal)
			names[n++] = v->name;
	names[n] = NULL;
	near = str_suggest(name, names);
	if (near)
		(void)fprintf(stderr,
			      "quartermaster: there is no verb \"%s\"; did you mean \"%s\"?\n",
			      name, near);
	else
		(void)fprintf(stderr,
			      "quartermaster: there is no verb \"%s\"; see: quartermaster --help\n",
			      name);
	return QM_USAGE;
}

const struct flag *args_flag(const struct verb *v, size_t i)
{
	size_t own = 0;

	while (v->flags && v->flags[own].name)
		own++;
	if (i < own)
		return &v->flags[i];
	i -= own;
	if (v->connects) {
		if (i < ARRAY_SIZE(common_flags))
			return &common_flags[i];
		i -= ARRAY_SIZE(common_flags);
	}
	return i == 0 ? &help_flag : NULL;
}

int usage_error(const struct verb *v, const char *format, ...)
{
	va_list ap;

	(void)fprintf(stderr, "quartermaster %s: ", v->name);
	va_start(ap, format);
	(void)vfprintf(stderr, format, ap);
	va_end(ap);
	(void)fprintf(stderr, "; see: quartermaster %s --help\n", v->name);
	return QM_USAGE;
}

static void indented(FILE *out, const char *text)
{
	while (*text) {
		size_t len = strcspn(text, "\n");

		(void)fprintf(out, "  %.*s\n", (int)len, text);
		text += len + (text[len] == '\n');
	}
}

void verb_help(const struct verb *v, FILE *out)
{
	const struct flag *f;

	(void)fprintf(out, "%s.\n\nUsage: quartermaster %s%s%s [FLAG…]\n", v->summary, v->name,
		      v->usage ? " " : "", v->usage ? v->usage : "");
	if (v->help)
		(void)fprintf(out, "\n%s\n", v->help);
	(void)fprintf(out, "\nFlags:\n");
	for (size_t i = 0; (f = args_flag(v, i)); i++) {
		char letter[8] = "    ", name[64];

		if (f->letter)
			(void)snprintf(letter, sizeof(letter), "-%c, ", f->letter);
		(void)snprintf(name, sizeof(name), "%s%s%s%s", f->name, f->optional ? "[" : "",
			       f->value ? "=" : "", f->value ? f->value : "");
		(void)fprintf(
			out, "  %s--%s%s%*s %s\n", letter, name, f->optional ? "]" : "",
			(int)(strlen(name) < 21 ? 21 - strlen(name) - (f->optional != NULL) : 0),
			"", f->help);
	}
	if (v->example) {
		(void)fprintf(out, "\nExamples:\n");
		indented(out, v->example);
	}
	(void)fprintf(out, "\n%s", exit_code_help);
}

/* getopt's tables, made of ours: a long flag's value is its place. */
struct getopt_tables {
	char letters[2 * FLAGS_MAX + 3];
	struct option longs[2 * FLAGS_MAX + 1];
	char spellings[FLAGS_MAX][40];
};

/* --nfs_mount_container is --nfs-mount-container. */
static const char *with_underscores(const char *name, char *buf, size_t size)
{
	(void)snprintf(buf, size, "%s", name);
	for (char *p = buf; *p; p++)
		if (*p == '-')
			*p = '_';
	return buf;
}

static void make_tables(const struct verb *v, struct getopt_tables *t)
{
	const struct flag *f;
	size_t n = 0, count = 0;

	*t = (struct getopt_tables){ 0 };
	t->letters[n++] = ':';
	for (size_t i = 0; (f = args_flag(v, i)) && i < FLAGS_MAX; i++) {
		struct option o = {
			.name = f->name,
			.has_arg = f->optional ? optional_argument
				   : f->value  ? required_argument
					       : no_argument,
			.val = 256 + (int)i,
		};

		t->longs[count++] = o;
		o.name = with_underscores(f->name, t->spellings[i], sizeof(t->spellings[i]));
		if (!streq(o.name, f->name))
			t->longs[count++] = o;
		if (!f->letter)
			continue;
		t->letters[n++] = f->letter;
		if (f->value)
			t->letters[n++] = ':';
	}
}

static int unknown_flag(const struct verb *v, const char *word)
{
	const char *names[FLAGS_MAX + 1], *near = NULL;
	const struct flag *f;
	char name[64];
	size_t n = 0;

	for (size_t i = 0; (f = args_flag(v, i)) && i < FLAGS_MAX; i++)
		names[n++] = f->name;
	names[n] = NULL;
	if (str_has_prefix(word, "--")) {
		(void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(word + 2, "="), word + 2);
		near = str_suggest(name, names);
	}
	if (near)
		return usage_error(v, "there is no flag %s (did you mean --%s?)", word, near);
	return usage_error(v, "there is no flag %s", word);
}

static size_t flag_of_letter(const struct verb *v, int letter)
{
	const struct flag *f;
	size_t i;

	for (i = 0; (f = args_flag(v, i)); i++)
		if (f->letter == letter)
			break;
	return i;
}

static int parse_flags(const struct verb *v, int argc, char **argv, struct args *a)
{
	struct getopt_tables t;
	int c;

	make_tables(v, &t);
	optind = 0; /* begins anew, also after an earlier call */
	opterr = 0;
	while ((c = getopt_long(argc, argv, t.letters, t.longs, NULL)) != -1) {
		const struct flag *f;
		size_t i;

		if (c == ':')
			return usage_error(v, "%s needs a value", argv[optind - 1]);
		if (c == '?') {
			char letter[3] = { '-', (char)optopt, '\0' };

			return unknown_flag(v,
					    optopt > 0 && optopt < 256 ? letter : argv[optind - 1]);
		}
		i = c >= 256 ? (size_t)c - 256 : flag_of_letter(v, c);
		f = args_flag(v, i);
		strv_add(&a->given[i], optarg ? optarg : f->optional ? f->optional : "");
	}
	a->words = argv + optind;
	a->count = (size_t)(argc - optind);
	return QM_OK;
}

int args_parse(const struct verb *v, int argc, char **argv, struct args *ret)
{
	struct args a = { .verb = v };
	int r = parse_flags(v, argc, argv, &a);

	if (r == QM_OK && !args_given(&a, "help")) {
		if (a.count < v->min_words)
			r = usage_error(v, "it needs %s", v->usage);
		else if (a.count > v->max_words)
			r = usage_error(v, "what is \"%s\" for?", a.words[v->max_words]);
	}
	if (r != QM_OK)
		args_done(&a);
	else
		*ret = a;
	return r;
}

void args_done(struct args *a)
{
	for (size_t i = 0; i < FLAGS_MAX; i++)
		strv_done(&a->given[i]);
}

const struct strv *args_values(const struct args *a, const char *flag)
{
	const struct flag *f;

	for (size_t i = 0; (f = args_flag(a->verb, i)) && i < FLAGS_MAX; i++)
		if (streq(f->name, flag))
			return &a->given[i];
	return NULL;
}

bool args_given(const struct args *a, const char *flag)
{
	const struct strv *values = args_values(a, flag);

	return values && values->count > 0;
}

const char *args_value(const struct args *a, const char *flag)
{
	const struct strv *values = args_values(a, flag);

	return values && values->count > 0 ? values->items[values->count - 1] : NULL;
}

int args_bool(const struct args *a, const char *flag, bool fallback, bool *ret)
{
	const char *value = args_value(a, flag);

	if (value && !streq(value, "true") && !streq(value, "false"))
		return usage_error(a->verb, "--%s is true or false, not \"%s\"", flag, value);
	*ret = value ? streq(value, "true") : fallback;
	return QM_OK;
}

int args_duration(const struct args *a, const char *flag, int64_t fallback_ms, int64_t *ret_ms)
{
	static const struct {
		const char *unit;
		int64_t ms;
	} units[] = { { "", 1000 }, { "s", 1000 }, { "m", 60000 }, { "h", 3600000 }, { "ms", 1 } };
	const char *value = args_value(a, flag);
	char *end;
	long n;

	if (!value) {
		*ret_ms = fallback_ms;
		return QM_OK;
	}
	errno = 0;
	n = strtol(value, &end, 10);
	for (size_t i = 0;
	     i < ARRAY_SIZE(units) && end != value && errno == 0 && n >= 0 && n <= 1000000; i++) {
		if (!streq(end, units[i].unit))
			continue;
		*ret_ms = n * units[i].ms;
		return QM_OK;
	}
	return usage_error(a->verb, "--%s is a time such as 30s or 5m, not \"%s\"", flag, value);
}
