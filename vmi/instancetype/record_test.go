package instancetype_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// record is an answer of KubeVirt that was recorded, by its number, with the test or the case
// of a table here that has the same input.
type record struct {
	number     int
	file, test string
	// departs is why the answer is another one here. Empty: it is equal.
	departs string
}

const (
	apply       = "apply_test.go"
	requirement = "requirement_test.go"
	controller  = "../../scheduler/vm/size_test.go"
	ready       = "../../internal/sizegen/main_test.go"
)

var records = []record{
	{1, apply, `"sockets without a preference"`, ""},
	{2, apply, `"cores, by the older name"`, ""},
	{3, apply, `"threads"`, ""},
	{4, apply, `"any are sockets"`, ""},
	{5, apply, `"two cores of each socket"`, ""},
	{6, apply, `"the older ratio"`, ""},
	{7, apply, `"the ratio before the older one"`, ""},
	{8, apply, `"sockets, cores and threads"`, ""},
	{9, apply, `"36 are no multiple of 8"`, ""},
	{10, apply, `"cores and threads"`, ""},
	{11, apply, `"three are none either"`, ""},
	{12, apply, `"four are no multiple of eight"`, ""},
	{13, "../validate/instancetype_test.go", `"nothing to divide by"`, "the preference is refused; KubeVirt accepts it, and ends when it is applied"},
	{14, apply, `{"1Gi", "50", "512Mi"}`, ""},
	{15, apply, `{"128M", "15", "108800k"}`, ""},
	{16, apply, `{"3Gi", "33", "2158220800"}`, ""},
	{17, apply, `"of memory only the first"`, ""},
	{18, apply, `"huge pages before the request"`, ""},
	{19, apply, `"what it leaves open is the template's"`, ""},
	{20, apply, `"its maximum of sockets replaces that of the template"`, ""},
	{21, apply, `"dedicated CPUs, also where the instance type has none"`, ""},
	{22, apply, `func TestAnotherValueOfAnAnnotationIsAConflict(`, ""},
	{23, apply, `"annotations of all"`, ""},
	{24, apply, `"its security before that of the preference"`, ""},
	{25, apply, `"a BIOS stays, ACPI is replaced"`, ""},
	{26, apply, `"UEFI gets what it leaves open"`, ""},
	{27, apply, `"a BIOS with a serial console before UEFI"`, ""},
	{28, apply, `"no BIOS"`, ""},
	{29, apply, `"what it leaves open does not"`, ""},
	{30, apply, `"each device gets what it leaves open"`, ""},
	{31, apply, `"panic devices without a model"`, ""},
	{32, apply, `"features of the processor are added"`, ""},
	{33, requirement, `"of the processors first"`, ""},
	{34, requirement, `"of sockets"`, ""},
	{35, requirement, `"of cores and threads"`, ""},
	{36, ready, `"u1.medium and fedora"`, ""},
	{37, controller, `func TestAnotherInstanceTypeWaitsForTheNextStart(`, ""},
	{38, controller, `func TestTheKindAndTheRevisionOfAReference(`, ""},
	{39, controller, `func TestAConflictWithTheTemplateStartsNothing(`, ""},
	{40, "../../scheduler/admission/named_test.go", `"expandAll, one that has been used"`, "the VM is expanded when it is written next, and its ControllerRevision goes with it"},
	{41, controller, `func TestARevisionOfAnEarlierVersionIsReplacedAtTheNextStart(`, "the VM gets the new ControllerRevision at its next start, and the old one goes with it"},
	{42, ready, `"u1.large and windows.11.virtio"`, "the VM has the input that its preference asks for; KubeVirt leaves it out of the expansion"},
}

func TestWhatWasRecordedOfKubeVirtHasATest(t *testing.T) {
	t.Parallel()
	equal := 0
	for i, r := range records {
		require.Equal(t, i+1, r.number)
		text, err := os.ReadFile(r.file)
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(string(text), r.test+":")+strings.Count(string(text), r.test+",")+strings.Count(string(text), r.test+"t *testing.T"), "%d: %s in %s", r.number, r.test, r.file)
		if r.departs == "" {
			equal++
			continue
		}
		t.Logf("%d: %s", r.number, r.departs)
	}
	t.Logf("%d of %d are equal", equal, len(records))
	require.Equal(t, 38, equal)
}
