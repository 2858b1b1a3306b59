package probe

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	corev1 "k8s.io/api/core/v1"
)

// MaxContent is the largest file that [Content] reads: no Secret or ConfigMap is
// larger.
const MaxContent = corev1.MaxSecretSize

// Content reads the file at path. That nothing is there is a fact: then ok is
// false.
func Content(path string) (content []byte, ok bool, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	content, err = io.ReadAll(io.LimitReader(f, MaxContent+1))
	if err != nil {
		return nil, false, err
	}
	if len(content) > MaxContent {
		return nil, false, fmt.Errorf("%s has more than %d bytes", path, MaxContent)
	}
	return content, true, nil
}
