package supervisor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/podvisor/podvisor/internal/launcher/libvirt"
	"github.com/podvisor/podvisor/internal/storage/credential"
	"github.com/podvisor/podvisor/internal/storage/probe"
	"github.com/podvisor/podvisor/launcher"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/storage/volume"
	"github.com/podvisor/podvisor/vmi"
)

const (
	// credentialsEvery is how often the Secrets are compared with what was written. The
	// kubelet takes a minute to bring a change to the pod.
	credentialsEvery = 10 * time.Second
	// credentialsSettle is how long an agent may fail after it connected, or after a
	// change, before that is reported: cloud-init creates users after the agent starts.
	credentialsSettle = time.Minute
	// credentialsLatest is the longest time between two attempts.
	credentialsLatest = time.Minute
	// writeTimeout is how long an attempt may take, however slow the agent is.
	writeTimeout = time.Minute
	// maxFailures is how many failures are reported.
	maxFailures = 5
)

// readSecrets reads the Secrets of v's access credentials in the pod whose root is the
// folder root. A Secret that is not there is not in it.
func readSecrets(v *vmi.VirtualMachineInstance, root string) (credential.Contents, error) {
	all := credential.Contents{}
	for _, name := range credential.Secrets(v) {
		values, ok, err := probe.Secret(credential.Dir(root, name))
		if err != nil {
			return nil, err
		}
		if ok {
			all[name] = values
		}
	}
	return all, nil
}

// seedKeys are the SSH public keys for cloud-init.
func seedKeys(v *vmi.VirtualMachineInstance, root string) (volume.Keys, error) {
	contents, err := readSecrets(v, root)
	if err != nil {
		return volume.Keys{}, err
	}
	keys, err := credential.Seed(v, contents)
	if err != nil {
		return volume.Keys{}, fmt.Errorf("read the SSH public keys for cloud-init: %w", err)
	}
	return keys, nil
}

// writer writes keys and passwords into a guest.
type writer interface {
	SetAuthorizedKeys(ctx context.Context, domain, user string, keys []string) error
	SetPassword(ctx context.Context, domain, user, password string) error
}

// credentials keeps the keys and passwords of the guest as the Secrets have them, by
// the guest's agent.
type credentials struct {
	// read reads what the agent is to write. ok is false if it writes nothing, or if
	// that cannot be read now.
	read func() (access credential.Access, faults []string, ok bool)
	// doubts names what looks wrong and is passed on as it is. Nil: nothing is.
	doubts func() []string
	// write writes it, and returns what failed.
	write func(context.Context, credential.Access) []string

	mu       sync.Mutex
	tried    bool              // access was written, or that failed, for the agent that is there or was there last
	access   credential.Access // of the last attempt
	faults   []string          // of its Secrets
	failures []string          // of the last attempt
	began    time.Time         // of the first attempt for this access and agent
	retryAt  time.Time         // after failures
	attempts int
}

// sync writes what the Secrets have, if an agent is connected, and if that is new: it
// was not written yet, failed a while ago, or fresh says that the agent connected. The
// result is what is to be reported; nil: nothing yet.
func (c *credentials) sync(ctx context.Context, connected, fresh bool) *protocol.Credentials {
	c.mu.Lock()
	defer c.mu.Unlock()
	access, faults, ok := c.read()
	if !ok {
		return nil
	}
	changed := !c.tried || !access.Equal(c.access) || strings.Join(faults, "\n") != strings.Join(c.faults, "\n")
	if !connected {
		if !c.tried {
			return nil
		}
		if changed {
			return &protocol.Credentials{Failure: "a Secret of the access credentials has changed, and the guest has no agent: the change is written when its agent connects"}
		}
		return c.report()
	}
	now := time.Now()
	if changed || fresh {
		c.began, c.attempts, c.retryAt = now, 0, now
	} else if len(c.failures) == 0 || now.Before(c.retryAt) {
		return c.report()
	}
	c.tried, c.access, c.faults = true, access, faults
	c.failures = c.write(ctx, access)
	c.attempts++
	c.retryAt = now.Add(min(credentialsEvery<<min(c.attempts-1, 10), credentialsLatest))
	return c.report()
}

// report is what is known of the last attempt. Failures of an agent that has just
// connected are not reported yet.
func (c *credentials) report() *protocol.Credentials {
	all := append(append([]string{}, c.faults...), c.failures...)
	if len(all) == 0 {
		return &protocol.Credentials{Note: c.note()}
	}
	if len(c.faults) == 0 && time.Since(c.began) < credentialsSettle {
		return nil
	}
	if n := len(all) - maxFailures; n > 0 {
		all = append(all[:maxFailures], fmt.Sprintf("%d more", n))
	}
	return &protocol.Credentials{Failure: strings.Join(all, "; ")}
}

