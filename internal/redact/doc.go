// Package redact hides secrets in words: in messages, lines of logs and answers that come from outside and go to where more people
// read them than may read Secrets.
//
// It knows three things: values that the caller names (New), with their parts and in the forms that programs write them in; names
// of secrets, as in password=x (Names); and what secrets look like, such as tokens of well-known services, keys in PEM or hashes of
// passwords. The last two are a judgement, and may be wrong in both directions.
//
// It is pure, and safe for concurrent use. The time that a text takes grows with its length, and no faster.
//
//	redact.go     Clean, and the markers that stand in place of secrets
//	known.go      values that are known, and finding them in a text
//	forms.go      the parts of a known value, and the forms in which programs write it
//	escaped.go    known values behind escapes
//	writer.go     Writer: hides secrets in a stream, line by line
//	names.go      names of secrets, and names that only look like one
//	find.go       the pass over a text that finds secrets in it
//	assign.go     what gets its value by name, as in password=x
//	value.go      the value of such an assignment
//	xml.go        elements and attributes of XML that name a secret
//	pointer.go    what is called key and names something
//	statement.go  statements of databases, and files of log-ins
//	command.go    what is a secret on a command line, such as what follows curl -u
//	token.go      what shows by itself that it is a secret: tokens, keys, hashes, the password of a URL
//	opaque.go     what looks random
//	encoded.go    what is in base64
//	address.go    passwords in URLs and other addresses
//
// Package gitleaks has the rules of gitleaks. Package redactlog does the same for loggers.
package redact
