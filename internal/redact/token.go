package redact

import (
	"encoding/base64"
	"slices"
	"strings"
)

// prefix is how tokens of a well-known service begin. The rules of gitleaks know more of them, and each only whole. What is cut off
// is a part of a secret too.
type prefix struct {
	text string
	// least is how many characters of a token follow at least.
	least int
	// mixed asks for a digit and a capital letter among them, where the prefix is part of ordinary words.
	mixed bool
}

var prefixes = groupPrefixes(
	prefix{text: "ghp_", least: 20}, prefix{text: "gho_", least: 20}, prefix{text: "ghu_", least: 20}, prefix{text: "ghs_", least: 20},
	prefix{text: "ghr_", least: 20}, prefix{text: "github_pat_", least: 20}, prefix{text: "glpat-", least: 16},
	prefix{text: "gldt-", least: 16}, prefix{text: "glrt-", least: 16}, prefix{text: "glsa_", least: 20}, prefix{text: "gsk_", least: 20},
	prefix{text: "xoxb-", least: 10}, prefix{text: "xoxp-", least: 10}, prefix{text: "xoxa-", least: 10}, prefix{text: "xoxr-", least: 10},
	prefix{text: "xoxs-", least: 10}, prefix{text: "xoxe", least: 20}, prefix{text: "xapp-", least: 10},
	prefix{text: "AKIA", least: 16}, prefix{text: "ASIA", least: 16}, prefix{text: "AIza", least: 30},
	prefix{text: "AGE-SECRET-KEY-1", least: 10}, prefix{text: "ATATT3", least: 20}, prefix{text: "NRAK-", least: 20},
	prefix{text: "PMAK-", least: 20}, prefix{text: "SG.", least: 20, mixed: true}, prefix{text: "dapi", least: 32},
	prefix{text: "dckr_pat_", least: 20}, prefix{text: "dop_v1_", least: 20}, prefix{text: "hf_", least: 30},
	prefix{text: "hvs.", least: 20}, prefix{text: "hvb.", least: 20}, prefix{text: "hvr.", least: 20}, prefix{text: "lin_api_", least: 20},
	prefix{text: "npm_", least: 30}, prefix{text: "pypi-", least: 20, mixed: true}, prefix{text: "shpat_", least: 20},
	prefix{text: "sk-", least: 20, mixed: true}, prefix{text: "sk_live_", least: 16}, prefix{text: "sk_test_", least: 16},
	prefix{text: "rk_live_", least: 16}, prefix{text: "rk_test_", least: 16}, prefix{text: "whsec_", least: 16},
	prefix{text: "tskey-", least: 16}, prefix{text: "ya29.", least: 20}, prefix{text: "nvapi-", least: 20}, prefix{text: "r8_", least: 30},
	prefix{text: "hooks.slack.com/services/", least: 8}, prefix{text: "discord.com/api/webhooks/", least: 8},
)

// namedHashes are how hashes of passwords begin that say by which function they were made.
var namedHashes = []string{"pbkdf2_sha", "pbkdf2:sha", "SCRAM-SHA-", "bcrypt_sha256$", "scrypt:", "argon2$"}

func groupPrefixes(list ...prefix) (result [128][]prefix) {
	for _, p := range list {
		result[p.text[0]] = append(result[p.text[0]], p)
	}
	return result
}

// token finds a secret that begins where a word does, and shows by that what it is.
func (f *finder) token(i int) bool {
	text := f.text[i:]
	switch text[0] {
	case 'e':
		// A JSON web token begins with an object in base64, and what another has in it cannot be seen.
		if strings.HasPrefix(text, "eyJ") && tokenLength(text) >= 30 {
			f.add(i, i+wholeToken(text))
			return true
		}
	case 'L':
		if isEncodedKey(text) {
			f.add(i, i+wholeToken(text))
			return true
		}
	case 'P':
		if strings.HasPrefix(text, "PuTTY-User-Key-File-") {
			f.add(i, len(f.text))
			return true
		}
	case 'm':
		if rest, found := strings.CutPrefix(text, "md5"); found && hexLength(rest) == 32 && tokenLength(rest) == 32 {
			f.add(i, i+3+32)
			return true
		}
	}
	return f.prefixed(i) || f.header(i)
}

// prefixed finds a token or a hash by what it begins with.
func (f *finder) prefixed(i int) bool {
	text := f.text[i:]
	for _, name := range namedHashes {
		if !strings.HasPrefix(text, name) {
			continue
		}
		if hash := wordAt(text, 0, min(len(text), maxLook)); len(hash) >= len(name)+20 && strings.Contains(hash, "$") {
			f.add(i, f.wordEnd(i))
			return true
		}
	}
	for _, p := range prefixes[text[0]&0x7f] {
		if rest, found := strings.CutPrefix(text, p.text); found {
			token := rest[:tokenLength(rest)]
			if len(token) >= p.least && (!p.mixed || isMixed(token)) {
				f.add(i, i+len(p.text)+wholeToken(rest))
				return true
			}
		}
	}
	return false
}

