package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/testing/canary"
	"github.com/slipway-dev/slipway/internal/testing/lockedbuffer"
)

// Go's HTTP client logs what a server sends without being asked. A server knows the key's ID and the session token, and
// would have them written to the log of the pod.
func TestAServerCannotMakeTheProgramTellASecret(t *testing.T) {
	const token = "canary-session-token-41"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		connection, buffered, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer connection.Close()
		body := "<Error><Code>NoSuchKey</Code><Message>" + token + "</Message></Error>"
		fmt.Fprintf(buffered, "HTTP/1.1 404 Not Found\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		_ = buffered.Flush()
		// It has an end: now and then it comes in time to be the answer to the next request.
		fmt.Fprintf(buffered, "HTTP/1.1 200 OK\r\nX-Token: %s\r\nContent-Length: 0\r\n\r\n", token)
		_ = buffered.Flush()
		_, _ = connection.Read(make([]byte, 1)) // the next request has to take another connection
	}))
	defer server.Close()
	before := slog.Default()
	defer slog.SetDefault(before)
	var stray lockedbuffer.Buffer
	log.SetOutput(&stray)
	b := newBench(t)
	for name, value := range map[string]string{
		"accessKeyID": "canary-key-id-42", "secretAccessKey": "canary-key-43", "sessionToken": token, "endpoint": server.URL, "region": "us-east-1",
	} {
		b.write(t, "secret/"+name, value)
	}
	b.config.Repository.Filesystem = nil
	b.config.Repository.S3 = &mover.S3{Bucket: "bucket", CredentialsFolder: b.path("secret")}
	var said strings.Builder
	for n := 0; n < 50 && !strings.Contains(said.String()+stray.String(), "Unsolicited"); n++ {
		o := b.run(t, "list")
		said.WriteString(o.output)
		said.Write(o.raw)
	}
	all := said.String() + stray.String()
	if at := strings.Index(all, "canary"); at >= 0 {
		t.Errorf("a secret is in what was said: %s", all[max(0, at-200):min(len(all), at+30)])
	}
	if !strings.Contains(all, "Unsolicited") {
		t.Error("nothing was logged, so the test proves nothing")
	}
}

// A server knows the key's ID and the session token, and names of buckets and objects are words of whoever made them. Nothing secret of
// that is in what the program says of an error of S3, however the server writes it.
func TestAnErrorOfS3TellsNoSecret(t *testing.T) {
	const id, key, token = "canary-key-id-42", "canary/key+43&<x>'y", "canary-session-token-41"
	var repeated strings.Builder
	for _, secret := range []string{id, key, token} {
		raw, _ := json.Marshal(secret)
		for _, form := range []string{
			secret, url.QueryEscape(secret), url.PathEscape(secret), html.EscapeString(secret), string(raw), fmt.Sprintf("%q", secret),
			base64.StdEncoding.EncodeToString([]byte("AWS " + secret + ":x")), hex.EncodeToString([]byte(secret)),
		} {
			repeated.WriteString(" " + html.EscapeString(form))
		}
	}
	for _, form := range canary.Forms() {
		if !strings.ContainsAny(form.Text, "\n<>&") {
			repeated.WriteString("\n" + html.EscapeString(form.Text))
		}
	}
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, `<?xml version="1.0"?><Error><Code>NoSuchBucket</Code><Message>no such place%s</Message><Key>%s</Key><BucketName>token=%s</BucketName>`+
			`<AWSAccessKeyId>%s</AWSAccessKeyId><RequestId>%s</RequestId><Region>%s</Region></Error>`,
			repeated.String(), html.EscapeString(r.URL.Path), canary.Secret, id, r.Header.Get("X-Amz-Security-Token"), token)
	}))
	defer server.Close()
	b := newBench(t)
	for name, value := range map[string]string{
		"accessKeyID": id, "secretAccessKey": key, "sessionToken": token, "endpoint": server.URL, "region": "us-east-1",
	} {
		b.write(t, "secret/"+name, value)
	}
	b.config.Repository.Filesystem = nil
	b.config.Repository.S3 = &mover.S3{Bucket: "bucket", Prefix: "password=" + canary.Secret + "/", CredentialsFolder: b.path("secret")}
	o := b.run(t, "list")
	all := o.output + string(o.raw)
	if asked == 0 || !strings.Contains(all, "no such place") {
		t.Errorf("the server said nothing: %s", all)
	}
	for _, trace := range []string{"canary", "43&<x>'y", "key+43", "key%2B43", base64.StdEncoding.EncodeToString([]byte("canary"))[:7], hex.EncodeToString([]byte("canary")), canary.Secret, "swordfish"} {
		if at := strings.Index(all, trace); at >= 0 {
			t.Errorf("%q is in what was said: %s", trace, all[max(0, at-200):min(len(all), at+30)])
		}
	}
}
