package table

import "github.com/slipway-dev/slipway/internal/gateway/model"

// Checker checks rules one by one, before they are compiled.
type Checker struct{ compiler compiler }

// NewChecker returns a Checker.
func NewChecker() *Checker {
	c := &Checker{compiler{texts: newTexts()}}
	c.compiler.texts.checks = true
	return c
}

// Check checks a rule that no others belong to.
func Check(rule *Rule) (fault *model.Fault, unknown bool) { return NewChecker().Check(rule) }

// Check reports why a rule cannot be served as written, as far as the rule and those before it
// tell, and whether it is unknown which requests it is for. Listeners and backends are not
// looked at.
func (c *Checker) Check(rule *Rule) (fault *model.Fault, unknown bool) {
	alone := *rule
	alone.Listeners = nil
	entry := compiled{Route: &Route{}, texts: c.compiler.texts}
	if f := c.compiler.compileMatch(&entry, &alone); f != nil {
		return f, true
	}
	if rule.Fault != nil {
		return rule.Fault, false
	}
	return compileActions(&entry, &alone), false
}

// Speaks reports whether the gateway speaks the protocol that an appProtocol of a Service
// names. secure tells that there are settings for TLS.
func Speaks(appProtocol string, secure bool) bool {
	_, supported := protocolOf(appProtocol)
	return supported || (secure && speaksTLS(appProtocol))
}
