// Command suite executes the cases of clients/suite with this client and prints one line for each. It asserts nothing.
//
//	suite <base URL> <file of cases> [<name of a case>]
package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	custos "custos.example/client"
	"github.com/go-json-experiment/json/jsontext"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

var ctx = context.Background()

// runner executes one case.
type runner struct {
	baseURL   string
	isOffline bool
	world     object
	signers   map[string]custos.Signer
	saved     object
	waits     []int64
	keys      int
}

func shown(value any, step object) []any {
	values := []any{}
	for _, pointer := range listOf(step, "show") {
		values = append(values, at(value, pointer))
	}
	return values
}

var variable = regexp.MustCompile(`\$\{\w+\}`)

// filled returns the value with every ${name} replaced.
func (r *runner) filled(value any) any {
	switch inner := value.(type) {
	case string:
		return variable.ReplaceAllStringFunc(inner, func(name string) string { return fmt.Sprint(r.saved[name[2:len(name)-1]]) })
	case []any:
		for index, each := range inner {
			inner[index] = r.filled(each)
		}
	case object:
		for name, each := range inner {
			inner[name] = r.filled(each)
		}
	}
	return value
}

func (r *runner) save(step object, answer any) {
	for name, pointer := range or(step, "save", object{}) {
		r.saved[name] = at(answer, pointer.(string))
	}
}

func (r *runner) control(line string, body any) any {
	method, path, _ := strings.Cut(line, " ")
	sent := []byte{}
	if body != nil {
		sent = must(json.Marshal(body))
	}
	request := must(http.NewRequest(method, r.baseURL+path, bytes.NewReader(sent)))
	request.Header.Set("content-type", "application/json")
	response := must(http.DefaultClient.Do(request))
	defer response.Body.Close()
	text := must(io.ReadAll(response.Body))
	if response.StatusCode >= 400 {
		log.Fatalf("%s: %s", line, text)
	}
	return parse(text)
}

func (r *runner) client(settings object) *custos.Client {
	retries := int(or(settings, "retries", 3.0))
	if retries == 0 {
		retries = -1
	}
	return must(custos.New(custos.Options{
		BaseURL:       or(settings, "base_url", r.baseURL),
		AppID:         r.world["app_id"].(string),
		AppSecret:     or(settings, "app_secret", r.world["app_secret"].(string)),
		UserToken:     or(settings, "user_token", ""),
		Prefix:        or(settings, "prefix", ""),
		Signers:       r.signersOf(settings),
		RequestExpiry: milliseconds(settings, "request_expiry_ms"),
		Timeout:       milliseconds(settings, "timeout_ms"),
		Retries:       retries,
		Now: func() time.Time {
			now := int64(or(settings, "now_ms", 1767225600000.0))
			for _, wait := range r.waits {
				now += wait
			}
			return time.UnixMilli(now)
		},
		Random: func() float64 { return 0.5 },
		NewKey: func() string { r.keys++; return fmt.Sprintf("key-%d", r.keys) },
		Sleep: func(_ context.Context, wait time.Duration) error {
			r.waits = append(r.waits, wait.Milliseconds())
			return nil
		},
	}))
}

func (r *runner) signersOf(step object) []custos.Signer {
	signers := []custos.Signer{}
	for _, name := range listOf(step, "signers") {
		signers = append(signers, r.signers[name])
	}
	return signers
}

func (r *runner) run(suiteCase object) []byte {
	if !r.isOffline {
		r.control("POST /_sandbox/reset", nil)
		r.control("DELETE /_sandbox/requests", nil)
	}
	for _, part := range or(suiteCase, "setup", []any{}) {
		setup := r.filled(part).(object)
		r.save(setup, r.control(setup["request"].(string), setup["body"]))
	}
	client := r.client(r.filled(or(suiteCase, "client", object{})).(object))
	outcomes := []any{}
	for _, part := range suiteCase["steps"].([]any) {
		outcomes = append(outcomes, outcomeOf(r.do(client, r.filled(part).(object))))
	}
	line := object{"case": suiteCase["name"], "steps": outcomes, "waits": r.waits}
	if !r.isOffline && or(suiteCase, "arrived", true) {
		arrived := []string{}
		for _, row := range at(r.control("GET /_sandbox/requests?limit=1000", nil), "/data").([]any) {
			arrived = append(arrived, fmt.Sprintf("%v %v", at(row, "/operation"), at(row, "/status")))
		}
		line["arrived"] = arrived
	}
	text := jsontext.Value(must(json.Marshal(line)))
	must(0, text.Canonicalize())
	return append(text, '\n')
}

