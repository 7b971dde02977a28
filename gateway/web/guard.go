package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// cookie keeps what a browser was given for the token.
const cookie = "tidemark_token"

// lets reports whether a request may be answered, and answers it if not: with a
// token, whoever knows it may ask; without one, whoever asks from this machine and by
// a loopback name, which no page from elsewhere can (DNS rebinding).
func (s *Server) lets(w http.ResponseWriter, r *http.Request) bool {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	switch {
	case s.token == nil && !(loopback(r.Host) && loopback(r.RemoteAddr)):
		http.Error(w, "ask by a loopback address or as localhost", http.StatusForbidden)
	case s.token == nil || knows(r, s.token):
		return true
	case r.Method == http.MethodPost && r.URL.Path == "/login":
		login(w, r, s.token)
	default:
		askToken(w, "")
	}
	return false
}

// askToken answers with the form that asks for the token, and with what was wrong with
// the last one.
func askToken(w http.ResponseWriter, wrong string) {
	w.Header().Set("WWW-Authenticate", "Bearer")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(http.StatusUnauthorized)
	_, _ = fmt.Fprintf(w, loginForm, wrong)
}

const loginForm = `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>Tidemark: token</title><link rel="icon" href="/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/style.css"><main class="login"><h1>Tidemark</h1>
<form method="post" action="/login"><p class="err" role="alert">%s</p><label for="token">Token of this gateway (web.token)</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
<button>Look</button></form></main></html>`

// login gives a browser that knows the token a cookie that no script and no other site
// can use, and that does not tell the token.
func login(w http.ResponseWriter, r *http.Request, token []byte) {
	r.Body = http.MaxBytesReader(w, r.Body, 4096)
	if !same([]byte(r.PostFormValue("token")), token) {
		askToken(w, "That is not the token of this gateway.")
		return
	}
	http.SetCookie(w, &http.Cookie{Name: cookie, Value: pass(token), Path: "/", HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// knows reports whether the request brings the token.
func knows(r *http.Request, token []byte) bool {
	if r.URL.Path == "/style.css" || r.URL.Path == "/icon.svg" {
		return true // the form's
	}
	if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return same([]byte(bearer), token)
	}
	c, err := r.Cookie(cookie)
	return err == nil && same([]byte(c.Value), []byte(pass(token)))
}

// pass is what stands for the token in a cookie, which could not hold every token.
func pass(token []byte) string {
	sum := sha256.Sum256(append([]byte("tidemark page "), token...))
	return hex.EncodeToString(sum[:])
}

// same compares in a time that tells nothing.
func same(a, b []byte) bool {
	x, y := sha256.Sum256(a), sha256.Sum256(b)
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// loopback reports whether a host with or without a port is this machine to itself.
func loopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && addr.IsLoopback()
}
