import { describe, expect, test } from 'vitest';
import { aliceKey, bobKey, carolKey } from '../../../mocks/authorization-keys.ts';
import { attempt, call, refusal } from '../../support/call.ts';
import { databaseKinds } from '../../support/databases.ts';
import { openOperations, type TestOperations } from '../../support/run-operations.ts';
import { startSandbox } from '../../support/sandbox.ts';

// A stored response contains what a wallet signed. The app secret alone does not make an owned wallet sign, so it must not
// be enough to read the response either.
const message = { method: 'personal_sign', params: { encoding: 'utf-8', message: 'hello' } } as const;
const [alice, bob, carol] = [aliceKey.privateKey, bobKey.privateKey, carolKey.privateKey];

describe.each(databaseKinds)('on %s, a stored response', (kind) => {
  async function newQuorum(operations: TestOperations, keys: { publicKey: string }[], threshold: number) {
    const { body } = await operations.run('createKeyQuorum', {
      body: { public_keys: keys.map((key) => key.publicKey), authorization_threshold: threshold },
    });
    return (body as { id: string }).id;
  }

  async function newWallet(operations: TestOperations, owner: object = {}) {
    const { body } = await operations.run('createWallet', { body: { chain_type: 'ethereum', ...owner } });
    return (body as { id: string }).id;
  }

  const sign = async (
    operations: TestOperations,
    walletId: string,
    signWith: string[],
    body: object = message,
  ) => {
    const request = { path: { wallet_id: walletId }, body, signWith, idempotencyKey: 'once' };
    const answer = await operations.run('walletRpc', request);
    return answer.status === 200 ? answer : `${answer.status} ${(answer.body as { code?: string }).code}`;
  };

  test('of an owned wallet is repeated only to requests signed by the same keys', async () => {
    await using operations = await openOperations(kind);
    const ownerId = await newQuorum(operations, [aliceKey, bobKey, carolKey], 2);
    const id = await newWallet(operations, { owner_id: ownerId });
    const first = await sign(operations, id, [alice, bob]);
    expect(first).toMatchObject({ status: 200 });
    expect(await sign(operations, id, [])).toBe('401 missing_or_empty_authorization_header');
    expect(await sign(operations, id, [alice])).toBe('401 incorrect_quantity_of_authorization_signatures');
    expect(await sign(operations, id, [alice, alice])).toBe(
      '401 insufficient_correct_authorization_signatures',
    );
    expect(await sign(operations, id, [carol, carol])).toBe('401 zero_correct_authorization_signatures');
    expect(await sign(operations, id, [bob, alice])).toEqual(first);
    expect(await sign(operations, id, [carol, alice, bob])).toEqual(first);
  });

  test('is repeated to its signers after the owner has changed', async () => {
    await using operations = await openOperations(kind);
    const id = await newWallet(operations, { owner: { public_key: aliceKey.publicKey } });
    const first = await sign(operations, id, [alice]);
    const toBob = { owner: { public_key: bobKey.publicKey } };
    expect(
      await operations.run('updateWallet', { path: { wallet_id: id }, body: toBob, signWith: [alice] }),
    ).toMatchObject({ status: 200 });
    expect(await sign(operations, id, [alice])).toEqual(first);
    expect(await sign(operations, id, [bob])).toBe('401 zero_correct_authorization_signatures');
  });

  test('that is a refusal of an authorized request is repeated only to its signers', async () => {
    await using operations = await openOperations(kind);
    const id = await newWallet(operations, { owner: { public_key: aliceKey.publicKey } });
    const transaction = { to: `0x${'11'.repeat(20)}`, value: 1 };
    const body = { method: 'eth_sendTransaction', caip2: 'eip155:999999', params: { transaction } };
    const first = await sign(operations, id, [alice], body);
    expect(first).toMatch(/^400 /);
    expect(await sign(operations, id, [alice], body)).toBe(first);
    expect(await sign(operations, id, [], body)).toBe('401 missing_or_empty_authorization_header');
  });

  test('of a wallet without an owner is repeated to every caller with the secret', async () => {
    await using operations = await openOperations(kind);
    const id = await newWallet(operations);
    const first = await sign(operations, id, [carol]);
    expect(await sign(operations, id, [])).toEqual(first);
  });
});

test('a retry may send the same header again, or sign again with another expiry', async () => {
  await using sandbox = await startSandbox();
  const owner = { public_key: aliceKey.publicKey };
  const { body: wallet } = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum', owner } });
  const input = { path: { wallet_id: wallet.id }, body: message };
  const retry = { signWith: [alice], idempotencyKey: 'once' };
  const expiryMs = sandbox.clock.now() + 60_000;
  const first = await call(sandbox, 'walletRpc', input, { ...retry, expiryMs });
  for (const again of [expiryMs, expiryMs + 1, undefined]) {
    const options = again === undefined ? retry : { ...retry, expiryMs: again };
    const answer = await attempt(sandbox, 'walletRpc', input, options);
    expect(answer).toMatchObject({
      status: 200,
      body: first.body,
      headers: { 'idempotent-replayed': 'true' },
    });
  }
  const unsigned = await refusal(sandbox, 'walletRpc', input, { idempotencyKey: 'once' });
  expect(unsigned).toMatchObject({ status: 401, body: { code: 'missing_or_empty_authorization_header' } });
  // Signed by the right key, but over a request with another idempotency key.
  const headers = { 'service-idempotency-key': 'once' };
  const elsewhere = { signWith: [alice], idempotencyKey: 'twice', headers };
  expect((await refusal(sandbox, 'walletRpc', input, elsewhere)).body.code).toBe(
    'zero_correct_authorization_signatures',
  );
});
