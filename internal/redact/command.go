package redact

import "strings"

// program is what is a secret on the command line of a program.
type program struct {
	// logins are flags with user:password, and secrets those with a secret, in the next word.
	logins, secrets []string
	// attached is a flag with a secret that follows it without a space.
	attached string
}

var (
	curl   = &program{logins: []string{"-u", "--user", "-U", "--proxy-user"}, secrets: []string{"-b"}}
	mysql  = &program{attached: "-p"}
	dash   = &program{secrets: []string{"-p"}, attached: "-p"}
	login  = &program{secrets: []string{"-p"}}
	redis  = &program{secrets: []string{"-a"}}
	oracle = &program{}
)

// programs are those with secrets on their command lines that flags of other programs with the same name have not.
var programs = map[string]*program{
	"curl": curl, "http": {logins: []string{"-a"}}, "https": {logins: []string{"-a"}}, "xh": {logins: []string{"-a"}},
	"mysql": mysql, "mysqldump": mysql, "mysqladmin": mysql, "mysqlimport": mysql, "mysqlcheck": mysql, "mariadb": mysql,
	"mariadb-dump": mysql, "mariadb-admin": mysql, "xtrabackup": mysql, "mariabackup": mysql,
	"mongo": dash, "mongosh": dash, "mongodump": dash, "mongorestore": dash, "mongoexport": dash, "mongoimport": dash, "sshpass": dash,
	"docker": login, "podman": login, "nerdctl": login, "oras": login, "crane": login, "buildah": login, "az": login, "cf": login,
	"skopeo": {logins: []string{"--creds", "--src-creds", "--dest-creds"}}, "helm": login,
	"redis-cli": redis, "valkey-cli": redis, "keydb-cli": redis,
	"ldapsearch": {secrets: []string{"-w"}}, "ldapmodify": {secrets: []string{"-w"}}, "ldapadd": {secrets: []string{"-w"}},
	"ldapwhoami": {secrets: []string{"-w"}}, "ldapdelete": {secrets: []string{"-w"}}, "ipmitool": {secrets: []string{"-P"}},
	"unzip": {secrets: []string{"-P"}}, "zip": {secrets: []string{"-P"}}, "7z": mysql, "sqlcmd": {secrets: []string{"-P"}, attached: "-P"},
	"openssl": {secrets: []string{"-passin", "-passout", "-pass", "-k"}}, "smbclient": {logins: []string{"-U"}},
	"cqlsh":             {secrets: []string{"-p"}},
	"clickhouse-client": {}, "kinit": {}, "wget": {}, "psql": {}, "vault": {}, "snmpget": {secrets: []string{"-A", "-X", "-c"}},
	"snmpwalk": {secrets: []string{"-A", "-X", "-c"}}, "sqlplus": oracle, "expdp": oracle, "impdp": oracle,
}

// maxCommand is how far from the name of a program its flags are.
const maxCommand = 4096

// programName notes the program of a command line.
func (f *finder) programName(i int) {
	if i > 0 && strings.IndexByte(" \t\n\"'`/;|&(=,[", f.text[i-1]) < 0 {
		return
	}
	end := i
	for end < len(f.text) && end-i < 24 && (isLetter(f.text[end]) || isDigit(f.text[end]) || f.text[end] == '-' || f.text[end] == '_') {
		end++
	}
	if end < len(f.text) && strings.IndexByte(" \t\"',\n\\", f.text[end]) < 0 {
		return
	}
	name := f.text[i:end]
	if name == "chpasswd" {
		f.piped(i)
		return
	}
	if p := programs[name]; p != nil {
		f.command, f.commandSince = p, i
	}
}

// piped finds user:password in what goes into chpasswd.
func (f *finder) piped(i int) {
	line := f.text[max(f.until, i-maxLook):i]
	line = line[strings.LastIndexByte(line, '\n')+1:]
	pipe := strings.LastIndexByte(line, '|')
	if pipe < 0 {
		return
	}
	colon := strings.IndexByte(line[:pipe], ':')
	if secret := strings.TrimRight(line[colon+1:pipe], " \t\"'"); colon >= 0 && !isInnocentValue(secret) {
		start := i - len(line) + colon + 1
		f.add(start, start+len(secret))
	}
}

// flag finds a secret in the word after a flag, or behind it.
func (f *finder) flag(i int) {
	if i > 0 && strings.IndexByte(" \t\r\n\"'`[,(", f.text[i-1]) < 0 {
		return
	}
	end := i
	for end < len(f.text) && end-i < 128 && (f.text[end] == '-' || isKeyByte(f.text[end]) && f.text[end] != '/') {
		end++
	}
	if end-i < 2 || end == len(f.text) {
		f.attached(i)
		return
	}
	name := f.text[i:end]
	start, ok := f.nextWord(end)
	known := f.command != nil && i-f.commandSince < maxCommand
	switch {
	case !ok:
	case known && (isOneOf(f.command.logins, name) || f.command == curl && isFlags(name, 'u')):
		f.loginWord(start)
		return
	case known && isOneOf(f.command.secrets, name), f.names.Meaning(strings.TrimLeft(name, "-")).HidesText() && len(name) > 3:
		f.secretWord(start)
		return
	}
	f.attached(i)
}

