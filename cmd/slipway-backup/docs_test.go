package main

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/internal/backup/engine"
)

const recoveryPage = "../../docs/disaster-recovery.md"

// Who recovers from a disaster types what the page says: the configuration has to be one, and the exit codes these.
func TestThePageOnDisasterRecoverySaysWhatIs(t *testing.T) {
	page, err := os.ReadFile(recoveryPage)
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile("(?s)```json\n(.*?)```").FindSubmatch(page)
	if example == nil {
		t.Fatal("there is no configuration")
	}
	b := newBench(t)
	b.write(t, "example.json", string(example[1]))
	if c, err := readConfig(b.path("example.json")); err != nil || c.Repository.S3 == nil || c.Expire.Retention == nil {
		t.Errorf("got %+v, %v", c, err)
	}
	reported := map[engine.Kind]int{}
	for _, row := range regexp.MustCompile("(?m)^\\| (\\d+) \\| `(\\w+)` \\|").FindAllSubmatch(page, -1) {
		reported[engine.Kind(row[2])], _ = strconv.Atoi(string(row[1]))
	}
	if diff := cmp.Diff(exitCodes, reported); diff != "" {
		t.Errorf("exit codes (-program +page):\n%s", diff)
	}
	for name := range commands {
		if !regexp.MustCompile(fmt.Sprintf("(?m)^\\| `%s` \\|", name)).Match(page) {
			t.Errorf("the command %s is not on the page", name)
		}
	}
}
