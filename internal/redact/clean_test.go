package redact

import (
	"encoding/base64"
	"strings"
	"testing"
)

// Of a message only the secret goes.
func TestCleanLeavesTheRest(t *testing.T) {
	for text, want := range map[string]string{
		"": "",
		"cannot connect to postgres://app:hunter2@db:5432/app: refused":            "cannot connect to postgres://app:(secret)@db:5432/app: refused",
		`Get "https://bob:pa%3Ass@host/x?token=abcdef&page=2": EOF`:                `Get "https://bob:(secret)@host/x?token=(secret)&page=2": EOF`,
		"login (password: hunter2, user: app) failed":                              "login (password: (secret), user: app) failed",
		"host=db user=app password=hunter2 sslmode=disable":                        "host=db user=app password=(secret) sslmode=disable",
		`{"user":"app","password":"hun\"ter2","port":5432}`:                        `{"user":"app","password":"(secret)","port":5432}`,
		`log: "{\"password\":\"hunter2\",\"a\":1}"`:                                `log: "{\"password\":\"(secret)\",\"a\":1}"`,
		"Authorization: Bearer abc.def-ghi was sent":                               "Authorization: (secret)",
		"sent Bearer abcdef0123456789 to it":                                       "sent Bearer (secret) to it",
		"curl -u a:pw https://example.com":                                         "curl -u a:(secret) https://example.com",
		"mysql -uroot -phunter2 shop":                                              "mysql -uroot -p(secret) shop",
		"ran [mysqldump --password hunter2 shop]: exit status 2":                   "ran [mysqldump --password (secret) shop]: exit status 2",
		"PGPASSWORD=hunter2 psql -h db":                                            "PGPASSWORD=(secret) psql -h db",
		"<user>app</user><password>hunter2</password>":                             "<user>app</user><password>(secret)</password>",
		`<add key="DbPassword" value="hunter2" />`:                                 `<add key="DbPassword" value="(secret)" />`,
		"x -----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY----- y": "x (secret) y",
		"user:\n  name: app\n  password: hunter2 or 3\n  shell: /bin/sh\n":         "user:\n  name: app\n  password: (secret)\n  shell: /bin/sh\n",
		"password: |\n  hunter2\n  more\nuser: x\n":                                "password: |\n  (secret)\nuser: x\n",
		"rejected ghp_0123456789abcdefghijABCDEFGHIJ456789, sorry":                 "rejected (secret), sorry",
		"ALTER USER app WITH PASSWORD 'hunter2';":                                  "ALTER USER app WITH PASSWORD '(secret)';",
		"login with password hunter2 refused":                                      "login with password (secret) refused",
		"echo root:hunter2 | chpasswd":                                             "echo root:(secret) | chpasswd",
		"$2a$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy.":            "(secret)",
		"key wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY of AWS":                      "key (secret) of AWS",
		"password := hunter2":                                                      "password := (secret)", `if password == "hunter2" {`: `if password == "(secret)" {`,
		"password => \"hunter2\",\nuser => app": "password => \"(secret)\",\nuser => app", `password != "x1"`: `password != "(secret)"`,
		`password += "x1"`: `password += "(secret)"`, "password ?= hunter2": "password ?= (secret)", `password ||= 'x1'`: `password ||= '(secret)'`,
		"password=>hunter2": "password=>(secret)", "password === 'hunter2'": "password === '(secret)'", `:password => "x1"`: `:password => "(secret)"`,
		"if password == \"\" {": "", "if token != nil {": "",
		// Statements of databases, and what only looks like one.
		"SET PASSWORD FOR 'a'@'h' = 'it''s x', b": "SET PASSWORD FOR 'a'@'h' = '(secret)', b", "PASSWORD E'a\\'b' x": "PASSWORD E'(secret)' x",
		"IDENTIFIED WITH a BY 'x1' REPLACE 'y1' x": "IDENTIFIED WITH a BY '(secret)' REPLACE '(secret)' x", "pw='it'\\''s x' b": "pw='(secret)' b",
		"PASSWORD $q$a'b$q$ x": "PASSWORD $q$(secret)$q$ x", "db.auth(\"a\", \"b\") x": "db.auth(\"a\", \"(secret)\") x", "AUTH u p1": "AUTH (secret)",
		"identified by the operator": "", "AUTH failed": "", "AUTH command without a password": "", "auth default x": "", "user a is on it": "",
		"default login page": "", "machine a is login": "", "10:20:30 12:30:40": "", "00:11:22:33:44:55": "", "file.go:12:5: a:b": "", "main.go:1:a:b:c:d": "",
		"ACL SETUSER a on >x1 ~*": "ACL SETUSER a on >(secret) ~*", "machine h login a password x y": "machine h login a password (secret) y",
		"h:5432:d:u:x y": "h:5432:d:u:(secret) y", "sent to a@/b": "", "npm install foo@/x": "",
		// What documents say.
		"- name: a-token\n  b: <no value>\n  seconds: 43200": "",
		"Auth configures how it works.":                      "", "set `automountToken: true`, then": "", "see <private key of it>.<key of x> and </b>": "", "/a/<credentials-file>.x": "",
		"inject-ca-from-secret: \"a/b-ca\"": "", "--secrets-format=compact": "", "imagePullSecret: registry": "", "secretChangeStrategy: Watch": "",
		// All of a value goes.
		"PASSWORD=a'bcdef1": "PASSWORD=(secret)", "password=a<bcdef1": "password=(secret)", "password=a\"bc\"d user=app": "password=(secret) user=app",
		"'--password=a1' b": "'--password=(secret)' b", `["--password=a1","b"]`: `["--password=(secret)","b"]`,
		"DB_PASS=123456": "DB_PASS=(secret)", "pass=1234": "pass=(secret)", "password=&hunter2": "password=(secret)",
		"tls_pass: &a hunter2": "tls_pass: (secret)", "db.user = app\ndb.password = correct horse battery\nx = y": "db.user = app\ndb.password = (secret)\nx = y",
		"password: ***hunter2": "password: (secret)", "password=(secret)hunter2": "password=(secret)", "password=(secret))hunter2": "password=(secret)",
		"password: &default\n": "", "x?password=&user=app": "", "password=*****": "", "(password=(secret)), user": "", "tokens=10, apiKeys: 5": "",
		"password: redacted:hmac:0123456789abcdef, user": "", "password=redacted:hmac:0123456789abcdef&a=b": "",
		"(token: ***)": "", "user=a password=***; b": "",
		"bad password: hunter2 refused": "bad password: (secret) refused", "curl -sSu a:pw http://x": "curl -sSu a:(secret) http://x",
		"requirepass hunter2": "requirepass (secret)", "masterauth hunter2": "masterauth (secret)",
		"cannot fetch token: oauth2: refused": "", "no secret: web-5d8f7 is gone": "",
		"user[password]=hunter2": "user[password]=(secret)", "cfg['password'] = 'x1'": "cfg['password'] = '(secret)'",
		"user%5Bpass%5D=x1&a=b": "user%5Bpass%5D=(secret)&a=b", "a[x] = b": "",
		// No secrets: what a message of Kubernetes tells stays.
		`Secret "db" not found`: "",
		// Nor does one of our own that names a key and the field.
		`Secret "db" has no key "PASSWORD" (spec.envFrom[0].secretRef)`:                                                              "",
		`no PASSWORD (spec.env["DB_PASSWORD"].secretKeyRef)`:                                                                         "",
		`secrets "db-credentials" is forbidden: User "system:serviceaccount:a:b" cannot get resource "secrets" in API group ""`:      "",
		`admission webhook "x.example.com" denied the request: spec.containers[0].env: Invalid value`:                                "",
		`spec.tls.secretName: Required value`:                                                                                        "",
		"spec.password: Required value":                                                                                              "",
		`Back-off pulling image "ghcr.io/org/token-service@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"`: "",
		`pod "web-5d8f7c9b6d-x2x4q" container "app" ended with exit code 1: panic: open /etc/secrets/Token1: no such file`:           "",
		"the key password of Secret db is missing":                                                                                   "",
		"commit 2f5c1d0e9b8a7f6e5d4c3b2a1908f7e6d5c4b3a2 by A":                                                                       "",
		"failed to verify certificate: x509: certificate signed by unknown authority":                                                "",
		"the flag --token is deprecated":                                                                                             "",
		"token: invalid character 'x' looking for beginning of value":                                                                "",
		`exceeded quota: a, requested: secrets=1, used: secrets=10, limited: secrets=10`:                                             "",
		"HorizontalPodAutoscaler is a long CamelCaseNameOfSomethingInKubernetesV1Beta1":                                              "",
		"0a1b2c3d-0000-4000-8000-000000000001":                                                                                       "",
	} {
		if want == "" {
			want = text
		}
		got := Clean(text)
		if got != want {
			t.Errorf("%q\n is %q\nwant %q", text, got, want)
		}
		if again := Clean(got); again != got {
			t.Errorf("%q is %q the second time", got, again)
		}
	}
}

