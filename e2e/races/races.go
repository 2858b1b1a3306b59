package races

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// mark begins each report of the race detector.
const mark = "WARNING: DATA RACE"

// reportLines is how much of a report is shown at most.
const reportLines = 60

// period is how often the folders are looked at, which is less than the life of any pod.
const period = 500 * time.Millisecond

// Watcher reads logs.
type Watcher struct {
	folders func() []string
	stop    chan struct{}
	done    chan struct{}
	logs    map[string]*os.File // by device and inode
	faults  []error
}

// Watch begins to read the logs below the folders, which are those of
// /var/log/pods on all nodes and may change.
func Watch(folders func() []string) *Watcher {
	w := &Watcher{folders: folders, stop: make(chan struct{}), done: make(chan struct{}), logs: map[string]*os.File{}}
	go w.run()
	return w
}

func (w *Watcher) run() {
	defer close(w.done)
	for {
		w.open()
		select {
		case <-w.stop:
			w.open()
			return
		case <-time.After(period):
		}
	}
}

// open opens the logs that are not open yet.
func (w *Watcher) open() {
	for _, folder := range w.folders() {
		found, _ := filepath.Glob(filepath.Join(folder, "*", "*", "*.log"))
		for _, name := range found {
			info, err := os.Stat(name)
			if err != nil {
				continue // removed meanwhile
			}
			id := identity(info)
			if w.logs[id] != nil {
				continue
			}
			f, err := os.Open(name)
			switch {
			case err == nil:
				w.logs[id] = f
			case !errors.Is(err, os.ErrNotExist):
				w.faults = append(w.faults, err)
			}
		}
	}
}

// Reports ends the watch and returns how many logs were read, and the reports in them.
func (w *Watcher) Reports() (logs int, reports []string, err error) {
	close(w.stop)
	<-w.done
	for _, f := range w.logs {
		text, err := io.ReadAll(f)
		w.faults = append(w.faults, err, f.Close())
		reports = append(reports, find(f.Name(), text)...)
	}
	return len(w.logs), reports, errors.Join(w.faults...)
}

// find returns the reports in a log. Each line has a time, the stream and a tag before
// what the container wrote.
func find(name string, text []byte) (reports []string) {
	var report []string
	end := func() {
		if report != nil {
			reports = append(reports, fmt.Sprintf("%s:\n%s", name, strings.Join(report, "\n")))
		}
		report = nil
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if fields := strings.SplitN(line, " ", 4); len(fields) == 4 {
			line = fields[3]
		}
		switch {
		case strings.Contains(line, mark):
			end()
			report = []string{line}
		case strings.HasPrefix(line, "=================="):
			end()
		case report != nil && len(report) < reportLines:
			report = append(report, line)
		}
	}
	end()
	return reports
}