// header finds the value of an Authorization header, which begins with its scheme.
func (f *finder) header(i int) bool {
	text := f.text[i:min(len(f.text), i+maxLook)]
	if c := text[0] | 0x20; c != 'b' {
		return false
	}
	scheme, _, found := strings.Cut(text[:min(len(text), 8)], " ")
	if !found {
		return false
	}
	rest := text[len(scheme)+1:]
	token := rest[:tokenLength(rest)]
	secret := false
	switch {
	case strings.EqualFold(scheme, "bearer"):
		secret = len(token) >= 20 || len(token) >= 8 && strings.ContainsAny(token, "0123456789")
	case strings.EqualFold(scheme, "basic"):
		decoded, err := base64.StdEncoding.DecodeString(token)
		secret = err == nil && strings.Contains(string(decoded), ":")
	}
	if secret {
		start := i + len(scheme) + 1
		f.add(start, start+wholeToken(f.text[start:]))
	}
	return secret
}

// privateKey finds a private key in PEM. One without an end goes on to the end of the text.
func (f *finder) privateKey(i int) {
	if !isPrivateKey(f.text[i:]) {
		if strings.HasPrefix(f.text[i:], "-----BEGIN ") {
			f.public(i)
		}
		return
	}
	end := len(f.text)
	if last := strings.Index(f.text[i:], "-----END"); last >= 0 {
		last += i + len("-----END")
		end = len(f.text)
		if dashes := strings.Index(f.text[last:min(len(f.text), last+80)], "-----"); dashes >= 0 {
			end = last + dashes + len("-----")
		}
	}
	f.add(i, end)
}

// public passes over the lines of what is in PEM and no secret, such as a certificate: they look drawn at random.
func (f *finder) public(i int) {
	const dashes = "-----"
	at := f.lineEnd(i) + 1
	if f.run > at {
		return // another one in the same line
	}
	for at < len(f.text) && !strings.HasPrefix(f.text[at:], dashes) {
		line, _, found := strings.Cut(f.text[at:min(len(f.text), at+maxLook)], "\n")
		end := at + len(line)
		if line = strings.TrimSpace(line); line == "" || strings.ContainsAny(line, " :,;\"'") || !found && end < len(f.text) {
			return
		}
		at = min(end+1, len(f.text))
		f.run = max(f.run, end)
	}
}

// isPrivateKey finds the head of a private key in PEM.
func isPrivateKey(text string) bool {
	label, found := strings.CutPrefix(text, "-----BEGIN ")
	if !found {
		return false
	}
	label, _, _ = strings.Cut(label[:min(len(label), 80)], "-----")
	return strings.Contains(label, "PRIVATE KEY")
}

// isEncodedKey finds a private key in PEM that is in base64.
func isEncodedKey(text string) bool {
	if !strings.HasPrefix(text, "LS0tLS1CRUdJTi") {
		return false
	}
	text = text[:min(len(text), 96)&^3]
	head, _ := base64.StdEncoding.DecodeString(text)
	return isPrivateKey(string(head))
}

// hashSchemes are what stands between the first two signs of the hash of a password in the form of crypt.
var hashSchemes = []string{
	"1", "2", "2a", "2b", "2x", "2y", "5", "6", "7", "y", "gy", "apr1", "md5", "sha1", "argon2i", "argon2d", "argon2id", "scrypt",
	"pbkdf2", "pbkdf2-sha1", "pbkdf2-sha256", "pbkdf2-sha512", "bcrypt-sha256",
}

// passwordHash finds the hash of a password: $2a$10$..., or {SSHA}...
func (f *finder) passwordHash(i int) {
	text := f.text[i:min(len(f.text), i+maxLook)]
	if text[0] == '{' {
		scheme, _, found := strings.Cut(text[1:min(len(text), 24)], "}")
		if found && isHashName(scheme) {
			hash := text[len(scheme)+2:]
			if n := tokenLength(hash); n >= 12 && hash[0] != '{' {
				f.add(i, i+len(scheme)+2+wholeToken(hash))
			}
		}
		return
	}
	scheme, _, found := strings.Cut(text[1:min(len(text), 20)], "$")
	if !found || !slices.Contains(hashSchemes, scheme) {
		return
	}
	hash := text[len(scheme)+2:]
	n := 0
	for n < len(hash) && (isTokenByte(hash[n]) || hash[n] == '$' || hash[n] == ',') {
		n++
	}
	if n >= 20 {
		for i+len(scheme)+2+n < len(f.text) && isTokenByte(f.text[i+len(scheme)+2+n]) {
			n++
		}
		f.add(i, i+len(scheme)+2+n)
	}
}

func isHashName(scheme string) bool {
	for _, name := range []string{"SSHA", "SHA", "SMD5", "MD5", "CRYPT", "PBKDF2", "BCRYPT", "ARGON2", "SCRAM"} {
		if strings.HasPrefix(scheme, name) {
			return true
		}
	}
	return false
}

// tokenLength is how many characters of a token a text begins with, at most maxLook.
func tokenLength(text string) int { return tokenWithin(text, maxLook) }

// wholeToken is how many there are, without a point at the end, which may be that of a sentence.
func wholeToken(text string) int {
	return len(strings.TrimRight(text[:tokenWithin(text, len(text))], "."))
}

func tokenWithin(text string, limit int) int {
	i := 0
	for i < len(text) && i < limit && isTokenByte(text[i]) {
		i++
	}
	return i
}

func isTokenByte(c byte) bool {
	return isLetter(c) || isDigit(c) || c == '_' || c == '-' || c == '+' || c == '/' || c == '.' || c == '~' || c == '='
}

func hexLength(text string) int {
	i := 0
	for i < len(text) && (isDigit(text[i]) || text[i] >= 'a' && text[i] <= 'f') {
		i++
	}
	return i
}

func isMixed(token string) bool {
	return strings.ContainsAny(token, "0123456789") && strings.ToLower(token) != token
}
