package bench

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// at is a time, in milliseconds after the beginning of the logs below.
func at(ms int) time.Time {
	return time.Date(2026, 11, 26, 0, 49, 8, 0, time.UTC).Add(time.Duration(ms) * time.Millisecond)
}

const runtimeLog = `time="2026-11-26T00:49:08.010Z" level=info msg="RunPodSandbox for name:\"other\" uid:\"1\" namespace:\"a\" returns sandbox id \"s0\""
time="2026-11-26T00:49:08.100Z" level=info msg="RunPodSandbox for name:\"virt-launcher-web-x1\" uid:\"2\" namespace:\"a\""
time="2026-11-26T00:49:08.150Z" level=info msg="connecting to shim s1" address="unix:///run/containerd/s/1"
time="2026-11-26T00:49:08.200Z" level=info msg="RunPodSandbox for name:\"virt-launcher-web-x1\" uid:\"2\" namespace:\"a\" returns sandbox id \"s1\""
time="2026-11-26T00:49:08.210Z" level=info msg="CreateContainer within sandbox \"s1\" for name:\"install\" returns container id \"c0\""
time="2026-11-26T00:49:08.220Z" level=info msg="StartContainer for \"c0\" returns successfully"
time="2026-11-26T00:49:08.230Z" level=info msg="CreateContainer within sandbox \"s1\" for container name:\"compute\""
time="2026-11-26T00:49:08.240Z" level=info msg="CreateContainer within sandbox \"s0\" for name:\"compute\" returns container id \"c9\""
time="2026-11-26T00:49:08.250Z" level=info msg="CreateContainer within sandbox \"s1\" for name:\"compute\" returns container id \"c1\""
time="2026-11-26T00:49:08.260Z" level=info msg="StartContainer for \"c1\""
time="2026-11-26T00:49:08.300Z" level=info msg="StartContainer for \"c1\" returns successfully"
`

func TestTheMomentsOfAPodAreInTheLogOfItsRuntime(t *testing.T) {
	t.Parallel()
	m := moments{}
	require.NoError(t, m.runtime([]byte(runtimeLog), "virt-launcher-web-x1", "compute"))
	require.Equal(t, moments{stepVolumes: at(100), stepSandbox: at(200), stepContainer: at(250), stepStarted: at(300)}, m)
	require.Error(t, m.runtime([]byte(`time="yesterday" level=info msg="x"`), "p", "c"))
}

// request is a line of an audit log that was received and answered then.
func request(what, by, resource, subresource, name string, received, answered int) string {
	const layout = "2006-01-02T15:04:05.000000Z"
	return `{"stage":"ResponseComplete","verb":"` + what + `","user":{"username":"` + by + `"},"objectRef":{"resource":"` + resource + `","subresource":"` + subresource +
		`","namespace":"a","name":"` + name + `"},"responseStatus":{"code":200},"requestReceivedTimestamp":"` + at(received).Format(layout) + `","stageTimestamp":"` + at(answered).Format(layout) + "\"}\n"
}

func TestTheMomentsOfAVMIAreInTheAuditLog(t *testing.T) {
	t.Parallel()
	const controller, handler, kubelet = "system:serviceaccount:kubevirt:virt-controller", "system:serviceaccount:kubevirt:virt-handler", "system:node:n1"
	const kind, pod = "virtualmachineinstances", "virt-launcher-web-x1"
	log := []byte(request("create", "admin", kind, "", "web", 0, 20) +
		request("create", controller, "pods", "", pod, 25, 40) +
		request("create", "system:kube-scheduler", "pods", "binding", pod, 45, 50) +
		request("patch", kubelet, "pods", "status", pod, 60, 70) + // it was bound
		request("patch", controller, kind, "status", "web", 80, 90) + // it waits
		request("patch", kubelet, "pods", "status", pod, 310, 320) +
		request("patch", controller, kind, "", "web", 325, 330) + // a label
		request("update", controller, kind, "status", "web", 335, 340) +
		request("update", handler, kind, "status", "web", 500, 510) +
		request("patch", handler, kind, "status", "web", 900, 910)) // the agent is there
	m := moments{stepStarted: at(300)}
	require.NoError(t, m.starting(log, "a", "web", pod))
	require.Equal(t, moments{
		stepAdmitted: at(20), stepPod: at(40), stepBound: at(50), stepStarted: at(300), stepReported: at(320), stepHandedOver: at(340), stepWritten: at(510),
	}, m)

	m = moments{}
	require.NoError(t, m.ending([]byte(request("patch", handler, kind, "status", "web", 0, 10)+request("patch", handler, kind, "status", "web", 20, 30)+
		request("patch", controller, kind, "", "web", 40, 50)+request("patch", controller, kind, "", "other", 40, 60)), "a", "web"))
	require.Equal(t, moments{stepWritten: at(30), stepFinalizer: at(50)}, m)
	require.Error(t, m.ending([]byte("{"), "a", "web"))

	m = moments{}
	require.NoError(t, m.restarting([]byte(request("patch", controller, kind, "", "web", 0, 5)+request("patch", handler, kind, "status", "web", 0, 10)+
		request("patch", controller, kind, "", "web", 15, 20)+request("create", controller, kind, "", "web", 25, 40)+request("patch", controller, kind, "", "web", 45, 50)), "a", "web"))
	require.Equal(t, moments{stepWritten: at(10), stepFinalizer: at(20), stepAgain: at(40)}, m)
}

