/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/connect.h"

#include "base/mem.h"

/* Scripts made of the table of verbs, so that they know every flag. */

static void put_verbs(FILE *out)
{
	for (const struct verb *v = verbs; v->name; v++)
		if (!v->internal)
			(void)fprintf(out, "%s%s", v == verbs ? "" : " ", v->name);
}

static void put_kinds(FILE *out)
{
	for (size_t i = 0; kinds[i]; i++)
		(void)fprintf(out, "%s%s", i ? " " : "", kinds[i]->plural);
}

static void put_flags(FILE *out, const struct verb *v)
{
	const struct flag *f;

	for (size_t i = 0; (f = args_flag(v, i)); i++) {
		(void)fprintf(out, "%s--%s%s", i ? " " : "", f->name,
			      f->value && !f->optional ? "=" : "");
		if (f->letter)
			(void)fprintf(out, " -%c", f->letter);
	}
}

static bool takes_kind(const struct verb *v)
{
	const char *usage = v->usage ? v->usage : "";

	return str_has_prefix(usage, "KIND") || str_has_prefix(usage, "[KIND");
}

static void bash(FILE *out)
{
	(void)fprintf(out, "# bash completion for quartermaster\n"
			   "_quartermaster()\n{\n"
			   "\tlocal cur=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]} words=\n"
			   "\tif [ \"$COMP_CWORD\" -eq 1 ]; then\n"
			   "\t\tCOMPREPLY=($(compgen -W '");
	put_verbs(out);
	(void)fprintf(out, " --help' -- \"$cur\"))\n\t\treturn\n\tfi\n\tcase $verb in\n");
	for (const struct verb *v = verbs; v->name; v++) {
		if (v->internal)
			continue;
		(void)fprintf(out, "\t%s)\n\t\t[[ $cur == -* ]] && words='", v->name);
		put_flags(out, v);
		(void)fprintf(out, "'\n");
		if (takes_kind(v)) {
			(void)fprintf(out, "\t\t[[ $cur != -* && $COMP_CWORD -eq 2 ]] && words='");
			put_kinds(out);
			(void)fprintf(out, "'\n");
		} else if (streq(v->name, "completion")) {
			(void)fprintf(out, "\t\t[[ $cur != -* ]] && words='bash zsh fish'\n");
		}
		(void)fprintf(out, "\t\t;;\n");
	}
	(void)fprintf(out, "\tesac\n"
			   "\tif [ -n \"$words\" ]; then\n"
			   "\t\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
			   "\t\t[[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace\n"
			   "\telse\n"
			   "\t\tCOMPREPLY=($(compgen -f -- \"$cur\"))\n"
			   "\tfi\n}\n"
			   "complete -o filenames -F _quartermaster quartermaster\n");
}

/* Text within single quotes of zsh and fish; square brackets and colons mean something to _arguments. */
static void put_quoted(FILE *out, const char *text, const char *special)
{
	for (; *text; text++) {
		if (*text == '\'')
			(void)fputs("'\\''", out);
		else if (strchr(special, *text))
			(void)fprintf(out, "\\%c", *text);
		else
			(void)fputc(*text, out);
	}
}

static void zsh_flags(FILE *out, const struct verb *v)
{
	const struct flag *f;

	for (size_t i = 0; (f = args_flag(v, i)); i++) {
		(void)fprintf(out, " \\\n\t\t\t'*--%s%s[", f->name,
			      f->optional ? "=-"
			      : f->value  ? "="
					  : "");
		put_quoted(out, f->help, "[]:\\");
		(void)fprintf(out, "]");
		if (f->value)
			(void)fprintf(out, ":%s:%s", f->value,
				      streq(f->value, "FILE") ? "_files" : "");
		(void)fprintf(out, "'");
	}
}

static void zsh(FILE *out)
{
	(void)fprintf(out, "#compdef quartermaster\n"
			   "_quartermaster()\n{\n\tlocal -a verbs kinds\n\tverbs=(\n");
	for (const struct verb *v = verbs; v->name; v++) {
		if (v->internal)
			continue;
		(void)fprintf(out, "\t\t'%s:", v->name);
		put_quoted(out, v->summary, ":\\");
		(void)fprintf(out, "'\n");
	}
	(void)fprintf(out, "\t)\n\tkinds=(");
	put_kinds(out);
	(void)fprintf(
		out,
		")\n\tif (( CURRENT == 2 )); then\n\t\t_describe verb verbs\n\t\treturn\n\tfi\n"
		"\tlocal verb=$words[2]\n\t(( CURRENT-- ))\n\tshift words\n\tcase $verb in\n");
	for (const struct verb *v = verbs; v->name; v++) {
		if (v->internal)
			continue;
		(void)fprintf(out, "\t%s)\n\t\t_arguments -s", v->name);
		zsh_flags(out, v);
		(void)fprintf(out, " \\\n\t\t\t%s\n\t\t;;\n",
			      takes_kind(v)		     ? "'1:kind:($kinds)' '*:name:'"
			      : streq(v->name, "completion") ? "'1:shell:(bash zsh fish)'"
							     : "'*:file:_files'");
	}
	(void)fprintf(out, "\tesac\n}\ncompdef _quartermaster quartermaster\n");
}

static void fish_flags(FILE *out, const struct verb *v)
{
	const struct flag *f;

	for (size_t i = 0; (f = args_flag(v, i)); i++) {
		(void)fprintf(out,
			      "complete -c quartermaster -n '__fish_seen_subcommand_from %s' -l %s",
			      v->name, f->name);
		if (f->letter)
			(void)fprintf(out, " -s %c", f->letter);
		if (f->value && !f->optional)
			(void)fprintf(out, " -r%s", streq(f->value, "FILE") ? " -F" : "");
		(void)fprintf(out, " -d '");
		put_quoted(out, f->help, "\\");
		(void)fprintf(out, "'\n");
	}
}

static void fish(FILE *out)
{
	(void)fprintf(out, "# fish completion for quartermaster\n");
	for (const struct verb *v = verbs; v->name; v++) {
		if (v->internal)
			continue;
		(void)fprintf(out,
			      "complete -c quartermaster -n __fish_use_subcommand -f -a %s -d '",
			      v->name);
		put_quoted(out, v->summary, "\\");
		(void)fprintf(out, "'\n");
		fish_flags(out, v);
		if (!takes_kind(v) && !streq(v->name, "completion"))
			continue;
		(void)fprintf(
			out,
			"complete -c quartermaster -n '__fish_seen_subcommand_from %s' -f -a '",
			v->name);
		if (takes_kind(v))
			put_kinds(out);
		else
			(void)fputs("bash zsh fish", out);
		(void)fprintf(out, "'\n");
	}
}

int cmd_completion(struct session *s, const struct args *a)
{
	static const struct {
		const char *name;
		void (*print)(FILE *out);
	} shells[] = { { "bash", bash }, { "zsh", zsh }, { "fish", fish } };

	for (size_t i = 0; i < ARRAY_SIZE(shells); i++) {
		if (!streq(shells[i].name, a->words[0]))
			continue;
		shells[i].print(s->out);
		return QM_OK;
	}
	return usage_error(a->verb, "the shell is bash, zsh or fish, not \"%s\"", a->words[0]);
}
