package sample

import (
	"encoding/json"
	"testing"
)

// read is what is decoded of what was encoded.
func read(t *testing.T, s Sample) Sample {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var out Sample
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	got := read(t, Sample{Seen: "a", Other: "b"})
	if got.Seen != "a" {
		t.Fatalf("seen is %q", got.Seen)
	}
	if got.Other == "c" {
		t.Fatalf("other is %q", got.Other)
	}
}
