import { createHash, createPublicKey, generateKeyPairSync, sign } from 'node:crypto';
import { expect, test } from 'vitest';
import { readBridgeHint } from '../../../src/adapters/bridge/customers.ts';

// The test data of the provider's page "Webhook Event Signature Verification", read on 2026-11-22.
const published = {
  key: createPublicKey(
    '-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAtqsEE4eI7EmzhcquGJXt\nLX9PMK0UH6Kl1WIR21sv8HtueG8BuvvpP3MiN7ltzmIhS8KaynCjN4l+620PnXeu\nxWG+CSnEdkinL9hCqbEid5vv9zl0j9LWiJx3FkKHqADU7cgm46aa8dKUdIQYF2X+\nO7WmyLkC4wUM/mWhBPMsIQBznashRMZxx7XJjsVp27ACUE4eNIjEXbVYN6U8jSbU\nhG++CfL8xXu+GHDqKmFE6Po6HnuURvLFVnCtE3mXXBcVFlPy+octfx8nOMLT3X8O\n9UehIigJ34o2yMm/Fq3HUJzg2BsiAiGgtr0vmeoV9Q7upSNj9TuOumAzZFi4pYA+\nqwIDAQAB\n-----END PUBLIC KEY-----\n',
  ),
  atMs: 1705854411204,
  body: '{"message":"Hello World!"}',
  signature:
    'jz/0dmHJ63FAzacGutrDTEoq+iSz/PHm/ugdooXDQu5NwuVIT2LmZGjsnCsBHgR9Py6OBP9zurzW4dHgygU4EDqmMPTUOvhvndYb4lWt+TY66LihaFI2whL6DAf/jb1QjYjNU0A6x9SLzC45dgE6X7zTDUM+2Z+scG/WEQf6SxQMt4E2sEipl5PqMK5lYUe3otdJV+X2c9D64bGwCEE7QSia+Vhozg8QNOQEk/rdz2IEONIg6oC43CeiN4E2kF9XLAGuy9uAHx9O9OJH5ZPLJZjyo4VcXYeWQgxaQ1gZ1Qu6hEEzgiPSff/1nou58dm4bIIazgCWli/mO0NyGcpfFw==',
};

function read(change: { body?: string; header?: string; nowMs?: number } = {}) {
  const { body = published.body, nowMs = published.atMs } = change;
  const header = change.header ?? `t=${published.atMs},v0=${published.signature}`;
  return readBridgeHint(published.key, {
    headers: { 'x-webhook-signature': header },
    body: Buffer.from(body),
    nowMs,
  });
}

test('the published signature is accepted, and names nothing', () => {
  expect(read()).toEqual([]);
});

test.each([
  ['another body', { body: '{"message":"Hello world!"}' }],
  ['another time', { header: `t=1705854411205,v0=${published.signature}` }],
  ['a changed signature', { header: `t=${published.atMs},v0=A${published.signature.slice(1)}` }],
  ['no signature', { header: `t=${published.atMs}` }],
  ['a version that is not known', { header: `t=${published.atMs},v1=${published.signature}` }],
  ['more than ten minutes', { nowMs: published.atMs + 600_001 }],
  ['a time far ahead', { nowMs: published.atMs - 60_001 }],
])('%s is not believed', (_name, change) => {
  expect(read(change)).toBeUndefined();
});

test('it is believed for ten minutes', () => {
  expect(read({ nowMs: published.atMs + 600_000 })).toEqual([]);
});

const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });

function hintsOf(event: object) {
  const body = Buffer.from(JSON.stringify(event));
  const digest = createHash('sha256').update('1000.').update(body).digest();
  const signature = sign('sha256', digest, privateKey).toString('base64');
  const headers = { 'x-webhook-signature': `t=1000,v0=${signature}` };
  return readBridgeHint(publicKey, { headers, body, nowMs: 1000 });
}

test('each event names what to ask about', () => {
  const id = 'fecffc8b-ed5e-48ae-bd24-b36268330b32';
  const event = (event_category: string, event_object: object = {}) => ({
    event_category,
    event_object_id: id,
    event_object,
  });
  expect(hintsOf(event('customer', { status: 'active' }))).toEqual([{ kind: 'customer', id }]);
  expect(hintsOf(event('kyc_link', { customer_id: 'c1' }))).toEqual([{ kind: 'customer', id: 'c1' }]);
  expect(hintsOf(event('transfer'))).toEqual([{ kind: 'payout', id }]);
  expect(hintsOf(event('virtual_account.activity', { virtual_account_id: 'v1' }))).toEqual([
    { kind: 'virtual_account', id: 'v1' },
  ]);
  expect(hintsOf(event('card_account'))).toEqual([]);
  expect(hintsOf({ event_category: 'customer', event_object_id: 7 })).toEqual([]);
});
