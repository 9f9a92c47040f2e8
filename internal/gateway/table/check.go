package table

// Check reports why a rule cannot be served as written, as far as the rule alone tells, and
// whether it is unknown which requests it is for. Listeners and backends are not looked at.
func Check(rule *Rule) (fault *Fault, unknown bool) {
	alone := *rule
	alone.Listeners = nil
	entry := compiled{Route: &Route{}}
	if f := new(compiler).compileMatch(&entry, &alone); f != nil {
		return f, true
	}
	if rule.Fault != nil {
		return rule.Fault, false
	}
	return compileActions(&entry, &alone), false
}

// EditableHeader returns the canonical form of a header that may be set for backends.
func EditableHeader(field, name string) (string, *Fault) { return editableHeader(field, name) }

// Speaks reports whether the gateway speaks the protocol that an appProtocol of a Service
// names. secure tells that there are settings for TLS.
func Speaks(appProtocol string, secure bool) bool {
	_, supported := protocolOf(appProtocol)
	return supported || (secure && speaksTLS(appProtocol))
}