// attached finds a secret that follows its flag without a space.
func (f *finder) attached(i int) {
	if f.command == nil || f.command.attached == "" || i-f.commandSince >= maxCommand {
		return
	}
	start := i + len(f.command.attached)
	if !strings.HasPrefix(f.text[i:], f.command.attached) || start >= len(f.text) || f.text[start] <= ' ' {
		return
	}
	for start < len(f.text) && (f.text[start] == '"' || f.text[start] == '\'') {
		start++
	}
	word := wordAt(f.text, start, min(len(f.text), start+maxLook))
	if word == "" || isInnocentValue(word) || word[0] == ',' {
		return
	}
	f.add(start, f.wordEnd(start))
}

// isFlags reports whether a word is several flags of one letter, of which the last has a value.
func isFlags(name string, last byte) bool {
	return len(name) > 2 && name[1] != '-' && name[len(name)-1] == last && strings.Trim(name[1:], "fgikLnsSv") == string(last)
}

func isOneOf(list []string, name string) bool {
	for _, one := range list {
		if one == name {
			return true
		}
	}
	return false
}

// nextWord is where the word after a flag begins: after spaces, or quotes and a comma as in a list. One in the next line follows only
// after a backslash or a comma.
func (f *finder) nextWord(at int) (int, bool) {
	start := at
	for start < len(f.text) && start-at < 16 && strings.IndexByte(" \t\r\n\"'`,\\", f.text[start]) >= 0 {
		if f.text[start] == '\n' && !strings.ContainsAny(f.text[at:start], ",\\") {
			return f.nextItem(at, start+1)
		}
		start++
	}
	return start, start > at && start < len(f.text) && f.text[start] != '-' && f.text[start] != '<' && f.text[start] != '['
}

// nextItem is where the next item of a list of YAML begins, if a flag before it is one, too.
func (f *finder) nextItem(flag, line int) (int, bool) {
	before := f.text[max(0, flag-maxLook):flag]
	before = strings.TrimLeft(before[strings.LastIndexByte(before, '\n')+1:], " \t")
	at := line + indentOf(f.text, line)
	if !strings.HasPrefix(before, "- ") || !strings.HasPrefix(f.text[at:], "- ") {
		return line, false
	}
	for at += len("- "); at < len(f.text) && (f.text[at] == ' ' || f.text[at] == '"' || f.text[at] == '\''); {
		at++
	}
	return at, at < len(f.text) && f.text[at] > ' ' && f.text[at] != '-'
}

// wordEnd is where a word on a command line ends. One in quotes goes on to the closing one.
func (f *finder) wordEnd(start int) int {
	if start > 0 && (f.text[start-1] == '"' || f.text[start-1] == '\'') {
		return f.quoteEnd(value{start: start, quote: f.text[start-1], escaped: start > 1 && f.text[start-2] == '\\'})
	}
	end := start
	for end < len(f.text) && f.text[end] > ' ' && strings.IndexByte("\"'`", f.text[end]) < 0 {
		end++
	}
	return end
}

// secretWord finds a secret in the word after a flag. In a sentence about a flag, an ordinary word follows it.
func (f *finder) secretWord(start int) {
	word := wordAt(f.text, start, min(len(f.text), start+maxLook))
	if isInnocentValue(word) || ordinary[strings.ToLower(strings.Trim(word, "\"'.,:;()"))] {
		return
	}
	f.add(start, f.wordEnd(start))
}

// loginWord finds the password in user:password.
func (f *finder) loginWord(start int) {
	separator := strings.IndexAny(f.text[start:min(len(f.text), start+maxLook)], ":%")
	if separator < 0 {
		return
	}
	word := f.text[start:f.wordEnd(start)]
	if separator+1 >= len(word) || isInnocentValue(word[separator+1:]) {
		return
	}
	f.add(start+separator+1, start+len(word))
}

// ordinary are words that follow the name of a secret in sentences.
var ordinary = listed(`a an and are as at be been before but by can cannot could did do does each else exists expired fails failed flag for from
	get given had has have if in instead into invalid is it its length list may missing must name names needed no nor not of off on once only
	option or out over path per reset rotated same set should since so some such than that the their them then there this to together too
	under unless until use used uses using valid value was were what when where whether which while will with without wrong you your
	argument arguments authentication file files flags matches mismatch policy provided required require requires string type`)

func listed(words string) map[string]bool {
	result := map[string]bool{}
	for word := range strings.FieldsSeq(words) {
		result[word] = true
	}
	return result
}

// Made reports whether a word has letters and digits in it, and is no version, number, path or address. It is for a value that is more
// likely a secret than not: Opaque asks for more.
func Made(word string) bool {
	c := classesOf(strings.Trim(word, "\"'.,:;()"))
	return c.digits > 0 && c.lower+c.upper > 0 && !isVersion(word) && !isQuantity(word) && !strings.ContainsAny(word, "/{}<>@")
}

// spoken finds a password that a sentence tells after the word for one: password 'x', or one that looks like none of its words.
func (f *finder) spoken(end int) {
	start, ok := f.nextWord(end)
	if !ok || strings.Contains(f.text[end:start], ",") {
		return
	}
	word := wordAt(f.text, start, min(len(f.text), start+maxLook))
	if isInnocentValue(word) || strings.IndexByte(":=,", word[0]) >= 0 {
		return
	}
	if q := f.text[start-1]; (q == '"' || q == '\'') && strings.ContainsAny(f.text[end:start], " \t") || Made(word) {
		f.add(start, f.wordEnd(start))
	}
}
