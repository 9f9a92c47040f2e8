package change

import "strings"

// nameMeaning is what the name of a field, a label, a variable or a flag says about its value.
type nameMeaning uint8

const (
	// plainName says nothing.
	plainName nameMeaning = iota
	// referenceName says where a secret is, how long it lives or of which type it is: secretName, tokenSecretRef, tokenTTL.
	referenceName
	// fileName names a file with a secret in it. Only the path of a file is no secret.
	fileName
	// wordName is short, such as pass or auth. A text, number under it is a secret, and an object is looked into.
	wordName
	// aboutName has the name of a secret in it, but ends with something else: passwordMap, secretTemplate.
	aboutName
	// secretName is that of a secret.
	secretName
)

// hidesText tells whether a text or number of that name is a secret.
func (m nameMeaning) hidesText() bool { return m >= wordName }

// defaultWords are what names of secrets have in them, in lower case and without what separates words.
var defaultWords = newWords(
	"password", "passwd", "passphrase", "passcode", "secret", "token", "apikey", "accesskey", "privatekey", "signingkey",
	"encryptionkey", "decryptionkey", "sshkey", "masterkey", "sharedkey", "accountkey", "storagekey", "sessionkey", "clientkey",
	"credential", "connectionstring", "connstring", "authheader", "bearer", "kubeconfig", "htpasswd", "pgpass",
	"dockerconfigjson", "dockercfg", "cookie", "passwort",
)

// lastWords are secrets only as the last word of a name: they are part of too many others.
var lastWords = []string{"pass", "pwd", "pw", "psk", "otp", "jwt", "dsn", "pat", "auth", "basicauth", "authorization", "creds", "cred"}

// referenceEnds are the ends of names that have a word of a secret in them and name no secret.
var referenceEnds = []string{
	"ref", "refs", "reference", "references", "name", "names", "namespace", "namespaces", "selector", "selectors", "type", "types",
	"kind", "class", "version", "ttl", "seconds", "minutes", "hours", "duration", "timeout", "expiry", "expiration", "expiresat",
	"lifetime", "policy", "path", "audience", "audiences", "issuer", "length", "algorithm", "store", "provider",
}

var fileEnds = []string{"file", "files", "dir", "directory"}

// words finds names that have one of several words in them.
type words struct {
	list []string
	// second has for the first letter of a word a bit for each second letter. It rules out nearly every place of a name.
	second [36]uint64
}

func newWords(list ...string) *words {
	result := &words{}
	for _, word := range list {
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

func (w *words) in(name string) bool {
	var buffer [96]byte
	_, found := w.last(squash(buffer[:0], name))
	return found
}

// last finds the last word in a squashed name, and returns where it ends.
func (w *words) last(name []byte) (int, bool) {
	for i := len(name) - 2; i >= 0; i-- {
		if w.second[letter(name[i])]&(1<<letter(name[i+1])) == 0 {
			continue
		}
		for _, word := range w.list {
			if len(name)-i >= len(word) && string(name[i:i+len(word)]) == word {
				return i + len(word), true
			}
		}
	}
	return 0, false
}

// meaning judges a name. Of a qualified one, such as example.com/token, only what follows the slash counts.
func (w *words) meaning(name string) nameMeaning {
	name = name[strings.LastIndexByte(name, '/')+1:]
	var buffer [96]byte
	squashed := squash(buffer[:0], name)
	end, found := w.last(squashed)
	if !found {
		if endsWithWord(name) {
			return wordName
		}
		return plainName
	}
	rest := string(squashed[end:])
	switch {
	case rest == "" || rest == "s":
		return secretName
	case endsWith(rest, referenceEnds):
		return referenceName
	case endsWith(rest, fileEnds):
		return fileName
	}
	return aboutName
}

func endsWith(text string, ends []string) bool {
	for _, end := range ends {
		if strings.HasSuffix(text, end) {
			return true
		}
	}
	return false
}

// endsWithWord tells whether the last word of a name is one of lastWords. Words are told apart by case, or by what is no letter.
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

func isUpper(c byte) bool  { return c >= 'A' && c <= 'Z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLetter(c byte) bool { return isUpper(c) || c >= 'a' && c <= 'z' }

// innocentNames are what references to secrets consist of. Under the name of a secret their values stay.
var innocentNames = map[string]bool{
	"name": true, "namespace": true, "optional": true, "kind": true, "group": true, "apiGroup": true, "apiVersion": true,
	"version": true, "path": true, "audience": true, "expirationSeconds": true, "defaultMode": true, "mode": true, "uid": true,
	"valueFrom": true, "source": true, "type": true,
}

// referenceParts may stand in a reference, too, but with what could be a secret as well as the name of a key.
var referenceParts = map[string]bool{"key": true, "items": true}
