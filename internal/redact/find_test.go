package redact

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"
)

func TestTextsWithSecrets(t *testing.T) {
	pem := "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\n-----END RSA PRIVATE KEY-----\n"
	for name, text := range map[string]string{
		"a private key":                     pem,
		"a private key after a certificate": "-----BEGIN CERTIFICATE-----\nMIID\n-----END CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\nMIIE",
		"a private key in a sentence":       "cannot parse '-----BEGIN OPENSSH PRIVATE KEY-----'",
		"a private key in base64":           base64.StdEncoding.EncodeToString([]byte(pem)),
		"a web token":                       "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl",
		"a web token in a message":          "request with Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln failed",
		"an object in base64":               "eyJwYXNzd29yZCI6Imh1bnRlcjIifQo=eyJw",
		"a URL with a password":             "postgres://app:hunter2@db:5432/app",
		"such a URL in a message":           "cannot connect to amqp://user:p%40ss@mq/vhost: refused",
		"a password with a slash":           "postgres://app:hunt/er2@db/app",
		"a password and a port":             "https://u:p@host:8080/x",
		"a password and no user":            "redis://:hunter2@redis:6379",
		"a MySQL address":                   "app:hunter2@tcp(db:3306)/app",
		"a token of GitHub":                 "ghp_0123456789abcdefghijABCDEFGHIJ456789",
		"a token in a list":                 "a,ghs_0123456789abcdefghijABCDEFGHIJ456789,b",
		"a token of GitLab":                 "glpat-0123456789abcdefghij",
		"a token of Slack":                  "xoxb-123456789012-abcdefghij",
		"a hook of Slack":                   "https://hooks.slack.com/services/T000/B000/XXXXXXXX",
		"a key of AWS":                      "AKIAIOSFODNN7EXAMPLE",
		"a key of OpenAI":                   "sk-proj-Abcdefghij0123456789",
		"a token of Vault":                  "hvs.CAESIJ0123456789abcdefghij",
		"a key of age":                      "AGE-SECRET-KEY-1QQQQQQQQQQQQQ",
		"an assignment":                     "host=db user=app password=hunter2",
		"an assignment with spaces":         "password = hunter2",
		"a flag":                            "--db-password=hunter2",
		"the query of a URL":                "https://host/path?x=1&access_token=abc",
		"a signed URL":                      "https://acct.blob.core.windows.net/c?sv=2020&sig=abc%3D",
		"a key of an account":               "DefaultEndpointsProtocol=https;AccountKey=abc==;",
		"JSON that is not complete":         `{"password":"hunter2"`,
		"JSON in JSON":                      `{\"password\":\"hunter2\"}`,
		"YAML":                              "user: app\npassword: hunter2\n",
		"YAML with two words":               "a: b\n  secret: two words\n",
		"YAML on the next line":             "password:\n  hunter2\n",
		"a YAML block":                      "password: |\n  hunter2\n",
		"a YAML list":                       "tokens:\n- abc\n",
		"a variable in YAML":                "env:\n- name: DB_PASSWORD\n  value: hunter2\n",
		"YAML in one line":                  "{user: app, password: hunter2}",
		"a header":                          "Authorization: Basic YXBwOmh1bnRlcjI=",
		"a header with a scheme only":       "use basic YXBwOmh1bnRlcjI= here",
		"a message":                         "login failed with password: hunter2",
		"a message with more":               "login (password: hunter2, user: app) failed",
		"no space":                          "password:hunter2",
		"a default of a variable":           "--password=${PASSWORD:-hunter2}",
		"a dollar":                          "--password=$hunter2",
		"a key of PuTTY":                    "PuTTY-User-Key-File-2: ssh-rsa",
	} {
		if !defaultNames.Holds(text) {
			t.Errorf("%s: %q looks innocent", name, text)
		}
	}
}

func TestTextsWithoutSecrets(t *testing.T) {
	for _, text := range []string{
		"", "Ready", "2026-11-20T10:00:00Z", "nginx:1.25", "ghcr.io/org/secret-manager:v1.2.3", "vault-secret:v1.19.0",
		"registry:5000/token-service@sha256:0123456789abcdef", "http://registry:5000/image@sha256:01", "https://example.com/a/b?page=2",
		"ssh://git@github.com/org/repo", "git@github.com:org/repo.git", `Secret "db" not found`, "cannot get token: connection refused",
		"secret default/db not found", "--token-ttl=5m", "--password=$(DB_PASSWORD)", "--password=${DB_PASSWORD}", "--use-token=true",
		"--tls-private-key-file=/etc/tls/tls.key", "passwordSecretRef: db", "secretName: db\n", "secret:\n  secretName: db\n",
		"-----BEGIN CERTIFICATE-----\nMIID\n-----END CERTIFICATE-----", "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUQ=",
		"sk-controller-manager-abcdefghij", "basic authentication", "bearer authentication failed", "pypi-mirror-in-the-datacenter",
		"kubectl.kubernetes.io/restartedAt", "a=b", "0.5", "system:serviceaccount:default:token-reader", "app.kubernetes.io/name=web",
		`{"password":""}`, "token:", "name: web\nvalue: x", HashMarker + "0123456789abcdef",
	} {
		if defaultNames.Holds(text) {
			t.Errorf("%q looks like a secret", text)
		}
	}
}

// Whoever writes a text cannot make it slow to judge: time grows with its length, and no faster.
func TestJudgingTakesTimeInProportion(t *testing.T) {
	for _, text := range []struct{ part, end string }{
		{"token x: ", ""},
		{"://", ""},
		{"://a:b", ""},
		{"=", ""},
		{"a=", ""},
		{"eyJ-", ""},
		{"eyJ ", ""},
		{"@tcp(", ""},
		{"name: token ", ""},
		{"token: \n", ""},
		{"{", ""},
		{"[", ""},
		{"bearer ", ""},
		{"password:\n\n", ""},
		{"<password>", ""},
		{"<password>", "</"},
		{"-----BEGIN ", ""},
		{"-----BEGIN \n", ""},
		{"-----BEGIN ", "\na b\n"},
		{"password:| ", ""},
		{"password: |\n", ""},
		{"name: token>", "</"},
		{"(curl,-u,a", ""},
		{"password\"\\", ""},
		{"password == ", ""},
		{"password[", "]="},
		{"password 'x ", ""},
		{"name: token -----BEGIN value: | ", ""},
		{"PASSWORD $a$", ""},
		{"password for ", "="},
		{"IDENTIFIED WITH a ", ""},
		{"IDENTIFIED BY ''", ""},
		{".auth('a',", ""},
		{".auth(''''',", ""},
		{"AUTH ,", ""},
		{"setuser \"a\",", ""},
		{"user a on ", ""},
		{"machine a login ", ""},
		{"a:1:b:", ""},
		{"password[0][0][0]", "="},
		{"<password><a>", ""},
		{"<password><name>", ""},
		{"<password><!--", ""},
		{"<key>password</key><a>", ""},
		{"<add key=\"password\" ", ""},
		{"&lt;password&gt;", ""},
		{"key: a\n", ""},
		{"{key: a, ", ""},
		{"'key': a,\n  ", ""},
		{"- --password\n", ""},
	} {
		small, large := judge(text.part, text.end, 1<<17), judge(text.part, text.end, 1<<20)
		if large > 24*small+time.Second {
			t.Errorf("%q: %v for 128 KiB, %v for 1 MiB", text.part, small, large)
		}
	}
}

func judge(part, end string, size int) time.Duration {
	text := strings.Repeat(part, size/len(part)) + end
	start := time.Now()
	defaultNames.Find(text)
	return time.Since(start)
}
