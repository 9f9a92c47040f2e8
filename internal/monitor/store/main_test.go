package store

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// Some tests run this program again as another process, which does what the variable names.
const roleVariable = "STORE_TEST_ROLE"

var roles = map[string]func() error{"crash": crashChild, "limited": limitedChild}

// The build tag monitortest kills more often.
var kills = flag.Int("kills", standardKills, "how often a process that commits is killed")

func TestMain(m *testing.M) {
	role := roles[os.Getenv(roleVariable)]
	if role == nil {
		os.Exit(m.Run())
	}
	if err := role(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
