package redact

import "strings"

// statement finds the secret of a statement or directive that begins with a word: SQL, Redis, MongoDB, netrc, and what a sentence tells.
func (f *finder) statement(i int) {
	end := i
	for end < len(f.text) && end-i < 24 && (isLetter(f.text[end]) || isDigit(f.text[end]) || f.text[end] == '_') {
		end++
	}
	switch word := strings.ToLower(f.text[i:end]); word {
	case "password", "passwd", "passphrase", "passcode", "pwd":
		if !f.sqlPassword(end) {
			f.spoken(end)
		}
	case "requirepass", "masterauth", "bindpw", "rootpw":
		if start, ok := f.nextWord(end); ok && !strings.Contains(f.text[end:start], ",") && strings.IndexByte(":=", f.text[start]) < 0 {
			f.secretWord(start)
		}
	case "identified":
		f.identified(end)
	case "auth", "auth2":
		if i > 0 && f.text[i-1] == '.' {
			f.lastArgument(end)
		} else if f.text[i:i+len("AUTH")] == "AUTH" || f.command == redis {
			f.redisLogin(end)
		}
	case "changeuserpassword", "pgp_sym_encrypt", "pgp_sym_decrypt", "aes_encrypt", "aes_decrypt":
		f.lastArgument(end)
	case "setuser", "user":
		f.redisUser(end, word == "setuser")
	case "machine", "default":
		f.netrc(end, word == "machine")
	}
}

// blank is where the text goes on after spaces and ends of lines, in maxLook characters.
func (f *finder) blank(at int) int {
	limit := min(len(f.text), at+maxLook)
	for at < limit && strings.IndexByte(" \t\r\n", f.text[at]) >= 0 {
		at++
	}
	return at
}

// sqlPassword finds the text after the word PASSWORD: PASSWORD 'x', PASSWORD = N'x', PASSWORD FOR a = PASSWORD('x').
func (f *finder) sqlPassword(at int) bool {
	if strings.HasPrefix(f.text[at:], "(") {
		return f.literal(at)
	}
	word := at
	if at = f.blank(at); at == len(f.text) || f.text[at] == '(' || at == word && f.text[at] != '=' {
		return false
	}
	if rest := f.text[at:min(len(f.text), at+maxLook)]; len(rest) > 4 && strings.EqualFold(rest[:4], "for ") {
		equals := strings.IndexByte(rest, '=')
		if equals < 0 || strings.ContainsAny(rest[:equals], "\n;") {
			return false
		}
		at = f.blank(at + equals)
	}
	if at < len(f.text) && f.text[at] == '=' {
		at = f.blank(at + 1)
	}
	return f.literal(at)
}

// literal finds the text of SQL that begins at a place, in quotes and, as it may be, the argument of a function: N'x', E'x', $$x$$,
// PASSWORD('x').
func (f *finder) literal(at int) bool {
	name := at
	for at < len(f.text) && at-name < 24 && (isLetter(f.text[at]) || f.text[at] == '_') {
		at++
	}
	prefixed := at == name || at == name+1 && strings.IndexByte("ENBUXenbux", f.text[name]) >= 0
	if at < len(f.text) && f.text[at] == '(' {
		at, prefixed = f.blank(at+1), true
	}
	for at < len(f.text) && f.text[at] == '\\' {
		at++
	}
	if at+1 >= len(f.text) || !prefixed {
		return false
	}
	switch q := f.text[at]; q {
	case '\'', '"':
		end := f.quoteEnd(value{start: at + 1, quote: q, escaped: f.text[at-1] == '\\'})
		if isInnocentValue(f.text[at+1 : end]) {
			return false
		}
		f.add(at+1, end)
		return true
	case '$':
		tag := f.text[at:min(len(f.text), at+32)]
		if second := strings.IndexByte(tag[1:], '$'); second >= 0 && strings.IndexByte(tag[:second+1], ' ') < 0 {
			end := len(f.text) // of one that has no end nearby all goes
			if closing := strings.Index(f.text[at+second+2:min(len(f.text), at+maxCommand)], tag[:second+2]); closing >= 0 {
				end = at + second + 2 + closing
			}
			f.add(at+second+2, end)
			return true
		}
	}
	return false
}

// identified finds what follows IDENTIFIED [WITH plugin] BY, AS or USING [PASSWORD or VALUES], and what a REPLACE after it has.
func (f *finder) identified(at int) {
	limit := min(len(f.text), at+maxLook)
	for at = f.blank(at); at < limit; at = f.blank(at) {
		word := strings.ToLower(f.text[at:sqlWordEnd(f.text, at, limit)])
		at += len(word)
		if word != "by" && word != "as" && word != "using" {
			if word == "" && !f.skipQuoted(&at) {
				return
			}
			continue
		}
		at = f.blank(at)
		switch second := strings.ToLower(f.text[at:sqlWordEnd(f.text, at, limit)]); second {
		case "random":
			return
		case "values", "password":
			if !strings.HasPrefix(f.text[at+len(second):], "(") {
				at = f.blank(at + len(second))
			}
		}
		if !f.literal(at) && at < limit && word == "by" {
			f.secretWord(at)
		}
		at = f.blank(max(at, f.until+1))
		if rest := f.text[min(at, len(f.text)):min(len(f.text), at+8)]; strings.EqualFold(rest, "replace ") {
			f.literal(f.blank(at + len(rest)))
		}
		return
	}
}

