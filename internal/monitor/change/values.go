package change

import (
	"encoding/base64"
	"strings"
)

// A text is a secret if any part of it looks like one, wherever it stands: in a field, in a message, in the name of a member.
// All of it is then hidden: where a secret ends in a sentence is a guess.

// prefix is how tokens of a well-known service begin.
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
	prefix{text: "tskey-", least: 16}, prefix{text: "ya29.", least: 20},
	prefix{text: "hooks.slack.com/services/", least: 8}, prefix{text: "discord.com/api/webhooks/", least: 8},
)

func groupPrefixes(list ...prefix) (result [128][]prefix) {
	for _, p := range list {
		result[p.text[0]] = append(result[p.text[0]], p)
	}
	return result
}

// looksSecret tells whether a text has a secret in it.
func (w *words) looksSecret(text string) bool {
	inWord := false
	for i := range len(text) {
		c := text[i]
		switch {
		case isLetter(c) || isDigit(c):
			if !inWord && beginsSecret(text[i:]) {
				return true
			}
			inWord = true
			continue
		case c == ':':
			if strings.HasPrefix(text[i:], "://") {
				if urlHasPassword(text[i+3:]) {
					return true
				}
			} else if w.assigns(text, i) {
				return true
			}
		case c == '=' && w.assigns(text, i):
			return true
		case c == '-' && isPrivateKey(text[i:]):
			return true
		case c == '@' && strings.HasPrefix(text[i:], "@tcp(") && strings.IndexByte(text[max(0, i-maxLook):i], ':') >= 0:
			return true
		}
		inWord = false
	}
	return false
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

// beginsSecret tells whether a secret begins where a word does.
func beginsSecret(text string) bool {
	switch text[0] {
	case 'e':
		if isEncodedObject(text) {
			return true
		}
	case 'L':
		if isEncodedKey(text) {
			return true
		}
	case 'b', 'B':
		if isHeader(text) {
			return true
		}
	case 'P':
		if strings.HasPrefix(text, "PuTTY-User-Key-File-") {
			return true
		}
	}
	for _, p := range prefixes[text[0]] {
		if rest, found := strings.CutPrefix(text, p.text); found {
			token := rest[:tokenLength(rest)]
			if len(token) >= p.least && (!p.mixed || isMixed(token)) {
				return true
			}
		}
	}
	return false
}

// maxLook is how far a text is read from where a secret may begin, so that judging a text takes time in proportion to its length.
const maxLook = 256

// tokenLength is how many characters of a token a text begins with, at most maxLook.
func tokenLength(text string) int {
	i := 0
	for i < len(text) && i < maxLook && isTokenByte(text[i]) {
		i++
	}
	return i
}

func isTokenByte(c byte) bool {
	return isLetter(c) || isDigit(c) || c == '_' || c == '-' || c == '+' || c == '/' || c == '.' || c == '~' || c == '='
}

func isMixed(token string) bool {
	return strings.ContainsAny(token, "0123456789") && strings.ToLower(token) != token
}

// isEncodedObject finds a JSON object in base64. A JSON web token begins with one, and what another has in it cannot be seen.
func isEncodedObject(text string) bool {
	return strings.HasPrefix(text, "eyJ") && tokenLength(text) >= 30
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

// isHeader finds the value of an Authorization header.
func isHeader(text string) bool {
	scheme, rest, found := strings.Cut(text[:min(len(text), maxLook)], " ")
	if !found {
		return false
	}
	token := rest[:tokenLength(rest)]
	switch {
	case strings.EqualFold(scheme, "bearer"):
		return len(token) >= 20 || len(token) >= 8 && strings.ContainsAny(token, "0123456789")
	case strings.EqualFold(scheme, "basic"):
		decoded, err := base64.StdEncoding.DecodeString(token)
		return err == nil && strings.Contains(string(decoded), ":")
	}
	return false
}

// urlHasPassword looks for user:password@ after the two slashes of a URL. Who writes a password into a URL forgets to escape it,
// so a slash may be part of it. After a number it is not: that is the port.
func urlHasPassword(text string) bool {
	text = text[:min(len(text), 2*maxLook)]
	end := strings.IndexAny(text, " \t\r\n\"'<>,")
	if end >= 0 {
		text = text[:end]
	}
	colon := strings.IndexByte(text, ':')
	if colon < 0 {
		return false
	}
	host := strings.IndexAny(text, "/?#")
	if host >= 0 && host < colon {
		return false
	}
	at := strings.LastIndexByte(text, '@')
	if at <= colon+1 {
		return false
	}
	if host < 0 || at < host || strings.LastIndexByte(text[:host], '@') > colon+1 {
		return true
	}
	for i := colon + 1; i < host; i++ {
		if !isDigit(text[i]) {
			return true
		}
	}
	return host == colon+1
}
