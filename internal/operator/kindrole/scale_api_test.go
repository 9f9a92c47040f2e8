//go:build apitest && monitortest

package kindrole_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// 500 definitions within seconds: few writes, never more than one a second, and all kinds at the end. It is the last test of the
// package: the API server takes its time to delete so many.
func TestManyDefinitionsAreFewWrites(t *testing.T) {
	install(t)
	_, counter := start(t, nil)
	environment.Eventually(t, func() error {
		if writes(counter) == 0 {
			return errors.New("the first write is missing")
		}
		return nil
	})
	const groups, each = 50, 10
	first, begin := writes(counter), time.Now()
	var all []client.Object
	var names []string
	for g := range groups {
		for k := range each {
			one := definition(fmt.Sprintf("kind%02d", k), fmt.Sprintf("group%02d.scale.example.com", g))
			all, names = append(all, one), append(names, one.Name)
			if err := env.Client.Create(t.Context(), one); err != nil {
				t.Fatal(err)
			}
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		_, groupA, _ := strings.Cut(a, ".")
		_, groupB, _ := strings.Cut(b, ".")
		return strings.Compare(groupA+a, groupB+b)
	})
	created := time.Since(begin)
	grants(t, names...)
	whole := time.Since(begin)
	wrote := writes(counter) - first
	t.Logf("500 definitions in %v, the last rule after %v, %d writes", created.Round(time.Millisecond), (whole - created).Round(time.Millisecond), wrote)
	if limit := int(whole/time.Second) + 2; wrote > limit {
		t.Errorf("%d writes in %v, want at most %d", wrote, whole, limit)
	}
	going, staying := all[:50], names[50:]
	for _, one := range going {
		if err := env.Client.Delete(t.Context(), one); err != nil {
			t.Error(err)
		}
	}
	for _, one := range going {
		remove(t, one) // the API server may need half a minute for one
	}
	grants(t, staying...)
	if wrote, limit := writes(counter)-first, int(time.Since(begin)/time.Second)+2; wrote > limit {
		t.Errorf("with the deletions %d writes, want at most %d", wrote, limit)
	}
}