// skipQuoted moves on past what is in quotes, which is no secret.
func (f *finder) skipQuoted(at *int) bool {
	if q := f.text[*at]; q != '\'' && q != '"' && q != '`' {
		return false
	}
	end := strings.IndexByte(f.text[*at+1:min(len(f.text), *at+maxLook)], f.text[*at])
	*at += end + 2
	return end >= 0
}

func sqlWordEnd(text string, at, limit int) int {
	for at < limit && (isLetter(text[at]) || isDigit(text[at]) || text[at] == '_') {
		at++
	}
	return at
}

// lastArgument finds the last argument in quotes of a function.
func (f *finder) lastArgument(at int) {
	if at >= len(f.text) || f.text[at] != '(' {
		return
	}
	limit := min(len(f.text), at+maxLook)
	for start := at + 1; start < limit; start++ {
		q := f.text[start]
		if q != '"' && q != '\'' {
			if q == ')' {
				return
			}
			continue
		}
		end := f.quoteEnd(value{start: start + 1, quote: q, escaped: f.text[start-1] == '\\'})
		after := end
		for after < len(f.text) && strings.IndexByte("\\\"' \t\r\n", f.text[after]) >= 0 {
			after++
		}
		if after == len(f.text) || f.text[after] != ',' {
			f.add(start+1, end)
			return
		}
		start = after
	}
}

// authWords follow AUTH where no password does.
var authWords = listed(`PLAIN LOGIN NTLM GSSAPI CRAM-MD5 XOAUTH2 TLS SSL TYPE TOKEN token tokens command Command error errors user users key
	keys header headers method methods mode plugin server service services SETNAME credentials provider providers module request requests`)

// redisLogin finds what follows AUTH: a password, or a user with one.
func (f *finder) redisLogin(at int) {
	start, ok := f.nextWord(at)
	if !ok {
		return
	}
	end := f.wordEnd(start)
	word := strings.Trim(f.text[start:end], "\"'.,:;()[]")
	if ordinary[strings.ToLower(word)] || authWords[word] || isInnocentValue(word) || strings.IndexByte(":=([{", f.text[start]) >= 0 {
		return
	}
	second, ok := f.nextWord(end)
	if ok && strings.IndexByte("|&;>", f.text[second]) < 0 {
		last := f.wordEnd(second)
		word := strings.Trim(f.text[second:last], "\"'.,:;()[]")
		if word != "" && !ordinary[strings.ToLower(word)] && !authWords[word] {
			end = last
		}
	}
	f.add(start, end)
}

// redisUser finds passwords and their hashes among the rules of a user of Redis: >password, <password, #hash.
func (f *finder) redisUser(at int, set bool) {
	limit := min(len(f.text), at+2*maxLook)
	for position := 0; at < limit; position++ {
		start := at
		for start < limit && strings.IndexByte(" \t\"',\\", f.text[start]) >= 0 {
			start++
		}
		if start == at || start == limit || f.text[start] == '\n' {
			return
		}
		word := wordAt(f.text, start, limit)
		at = start + len(word)
		if cut := strings.IndexAny(word[1:], "\"',\\"); cut >= 0 {
			at = start + 1 + cut
		}
		if !set && position == 1 && word != "on" && word != "off" {
			return
		}
		if position > 0 && at-start > 1 && strings.IndexByte("><#!", word[0]) >= 0 {
			f.add(start+1, f.wordEnd(start+1))
		}
	}
}

// netrc finds a password in the words of a login: machine h login a password x.
func (f *finder) netrc(at int, named bool) {
	next := func() string {
		at = f.blank(at)
		word := wordAt(f.text, at, min(len(f.text), at+maxLook))
		at += len(word)
		return word
	}
	if named && next() == "" {
		return
	}
	for range 4 {
		switch next() {
		case "login", "account":
			next()
		case "password":
			if start := f.blank(at); start < len(f.text) && !isInnocentValue(next()) {
				f.add(start, f.wordEnd(start))
			}
			return
		default:
			return
		}
	}
}

// pgpass finds the password in a line of a file of libpq, host:port:database:user:password, from the colon before the port on.
func (f *finder) pgpass(colon int) {
	end := portEnd(f.text, colon+1)
	if end == colon+1 || end == len(f.text) || f.text[end] != ':' || !f.beginsWithHost(colon) {
		return
	}
	at := end + 1
	for range 2 { // the database and the user
		start := at
		for at < len(f.text) && at-start < 128 && (isKeyByte(f.text[at]) || f.text[at] == '*' || f.text[at] == '@' || f.text[at] == '\\') {
			at++
		}
		if at == start || at == len(f.text) || f.text[at] != ':' {
			return
		}
		at++
	}
	password := f.text[at:f.wordEnd(at)]
	if strings.Contains(strings.ReplaceAll(password, `\:`, ""), ":") || isInnocentValue(password) {
		return // more than five
	}
	f.add(at, at+len(password))
}

// portEnd is where a port ends: a number, or an asterisk for all.
func portEnd(text string, at int) int {
	end := at
	for end < len(text) && end-at < 6 && isDigit(text[end]) {
		end++
	}
	if end == at && strings.HasPrefix(text[end:], "*") {
		end++
	}
	return end
}

// beginsWithHost reports whether just a host is before a colon in its word.
func (f *finder) beginsWithHost(colon int) bool {
	host := colon
	for host > 0 && colon-host < 128 && (isKeyByte(f.text[host-1]) || f.text[host-1] == '*') {
		host--
	}
	return host < colon && (host == 0 || strings.IndexByte(" \t\r\n\"'`(", f.text[host-1]) >= 0)
}
