import { describe, expect, test } from 'vitest';
import { call, refusal } from '../support/call.ts';
import { fund } from '../support/fund.ts';
import { asOtherApp } from '../support/other-app.ts';
import { startSandbox, type TestSandbox } from '../support/sandbox.ts';

describe('accounts', () => {
  const absent = { status: 404, body: { error: 'Account not found' } };
  const nowhere = `c${'0'.repeat(24)}`;

  async function walletNamed(sandbox: TestSandbox, externalId: string) {
    const { body } = await call(sandbox, 'getWallet', { path: { wallet_id: `ext_wal_${externalId}` } });
    const { id, chain_type, address } = body;
    return { id, chain_type, address };
  }

  async function makeWallet(
    sandbox: TestSandbox,
    chain_type: 'ethereum' | 'solana' | 'stellar' = 'ethereum',
  ) {
    const { body } = await call(sandbox, 'createWallet', { body: { chain_type } });
    return { id: body.id, chain_type: body.chain_type, address: body.address };
  }

  test('an account groups existing wallets in the given order', async () => {
    await using sandbox = await startSandbox();
    const [solana, ethereum] = [
      await walletNamed(sandbox, 'acme-solana'),
      await walletNamed(sandbox, 'alice'),
    ];
    const { body: made } = await call(sandbox, 'createAccount', {
      body: { display_name: 'Treasury', wallet_ids: [solana.id, ethereum.id] },
    });
    expect(made).toEqual({
      id: expect.stringMatching(/^c[0-9a-z]{24}$/),
      display_name: 'Treasury',
      wallets: [solana, ethereum],
    });
    expect((await call(sandbox, 'getAccount', { path: { account_id: made.id } })).body).toEqual(made);
  });

  test('an account is created with new wallets without an owner', async () => {
    await using sandbox = await startSandbox();
    const { body: made } = await call(sandbox, 'createAccount', {
      body: {
        wallets_configuration: [
          { chain_type: 'ethereum' },
          { chain_type: 'solana' },
          { chain_type: 'ethereum' },
        ],
      },
    });
    expect(made.display_name).toBeNull();
    expect(made.wallets.map(({ chain_type }) => chain_type)).toEqual(['ethereum', 'solana', 'ethereum']);
    for (const wallet of made.wallets) {
      const { body } = await call(sandbox, 'getWallet', { path: { wallet_id: wallet.id } });
      expect(body).toMatchObject({ ...wallet, owner_id: null, policy_ids: [] });
    }
  });

  test('wallets of an account can be at a custodian, whom answers name', async () => {
    await using sandbox = await startSandbox();
    const custody = { provider: 'bridge', provider_user_id: 'cust_8f14e45fceea167a' } as const;
    const { body: made } = await call(sandbox, 'createAccount', {
      body: { wallets_configuration: [{ chain_type: 'ethereum', custody }, { chain_type: 'solana' }] },
    });
    expect(made.wallets.map((wallet) => wallet.custody)).toEqual([custody, undefined]);
    const [held, own] = made.wallets;
    const { body: wallet } = await call(sandbox, 'getWallet', { path: { wallet_id: held!.id } });
    expect(wallet).toMatchObject({ custody, chain: 'base', address: held!.address });
    expect((await call(sandbox, 'getWallet', { path: { wallet_id: own!.id } })).body.custody).toBeUndefined();
    const path = { account_id: made.id };
    const { body: grown } = await call(sandbox, 'updateAccount', {
      path,
      body: { wallets_configuration: [{ chain_type: 'solana', custody }] },
    });
    expect(grown.wallets.map((each) => each.custody)).toEqual([custody, undefined, custody]);
    expect((await call(sandbox, 'getAccount', { path })).body).toEqual(grown);
    const stranger = { ...custody, provider_user_id: 'unknown_customer' };
    const refused = await refusal(sandbox, 'createAccount', {
      body: {
        wallets_configuration: [{ chain_type: 'ethereum' }, { chain_type: 'ethereum', custody: stranger }],
      },
    });
    expect(refused).toMatchObject({
      status: 400,
      body: {
        code: 'invalid_data',
        error: expect.stringContaining('/wallets_configuration/1/custody/provider_user_id'),
      },
    });
  });

  test('a replay under an idempotency key creates no second account', async () => {
    await using sandbox = await startSandbox();
    const body = { wallets_configuration: [{ chain_type: 'ethereum' as const }] };
    const first = await call(sandbox, 'createAccount', { body }, { idempotencyKey: 'account-1' });
    const again = await call(sandbox, 'createAccount', { body }, { idempotencyKey: 'account-1' });
    expect(again.body).toEqual(first.body);
    expect((await call(sandbox, 'listAccounts', {})).body.data).toEqual([first.body]);
  });

  test('an account can be renamed and have up to five wallets', async () => {
    await using sandbox = await startSandbox();
    const wallet = await walletNamed(sandbox, 'acme-ethereum');
    const { body: made } = await call(sandbox, 'createAccount', {
      body: { display_name: 'Treasury', wallet_ids: [wallet.id] },
    });
    const path = { account_id: made.id };
    const renamed = await call(sandbox, 'updateAccount', { path, body: { display_name: 'Treasury EU' } });
    expect(renamed.body).toEqual({ ...made, display_name: 'Treasury EU' });

    const solana = await walletNamed(sandbox, 'acme-solana');
    const grown = await call(sandbox, 'updateAccount', {
      path,
      body: { display_name: 'Both', wallet_ids: [solana.id] },
    });
    expect(grown.body).toEqual({ id: made.id, display_name: 'Both', wallets: [wallet, solana] });

    const twoMore = {
      wallets_configuration: [{ chain_type: 'ethereum' as const }, { chain_type: 'solana' as const }],
    };
    const four = await call(sandbox, 'updateAccount', { path, body: twoMore });
    expect(four.body.wallets).toHaveLength(4);
    expect(await refusal(sandbox, 'updateAccount', { path, body: twoMore })).toMatchObject({
      status: 400,
      body: {
        code: 'invalid_data',
        error: '/wallets_configuration: expected at most 5 wallets in an account, which already has 4',
      },
    });
    expect(
      await refusal(sandbox, 'updateAccount', { path, body: { wallet_ids: [solana.id] } }),
    ).toMatchObject({
      status: 400,
      body: {
        code: 'invalid_data',
        error: `/wallet_ids/0: the wallet \`${solana.id}\` is already in the account`,
      },
    });
    expect((await call(sandbox, 'getAccount', { path })).body).toEqual(four.body);
  });

  test('a wallet that is absent, archived, of another app or of an extended chain cannot be added to an account', async () => {
    await using sandbox = await startSandbox();
    const own = await makeWallet(sandbox);
    const archived = await makeWallet(sandbox);
    await call(sandbox, 'archiveWallet', { path: { wallet_id: archived.id } });
    const stellar = await makeWallet(sandbox, 'stellar');
    const foreign = await makeWallet(await asOtherApp(sandbox));
    for (const [id, message] of [
      ['z'.repeat(24), `no wallet \`${'z'.repeat(24)}\``],
      [foreign.id, `no wallet \`${foreign.id}\``],
      [archived.id, `no wallet \`${archived.id}\``],
      [stellar.id, 'expected a wallet on ethereum or solana, got stellar'],
    ] as const) {
      const { status, body } = await refusal(sandbox, 'createAccount', {
        body: { wallet_ids: [own.id, id] },
      });
      expect({ status, body }).toEqual({
        status: 400,
        body: {
          error: `/wallet_ids/1: ${message}`,
          code: 'invalid_data',
          data: { issues: [{ in: 'body', pointer: '/wallet_ids/1', message }] },
        },
      });
    }
    expect((await call(sandbox, 'listAccounts', {})).body).toEqual({ data: [], next_cursor: null });
  });

  test.each([
    ['no wallet at all', { display_name: 'x', wallet_ids: [] }],
    ['six wallets', { wallets_configuration: Array.from({ length: 6 }, () => ({ chain_type: 'ethereum' })) }],
    ['a wallet twice', { wallet_ids: ['a', 'a'] }],
    ['both kinds of wallets', { wallet_ids: ['a'], wallets_configuration: [{ chain_type: 'solana' }] }],
    ['neither kind of wallets', { display_name: 'x' }],
    ['an empty name', { display_name: '', wallets_configuration: [{ chain_type: 'solana' }] }],
    [
      'a name of a megabyte',
      { display_name: 'x'.repeat(500_000), wallets_configuration: [{ chain_type: 'solana' }] },
    ],
    ['a wallet of an extended chain', { wallets_configuration: [{ chain_type: 'stellar' }] }],
  ])('accounts: %s is refused', async (_, body) => {
    await using sandbox = await startSandbox();
    const { status, body: reported } = await refusal(sandbox, 'createAccount', { body });
    expect({ status, code: reported.code }).toEqual({ status: 400, code: 'invalid_data' });
  });

  test('pages go from the newest to the oldest, and a search matches any part of a name', async () => {
    await using sandbox = await startSandbox();
    const { id } = await walletNamed(sandbox, 'acme-ethereum');
    const ids: string[] = [];
    for (const display_name of ['Payroll ÄRZTE', 'Treasury', '100%_\\']) {
      sandbox.clock.advance(1);
      ids.unshift(
        (await call(sandbox, 'createAccount', { body: { display_name, wallet_ids: [id] } })).body.id,
      );
    }
    const first = await call(sandbox, 'listAccounts', { query: { limit: 2 } });
    expect(first.body).toMatchObject({ data: [{ id: ids[0] }, { id: ids[1] }], next_cursor: ids[1] });
    const second = await call(sandbox, 'listAccounts', { query: { limit: 2, cursor: ids[1]! } });
    expect(second.body).toMatchObject({ data: [{ id: ids[2] }], next_cursor: null });

    for (const [search, found] of [
      ['TREAS', [ids[1]]],
      ['ärzte', [ids[2]]],
      ['r', [ids[1], ids[2]]],
      ['%', [ids[0]]],
      ['_\\', [ids[0]]],
      ['unknown', []],
    ] as const) {
      const { body } = await call(sandbox, 'listAccounts', { query: { search } });
      expect(body.data.map((account) => account.id)).toEqual(found);
    }
    for (const cursor of [nowhere, 'X']) {
      const { status, body } = await refusal(sandbox, 'listAccounts', { query: { cursor } });
      expect({ status, code: body.code }).toEqual({ status: 400, code: 'invalid_data' });
    }
  });

  test('an account of another app is not found by any operation', async () => {
    await using sandbox = await startSandbox();
    const { id } = await walletNamed(sandbox, 'acme-ethereum');
    const { body: made } = await call(sandbox, 'createAccount', { body: { wallet_ids: [id] } });
    const other = await asOtherApp(sandbox);
    for (const [caller, account_id] of [
      [other, made.id],
      [sandbox, nowhere],
      [sandbox, 'X'],
    ] as const) {
      const path = { account_id };
      expect(await refusal(caller, 'getAccount', { path })).toEqual(absent);
      expect(await refusal(caller, 'getAccountBalance', { path })).toEqual(absent);
      expect(await refusal(caller, 'updateAccount', { path, body: { display_name: 'x' } })).toEqual(absent);
    }
    expect((await call(other, 'listAccounts', {})).body).toEqual({ data: [], next_cursor: null });
  });
});

