#!/bin/bash
# A folder as an object store that speaks S3: S3Proxy, with one bucket, behind a password.
#
#   objectstore.sh serve    until it is ended
#   objectstore.sh check    exit status 0 if it answers, and does not let in who has no password
#
# Its user is `streamjoin`. It does not sync what it writes: of what it confirmed, a crash of the machine may lose some.
set -eu
port="${STORE_PORT:-9000}"
fail() {
    echo "objectstore: $1" >&2
    exit 2
}
serve() {
    local secret="${STORE_PASSWORD_FILE:-/run/secrets/objectstore_password}" folder="${STORE_DATA:-/data}"
    local bucket="${STORE_BUCKET:-states}" jars="${STORE_JARS:-/opt/objectstore/jars}" password
    [ -r "$secret" ] || fail "its password cannot be read from $secret; docker/make-secrets.sh makes one"
    password="$(cat "$secret")"
    # It stands in Java properties and in URIs, where other characters mean something.
    [[ "$password" =~ ^[A-Za-z0-9]{8,}$ ]] ||
        fail "the password in $secret is not of letters and digits alone, 8 or more; docker/make-secrets.sh makes one"
    [[ "$bucket" =~ ^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$ ]] ||
        fail "STORE_BUCKET is $bucket, and a bucket's name has 3 to 63 small letters, digits and hyphens"
    # What is stored is for its user alone.
    umask 077
    mkdir -p "$folder/$bucket" || fail "$folder cannot be written to; it is where objects are kept"
    # On the command line, or in the environment, others of the machine could see the password.
    exec java "-Xmx${STORE_MEMORY:-512m}" -XX:+UseSerialGC -cp "$jars/*" org.gaul.s3proxy.Main \
        --properties /dev/fd/3 3<<< "s3proxy.endpoint=http://${STORE_LISTEN:-0.0.0.0}:$port
s3proxy.authorization=aws-v2-or-v4
s3proxy.identity=streamjoin
s3proxy.credential=$password
jclouds.provider=filesystem-nio2
jclouds.filesystem.basedir=$folder
jclouds.identity=streamjoin
jclouds.credential=$password"
}
check() {
    local status=""
    { exec 3<> "/dev/tcp/127.0.0.1/$port"; } 2> /dev/null || fail "nobody answers on port $port"
    trap '' PIPE  # of one that does not listen to the end
    printf 'GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n' >&3 2> /dev/null || true
    read -r -t 3 _ status _ <&3 || true
    [ "$status" = 403 ] || fail "without a password port $port answers ${status:-nothing}, and not 403"
}
case "${1:-}" in
    serve | check) "$1" ;;
    *) fail "usage: objectstore.sh serve | check" ;;
esac
