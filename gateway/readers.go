package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"tidemark/clock"
	"tidemark/configs"
	"tidemark/gateway/mqtt"
	"tidemark/gateway/opcua"
	"tidemark/history"
	"tidemark/internal/pki"
	"tidemark/reading"
)

// reader brings what an input's source sends, whichever protocol it speaks.
type reader interface {
	Run(ctx context.Context) error
	input() string
	standing() *ReaderStatus
	// Tags lists where readings are expected to come from.
	Tags() []reading.Point
}

type mqttReader struct{ *mqtt.Reader }

func (r mqttReader) input() string { return r.Status().Input }

func (r mqttReader) standing() *ReaderStatus {
	s := r.Status()
	return &ReaderStatus{
		State: s.State.String(), Problem: s.Problem, Broker: s.Broker, ClientID: s.ClientID, LastData: history.Time(s.LastNS),
		CertificateEnds: history.Time(s.CertificateEndNS), Reconnects: s.Reconnects, Messages: s.Messages, Redelivered: s.Redelivered, CatchingUp: s.CatchingUp,
		Outstanding: s.Outstanding, Window: s.Limit, Queued: s.Queued,
	}
}

type opcuaReader struct{ *opcua.Reader }

func (r opcuaReader) input() string { return r.Status().Input }

func (r opcuaReader) standing() *ReaderStatus {
	s := r.Status()
	st := &ReaderStatus{
		State: s.State.String(), Problem: s.Problem, Server: s.Server, LastData: history.Time(s.LastNS),
		CertificateEnds: history.Time(s.CertificateEndNS), Reconnects: s.Reconnects, Messages: s.Messages, Redelivered: s.Redelivered, CatchingUp: s.CatchingUp, Outstanding: s.Outstanding,
		Subscriptions: s.Subscriptions, Monitored: s.Monitored, Rebuilt: s.Rebuilt,
	}
	for _, u := range s.Unread {
		st.Unread = append(st.Unread, UnreadNode(u))
	}
	return st
}

// peer is whom the reader speaks with.
func (s *ReaderStatus) peer() string { return cmp.Or(s.Broker, s.Server) }

func (s *session) addOPCUA(in *configs.Input) error {
	cfg := OPCUAConfig(s.cfg, in)
	cfg.Memory, cfg.KnownTags = s.store.Meta(metaMemory+in.Name), s.store.Meta(metaNodes+in.Name)
	cfg.OnStall = s.pipe.Hurry
	cfg.KeepTags = func(list []byte) { s.pipe.keepNodes(in.Name, list) }
	cfg.Certificates = s.certificates // one for all, so that our own is made once
	r, err := opcua.New(cfg, s.pipe, serverArrivals{s.clk, in.Name}, s.log)
	if err != nil {
		return err
	}
	s.readers = append(s.readers, opcuaReader{r})
	return nil
}

var triggers = map[configs.Trigger]opcua.Trigger{
	configs.TriggerStatusValue: opcua.StatusValue, configs.TriggerStatus: opcua.StatusOnly, configs.TriggerStatusValueTimestamp: opcua.StatusValueTimestamp,
}

// OPCUAConfig is what an OPC UA input is to its reader.
func OPCUAConfig(c *configs.Config, in *configs.Input) opcua.Config {
	o := in.OPCUA
	target := o.Endpoint.URL
	out := opcua.Config{
		Input: in.Name, Endpoint: &target, Security: string(o.Security), Login: login(configs.Login{User: o.Login.User, Password: o.Login.Password}),
		CertificateHost: o.CertificateHost, AllowExpired: o.AllowExpired, UserCertificate: userCertificate(o.Login),
		Sampling: o.Sampling.Std(), Publishing: o.Publishing.Std(), Backfill: o.Backfill.Max.Std(),
		Certificates: pki.At(c.PKI.Dir.String()), Application: Application(c),
		CatchUpMax: c.Limits.CatchupMax.Std(), Assets: assets(c),
	}
	for i := range o.Nodes {
		n := &o.Nodes[i]
		rule := opcua.Nodes{
			Under: n.Under, Match: n.Match, Exclude: n.Exclude, Asset: n.Asset, AddNew: n.NewTags == configs.NewTagsAdd,
			Deadband: opcua.Deadband(n.Deadband), Trigger: triggers[n.Trigger],
		}
		tags, err := n.TagList()
		for _, t := range tags {
			rule.Tags = append(rule.Tags, opcua.Tag{
				Node: t.Node, Asset: t.Asset, Device: t.Device, Sensor: t.Sensor, Unit: t.Unit, Deadband: (*opcua.Deadband)(t.Deadband), Trigger: triggers[t.Trigger],
				Line: fmt.Sprintf("%s:%d", filepath.Base(n.Tags.String()), t.Line),
			})
		}
		rule.Faults = tagFaults(n.Tags.String(), err)
		out.Nodes = append(out.Nodes, rule)
	}
	return out
}

// Application is what the gateway calls itself to OPC UA servers.
func Application(c *configs.Config) pki.Subject {
	host, _ := os.Hostname() // a certificate without a host is as good for a client
	return pki.Subject{Name: "Tidemark " + c.Gateway.ID, URI: "urn:tidemark:" + url.PathEscape(c.Gateway.ID), Host: host}
}

func userCertificate(l configs.OPCUALogin) func() (*pki.Identity, error) {
	if l.Cert == "" {
		return nil
	}
	return func() (*pki.Identity, error) {
		key, err := l.Key.Read()
		if err != nil {
			return nil, err
		}
		return pki.Load(l.Cert.String(), key)
	}
}

// tagFaults is what is wrong with a tag file, by line where it is lines.
func tagFaults(file string, err error) (out []opcua.Unread) {
	var faults configs.Faults
	if err != nil && !errors.As(err, &faults) {
		return []opcua.Unread{{Place: file, Reason: err.Error()}}
	}
	for _, f := range faults {
		out = append(out, opcua.Unread{Place: fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column), Reason: f.Reason})
	}
	return out
}

// serverArrivals is the clock as the reader of one OPC UA input sees it.
type serverArrivals struct {
	*clock.Clock
	input string
}

// ObserveServer passes a measurement of the server's clock on.
func (a serverArrivals) ObserveServer(x reading.ServerExchange) { a.Clock.ObserveServer(a.input, x) }
