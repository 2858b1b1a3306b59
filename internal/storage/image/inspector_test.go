package image

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/vmi"
)

// inChild is the test binary as the program of an inspector.
var inChild = Inspector{Command: []string{"/proc/self/exe", "inspect"}, MemoryBytes: testenv.InspectionMemory(InspectionMemory)}

// withinLimits is what the error says about a process that ended without an answer.
var withinLimits = fmt.Sprintf("it ended without an answer within its limits of %d MiB of memory and 5 s of processor time: ", inChild.MemoryBytes>>20)

// as is an inspector whose program does what is named after it was limited.
func as(what string) Inspector {
	i := inChild
	i.Command = append(i.Command, what)
	return i
}

func TestMain(m *testing.M) {
	if len(os.Args) < 3 || os.Args[1] != "inspect" {
		testenv.InLauncher()
		os.Exit(m.Run())
	}
	if err := child(os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// child inspects an image, or does something else if it has two arguments.
func child(args []string) error {
	if len(args) == 1 {
		return Inspection(args[0], os.Stdout)
	}
	var memory uint64
	if _, err := fmt.Sscan(args[1], &memory); err != nil {
		return err
	}
	if err := limit(memory); err != nil {
		return err
	}
	switch args[0] {
	case "crash":
		panic("index out of range\nmore")
	case "hang":
		time.Sleep(time.Hour)
	case "spin":
		for time.Now().Unix() > 0 {
		}
	case "flood":
		for {
			if _, err := os.Stdout.Write(make([]byte, 1<<16)); err != nil {
				return err
			}
		}
	case "grow":
		var all [][]byte
		for range 256 {
			b := make([]byte, 1<<20)
			for i := 0; i < len(b); i += os.Getpagesize() {
				b[i] = 1
			}
			all = append(all, b)
		}
		return fmt.Errorf("has %d MiB", len(all))
	case "segv":
		if err := unix.Kill(unix.Getpid(), unix.SIGSEGV); err != nil {
			return err
		}
		time.Sleep(time.Hour)
	case "look":
		return look()
	default:
		_, err := os.Stdout.WriteString(args[0])
		return err
	}
	return nil
}

// look writes as a fault what the process has and can do.
func look() error {
	var s []string
	if err := os.WriteFile(filepath.Join(os.TempDir(), "made-by-an-inspection"), []byte("x"), 0o600); err != nil {
		s = append(s, "writes no file")
	}
	if _, err := os.Open("/etc/hostname"); errors.Is(err, unix.EMFILE) {
		s = append(s, "opens no file")
	}
	if _, err := os.Stdin.Write([]byte("x")); err != nil {
		s = append(s, "cannot write the image")
	}
	s = append(s, fmt.Sprintf("environment %q", os.Environ()))
	return json.NewEncoder(os.Stdout).Encode(answer{Fault: strings.Join(s, ", ")})
}

// disk is a container disk with an image of these bytes.
func disk(t *testing.T, content string) string {
	t.Helper()
	return tree(t, map[string]string{"disk/a.img": content})
}

func TestAnInspectionInAProcessOfItsOwnFindsTheSame(t *testing.T) {
	for name, content := range map[string]string{
		"raw": "raw", "empty": "", "VMDK": "KDMV", "the beginning of a qcow2": "QFI\xfb\x00\x00\x00\x03",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := disk(t, content)
			want, wantErr := Inspector{}.ContainerDisk(t.Context(), root, "")
			got, err := inChild.ContainerDisk(t.Context(), root, "")
			require.Equal(t, want, got)
			if wantErr == nil {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, wantErr.Error())
			require.ErrorIs(t, err, vmi.ErrInvalid)
		})
	}
}

func TestAttackAProcessThatInspectsHasTheImageAndNothingElse(t *testing.T) {
	t.Setenv("SECRET", "correct-horse")
	_, err := as("look").ContainerDisk(t.Context(), disk(t, "raw"), "")
	require.EqualError(t, err, `/disk/a.img: writes no file, opens no file, cannot write the image, environment []`)
}

