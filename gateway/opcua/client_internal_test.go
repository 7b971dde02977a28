package opcua

import (
	"context"
	"testing"
	"time"

	"github.com/gopcua/opcua"
	"github.com/gopcua/opcua/ua"
)

// plain is a caller on the library's own client, without security.
type plain struct{ client *opcua.Client }

func dialPlain(t *testing.T, endpoint string) plain {
	t.Helper()
	client, err := opcua.NewClient(endpoint, opcua.SecurityMode(ua.MessageSecurityModeNone), opcua.AutoReconnect(false), opcua.RequestTimeout(20*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if err := client.Dial(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		client.Close(ctx)
	})
	cfg := opcua.DefaultSessionConfig()
	cfg.UserIdentityToken = &ua.AnonymousIdentityToken{PolicyID: "anonymous"}
	s, err := client.CreateSession(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	cfg.UserIdentityToken = &ua.AnonymousIdentityToken{PolicyID: "anonymous"}
	if err := client.ActivateSession(ctx, s); err != nil {
		t.Fatal(err)
	}
	return plain{client}
}

func (p plain) call(ctx context.Context, req ua.Request) (resp ua.Response, err error) {
	err = p.client.Send(ctx, req, func(r ua.Response) error { resp = r; return nil })
	return resp, err
}
