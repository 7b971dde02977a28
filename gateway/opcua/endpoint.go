package opcua

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/gopcua/opcua/ua"

	"tidemark/reading"
)

// defaultPort is the one that IANA gave OPC UA.
const defaultPort = "4840"

// address returns the host and port to connect to: always those of the
// configuration, since a server behind a translated address announces names that
// only its own side knows.
func address(u *url.URL) string {
	return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), defaultPort))
}

// discover asks a server for its endpoints, over a channel without security as
// OPC UA Part 4 §5.4.4 has it. Nothing in the answer is believed but what a
// certificate proves later.
func discover(ctx context.Context, u *url.URL, now func() reading.Instant) ([]*ua.EndpointDescription, error) {
	c, err := dial(ctx, address(u), u.String(), secured{now: now})
	if err != nil {
		return nil, err
	}
	defer c.close()
	resp, err := c.send(ctx, nil, &ua.GetEndpointsRequest{EndpointURL: u.String()}, requestTimeout)
	if err != nil {
		return nil, err
	}
	r, ok := resp.(*ua.GetEndpointsResponse)
	if !ok {
		return nil, wrongAnswer(&ua.GetEndpointsRequest{}, resp)
	}
	return r.Endpoints, nil
}

// selectEndpoint returns the endpoint with exactly the security that is asked
// for, of several the one that the server ranks highest. There is no other one to
// fall back on.
func selectEndpoint(all []*ua.EndpointDescription, policyURI string, mode ua.MessageSecurityMode) (*ua.EndpointDescription, error) {
	var best *ua.EndpointDescription
	for _, e := range all {
		if e.SecurityPolicyURI != policyURI || e.SecurityMode != mode || !strings.HasPrefix(e.EndpointURL, "opc.tcp:") {
			continue
		}
		if best == nil || e.SecurityLevel > best.SecurityLevel {
			best = e
		}
	}
	if best == nil {
		return nil, fmt.Errorf("the server does not offer the configured security; set security to one of: %s", strings.Join(offers(all), ", "))
	}
	return best, nil
}

// offers lists what of the server's security can be configured.
func offers(all []*ua.EndpointDescription) []string {
	var list []string
	for _, e := range all {
		if e.SecurityMode == ua.MessageSecurityModeNone {
			list = append(list, "none")
		}
		for name, uri := range policies {
			if e.SecurityPolicyURI == uri {
				list = append(list, name+"/"+modeName(e.SecurityMode))
			}
		}
	}
	slices.Sort(list)
	if list = slices.Compact(list); len(list) == 0 {
		return []string{"(nothing that is still considered secure)"}
	}
	return list
}

func modeName(m ua.MessageSecurityMode) string {
	for name, mode := range modes {
		if mode == m {
			return name
		}
	}
	return "None"
}
