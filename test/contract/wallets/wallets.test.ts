import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { aliceKey, bobKey } from '../../../mocks/authorization-keys.ts';
import type { Tables } from '../../../src/domain/tables.ts';
import type { Wallet } from '../../../src/generated/schemas.ts';
import { call, refusal } from '../../support/call.ts';
import { configureApp } from '../../support/other-app.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

describe('getWallet', () => {
  const notFound = { status: 404, body: { error: 'Wallet not found' } };

  test('a wallet is found by its id and by its external id', async () => {
    await using sandbox = await startSandbox();
    const { body: wallet } = await call(sandbox, 'getWallet', {
      path: { wallet_id: 'ext_wal_acme-ethereum' },
    });
    expect(wallet).toMatchObject({
      external_id: 'acme-ethereum',
      display_name: 'Acme',
      chain_type: 'ethereum',
    });
    expect((await call(sandbox, 'getWallet', { path: { wallet_id: wallet.id } })).body).toEqual(wallet);
  });

  test('an absent wallet cannot be distinguished from one of another app', async () => {
    await using sandbox = await startSandbox();
    const { body: wallet } = await call(sandbox, 'createWallet', {
      body: { chain_type: 'ethereum', external_id: 'mine' },
    });
    const other = { ...sandbox, ...(await makeApp(sandbox)) };
    for (const wallet_id of ['z'.repeat(24), 'ext_wal_nobodys', 'ext_wal_']) {
      expect(await refusal(sandbox, 'getWallet', { path: { wallet_id } })).toEqual(notFound);
    }
    for (const wallet_id of [wallet.id, 'ext_wal_mine']) {
      expect(await refusal(other, 'getWallet', { path: { wallet_id } })).toEqual(notFound);
    }
  });

  test('an archived wallet is returned only on request', async () => {
    await using sandbox = await startSandbox();
    const path = { wallet_id: 'ext_wal_acme-ethereum' };
    const { body: archived } = await call(sandbox, 'archiveWallet', { path });
    expect(await refusal(sandbox, 'getWallet', { path })).toEqual(notFound);
    expect(await refusal(sandbox, 'getWallet', { path, query: { include_archived: false } })).toEqual(
      notFound,
    );
    expect((await call(sandbox, 'getWallet', { path, query: { include_archived: true } })).body).toEqual(
      archived,
    );
  });

  async function makeApp(sandbox: Awaited<ReturnType<typeof startSandbox>>) {
    const { body, statusCode } = await sandbox.dispatcher.request({
      origin: sandbox.baseUrl,
      path: '/_sandbox/apps',
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'Globex' }),
    });
    expect(statusCode).toBe(200);
    const { id, secret } = (await body.json()) as { id: string; secret: string };
    return { appId: id, appSecret: secret };
  }
});

describe('getWalletByAddress', () => {
  test('an address is found in any letter case of its hex', async () => {
    await using sandbox = await startSandbox();
    const { body: wallet } = await call(sandbox, 'getWallet', {
      path: { wallet_id: 'ext_wal_acme-ethereum' },
    });
    const digits = wallet.address.slice(2);
    for (const address of [wallet.address, `0x${digits.toLowerCase()}`, `0x${digits.toUpperCase()}`]) {
      expect((await call(sandbox, 'getWalletByAddress', { body: { address } })).body).toEqual(wallet);
    }
    const { body: solana } = await call(sandbox, 'getWallet', { path: { wallet_id: 'ext_wal_acme-solana' } });
    const { address } = solana;
    expect((await call(sandbox, 'getWalletByAddress', { body: { address } })).body).toEqual(solana);
  });

  test('an unknown address, and that of an archived wallet, is not found', async () => {
    await using sandbox = await startSandbox();
    const notFound = { status: 404, body: { error: 'Wallet not found' } };
    const nobodys = `0x${'00'.repeat(20)}`;
    expect(await refusal(sandbox, 'getWalletByAddress', { body: { address: nobodys } })).toEqual(notFound);

    const path = { wallet_id: 'ext_wal_acme-ethereum' };
    const { body: archived } = await call(sandbox, 'archiveWallet', { path });
    const { address } = archived;
    expect(await refusal(sandbox, 'getWalletByAddress', { body: { address } })).toEqual(notFound);
    const found = await call(sandbox, 'getWalletByAddress', { body: { address, include_archived: true } });
    expect(found.body).toEqual(archived);
  });
});

