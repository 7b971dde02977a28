#!/usr/bin/env bash
# board.sh DIR: a Debian for arm64 (DIR/disk) and its kernel (DIR/vmlinuz), for
# TestBoard. As root on a Debian whose kernel runs arm64 programs (.ci/run), with
# debootstrap, kmod and e2fsprogs.
set -euo pipefail
dir=$1 root=$1/root
rm -rf --one-file-system "$root"
mkdir -p "$root" "$dir/apt/lists/partial" "$dir/apt/archives/partial"
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -v security | head -1)

# Its own programs configure it, here, by the emulator that the kernel knows of.
debootstrap --arch=arm64 --foreign --variant=minbase \
  --include=systemd,systemd-sysv,dbus,init-system-helpers,iproute2,mosquitto,qemu-guest-agent bookworm "$root" "$mirror"
echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/board"
chroot "$root" /debootstrap/debootstrap --second-stage
chroot "$root" apt-get clean

# The kernel: unpacked. Disks (NVMe) and ext4 are built into it, the rest is named.
apt() { apt-get -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State::Lists="$dir/apt/lists" -o Dir::Cache="$dir/apt" -o APT::Sandbox::User=root "$@" </dev/null; }
apt update
(
  cd "$dir/apt"
  apt download linux-image-cloud-arm64
  image=$(dpkg-deb -f linux-image-cloud-arm64_*.deb Depends | grep -o 'linux-image-[^ ]*')
  apt download "$image"
  dpkg-deb -x "$image"_*.deb kernel
)
mv "$dir"/apt/kernel/boot/vmlinuz-* "$dir/vmlinuz"
cp -r "$dir"/apt/kernel/lib/modules "$root/lib/"
depmod -b "$root" "$(ls "$root/lib/modules")"

# There is no udev: what it would do at a boot costs an emulated board half a minute.
printf '%s\n' virtio_pci virtio_console virtio_net >"$root/etc/modules-load.d/board.conf"
cat >"$root/etc/systemd/system/agent.service" <<'UNIT'
[Unit]
After=systemd-modules-load.service
[Service]
ExecStartPre=ip address add 10.0.2.15/24 dev eth0
ExecStartPre=ip link set eth0 up
ExecStart=/bin/sh -c "exec qemu-ga --path=$(echo /dev/vport*)"
[Install]
WantedBy=multi-user.target
UNIT
chroot "$root" systemctl enable agent
chroot "$root" systemctl disable getty@tty1 e2scrub_reap
chroot "$root" systemctl mask kmod-static-nodes # without kmod
: >"$root/etc/machine-id"
echo board >"$root/etc/hostname"

truncate --size=2G "$dir/disk.new"
mke2fs -q -t ext4 -d "$root" "$dir/disk.new"
mv "$dir/disk.new" "$dir/disk"
rm -rf --one-file-system "$root" "$dir/apt"
