package bridge

import (
	"embed"
	"encoding/json"
	"io"
	"net/http"
)

//go:embed pair/page.html pair/pair.js pair/pair.css
var pairFiles embed.FS

// brandName is how the pairing page and the prompt in the extension call this product.
const brandName = "Drover"

// contentPolicy lets the pairing page run its own script and nothing else, for what it offers is readable there.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Config is what the pairing page offers to an extension, in the protocol's words.
type Config struct {
	Transport   string `json:"transport"`
	ServerURL   string `json:"serverUrl"`
	Token       string `json:"token"`
	CommandPath string `json:"commandPath,omitempty"`
	ResultPath  string `json:"resultPath,omitempty"`
	Target      string `json:"target"`
}

// Offer makes a pairing and gives what an extension needs to use it. transport is websocket or sse-http.
func (n *Node) Offer(transport string) (Config, error) {
	p, token, err := n.store.Mint()
	if err != nil {
		return Config{}, err
	}
	c := Config{Transport: transport, Token: token, Target: p.Target, ServerURL: "ws://" + n.set.Listen + socketPath}
	if transport == "sse-http" {
		c.ServerURL, c.CommandPath, c.ResultPath = "http://"+n.set.Listen, commandPath+"/{target}", resultPath+"/{target}"
	}
	return c, nil
}

// pair serves the pairing page: the page, its two files, a fresh offer, and how an offer is.
func (h *holder) pair(w http.ResponseWriter, r *http.Request, path string) {
	switch path {
	case pairPath, pairPath + "/":
		w.Header().Set("Content-Security-Policy", contentPolicy)
		w.Header().Set("X-Frame-Options", "DENY")
		h.file(w, r, "pair/page.html", "text/html; charset=utf-8")
	case pairPath + "/pair.js":
		h.file(w, r, "pair/pair.js", "text/javascript; charset=utf-8")
	case pairPath + "/pair.css":
		h.file(w, r, "pair/pair.css", "text/css; charset=utf-8")
	case pairPath + "/offer", pairPath + "/state":
		h.pairCall(w, r, path == pairPath+"/offer")
	default:
		http.NotFound(w, r)
	}
}

func (h *holder) file(w http.ResponseWriter, r *http.Request, name, kind string) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		http.Error(w, "read it with GET", http.StatusMethodNotAllowed)
		return
	}
	data, err := pairFiles.ReadFile(name)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(data)
}

// pairCall answers the page's script, and no other: the origin must be this listener's own, and the user this one.
func (h *holder) pairCall(w http.ResponseWriter, r *http.Request, offer bool) {
	if r.Method != http.MethodPost || r.Header.Get("Origin") != "http://"+r.Host || r.Header.Get("Content-Type") != "application/json" {
		http.Error(w, "this is for the pairing page", http.StatusForbidden)
		return
	}
	if !sameUser(r.RemoteAddr, h.addr) {
		http.Error(w, "another user of this machine holds the listener", http.StatusForbidden)
		return
	}
	var in struct {
		Transport string `json:"transport"`
		Target    string `json:"target"`
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 4096))
	if err == nil {
		err = json.Unmarshal(data, &in)
	}
	if err != nil {
		http.Error(w, "the request cannot be read", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if !offer {
		h.mu.Lock()
		b, ok := h.known[in.Target]
		h.mu.Unlock()
		_ = json.NewEncoder(w).Encode(map[string]any{"connected": b.Connected, "paired": ok, "browser": b.Name})
		return
	}
	if in.Transport != "sse-http" {
		in.Transport = "websocket"
	}
	c, err := h.n.Offer(in.Transport)
	if err != nil {
		http.Error(w, "no offer could be made", http.StatusInternalServerError)
		h.n.set.Log.Error("no offer could be made", "error", err)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"config": c, "brand": map[string]string{"name": brandName}})
}
