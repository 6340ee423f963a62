import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { Webhook as StandardVerifier } from 'standardwebhooks';
import { Webhook as SvixVerifier } from 'svix';
import { describe, expect, test } from 'vitest';
import {
  formatWebhookSecret,
  InvalidWebhookSecretError,
  parseWebhookSecret,
  signWebhook,
} from '../../../src/engine/crypto/webhook-signature.ts';

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const otherSecret = formatWebhookSecret(new Uint8Array(32).fill(7));
// The verifiers use the system clock, so the messages are signed at the current time.
const nowSeconds = () => Math.floor(Date.now() / 1000);

test('a message and its signature as Standard Webhooks publishes them', () => {
  // https://github.com/standard-webhooks/standard-webhooks, libraries' test of a known signature.
  const headers = signWebhook({
    id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    timestampSeconds: 1614265330,
    bodyText: '{"test": 2432232314}',
    secrets: [secret],
  });
  const signature = 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=';
  expect(headers).toEqual({
    'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    'webhook-timestamp': '1614265330',
    'webhook-signature': signature,
    'svix-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    'svix-timestamp': '1614265330',
    'svix-signature': signature,
  });
});

describe('two independent verifiers', () => {
  test('two independent verifiers accept any body under any of the secrets', () => {
    fc.assert(
      fc.property(fc.json(), fc.uuid(), (bodyText, id) => {
        const signed = signWebhook({
          id: `msg_${id}`,
          timestampSeconds: nowSeconds(),
          bodyText,
          secrets: [otherSecret, secret],
        });
        const { standard, svix } = byFamily({ ...signed });
        for (const known of [secret, otherSecret]) {
          expect(new StandardVerifier(known).verify(bodyText, standard)).toEqual(JSON.parse(bodyText));
          expect(new SvixVerifier(known).verify(bodyText, svix)).toEqual(JSON.parse(bodyText));
        }
      }),
      { numRuns: 20 },
    );
  });

  test('two independent verifiers refuse another body, another id and another secret', () => {
    const bodyText = '{"type":"wallet.archived"}';
    const signed = signWebhook({ id: 'msg_1', timestampSeconds: nowSeconds(), bodyText, secrets: [secret] });
    const { standard, svix } = byFamily({ ...signed });
    const attempts = [
      () => new StandardVerifier(secret).verify(`${bodyText} `, standard),
      () => new SvixVerifier(secret).verify(`${bodyText} `, svix),
      () => new StandardVerifier(secret).verify(bodyText, { ...standard, 'webhook-id': 'msg_2' }),
      () => new SvixVerifier(secret).verify(bodyText, { ...svix, 'svix-id': 'msg_2' }),
      () => new StandardVerifier(otherSecret).verify(bodyText, standard),
      () => new SvixVerifier(otherSecret).verify(bodyText, svix),
    ];
    for (const attempt of attempts) expect(attempt).toThrow('No matching signature found');
  });
});

/** Each verifier gets only its own headers. */
function byFamily(headers: Record<string, string>) {
  const only = (prefix: string) =>
    Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith(prefix)));
  return { standard: only('webhook-'), svix: only('svix-') };
}

describe('secrets', () => {
  test('secrets are encoded with their prefix and decoded with or without it', () => {
    const bytes = new Uint8Array(24).fill(255);
    expect(formatWebhookSecret(bytes)).toBe('whsec_////////////////////////////////');
    expect(parseWebhookSecret(formatWebhookSecret(bytes))).toEqual(bytes);
    expect(parseWebhookSecret('////////////////////////////////')).toEqual(bytes);
  });

  test.each([
    ['', 'expected a secret of 24 to 64 bytes, got 0 bytes'],
    ['whsec_AAAA', 'expected a secret of 24 to 64 bytes, got 3 bytes'],
    [`whsec_${Buffer.alloc(65).toString('base64')}`, 'expected a secret of 24 to 64 bytes, got 65 bytes'],
    ['whsec_not base64', 'expected `whsec_` followed by padded standard base64'],
    ['whsec_whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'expected `whsec_` followed by padded standard base64'],
  ])('`%s` is refused', (text, message) => {
    expect(() => parseWebhookSecret(text)).toThrow(new InvalidWebhookSecretError(message));
  });

  test('their length is also limited on creation', () => {
    expect(() => formatWebhookSecret(new Uint8Array(23))).toThrow(InvalidWebhookSecretError);
    expect(() => formatWebhookSecret(new Uint8Array(65))).toThrow(InvalidWebhookSecretError);
  });
});

test('unverifiable or ambiguous input is not signed', () => {
  const fine = { id: 'msg_1', timestampSeconds: 1, bodyText: '{}', secrets: [secret] };
  for (const bad of [
    { id: 'msg.1' },
    { id: '' },
    { id: 'msg 1' },
    { timestampSeconds: 1.5 },
    { secrets: [] },
  ]) {
    expect(() => signWebhook({ ...fine, ...bad })).toThrow(RangeError);
  }
});

test('the signed bytes are id, time and body joined by dots, in UTF-8', () => {
  const bodyText = '{"name":"Zoë 🦊"}';
  const signed = signWebhook({ id: 'msg_1', timestampSeconds: 5, bodyText, secrets: [secret] });
  const expected = createHmac('sha256', Buffer.from('MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'base64'))
    .update(Buffer.concat([Buffer.from('msg_1.5.'), Buffer.from(bodyText, 'utf8')]))
    .digest('base64');
  expect(signed['webhook-signature']).toBe(`v1,${expected}`);
});
