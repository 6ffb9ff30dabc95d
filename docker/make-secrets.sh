#!/bin/sh
# Makes the secrets of docker-compose.yml, each in a file of its own under docker/secrets. What is there stays.
set -eu
folder="$(dirname "$0")/secrets"
# Containers run as users of their own and see the files only; the folder keeps other users of this machine out.
chmod 700 "$folder"
make_secret() {
    [ -s "$folder/$1" ] && return
    printf '%s' "$2" > "$folder/$1.new"
    chmod 444 "$folder/$1.new"
    mv "$folder/$1.new" "$folder/$1"
}
random() {
    od -An -N24 -tx1 /dev/urandom | tr -d ' \n'
}
make_secret admin_password "$(random)"
make_secret secret_key "$(random)$(random)"
make_secret postgres_password "$(random)"
make_secret cassandra_password "$(random)"
make_secret redis_conf "requirepass $(random)"
make_secret redis_url "redis://:$(cut -d ' ' -f 2 "$folder/redis_conf")@redis:6379/0"
make_secret spark_conf "spark.authenticate true
spark.authenticate.secret $(random)"
make_secret spark_settings "{spark.authenticate: true, spark.authenticate.secret: '$(sed -n 's/.*secret //p' "$folder/spark_conf")'}"
make_secret objectstore_password "$(random)"
make_secret state_url "s3://streamjoin:$(cat "$folder/objectstore_password")@states?endpoint_override=objectstore:9000&scheme=http&region=us-east-1"
make_secret grafana_password "$(random)"
make_secret postgres_url "postgresql+psycopg://streamjoin:$(cat "$folder/postgres_password")@postgres:5432/streamjoin"
echo "secrets are in $folder; keep a copy of secret_key: without it connection secrets in the catalog are lost"
