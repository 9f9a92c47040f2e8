// Package canary has texts in which a secret stands, in many forms. Tests plant them where words come from outside, and look for the
// secret where words go.
package canary

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"strings"
)

// Secret is what no output may have in it.
const Secret = "CaNaRy7Zq9xW2"

// word is a secret that looks like any other word, where what is before it says what it is.
const word = "swordfish"

// Form is a text with a secret in it.
type Form struct {
	Name string
	Text string
	// Traces are what no output may have in it, Secret among them where the text has it as it is.
	Traces []string
}

// names are those of secrets, and syntaxes how programs give something a value by its name.
var (
	names = []string{
		"key", "private", "pin", "JWT_KEY", "encrypt.key", "signing-key", "hmac_key", "encryption_key", "pass1", "PGPASSWORD", "MYSQL_PWD",
		"password.1", "DB_PASSWORD_2", "spring.datasource.password",
		"password", "DB_PASSWORD", "clientSecret", "client_secret", "api-key", "apiKey", "accessToken", "refresh_token", "privateKey",
		"AWS_SECRET_ACCESS_KEY", "connectionString", "smtpPass", "db_pwd", "jwt", "passphrase", "SESSION_COOKIE", "credentials", "salt",
		"userPin", "encryption-key",
	}
	syntaxes = map[string]string{
		"assigned": "failed: %s=%s", "in quotes": `cannot use %s = "%s" here`, "in JSON": `bad request: {"a":1,"%s":"%s","b":2}`,
		"in JSON in JSON": `bad request: "{\"a\":1,\"%s\":\"%s\"}"`, "in YAML": "a: b\n%s: %s\n", "a flag": "ran tool --%s=%s --verbose",
		"a query": "Get https://api.example.com/x?a=b&%s=%s: EOF", "an element": "<a><%[1]s>%[2]s</%[1]s></a>",
	}
)

