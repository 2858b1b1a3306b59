package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const webRoot = "/www"

// serve writes the pages that user-data did not write and starts the server.
func (m *guest) serve() {
	m.must("write the web pages", writePages())
	_, err := m.children.start(process{args: []string{"httpd", "-f", "-p", "80", "-h", webRoot}})
	m.must("start the web server", err)
}

func writePages() error {
	name := hostname()
	pages := []struct {
		path, content string
		mode          os.FileMode
	}{
		{"index.html", fmt.Sprintf("<!doctype html>\n<title>%s</title>\n<h1>Hello from %s</h1>\n"+
			"<p>A virtual machine in a pod, run by Podvisor.\n"+
			"<p>Up for <a href=\"/cgi-bin/uptime\">so many seconds</a>, boot <a href=\"/boot-id\">%s</a>.\n", name, name, bootID()), 0o644},
		{"hostname", name + "\n", 0o644},
		{"boot-id", bootID() + "\n", 0o644},
		{"cgi-bin/uptime", "#!/bin/sh\nprintf 'Content-Type: text/plain\\r\\n\\r\\n'\ncut -d ' ' -f 1 /proc/uptime\n", 0o755},
	}
	var errs []error
	for _, p := range pages {
		path := filepath.Join(webRoot, p.path)
		if _, err := os.Stat(path); err == nil {
			continue
		}
		errs = append(errs, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(p.content), p.mode))
	}
	return errors.Join(errs...)
}
