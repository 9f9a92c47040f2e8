//go:build attack

package gatewayattack

import (
	"os"
	"strings"
	"testing"
)

// Every way not to take responses.
func TestNoWayToTakeNothingCostsMuch(t *testing.T) {
	rows := slowTakers(t, allSlowTakers)
	table := "| who takes nothing | backend | sent, MiB | resident before, MiB | after | at most | another's GET of 1 MiB alone, ms | beside it |\n|---|---|---|---|---|---|---|---|\n" + strings.Join(rows, "\n") + "\n"
	t.Logf("\n%s", table)
	if file := os.Getenv("GATEWAY_ATTACK_TABLE"); file != "" {
		appendText(t, file, table)
	}
}
