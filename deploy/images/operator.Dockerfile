# SPDX-License-Identifier: Apache-2.0
# The operator's image for those who have Docker; deploy/images/build makes a smaller one without.
# From the top of the checkout, after `ninja -C build` on Debian 12:
#   docker build -f deploy/images/operator.Dockerfile -t localhost/quartermaster-operator:VERSION .
FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates cifs-utils e2fsprogs glusterfs-common \
	libblkid1 libexpat1 libgfapi0 libjansson4 libnghttp2-14 libprotobuf-c1 libsqlite3-0 libssl3 libxxhash0 \
	libyaml-0-2 netbase nfs-common xfsprogs zlib1g && \
	rm -rf /var/lib/apt/lists/* && mkdir -p /etc/ssl/glusterfs /usr/lib/ssl && \
	ln -sf /etc/ssl/glusterfs/tls.crt /usr/lib/ssl/glusterfs.pem && \
	ln -sf /etc/ssl/glusterfs/tls.key /usr/lib/ssl/glusterfs.key && \
	ln -sf /etc/ssl/glusterfs/ca.crt /usr/lib/ssl/glusterfs.ca
COPY LICENSE /usr/share/doc/quartermaster/copyright
COPY build/src/cli/quartermaster build/src/worker/qm-gluster build/src/clients/qm-client /usr/bin/
ENTRYPOINT ["/usr/bin/quartermaster"]
CMD ["help"]
