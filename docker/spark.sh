#!/bin/bash
# A part of a Spark cluster, whose secret is in the file SPARK_CONF:
#
#   spark.sh master HOST          the master, which listens as HOST
#   spark.sh worker HOST [OWN]    a worker of the master on HOST, whose own address is OWN
set -eu
conf="${SPARK_CONF:-/run/secrets/spark_conf}"
port="${SPARK_PORT:-7077}"
# The image sets an address for drivers whose tasks run in their own container.
unset SPARK_LOCAL_IP
[ -z "${SPARK_LISTEN:-}" ] || export SPARK_LOCAL_IP="$SPARK_LISTEN"
# What executors write is for the user of the platform alone, as what drivers write.
umask 077
[ -z "${TMPDIR:-}" ] || mkdir -p "$TMPDIR"
deploy=org.apache.spark.deploy
case "$1" in
    master)
        exec spark-class $deploy.master.Master --host "$2" --port "$port" --webui-port "${SPARK_PAGE:-8080}" \
            --properties-file "$conf"
        ;;
    worker)
        # Of several networks, the address in that of the master.
        here="${3:-}"
        [ -n "$here" ] || here="$(python -c 'import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), 30) as connection:
    print(connection.getsockname()[0])' "$2" "$port")"
        exec spark-class $deploy.worker.Worker --host "$here" --webui-port "${SPARK_PAGE:-8081}" \
            --cores "${SPARK_CORES:-2}" --memory "${SPARK_MEMORY:-2g}" --work-dir "${SPARK_WORK:-/tmp/work}" \
            --properties-file "$conf" "spark://$2:$port"
        ;;
    *)
        echo "usage: spark.sh master HOST | worker HOST" >&2
        exit 2
        ;;
esac
