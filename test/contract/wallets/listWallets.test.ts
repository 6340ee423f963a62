import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { aliceKey, bobKey } from '../../../mocks/authorization-keys.ts';
import type { Wallet } from '../../../src/generated/schemas.ts';
import { call, refusal } from '../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

describe('filters', () => {
  let sandbox: TestSandbox;
  let archived: Wallet;

  beforeAll(async () => {
    sandbox = await startSandbox();
    archived = (await call(sandbox, 'createWallet', { body: { chain_type: 'solana', external_id: 'old' } }))
      .body;
    archived = (await call(sandbox, 'archiveWallet', { path: { wallet_id: archived.id } })).body;
  });
  afterAll(() => sandbox[Symbol.asyncDispose]());

  const find = async (query: Parameters<typeof call<'listWallets'>>[2]['query']) => {
    const { body } = await call(sandbox, 'listWallets', { query: query ?? {} });
    expect(body.next_cursor).toBeNull();
    return body.data.map((wallet) => wallet.external_id).sort();
  };

  test('without filters, every wallet except archived ones', async () => {
    expect(await find({})).toEqual(['acme-ethereum', 'acme-solana', 'alice', 'treasury']);
    expect(await find({ include_archived: true })).toContain('old');
  });

  test('by chain type, external id and address', async () => {
    expect(await find({ chain_type: 'solana' })).toEqual(['acme-solana']);
    expect(await find({ chain_type: 'solana', include_archived: true })).toEqual(['acme-solana', 'old']);
    expect(await find({ external_id: 'alice' })).toEqual(['alice']);
    expect(await find({ external_id: 'unknown' })).toEqual([]);
    const { body } = await call(sandbox, 'getWallet', { path: { wallet_id: 'ext_wal_alice' } });
    expect(await find({ address: body.address.toLowerCase() })).toEqual(['alice']);
    expect(await find({ address: archived.address })).toEqual([]);
  });

  test('by a key among the owner’s members', async () => {
    expect(await find({ authorization_key: aliceKey.publicKey })).toEqual(['alice', 'treasury']);
    expect(await find({ authorization_key: bobKey.publicKey })).toEqual(['treasury']);
    const refused = await refusal(sandbox, 'listWallets', { query: { authorization_key: 'AAAA' } });
    expect(refused).toMatchObject({ status: 400, body: { code: 'invalid_data' } });
    expect(refused.body.error).toMatch(/^authorization_key: /);
  });

  test('by a user among the owner’s members, and by entity', async () => {
    const { body: user } = await call(sandbox, 'createUser', {
      body: { linked_accounts: [{ type: 'custom_auth', custom_user_id: 'erin' }] },
    });
    const entity = { type: 'user', id: user.id } as const;
    const owner = { user_id: user.id };
    await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum', external_id: 'erins', owner } });
    await call(sandbox, 'createWallet', {
      body: { chain_type: 'ethereum', external_id: 'for-erin', entity },
    });
    expect(await find({ user_id: user.id })).toEqual(['erins']);
    expect(await find({ entity_id: user.id })).toEqual(['for-erin']);
    expect(await find({ user_id: 'did:service:cunknown' })).toEqual([]);
    const both = { user_id: user.id, authorization_key: aliceKey.publicKey };
    expect(await refusal(sandbox, 'listWallets', { query: both })).toMatchObject({
      status: 400,
      body: { error: 'authorization_key: expected `user_id` or `authorization_key`, not both' },
    });
  });

  test('wallets of another app are never listed', async () => {
    const { body } = await sandbox.dispatcher.request({
      origin: sandbox.baseUrl,
      path: '/_sandbox/apps',
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{}',
    });
    const { id, secret } = (await body.json()) as { id: string; secret: string };
    const other = { ...sandbox, appId: id, appSecret: secret };
    expect((await call(other, 'listWallets', {})).body).toEqual({ data: [], next_cursor: null });
  });
});

describe('pages', () => {
  test('paging returns every wallet once, newest first, while others are created', async () => {
    await using sandbox = await startSandbox({ seedData: false });
    const make = async (count: number) => {
      const wallets = Array.from({ length: count }, () => ({ chain_type: 'solana' as const }));
      const { body } = await call(sandbox, 'createWalletsBatch', { body: { wallets } });
      return body.results.map((result) => (result.success ? result.wallet.id : ''));
    };
    const ids: string[] = [];
    for (let round = 0; round < 4; round += 1) {
      ids.push(...(await make(6)));
      sandbox.clock.advance(1000);
    }
    const met: Wallet[] = [];
    let cursor: string | undefined;
    do {
      const { body } = await call(sandbox, 'listWallets', { query: { limit: 7, ...(cursor && { cursor }) } });
      met.push(...body.data);
      cursor = body.next_cursor ?? undefined;
      // Newer wallets precede the first page, so they are not listed and shift nothing.
      await make(2);
    } while (cursor !== undefined);
    expect(met.map((wallet) => wallet.id).sort()).toEqual([...ids].sort());
    const order = met.map((wallet) => wallet.created_at);
    expect(order).toEqual([...order].sort((left, right) => right - left));
  });

  test('the last page has no next cursor, even if it is full', async () => {
    await using sandbox = await startSandbox();
    const { body } = await call(sandbox, 'listWallets', { query: { limit: 4 } });
    expect(body).toEqual({ data: expect.any(Array), next_cursor: null });
    expect(body.data).toHaveLength(4);
  });

  test.each([
    { query: { cursor: 'nothing' }, error: 'cursor: expected the `next_cursor` of a previous page' },
    { query: { limit: 101 }, error: expect.stringMatching(/^limit: /) },
    { query: { limit: 0 }, error: expect.stringMatching(/^limit: /) },
  ])('refuses $query', async ({ query, error }) => {
    await using sandbox = await startSandbox();
    const refused = await refusal(sandbox, 'listWallets', { query });
    expect(refused).toMatchObject({ status: 400, body: { error, code: 'invalid_data' } });
  });
});
