import { afterAll, beforeAll, expect, test } from 'vitest';
import { aliceKey } from '../../../mocks/authorization-keys.ts';
import { type CallOptions, call, refusal } from '../../support/call.ts';
import { configureApp } from '../../support/other-app.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

// A signature without an expiry is valid for as long as the owner does not change, so an app can require one.
const message = { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } } as const;
const signWith = [aliceKey.privateKey];

let sandbox: TestSandbox;
let path: { wallet_id: string };
beforeAll(async () => {
  sandbox = await startSandbox();
  const owner = { public_key: aliceKey.publicKey };
  const { body } = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum', owner } });
  path = { wallet_id: body.id };
  await configureApp(sandbox, { require_request_expiry: 60 });
});
afterAll(() => sandbox[Symbol.asyncDispose]());

const refused = async (operation: 'walletRpc' | 'createWalletRpcIntent', options: CallOptions) => {
  const { status, body } = await refusal(sandbox, operation, { path, body: message }, options);
  return `${status} ${body.code}: ${body.error}`;
};

test('a request that an owner signs needs an expiry, and a near one', async () => {
  const missing = '400 request_expired: expected the header `service-request-expiry`: this app requires it';
  expect(await refused('walletRpc', { signWith })).toBe(missing);
  const nowMs = sandbox.clock.now();
  expect(await refused('walletRpc', { signWith, expiryMs: nowMs + 60_001 })).toBe(
    `400 request_expired: expected a request expiry at most 60 seconds ahead, got \`${nowMs + 60_001}\`; the server's time is ${nowMs}`,
  );
  await call(sandbox, 'walletRpc', { path, body: message }, { signWith, expiryMs: nowMs + 60_000 });
  expect(await refused('walletRpc', {})).toMatch(/^401 missing_or_empty_authorization_header/);
});

test('an intent needs one of any length', async () => {
  expect(await refused('createWalletRpcIntent', {})).toMatch(/^400 request_expired: expected the header/);
  const expiryMs = sandbox.clock.now() + 72 * 3_600_000;
  await call(sandbox, 'createWalletRpcIntent', { path, body: message }, { expiryMs });
});

test('a request about a resource without an owner needs none', async () => {
  const { body: free } = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
  await call(sandbox, 'walletRpc', { path: { wallet_id: free.id }, body: message });
});

test.each([[true], [0], [1.5], ['60'], [259_201]])('the setting cannot be %j', async (value) => {
  await expect(configureApp(sandbox, { require_request_expiry: value })).rejects.toThrow(
    '/settings/require_request_expiry: expected false or a number of seconds',
  );
});
