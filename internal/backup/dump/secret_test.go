package dump

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Whatever a command repeats of its variables, in whatever form and cut in whatever way, is neither in what it says at its end nor in
// its log. What of a message is no secret stays.
func TestNoFormOfAVariableIsInWhatACommandSays(t *testing.T) {
	const canary = "CaNaRy7Zq-s3cret"
	lines := "first line of it\n" + canary + "\nlast\n"
	address := "postgres://app:" + canary + "@db/shop?sslmode=disable&key=" + canary + "2"
	for name, tc := range map[string]struct{ value, says string }{
		"a final line end":                {canary + "\n", "login with password " + canary + " refused"},
		"spaces around it":                {"  " + canary + " ", "login with " + canary + " refused"},
		"one line of several":             {lines, "cannot use " + canary + " for it"},
		"the password of a URL":           {address, "password authentication failed with " + canary},
		"a query of a URL":                {address, "refused " + canary + "2"},
		"a URL without its scheme":        {address, "cannot connect to app:" + canary + "@db"},
		"percent-encoded":                 {canary + "/&", "GET /?p=" + url.QueryEscape(canary+"/&")},
		"base64":                          {canary, "sent " + base64.StdEncoding.EncodeToString([]byte(canary))},
		"base64 after a user":             {canary, "sent x" + base64.StdEncoding.EncodeToString([]byte("app:"+canary))},
		"hexadecimal":                     {canary, "sent " + hex.EncodeToString([]byte(canary))},
		"in JSON":                         {canary + `"x`, `{"error":"` + canary + `\"x"}`},
		"in quotes of Go":                 {canary + "\t", fmt.Sprintf("bad value %q", canary+"\t")},
		"where what is kept begins":       {strings.Repeat(canary, 40), strings.Repeat(canary, 40) + strings.Repeat("x", 1800)},
		"a password that no variable has": {"unknown", "curl -u app:" + canary + " failed"},
		"a token that no variable has":    {"unknown", "refused token=" + canary},
		"a key that no variable has":      {"unknown", "-----BEGIN PRIVATE KEY-----\n" + canary + "\nAAAA\n-----END PRIVATE KEY-----"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			file := filepath.Join(t.TempDir(), "says")
			if err := os.WriteFile(file, []byte("begin\n"+tc.says+"\nthe end\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			c := sh("cat " + file + " >&2; exit 1")
			c.Environment, c.Errors = append(os.Environ(), "SECRET_VALUE="+tc.value), &log
			got := exchange(t, c)
			for where, text := range map[string]string{"message": got.err.Error(), "log": log.String()} {
				for _, form := range []string{canary, "aNaRy7Zq-s3", url.QueryEscape(canary + "/&"), hex.EncodeToString([]byte(canary))} {
					if strings.Contains(text, form) {
						t.Errorf("the %s has %q: %.300s", where, form, text)
					}
				}
				if strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(canary))[:16]) || !strings.Contains(text, "the end") {
					t.Errorf("the %s: %.300s", where, text)
				}
			}
		})
	}
}
