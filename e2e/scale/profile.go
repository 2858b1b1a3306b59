package scale

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// profileLength is how long processors are profiled into one file. go tool pprof adds files up.
const profileLength = 30 * time.Second

// profiles takes profiles of virt-controller and of the API server, one after another, until stop
// is called, if they are asked for. stop returns when they are written.
func (r *rig) profiles(ctx context.Context, name string) (stop func() error) {
	if r.Profiles == "" {
		return func() error { return nil }
	}
	path := fmt.Sprintf("/debug/pprof/profile?seconds=%d", int(profileLength.Seconds()))
	over := make(chan struct{})
	failed := make(chan error, 2)
	each := func(program string, take func(ctx context.Context, path, file string) error) {
		for i := 1; ; i++ {
			if err := take(ctx, path, fmt.Sprintf("%s-%s-cpu-%d.pprof", name, program, i)); err != nil {
				failed <- err
				return
			}
			select {
			case <-over:
				failed <- nil
				return
			default:
			}
		}
	}
	go each("controller", r.controllerProfile)
	go each("apiserver", r.apiserverProfile)
	return func() error {
		close(over)
		return errors.Join(<-failed, <-failed)
	}
}

// heaps takes profiles of the heaps, after a collection.
func (r *rig) heaps(ctx context.Context, name string) error {
	if r.Profiles == "" {
		return nil
	}
	if err := r.controllerProfile(ctx, "/debug/pprof/heap?gc=1", name+"-controller-heap.pprof"); err != nil {
		return err
	}
	return r.apiserverProfile(ctx, "/debug/pprof/heap?gc=1", name+"-apiserver-heap.pprof")
}

func (r *rig) controllerProfile(ctx context.Context, path, file string) error {
	c := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", r.profileSocket())
	}}}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://profile"+path, nil)
	if err != nil {
		return err
	}
	a, err := c.Do(q)
	if err != nil {
		return fmt.Errorf("profile virt-controller: %w", err)
	}
	defer func() { _ = a.Body.Close() }()
	if a.StatusCode != http.StatusOK {
		return fmt.Errorf("profile virt-controller: %s", a.Status)
	}
	return r.save(file, a.Body)
}

func (r *rig) apiserverProfile(ctx context.Context, path, file string) error {
	a, err := r.kube.Discovery().RESTClient().Get().RequestURI(path).Stream(ctx)
	if err != nil {
		return fmt.Errorf("profile kube-apiserver: %w", err)
	}
	defer func() { _ = a.Close() }()
	return r.save(file, a)
}

func (r *rig) save(file string, from io.Reader) error {
	if err := os.MkdirAll(r.Profiles, 0o755); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(r.Profiles, file))
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}
