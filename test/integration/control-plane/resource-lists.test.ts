import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { aliceKey } from '../../../mocks/authorization-keys.ts';
import type { Tables } from '../../../src/domain/tables.ts';
import type {
  SandboxAggregations,
  SandboxBooks,
  SandboxKeyQuorums,
  SandboxPolicies,
  SandboxWallet,
  SandboxWallets,
} from '../../../src/sandbox/generated/schemas.ts';
import { call } from '../../support/call.ts';
import { fund, fundToken } from '../../support/fund.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { recordStatements } from '../plans.ts';

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());
beforeEach(() => sandbox.reset());

async function get<Body>(path: string): Promise<Body> {
  const answer = await sandbox.dispatcher.request({
    ...{ origin: sandbox.baseUrl, path: `/_sandbox${path}`, method: 'GET' },
  });
  const body = await answer.body.json();
  expect({ status: answer.statusCode, body }).toMatchObject({ status: 200 });
  return body as Body;
}

const wallets = async (query = ''): Promise<SandboxWallet[]> =>
  (await get<SandboxWallets>(`/wallets${query}`)).data;

async function walletNamed(name: string): Promise<SandboxWallet> {
  return (await wallets()).find((wallet) => wallet.name === name)!;
}

test('wallets are listed with the names of their owners and policies', async () => {
  const listed = await wallets();
  const byName = new Map(listed.map((wallet) => [wallet.name, wallet]));
  expect([...byName.keys()].sort()).toEqual(['Acme', 'Acme on Solana', 'Alice', 'Treasury']);
  expect(byName.get('Acme')!.owner).toBeNull();
  const [treasury, alice] = [byName.get('Treasury'), byName.get('Alice')];
  expect([treasury, alice].map((wallet) => [wallet!.owner!.threshold, wallet!.owner!.size])).toEqual([
    [2, 3],
    [1, 2],
  ]);
  expect(treasury!.owner).toMatchObject({
    display_name: 'Treasury',
    members: ['Alice', 'Bob', 'Carol'].map((name) => ({ type: 'public_key', name })),
  });
  expect(treasury!.policies.map(({ name }) => name)).toEqual(['At most 0.1 ether at once']);
  expect(alice!.owner!.members.map(({ type, name }) => [type, name])).toEqual([
    ['public_key', 'Alice'],
    ['user', 'alice@example.com'],
  ]);
  const { body: shown } = await call(sandbox, 'getWallet', { path: { wallet_id: treasury!.id } });
  expect(treasury).toMatchObject({
    ...{ address: shown.address, external_id: 'treasury', created_at_ms: shown.created_at },
    ...{ chain_type: 'ethereum', archived_at_ms: null, app_id: sandbox.appId },
  });
  expect(treasury!.owner!.key_quorum_id).toBe(shown.owner_id);
  expect(treasury!.policies.map(({ id }) => id)).toEqual(shown.policy_ids);
});

test('members that are users or key quorums have their names', async () => {
  const email = { type: 'email', address: 'Dora@Example.com' } as const;
  const { body: user } = await call(sandbox, 'createUser', { body: { linked_accounts: [email] } });
  const nameless = await call(sandbox, 'createUser', {
    body: { linked_accounts: [{ type: 'custom_auth', custom_user_id: 'emil' }] },
  });
  const { body: inner } = await call(sandbox, 'createKeyQuorum', {
    body: { display_name: 'Operations', user_ids: [user.id] },
  });
  const { body: owner } = await call(sandbox, 'createKeyQuorum', {
    body: {
      ...{ public_keys: [aliceKey.publicKey], user_ids: [user.id, nameless.body.id] },
      ...{ key_quorum_ids: [inner.id], authorization_threshold: 2 },
    },
  });
  await call(sandbox, 'createWallet', {
    body: { chain_type: 'ethereum', display_name: 'Shared', owner_id: owner.id },
  });
  expect((await walletNamed('Shared')).owner).toEqual({
    key_quorum_id: owner.id,
    display_name: null,
    threshold: 2,
    size: 4,
    members: [
      { type: 'public_key', id: aliceKey.publicKey, name: 'Alice' },
      { type: 'user', id: user.id, name: 'dora@example.com' },
      { type: 'user', id: nameless.body.id, name: 'emil' },
      { type: 'key_quorum', id: inner.id, name: 'Operations' },
    ],
  });
});

