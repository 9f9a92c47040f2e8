package change

import (
	"strings"
	"testing"
)

func TestMeaningOfNames(t *testing.T) {
	for want, names := range map[nameMeaning][]string{
		secretName: {
			"password", "Password", "PASSWORD", "dbPassword", "DB_PASSWORD", "db-password", "db.password", "passwd", "secret", "secrets",
			"clientSecret", "client_secret", "token", "accessToken", "ACCESS_TOKEN", "bearer_token", "apiKey", "api_key", "API-KEY", "apikeys",
			"privateKey", "private-key", "PRIVATE_KEY", "credentials", "connectionString", "example.com/api-token", "ssh_key", "tokens",
			"secretAccessKey", "AWS_SECRET_ACCESS_KEY", "htpasswd", "kubeconfig", ".dockerconfigjson", "secretRefPassword", "pass\u200bword",
		},
		referenceName: {
			"secretName", "secret_name", "SECRET_NAME", "secretRef", "secretKeyRef", "tokenSecretRef", "passwordSecretRef",
			"credentialsRefs", "secretNamespace", "tokenTTL", "tokenType", "secretStore", "passwordPolicy", "privateKeyPath",
			"tokenExpirationSeconds", "secretSelector", "existingSecretName", "secretReferences",
		},
		fileName:  {"passwordFile", "DB_PASSWORD_FILE", "tls-private-key-file", "tokenDir"},
		aboutName: {"passwordMap", "secretTemplate", "maxTokensPerUser", "passwordHash", "accessKeyId", "tokenData"},
		wordName:  {"pass", "dbPass", "DB_PASS", "smtp-pwd", "auth", "basicAuth", "jwt", "Authorization", "proxy_authorization", "creds"},
		plainName: {
			"", "name", "image", "replicas", "bypass", "compass", "path", "author", "authority", "key", "monkey", "value", "secrets.example.com/managed",
			"status", "conditions", "passive", "DBPASSED", "patch", "---", "tok", "é",
		},
	} {
		for _, name := range names {
			if got := defaultWords.meaning(name); got != want {
				t.Errorf("%q means %d, want %d", name, got, want)
			}
		}
	}
	long := strings.Repeat("x-", 5000) + "Password"
	if got := defaultWords.meaning(long); got != secretName {
		t.Errorf("a long name means %d", got)
	}
}

func TestWordsOfOptions(t *testing.T) {
	w := newWords("Licence-Code")
	for name, want := range map[string]nameMeaning{"licenceCode": secretName, "LICENCE_CODES": secretName, "licenceCodeRef": referenceName, "licence": plainName} {
		if got := w.meaning(name); got != want {
			t.Errorf("%q means %d, want %d", name, got, want)
		}
	}
}
