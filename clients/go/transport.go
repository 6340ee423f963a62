package custos

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/oapi-codegen/runtime"
)

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

// Prepare adds the service headers and signatures. It returns the payload that owners sign.
func (c *caller) Prepare(request *http.Request) ([]byte, error) {
	return c.prepare(request, c.givenKey(request))
}

// givenKey returns the idempotency key that the caller chose, by an option or by the header.
func (c *caller) givenKey(request *http.Request) string {
	one, _ := request.Context().Value(callKey{}).(call)
	return cmp.Or(one.idempotencyKey, request.Header.Get(c.options.Prefix+"-idempotency-key"))
}

// prepare is Prepare with an idempotency key, or else with a new one.
func (c *caller) prepare(request *http.Request, key string) ([]byte, error) {
	body, err := bodyOf(request)
	if err != nil {
		return nil, err
	}
	options, accepted := c.options, c.accepts(request)
	one, _ := request.Context().Value(callKey{}).(call)
	if one.signers == nil {
		one.signers = options.Signers
	}
	one.expiry = cmp.Or(one.expiry, options.RequestExpiry)
	if options.UserToken != "" {
		request.Header.Set("authorization", "Bearer "+options.UserToken)
	} else {
		request.SetBasicAuth(options.AppID, options.AppSecret)
	}
	signed := map[string]string{options.Prefix + "-app-id": options.AppID}
	if slices.Contains(accepted, "idempotency-key") {
		if key == "" {
			key = options.NewKey()
		}
		signed[options.Prefix+"-idempotency-key"] = key
	}
	if slices.Contains(accepted, "request-expiry") && one.expiry != 0 {
		deadline := options.Now().UnixMilli() + c.skew.Load() + one.expiry.Milliseconds()
		signed[options.Prefix+"-request-expiry"] = strconv.FormatInt(deadline, 10)
	}
	for name, value := range signed {
		request.Header.Set(name, value)
	}
	if request.Header.Get("content-type") != "application/json" {
		body = nil
	}
	payload, err := SignedPayload(request.Method, request.URL.String(), body, signed)
	if err != nil || !slices.Contains(accepted, "authorization-signature") || len(one.signers) == 0 {
		return payload, err
	}
	signatures := make([]string, len(one.signers))
	for index, sign := range one.signers {
		if sign == nil {
			return nil, fmt.Errorf("%w: a signer is nil", ErrArgument)
		}
		if signatures[index], err = sign(payload); err != nil {
			return nil, err
		}
	}
	request.Header.Set(options.Prefix+"-authorization-signature", strings.Join(signatures, ","))
	return payload, nil
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

// Do sends a request until there is an answer. The generated code calls it. The request is not changed: if it is sent
// again, this is another call with another idempotency key, unless it has one.
func (c *caller) Do(unprepared *http.Request) (*http.Response, error) {
	assumedSkew := c.skew.Load()
	body, err := bodyOf(unprepared)
	if err != nil {
		return nil, err
	}
	request := unprepared.Clone(unprepared.Context())
	if body != nil {
		request.Body = io.NopCloser(bytes.NewReader(body))
	}
	given := c.givenKey(request)
	if _, err := c.prepare(request, given); err != nil {
		return nil, err
	}
	name := c.options.Prefix + "-idempotency-key"
	key := request.Header.Get(name)
	isRepeatable := key != "" ||
		slices.Contains([]string{"GET", "PUT", "DELETE"}, request.Method)
	wasCorrected := false
	for failures := 1; ; failures++ {
		response, answer, err := c.attempt(request, body)
		if err == nil && response.StatusCode < 300 {
			return checked(response, request.URL.String(), answer)
		}
		if err == nil {
			failure := apiErrorOf(response, answer)
			err = failure
			if failure.Code == "request_expired" && !wasCorrected && c.correctsClock(response, assumedSkew) {
				wasCorrected = true
				// The refusal may have used up the key. After a retry, the key stays: an attempt may have been executed.
				if failures == 1 {
					key = given
				}
				failures--
				if _, err := c.prepare(request, key); err != nil {
					return nil, err
				}
				key = request.Header.Get(name)
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
		deadline, err := strconv.ParseInt(request.Header.Get(c.options.Prefix+"-request-expiry"), 10, 64)
		if err == nil && deadline-c.options.Now().UnixMilli()-c.skew.Load() < leastTimeLeft.Milliseconds() {
			if _, err := c.prepare(request, key); err != nil {
				return nil, err
			}
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
	if len(body) == 0 && request.Method != http.MethodGet {
		// Otherwise it would be sent as chunks, which some proxies refuse.
		attempt.Body = http.NoBody
	}
	response, err := c.http.Do(attempt)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(http.MaxBytesReader(nil, response.Body, maxResponseBytes))
	if err != nil {
		return nil, nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(answer))
	return response, answer, nil
}

// ErrArgument says that a call was refused before anything was sent.
var ErrArgument = errors.New("an argument is refused")

// ErrPathParameter says that a parameter of a path is empty, `.` or `..`: the request would go to another resource.
var ErrPathParameter = errors.New("a parameter of the path is empty or dots")

func isDots(segment string) bool { return segment == "" || segment == "." || segment == ".." }

// stylePathParameter stands for the function of the runtime in the generated code, which resolves dots.
func stylePathParameter(style string, explode bool, name string, value any, options runtime.StyleParamOptions) (string, error) {
	segment, err := runtime.StyleParamWithOptions(style, explode, name, value, options)
	if err == nil && isDots(segment) {
		return "", fmt.Errorf("%w: %s", ErrPathParameter, name)
	}
	return segment, err
}

// NewRequest returns a request with JSON of your own, such as a member that is null, for Do.
func (c *caller) NewRequest(ctx context.Context, method, path string, body any, editors ...RequestEditorFn) (*http.Request, error) {
	unqueried, _, _ := strings.Cut(path, "?")
	if slices.ContainsFunc(strings.Split(strings.TrimPrefix(unqueried, "/"), "/"), isDots) {
		return nil, fmt.Errorf("%w: %s", ErrPathParameter, unqueried)
	}
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
	if body != nil {
		request.Header.Set("content-type", "application/json")
	}
	for _, edit := range editors {
		if err := edit(ctx, request); err != nil {
			return nil, err
		}
	}
	return request, nil
}

// Post sends JSON of your own and reads the answer.
func (c *caller) Post(ctx context.Context, path string, body, answer any, editors ...RequestEditorFn) error {
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

const (
	longestWait      = 60
	maxResponseBytes = 32 << 20
	// A `Date` in the far future must not get deadlines signed that never end.
	maxClockLead = 48 * time.Hour
	// A retry with less time before its deadline gets a new one.
	leastTimeLeft = time.Second
)

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
		// A number that is out of range is the largest one.
		after, err := strconv.ParseUint(response.Header.Get("retry-after"), 10, 32)
		if err == nil || errors.Is(err, strconv.ErrRange) {
			if after > longestWait {
				return 0, false
			}
			milliseconds = float64(after)*1000 + math.Floor(250*c.options.Random())
		}
	}
	return time.Duration(milliseconds) * time.Millisecond, true
}

func (c *caller) correctsClock(response *http.Response, assumed int64) bool {
	date, err := http.ParseTime(response.Header.Get("date"))
	if err != nil {
		return false
	}
	skew := date.UnixMilli() - c.options.Now().UnixMilli()
	if max(skew-assumed, assumed-skew) <= 2000 || skew > maxClockLead.Milliseconds() {
		return false
	}
	c.skew.Store(skew)
	return true
}