describe('getAccountBalance', () => {
  async function accountOf(sandbox: TestSandbox, ...externalIds: string[]) {
    const wallets = [];
    for (const externalId of externalIds) {
      wallets.push((await call(sandbox, 'getWallet', { path: { wallet_id: `ext_wal_${externalId}` } })).body);
    }
    const body = { wallet_ids: wallets.map(({ id }) => id) };
    const { body: account } = await call(sandbox, 'createAccount', { body });
    return {
      path: { account_id: account.id },
      addresses: wallets.map(({ address }) => address) as [string, string, string],
    };
  }

  const usd = (value: string) => ({ value, currency: 'usd' });
  const nothing = { total: usd('0'), assets: [], assets_by_chain: [] };

  test('an account of empty wallets is worth nothing', async () => {
    await using sandbox = await startSandbox();
    const { path } = await accountOf(sandbox, 'acme-ethereum', 'acme-solana');
    expect((await call(sandbox, 'getAccountBalance', { path })).body).toEqual(nothing);
    expect((await call(sandbox, 'getAccountBalance', { path, query: { testnet_mode: true } })).body).toEqual(
      nothing,
    );
  });

  test('balances of wallets and chains are summed, by asset and by asset and chain', async () => {
    await using sandbox = await startSandbox();
    const { path, addresses } = await accountOf(sandbox, 'acme-ethereum', 'alice', 'acme-solana');
    const [acme, alice, solana] = addresses;
    await fund(sandbox, acme, { chain: 'ethereum', asset: 'eth', rawAmount: 400_000_000_000_000_001n });
    await fund(sandbox, alice, { chain: 'ethereum', asset: 'eth', rawAmount: 600_000_000_000_000_000n });
    await fund(sandbox, alice, { chain: 'base', asset: 'usdc', rawAmount: 100_000_000n });
    await fund(sandbox, solana, { chain: 'solana', asset: 'usdc', rawAmount: 2_400_000n });
    // 18 decimals here, 6 there.
    await fund(sandbox, acme, { chain: 'bsc', asset: 'usdc', rawAmount: 5n });
    await fund(sandbox, acme, { chain: 'sepolia', asset: 'eth', rawAmount: 7n * 10n ** 18n });

    const { body } = await call(sandbox, 'getAccountBalance', { path });
    const eth = { symbol: 'ETH', amount: '1.000000000000000001', price: usd('3000.00') };
    const usdc = { symbol: 'USDC', price: usd('1.00') };
    expect(body).toEqual({
      total: usd('3102.40'),
      assets: [eth, { ...usdc, amount: '102.400000000000000005' }],
      assets_by_chain: [
        { ...eth, chain_id: 'eip155:1' },
        { ...usdc, amount: '100', chain_id: 'eip155:8453' },
        { ...usdc, amount: '0.000000000000000005', chain_id: 'eip155:56' },
        { ...usdc, amount: '2.4', chain_id: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp' },
      ],
    });
  });

  test('test networks are separate from main networks and are worth nothing', async () => {
    await using sandbox = await startSandbox();
    const { path, addresses } = await accountOf(sandbox, 'acme-ethereum');
    await fund(sandbox, addresses[0], { chain: 'base_sepolia', asset: 'usdc', rawAmount: 3_000_000n });
    expect((await call(sandbox, 'getAccountBalance', { path })).body).toEqual(nothing);
    const tested = { symbol: 'USDC', amount: '3', price: usd('0') };
    expect((await call(sandbox, 'getAccountBalance', { path, query: { testnet_mode: true } })).body).toEqual({
      total: usd('0'),
      assets: [tested],
      assets_by_chain: [{ ...tested, chain_id: 'eip155:84532' }],
    });
  });

  test('fractions of a cent are summed exactly and rounded once at the end', async () => {
    await using sandbox = await startSandbox();
    const { path, addresses } = await accountOf(sandbox, 'acme-ethereum', 'alice', 'acme-solana');
    for (const address of addresses.slice(0, 2)) {
      await fund(sandbox, address, { chain: 'base', asset: 'usdc', rawAmount: 4_000n });
    }
    // 0.004 + 0.004 dollars: each alone would be rounded away.
    expect((await call(sandbox, 'getAccountBalance', { path })).body.total).toEqual(usd('0.01'));
  });

  test('the balance of two wallets with the same key counts once', async () => {
    await using sandbox = await startSandbox();
    const { path, addresses } = await accountOf(sandbox, 'acme-ethereum', 'alice');
    await fund(sandbox, addresses[0], { chain: 'base', asset: 'eth', rawAmount: 10n ** 18n });
    await sandbox.database.orm.em
      .fork()
      .execute(`update wallets set address = '${addresses[0]}' where external_id = 'alice'`);
    expect((await call(sandbox, 'getAccountBalance', { path })).body.total).toEqual(usd('3000.00'));
  });
});
