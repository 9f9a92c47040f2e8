package network

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// kernel writes a path as the kernel does in mountinfo.
var kernel = strings.NewReplacer(" ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`)

// What is found below a folder gets unmounted. So every mount point there must be found,
// whatever its name, and no other one.
func FuzzMountsBelow(f *testing.F) {
	f.Add("/state/a", "namespaces/net", "b")
	f.Add("/state/a b", `c\040d`, " - ")
	f.Add("/state/a", "non-breaking\u00a0space", "form\ffeed")
	f.Add("/state/\u0085", "\v", "\r")
	f.Fuzz(func(t *testing.T, folder, below, beside string) {
		if strings.Contains(folder+below+beside, "\x00") || !strings.HasPrefix(folder, "/") || strings.HasSuffix(folder, "/") || beside == "" || beside[0] == '/' {
			return
		}
		points := []string{folder, folder + beside, folder + "/" + below, "/elsewhere" + folder, folder}
		var mountinfo strings.Builder
		for i, point := range points {
			fmt.Fprintf(&mountinfo, "%d 27 0:40 / %s rw,relatime shared:1 - tmpfs x rw\n", 28+i, kernel.Replace(point))
		}
		want := []string{points[0], points[2], points[4]}
		if diff := cmp.Diff(want, mountsBelow([]byte(mountinfo.String()), folder)); diff != "" {
			t.Errorf("below %q in\n%s(-want +got):\n%s", folder, mountinfo.String(), diff)
		}
	})
}
