package table

// BackendSettings are settings of the backends of some rules. The rules of a group have the same, and share connections, limits
// and what is known of the health of each port that they name. Rules of other groups, and those without settings, have their own
// of the same port: nobody changes what holds for others.
type BackendSettings struct {
	// Group is the name of the rules that share the settings. It is not empty.
	Group string
	// Limits bound the concurrent use of each backend by the rules of the group.
	Limits Limits
	// HealthCheck is the active health check of the endpoints. Nil: none. Connections that are not read have none.
	HealthCheck *HealthCheck
	// ChecksOf is whose health checks have one pace, with those of other groups. Empty: no pace.
	ChecksOf string
}

// compileBackendSettings refuses settings that cannot hold.
func compileBackendSettings(_ *compiled, rule *Rule) *Fault {
	own := rule.BackendSettings
	if own == nil {
		return nil
	}
	if own.Group == "" {
		return invalid("backends: the group has no name")
	}
	if wrong := own.Limits.Wrong(); wrong != "" {
		return invalid("backends: %s", wrong)
	}
	if own.HealthCheck == nil {
		return nil
	}
	if wrong := own.HealthCheck.Wrong(); wrong != "" {
		return invalid("backends.healthCheck: %s", wrong)
	}
	return nil
}

// replace puts the settings in the place of what holds for all rules. Protocol and TLS stay: they belong to the Service.
func (own *BackendSettings) replace(in Settings, transport Transport) Settings {
	if own == nil {
		return in
	}
	in.Limits, in.HealthCheck = &own.Limits, own.HealthCheck
	if transport != TransportHTTP {
		in.HealthCheck = nil
	}
	return in
}

// group is the name of the group. Empty: there are no settings.
func (own *BackendSettings) group() string {
	if own == nil {
		return ""
	}
	return own.Group
}
