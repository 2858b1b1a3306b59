package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/podvisor/podvisor/e2e/audit"
)

// moments are when the steps of a start or an end were done, by the names of the steps.
// A step that was not seen is missing.
type moments map[string]time.Time

// note notes a moment of a step, if that is the first one.
func (m moments) note(step string, at time.Time) {
	if _, ok := m[step]; !ok {
		m[step] = at
	}
}

// position is the place of a file from which on it is read.
type position struct {
	path string
	size int64
}

// positionOf is the present end of a file.
func positionOf(path string) (position, error) {
	info, err := os.Stat(path)
	if err != nil {
		return position{}, err
	}
	return position{path, info.Size()}, nil
}

// since is what was written to the file since. A file that was replaced meanwhile is read
// as a whole.
func (p position) since() ([]byte, error) {
	f, err := os.Open(p.path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	from := p.size
	if info.Size() < from {
		from = 0
	}
	return io.ReadAll(io.NewSectionReader(f, from, info.Size()-from))
}

// starting are the moments that the API server's audit log has of the start of a pod and, if vmi
// is not empty, of the VMI of that name: when the requests were answered. The moments of the
// container runtime must be noted before.
func (m moments) starting(log []byte, namespace, vmi, pod string) error {
	return eachAnswer(log, namespace, func(e audit.Entry) {
		what, by := e.What(), by(e)
		switch started := m[stepStarted]; {
		case e.ObjectRef.Name == pod && what == "create pods":
			m.note(stepPod, e.At)
		case e.ObjectRef.Name == pod && what == "create pods/binding":
			m.note(stepBound, e.At)
		case e.ObjectRef.Name == pod && what == "patch pods/status" && strings.HasPrefix(e.User.Username, "system:node:") && !started.IsZero() && e.Received.After(started):
			m.note(stepReported, e.At)
		case e.ObjectRef.Name != vmi:
		case what == "create virtualmachineinstances":
			m.note(stepAdmitted, e.At)
		case isStatus(what) && by == "virt-controller" && m[stepWritten].IsZero():
			m[stepHandedOver] = e.At // an earlier one was about a pod that waits
		case isStatus(what) && by == "virt-handler":
			m.note(stepWritten, e.At)
		}
	})
}

// isStatus says that the status of a VMI was written, as a whole or in part.
func isStatus(what string) bool {
	return what == "update virtualmachineinstances/status" || what == "patch virtualmachineinstances/status"
}

// ending are the moments that the API server's audit log has of the end of a VMI.
func (m moments) ending(log []byte, namespace, vmi string) error {
	return eachAnswer(log, namespace, func(e audit.Entry) {
		switch what, by := e.What(), by(e); {
		case e.ObjectRef.Name != vmi:
		case isStatus(what) && by == "virt-handler":
			m[stepWritten] = e.At // an earlier one was about the guest before its end
		case what == "patch virtualmachineinstances" && by == "virt-controller":
			m.note(stepFinalizer, e.At)
		}
	})
}

// eachAnswer calls f for each request in the namespace that was answered with success.
func eachAnswer(log []byte, namespace string, f func(audit.Entry)) error {
	err := audit.Each(bytes.NewReader(log), func(e audit.Entry) {
		if e.Complete() && e.ResponseStatus.Code < 300 && e.ObjectRef.Namespace == namespace {
			f(e)
		}
	})
	if err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	return nil
}

// by is the last part of the name of who made a request: of a service account, its name.
func by(e audit.Entry) string { return e.User.Username[strings.LastIndex(e.User.Username, ":")+1:] }

// runtimeLine is a line of the log of containerd.
var runtimeLine = regexp.MustCompile(`^time="([^"]+)" level=info msg="((?:[^"\\]|\\.)*)"`)

// runtime are the moments that the log of containerd has of a pod and its container of
// this name.
func (m moments) runtime(log []byte, pod, container string) error {
	sandbox, id := "", ""
	for line := range strings.Lines(string(log)) {
		found := runtimeLine.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, found[1])
		if err != nil {
			return fmt.Errorf("read the log of containerd: %w", err)
		}
		msg := strings.ReplaceAll(found[2], `\"`, `"`)
		_, made, returns := strings.Cut(msg, " returns ")
		made = strings.Trim(made[strings.LastIndex(made, " ")+1:], `"`)
		switch {
		case strings.HasPrefix(msg, `RunPodSandbox for name:"`+pod+`" `):
			if !returns {
				m.note(stepVolumes, at)
				continue
			}
			sandbox = made
			m.note(stepSandbox, at)
		case sandbox != "" && returns && strings.HasPrefix(msg, `CreateContainer within sandbox "`+sandbox+`" for name:"`+container+`" `):
			id = made
			m.note(stepContainer, at)
		case id != "" && returns && strings.HasPrefix(msg, `StartContainer for "`+id+`" `):
			m.note(stepStarted, at)
		}
	}
	return nil
}

// said are the steps that lines of our programs' logs mean.
var said = map[string]string{
	"listening for the handler":   stepSocket,
	"the libvirt daemon answers":  stepDaemon,
	"connected to the launcher":   stepConnected,
	"bound the network":           stepBoundNetwork,
	"put the VMI to the launcher": stepPut,
	"the disks are made":          stepDisks,
	"the domain is built":         stepDomain,
	"the domain runs":             stepRuns,
}

// saidAtEnd are those of the end of a VMI.
var saidAtEnd = map[string]string{"the domain ended": stepEnded}

// lines are the moments of the log of one of our programs, of which only what is about the VMI
// counts. Between its lines may be others.
func (m moments) lines(log []byte, vmi string, said map[string]string) {
	for line := range bytes.Lines(log) {
		var l struct {
			Time time.Time `json:"time"`
			Msg  string    `json:"msg"`
			VMI  string    `json:"vmi"`
		}
		if json.Unmarshal(bytes.TrimSpace(line), &l) != nil || l.VMI != vmi {
			continue
		}
		if step, ok := said[l.Msg]; ok {
			m.note(step, l.Time)
		}
	}
}

// errNoStart is about a log of QEMU that does not say when it was started.
var errNoStart = errors.New("the log of QEMU does not begin with the time of its start")

// qemu is the moment of the log that libvirt keeps of a QEMU, which begins with the time at which
// it is started.
func (m moments) qemu(log []byte) error {
	when, _, ok := strings.Cut(string(log), ": starting up libvirt ")
	if !ok {
		return errNoStart
	}
	at, err := time.Parse("2006-01-02 15:04:05.000-0700", when)
	if err != nil {
		return fmt.Errorf("%w: %w", errNoStart, err)
	}
	m.note(stepQEMU, at)
	return nil
}