// TestAttackAnInspectionIsLimited has a process that was taken over by its image do what
// it likes: the image is not used, and the launcher goes on.
func TestAttackAnInspectionIsLimited(t *testing.T) {
	for name, tt := range map[string]struct {
		does string
		says string
	}{
		"it crashes":                        {"crash", `panic: index out of range`},
		"it hangs":                          {"hang", "no answer within 2s"},
		"it takes memory":                   {"grow", withinLimits},
		"it touches memory that it has not": {"segv", withinLimits + `exit status 2: "SIGSEGV: `},
		"it writes without an end":          {"flood", "the answer has more than 4096 bytes"},
		"it writes nothing":                 {"", "EOF"},
		"it writes half an answer":          {`{"format":"raw"`, "unexpected EOF"},
		"it writes two answers":             {`{"format":"raw","sizeBytes":3}{}`, "more than one value"},
		"an answer with other fields":       {`{"format":"raw","sizeBytes":3,"path":"/etc/shadow"}`, "unknown field"},
		"another size of a raw image":       {`{"format":"raw","sizeBytes":4}`, "contradicts"},
		"a format that is not known":        {`{"format":"vmdk","sizeBytes":3}`, "contradicts"},
		"no size":                           {`{"format":"qcow2"}`, "contradicts"},
		"a size beyond all disks":           {`{"format":"qcow2","sizeBytes":1125899906842625}`, "contradicts"},
		"an image and a fault":              {`{"format":"raw","sizeBytes":3,"fault":"x"}`, "contradicts"},
		"a fault that writes on a terminal": {`{"fault":"\u001b[2J\nfine"}`, "/disk/a.img: \ufffd[2J\ufffdfine"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := as(tt.does)
			i.Timeout = 2 * time.Second
			if tt.does != "hang" {
				i.Timeout = time.Minute
			}
			_, err := i.ContainerDisk(t.Context(), disk(t, "raw"), "")
			require.ErrorContains(t, err, tt.says)
			require.ErrorContains(t, err, "/disk/a.img: ")
			require.NotErrorIs(t, err, vmi.ErrInvalid, "what is in the image is not known")
			require.NotContains(t, err.Error(), "has 256 MiB", "it took more than its limit")
			require.Less(t, len(err.Error()), 2<<10)
		})
	}
}

func TestAttackAnInspectionEndsWithItsProcessorTime(t *testing.T) {
	t.Parallel()
	i := as("spin")
	i.Timeout = 20 * time.Minute
	_, err := i.ContainerDisk(t.Context(), disk(t, "raw"), "")
	require.ErrorContains(t, err, "signal: killed", "by the kernel, at the limit")
	require.NotErrorIs(t, err, context.DeadlineExceeded)
}

func TestAnInspectionThatIsNotWaitedForEnds(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := as("hang").ContainerDisk(ctx, disk(t, "raw"), "")
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestTheMemoryOfAnInspectionIsConfigured(t *testing.T) {
	i := inChild
	i.MemoryBytes = 1
	_, err := i.ContainerDisk(t.Context(), disk(t, "raw"), "")
	if !testenv.Race {
		require.NoError(t, err, "less than the program itself needs is not taken")
	}
	i = as("grow")
	i.MemoryBytes, i.Timeout = 4<<30, time.Minute // with the race detector the same takes several times as much
	_, err = i.ContainerDisk(t.Context(), disk(t, "raw"), "")
	require.ErrorContains(t, err, "has 256 MiB")
}

func TestAnInspectionWithoutItsProgramSaysSo(t *testing.T) {
	_, err := Inspector{Command: []string{"/no/such/program"}}.ContainerDisk(t.Context(), disk(t, "raw"), "")
	require.ErrorContains(t, err, "/disk/a.img: inspect the image in a process of its own: ")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func FuzzInspectionAnswer(f *testing.F) {
	f.Add([]byte(`{"format":"raw","sizeBytes":3}`), int64(3))
	f.Add([]byte(`{"fault":"the image is in format VMDK","invalid":true}`), int64(3))
	f.Fuzz(func(t *testing.T, b []byte, size int64) {
		i, err := read(b, size)
		if err != nil {
			require.Equal(t, storage.Image{}, i)
			return
		}
		require.Contains(t, []storage.Format{storage.Raw, storage.QCOW2}, i.Format)
		require.Empty(t, i.Path)
		require.True(t, i.Format == storage.QCOW2 || i.SizeBytes == size)
	})
}
