/* SPDX-License-Identifier: Apache-2.0 */
#include "base/yaml_scalar.h"

#include "base/mem.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <strings.h>

static bool is_any(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (streq(text, *words))
			return true;
	return false;
}

static const char *skip_digits(const char *s)
{
	while (isdigit((unsigned char)*s))
		s++;
	return s;
}

enum number { NOT_A_NUMBER, INTEGER, HEXADECIMAL, OCTAL, REAL };

static bool only(const char *s, const char *set)
{
	return *s && strspn(s, set) == strlen(s);
}

static enum number number_kind(const char *text)
{
	const char *s = text + (*text == '-' || *text == '+'), *after;
	bool before_point;

	if (text[0] == '0' && text[1] == 'x' && only(text + 2, "0123456789abcdefABCDEF"))
		return HEXADECIMAL;
	if (text[0] == '0' && text[1] == 'o' && only(text + 2, "01234567"))
		return OCTAL;
	after = skip_digits(s);
	before_point = after > s;
	if (before_point && !*after)
		return INTEGER;
	if (*after == '.') {
		s = after + 1;
		after = skip_digits(s);
		if (!before_point && after == s)
			return NOT_A_NUMBER;
	} else if (!before_point) {
		return NOT_A_NUMBER;
	}
	if (*after == 'e' || *after == 'E') {
		after++;
		after += *after == '-' || *after == '+';
		if (!isdigit((unsigned char)*after))
			return NOT_A_NUMBER;
		after = skip_digits(after);
	}
	return *after ? NOT_A_NUMBER : REAL;
}

static int parse_integer(const char *text, int base, json_t **ret)
{
	long long value;

	errno = 0;
	value = strtoll(text, NULL, base);
	if (errno)
		return -ERANGE;
	*ret = json_integer(value);
	return 0;
}

static int parse_real(const char *text, json_t **ret)
{
	double value = strtod(text, NULL);

	if (!isfinite(value))
		return -ERANGE;
	*ret = json_real(value);
	return 0;
}

int yaml_plain_value(const char *text, size_t len, json_t **ret)
{
	static const char *const nulls[] = { "", "~", "null", "Null", "NULL", NULL };
	static const char *const trues[] = { "true", "True", "TRUE", NULL };
	static const char *const falses[] = { "false", "False", "FALSE", NULL };
	static const char *const no_json[] = { ".inf",	".Inf",	 ".INF",  "+.inf", "+.Inf",
					       "+.INF", "-.inf", "-.Inf", "-.INF", ".nan",
					       ".NaN",	".NAN",	 NULL };

	switch (number_kind(text)) {
	case INTEGER:
		return parse_integer(text, 10, ret);
	case HEXADECIMAL:
		return parse_integer(text + 2, 16, ret);
	case OCTAL:
		return parse_integer(text + 2, 8, ret);
	case REAL:
		return parse_real(text, ret);
	case NOT_A_NUMBER:
		break;
	}
	if (is_any(text, no_json))
		return -ERANGE;
	if (is_any(text, nulls))
		*ret = json_null();
	else if (is_any(text, trues))
		*ret = json_true();
	else if (is_any(text, falses))
		*ret = json_false();
	else
		*ret = json_stringn(text, len);
	return *ret ? 0 : -EILSEQ;
}

/* Things that YAML 1.1 takes for something else: dates, 12:30:45, 1_000, 0b1. */
static bool looks_like_old_number(const char *text)
{
	const char *s = text + (*text == '-' || *text == '+');

	if (!isdigit((unsigned char)*s) && *s != '.')
		return false;
	return only(s, "0123456789_:.-+eExXobBTZtz abcdfABCDF");
}

bool yaml_needs_quotes(const char *text)
{
	static const char *const old_words[] = { "y",	 "n",	  "yes",  "no", "on", "off",
						 "true", "false", "null", "<<", "=",  NULL };
	json_t *value = NULL;
	bool is_string;

	for (const char *const *word = old_words; *word; word++)
		if (strcasecmp(text, *word) == 0)
			return true;
	if (yaml_plain_value(text, strlen(text), &value) < 0)
		return true;
	is_string = json_is_string(value);
	json_decref(value);
	return !is_string || looks_like_old_number(text);
}
