//go:build monitorplant

package recorder

import (
	"strings"

	"github.com/slipway-dev/slipway/internal/monitor/supervisor"
)

// planted forgets about one change of the test in 100, so that a test can show that it finds out. No program that is shipped has it.
func planted(event *supervisor.Event) bool {
	return strings.HasSuffix(event.Object.ResourceVersion, "7") && strings.HasSuffix(event.Object.Name, "3")
}
