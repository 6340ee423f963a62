package custos

import (
	"context"
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hpke"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// Signer returns the signature of a payload: DER in base64. A key that lives elsewhere, as in a KMS, is such a
// function too.
type Signer func(payload []byte) (string, error)

// KeySigner signs with a P-256 key: PEM (PKCS #8 or SEC 1), or base64 of the DER.
func KeySigner(key string) (Signer, error) {
	der, err := base64.StdEncoding.DecodeString(key)
	block, rest := pem.Decode([]byte(key))
	// OpenSSL writes the parameters before a key.
	for block != nil && block.Type == "EC PARAMETERS" {
		block, rest = pem.Decode(rest)
	}
	if block != nil {
		der, err = block.Bytes, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: the key is neither PEM nor base64", ErrArgument)
	}
	private, err := x509.ParseECPrivateKey(der)
	if err != nil {
		parsed, _ := x509.ParsePKCS8PrivateKey(der)
		private, _ = parsed.(*ecdsa.PrivateKey)
	}
	if private == nil || private.Curve != elliptic.P256() {
		return nil, fmt.Errorf("%w: expected a private key on the curve P-256", ErrArgument)
	}
	return func(payload []byte) (string, error) {
		digest := sha256.Sum256(payload)
		// Without a source of randomness, the nonce is that of RFC 6979.
		signature, err := private.Sign(nil, digest[:], crypto.SHA256)
		return base64.StdEncoding.EncodeToString(signature), err
	}, nil
}

// SignedPayload is the canonical JSON (RFC 8785) that owners sign. `headers` has the service headers that are signed.
func SignedPayload(method, url string, body []byte, headers map[string]string) ([]byte, error) {
	payload := map[string]any{"version": 1, "method": method, "url": url, "headers": headers}
	if len(body) > 0 {
		payload["body"] = json.RawMessage(body)
	}
	text, err := json.Marshal(payload)
	canonical := jsontext.Value(text)
	return canonical, errors.Join(err, canonical.Canonicalize())
}

// recipient is a fresh key to which the service encrypts one secret.
type recipient struct{ key *ecdh.PrivateKey }

func newRecipient() (recipient, string, error) {
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		return recipient{}, "", err
	}
	spki, err := x509.MarshalPKIXPublicKey(key.PublicKey())
	return recipient{key}, base64.StdEncoding.EncodeToString(spki), err
}

func (r recipient) open(encapsulatedKey, ciphertext []byte) (string, error) {
	key, err := hpke.NewDHKEMPrivateKey(r.key)
	if err != nil {
		return "", err
	}
	sealed := append(append([]byte{}, encapsulatedKey...), ciphertext...)
	secret, err := hpke.Open(key, hpke.HKDFSHA256(), hpke.ChaCha20Poly1305(), nil, sealed)
	return string(secret), err
}

const pointBytes = 65

// Seal encrypts a secret to the key of InitWalletImport.
func Seal(secret, encryptionPublicKey []byte) (encapsulatedKey, ciphertext []byte, err error) {
	point, err := ecdh.P256().NewPublicKey(encryptionPublicKey)
	if err != nil {
		return nil, nil, err
	}
	key, err := hpke.NewDHKEMPublicKey(point)
	if err != nil {
		return nil, nil, err
	}
	sealed, err := hpke.Seal(key, hpke.HKDFSHA256(), hpke.ChaCha20Poly1305(), nil, secret)
	if err != nil {
		return nil, nil, err
	}
	return sealed[:pointBytes], sealed[pointBytes:], nil
}

type object = map[string]any

// UserSigner returns a signer for a user with a token, and when it expires.
func (c *Client) UserSigner(ctx context.Context, userJWT string) (Signer, time.Time, error) {
	recipient, publicKey, err := newRecipient()
	if err != nil {
		return nil, time.Time{}, err
	}
	body := object{"user_jwt": userJWT, "encryption_type": "HPKE", "recipient_public_key": publicKey}
	var answer EncryptedWalletAuthenticateResponse
	if err := c.Post(ctx, "/v1/wallets/authenticate", body, &answer); err != nil {
		return nil, time.Time{}, err
	}
	key, err := recipient.open(answer.EncryptedAuthorizationKey.EncapsulatedKey, answer.EncryptedAuthorizationKey.Ciphertext)
	if err != nil {
		return nil, time.Time{}, err
	}
	signer, err := KeySigner(key)
	return signer, time.UnixMilli(int64(answer.ExpiresAt)), err
}

// ImportWallet imports a private key, or a phrase. `wallet` has its address, chain_type and entropy_type; `fields` has
// more of the new wallet, such as its owner.
func (c *Client) ImportWallet(ctx context.Context, secret []byte, wallet, fields map[string]any) (*Wallet, error) {
	if len(secret) == 0 {
		return nil, fmt.Errorf("%w: the secret is empty", ErrArgument)
	}
	submitted := object{}
	maps.Copy(submitted, wallet)
	submitted["encryption_type"] = "HPKE"
	var recipient WalletInitImportResponse
	if err := c.Post(ctx, "/v1/wallets/import/init", submitted, &recipient); err != nil {
		return nil, err
	}
	var err error
	submitted["encapsulated_key"], submitted["ciphertext"], err = Seal(secret, recipient.EncryptionPublicKey)
	if err != nil {
		return nil, err
	}
	body := object{"wallet": submitted}
	maps.Copy(body, fields)
	var imported Wallet
	return &imported, c.Post(ctx, "/v1/wallets/import/submit", body, &imported)
}

// ExportWallet returns the private key of a wallet. The owner signs.
func (c *Client) ExportWallet(ctx context.Context, walletID string, editors ...RequestEditorFn) (string, error) {
	recipient, publicKey, err := newRecipient()
	if err != nil {
		return "", err
	}
	body := object{"encryption_type": "HPKE", "recipient_public_key": publicKey}
	var sealed WalletExportResponse
	if err := c.Post(ctx, "/v1/wallets/"+url.PathEscape(walletID)+"/export", body, &sealed, editors...); err != nil {
		return "", err
	}
	return recipient.open(sealed.EncapsulatedKey, sealed.Ciphertext)
}

// WebhookEvent is a genuine event.
type WebhookEvent struct {
	// ID is the same for every delivery of an event: drop what you have already seen.
	ID      string `json:"-"`
	Type    string `json:"type"`
	Payload []byte `json:"-"`
}

// ErrWebhook says that a webhook is not genuine, or that its secret is empty or malformed.
var ErrWebhook = errors.New("the webhook is refused")

// VerifyWebhook returns the event in the bytes that arrived, or an ErrWebhook if they are not genuine.
func VerifyWebhook(secret string, headers http.Header, body []byte) (*WebhookEvent, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(strings.TrimSpace(secret), "whsec_"))
	if err != nil {
		return nil, fmt.Errorf("%w: its secret is malformed", ErrWebhook)
	}
	// The library takes an empty key, with which everyone can sign.
	if len(key) == 0 {
		return nil, fmt.Errorf("%w: its secret is empty", ErrWebhook)
	}
	webhook, err := standardwebhooks.NewWebhookRaw(key)
	if err == nil {
		err = webhook.Verify(body, headers)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrWebhook, err)
	}
	event := &WebhookEvent{ID: headers.Get("webhook-id"), Payload: body}
	if json.Unmarshal(body, event) != nil || event.Type == "" {
		return nil, fmt.Errorf("%w: the body is not an event", ErrWebhook)
	}
	return event, nil
}
