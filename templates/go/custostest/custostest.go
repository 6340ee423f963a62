// Package custostest starts a sandbox for tests in Go.
//
// CUSTOS_COMMAND is how Custos is started here, by default `npx custos`. Under `npx custos exec -- go test ./...`, the
// tests use the sandbox of that command.
package custostest

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	startTimeout = time.Minute
	callTimeout  = time.Minute
	stopTimeout  = 10 * time.Second
)

// Sandbox is a running sandbox. Point your own client to BaseURL, with AppID, AppSecret and the Client.
type Sandbox struct {
	BaseURL   string `json:"base_url"`
	AppID     string `json:"app_id"`
	AppSecret string `json:"app_secret"`
	CAFile    string `json:"ca_file"`
	PID       int    `json:"pid"`
	// Client trusts the sandbox.
	Client *http.Client `json:"-"`
}

// Refused is an error response. Its hint says what was wrong with the request.
type Refused struct {
	Status int
	Code   string `json:"code"`
	Text   string `json:"error"`
	Data   struct {
		Hint string `json:"hint"`
	} `json:"data"`
}

func (refused *Refused) Error() string {
	return fmt.Sprintf("%d %s: %s (%s)", refused.Status, refused.Code, refused.Text, refused.Data.Hint)
}

// Start starts a sandbox, and stops it when the test ends. Call it in each test, or once in a parent test.
func Start(t testing.TB) *Sandbox {
	t.Helper()
	sandbox := &Sandbox{
		BaseURL:   os.Getenv("CUSTOS_BASE_URL"),
		AppID:     os.Getenv("CUSTOS_APP_ID"),
		AppSecret: os.Getenv("CUSTOS_APP_SECRET"),
		CAFile:    os.Getenv("CUSTOS_CA_FILE"),
	}
	if sandbox.BaseURL == "" {
		sandbox = run(t)
	}
	authority, err := os.ReadFile(sandbox.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	sandbox.Client = &http.Client{
		Timeout:   callTimeout,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}},
	}
	t.Cleanup(sandbox.Client.CloseIdleConnections)
	return sandbox
}

func run(t testing.TB) *Sandbox {
	t.Helper()
	readyFile := filepath.Join(t.TempDir(), "ready.json")
	words := strings.Fields(os.Getenv("CUSTOS_COMMAND"))
	if len(words) == 0 {
		words = []string{"npx", "custos"}
	}
	words = append(words, "sandbox", "--port", "0", "--seed", "test", "--seed-data", "--quiet", "--ready-file", readyFile)
	command := exec.Command(words[0], words[1:]...)
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		t.Fatalf("%s did not start: %v", words[0], err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	sandbox := &Sandbox{PID: command.Process.Pid}
	t.Cleanup(func() {
		// npx starts another process, which is the sandbox.
		process, err := os.FindProcess(sandbox.PID)
		if err == nil && process.Signal(syscall.SIGTERM) != nil {
			// Windows has no such signal.
			_ = process.Kill()
		}
		select {
		case <-ended:
		case <-time.After(stopTimeout):
			if err == nil {
				_ = process.Kill()
			}
			_ = command.Process.Kill()
			<-ended
			t.Logf("%s did not end within %s, and was killed", words[0], stopTimeout)
		}
	})
	for until := time.Now().Add(startTimeout); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		text, err := os.ReadFile(readyFile)
		if err == nil {
			if err := json.Unmarshal(text, sandbox); err != nil {
				t.Fatal(err)
			}
			return sandbox
		}
		if !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("%s ended before it was ready: %v", strings.Join(words, " "), err)
		default:
		}
	}
	t.Fatalf("%s was not ready within %s", strings.Join(words, " "), startTimeout)
	return nil
}

// Call calls the API as the app, and reads the response into result, which may be nil. An error response is a *Refused.
func (sandbox *Sandbox) Call(method, path string, body, result any) error {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequest(method, sandbox.BaseURL+path, content)
	if err != nil {
		return err
	}
	request.SetBasicAuth(sandbox.AppID, sandbox.AppSecret)
	request.Header.Set("service-app-id", sandbox.AppID)
	request.Header.Set("content-type", "application/json")
	response, err := sandbox.Client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= 400 {
		refused := &Refused{Status: response.StatusCode}
		if err := json.Unmarshal(text, refused); err != nil {
			return err
		}
		return refused
	}
	if result == nil || len(text) == 0 {
		return nil
	}
	return json.Unmarshal(text, result)
}

// Reset returns to the state after the start.
func (sandbox *Sandbox) Reset() error {
	return sandbox.Call(http.MethodPost, "/_sandbox/reset", nil, nil)
}

// Advance moves the clock. What is due by then has run when this returns.
func (sandbox *Sandbox) Advance(duration time.Duration) error {
	return sandbox.Call(http.MethodPut, "/_sandbox/clock", map[string]int64{"advance_ms": duration.Milliseconds()}, nil)
}
