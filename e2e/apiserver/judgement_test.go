package apiserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/podvisor/podvisor/internal/effect"
	"github.com/podvisor/podvisor/scheduler/admission"
	"github.com/podvisor/podvisor/vmi/config"
	"github.com/podvisor/podvisor/vmi/kinds"
	"github.com/podvisor/podvisor/vmi/manifest"
)

// mostJudged is how many objects are judged at each run. With JUDGE=6000 it is so many
// others, which takes five minutes, and with JUDGE=all each that the generator has.
const mostJudged = 600

// judgement is what two judges say of an object.
type judgement struct {
	effect.Object
	// library and server are empty if the object is accepted.
	library, server string
	// made is why it is accepted and cannot run.
	made error
}

// The library and a real API server with the manifests and the webhooks accept the same
// objects. Of each that both accept the pod is rendered and the domain built, and the same
// API server accepts the pod.
func TestTheLibraryJudgesAsTheAPIServer(t *testing.T) {
	t.Parallel()
	w := newWebhooks(t, func(w *webhooks) { w.answer(admission.Webhooks{Settings: effect.Permissive}) })
	w.serve()
	most, seed := mostJudged, uint64(2)
	if n, err := strconv.ParseUint(os.Getenv("JUDGE"), 10, 32); err == nil { // so many, of a further seed
		most, seed = int(n), n
	}
	if os.Getenv("JUDGE") == "all" {
		most = 0
	}
	all, err := effect.Objects("../..", seed, most)
	require.NoError(t, err)
	client, err := rest.HTTPClientFor(world.config)
	require.NoError(t, err)
	j := judge{space: w.space, http: client, config: effect.Permissive()}
	verdicts := make([]judgement, len(all))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(all)); i = next.Add(1) - 1 {
				verdicts[i] = j.judge(all[i])
			}
		})
	}
	wg.Wait()
	accepted, differ := 0, 0
	for _, v := range verdicts {
		switch {
		case (v.library == "") != (v.server == ""):
			differ++
			t.Errorf("%s:\n library: %.400s\n API server: %.400s", v.Name, v.library, v.server)
		case v.made != nil:
			t.Errorf("%s: accepted, and then: %v", v.Name, v.made)
		case v.library == "":
			accepted++
		}
	}
	t.Logf("%d objects were judged by both, %d were accepted by both, %d verdicts differ", len(all), accepted, differ)
	require.Greater(t, accepted, len(all)/10)
}

// judge asks both.
type judge struct {
	space
	http   *http.Client
	config config.Config
}

func (j judge) judge(o effect.Object) judgement {
	v := judgement{Object: o}
	c := kinds.Cluster{Defaults: j.config.Defaults, Limits: j.config.Limits}
	text, err := json.Marshal(o.Tree)
	if err != nil {
		return judgement{Object: o, made: err}
	}
	judged, err := manifest.Check(text, c)
	switch {
	case err != nil:
		v.library = err.Error()
	case len(judged) != 1:
		v.library = fmt.Sprintf("%d objects", len(judged))
	default:
		var said []string
		for _, f := range judged[0].Faults {
			said = append(said, f.String())
		}
		for _, f := range judged[0].Unserved {
			said = append(said, f.String())
		}
		v.library = strings.Join(said, "; ")
	}
	v.server = j.create(o, text)
	if v.library+v.server != "" {
		return v
	}
	instance := judged[0].Instance(c)
	instance.Namespace = j.name
	made, err := effect.Make(instance)
	if err == nil {
		err = j.invalid(made.Pod)
	}
	v.made = err
	return v
}

// invalid is why no API server would take a pod, whatever is in the cluster: what it refers
// to need not be there, and policies are not asked.
func (j judge) invalid(p *corev1.Pod) error {
	p.Spec.PriorityClassName, p.Spec.ServiceAccountName = "", ""
	_, err := j.pods.Create(j.t.Context(), p, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if apierrors.IsInvalid(err) && !strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
		return err
	}
	return nil
}

// create asks the API server whether it would create the object, as kubectl does.
func (j judge) create(o effect.Object, text []byte) string {
	kind, _ := o.Tree["kind"].(string)
	k, _ := kinds.Find(schema.GroupKind{Group: "kubevirt.io", Kind: kind})
	url := fmt.Sprintf("%s/apis/%s/namespaces/%s/%s?dryRun=All&fieldValidation=Strict", world.config.Host, k.GroupVersion(), j.name, k.Plural)
	req, err := http.NewRequestWithContext(j.t.Context(), http.MethodPost, url, bytes.NewReader(text))
	if err != nil {
		return err.Error()
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := j.http.Do(req)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	if resp.StatusCode == http.StatusCreated {
		return ""
	}
	var s metav1.Status
	if err := json.Unmarshal(answer, &s); err != nil || s.Message == "" {
		return resp.Status
	}
	if s.Code >= http.StatusInternalServerError && s.Reason != metav1.StatusReasonInternalError {
		return "not judged: " + s.Message
	}
	return (&apierrors.StatusError{ErrStatus: s}).Error()
}
