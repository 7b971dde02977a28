#!/usr/bin/env bash
# Makes the packages; called by `make packages`, which sets what stands in capitals.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0 VERSION MAINTAINER

# What every architecture shares, laid out as in /usr/share: man pages, completions,
# documents, alert rules, examples, schemas.
share() {
  local doc=dist/share/doc/tidemark data=dist/share/tidemark
  rm -rf dist/share
  mkdir -p "$doc" "$data"
  $GO run -tags pages -ldflags "-X main.version=$VERSION" ./cmd/tidemark pages dist/share
  cp README.md docs/*.md "$doc"
  cp systemd/README.md "$doc/service.md"
  copyright >"$doc/copyright"
  changelog >"$doc/changelog.Debian"
  gzip -9n dist/share/man/*/* "$doc"/*.md "$doc/changelog.Debian"
  cp -r configs/alerts.yaml configs/mosquitto.conf configs/mosquitto.acl uplink/schema "$data"
  chmod -R u=rwX,go=rX dist/share
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

# archive NAME: for systems without dpkg, laid out as in /usr. There is no
# configuration in it, so that an update cannot replace one; init writes the first.
archive() {
  local root="dist/tidemark-$VERSION-$1"
  rm -rf "$root"
  mkdir -p "$root"/{bin,lib/systemd/system,lib/sysusers.d,lib/tmpfiles.d}
  install -m 755 "dist/$1/tidemark" "$root/bin/"
  install -m 644 systemd/tidemark.service "$root/lib/systemd/system/"
  install -m 644 systemd/sysusers.conf "$root/lib/sysusers.d/tidemark.conf"
  install -m 644 systemd/tmpfiles.conf "$root/lib/tmpfiles.d/tidemark.conf"
  cp -r dist/share "$root/"
  mv "$root/share/zsh/vendor-completions" "$root/share/zsh/site-functions" # Debian's name for it
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
