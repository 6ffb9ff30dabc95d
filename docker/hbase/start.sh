#!/bin/sh
# HBase and its gateway; when one of them ends the container does, and is started again.
set -eu
set -- -XX:+UseSerialGC -Djava.net.preferIPv4Stack=true \
    -Dorg.apache.hbase.thirdparty.io.netty.tryReflectionSetAccessible=true --add-modules=jdk.unsupported \
    --add-exports=java.base/jdk.internal.misc=ALL-UNNAMED \
    --add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED
for package in java.nio sun.nio.ch java.lang jdk.internal.ref java.lang.reflect java.util java.util.concurrent; do
    set -- "$@" "--add-opens=java.base/$package=ALL-UNNAMED"
done
classes="/opt/hbase/conf:/opt/hbase/jars/*"
java "$@" -Xmx768m -cp "$classes" org.apache.hadoop.hbase.master.HMaster start &
master=$!
java "$@" -Xmx384m -cp "$classes" org.apache.hadoop.hbase.thrift.ThriftServer -threadpool -b 0.0.0.0 -p 9090 \
    --infoport -1 start &
gateway=$!
trap 'kill "$gateway" "$master" 2>/dev/null || true; wait; exit 0' TERM INT
while kill -0 "$master" 2>/dev/null && kill -0 "$gateway" 2>/dev/null; do
    sleep 1
done
kill "$gateway" "$master" 2>/dev/null || true
exit 1