describe('listWallets', () => {
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
        const { body } = await call(sandbox, 'listWallets', {
          query: { limit: 7, ...(cursor && { cursor }) },
        });
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
    ])('pages: refuses $query', async ({ query, error }) => {
      await using sandbox = await startSandbox();
      const refused = await refusal(sandbox, 'listWallets', { query });
      expect(refused).toMatchObject({ status: 400, body: { error, code: 'invalid_data' } });
    });
  });
});

describe('createWalletsBatch', () => {
  test('each wallet of a batch is created or refused independently, in order', async () => {
    await using sandbox = await startSandbox();
    const { body } = await call(sandbox, 'createWalletsBatch', {
      body: {
        wallets: [
          { chain_type: 'ethereum', external_id: 'first' },
          { chain_type: 'solana', external_id: 'first' },
          { chain_type: 'ethereum', owner_id: 'z'.repeat(24) },
          { chain_type: 'solana', display_name: 'Last' },
        ],
      },
    });
    expect(body.results).toEqual([
      {
        index: 0,
        success: true,
        wallet: expect.objectContaining({ chain_type: 'ethereum', external_id: 'first' }),
      },
      {
        index: 1,
        success: false,
        error: 'a wallet with the external id `first` already exists',
        code: 'resource_conflict',
      },
      {
        index: 2,
        success: false,
        error: 'Unable to find the specified key quorums for this app.',
        code: 'invalid_data',
      },
      {
        index: 3,
        success: true,
        wallet: expect.objectContaining({ chain_type: 'solana', display_name: 'Last' }),
      },
    ]);
    for (const result of body.results) {
      if (!result.success) continue;
      const { body: stored } = await call(sandbox, 'getWallet', { path: { wallet_id: result.wallet.id } });
      expect(stored).toEqual(result.wallet);
    }
  });

  test('a hundred wallets can be created at once, not more', async () => {
    await using sandbox = await startSandbox({ seedData: false });
    const wallets = Array.from({ length: 100 }, () => ({ chain_type: 'ethereum' as const }));
    const { body } = await call(sandbox, 'createWalletsBatch', { body: { wallets } });
    const addresses = body.results.map((result) => (result.success ? result.wallet.address : undefined));
    expect(new Set(addresses).size).toBe(100);
    expect((await call(sandbox, 'listWallets', {})).body.data).toHaveLength(100);

    const tooMany = await refusal(sandbox, 'createWalletsBatch', {
      body: { wallets: [...wallets, ...wallets] },
    });
    expect(tooMany).toMatchObject({ status: 400, body: { code: 'invalid_data' } });
    expect(await refusal(sandbox, 'createWalletsBatch', { body: { wallets: [] } })).toMatchObject({
      status: 400,
    });
  });
});

