#!/usr/bin/env bash
# Makes the packages; called by `make packages`, which sets what stands in capitals.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0 VERSION MAINTAINER

# What every architecture shares: man pages, completions, documents.
share() {
  rm -rf dist/share
  mkdir -p dist/share/doc
  $GO run -tags pages -ldflags "-X main.version=$VERSION" ./cmd/tidemark pages dist/share
  cp README.md docs/*.md dist/share/doc/
  copyright >dist/share/doc/copyright
  changelog >dist/share/doc/changelog.Debian
  gzip -9n dist/share/man/*/* dist/share/doc/*.md dist/share/doc/changelog.Debian
}

# Ours, and the notices of every module in the binary.
copyright() {
  echo 'Tidemark is copyright 2026 the Tidemark authors. It contains the following'
  echo 'modules under their own licences.'
  $GO list -deps -f '{{with .Module}}{{.Path}} {{.Version}} {{.Dir}}{{end}}' ./cmd/tidemark | sort -u |
    while read -r path version dir; do
      [ "$path" != tidemark ] || continue
      printf '\n%s\n%s %s\n\n' '------------------------------------------------------------' "$path" "$version"
      cat "$dir"/LICEN[SC]E*
      [ ! -e "$dir/NOTICE" ] || cat "$dir/NOTICE"
    done
}

changelog() {
  printf 'tidemark (%s-1) stable; urgency=medium\n\n  * Release %s.\n\n' "$VERSION" "$VERSION"
  printf ' -- %s  %s\n' "$MAINTAINER" "$(LC_ALL=C date -R -u -d "@$SOURCE_DATE_EPOCH")"
}

# binary GOARCH NAME
binary() {
  mkdir -p "dist/$2"
  GOARCH=$1 GOARM=7 sh -c "$GO build $FLAGS -o dist/$2/tidemark ./cmd/tidemark"
}

# archive NAME: for systems without dpkg, laid out as it is installed.
archive() {
  local root="dist/tidemark-$VERSION-$1"
  rm -rf "$root"
  mkdir -p "$root"/{bin,etc/tidemark,lib/systemd/system,lib/sysusers.d,lib/tmpfiles.d,share/tidemark}
  install -m 755 "dist/$1/tidemark" "$root/bin/"
  install -m 644 configs/tidemark.yaml "$root/etc/tidemark/"
  install -m 644 systemd/tidemark.service "$root/lib/systemd/system/"
  install -m 644 systemd/sysusers.conf "$root/lib/sysusers.d/tidemark.conf"
  install -m 644 systemd/tmpfiles.conf "$root/lib/tmpfiles.d/tidemark.conf"
  install -m 644 configs/alerts.yaml configs/mosquitto.conf configs/mosquitto.acl "$root/share/tidemark/"
  cp -r uplink/schema "$root/share/tidemark/"
  cp -r dist/share/man dist/share/completion dist/share/doc "$root/share/"
  tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rw,a-s \
    -C dist -cf - "tidemark-$VERSION-$1" | gzip -9n >"dist/tidemark_${VERSION}_$1.tar.gz"
  rm -rf "$root"
}

share
for name in $ARCHS; do
  binary "${name/armhf/arm}" "$name"
  archive "$name"
  ARCH=$name DEBARCH=${name/armhf/arm7} $NFPM package -f systemd/nfpm.yaml -p deb -t "dist/tidemark_${VERSION}_$name.deb"
done
ls -l dist/*.deb dist/*.tar.gz
