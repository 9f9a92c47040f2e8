// Package v1alpha1 is version v1alpha1 of the Slipway API, group slipway.dev.
//
// It holds types and constants only and imports nothing but k8s.io/api and
// k8s.io/apimachinery, so programs can depend on it without pulling in a
// controller framework.
//
//	apigateway_action.go         what a route does with a request: backends, rewrite, redirect, own answer, mirror, CORS
//	apigateway_affinity.go       SessionAffinity: how a client comes to the same endpoint again
//	apigateway_conditions.go     conditions and reasons of an APIGateway
//	apigateway_external.go       ExternalAuth: a Service is asked about each request
//	apigateway_limits.go         BackendPolicy and ConnectionLimits: bounds for backends and for connections of clients
//	apigateway_oidc.go           OIDCAuth: browsers log in at a provider
//	apigateway_policy.go         address ranges, timeouts, retries, health checks, the other ways to authenticate, rate limits
//	apigateway_route.go          Route: what it matches
//	apigateway_status.go         APIGatewayStatus: which routes are live
//	apigateway_stream.go         Stream: connections that are forwarded without being read as HTTP
//	apigateway_tls.go            TLS to backends, certificates of clients, and references to Secrets with certificates
//	apigateway_types.go          APIGateway and its spec
//	backup_conditions.go         conditions and reasons of Backup, BackupRun and Restore
//	backup_drill.go              BackupDrill: a copy is restored from time to time and compared
//	backup_dump.go               BackupDump: the output of a command is what is backed up
//	backup_hooks.go              BackupHooks: commands that run in pods around the reading of a volume
//	backup_status.go             BackupStatus: which copies there are
//	backup_types.go              Backup and its spec: destination, retention, verification
//	backup_volumesnapshot.go     BackupVolumeSnapshot: whether a volume is read from a snapshot of it
//	backuprun_types.go           BackupRun: one run of a Backup
//	cache_types.go               Cache: responses that are kept and given again
//	compression_types.go         Compression: responses that are compressed for clients
//	conditions.go                conditions and reasons that every kind uses
//	gatewayparameters_types.go   GatewayParameters: how the pods and the Service of Gateways are made
//	gatewaypolicy_backends.go    BackendSettings of a GatewayPolicy: limits and health checks of backends
//	gatewaypolicy_conditions.go  GatewayPolicyStatus, and conditions and reasons of a GatewayPolicy
//	gatewaypolicy_types.go       GatewayPolicy: settings for Gateways, listeners, routes and rules
//	maintenance_types.go         Maintenance: answers while a route is closed
//	monitorrule_conditions.go    conditions and reasons of a MonitorRule
//	monitorrule_types.go         MonitorRule: what the monitor raises an alarm for
//	register.go                  the API group, and adding the types to a scheme
//	restore_types.go             Restore: brings a copy of a volume back, once
//	shared_types.go              labels, annotations and small types that more than one kind uses
//	webapp_conditions.go         conditions and reasons of a WebApp
//	webapp_status.go             WebAppStatus: the application as it runs
//	webapp_types.go              WebApp and its spec
//
// +kubebuilder:object:generate=true
// +groupName=slipway.dev
// +groupGoName=Slipway
package v1alpha1