func outcomeOf(ok object, err error) object {
	var answered *custos.APIError
	var unexpected *custos.UnexpectedAnswerError
	var network *url.Error
	var tooLarge *http.MaxBytesError
	failure := object{}
	switch {
	case err == nil:
		return object{"ok": ok}
	case errors.As(err, &answered):
		text := strings.Replace(answered.Error(), "(request "+answered.RequestID+")", "(request *)", 1)
		failure = object{
			"kind": "api", "status": answered.Status, "code": nil, "message": answered.Message, "text": text,
		}
		if answered.Code != "" {
			failure["code"] = answered.Code
		}
	case errors.As(err, &unexpected):
		failure = object{"kind": "answer", "text": strings.Replace(err.Error(), unexpected.URL, "*", 1)}
	case errors.Is(err, custos.ErrWebhook):
		failure["kind"] = "webhook"
	case errors.Is(err, custos.ErrPathParameter), errors.Is(err, custos.ErrArgument):
		failure["kind"] = "argument"
	case custos.IsTimeout(err):
		failure["kind"] = "timeout"
	case errors.As(err, &network), errors.As(err, &tooLarge), errors.Is(err, io.ErrUnexpectedEOF):
		failure["kind"] = "connection"
	default:
		log.Fatal(err)
	}
	return object{"error": failure}
}

