#!/bin/sh
# Makes stand-ins for the base images of the Dockerfile, where no image registry can be reached: Debian with Node.js and
# npm, and a file system with Node.js and its libraries alone. Needs podman, debootstrap, npm and the rights of root.
# usage: stand-in-images.sh <empty folder> <Debian mirror>
set -eu
folder=$1 mirror=$2
node=$(dirname "$0")/../../../node_modules/node/bin/node
npm=$(dirname "$(readlink -f "$(command -v npm)")")/..
path=PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

build=$folder/build
debootstrap --variant=minbase --include=ca-certificates bookworm "$build" "$mirror"
mkdir -p "$build/usr/local/bin" "$build/usr/local/lib/node_modules"
cp "$node" "$build/usr/local/bin/node"
cp -r "$npm" "$build/usr/local/lib/node_modules/npm"
ln -s ../lib/node_modules/npm/bin/npm-cli.js "$build/usr/local/bin/npm"
tar -C "$build" -c . | podman import -c "ENV $path" - docker.io/library/node:24-bookworm-slim

last=$folder/last
mkdir -p "$last/nodejs/bin" "$last/etc" "$last/tmp" "$last/home/nonroot"
cp "$node" "$last/nodejs/bin/node"
for library in $(ldd "$node" | grep -o '/[^ ]*'); do
  mkdir -p "$last$(dirname "$library")"
  cp -L "$library" "$last$library"
done
printf 'root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n' > "$last/etc/passwd"
printf 'root:x:0:\nnonroot:x:65532:\n' > "$last/etc/group"
chown 65532:65532 "$last/home/nonroot"
chmod 1777 "$last/tmp"
tar -C "$last" -c . | podman import -c USER=65532 -c WORKDIR=/home/nonroot -c "ENV $path" \
  - gcr.io/distroless/nodejs24-debian12:nonroot
