// Package custos is a client for Custos: the generated operations, and below them credentials, owner signatures,
// retries and errors.
package custos

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Options of a client. BaseURL, AppID, and AppSecret or UserToken are required.
type Options struct {
	BaseURL, AppID, AppSecret string
	// UserToken is the access token of a user, instead of the app secret.
	UserToken string
	// Prefix begins the names of service headers: `service` by default.
	Prefix string
	// Signers are the owners who sign.
	Signers []Signer
	// RequestExpiry is how long after its start a request counts; without limit by default. A retry may get a later
	// deadline.
	RequestExpiry time.Duration
	// Timeout of each attempt: 30 seconds by default.
	Timeout time.Duration
	// Retries is 3 by default; a negative number means none.
	Retries int
	// Transport sends the requests: http.DefaultTransport by default.
	Transport http.RoundTripper
	// The following can be replaced in tests.
	Now    func() time.Time
	Random func() float64
	NewKey func() string
	Sleep  func(context.Context, time.Duration) error
}

// Client has a method for every operation, such as CreateWalletWithResponse. Responses are those of success; every
// other one is an APIError.
type Client struct {
	*ClientWithResponses
	*caller
}

// New returns a client.
func New(options Options) (*Client, error) {
	base, err := url.Parse(options.BaseURL)
	if err != nil {
		return nil, err
	}
	options.Prefix = cmp.Or(options.Prefix, "service")
	options.Timeout = cmp.Or(options.Timeout, 30*time.Second)
	options.Retries = cmp.Or(options.Retries, 3)
	options.Transport = cmp.Or(options.Transport, http.DefaultTransport)
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Random == nil {
		options.Random = rand.Float64
	}
	if options.NewKey == nil {
		options.NewKey = uuid.NewString
	}
	if options.Sleep == nil {
		options.Sleep = sleep
	}
	mux := http.NewServeMux()
	for pattern := range operations {
		mux.Handle(pattern, http.NotFoundHandler())
	}
	// A redirect would need another signature.
	refuse := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	sender := &http.Client{Transport: options.Transport, CheckRedirect: refuse}
	caller := &caller{options: options, basePath: strings.TrimSuffix(base.Path, "/"), mux: mux, http: sender}
	api, err := NewClientWithResponses(options.BaseURL, WithHTTPClient(caller))
	return &Client{api, caller}, err
}

func sleep(ctx context.Context, wait time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(wait):
		return nil
	}
}

// APIError is an answer with a status other than success.
type APIError struct {
	Status    int            `json:"-"`
	RequestID string         `json:"-"`
	Header    http.Header    `json:"-"`
	Code      string         `json:"code"`
	Message   string         `json:"error"`
	Data      map[string]any `json:"data"`
}

// Error says all that a log needs: status, code, message, the hint of a sandbox, and the id of the request.
func (e *APIError) Error() string {
	text := strconv.Itoa(e.Status)
	if e.Code != "" {
		text += " " + e.Code
	}
	text += ": " + strings.TrimSuffix(e.Message, ".")
	if hint, isHinted := e.Data["hint"]; isHinted {
		text += fmt.Sprintf("; hint: %v", hint)
	}
	if e.RequestID != "" {
		text += " (request " + e.RequestID + ")"
	}
	return text
}

func apiErrorOf(response *http.Response, body []byte) *APIError {
	failure := &APIError{}
	if json.Unmarshal(body, failure) != nil || failure.Message == "" {
		_, text, _ := strings.Cut(response.Status, " ")
		failure = &APIError{Message: text}
	}
	failure.Status, failure.RequestID = response.StatusCode, response.Header.Get("x-request-id")
	failure.Header = response.Header
	return failure
}

// UnexpectedAnswerError is a status of success that is not from the API, such as a page of another server at a wrong
// base URL.
type UnexpectedAnswerError struct {
	Status           int
	ContentType, URL string
}

func (e *UnexpectedAnswerError) Error() string {
	return fmt.Sprintf("%d %s from %s is not an answer of the API; is the base URL right?", e.Status, e.ContentType, e.URL)
}

func checked(response *http.Response, url string, body []byte) (*http.Response, error) {
	contentType, _, _ := strings.Cut(response.Header.Get("content-type"), ";")
	isJSON := contentType == "application/json" && json.Valid(body)
	if response.StatusCode == http.StatusNoContent || contentType == "text/csv" || isJSON {
		return response, nil
	}
	return nil, &UnexpectedAnswerError{response.StatusCode, cmp.Or(contentType, "without a type"), url}
}

type callKey struct{}

// call has the options of one request.
type call struct {
	signers        []Signer
	idempotencyKey string
	expiry         time.Duration
}

func editor(change func(*call)) RequestEditorFn {
	return func(_ context.Context, request *http.Request) error {
		options, _ := request.Context().Value(callKey{}).(call)
		change(&options)
		*request = *request.WithContext(context.WithValue(request.Context(), callKey{}, options))
		return nil
	}
}

// SignedBy has these owners sign one request, instead of those of the client.
func SignedBy(signers ...Signer) RequestEditorFn {
	// Without signers, the request is not signed, even if the client has some.
	return editor(func(c *call) { c.signers = append([]Signer{}, signers...) })
}

// IdempotencyKey gives one request a key of your own, such as the number of an order.
func IdempotencyKey(key string) RequestEditorFn {
	return editor(func(c *call) { c.idempotencyKey = key })
}

// ExpiresIn limits how long one request counts.
func ExpiresIn(time time.Duration) RequestEditorFn { return editor(func(c *call) { c.expiry = time }) }

// All iterates over a list, page after page. `fetch` returns the items of a page and the cursor of the next.
func All[T any](fetch func(cursor *string) ([]T, *string, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var cursor *string
		for {
			items, next, err := fetch(cursor)
			if err != nil {
				var zero T
				yield(zero, err)
				return
			}
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
			}
			if next == nil {
				return
			}
			cursor = next
		}
	}
}

// IsTimeout tells that an attempt took longer than the limit.
func IsTimeout(err error) bool { return errors.Is(err, context.DeadlineExceeded) }