// words are forms of languages and files of their own.
var words = map[string]string{
	"SQL with a plugin":             "ALTER USER 'a'@'%%' IDENTIFIED WITH mysql_native_password BY '%s'",
	"SQL with a hash":               "CREATE USER a IDENTIFIED WITH 'caching_sha2_password' AS '%s'",
	"SQL via a plugin":              `CREATE USER a IDENTIFIED VIA ed25519 USING PASSWORD("%s") OR unix_socket`,
	"SQL of Oracle":                 "CREATE USER app IDENTIFIED BY %s DEFAULT TABLESPACE users",
	"SQL of Oracle with values":     "ALTER USER app IDENTIFIED BY VALUES '%s'",
	"SQL in capitals of PostgreSQL": "create role app login encrypted password '%s' valid until 'infinity'",
	"SQL that sets":                 "SET PASSWORD FOR 'app'@'localhost' = '%s'",
	"SQL that sets a function":      "SET PASSWORD = PASSWORD('%s')",
	"SQL that sets for":             `SET PASSWORD FOR app = PASSWORD("%s");`,
	"SQL that replaces":             "ALTER USER a IDENTIFIED BY 'x' REPLACE '%s'",
	"SQL with a dollar quote":       "ALTER ROLE app PASSWORD $$%s$$",
	"SQL with an escape":            "ALTER ROLE app PASSWORD E'%s'",
	"SQL in JSON":                   `{"query":"ALTER ROLE app PASSWORD \"%s\""}`,
	"SQL of a mapping":              "CREATE USER MAPPING FOR app SERVER s OPTIONS (user 'a', password '%s')",
	"SQL of a mapping that adds":    "ALTER USER MAPPING FOR app SERVER s OPTIONS (SET password '%s')",
	"SQL of a subscription":         "CREATE SUBSCRIPTION s CONNECTION 'host=db user=app password=%s' PUBLICATION p",
	"SQL of MSSQL":                  "CREATE LOGIN app WITH PASSWORD = N'%s', CHECK_POLICY = OFF",
	"SQL of MSSQL with an old one":  "ALTER LOGIN app WITH PASSWORD='a' OLD_PASSWORD = N'%s'",
	"SQL of a key":                  "CREATE MASTER KEY ENCRYPTION BY PASSWORD = '%s'",
	"SQL of a credential":           "CREATE CREDENTIAL c WITH IDENTITY = 'a', SECRET = '%s'",
	"SQL of a replica":              "CHANGE MASTER TO MASTER_USER='a', MASTER_PASSWORD='%s'",
	"SQL of a source":               "CHANGE REPLICATION SOURCE TO SOURCE_HOST='h', SOURCE_PASSWORD = '%s'",
	"SQL of pgcrypto":               "SELECT pgp_sym_encrypt('text', '%s')",
	"SQL of ClickHouse":             "CREATE USER a IDENTIFIED WITH sha256_password BY '%s'",
	"SQL of Snowflake":              "create user a password='%s' must_change_password = true",
	"Redis with a user":             "AUTH default %s",
	"Redis":                         "ERR in command: AUTH %s",
	"Redis and more":                "HELLO 3 AUTH default %s SETNAME x",
	"Redis in a list":               `["AUTH","default","%s"]`,
	"Redis that sets":               "CONFIG SET requirepass %s",
	"Redis that sets another":       `config set masterauth "%s"`,
	"Redis that adds a user":        "ACL SETUSER app on >%s ~* +@all",
	"Redis that adds a hash":        "ACL SETUSER app on #%s0123456789abcdef ~* +@all",
	"Redis that removes one":        "ACL SETUSER app <%s",
	"Redis of a file":               "user app on >%s ~* +@all",
	"Redis that moves":              "MIGRATE h 6379 k 0 5000 AUTH2 default %s KEYS a",
	"MongoDB":                       `db.createUser({user: "app", pwd: "%s", roles: []})`,
	"MongoDB that changes":          `db.changeUserPassword("app", "%s")`,
	"MongoDB that updates":          `db.updateUser("app",{"pwd":"%s"})`,
	"MongoDB that logs in":          `db.auth("app", "%s")`,
	"XML that is nested":            "<password><value>%s</value></password>",
	"XML that is nested in lines":   "<db>\n  <password>\n    <value type='plain'>%s</value>\n  </password>\n</db>",
	"XML of Spring":                 `<property name="password"><value>%s</value></property>`,
	"XML of Spring in one":          `<property name="dbPassword" value="%s"/>`,
	"XML with an attribute":         `<password value="%s"/>`,
	"XML with more attributes":      `<password encrypted='false' value='%s'></password>`,
	"XML with an add":               `<add key="password" value="%s"/>`,
	"XML with an add reversed":      `<add value="%s" key="password"/>`,
	"XML with CDATA":                "<app:password><value><![CDATA[%s]]></value></app:password>",
	"XML with a namespace":          `<x:add x:key="password" x:value="%s"/>`,
	"XML with capitals":             "<Password><String>%s</String></Password>",
	"XML of a plist":                "<key>password</key>\n<string>%s</string>",
	"XML of an array":               "<passwords><string>first</string><string>%s</string></passwords>",
	"XML that is escaped":           "&lt;password&gt;%s&lt;/password&gt;",
	"XML with a comment":            "<password><!-- of it -->%s</password>",
	"an item":                       "passwords[0]=%s",
	"an item of YAML":               "password.1: %s\n",
	"an item in brackets":           `cfg["passwords"][0] = "%s"`,
	"an item of a map":              `auth[password][]=%s`,
	"a line of pgpass":              "db.example.com:5432:shop:app:%s",
	"a line of pgpass for all":      "*:*:*:app:%s\n",
	"netrc":                         "machine api.example.com login app password %s",
	"netrc in lines":                "machine api.example.com\n  login app\n  password %s\n",
	"netrc in order":                "machine h password %s login app",
	"netrc of default":              "default login anonymous password %s",
	"htpasswd":                      "app:{SHA}%s0123456789=",
	"htpasswd in plain":             "cannot parse line 1 of htpasswd: app:%s",
	"JDBC":                          "jdbc:sqlserver://db:1433;databaseName=a;user=app;password=%s;encrypt=true",
	"JDBC of Oracle":                "jdbc:oracle:thin:app/%s@//db:1521/x",
	"JDBC with a query":             "jdbc:mysql://db/shop?user=app&password=%s",
	"ODBC":                          "Driver={x};Server=db;Uid=app;Pwd=%s;",
	"ODBC in brackets":              "Driver={x};Uid=app;Pwd={%s;1};Server=db",
	"a DSN of MySQL":                "app:%s@tcp(db:3306)/shop?parseTime=true",
	"a DSN of a socket":             "app:%s@unix(/run/mysqld.sock)/shop",
	"a DSN without an address":      "app:%s@/shop",
	"the key of a bus":              "Endpoint=sb://a.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=%s=",
	"the key of a store":            "AccountName=a;AccountKey=%s==;EndpointSuffix=core.windows.net",
	"a login of LDAP":               "bindpw %s",
	"a secret of RADIUS":            "client 10.0.0.1 { secret = %s }",
	"a community":                   "snmpget -v2c -c %s host",
	"a file of rclone":              "[remote]\ntype = s3\nsecret_access_key = %s\n",
	"a file of credentials":         "[default]\naws_access_key_id = a\naws_secret_access_key = %s\n",
	"git":                           "https://oauth2:%s@gitlab.com/a/b.git",
	"git credentials":               "protocol=https\nhost=x\nusername=a\npassword=%s\n",
	"npmrc":                         "//registry.npmjs.org/:_authToken=%s",
	"pip":                           "index-url = https://app:%s@pypi.example.com/simple",
	"a list of a command in YAML":   "args:\n- --password\n- %s\n- --verbose\n",
}

