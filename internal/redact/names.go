package redact

import (
	"slices"
	"strings"
)

// Meaning is what the name of a field, a label, a variable or a flag says about its value.
type Meaning uint8

// The meanings, in the order of what they hide.
const (
	// Plain says nothing.
	Plain Meaning = iota
	// Reference says where a secret is, how long it lives or of which type it is: Secret, tokenSecretRef, tokenTTL.
	Reference
	// File names a file with a secret in it. Only the path of a file is no secret.
	File
	// Doubt names a secret as often as something else: key, sessionKey. A value that looks like one is a secret.
	Doubt
	// Word is short, such as pass or auth. A text or number under it is a secret, and an object is looked into.
	Word
	// About has the name of a secret in it, but ends with something else: passwordMap, secretTemplate.
	About
	// Secret is the name of a secret.
	Secret
)

// HidesText reports whether a text or number of that name is a secret.
func (m Meaning) HidesText() bool { return m >= Word }

// defaultWords are what names of secrets have in them, in lower case and without what separates words.
var defaultWords = []string{
	"password", "passwd", "passphrase", "passcode", "secret", "token", "apikey", "accesskey", "privatekey", "signingkey",
	"encryptionkey", "decryptionkey", "sshkey", "masterkey", "sharedkey", "accountkey", "storagekey", "sessionkey", "clientkey",
	"credential", "connectionstring", "connstring", "authheader", "bearer", "kubeconfig", "htpasswd", "pgpass",
	"dockerconfigjson", "dockercfg", "cookie", "passwort", "authkey", "hmackey", "aeskey", "cipherkey", "cryptkey", "licensekey",
	"licencekey", "deploykey", "presharedkey", "unsealkey", "recoverykey", "recoverycode", "seedphrase", "mnemonic", "storepass",
	"keypass", "jsessionid", "phpsessid", "requirepass", "masterauth", "jwtkey", "encryptkey", "decryptkey", "signkey", "cryptokey",
	"appkey", "wrappingkey", "derivationkey",
}

// lastWords are secrets only as the last word of a name: they are part of too many others.
var lastWords = []string{
	"pass", "pwd", "pw", "psk", "otp", "jwt", "dsn", "pat", "auth", "basicauth", "authorization", "creds", "cred", "pin", "salt", "private",
}

// referenceEnds are the ends of names that have a word of a secret in them and name no secret.
var referenceEnds = []string{
	"ref", "refs", "reference", "references", "name", "names", "namespace", "namespaces", "selector", "selectors", "type", "types",
	"kind", "class", "version", "ttl", "seconds", "minutes", "hours", "duration", "timeout", "expiry", "expiration", "expiresat",
	"lifetime", "policy", "format", "formats", "strategy", "path", "audience", "audiences", "issuer", "length", "algorithm", "store",
	"provider",
}

// referenceStarts are the ends of names that say which Secret of Kubernetes is meant.
var referenceStarts = []string{"fromsecret", "tlssecret", "casecret", "pullsecret"}

var fileEnds = []string{"file", "files", "dir", "directory"}

// innocentKeys are names that end with key and are no doubt: what is before the last word, in lower case.
var innocentKeys = map[string]bool{
	"public": true, "primary": true, "foreign": true, "sort": true, "partition": true, "topology": true, "label": true, "annotation": true,
	"object": true, "hash": true, "range": true, "index": true, "group": true, "map": true, "config": true, "hot": true, "match": true,
	"routing": true, "cache": true, "idempotency": true, "site": true, "row": true, "search": true, "lookup": true, "file": true,
	"tag":   true,
	"taint": true, "node": true, "field": true, "unique": true, "translation": true,
}

// Names judges names. It is safe for concurrent use.
type Names struct {
	list []string
	// second has for the first letter of a word a bit for each second letter. It rules out nearly every place of a name.
	second [36]uint64
}

// NewNames returns a judge that knows some words that names of secrets have in them, besides those that everybody uses. Case and
// separators do not matter. Words with less than two letters are left out.
func NewNames(words ...string) *Names {
	result := &Names{}
	for _, word := range slices.Concat(defaultWords, words) {
		word = string(squash(nil, word))
		if len(word) < 2 {
			continue
		}
		result.list = append(result.list, word)
		result.second[letter(word[0])] |= 1 << letter(word[1])
	}
	return result
}

