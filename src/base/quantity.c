/* SPDX-License-Identifier: Apache-2.0 */
#include "base/quantity.h"

#include "base/mem.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>

#define DIGITS_MAX 64
#define EXPONENT_MAX 1000

/* A number as it stands: its digits, and where among them the decimal point is. */
struct decimal {
	char digits[DIGITS_MAX];
	int count, point;
};

static bool parse_digits(const char **text, struct decimal *d)
{
	bool seen = false, after_point = false;
	const char *s = *text;

	for (; isdigit((unsigned char)*s) || (*s == '.' && !after_point); s++) {
		if (*s == '.') {
			after_point = true;
			continue;
		}
		seen = true;
		if (*s == '0' && d->count == 0) {
			d->point -= after_point;
			continue;
		}
		if (d->count == DIGITS_MAX)
			return false;
		d->digits[d->count++] = *s;
		d->point += !after_point;
	}
	*text = s;
	return seen;
}

/* The suffix as a power of two (binary units) or of ten. */
static bool parse_suffix(const char *s, int *ret_two, int *ret_ten)
{
	static const struct {
		const char *name;
		int two, ten;
	} units[] = {
		{ "", 0, 0 },	 { "Ki", 10, 0 }, { "Mi", 20, 0 }, { "Gi", 30, 0 },
		{ "Ti", 40, 0 }, { "Pi", 50, 0 }, { "Ei", 60, 0 }, { "n", 0, -9 },
		{ "u", 0, -6 },	 { "m", 0, -3 },  { "k", 0, 3 },   { "M", 0, 6 },
		{ "G", 0, 9 },	 { "T", 0, 12 },  { "P", 0, 15 },  { "E", 0, 18 },
	};
	bool negative;
	int ten = 0;

	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (streq(s, units[i].name)) {
			*ret_two = units[i].two;
			*ret_ten = units[i].ten;
			return true;
		}
	}
	if (*s != 'e' && *s != 'E')
		return false;
	s++;
	negative = *s == '-';
	s += *s == '-' || *s == '+';
	if (!*s)
		return false;
	for (; isdigit((unsigned char)*s); s++)
		ten = ten > EXPONENT_MAX ? ten : ten * 10 + (*s - '0');
	*ret_two = 0;
	*ret_ten = negative ? -ten : ten;
	return !*s;
}

/* Whole part and fraction (in 10^-18, rounded up) of d. */
static int split(const struct decimal *d, int point, uint64_t *ret_whole, uint64_t *ret_fraction)
{
	uint64_t whole = 0, fraction = 0;
	bool beyond = false;

	if (d->count && point > 19)
		return -ERANGE;
	for (int i = 0; d->count && i < point; i++) {
		uint64_t digit = i < d->count ? (uint64_t)(d->digits[i] - '0') : 0;

		if (__builtin_mul_overflow(whole, 10, &whole) ||
		    __builtin_add_overflow(whole, digit, &whole))
			return -ERANGE;
	}
	for (int place = 0; place < 18; place++) {
		int i = point + place;

		fraction *= 10;
		if (i >= 0 && i < d->count)
			fraction += (uint64_t)(d->digits[i] - '0');
	}
	for (int i = point + 18 < 0 ? 0 : point + 18; i < d->count; i++)
		beyond |= d->digits[i] != '0';
	*ret_whole = whole;
	*ret_fraction = fraction + beyond;
	return 0;
}

int quantity_parse(const char *text, int64_t *ret, struct error *err)
{
	const unsigned __int128 unit = UINT64_C(1000000000000000000);
	struct decimal d = { 0 };
	uint64_t whole, fraction;
	unsigned __int128 bytes;
	const char *s = text;
	int two, ten;

	if (*s == '-')
		return error_set(err, EINVAL, "\"%.80s\" is a negative size", text);
	s += *s == '+';
	if (!parse_digits(&s, &d) || !parse_suffix(s, &two, &ten))
		return error_set(err, EINVAL, "\"%.80s\" is not a size such as 10Gi or 500M", text);
	if (split(&d, d.point + ten, &whole, &fraction) < 0 || whole > INT64_MAX)
		return error_set(err, ERANGE, "\"%.80s\" is more than 8Ei - 1 bytes", text);
	bytes = ((unsigned __int128)whole << two) +
		(((unsigned __int128)fraction << two) + unit - 1) / unit;
	if (bytes > INT64_MAX)
		return error_set(err, ERANGE, "\"%.80s\" is more than 8Ei - 1 bytes", text);
	*ret = (int64_t)bytes;
	return 0;
}

static const char binary_units[] = "KMGTPE";

const char *quantity_text(int64_t bytes, char buf[static QUANTITY_TEXT_MAX])
{
	int power = 0;

	while (bytes && bytes % 1024 == 0) {
		bytes /= 1024;
		power++;
	}
	if (power)
		snprintf(buf, QUANTITY_TEXT_MAX, "%lld%ci", (long long)bytes,
			 binary_units[power - 1]);
	else
		snprintf(buf, QUANTITY_TEXT_MAX, "%lld", (long long)bytes);
	return buf;
}

const char *quantity_human(int64_t bytes, char buf[static QUANTITY_TEXT_MAX])
{
	double value = (double)bytes, size = bytes < 0 ? -value : value;
	int power = 0;

	/* 1023.95 would be printed as 1024 */
	while (size >= (power ? 999.5 : 1024) && power < 6) {
		size /= 1024;
		value /= 1024;
		power++;
	}
	if (!power)
		snprintf(buf, QUANTITY_TEXT_MAX, "%lld", (long long)bytes);
	else
		snprintf(buf, QUANTITY_TEXT_MAX, size < 9.95 ? "%.1f%ci" : "%.0f%ci", value,
			 binary_units[power - 1]);
	return buf;
}
