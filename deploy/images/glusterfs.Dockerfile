# SPDX-License-Identifier: Apache-2.0
# The image of storage and agent pods for those who have Docker; deploy/images/build makes a smaller
# one without. From the top of the checkout, after `ninja -C build` on Debian 12:
#   docker build -f deploy/images/glusterfs.Dockerfile -t localhost/quartermaster-glusterfs:VERSION .
FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates glusterfs-server libblkid1 \
	libexpat1 libjansson4 libnghttp2-14 libprotobuf-c1 libsqlite3-0 libssl3 libxxhash0 libyaml-0-2 mount util-linux \
	xfsprogs zlib1g && \
	rm -rf /var/lib/apt/lists/* && mkdir -p /etc/ssl/glusterfs /usr/lib/ssl /var/lib/quartermaster && \
	ln -sf /etc/ssl/glusterfs/tls.crt /usr/lib/ssl/glusterfs.pem && \
	ln -sf /etc/ssl/glusterfs/tls.key /usr/lib/ssl/glusterfs.key && \
	ln -sf /etc/ssl/glusterfs/ca.crt /usr/lib/ssl/glusterfs.ca
COPY LICENSE /usr/share/doc/quartermaster/copyright
COPY build/src/cli/quartermaster /usr/bin/
ENTRYPOINT ["/usr/bin/quartermaster"]
CMD ["help"]
