package web

import (
	"context"
	"embed"
	"encoding/json"
	"io/fs"
	"net/http"

	"github.com/rs/zerolog"
)

//go:embed page
var files embed.FS

// View makes what the page shows, to be encoded as JSON.
type View func(ctx context.Context) (any, error)

// Page is the local page: one document without build step, fonts or anything from
// elsewhere, so that it works on a plant network and on a phone. Views come once by
// /api/view and every second as server-sent events by /api/stream; they are made
// once for all who look, and not at all while nobody does. Make it with NewPage; Run
// feeds those who look.
type Page struct {
	view View
	hub  hub
	log  zerolog.Logger
}

// NewPage returns the page over a view.
func NewPage(view View, log zerolog.Logger) *Page {
	return &Page{view: view, hub: newHub(), log: log}
}

// Register puts the page and its data where a browser looks for them.
func (p *Page) Register(s *Server) {
	page, err := fs.Sub(files, "page")
	if err != nil {
		panic("web: " + err.Error()) // the name is a constant
	}
	static := http.FileServerFS(page)
	s.handle("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache")
		static.ServeHTTP(w, r)
	})
	s.handle("GET /app.js", static.ServeHTTP)
	s.handle("GET /format.js", static.ServeHTTP)
	s.handle("GET /style.css", static.ServeHTTP)
	s.handle("GET /icon.svg", static.ServeHTTP)
	s.handle("GET /api/view", p.serveView)
	s.mux.HandleFunc("GET /api/stream", p.serveStream)
}

func (p *Page) serveView(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	v, err := p.view(r.Context())
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		v = map[string]string{"error": err.Error()}
	}
	_ = json.NewEncoder(w).Encode(v) // whoever went away needs no answer
}
