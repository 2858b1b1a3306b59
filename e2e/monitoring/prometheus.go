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

// Target is a pod that Prometheus reads, as the Service of manifests/monitoring has it found.
type Target struct {
	// Address is its host and port. Required.
	Address string
	// Pod is its name. Required.
	Pod string
}

// Config is what a Prometheus needs.
type Config struct {
	// Program is that of [toolchain.Prometheus]. Required.
	Program string
	// Dir is an empty folder for what it writes. Required.
	Dir string
	// Listen is the address and port of its API. Required.
	Listen string
	// Rules are a file of rules. Required.
	Rules []byte
	// Token is what it reads the targets with. Required.
	Token string
	// Targets are the pods of Podvisor in the namespace kubevirt.
	Targets []Target
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
}

// Start starts a Prometheus, and returns when it answers. Call Stop.
func Start(ctx context.Context, c Config) (*Server, error) {
	var static []map[string]any
	for _, t := range c.Targets {
		static = append(static, map[string]any{"targets": []string{t.Address}, "labels": map[string]string{"namespace": "kubevirt", "pod": t.Pod, "endpoint": "metrics"}})
	}
	interval := c.Interval.String()
	config, err := yaml.Marshal(map[string]any{
		"global":     map[string]any{"scrape_interval": interval, "scrape_timeout": interval, "evaluation_interval": interval},
		"rule_files": []string{"rules.yaml"},
		"scrape_configs": []any{map[string]any{ // as the operator writes it of the ServiceMonitor
			"job_name": "kubevirt-prometheus-metrics", "scheme": "https", "honor_labels": true, "static_configs": static,
			"authorization": map[string]any{"type": "Bearer", "credentials_file": "token"}, "tls_config": map[string]any{"insecure_skip_verify": true},
		}},
	})
	if err != nil {
		return nil, err
	}
	for name, text := range map[string][]byte{"prometheus.yaml": config, "rules.yaml": c.Rules, "token": []byte(c.Token)} {
		if err := os.WriteFile(filepath.Join(c.Dir, name), text, 0o600); err != nil {
			return nil, err
		}
	}
	log, err := os.Create(filepath.Join(c.Dir, "log"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	s := &Server{c, exec.Command(c.Program, "--config.file=prometheus.yaml", "--storage.tsdb.path=data", "--web.listen-address="+c.Listen)}
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr = c.Dir, log, log
	run := c.Run
	if run == nil {
		run = (*exec.Cmd).Start
	}
	if err := run(s.cmd); err != nil {
		return nil, fmt.Errorf("start Prometheus: %w", err)
	}
	for {
		_, err := s.get(ctx, "/-/ready", nil)
		if err == nil {
			return s, nil
		}
		select {
		case <-ctx.Done():
			said, _ := os.ReadFile(log.Name())
			return nil, errors.Join(err, s.Stop(), fmt.Errorf("the Prometheus server is not ready: %s", said))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Stop ends it.
func (s *Server) Stop() error {
	err := s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	return err
}

// Query returns the values of an expression now, by the labels of each as JSON.
func (s *Server) Query(ctx context.Context, expr string) (map[string]string, error) {
	text, err := s.get(ctx, "/api/v1/query", url.Values{"query": {expr}})
	if err != nil {
		return nil, err
	}
	var answer struct {
		Data struct {
			Result []struct {
				Metric json.RawMessage
				Value  [2]any
			}
		}
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, r := range answer.Data.Result {
		out[string(r.Metric)] = fmt.Sprint(r.Value[1])
	}
	return out, nil
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
