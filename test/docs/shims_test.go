package docs

import (
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"
)

var (
	// ends is when code goes that is for what an earlier release left. A comment may break the line anywhere.
	ends = regexp.MustCompile(`\b[Ee]nds?(?: |\s*// ?)in(?: |\s*// ?)(v\d+\.\d+\.\d+)`)
	// released is a version in the changelog.
	released = regexp.MustCompile(`(?m)^## (v\d+\.\d+\.\d+)$`)
)

// TestCodeForEarlierReleasesEnds: docs/dev/release.md says how long there is any.
func TestCodeForEarlierReleasesEnds(t *testing.T) {
	texts := filesOf(t, func(name string) bool {
		return name == "VERSION" || name == "CHANGELOG.md" || strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go")
	})
	now, err := version.ParseSemantic(strings.TrimSpace(string(texts["VERSION"])))
	if err != nil {
		t.Fatal(err)
	}
	var earlier []string
	for _, match := range released.FindAllStringSubmatch(string(texts["CHANGELOG.md"]), -1) {
		earlier = append(earlier, match[1])
	}
	if len(earlier) < 2 {
		t.Fatalf("the changelog has the releases %q", earlier)
	}
	found := 0
	for file, source := range texts {
		if !strings.HasSuffix(file, ".go") {
			continue
		}
		matches := ends.FindAllStringSubmatch(string(source), -1)
		found += len(matches)
		for _, match := range matches {
			if now.AtLeast(version.MustParseSemantic(match[1])) {
				t.Errorf("%s: what ends in %s is still there in v%s: remove it (docs/dev/release.md)", file, match[1], now)
			}
		}
		for _, release := range earlier {
			if len(matches) == 0 && strings.HasPrefix(file, "internal/") && strings.Contains(string(source), release) {
				t.Errorf("%s tells of %s and not when that ends, as in: Ends in v0.4.0.", file, release)
			}
		}
	}
	if found < 5 {
		t.Errorf("found %d ends, which cannot be", found)
	}
}