describe('updateWallet', () => {
  const path = { wallet_id: 'ext_wal_acme-ethereum' };

  test('a wallet without an owner is changed with the app secret only', async () => {
    await using sandbox = await startSandbox();
    const { body: before } = await call(sandbox, 'getWallet', { path });
    const { body: quorum } = await call(sandbox, 'createKeyQuorum', {
      body: { public_keys: [bobKey.publicKey] },
    });
    const renamed = await call(sandbox, 'updateWallet', {
      path,
      body: { display_name: 'Renamed', additional_signers: [{ signer_id: quorum.id }] },
    });
    expect(renamed.body).toEqual({
      ...before,
      display_name: 'Renamed',
      additional_signers: [{ signer_id: quorum.id }],
    });
    const cleared = await call(sandbox, 'updateWallet', {
      path,
      body: { display_name: null, additional_signers: [] },
    });
    const { display_name: _, ...unnamed } = before;
    expect(cleared.body).toEqual(unnamed);
    expect((await call(sandbox, 'getWallet', { path })).body).toEqual(unnamed);
  });

  test("setting the first owner needs no signature; changing or removing it needs the owner's", async () => {
    await using sandbox = await startSandbox();
    const owned = await call(sandbox, 'updateWallet', {
      path,
      body: { owner: { public_key: aliceKey.publicKey } },
    });
    expect(owned.body.owner_id).not.toBeNull();

    const toBob = { owner: { public_key: bobKey.publicKey } };
    expect(await refusal(sandbox, 'updateWallet', { path, body: toBob })).toMatchObject({
      status: 401,
      body: { code: 'missing_or_empty_authorization_header' },
    });
    const byBob = await refusal(
      sandbox,
      'updateWallet',
      { path, body: toBob },
      { signWith: [bobKey.privateKey] },
    );
    expect(byBob).toMatchObject({ status: 401, body: { code: 'zero_correct_authorization_signatures' } });

    const passed = await call(
      sandbox,
      'updateWallet',
      { path, body: toBob },
      { signWith: [aliceKey.privateKey] },
    );
    expect(passed.body.owner_id).not.toBe(owned.body.owner_id);
    const freed = await call(
      sandbox,
      'updateWallet',
      { path, body: { owner: null } },
      { signWith: [bobKey.privateKey] },
    );
    expect(freed.body.owner_id).toBeNull();
  });

  test('an invalid change is refused and changes nothing', async () => {
    await using sandbox = await startSandbox();
    const { body: before } = await call(sandbox, 'getWallet', { path });
    const cases = [
      { body: {}, error: 'body: must have at least 1 property' },
      { body: { external_id: 'other' }, error: '/external_id: is already set and cannot be changed' },
      {
        body: { display_name: 'Half', additional_signers: [{ signer_id: 'z'.repeat(24) }] },
        error: 'Unable to find the specified key quorums for this app.',
      },
    ];
    for (const { body, error } of cases) {
      expect(await refusal(sandbox, 'updateWallet', { path, body })).toMatchObject({
        status: 400,
        body: { error, code: 'invalid_data' },
      });
    }
    expect((await call(sandbox, 'getWallet', { path })).body).toEqual(before);
  });

  test('an external id is set on creation, or later if the app allows it', async () => {
    await using sandbox = await startSandbox();
    const { body: wallet } = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
    const late = { path: { wallet_id: wallet.id }, body: { external_id: 'late' } };
    expect(await refusal(sandbox, 'updateWallet', late)).toMatchObject({
      status: 400,
      body: { error: '/external_id: can only be set when the wallet is created' },
    });
    const { statusCode } = await sandbox.dispatcher.request({
      origin: sandbox.baseUrl,
      path: `/_sandbox/apps/${sandbox.appId}`,
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ settings: { late_external_id: true } }),
    });
    expect(statusCode).toBe(200);
    const taken = await refusal(sandbox, 'updateWallet', { ...late, body: { external_id: 'acme-ethereum' } });
    expect(taken).toEqual({
      status: 409,
      body: {
        error: 'a wallet with the external id `acme-ethereum` already exists',
        code: 'resource_conflict',
      },
    });
    expect((await call(sandbox, 'updateWallet', late)).body).toEqual({ ...wallet, external_id: 'late' });
  });
});

describe('assignWalletEntity', () => {
  const nowMs = Date.UTC(2026, 0, 1);
  const path = { wallet_id: 'ext_wal_acme-ethereum' };

  test('a wallet is assigned to a user once; its owner does not change', async () => {
    await using sandbox = await startSandbox();
    const { body: before } = await call(sandbox, 'getWallet', { path });
    const { body: user } = await call(sandbox, 'createUser', {
      body: { linked_accounts: [{ type: 'custom_auth', custom_user_id: 'erin' }] },
    });
    const entity = { type: 'user', id: user.id } as const;
    const { body } = await call(sandbox, 'assignWalletEntity', { path, body: entity });
    expect(body).toEqual({
      id: expect.stringMatching(/^[a-z][0-9a-z]{23}$/),
      wallet_id: before.id,
      entity,
      created_at: nowMs,
      updated_at: nowMs,
    });
    expect((await call(sandbox, 'getWallet', { path })).body).toEqual({ ...before, entity });

    expect(await refusal(sandbox, 'assignWalletEntity', { path, body: entity })).toEqual({
      status: 409,
      body: { error: 'the wallet already belongs to an entity', code: 'wallet_entity_already_set' },
    });
  });

  test('an unknown wallet or user is refused', async () => {
    await using sandbox = await startSandbox();
    const users = { type: 'user', id: 'did:service:cunknown' };
    expect(await refusal(sandbox, 'assignWalletEntity', { path, body: users })).toEqual({
      status: 404,
      body: { error: 'User not found' },
    });
    const organizations = { type: 'organization', id: 'cunknown' };
    expect(await refusal(sandbox, 'assignWalletEntity', { path, body: organizations })).toEqual({
      status: 404,
      body: { error: 'Organization not found' },
    });
  });
});

