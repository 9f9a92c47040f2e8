// Package why has the commands why and tree. why reads an object with all that can be a cause, and explains it by a tree of what
// is wrong; tree shows owners and children of any object. Each kind that why explains by itself has a row in kinds.go and a file that
// reads (load) and explains it.
//
//	why.go               the command why: which object is meant, and what comes of it
//	kinds.go             the kinds that are explained by themselves
//	load.go              what is read of objects of every kind: Deployment, Service, pods, events, logs, Secrets
//	explain.go           nodes of the tree that kinds have alike, and the view (pure)
//	detail.go            warnings, logs and the first line of the tree (pure)
//	print.go             printing the tree
//	config.go            Secrets and ConfigMaps that a WebApp requires (pure)
//	webapp.go            a WebApp
//	gateway.go           reading an APIGateway
//	routes.go            explaining an APIGateway: routes, backends, exposure (pure)
//	backup.go            a Backup, a BackupRun or a Restore
//	standard.go          kinds of the Gateway API, and which of them a name means
//	standard_load.go     reading a Gateway or a route of the Gateway API
//	standard_gateway.go  explaining a Gateway (pure)
//	standard_route.go    explaining a route, and its backends (pure)
//	standard_parents.go  what controllers say of a route at its parents (pure)
//	standard_print.go    printing what is shown of them besides causes
//	any.go               an object of any other kind
//	foreign.go           why --foreign: fields that others added
//	tree.go              the command tree
//	tree_load.go         reading owners and children of an object
//	tree_view.go         what tree shows (pure)
package why
