// Package custos is a client for Custos: the generated operations, and below them credentials, owner signatures,
// retries and errors.
package custos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
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
	// RequestExpiry is how long a request counts; without limit by default.
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
	setDefault(&options.Prefix, "service")
	setDefault(&options.Timeout, 30*time.Second)
	setDefault(&options.Retries, 3)
	setDefault(&options.Transport, http.DefaultTransport)
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

func setDefault[T comparable](option *T, value T) {
	var zero T
	if *option == zero {
		*option = value
	}
}

func sleep(ctx context.Context, wait time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(wait):
		return nil
	}
}

// APIError is an answer with a status of 400 or more.
type APIError struct {
	Status    int            `json:"-"`
	RequestID string         `json:"-"`
	Code      string         `json:"code"`
	Message   string         `json:"error"`
	Data      map[string]any `json:"data"`
}

func (e *APIError) Error() string {
	return fmt.Sprintf("%d %s: %s (request %s)", e.Status, e.Code, e.Message, e.RequestID)
}

func apiErrorOf(response *http.Response, body []byte) *APIError {
	failure := &APIError{}
	if json.Unmarshal(body, failure) != nil || failure.Message == "" {
		failure = &APIError{Message: http.StatusText(response.StatusCode)}
	}
	failure.Status, failure.RequestID = response.StatusCode, response.Header.Get("x-request-id")
	return failure
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
	return editor(func(c *call) { c.signers = signers })
}

// IdempotencyKey gives one request a key of your own, such as the number of an order.
func IdempotencyKey(key string) RequestEditorFn {
	return editor(func(c *call) { c.idempotencyKey = key })
}

// ExpiresIn limits how long one request counts.
func ExpiresIn(time time.Duration) RequestEditorFn { return editor(func(c *call) { c.expiry = time }) }

// caller is what the generated code sends its requests with.
type caller struct {
	options  Options
	basePath string
	mux      *http.ServeMux
	http     *http.Client
	skew     atomic.Int64
}

// accepts tells which service headers the operation lists. It refuses others.
func (c *caller) accepts(request *http.Request) []string {
	path := strings.TrimPrefix(request.URL.Path, c.basePath)
	_, pattern := c.mux.Handler(&http.Request{Method: request.Method, URL: &url.URL{Path: path}})
	return operations[pattern]
}

// prepare adds the service headers and signatures. It returns the payload that was signed.
func (c *caller) prepare(request *http.Request, body []byte) ([]byte, error) {
	options, accepted := c.options, c.accepts(request)
	one, _ := request.Context().Value(callKey{}).(call)
	if one.signers == nil {
		one.signers = options.Signers
	}
	setDefault(&one.expiry, options.RequestExpiry)
	if options.UserToken != "" {
		request.Header.Set("authorization", "Bearer "+options.UserToken)
	} else {
		request.SetBasicAuth(options.AppID, options.AppSecret)
	}
	signed := map[string]string{options.Prefix + "-app-id": options.AppID}
	if slices.Contains(accepted, "idempotency-key") {
		if one.idempotencyKey == "" {
			one.idempotencyKey = options.NewKey()
		}
		signed[options.Prefix+"-idempotency-key"] = one.idempotencyKey
	}
	if slices.Contains(accepted, "request-expiry") && one.expiry > 0 {
		deadline := options.Now().UnixMilli() + c.skew.Load() + one.expiry.Milliseconds()
		signed[options.Prefix+"-request-expiry"] = strconv.FormatInt(deadline, 10)
	}
	for name, value := range signed {
		request.Header.Set(name, value)
	}
	if !slices.Contains(accepted, "authorization-signature") || len(one.signers) == 0 {
		return nil, nil
	}
	payload, err := SignedPayload(request.Method, request.URL.String(), body, signed)
	if err != nil {
		return nil, err
	}
	var signatures []string
	for _, sign := range one.signers {
		signature, err := sign(payload)
		if err != nil {
			return nil, err
		}
		signatures = append(signatures, signature)
	}
	request.Header.Set(options.Prefix+"-authorization-signature", strings.Join(signatures, ","))
	return payload, nil
}

// Prepare adds the service headers and signatures of a request that you send yourself. It returns the payload that was
// signed.
func (c *caller) Prepare(request *http.Request) ([]byte, error) {
	body, err := bodyOf(request)
	if err != nil {
		return nil, err
	}
	return c.prepare(request, body)
}

