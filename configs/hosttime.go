package configs

import (
	"bufio"
	"bytes"
	"io/fs"
	"slices"
	"strings"
)

// HostServer is an NTP server that this host's own daemon was told of.
type HostServer struct {
	Server string
	From   string // the file that names it
	// Public servers are shown and never proposed: they are a distribution's
	// default, not a choice for this plant.
	Public bool
}

// hostFiles are where daemons are told of servers, and how a line is read.
var hostFiles = []struct {
	pattern string
	read    func(line string) []string
}{
	{"etc/chrony/chrony.conf", chronyLine},
	{"etc/chrony.conf", chronyLine},
	{"etc/chrony/conf.d/*.conf", chronyLine},
	{"etc/chrony/sources.d/*.sources", chronyLine},
	{"etc/chrony.d/*.conf", chronyLine},
	{"run/chrony-dhcp/*.sources", chronyLine},
	{"etc/systemd/timesyncd.conf", systemdLine},
	{"etc/systemd/timesyncd.conf.d/*.conf", systemdLine},
	{"run/systemd/timesyncd.conf.d/*.conf", systemdLine},
	{"run/systemd/netif/links/*", systemdLine},
	{"run/systemd/netif/leases/*", systemdLine}, // of networkd's DHCP client
	{"var/lib/dhcp/dhclient*.leases", leaseLine},
	{"etc/ntpsec/ntp.conf", chronyLine},
	{"run/ntpsec/ntp.conf.dhcp", chronyLine},
	{"etc/ntp.conf", chronyLine},
	{"etc/ntpd.conf", chronyLine},
	{"etc/openntpd/ntpd.conf", chronyLine},
}

// HostServers reads the configuration of chrony, systemd-timesyncd, ntpsec, ntp and
// OpenNTPD, and what DHCP told them, below root ("/" of the host) and returns each server once, those of
// this plant first. Files that are not there are passed over.
func HostServers(root fs.FS) []HostServer {
	var found []HostServer
	for _, h := range hostFiles {
		paths, err := fs.Glob(root, h.pattern)
		if err != nil {
			continue
		}
		for _, path := range paths {
			data, err := fs.ReadFile(root, path)
			if err != nil {
				continue
			}
			for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
				for _, s := range h.read(lines.Text()) {
					found = addServer(found, s, "/"+path)
				}
			}
		}
	}
	slices.SortStableFunc(found, func(a, b HostServer) int {
		switch {
		case a.Public == b.Public:
			return 0
		case a.Public:
			return 1
		}
		return -1
	})
	return found
}

func addServer(found []HostServer, server, from string) []HostServer {
	host, ok := splitServer(server)
	if !ok || strings.HasPrefix(host, "127.127.") || slices.ContainsFunc(found, func(f HostServer) bool { return f.Server == server }) {
		return found // 127.127.x.y are reference clocks, not servers
	}
	return append(found, HostServer{server, from, isPublic(host)})
}

// chronyLine reads `server NAME …`, as chrony, ntp and OpenNTPD have it.
func chronyLine(line string) []string {
	words := strings.Fields(line)
	if len(words) < 2 {
		return nil
	}
	switch strings.ToLower(words[0]) {
	case "server", "servers", "pool", "peer":
		return words[1:2]
	}
	return nil
}

// systemdLine reads `NTP=NAME NAME`. FallbackNTP is the distribution's.
func systemdLine(line string) []string {
	names, ok := strings.CutPrefix(strings.TrimSpace(line), "NTP=")
	if !ok {
		return nil
	}
	return strings.Fields(names)
}

// leaseLine reads `option ntp-servers ADDRESS,ADDRESS;`, as dhclient notes it.
func leaseLine(line string) []string {
	list, ok := strings.CutPrefix(strings.TrimSpace(line), "option ntp-servers ")
	if !ok {
		return nil
	}
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ';' || r == ' ' })
}

var publicServers = []string{
	"pool.ntp.org", "ntp.org", "ntp.ubuntu.com", "time.cloudflare.com", "google.com", "time.windows.com", "time.apple.com",
	"nist.gov", "facebook.com", "amazonaws.com", "amazon.com",
}

func isPublic(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	return slices.ContainsFunc(publicServers, func(p string) bool { return host == p || strings.HasSuffix(host, "."+p) })
}
