package main

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"strings"

	"github.com/gorilla/websocket"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
)

// server serves the page and what it asks for.
type server struct {
	client    *client.Client
	namespace string // "" is all
	host      string // with the port
	token     string
	mux       *http.ServeMux
}

// newServer makes a server for pages that a browser gets from the host, an address with a
// port.
func newServer(c *client.Client, namespace string, page fs.FS, host string) *server {
	s := &server{client: c, namespace: namespace, host: host, token: rand.Text(), mux: http.NewServeMux()}
	s.mux.Handle("GET /", http.FileServerFS(page))
	s.mux.HandleFunc("GET /api/vms", s.list)
	s.mux.HandleFunc("POST /api/{namespace}/{name}/{verb}", s.call)
	s.mux.HandleFunc("GET /api/{namespace}/{name}/{stream}", s.stream)
	return s
}

// url is the address of the page.
func (s *server) url() string { return "http://" + s.host + "/" + s.token + "/" }

// ServeHTTP answers requests that have the token, come by the name that the program has
// printed, and are not from a page of another origin.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	token, path, below := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	origins := r.Header.Values("Origin")
	switch {
	case r.Host != s.host:
		http.Error(w, "this host name is not the one that vnc-web has printed", http.StatusForbidden)
	case len(origins) > 1, len(origins) == 1 && origins[0] != "http://"+s.host:
		http.Error(w, "the request is from a page of another origin", http.StatusForbidden)
	case subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) != 1 || !below:
		http.Error(w, "open the URL that vnc-web has printed", http.StatusForbidden)
	case websocket.IsWebSocketUpgrade(r) && len(origins) == 0:
		http.Error(w, "a stream needs an origin", http.StatusForbidden)
	default:
		to := r.Clone(r.Context())
		to.URL.Path, to.URL.RawPath = "/"+path, ""
		s.mux.ServeHTTP(w, to)
	}
}

// list answers with the VMs.
func (s *server) list(w http.ResponseWriter, r *http.Request) {
	rows, err := list(r.Context(), s.client, s.namespace)
	if err != nil {
		refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(rows)
}

// refuse answers with an error of the API.
func refuse(w http.ResponseWriter, err error) {
	code := http.StatusBadGateway
	var known apierrors.APIStatus
	if errors.As(err, &known) && known.Status().Code >= 400 {
		code = int(known.Status().Code)
	}
	http.Error(w, err.Error(), code)
}

// permitted says that the namespace is one of those that are shown.
func (s *server) permitted(w http.ResponseWriter, r *http.Request) bool {
	ok := s.namespace == "" || s.namespace == r.PathValue("namespace")
	if !ok {
		http.Error(w, "this namespace is not shown: start vnc-web with -n or -A", http.StatusForbidden)
	}
	return ok
}

// call calls a verb.
func (s *server) call(w http.ResponseWriter, r *http.Request) {
	if !s.permitted(w, r) {
		return
	}
	vms, vmis := s.client.VirtualMachines(r.PathValue("namespace")), s.client.VirtualMachineInstances(r.PathValue("namespace"))
	ctx, name := r.Context(), r.PathValue("name")
	var err error
	switch r.PathValue("verb") {
	case "start":
		err = vms.Start(ctx, name, vmi.StartOptions{})
	case "stop":
		err = vms.Stop(ctx, name, vmi.StopOptions{})
	case "pause":
		err = vmis.Pause(ctx, name, vmi.PauseOptions{})
	case "unpause":
		err = vmis.Unpause(ctx, name, vmi.UnpauseOptions{})
	default:
		http.NotFound(w, r)
		return
	}
	if err != nil {
		refuse(w, err)
	}
}

// stream joins the websocket of the page and a stream of the guest.
func (s *server) stream(w http.ResponseWriter, r *http.Request) {
	if !s.permitted(w, r) {
		return
	}
	vmis := s.client.VirtualMachineInstances(r.PathValue("namespace"))
	var guest net.Conn
	var err error
	switch r.PathValue("stream") {
	case "console":
		guest, err = vmis.Console(r.Context(), r.PathValue("name"))
	case "screen":
		guest, err = vmis.VNC(r.Context(), r.PathValue("name"), client.VNCOptions{})
	default:
		http.NotFound(w, r)
		return
	}
	if err != nil {
		refuse(w, err)
		return
	}
	page, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		_ = guest.Close() // the answer has been sent
		return
	}
	join(r.Context(), page, guest)
}
