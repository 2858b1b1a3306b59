package images

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
)

// Tars are the archives of the images.
func Tars(built []Built) []string {
	out := make([]string, len(built))
	for i, b := range built {
		out[i] = b.Tar
	}
	return out
}

// Content is a digest over all images: it changes when one of them does, though
// their names do not.
func Content(built []Built) string {
	h := sha256.New()
	for _, b := range built {
		_, _ = io.WriteString(h, b.Name+" "+b.Digest+"\n")
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}
