# SPDX-License-Identifier: Apache-2.0
# Killing hostvol at any time, and many of it at once: for the scripts here to source.

# interrupt_all VOLUME IS_RIGHT NOTHING_LEFT REUSE: connects and disconnects /run/VOLUME.json, and ends the command with SIGKILL
# after a time of its seed's choosing (QM_SEED repeats one); then the next call has to come to a clean end, be it recover, the
# same again or a disconnect. Every other time the storage meanwhile gives the number to another volume ("REUSE away", and
# "REUSE back" in the end). Each of these 12 once, 17 times with QM_LONG=1.
interrupt_all() {
	local volume=$1 is_right=$2 nothing_left=$3 reuse=$4 n=12 seed=${QM_SEED:-$$$RANDOM} i delay path pid verb
	[ -z "${QM_LONG:-}" ] || n=204
	echo "seed $seed (QM_SEED=$seed)"
	RANDOM=$seed
	for ((i = 1; i <= n; i++)); do
		verb=connect
		if ((i % 12 < 6)); then
			hostvol connect "/run/$volume.json" > /run/out || { echo "$i: the connect before it failed"; return 1; }
			verb=disconnect
		fi
		delay=$(printf '0.%03d' $((RANDOM % 600)))
		hostvol $verb -f "/run/$volume.json" > /run/out 2>&1 &
		pid=$!
		sleep "$delay"
		kill -9 $pid 2> /dev/null
		wait $pid 2> /dev/null
		((i % 2)) || "$reuse" away || return 1
		case $((i % 6 / 2)) in
		0) hostvol recover > /run/out 2>&1 || { echo "$i: recover after $delay s of $verb: $(cat /run/out)"; return 1; } ;;
		1) ;;
		2) # the same again: right, or refused; never a wrong path
			if path=$(hostvol connect "/run/$volume.json" 2> /run/out); then
				"$is_right" "$path" || { echo "$i: $path is another volume, after $delay s of $verb"; return 1; }
			fi ;;
		esac
		hostvol disconnect -f "/run/$volume.json" > /run/out 2>&1 || { echo "$i: disconnect after $delay s of $verb: $(cat /run/out)"; return 1; }
		hostvol repair > /run/out 2>&1 || { echo "$i: repair: $(cat /run/out)"; return 1; }
		((i % 2)) || "$reuse" back || return 1
		"$nothing_left" || { echo "$i: left after $delay s of $verb"; cat /run/out; return 1; }
	done
	echo "$n interruptions"
}

# stampede COUNT CHECK UNIT…: so many processes, each of which connects and disconnects one of the units for 10 s (60 with
# QM_LONG=1) as a consumer of its own, and looks with CHECK PATH UNIT whether it got that one.
stampede() {
	local count=$1 look=$2 seconds=10 i pids=() failed=0; shift 2
	local units=("$@")
	[ -z "${QM_LONG:-}" ] || seconds=60
	rm -f /run/stampede.*
	for ((i = 0; i < count; i++)); do
		stampede_one "$i" "$look" "$seconds" "${units[i % ${#units[@]}]}" > "/run/stampede.$i" 2>&1 &
		pids+=($!)
	done
	for i in "${pids[@]}"; do wait "$i" || failed=1; done
	grep -h -v '^round' /run/stampede.* | head -n 20
	echo "$(cat /run/stampede.* | grep -c '^round') rounds"
	return $failed
}
stampede_one() {
	local id=$1 look=$2 end=$((SECONDS + $3)) unit=$4 path
	stampede_info "p$id" "$unit"
	while [ $SECONDS -lt $end ]; do
		path=$(hostvol --timeout=120 connect --consumer "c$id" "/run/p$id.json") || return 1
		"$look" "$path" "$unit" || { echo "$path is not $unit"; return 1; }
		hostvol --timeout=120 disconnect --consumer "c$id" -f "/run/p$id.json" > /dev/null || return 1
		echo "round"
	done
}
