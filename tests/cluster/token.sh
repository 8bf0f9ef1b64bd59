# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# A service account's token that is good for so many seconds: the API server itself makes none for less than ten
# minutes. Sourced by bash.
#
#   service_token KEY NAMESPACE ACCOUNT UID SECONDS     KEY: what the API server signs tokens with; SECONDS may be negative
base64url() { base64 -w0 | tr '+/' '-_' | tr -d '='; }

service_token() {
	local now head claims
	now=$(date +%s)
	head=$(printf '{"alg":"RS256","typ":"JWT"}' | base64url)
	claims=$(printf '{"iss":"https://kubernetes.default.svc","aud":["https://kubernetes.default.svc"],"sub":"system:serviceaccount:%s:%s","iat":%d,"nbf":%d,"exp":%d,"jti":"%s","kubernetes.io":{"namespace":"%s","serviceaccount":{"name":"%s","uid":"%s"}}}' \
		"$2" "$3" $((now - 3600)) $((now - 3600)) $((now + $5)) "$(cat /proc/sys/kernel/random/uuid)" "$2" "$3" "$4" | base64url)
	printf '%s.%s.%s\n' "$head" "$claims" "$(printf '%s.%s' "$head" "$claims" | openssl dgst -sha256 -sign "$1" | base64url)"
}
