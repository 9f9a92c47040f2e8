package model

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
