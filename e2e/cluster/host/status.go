package host

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// State says what a program does.
type State string

const (
	// Waiting is before the start: a condition does not hold yet.
	Waiting State = "waiting"
	// Starting is after the start, as long as it does not do its work.
	Starting State = "starting"
	// Running is doing its work.
	Running State = "running"
	// Done is a program that ended by itself, as it should.
	Done State = "done"
	// Broken is a program that ended and will be started again.
	Broken State = "broken"
)

// Status is what runs on a host.
type Status struct {
	Host     string          `json:"host"`
	Programs []ProgramStatus `json:"programs"`
}

// ProgramStatus is the state of one program.
type ProgramStatus struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	// PID is the process id inside the host's namespace, if it runs.
	PID int `json:"pid,omitempty"`
	// Since is when the state was entered.
	Since time.Time `json:"since"`
	// Restarts counts how often it ended although it should not.
	Restarts int `json:"restarts,omitempty"`
	// Reason is the condition it waits for, or how it ended.
	Reason string `json:"reason,omitempty"`
}

// statusFile is the file in a host's folder that says what runs.
const statusFile = "status.json"

// LogPath is the log of a program, given the folder of its host.
func LogPath(dir, program string) string { return filepath.Join(dir, "log", program+".log") }

// ReadStatus reads what runs on the host with the given folder. A host
// that has not started anything yet has an empty status.
func ReadStatus(dir string) (Status, error) {
	data, err := os.ReadFile(filepath.Join(dir, statusFile))
	if errors.Is(err, fs.ErrNotExist) {
		return Status{}, nil
	}
	if err != nil {
		return Status{}, err
	}
	var s Status
	return s, json.Unmarshal(data, &s)
}

// board keeps the status file in step with the states.
type board struct {
	dir    string
	mu     sync.Mutex
	status Status
}

// set changes one program's entry and writes the file.
func (b *board) set(program string, change func(*ProgramStatus)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.status.Programs {
		p := &b.status.Programs[i]
		if p.Name == program {
			change(p)
			p.Since = time.Now()
		}
	}
	return b.write()
}

// state returns the state of a program; it is empty if there is no such program.
func (b *board) state(program string) State {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.status.Programs {
		if p.Name == program {
			return p.State
		}
	}
	return ""
}

func (b *board) write() error {
	data, err := json.MarshalIndent(b.status, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(b.dir, statusFile)
	if err := os.WriteFile(path+".tmp", data, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}
