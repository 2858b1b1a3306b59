// Package audit reads the audit log of an API server: a line of JSON for each request.
package audit

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// Entry is what is read of a line.
type Entry struct {
	Stage string `json:"stage"`
	Verb  string `json:"verb"`
	// Received is when the request came, and At when the stage was reached: of the last one, when
	// the answer was ready.
	Received time.Time `json:"requestReceivedTimestamp"`
	At       time.Time `json:"stageTimestamp"`
	User     struct {
		Username string `json:"username"`
	} `json:"user"`
	UserAgent string `json:"userAgent"`
	ObjectRef struct {
		Resource  string `json:"resource"`
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
		// Subresource is status, for example, or nothing.
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// Complete says that the entry is about a request that was answered. A watch has one more.
func (e Entry) Complete() bool { return e.Stage == "ResponseComplete" }

// Component is the program that sent the request, as it names itself.
func (e Entry) Component() string {
	name, _, _ := strings.Cut(e.UserAgent, "/")
	return name
}

// What is the verb with the resource, as "patch pods/status". The writing of events is "events",
// whatever the verb.
func (e Entry) What() string {
	o := e.ObjectRef
	switch {
	case o.Resource == "events":
		return "events"
	case o.Subresource != "":
		return e.Verb + " " + o.Resource + "/" + o.Subresource
	}
	return e.Verb + " " + o.Resource
}

// longest is how long a line may be, in bytes.
const longest = 1 << 20

// Each calls f for each entry.
func Each(log io.Reader, f func(Entry)) error {
	lines := bufio.NewScanner(log)
	lines.Buffer(make([]byte, longest), longest)
	for lines.Scan() {
		var e Entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return err
		}
		f(e)
	}
	return lines.Err()
}

// Follower reads a log that grows.
type Follower struct {
	// Path is the file. Required.
	Path   string
	offset int64
}

// Next calls f for each entry since the last call. A line that is not complete yet is left for
// the next call. A log that was begun anew meanwhile is an error: requests are missing then.
func (l *Follower) Next(f func(Entry)) error {
	file, err := os.Open(l.Path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if at, err := file.Stat(); err != nil || at.Size() < l.offset {
		return fmt.Errorf("the audit log %s was begun anew: its size is too small: %w", l.Path, err)
	}
	if _, err := file.Seek(l.offset, io.SeekStart); err != nil {
		return err
	}
	lines := bufio.NewReaderSize(file, longest)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		l.offset += int64(len(line))
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		f(e)
	}
}
