// Package webhook gives the operator's admission webhooks certificates that nobody has to
// look after. Each operator makes its own, in memory, and adds it to those that the
// ValidatingWebhookConfiguration trusts: no key leaves the process, nothing is stored, and
// nothing else has to be installed. A certificate is replaced long before it ends; the
// next one is trusted first and used then.
//
//	certificate.go  the certificate of the webhooks, and its successor
//	trust.go        having the API server trust it
//	share.go        a turn for every namespace
package webhook