// others are forms that need no name, or one of their own.
var others = map[string]string{
	"the password of a URL":        "dial postgres://app:%s@db.shop.svc:5432/app: refused",
	"such a URL in quotes":         `Get "https://user:%s@example.com/path?x=1": EOF`,
	"a password without a user":    "redis://:%s@redis:6379/0",
	"a password with a slash":      "amqp://app:ab/%s@mq/vhost",
	"an address of MySQL":          "app:%s@tcp(db:3306)/app",
	"a login without a scheme":     "cannot reach app:%s@db.example.com:5432",
	"curl -u":                      "curl -sf -u app:%s https://example.com",
	"curl --user":                  "exec: curl --user 'app:%s' https://example.com: exit status 22",
	"curl -H":                      "curl -H 'Authorization: Bearer %s' https://example.com",
	"curl -H of another name":      `curl -H "X-Api-Key: %s" https://example.com`,
	"curl -b":                      "curl -b sid=%s https://example.com",
	"mysql -p":                     "mysql -uroot -p%s shop",
	"mysqldump in a list":          `["mysqldump","-uroot","-p%s","shop"]`,
	"mysql in a path":              "/usr/bin/mysqladmin -p'%s' ping",
	"psql":                         "PGPASSWORD=%s psql -h db -U app",
	"MYSQL_PWD":                    "env MYSQL_PWD=%s mysqldump shop",
	"mongosh":                      "mongosh -u root -p %s shop",
	"redis-cli":                    "redis-cli -a %s ping",
	"sshpass":                      "sshpass -p %s ssh app@host",
	"docker login":                 "docker login -u app -p %s registry.example.com",
	"ldapsearch":                   "ldapsearch -x -D cn=admin -w %s",
	"openssl":                      "openssl rsa -passin pass:%s -in key.pem",
	"a flag and a word":            "tool --password %s --verbose",
	"a flag and a word in quotes":  `tool --token "%s" --verbose`,
	"a flag in a list":             `args: ["--api-key", "%s"]`,
	"chpasswd":                     "echo root:%s | chpasswd",
	"SQL":                          "CREATE USER app IDENTIFIED BY '%s';",
	"SQL of PostgreSQL":            "ALTER ROLE app WITH LOGIN PASSWORD '%s'",
	"a sentence":                   "login with password %s refused",
	"a sentence with quotes":       `the password "%s" is wrong`,
	"a sentence with a colon":      "login failed with password: %s",
	"a header":                     "Authorization: Basic %s",
	"another scheme":               "Authorization: Token token=%s",
	"a cookie":                     "Cookie: a=b; sid=%s",
	"a cookie that is set":         "Set-Cookie: session=%s; HttpOnly",
	"a bearer":                     "sent bearer %s to the server",
	"CDATA":                        "<password><![CDATA[%s]]></password>",
	"an element with a namespace":  "<wsse:Password Type=\"text\">%s</wsse:Password>",
	"an attribute":                 `<user name="app" password="%s"/>`,
	"a key and a value":            `<add key="DbPassword" value="%s"/>`,
	"an entry":                     `<entry key="db.password">%s</entry>`,
	"a variable in YAML":           "env:\n- name: DB_PASSWORD\n  value: %s\n",
	"a variable in JSON":           `[{"name":"TOKEN","value":"%s"}]`,
	"a block of YAML":              "password: |\n  first\n  %s\nuser: app\n",
	"a list of YAML":               "tokens:\n- first\n- %s\nuser: app\n",
	"properties":                   "db.user=app\ndb.password=%s\n",
	"INI":                          "[db]\nuser = app\npassword = %s\n",
	"a connection string":          "Server=db;User Id=app;Password=%s;Encrypt=true",
	"a DSN":                        "host=db user=app password='%s' sslmode=disable",
	"the key of an account":        "DefaultEndpointsProtocol=https;AccountKey=%s==;EndpointSuffix=core.windows.net",
	"a signed URL":                 "https://acct.blob.core.windows.net/c?sv=2020&sig=%s%%3D",
	"a private key":                "-----BEGIN RSA PRIVATE KEY-----\nMIIE%s\n-----END RSA PRIVATE KEY-----\n",
	"a private key in one line":    `bad key "-----BEGIN EC PRIVATE KEY-----\nMHcC%s\n-----END EC PRIVATE KEY-----"`,
	"a private key without an end": "cannot parse -----BEGIN OPENSSH PRIVATE KEY----- b3Blbn%s",
	"a PGP key":                    "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQ%s\n-----END PGP PRIVATE KEY BLOCK-----",
	"a web token":                  "invalid token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0%[1]s.%[1]s",
	"a token of GitHub":            "remote: ghp_%s0123456789abcdefghijkl, denied",
	"a token of GitLab":            "glpat-%s0123456",
	"a token of Slack":             "xoxb-123456789012-%s",
	"a hook of Slack":              "post https://hooks.slack.com/services/T000/B000/%s: 403",
	"a key of Stripe":              "sk_live_%s0123",
	"a key of OpenAI":              "sk-proj-%sAbcdefgh",
	"a token of Vault":             "hvs.%s0123456789ab",
	"a token of npm":               "npm_%s0123456789abcdefghijk",
	"a token of Docker":            "dckr_pat_%s01234567",
	"a key of Google":              "AIza%s0123456789abcdefghij",
	"a key of age":                 "AGE-SECRET-KEY-1%s",
	"a hash of bcrypt":             "stored $2a$10$N9qo8uLOickgx2ZMRZo%sAgcfl7p92ldGxad68L for app",
	"a hash of crypt":              "root:$6$saltsalt$%s0123456789abcdefghijklmnopqrstuvwxyz:19000:0:99999:7:::",
	"a hash of Argon2":             "$argon2id$v=19$m=65536,t=3,p=4$c29tZXNhbHQ$%s0123456789",
	"a hash of LDAP":               "{SSHA}%s0123456789abcdef",
	"a hash of SCRAM":              "SCRAM-SHA-256$4096:c2FsdA==$%s:c2VydmVy",
	"something drawn":              "cannot use Kx9%sQp4Lm8Zt1Rv6 for it",
	"a secret key of AWS":          "found wJalrXUtnFEMI/%sKEYbPxRfiCYE7d in it",
	"an answer of S3": "The request signature we calculated does not match: <StringToSign>AWS4-HMAC-SHA256 " +
		"Signature=%s</StringToSign>",
	"a refusal of an admission": `admission webhook "x.example.com" denied the request: env DB_PASSWORD="%s" is not allowed`,
	"a refusal of a schema":     `Pod "web" is invalid: spec.containers[0].env[0]: Invalid value: {"name":"DB_PASSWORD","value":"%s"}`,
	"an answer of a registry":   "failed to authorize: GET https://registry.example.com/token?account=app&password=%s: 401 Unauthorized",
	"a panic":                   `panic: config{User:"app", Password:"%s"}`,
	"a struct in a log":         "connect {User:app Password:%s Port:5432}: refused",
	"logfmt":                    `level=error msg="login failed" user=app password=%s`,
}