test('the worth of a wallet is the sum of its balances', async () => {
  const acme = await walletNamed('Acme');
  const solana = await walletNamed('Acme on Solana');
  expect([acme.worth_usd, solana.worth_usd]).toEqual(['0', '0']);
  await fund(sandbox, acme.address, { chain: 'base', asset: 'eth', rawAmount: 15n * 10n ** 17n });
  await fund(sandbox, acme.address, { chain: 'base', asset: 'usdc', rawAmount: 12_345_678n });
  await fund(sandbox, acme.address, { chain: 'bsc', asset: 'usdc', rawAmount: 10n ** 18n });
  // Assets of test networks, and tokens that only have the symbol of an asset, are worth nothing.
  await fund(sandbox, acme.address, { chain: 'base_sepolia', asset: 'eth', rawAmount: 10n ** 18n });
  await fundToken(sandbox, acme.address, {
    ...{ chain: 'base', tokenAddress: `0x${'12'.repeat(20)}`, rawAmount: 10n ** 9n },
    ...{ decimals: 6, symbol: 'USDC' },
  });
  await fund(sandbox, solana.address, { chain: 'solana', asset: 'sol', rawAmount: 2n * 10n ** 9n });
  await fund(sandbox, solana.address, { chain: 'solana', asset: 'usdc', rawAmount: 500_000n });
  const worthOf = async ({ id }: SandboxWallet, chain: string[], asset: string[]): Promise<string> => {
    const { body } = await call(sandbox, 'getWalletBalance', {
      path: { wallet_id: id },
      query: { chain, asset, include_currency: 'usd' } as never,
    });
    const cents = body.balances.map(({ display_values: shown }) => Number(shown.usd) * 100);
    return (cents.reduce((sum, each) => sum + each, 0) / 100).toFixed(2);
  };
  expect((await walletNamed('Acme')).worth_usd).toBe(await worthOf(acme, ['base', 'bsc'], ['eth', 'usdc']));
  expect((await walletNamed('Acme on Solana')).worth_usd).toBe(
    await worthOf(solana, ['solana'], ['sol', 'usdc']),
  );
  expect((await walletNamed('Acme')).worth_usd).toBe('4513.35');
  expect((await walletNamed('Treasury')).worth_usd).toBe('0');

  await sandbox.chains.prices.move(new Map([['eth', '2000']]));
  expect((await walletNamed('Acme')).worth_usd).toBe('3013.35');
});

test('what a wallet has sent counts for its recipient', async () => {
  const acme = await walletNamed('Acme');
  await fund(sandbox, acme.address, { chain: 'base', asset: 'usdc', rawAmount: 10_000_000n });
  await fund(sandbox, acme.address, { chain: 'base', asset: 'eth', rawAmount: 10n ** 18n });
  const destination = { address: (await walletNamed('Treasury')).address };
  await call(sandbox, 'transferFromWallet', {
    path: { wallet_id: acme.id },
    body: { source: { asset: 'usdc', chain: 'base', amount: '4' }, destination },
  });
  await sandbox.chains.mine(undefined, 1);
  expect((await walletNamed('Treasury')).worth_usd).toBe('4.00');
  // The rest, less the fee of a transfer on Base.
  const left = Number((await walletNamed('Acme')).worth_usd);
  expect(left).toBeLessThan(3006);
  expect(left).toBeGreaterThan(3005.9);
});

test('a chain type without prices has no worth', async () => {
  await call(sandbox, 'createWallet', { body: { chain_type: 'stellar', display_name: 'Star' } });
  expect((await walletNamed('Star')).worth_usd).toBeNull();
});

test('archived wallets are listed, with the time', async () => {
  const acme = await walletNamed('Acme');
  await call(sandbox, 'archiveWallet', { path: { wallet_id: acme.id } }, { idempotencyKey: 'archive' });
  expect((await walletNamed('Acme')).archived_at_ms).toBe(sandbox.clock.now());
});

test('wallets are found by name, external id, address, id and app', async () => {
  const acme = await walletNamed('Acme');
  const namesOf = async (query: string): Promise<(string | null)[]> =>
    (await wallets(query)).map(({ name }) => name).sort();
  expect(await namesOf('?search=TREAS')).toEqual(['Treasury']);
  expect(await namesOf('?search=acme-eth')).toEqual(['Acme']);
  expect(await namesOf(`?search=${acme.address.toLowerCase()}`)).toEqual(['Acme']);
  expect(await namesOf(`?search=${acme.id.slice(3, 12)}`)).toEqual(['Acme']);
  expect(await namesOf('?search=acme')).toEqual(['Acme', 'Acme on Solana']);
  // Characters that a pattern of SQL would give a meaning.
  expect(await namesOf('?search=%25')).toEqual([]);
  expect(await namesOf('?search=_')).toEqual([]);
  await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum', display_name: 'Été_50%' } });
  expect(await namesOf(`?search=${encodeURIComponent('Été_50%')}`)).toEqual(['Été_50%']);
  expect(await namesOf('?app_id=another')).toEqual([]);
  expect(await namesOf(`?app_id=${sandbox.appId}&search=alice`)).toEqual(['Alice']);
});