// A name without a value hides nothing of the next line, unless that is indented as in YAML, or begins with a quote.
func TestANameWithoutAValueHidesNoOtherLine(t *testing.T) {
	for text, want := range map[string]string{
		"PASSWORD=\nthe end": "", "PASSWORD==\nthe end": "", "PASSWORD = \nend\n": "", "password:\nrefused\n": "", "token: \r\nrefused": "",
		"use --token\nthe1 end": "", "bad password\nthe1 end": "", "curl -u\na:b1": "", "TOKEN:=\nthe end": "", "a:\n  token:\n  other: x": "",
		"$DB_PASSWORD: refused": "", "PASSWORD=\n  the end": "", "<x password=\n the end": "",
		"password:\n  x1": "password:\n  (secret)", "tokens:\n- x1": "tokens:\n- (secret)", "\"password\":\n\"x1\"": "\"password\":\n\"(secret)\"",
		"password =\n  'x1'": "password =\n  '(secret)'", "PASSWORD=\\\nx1": "PASSWORD=\\\n(secret)", "run --token \\\n  x1": "run --token \\\n  (secret)",
		"[\"--token\",\n  \"x1\"]": "[\"--token\",\n  \"(secret)\"]",
	} {
		if want == "" {
			want = text
		}
		if got := Clean(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

// What is called key may name something, and what is beside it or above says so. Else it is a secret, whatever it looks like.
func TestCleanKnowsKeysThatName(t *testing.T) {
	for text, secret := range map[string]bool{
		"key: swordfish\n": true, "a:\n  key: swordfish\n  b: c\n": true, `{"key":"swordfish","b":1}`: true, "[x]\nkey = swordfish\n": true,
		"https://x.example.com/a?b=c&key=swordfish": true, "tool --key swordfish1": false, "<a><key>swordfish</key></a>": true,
		"- key: swordfish\n- key: swordfish\n": true, "{a: 1, key: swordfish}": true, "KEY=swordfish": true,
		"secretKeyRef:\n  key: swordfish\n": false, "secretKeyRef:\n  name: a\n  key: swordfish\n": false, "- key: swordfish\n  operator: Exists\n": false,
		"matchExpressions:\n- {key: swordfish, operator: In, values: [a]}\n": false, `"configMapKeyRef":{"key":"swordfish","name":"a"}`: false,
		"items:\n- key: swordfish\n  path: a\n": false, "remoteRef:\n  key: swordfish\n": false, `"secretKeyRef": {"key": "swordfish"}`: false,
		"{\n  \"items\": [\n    {\n      \"key\": \"swordfish\",\n      \"path\": \"a\"\n    }\n  ]\n}": false,
		"tolerations:\n- effect: NoSchedule\n  key: swordfish\n":                                        false, "key: example.com/swordfish\n": false, "unknown key: swordfish": false,
		`[{"Key":"swordfish","Value":"a"}]`: false, `<add key="swordfish" value="a"/>`: false, "tag {\n  key = \"swordfish\"\n  value = \"a\"\n}": false,
		"<Error><Code>NoSuchKey</Code><Key>swordfish</Key></Error>": false, "<key>swordfish</key><string>a</string>": false, "no such key: swordfish": false,
		"name: key\nkind: swordfish\n": false,
	} {
		if hidden := !strings.Contains(Clean(text), "swordfish"); hidden != secret {
			t.Errorf("%q: hidden is %t: %q", text, hidden, Clean(text))
		}
	}
}

// A secret of which a part was decoded, packed or broken into lines.
func TestCleanLooksIntoBase64(t *testing.T) {
	config := "#cloud-config\nusers:\n- name: app\nchpasswd:\n  list: |\n    root:hunter2\npassword: hunter2\n"
	encoded := base64.StdEncoding.EncodeToString([]byte(config))
	twice := base64.StdEncoding.EncodeToString([]byte("data: " + encoded))
	for name, text := range map[string]string{
		"once": "userData: " + encoded, "twice": twice, "in lines": "x: |\n  " + encoded[:64] + "\n  " + encoded[64:] + "\n",
		"of a user": base64.URLEncoding.EncodeToString([]byte("postgres://app:hunter2@db/app")),
	} {
		if got := Clean(text); strings.Contains(got, encoded[80:]) || !strings.Contains(got, Marker) {
			t.Errorf("%s: %s", name, got)
		}
	}
	innocent := base64.StdEncoding.EncodeToString([]byte("-----BEGIN CERTIFICATE-----\n" + strings.Repeat("MIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQGEwJJ\n", 9) + "-----END CERTIFICATE-----\n"))
	if got := Clean(innocent); got != innocent {
		t.Errorf("a certificate: %s", got)
	}
}
