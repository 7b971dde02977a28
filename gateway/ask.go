package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
)

// ask sends a request to the gateway that listens at the socket and returns its
// answer, whose body the caller closes. An answer may go on for as long as ctx
// lives. Errors say what a person at the command line can do about them.
func ask(ctx context.Context, socket, method, target string) (*http.Response, error) {
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}
	req, err := http.NewRequestWithContext(ctx, method, "http://gateway"+target, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("no gateway answers at %s: is it running, and may you open the socket? %w", socket, err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	var e struct{ Error string }
	switch err := json.NewDecoder(resp.Body).Decode(&e); {
	case err == nil && e.Error != "":
	case resp.StatusCode == http.StatusNotFound:
		e.Error = "it is of another version than this command"
	default:
		e.Error = resp.Status
	}
	if resp.StatusCode == http.StatusConflict { // it does, and will not
		return nil, &Refusal{e.Error}
	}
	return nil, fmt.Errorf("the gateway does not answer: %w", errors.New(e.Error))
}

// Refusal is the gateway's reason for not doing what it was asked to do: what it
// was given is at fault, or it is not the time.
type Refusal struct{ Reason string }

func (r *Refusal) Error() string { return r.Reason }

// askFor is ask for an answer that is a T.
func askFor[T any](ctx context.Context, socket, method, target string) (*T, error) {
	resp, err := ask(ctx, socket, method, target)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	v := new(T)
	if err := json.NewDecoder(resp.Body).Decode(v); err != nil {
		return nil, fmt.Errorf("the gateway's answer cannot be read: %w", err)
	}
	return v, nil
}

// AskStatus fetches the status of the gateway that listens at the socket.
func AskStatus(ctx context.Context, socket string) (*Status, error) {
	return askFor[Status](ctx, socket, http.MethodGet, "/status")
}