test('pages of wallets follow each other', async () => {
  const all = await wallets();
  const first = await get<SandboxWallets>('/wallets?limit=3');
  const second = await get<SandboxWallets>(`/wallets?limit=3&cursor=${first.next_cursor}`);
  expect([...first.data, ...second.data]).toEqual(all);
  expect(second.next_cursor).toBeNull();
  const { statusCode, body } = await sandbox.dispatcher.request({
    ...{ origin: sandbox.baseUrl, path: '/_sandbox/wallets?cursor=nothing', method: 'GET' },
  });
  expect(statusCode).toBe(400);
  expect(await body.json()).toMatchObject({ code: 'invalid_data', error: expect.stringContaining('cursor') });
});

test('key quorums are listed with their members and wallets', async () => {
  const { data } = await get<SandboxKeyQuorums>('/key_quorums');
  const treasury = data.find((quorum) => quorum.display_name === 'Treasury')!;
  const wallet = await walletNamed('Treasury');
  expect(treasury).toEqual({
    ...{ id: wallet.owner!.key_quorum_id, app_id: sandbox.appId, display_name: 'Treasury' },
    ...{ threshold: 2, size: 3, members: wallet.owner!.members },
    ...{ wallets: [{ id: wallet.id, name: 'Treasury' }], wallet_count: 1 },
  });
  const { body: unused } = await call(sandbox, 'createKeyQuorum', {
    body: { public_keys: [aliceKey.publicKey], display_name: 'Nobody' },
  });
  const found = (await get<SandboxKeyQuorums>('/key_quorums')).data.find(({ id }) => id === unused.id);
  expect(found).toMatchObject({ threshold: 1, size: 1, wallets: [], wallet_count: 0 });
  expect((await get<SandboxKeyQuorums>('/key_quorums?app_id=another')).data).toEqual([]);
});

test('policies are listed with their rules, and with at most ten of their wallets', async () => {
  const treasury = await walletNamed('Treasury');
  const { id } = treasury.policies[0]!;
  for (let count = 0; count < 12; count += 1) {
    sandbox.clock.advance(1);
    await call(sandbox, 'createWallet', {
      body: { chain_type: 'ethereum', display_name: `Till ${count}`, policy_ids: [id] },
    });
  }
  const { data } = await get<SandboxPolicies>('/policies');
  const { body: shown } = await call(sandbox, 'getPolicy', { path: { policy_id: id } });
  expect(data.find((policy) => policy.id === id)).toMatchObject({
    ...{ name: shown.name, chain_type: 'ethereum', version: '1.0', owner_id: null, app_id: sandbox.appId },
    rules: shown.rules.map((rule) => ({
      ...{ id: rule.id, name: rule.name, method: rule.method, action: rule.action },
    })),
    wallets: Array.from({ length: 10 }, (_, place) => ({ name: `Till ${11 - place}` })),
    wallet_count: 13,
  });
});

test('aggregations are listed with their present sums and what limits them', async () => {
  const shop = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';
  const terms = {
    name: 'Spent in an hour',
    method: 'eth_signTransaction',
    metric: { field_source: 'ethereum_transaction', field: 'value', function: 'sum' },
    group_by: [{ field_source: 'ethereum_transaction', field: 'to' }],
  } as const;
  const { body: aggregation } = await call(sandbox, 'createAggregation', {
    body: { ...terms, group_by: [...terms.group_by], window: { type: 'rolling', seconds: 3600 } },
  });
  const limit = {
    field_source: 'reference' as const,
    field: `aggregation.${aggregation.id}`,
    operator: 'lte' as const,
    value: String(2n ** 70n),
  };
  const { body: policy } = await call(sandbox, 'createPolicy', {
    body: {
      ...{ version: '1.0', name: 'Hourly', chain_type: 'ethereum' },
      rules: [{ name: 'Small', method: terms.method, action: 'ALLOW', conditions: [limit] }],
    },
  });
  const { body: wallet } = await call(sandbox, 'createWallet', {
    body: { chain_type: 'ethereum', display_name: 'Till', policy_ids: [policy.id] },
  });
  const pay = (value: bigint, to: string | undefined) =>
    call(sandbox, 'walletRpc', {
      path: { wallet_id: wallet.id },
      body: {
        method: 'eth_signTransaction',
        params: {
          transaction: {
            ...(to === undefined ? { data: '0x60' } : { to }),
            ...{ value: `0x${value.toString(16)}`, chain_id: 1, type: 2, nonce: 0 },
            ...{ gas_limit: 21_000, max_fee_per_gas: 1, max_priority_fee_per_gas: 1 },
          },
        },
      },
    });
  await pay(2n ** 69n, shop);
  await pay(5n, shop);
  await pay(7n, wallet.address);
  const listed = async () => {
    const { data, next_cursor: next } = await get<SandboxAggregations>('/aggregations');
    expect(next).toBeNull();
    return data;
  };
  const shown = {
    ...{ id: aggregation.id, app_id: sandbox.appId, ...terms, conditions: [], owner: null },
    ...{ window_seconds: 3600, created_at_ms: aggregation.created_at },
    limits: [
      {
        ...{ policy: { id: policy.id, name: 'Hourly' }, rule_name: 'Small', action: 'ALLOW' },
        ...{ operator: 'lte', values: [limit.value] },
      },
    ],
  };
  const till = { id: wallet.id, name: 'Till' };
  expect(await listed()).toEqual([
    {
      ...shown,
      sums: [
        { wallet: till, group: [[shop.toLowerCase()]], sum: String(2n ** 69n + 5n), request_count: 2 },
        { wallet: till, group: [[wallet.address.toLowerCase()]], sum: '7', request_count: 1 },
      ],
      sum_count: 2,
    },
  ]);
  sandbox.clock.advance(3600_000);
  expect(await listed()).toEqual([{ ...shown, sums: [], sum_count: 0 }]);
  expect((await get<SandboxAggregations>('/aggregations?app_id=another')).data).toEqual([]);
});

