// Command coredns-whoami is CoreDNS with the plugins that the conformance suite of the Gateway API configures, and no others:
// hack/conformance.sh says what for. The suite names the version.
package main

import (
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/log"
	_ "github.com/coredns/coredns/plugin/whoami"

	"github.com/coredns/coredns/coremain"
)

func main() {
	coremain.Run()
}