// bodyOf reads the body and leaves another reader of it.
func bodyOf(request *http.Request) ([]byte, error) {
	if request.Body == nil {
		return nil, nil
	}
	body, err := io.ReadAll(request.Body)
	request.Body = io.NopCloser(bytes.NewReader(body))
	return body, err
}

// Do sends a request until there is an answer. The generated code calls it.
func (c *caller) Do(request *http.Request) (*http.Response, error) {
	body, err := bodyOf(request)
	if err != nil {
		return nil, err
	}
	if _, err := c.prepare(request, body); err != nil {
		return nil, err
	}
	isRepeatable := request.Header.Get(c.options.Prefix+"-idempotency-key") != "" ||
		slices.Contains([]string{"GET", "PUT", "DELETE"}, request.Method)
	wasCorrected := false
	for failures := 1; ; failures++ {
		response, answer, err := c.attempt(request, body)
		if err == nil && response.StatusCode < 400 {
			return response, nil
		}
		if err == nil {
			failure := apiErrorOf(response, answer)
			err = failure
			if failure.Code == "request_expired" && !wasCorrected && c.correctsClock(response) {
				wasCorrected = true
				failures--
				if _, err := c.prepare(request, body); err != nil {
					return nil, err
				}
				continue
			}
		}
		wait, isWorthwhile := c.waitFor(response, failures, isRepeatable)
		if !isWorthwhile || failures > c.options.Retries || request.Context().Err() != nil {
			return nil, err
		}
		if err := c.options.Sleep(request.Context(), wait); err != nil {
			return nil, err
		}
	}
}

func (c *caller) attempt(request *http.Request, body []byte) (*http.Response, []byte, error) {
	ctx, cancel := context.WithTimeout(request.Context(), c.options.Timeout)
	defer cancel()
	attempt := request.Clone(ctx)
	// A reader that net/http cannot rewind: it would repeat a GET by itself.
	attempt.Body, attempt.GetBody = io.NopCloser(io.MultiReader(bytes.NewReader(body))), nil
	attempt.ContentLength = int64(len(body))
	response, err := c.http.Do(attempt)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(answer))
	return response, answer, nil
}

// NewRequest returns a request with JSON of your own, such as a member that is null, for Do.
func (c *caller) NewRequest(ctx context.Context, method, path string, body any, editors ...RequestEditorFn) (*http.Request, error) {
	var sent bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&sent).Encode(body); err != nil {
			return nil, err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.options.BaseURL, "/")+path, &sent)
	if err != nil {
		return nil, err
	}
	request.Header.Set("content-type", "application/json")
	for _, edit := range editors {
		if err := edit(ctx, request); err != nil {
			return nil, err
		}
	}
	return request, nil
}

func (c *caller) post(ctx context.Context, path string, body, answer any, editors ...RequestEditorFn) error {
	request, err := c.NewRequest(ctx, http.MethodPost, path, body, editors...)
	if err != nil {
		return err
	}
	response, err := c.Do(request)
	if err != nil {
		return err
	}
	return json.NewDecoder(response.Body).Decode(answer)
}

const longestWait = 60

func (c *caller) waitFor(response *http.Response, failures int, isRepeatable bool) (time.Duration, bool) {
	status := 0
	if response != nil {
		status = response.StatusCode
	}
	isUnexecuted := status == 429 || status == 503
	isUncertain := status == 0 || status == 502 || status == 504
	if !isUnexecuted && !(isUncertain && isRepeatable) {
		return 0, false
	}
	milliseconds := math.Min(8000, 500*math.Pow(2, float64(failures-1))) * (0.5 + 0.5*c.options.Random())
	if response != nil {
		if after, err := strconv.ParseUint(response.Header.Get("retry-after"), 10, 32); err == nil {
			if after > longestWait {
				return 0, false
			}
			milliseconds = float64(after)*1000 + math.Floor(250*c.options.Random())
		}
	}
	return time.Duration(milliseconds) * time.Millisecond, true
}

func (c *caller) correctsClock(response *http.Response) bool {
	date, err := http.ParseTime(response.Header.Get("date"))
	if err != nil {
		return false
	}
	skew := date.UnixMilli() - c.options.Now().UnixMilli()
	previous := c.skew.Swap(skew)
	return max(skew-previous, previous-skew) > 2000
}

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