test('an aggregation lists its twenty largest sums, and names its owner', async () => {
  const { body: aggregation } = await call(sandbox, 'createAggregation', {
    body: {
      ...{ name: 'Sent', method: 'eth_signTransaction', owner: { public_key: aliceKey.publicKey } },
      metric: { field_source: 'ethereum_transaction', field: 'value', function: 'sum' },
      group_by: [{ field_source: 'ethereum_transaction', field: 'chain_id' }],
      window: { type: 'rolling', seconds: 86_400 },
    },
  });
  const acme = await walletNamed('Acme');
  for (let chain = 1; chain <= 21; chain += 1) {
    await call(sandbox, 'walletRpc', {
      path: { wallet_id: acme.id },
      body: {
        method: 'eth_signTransaction',
        params: {
          transaction: {
            ...{ to: acme.address, value: chain * 9, chain_id: chain, type: 2, nonce: 0 },
            ...{ gas_limit: 21_000, max_fee_per_gas: 1, max_priority_fee_per_gas: 1 },
          },
        },
      },
    });
  }
  const { data } = await get<SandboxAggregations>('/aggregations?limit=1');
  expect(data).toMatchObject([
    {
      ...{ id: aggregation.id, sum_count: 21, limits: [] },
      owner: { key_quorum_id: aggregation.owner_id, members: [{ type: 'public_key', name: 'Alice' }] },
      sums: Array.from({ length: 20 }, (_, place) => ({
        group: [[String(21 - place)]],
        sum: String((21 - place) * 9),
      })),
    },
  ]);
});

test('the books name the symbol and the decimals of each asset', async () => {
  const acme = await walletNamed('Acme');
  await fund(sandbox, acme.address, { chain: 'base', asset: 'eth', rawAmount: 10n ** 18n });
  await fund(sandbox, acme.address, { chain: 'base', asset: 'usdc', rawAmount: 1_000_000n });
  await fundToken(sandbox, acme.address, {
    ...{ chain: 'base', tokenAddress: `0x${'12'.repeat(20)}`, rawAmount: 10n ** 9n },
    ...{ decimals: 3, symbol: 'POINTS' },
  });
  const { data } = await get<SandboxBooks>('/books');
  const assets = data.map(({ symbol, decimals }) => `${symbol} ${decimals}`);
  expect(assets).toEqual(expect.arrayContaining(['ETH 18', 'USDC 6', 'POINTS 3']));
});

/** The number of statements on the database of a request, the least of three, because jobs may send others. */
async function statementsOf(path: string): Promise<number> {
  const kysely = sandbox.database.orm.em.fork().getKysely<Tables>();
  const counts: number[] = [];
  while (counts.length < 3) counts.push((await recordStatements(kysely, () => get(path))).length);
  return Math.min(...counts);
}

test('a list takes the same number of statements whatever its length', async () => {
  const one = await statementsOf('/wallets?search=treasury');
  expect(one).toBeGreaterThan(0);
  const { owner, policies } = await walletNamed('Treasury');
  for (let count = 0; count < 20; count += 1) {
    await call(sandbox, 'createWallet', {
      body: {
        ...{ chain_type: 'ethereum', display_name: `Treasury ${count}` },
        ...{ owner_id: owner!.key_quorum_id, policy_ids: [policies[0]!.id] },
      },
    });
  }
  expect(await wallets('?search=treasury')).toHaveLength(21);
  expect(await statementsOf('/wallets?search=treasury')).toBe(one);
  for (const path of ['/key_quorums', '/policies', '/aggregations']) {
    const few = await statementsOf(`${path}?limit=1`);
    // Quorums with users need the names of these.
    expect(await statementsOf(path)).toBeLessThanOrEqual(few + 2);
  }
});