// Forms are texts with a secret in them, whatever is known of it.
func Forms() []Form {
	var forms []Form
	add := func(name, text string, traces ...string) {
		forms = append(forms, Form{Name: name, Text: text, Traces: append(traces, Secret)})
	}
	for syntax, format := range syntaxes {
		for _, name := range names {
			add(name+" "+syntax, fmt.Sprintf(format, name, Secret))
			add(name+" "+syntax+" with a word", fmt.Sprintf(format, name, word), word)
		}
	}
	for name, format := range words {
		add(name, fmt.Sprintf(format, Secret))
		add(name+" with a word", fmt.Sprintf(format, word), word)
	}
	for name, format := range others {
		add(name, fmt.Sprintf(format, Secret))
	}
	cloudInit := "#cloud-config\nusers:\n- name: app\npassword: " + Secret + "\n" + strings.Repeat("# a comment of it\n", 5)
	for name, text := range map[string]string{
		"cloud-init": cloudInit, "a URL": "postgres://app:" + Secret + "@db:5432/app",
		"a login": `{"auths":{"r":{"password":"` + Secret + `"}}}`,
	} {
		encoded := base64.StdEncoding.EncodeToString([]byte(text))
		add(name+" in base64", "userData: "+encoded, encoded[len(encoded)/3:len(encoded)/2])
		add(name+" in raw base64", "userData: "+base64.RawURLEncoding.EncodeToString([]byte(text)), encoded[len(encoded)/3:len(encoded)/2])
		twice := base64.StdEncoding.EncodeToString([]byte(encoded))
		add(name+" in base64 twice", "data "+twice, twice[len(twice)/3:len(twice)/2])
	}
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	_, _ = writer.Write([]byte(cloudInit))
	_ = writer.Close()
	encoded := base64.StdEncoding.EncodeToString(packed.Bytes())
	add("cloud-init that is packed", encoded, encoded[len(encoded)/3:len(encoded)/2])
	return forms
}

// In returns the first trace of a form that a text has.
func (f Form) In(text string) (trace string, found bool) {
	for _, trace := range f.Traces {
		if strings.Contains(text, trace) {
			return trace, true
		}
	}
	return "", false
}
