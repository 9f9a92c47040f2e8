package livecluster

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// NewHTTPClient opens a connection for every request: a kept one would stay with its
// pod and not notice what the Service does.
func NewHTTPClient() *http.Client {
	return &http.Client{
		Timeout:   2 * time.Second,
		Transport: &http.Transport{DisableKeepAlives: true},
	}
}

// Ask returns what an URL answers with status 200.
func Ask(ctx context.Context, client *http.Client, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("status %s", response.Status)
	}
	return string(body), nil
}

// Address is the URL of a port of a host.
func Address(host string, port int32) string {
	return "http://" + net.JoinHostPort(host, strconv.Itoa(int(port)))
}
