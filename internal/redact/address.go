package redact

import "strings"

// address finds the password in a URL, user:password@host, from after its two slashes. Who writes a password into a URL forgets to
// escape it, so a slash may be part of it. After a number it is not: that is the port.
func (f *finder) address(start int) {
	text := f.text[start:min(len(f.text), start+2*maxLook)]
	if end := strings.IndexAny(text, " \t\r\n\"'<>,`"); end >= 0 {
		text = text[:end]
	}
	colon := strings.IndexByte(text, ':')
	host := strings.IndexAny(text, "/?#")
	if colon < 0 || host >= 0 && host < colon {
		f.userToken(start, text)
		return
	}
	at := strings.LastIndexByte(text, '@')
	if at <= colon+1 {
		f.userToken(start, text)
		return
	}
	password := text[colon+1 : at]
	if isInnocentValue(password) {
		return
	}
	if host < 0 || at < host || strings.LastIndexByte(text[:host], '@') > colon+1 {
		if inner := strings.LastIndexByte(text[:max(0, host)], '@'); inner > colon+1 && at > host {
			at = inner
		}
		f.add(start+colon+1, start+at)
		return
	}
	for i := colon + 1; i < host; i++ {
		if !isDigit(text[i]) {
			f.add(start+colon+1, start+at)
			return
		}
	}
	if host == colon+1 {
		f.add(start+colon+1, start+at)
	}
}

// userToken finds a token that stands for a user in a URL: token@host.
func (f *finder) userToken(start int, text string) {
	if host := strings.IndexAny(text, "/?#"); host >= 0 {
		text = text[:host]
	}
	user, _, found := strings.Cut(text, "@")
	if found && len(user) >= 16 && Opaque(user) {
		f.add(start, start+len(user))
	}
}

// login finds user:password@ before an address that is no URL: that of MySQL, @tcp(host), or host:port.
func (f *finder) login(at int) {
	rest := f.text[at+1 : min(len(f.text), at+1+maxLook)]
	if strings.HasPrefix(rest, "//") || f.command == oracle {
		f.oracleLogin(at)
		return
	}
	protocol := strings.TrimLeft(rest, "abcdefghijklmnopqrstuvwxyz")
	withoutHost := len(rest) > 1 && rest[0] == '/' && (isLetter(rest[1]) || isDigit(rest[1]))
	if !strings.HasPrefix(protocol, "(") && !withoutHost && !isHostPort(rest) {
		return
	}
	start := at
	for start > f.until && at-start < maxLook && strings.IndexByte(" \t\r\n\"'<>,`", f.text[start-1]) < 0 {
		start--
	}
	before := f.text[start:at]
	colon := strings.IndexByte(before, ':')
	if colon <= 0 || colon+1 == len(before) || strings.HasPrefix(before[colon:], "://") || strings.Contains(before[:colon], "/") ||
		isInnocentValue(before[colon+1:]) {
		return
	}
	f.add(start+colon+1, at)
}

// oracleLogin finds the password in user/password@ before an address of Oracle, of which only a prefix or the program tells.
func (f *finder) oracleLogin(at int) {
	start := at
	for start > f.until && at-start < maxLook && strings.IndexByte(" \t\r\n\"'<>,`", f.text[start-1]) < 0 {
		start--
	}
	before := f.text[start:at]
	slash := strings.IndexByte(before, '/')
	if slash <= 0 || f.command != oracle && !strings.Contains(before, "oracle:") || isInnocentValue(before[slash+1:]) {
		return
	}
	f.add(start+slash+1, at)
}

// isHostPort reports whether a text begins with a host and a port, and then ends or has a path.
func isHostPort(text string) bool {
	i := 0
	for i < len(text) && (isLetter(text[i]) || isDigit(text[i]) || text[i] == '.' || text[i] == '-') {
		i++
	}
	if i == 0 || i >= len(text) || text[i] != ':' {
		return false
	}
	port := i + 1
	for i = port; i < len(text) && isDigit(text[i]); i++ {
		continue
	}
	return i > port && i-port <= 5 && (i == len(text) || !isLetter(text[i]))
}
