#!/bin/sh
# Writes the digests that the registries name today for all images into docker/images.lock:
#
#   sh docker/pin-images.sh && docker compose --env-file docker/images.lock up --build --wait
set -eu
cd "$(dirname "$0")"
trap 'rm -f images.lock.new' EXIT
{
    sed '/^[A-Z]/d' images.lock
    sed -nE 's/^ *(image:|FROM) ([^ $]+)\$\{([A-Z]+_DIGEST)-?\}.*/\3 \2/p' ../docker-compose.yml Dockerfile hbase/Dockerfile objectstore/Dockerfile |
        sort -u | while read -r variable image; do
            digest="$(docker buildx imagetools inspect --format '{{.Manifest.Digest}}' "$image")"
            case "$digest" in sha256:*) ;; *) echo "no digest of $image" >&2; exit 1 ;; esac
            echo "$variable=@$digest"
        done
} > images.lock.new
mv images.lock.new images.lock