// note is what looks wrong and was passed on as it is.
func (c *credentials) note() string {
	if c.doubts == nil {
		return ""
	}
	return strings.Join(c.doubts(), "; ")
}

// run compares the Secrets with what was written, until ctx ends.
func (c *credentials) run(ctx context.Context, look func(context.Context)) {
	tick := time.NewTicker(credentialsEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			look(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// lookAtSecrets writes what has changed in the Secrets since the agent connected.
func (s *Supervisor) lookAtSecrets(ctx context.Context) {
	if note := s.seedNote(); note != "" {
		s.setCredentials(&protocol.Credentials{Note: note})
		return
	}
	if now := s.credentials.sync(ctx, s.facts.known().Agent != nil, false); now != nil {
		s.setCredentials(now)
	}
}

// seedNote is what looks wrong in keys that cloud-init alone installs: they were read when
// the guest was started, and its agent writes none.
func (s *Supervisor) seedNote() string {
	s.facts.mu.Lock()
	desired, exists := s.facts.desired, s.facts.domain == launcher.Running || s.facts.domain == launcher.Paused
	s.facts.mu.Unlock()
	if !exists || desired == nil || credential.UsesAgent(desired.Instance) || s.facts.known().Credentials != nil {
		return ""
	}
	return s.credentials.note()
}

// credentialDoubts names what looks wrong in the Secrets.
func (s *Supervisor) credentialDoubts() []string {
	s.facts.mu.Lock()
	desired := s.facts.desired
	s.facts.mu.Unlock()
	if desired == nil || len(desired.Instance.Spec.AccessCredentials) == 0 {
		return nil
	}
	contents, err := readSecrets(desired.Instance, "")
	if err != nil {
		return nil // said by the next look
	}
	return credential.Doubts(desired.Instance, contents)
}

// setCredentials notes what is known of the keys and passwords.
func (s *Supervisor) setCredentials(now *protocol.Credentials) {
	if s.facts.note(func(s *protocol.State) { s.Credentials = now }) {
		s.config.Logger.Info("the access credentials of the guest changed", "failure", now.Failure, "note", now.Note)
	}
}

// readCredentials reads what the agent is to write.
func (s *Supervisor) readCredentials() (credential.Access, []string, bool) {
	s.facts.mu.Lock()
	desired := s.facts.desired
	s.facts.mu.Unlock()
	if desired == nil || !credential.UsesAgent(desired.Instance) {
		return credential.Access{}, nil, false
	}
	contents, err := readSecrets(desired.Instance, "")
	if err != nil {
		s.config.Logger.Warn("read the Secrets of the access credentials", "err", err)
		return credential.Access{}, nil, false
	}
	access, faults := credential.ByAgent(desired.Instance, contents)
	return access, faults, true
}

// writeCredentials writes keys and passwords by the agent, and returns what failed. An
// agent that does not answer is not asked again.
func (s *Supervisor) writeCredentials(ctx context.Context, access credential.Access) []string {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	conn, err := s.session.connection(ctx)
	if err != nil {
		return []string{"the libvirt daemon does not answer"}
	}
	return writeAccess(ctx, conn, s.domainName(), access)
}

func writeAccess(ctx context.Context, w writer, domain string, access credential.Access) (failures []string) {
	did := func(what, user, command string, do func(context.Context) error) bool {
		ctx, cancel := context.WithTimeout(ctx, answerTimeout)
		defer cancel()
		err := do(ctx)
		switch {
		case errors.Is(err, libvirt.ErrAgentRefused):
			failures = append(failures, fmt.Sprintf("the guest's agent cannot set the %s of user %s: the guest has no such user, or its agent does not permit %s", what, user, command))
		case err != nil:
			failures = append(failures, fmt.Sprintf("the guest's agent does not answer to set the %s of user %s", what, user))
			return false
		}
		return true
	}
	for _, k := range access.Keys {
		if !did("SSH public keys", k.User, "guest-ssh-add-authorized-keys", func(ctx context.Context) error { return w.SetAuthorizedKeys(ctx, domain, k.User, k.Keys) }) {
			return failures
		}
	}
	for _, p := range access.Passwords {
		if !did("password", p.User, "guest-set-user-password", func(ctx context.Context) error { return w.SetPassword(ctx, domain, p.User, p.Password) }) {
			return failures
		}
	}
	return failures
}