func TestTheMomentsOfProgramsAreInTheirLogsAmongOtherLines(t *testing.T) {
	t.Parallel()
	m := moments{}
	m.lines([]byte("guest: hello\r\n"+
		`{"time":"2026-11-26T00:49:08.1Z","level":"INFO","msg":"the domain runs","vmi":"a/other"}`+"\n"+
		`{"time":"2026-11-26T00:49:08.2Z","level":"INFO","msg":"the domain runs","vmi":"a/web"}`+"\r\n"+
		`{"time":"2026-11-26T00:49:08.3Z","level":"INFO","msg":"the domain runs","vmi":"a/web"}`+"\n"), "a/web", said)
	require.Equal(t, moments{stepRuns: at(200)}, m)

	m = moments{}
	require.NoError(t, m.qemu([]byte("2026-11-26 00:49:08.123+0000: starting up libvirt version: 11.3.0\nLC_ALL=C \\\n")))
	require.Equal(t, at(123), m[stepQEMU].UTC())
	require.ErrorIs(t, m.qemu([]byte("char device redirected")), errNoStart)
}

func TestARoadIsPrintedWithItsOwners(t *testing.T) {
	t.Parallel()
	run := func(first, second, third int) moments {
		return moments{stepOff: at(0), stepEnded: at(first), stepWritten: at(second), stepFinalizer: at(third)}
	}
	var out bytes.Buffer
	printRoad(&out, "an end", stepOff, endRoad[:3], column{"VMI", []moments{run(100, 120, 130), run(110, 140, 170), run(300, 310, 320)}, endRoad[:3]},
		column{"other", []moments{{stepOff: at(0)}}, endRoad[:3]})
	require.Equal(t, `
an end, medians in ms: since guest's last line, and since the step before
                                                      VMI           other
  domain ended             libvirt, QEMU      110    +110                
  status written           Podvisor           140     +20                
  finalizer removed        Podvisor           170     +10                
  VMI: Podvisor 30, Kubernetes 0, libvirt, QEMU 110
  other: Podvisor 0, Kubernetes 0, libvirt, QEMU 0
`, out.String())
}

func TestTheRoadsLeadToTheirEnds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		first string
		road  []step
	}{"a start": {stepCreated, startRoad}, "a pod": {stepCreated, podRoad}, "an end": {stepOff, endRoad}, "a restart": {stepOff, restartRoad}} {
		done := map[string]bool{tt.first: true}
		for _, s := range tt.road {
			require.True(t, done[s.after], "%s: %s comes after a step before it", name, s.name)
			done[s.name] = true
		}
		way := onTheWay(tt.road)
		require.Equal(t, tt.first, way[len(way)-1].after, name)
	}
}

func TestALogIsReadFromAPositionOn(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	require.NoError(t, os.WriteFile(path, []byte("before\n"), 0o600))
	p, err := positionOf(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte("before\nafter\n"), 0o600))
	got, err := p.since()
	require.NoError(t, err)
	require.Equal(t, "after\n", string(got))
	require.NoError(t, os.WriteFile(path, []byte("new\n"), 0o600), "the log was rotated")
	got, err = p.since()
	require.NoError(t, err)
	require.Equal(t, "new\n", string(got))
}
