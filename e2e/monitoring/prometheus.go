package monitoring

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"sigs.k8s.io/yaml"
)

// Config is what a Prometheus needs.
type Config struct {
	// Program is that of the toolchain. Required.
	Program string
	// Dir is an empty folder for what it writes. Required.
	Dir string
	// Listen is the address and port of its API. Required.
	Listen string
	// Rules are a file of rules. Required.
	Rules []byte
	// Scrape says what it reads. Files in it are below Dir. Required.
	Scrape map[string]any
	// Interval is the time from one scrape, and one evaluation of rules, to the next. Required.
	Interval time.Duration
	// Run starts the program. Nil: as a child of this process, in its network.
	Run func(*exec.Cmd) error
	// Client reaches the API of the program. Required.
	Client *http.Client
}

// Server is a Prometheus that runs.
type Server struct {
	config Config
	cmd    *exec.Cmd
	ended  chan struct{}
}

// Start starts a Prometheus, and returns when it answers. Call Stop.
func Start(ctx context.Context, c Config) (*Server, error) {
	interval := c.Interval.String()
	config, err := yaml.Marshal(map[string]any{
		"global":         map[string]any{"scrape_interval": interval, "scrape_timeout": interval, "evaluation_interval": interval},
		"rule_files":     []string{"rules.yaml"},
		"scrape_configs": []any{c.Scrape},
	})
	if err != nil {
		return nil, err
	}
	for name, text := range map[string][]byte{"prometheus.yaml": config, "rules.yaml": c.Rules} {
		if err := os.WriteFile(filepath.Join(c.Dir, name), text, 0o600); err != nil {
			return nil, err
		}
	}
	log, err := os.Create(filepath.Join(c.Dir, "log"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	s := &Server{c, exec.Command(c.Program, "--config.file=prometheus.yaml", "--storage.tsdb.path=data", "--web.listen-address="+c.Listen), make(chan struct{})}
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr = c.Dir, log, log
	run := c.Run
	if run == nil {
		run = (*exec.Cmd).Start
	}
	if err := run(s.cmd); err != nil {
		return nil, fmt.Errorf("start Prometheus: %w", err)
	}
	go func() { _ = s.cmd.Wait(); close(s.ended) }()
	for {
		_, err := s.get(ctx, "/-/ready", nil)
		if err == nil {
			return s, nil
		}
		select {
		case <-ctx.Done():
			err = errors.Join(err, ctx.Err())
		case <-s.ended:
			err = errors.New("it has ended")
		case <-time.After(100 * time.Millisecond):
			continue
		}
		said, _ := os.ReadFile(log.Name())
		return nil, errors.Join(fmt.Errorf("the Prometheus server is not ready: %w: %s", err, said), s.Stop())
	}
}

// Stop ends it.
func (s *Server) Stop() error {
	err := s.cmd.Process.Kill()
	<-s.ended
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// Value is a series with its value.
type Value struct {
	Labels map[string]string
	Value  string
}

// Query returns the values of an expression now.
func (s *Server) Query(ctx context.Context, expr string) ([]Value, error) {
	var answer struct {
		Result []struct {
			Metric map[string]string
			Value  [2]any
		}
	}
	if err := s.ask(ctx, "/api/v1/query", url.Values{"query": {expr}}, &answer); err != nil {
		return nil, err
	}
	var out []Value
	for _, r := range answer.Result {
		out = append(out, Value{r.Metric, fmt.Sprint(r.Value[1])})
	}
	return out, nil
}

// Health is what Prometheus says of a target or a rule, with its last error.
type Health struct {
	Name, Health, LastError string
}

// Targets are those that it reads, by their URLs.
func (s *Server) Targets(ctx context.Context) (out []Health, err error) {
	var answer struct {
		ActiveTargets []struct{ ScrapeURL, Health, LastError string }
	}
	err = s.ask(ctx, "/api/v1/targets", url.Values{"state": {"active"}}, &answer)
	for _, t := range answer.ActiveTargets {
		out = append(out, Health{t.ScrapeURL, t.Health, t.LastError})
	}
	return out, err
}

// Rules are all that it evaluates.
func (s *Server) Rules(ctx context.Context) (out []Health, err error) {
	var answer struct {
		Groups []struct{ Rules []Health }
	}
	err = s.ask(ctx, "/api/v1/rules", nil, &answer)
	for _, g := range answer.Groups {
		out = append(out, g.Rules...)
	}
	return out, err
}

// ask decodes the data of an answer.
func (s *Server) ask(ctx context.Context, path string, query url.Values, data any) error {
	text, err := s.get(ctx, path, query)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, &struct{ Data any }{data})
}

// get is the answer of its API.
func (s *Server) get(ctx context.Context, path string, query url.Values) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.config.Listen+path+"?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	answer, err := s.config.Client.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, text)
	}
	return text, err
}