// squash adds the letters and digits of a name in lower case.
func squash(to []byte, name string) []byte {
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			to = append(to, c)
		case c >= 'A' && c <= 'Z':
			to = append(to, c|0x20)
		}
	}
	return to
}

// letter numbers the letters and digits that squash leaves.
func letter(c byte) int {
	if c >= 'a' {
		return int(c - 'a')
	}
	return int(c-'0') + 26
}

// last finds the last word in a squashed name, and returns where it ends.
func (n *Names) last(name []byte) (int, bool) {
	for i := len(name) - 2; i >= 0; i-- {
		if n.second[letter(name[i])]&(1<<letter(name[i+1])) == 0 {
			continue
		}
		for _, word := range n.list {
			if len(name)-i >= len(word) && string(name[i:i+len(word)]) == word {
				return i + len(word), true
			}
		}
	}
	return 0, false
}

// HasWord reports whether a name has a word of the name of a secret in it, wherever that stands.
func HasWord(name string) bool {
	var buffer [96]byte
	_, found := defaultNames.last(squash(buffer[:0], name))
	return found
}

// Letters is how many letters and digits a word has.
func Letters(word string) int { return len(squash(nil, word)) }

// defaultNames are the names that everybody uses.
var defaultNames = NewNames()

// Meaning judges a name. Of a qualified one, such as example.com/token, only what follows the slash counts.
func (n *Names) Meaning(name string) Meaning {
	name = name[strings.LastIndexByte(name, '/')+1:]
	if numbered := strings.TrimRight(name, "0123456789"); numbered != name && isNumbered(numbered) {
		name = strings.TrimRight(numbered, "_.-")
	}
	var buffer [96]byte
	squashed := squash(buffer[:0], name)
	end, found := n.last(squashed)
	if !found {
		if endsWithWord(name) {
			return Word
		}
		if isDoubtful(name) {
			return Doubt
		}
		return Plain
	}
	rest := string(squashed[end:])
	switch {
	case (rest == "" || rest == "s") && endsWith(string(squashed[:end]), referenceStarts):
		return Reference
	case rest == "" || rest == "s":
		return Secret
	case endsWith(rest, referenceEnds):
		return Reference
	case endsWith(rest, fileEnds):
		return File
	}
	return About
}

// isNumbered reports whether a number may follow a name, which is not a part of it: pass1, password.1. Others are names of their own, such
// as auth0.
func isNumbered(name string) bool {
	return !endsWith(strings.ToLower(name), []string{"auth", "pin", "key", "oauth"}) || strings.TrimRight(name, "_.-") != name
}

func endsWith(text string, ends []string) bool {
	for _, end := range ends {
		if strings.HasSuffix(text, end) {
			return true
		}
	}
	return false
}

// endsWithWord reports whether the last word of a name is one of lastWords. Words are told apart by case, or by what is no letter.
func endsWithWord(name string) bool {
	for _, word := range lastWords {
		start := len(name) - len(word)
		if start < 0 || !strings.EqualFold(name[start:], word) {
			continue
		}
		if start == 0 || !isLetter(name[start-1]) || isUpper(name[start]) && !isUpper(name[start-1]) {
			return true
		}
	}
	return false
}

// isDoubtful reports whether the last word of a name is key, and the one before it does not say of what sort.
func isDoubtful(name string) bool {
	const word = "key"
	start := len(name) - len(word)
	if start < 0 || !strings.EqualFold(name[start:], word) {
		return false
	}
	if start == 0 {
		return true
	}
	if isLetter(name[start-1]) && (!isUpper(name[start]) || isUpper(name[start-1])) {
		return false
	}
	var buffer [96]byte
	before := squash(buffer[:0], name[max(0, start-80):start])
	for i := range before {
		if innocentKeys[string(before[i:])] {
			return false
		}
	}
	return true
}

func isUpper(c byte) bool  { return c >= 'A' && c <= 'Z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLetter(c byte) bool { return isUpper(c) || c >= 'a' && c <= 'z' }
