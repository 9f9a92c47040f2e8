package redact

import (
	"strings"
	"testing"
)

func TestMeaningOfNames(t *testing.T) {
	for want, names := range map[Meaning][]string{
		Secret: {
			"password", "Password", "PASSWORD", "dbPassword", "DB_PASSWORD", "db-password", "db.password", "passwd", "secret", "secrets",
			"clientSecret", "client_secret", "token", "accessToken", "ACCESS_TOKEN", "bearer_token", "apiKey", "api_key", "API-KEY", "apikeys",
			"privateKey", "private-key", "PRIVATE_KEY", "credentials", "connectionString", "example.com/api-token", "ssh_key", "tokens",
			"secretAccessKey", "AWS_SECRET_ACCESS_KEY", "htpasswd", "kubeconfig", ".dockerconfigjson", "secretRefPassword", "pass\u200bword",
		},
		Reference: {
			"secretName", "secret_name", "SECRET_NAME", "secretRef", "secretKeyRef", "tokenSecretRef", "passwordSecretRef",
			"credentialsRefs", "secretNamespace", "tokenTTL", "tokenType", "secretStore", "passwordPolicy", "privateKeyPath",
			"tokenExpirationSeconds", "secretSelector", "existingSecretName", "secretReferences",
		},
		File:  {"passwordFile", "DB_PASSWORD_FILE", "tls-private-key-file", "tokenDir"},
		About: {"passwordMap", "secretTemplate", "maxTokensPerUser", "passwordHash", "accessKeyId", "tokenData"},
		Word:  {"pass", "dbPass", "DB_PASS", "smtp-pwd", "auth", "basicAuth", "jwt", "Authorization", "proxy_authorization", "creds", "pin", "userPin", "SIM_PIN", "salt", "passSalt", "private"},
		Doubt: {"key", "KEY", "sessKey", "my-key", "my_key", "tls.key", "userKey"},
		Plain: {
			"", "name", "image", "replicas", "bypass", "compass", "path", "author", "authority", "monkey", "publicKey", "primaryKey", "sort-key", "keyRef", "keyName", "topologyKey", "nodePublicKey", "ping", "basalt", "spin", "value", "secrets.example.com/managed",
			"status", "conditions", "passive", "DBPASSED", "patch", "---", "tok", "é",
		},
	} {
		for _, name := range names {
			if got := defaultNames.Meaning(name); got != want {
				t.Errorf("%q means %d, want %d", name, got, want)
			}
		}
	}
	long := strings.Repeat("x-", 5000) + "Password"
	if got := defaultNames.Meaning(long); got != Secret {
		t.Errorf("a long name means %d", got)
	}
}

func TestWordsOfOptions(t *testing.T) {
	w := NewNames("Licence-Code")
	for name, want := range map[string]Meaning{"licenceCode": Secret, "LICENCE_CODES": Secret, "licenceCodeRef": Reference, "licence": Plain} {
		if got := w.Meaning(name); got != want {
			t.Errorf("%q means %d, want %d", name, got, want)
		}
	}
}
