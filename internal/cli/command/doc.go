// Package command is what all commands of kubectl slipway are built from. Rooms import it, and it knows none of them.
//
//	program.go   what commands share, running a command line, and exit codes
//	clients.go   clients of one namespace, and why an object could not be read
//	anykind.go   clients for objects of any kind, and finding what KIND/NAME means
//	list.go      all objects of a kind, page by page
//	lister.go    watching one object
//	names.go     the kinds of Slipway with all their names (pure)
//	target.go    arguments that name a WebApp, and completing flags
//	complete.go  completing names of objects and kinds
//	output.go    the flag --output, tables and ages
//	text.go      what is safe to print (pure)
//	colour.go    changes of objects in words and colours (pure)
//	verdict.go   what the status of an object of Slipway says (pure)
//	version.go   the command version
package command
