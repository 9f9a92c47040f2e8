// Package redact hides secrets in words: in messages, lines of logs and answers that come from outside and go to where more people
// read them than may read Secrets.
//
// It knows three things: values that the caller names (New), with their parts and in the forms that programs write them in; names
// of secrets, as in password=x (Names); and what secrets look like, such as tokens of well-known services, keys in PEM or hashes of
// passwords. The last two are a judgement, and may be wrong in both directions.
//
// It is pure, and safe for concurrent use. The time that a text takes grows with its length, and no faster.
//
//   - redact.go: Clean, and the markers that stand in place of secrets
//   - known.go, forms.go, escaped.go: values that are known, their parts and forms, also behind escapes
//   - writer.go: the same for a stream
//   - names.go: names of secrets, and names that only look like one
//   - find.go: the pass over a text that finds secrets in it
//   - assign.go, value.go, xml.go: what gets its value by name: password=x, a line of YAML, a header, an element of XML
//   - pointer.go: what is called key and names something
//   - statement.go: statements of databases, and files of log-ins
//   - command.go: what is a secret on a command line, such as what follows curl -u
//   - token.go: what shows by itself that it is a secret: tokens, keys, hashes, the password of a URL
//   - opaque.go, encoded.go: what looks random, and what is in base64
//   - gitleaks: the rules of gitleaks
//   - redactlog: the same for loggers
package redact
