# SPDX-License-Identifier: Apache-2.0
# A Ceph cluster of one monitor and one OSD in memory, in the guest, for the scripts here to source.
ceph=/run/ceph-test
fsid=3f1c2a9e-0000-4000-8000-00000000c0de

ceph_config() {
	cat <<- END
		[global]
		fsid = $fsid
		mon_host = [v2:127.0.0.1:3300,v1:127.0.0.1:6789]
		public_addr = 127.0.0.1
		keyring = $ceph/keyring
		run_dir = $ceph
		admin_socket = $ceph/\$name.asok
		log_file = $ceph/\$name.log
		mon_cluster_log_file = $ceph/cluster.log
		mon_data = $ceph/mon
		osd_data = $ceph/osd
		osd_objectstore = memstore
		memstore_device_bytes = 536870912
		osd_pool_default_size = 1
		osd_pool_default_min_size = 1
		osd_pool_default_pg_autoscale_mode = off
		mon_allow_pool_size_one = true
		mon_data_avail_crit = 1
		osd_crush_chooseleaf_type = 0
		osd_op_num_shards = 1
		ms_async_op_threads = 1
		auth_allow_insecure_global_id_reclaim = true
	END
}
ceph_user() { printf '[%s]\n\tkey = %s\n\tcaps mon = "allow *"\n\tcaps osd = "allow *"\n' "$1" "$2"; }
ceph_start() {
	local osd_key
	mkdir -p $ceph/mon $ceph/osd && ceph_config > $ceph/ceph.conf && osd_key=$(ceph-authtool --gen-print-key) &&
		ceph_key=$(ceph-authtool --gen-print-key) || return 1
	{ ceph_user mon. "$(ceph-authtool --gen-print-key)"; ceph_user client.admin "$ceph_key"; ceph_user osd.0 "$osd_key"; } > $ceph/keyring
	ceph_user osd.0 "$osd_key" > $ceph/osd/keyring
	monmaptool -c $ceph/ceph.conf --create --fsid $fsid --addv a '[v2:127.0.0.1:3300,v1:127.0.0.1:6789]' $ceph/monmap &&
		ceph-mon -c $ceph/ceph.conf -i a --mkfs --monmap $ceph/monmap --keyring $ceph/keyring && ceph-mon -c $ceph/ceph.conf -i a &&
		ceph-osd --no-mon-config -c $ceph/ceph.conf -i 0 --mkfs --osd-uuid 3f1c2a9e-0000-4000-8000-00000000000d &&
		ceph-osd -c $ceph/ceph.conf -i 0
}
# A client for the whole test, since each start takes seconds: reads orders, and answers each with a line in $ceph/answers.
# pool NAME; image POOL NAME MIB [FEATURES]; resize POOL NAME MIB; lock POOL NAME, as another host would; unlock POOL NAME;
# rename POOL NAME NAME; fill POOL NAME, with 4 MiB of anything; sum POOL NAME, of all that is in it, to $ceph/sum
ceph_client() {
	touch $ceph/answers && mkfifo $ceph/orders && exec 7<> $ceph/orders || return 1
	/usr/bin/python3 -c "
import hashlib, json, os, rados, rbd, time
cluster = rados.Rados(conffile='$ceph/ceph.conf', name='client.admin')
cluster.connect(timeout=60)
def command(**words):
    code, out, err = cluster.mon_command(json.dumps(words), b'')
    if code: raise Exception(err)
    return out
while not json.loads(command(prefix='status', format='json'))['osdmap']['num_up_osds']:
    time.sleep(.1)
held = {}
for line in open('$ceph/orders'):
    word = line.split()
    try:
        if word[0] == 'pool':
            command(prefix='osd pool create', pool=word[1], pg_num=4, pgp_num=4, size=1, yes_i_really_mean_it=True)
            command(prefix='osd pool application enable', pool=word[1], app='rbd')
        elif word[0] == 'lock':
            image = rbd.Image(cluster.open_ioctx(word[1]), word[2])
            try:
                image.lock_acquire(rbd.RBD_LOCK_MODE_EXCLUSIVE)
                held[word[2]] = image
            except Exception:
                image.close()
                raise
        elif word[0] == 'unlock':
            image = held.pop(word[2])
            image.lock_release()
            image.close()
        else:
            with cluster.open_ioctx(word[1]) as io:
                if word[0] == 'image': rbd.RBD().create(io, word[2], int(word[3]) << 20, old_format=False, features=int((word + [1])[4]))
                elif word[0] == 'rename': rbd.RBD().rename(io, word[2], word[3])
                else:
                    with rbd.Image(io, word[2]) as image:
                        if word[0] == 'fill': image.write(os.urandom(4 << 20), 0)
                        elif word[0] == 'sum': open('$ceph/sum', 'w').write(hashlib.sha256(image.read(0, image.size())).hexdigest())
                        else: image.resize(int(word[3]) << 20)
        answer = 'done'
    except Exception as e:
        answer = str(e)
    open('$ceph/answers', 'a').write(line.strip() + ': ' + answer + '\n')
" < /dev/null > $ceph/client.log 2>&1 &
	ceph_client=$!
}
ceph_answers() { wc -l < $ceph/answers; }
ceph_order() {
	local before; before=$(ceph_answers)
	echo "$*" >&7
	wait_for 60 eval "[ \$(ceph_answers) -gt $before ]" && [ "$(tail -n 1 $ceph/answers)" = "$*: done" ] || { tail -n 1 $ceph/answers; cat $ceph/client.log; return 1; }
}
