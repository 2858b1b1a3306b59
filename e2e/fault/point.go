package fault

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"

	"sigs.k8s.io/yaml"
)

// Point is one fault, at one step.
type Point struct {
	Component string
	Kind      Kind
	Step      Step
}

func (p Point) String() string { return fmt.Sprintf("%s: %s at %s", p.Component, p.Kind, p.Step) }

// Repeat is the command that tries the point again, with the arguments of go test that name
// the test.
func (p Point) Repeat(test string) string {
	return fmt.Sprintf("go -C e2e test -count=1 %s -component %s -kind %s -step '%s'", test, p.Component, p.Kind, p.Step)
}

// Choose takes n of the points, chosen by the seed, of each kind as many. They are in turns of
// the kinds.
func Choose(from []Point, n int, seed uint64) []Point {
	r := rand.New(rand.NewPCG(seed, 0))
	byKind := map[Kind][]Point{}
	for _, i := range r.Perm(len(from)) {
		byKind[from[i].Kind] = append(byKind[from[i].Kind], from[i])
	}
	var out []Point
	for i := 0; len(out) < n; i++ {
		before := len(out)
		for _, k := range Kinds {
			if i < len(byKind[k]) && len(out) < n {
				out = append(out, byKind[k][i])
			}
		}
		if len(out) == before {
			break
		}
	}
	return out
}

// Minimum says of which names the file has more steps than there are. With update it writes
// the file first.
func Minimum(file string, counts map[string]int, update bool) error {
	if update {
		out, err := yaml.Marshal(counts)
		if err != nil {
			return err
		}
		if err := os.WriteFile(file, out, 0o644); err != nil {
			return err
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	known := map[string]int{}
	if err := yaml.UnmarshalStrict(data, &known); err != nil {
		return err
	}
	var fewer []string
	for name, n := range known {
		if counts[name] < n {
			fewer = append(fewer, fmt.Sprintf("%s: %d and not %d", name, counts[name], n))
		}
	}
	if len(fewer) == 0 {
		return nil
	}
	slices.Sort(fewer)
	return fmt.Errorf("there are fewer steps than last time: %q; after a change of what is done, run the test with -update", fewer)
}
