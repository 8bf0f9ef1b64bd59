# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# For scripts that have sourced store.sh: what a pod has written and closed, a pod on another node opens and reads. Both
# have the volume at /data. Their shells stay open, so that a round is over long before anything would be looked up anew.
#   rounds COUNT POD POD     the pods take turns, three rounds each; fails with the first old byte, size or name
declare -A to=() from=() shell=()

open_shell() { # POD
	local in out
	rm -f "$work/$1.in" "$work/$1.out"
	mkfifo "$work/$1.in" "$work/$1.out"
	k exec -i "$1" -- sh < "$work/$1.in" > "$work/$1.out" 2>&1 &
	shell[$1]=$!
	exec {in}> "$work/$1.in" {out}< "$work/$1.out"
	to[$1]=$in from[$1]=$out
}
close_shell() { # POD
	local in=${to[$1]} out=${from[$1]}
	echo exit >&"$in" # the other one's kubectl has a copy of this end
	exec {in}>&- {out}<&-
	wait "${shell[$1]}"
}
# in_shell POD COMMANDS: prints what they say
in_shell() {
	local line
	printf '%s\necho end-of-answer\n' "$2" >&"${to[$1]}"
	while IFS= read -r -t 120 line <&"${from[$1]}"; do
		[ "$line" != end-of-answer ] || return 0
		printf '%s\n' "$line"
	done
	echo "no answer of $1"
	return 1
}
# What a reader sees, one line each: contents and size of what kept its length, of what did not, of what was renamed there, and names.
# What does not change is looked at as well, so that attributes are there to be believed.
look='cd /data; cat same | head -c 8; echo; cat other | md5sum; stat -c %s same other; wc -c < other; cat renamed; echo; ls -d gone new 2>/dev/null; ls | grep -x -e gone -e new'

round() { # NUMBER WRITER READER
	local word size names got wanted
	word=$(printf %08d "$1") size=$(($1 * 7919 % 90000 + 9))
	if (($1 % 2)); then names=$'gone\ngone'; else names=$'new\nnew'; fi
	in_shell "$2" "cd /data; w=$word; { printf \$w; yes \$w | head -c 4088; } | dd of=same bs=4096 iflag=fullblock conv=notrunc 2>/dev/null
		yes \$w | head -c $size > other; printf \$w > .tmp; mv .tmp renamed
		if [ $(($1 % 2)) = 1 ]; then : > gone; rm -f new; else : > new; rm -f gone; fi" || return
	got=$(in_shell "$3" "$look")
	wanted=$word$'\n'$(yes "$word" | head -c "$size" | md5sum)$'\n'4096$'\n'$size$'\n'$size$'\n'$word$'\n'$names
	[ "$got" = "$wanted" ] || { echo "round $1, written on $2, read on $3:"; diff <(echo "$wanted") <(echo "$got"); return 1; }
}
all_rounds() { # COUNT POD POD
	local i
	for ((i = 0; i < $1; i++)); do
		if ((i / 3 % 2 == 0)); then round $i "$2" "$3"; else round $i "$3" "$2"; fi || return
	done
}
rounds() {
	local result
	open_shell "$2" && open_shell "$3" || return
	all_rounds "$@"
	result=$?
	close_shell "$2"
	close_shell "$3"
	return $result
}