func (r *runner) request(client *custos.Client, step object, cursor *string) (*http.Request, error) {
	path, query := step["path"].(string), url.Values{}
	for name, value := range or(step, "params", object{}) {
		path = strings.ReplaceAll(path, "{"+name+"}", url.PathEscape(value.(string)))
	}
	for name, value := range or(step, "query", object{}) {
		query.Set(name, fmt.Sprint(value))
	}
	if cursor != nil {
		query.Set("cursor", *cursor)
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return client.NewRequest(ctx, step["method"].(string), path, step["body"], r.editors(step)...)
}

func (r *runner) editors(step object) (editors []custos.RequestEditorFn) {
	if step["signers"] != nil {
		editors = append(editors, custos.SignedBy(r.signersOf(step)...))
	}
	if key := or(step, "idempotency_key", ""); key != "" {
		editors = append(editors, custos.IdempotencyKey(key))
	}
	if expiry := milliseconds(step, "request_expiry_ms"); expiry != 0 {
		editors = append(editors, custos.ExpiresIn(expiry))
	}
	return editors
}

func (r *runner) do(client *custos.Client, step object) (object, error) {
	switch or(step, "do", "call") {
	case "list":
		return r.list(client, step)
	case "prepare":
		return r.prepare(client, step)
	case "userSigner":
		signer, expiry, err := client.UserSigner(ctx, step["jwt"].(string))
		r.signers[step["as"].(string)] = signer
		return object{"expires_at": expiry.UnixMilli()}, err
	case "import":
		return r.importWallet(client, step)
	case "export":
		secret, err := client.ExportWallet(ctx, step["wallet_id"].(string), r.editors(step)...)
		return object{"secret": secret}, err
	case "keySigner":
		sign, err := custos.KeySigner(step["key"].(string))
		if err != nil {
			return nil, err
		}
		return object{"signature": must(sign([]byte("{}")))}, nil
	case "verify":
		return verify(step)
	}
	request, err := r.request(client, step, nil)
	if err != nil {
		return nil, err
	}
	if key := or(step, "idempotency_header", ""); key != "" {
		request.Header.Set("service-idempotency-key", key)
	}
	response, err := client.Do(request)
	for times := 1.0; err == nil && times < or(step, "times", 1.0); times++ {
		response, err = client.Do(request)
	}
	if err != nil {
		return nil, err
	}
	answer := parse(must(io.ReadAll(response.Body)))
	r.save(step, answer)
	return object{"status": response.StatusCode, "shown": shown(answer, step)}, nil
}

func (r *runner) list(client *custos.Client, step object) (object, error) {
	items := []any{}
	for item, err := range custos.All(func(cursor *string) ([]any, *string, error) {
		response, err := client.Do(must(r.request(client, step, cursor)))
		if err != nil {
			return nil, nil, err
		}
		page := parse(must(io.ReadAll(response.Body))).(object)
		next, isMore := page["next_cursor"].(string)
		if !isMore {
			return page[or(step, "items", "data")].([]any), nil, nil
		}
		return page[or(step, "items", "data")].([]any), &next, nil
	}) {
		if err != nil {
			return nil, err
		}
		items = append(items, shown(item, step))
		if float64(len(items)) == step["take"] {
			break
		}
	}
	return object{"items": items}, nil
}

func (r *runner) prepare(client *custos.Client, step object) (object, error) {
	request := must(r.request(client, step, nil))
	payload, err := client.Prepare(request)
	headers, signatures := object{}, []string{}
	for name := range request.Header {
		value, name := request.Header.Get(name), strings.ToLower(name)
		if strings.HasSuffix(name, "-authorization-signature") {
			signatures = strings.Split(value, ",")
		}
		if name != "content-type" {
			headers[name] = value
		}
	}
	return object{"payload": string(payload), "signatures": signatures, "headers": headers}, err
}

func (r *runner) importWallet(client *custos.Client, step object) (object, error) {
	wallet, fields := object{"entropy_type": "private-key", "chain_type": "ethereum"}, object{}
	for name, value := range step["wallet"].(object) {
		if name == "address" || name == "chain_type" {
			wallet[name] = value
		} else if name != "private_key" && name != "private_key_text" {
			fields[name] = value
		}
	}
	secret := must(hex.DecodeString(or(step["wallet"].(object), "private_key", "")))
	imported, err := client.ImportWallet(ctx, secret, wallet, fields)
	if err != nil {
		return nil, err
	}
	answer := parse(must(json.Marshal(imported)))
	r.save(step, answer)
	return object{"status": 200, "shown": shown(answer, step)}, nil
}

func verify(step object) (object, error) {
	secret, id, body := step["secret"].(string), step["id"].(string), step["body"].(string)
	moment := time.Now().Add(-time.Duration(or(step, "age_seconds", 0.0)) * time.Second)
	secrets := listOf(step, "signed_with")
	if step["signed_with"] == nil {
		secrets = []string{secret}
	}
	var signatures []string
	for _, each := range secrets {
		key := must(base64.StdEncoding.DecodeString(strings.TrimPrefix(strings.TrimSpace(each), "whsec_")))
		signer := must(standardwebhooks.NewWebhookRaw(key))
		signatures = append(signatures, must(signer.Sign(id, moment, []byte(or(step, "signed_body", body)))))
	}
	headers := http.Header{}
	headers.Set("webhook-id", id)
	headers.Set("webhook-timestamp", strconv.FormatInt(moment.Unix(), 10))
	headers.Set("webhook-signature", strings.Join(signatures, " "))
	for name, value := range or(step, "headers", object{}) {
		if headers.Del(name); value != nil {
			headers.Set(name, value.(string))
		}
	}
	event, err := custos.VerifyWebhook(secret, headers, []byte(body))
	if err != nil {
		return nil, err
	}
	return object{"id": event.ID, "type": event.Type}, nil
}

func main() {
	baseURL, file, names := os.Args[1], os.Args[2], os.Args[3:]
	// The world is next to the folder of the cases.
	world := parse(must(os.ReadFile(filepath.Join(filepath.Dir(file), "..", "world.json")))).(object)
	cases := parse(must(os.ReadFile(file))).(object)
	for _, each := range cases["cases"].([]any) {
		suiteCase := each.(object)
		if len(names) > 0 && !slices.Contains(names, suiteCase["name"].(string)) {
			continue
		}
		signers := map[string]custos.Signer{}
		for name, key := range world["signers"].(object) {
			signers[name] = must(custos.KeySigner(key.(string)))
		}
		r := &runner{baseURL: baseURL, isOffline: or(cases, "offline", false), world: world, signers: signers, saved: object{}, waits: []int64{}}
		must(os.Stdout.Write(r.run(suiteCase)))
	}
}