describe('archiveWallet', () => {
  const nowMs = Date.UTC(2026, 0, 1);
  const path = { wallet_id: 'ext_wal_acme-ethereum' };
  const notFound = { status: 404, body: { error: 'Wallet not found' } };

  test('an archived wallet is shown unchanged with the time, and can no longer be used', async () => {
    await using sandbox = await startSandbox();
    const { body: before } = await call(sandbox, 'getWallet', { path });
    const { body: archived } = await call(sandbox, 'archiveWallet', { path });
    expect(archived).toEqual({ ...before, archived_at: nowMs });

    const message = { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } };
    expect(await refusal(sandbox, 'archiveWallet', { path })).toEqual(notFound);
    expect(await refusal(sandbox, 'walletRpc', { path, body: message })).toEqual(notFound);
    expect(await refusal(sandbox, 'updateWallet', { path, body: { display_name: 'Late' } })).toEqual(
      notFound,
    );
    const entity = { type: 'user', id: 'did:service:cunknown' };
    expect(await refusal(sandbox, 'assignWalletEntity', { path, body: entity })).toEqual(notFound);
  });

  test('the event is recorded with the change', async () => {
    await using sandbox = await startSandbox();
    const { body: wallet } = await call(sandbox, 'archiveWallet', { path });
    const events = await sandbox.database.orm.em
      .fork()
      .getKysely<Tables>()
      .selectFrom('outbox_events')
      .select(['id', 'app_id', 'type', 'payload', 'resource_id', 'created_at_ms'])
      .where('type', '=', 'wallet.archived')
      .execute();
    expect(events.map((event) => ({ ...event, payload: JSON.parse(event.payload) }))).toEqual([
      {
        id: expect.stringMatching(/^msg_[a-z][0-9a-z]{23}$/),
        app_id: sandbox.appId,
        type: 'wallet.archived',
        payload: {
          type: 'wallet.archived',
          wallet_id: wallet.id,
          wallet_address: wallet.address,
          chain_type: 'ethereum',
          archived_at: nowMs / 1000,
        },
        resource_id: wallet.id,
        created_at_ms: nowMs,
      },
    ]);
  });

  describe('the app setting `archive_requires_owner`', () => {
    const owner = { public_key: aliceKey.publicKey };
    const refusedCode = async (sandbox: TestSandbox, walletId: string, signWith: string[]) =>
      (await refusal(sandbox, 'archiveWallet', { path: { wallet_id: walletId } }, { signWith })).body.code;

    test('the app setting `archive_requires_owner` requires the owner, and no signature for a wallet without one', async () => {
      await using sandbox = await startSandbox();
      await configureApp(sandbox, { archive_requires_owner: true });
      const signerId = (await call(sandbox, 'createKeyQuorum', { body: { public_keys: [bobKey.publicKey] } }))
        .body.id;
      const { body: wallet } = await call(sandbox, 'createWallet', {
        body: { chain_type: 'ethereum', owner, additional_signers: [{ signer_id: signerId }] },
      });
      expect(await refusedCode(sandbox, wallet.id, [])).toBe('missing_or_empty_authorization_header');
      expect(await refusedCode(sandbox, wallet.id, [bobKey.privateKey])).toBe(
        'zero_correct_authorization_signatures',
      );
      const signed = { signWith: [aliceKey.privateKey] };
      const { body } = await call(sandbox, 'archiveWallet', { path: { wallet_id: wallet.id } }, signed);
      expect(body.archived_at).toBe(nowMs);
      const { body: free } = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
      await call(sandbox, 'archiveWallet', { path: { wallet_id: free.id } });
    });

    test('the app setting `archive_requires_owner` is off in a sandbox, as published, and accepts only true or false', async () => {
      await using sandbox = await startSandbox();
      const { body: wallet } = await call(sandbox, 'createWallet', {
        body: { chain_type: 'ethereum', owner },
      });
      await call(sandbox, 'archiveWallet', { path: { wallet_id: wallet.id } });
      await expect(configureApp(sandbox, { archive_requires_owner: 'yes' })).rejects.toThrow(
        '/settings/archive_requires_owner: expected true or false',
      );
    });
  });
});
