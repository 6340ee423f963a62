import { Keypair, PublicKey, SystemProgram, Transaction } from '@solana/web3.js';
import { TronWeb } from 'tronweb';
import { encodeFunctionData, parseAbi } from 'viem';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { vaultIdOf } from '../../../src/engine/actions/earn-terms.ts';
import type { EvmCeilings } from '../../../src/engine/assets/fee-ceilings.ts';
import {
  batchCall,
  routerCall,
  smallSwap,
  tokenCall,
  vaultCall,
  wrappedCall,
} from '../../support/signer/built-calls.ts';
import {
  type CompromisedServer,
  compromisedServer,
  ofKey,
  router,
  type SealedWallet,
  useOf,
  wrapped,
} from '../../support/signer/compromised-server.ts';
import { newOwner, signedBy, signPayload } from '../../support/signer/owner.ts';

// The owner has signed one request. The server has it signed again and again, with what it may fill in.

const [owner, backend, stranger] = [newOwner(), newOwner(), newOwner()];
const friend = `0x${'11'.repeat(20)}`;
const gwei = 10n ** 9n;
const hex = (value: bigint | number): string => `0x${value.toString(16)}`;
const spent = { name: 'SigningBudgetError', message: expect.stringContaining('sign it again') };

let nowMs: number;
let server: CompromisedServer;
let wallet: SealedWallet;
async function open(
  most: number | undefined,
  ceilings: ReadonlyMap<string, Partial<EvmCeilings>> = new Map(),
) {
  nowMs = 1_900_000_000_000;
  server = await compromisedServer(() => nowMs, new Map(), ceilings, most);
  wallet = await server.walletOf({ owner: ofKey(owner), signers: [ofKey(backend, 'backend')] });
}
beforeEach(() => open(3));
afterEach(() => server.close());

interface Asked {
  readonly path?: string;
  readonly body: object;
  readonly by?: typeof owner;
  readonly expiryMs?: number;
}

const asks = ({ path = '/rpc', body, by = owner, expiryMs = nowMs + 60_000 }: Asked) =>
  signedBy([by], { path: `/v1/wallets/wallet${path}`, body, expiryMs });
const signs = (evidence: unknown, task: object, of = wallet) => server.signs(of, task, useOf(of, evidence));

const plain = (nonce: number, change: object = {}) => ({
  method: 'eth_signTransaction',
  params: {
    transaction: {
      ...{ type: 2, to: friend, value: '0x1', chain_id: 1, nonce, gas_limit: hex(21_000) },
      ...{ max_fee_per_gas: hex(gwei), max_priority_fee_per_gas: hex(gwei), ...change },
    },
  },
});
const sends = (value = '0x1') => ({
  ...{ method: 'eth_sendTransaction', caip2: 'eip155:1', params: { transaction: { to: friend, value } } },
});
const transfer = {
  source: { asset: 'eth', chain: 'ethereum', amount: '0.000000000000000001' },
  destination: { address: friend },
};

const account = parseAbi(['function execute(address target, uint256 value, bytes data)']);
const entryPoints = [
  '0x0000000071727de22e5e9d8baf0edac6f37da032',
  '0x4337084d9e255ff0702461cf8895ce9e3b5ff108',
  '0x433709009b8330fda32311df1c2afa402ed8d009',
];
const operation = (nonce: number, contract = entryPoints[0]) => ({
  method: 'eth_signUserOperation',
  params: {
    ...{ chain_id: 1, contract },
    user_operation: {
      ...{ sender: wallet.address, nonce: hex(nonce), call_gas_limit: hex(21_000) },
      call_data: encodeFunctionData({
        abi: account,
        functionName: 'execute',
        args: [friend as never, 1n, '0x'],
      }),
      ...{ verification_gas_limit: hex(1), pre_verification_gas: hex(1) },
      ...{ max_fee_per_gas: hex(gwei), max_priority_fee_per_gas: hex(gwei) },
    },
  },
});

const delegation = (nonce: number) => ({
  method: 'eth_sign7702Authorization',
  params: { contract: friend, chain_id: 1, nonce },
});

const swap = () => smallSwap(router, wallet.address);
const swaps = (n: number, change: object = {}) => plain(n, { ...swap().call, ...change });

/** Requests that leave something open, and the task that fills it in for the n-th time. */
const kinds: Record<string, readonly [() => Asked, (n: number) => object]> = {
  eth_sendTransaction: [() => ({ body: sends() }), plain],
  'a sponsored transaction': [() => ({ body: { ...sends(), sponsor: true } }), (n) => operation(n)],
  'a transfer': [() => ({ path: '/transfer', body: transfer }), plain],
  'a delegation': [
    () => ({ body: { method: 'eth_sign7702Authorization', params: { contract: friend, chain_id: 1 } } }),
    delegation,
  ],
  'a swap': [() => ({ path: '/swap', body: swap().body }), swaps],
};

describe.each(Object.keys(kinds))('%s', (name) => {
  test('is signed for three transactions, and again for each of them', async () => {
    const [asked, fill] = kinds[name]!;
    const evidence = asks(asked());
    for (const n of [0, 1, 2]) await expect(signs(evidence, fill(n))).resolves.toBeDefined();
    for (const n of [3, 4]) await expect(signs(evidence, fill(n))).rejects.toMatchObject(spent);
    for (const n of [0, 1, 2]) await expect(signs(evidence, fill(n))).resolves.toBeDefined();
    // The same words, signed again, are another request.
    await expect(signs(asks({ ...asked(), expiryMs: nowMs + 60_001 }), fill(3))).resolves.toBeDefined();
  });

  test('is signed for any number where that is not configured', async () => {
    server.close();
    await open(undefined);
    const [asked, fill] = kinds[name]!;
    const evidence = asks(asked());
    for (const n of [0, 1, 2, 3]) await expect(signs(evidence, fill(n))).resolves.toBeDefined();
  });
});

test('a Solana transaction is signed with three blockhashes', async () => {
  const solana = await server.walletOf({ owner: ofKey(owner), chainType: 'solana', rowId: 'wallet' });
  const from = new PublicKey(solana.address);
  const of = (hash: string) => {
    const made = new Transaction({ feePayer: from, recentBlockhash: hash });
    const toPubkey = Keypair.fromSeed(Buffer.alloc(32, 1)).publicKey;
    made.add(SystemProgram.transfer({ fromPubkey: from, toPubkey, lamports: 1 }));
    const transaction = made.serialize({ requireAllSignatures: false }).toString('base64');
    return { params: { transaction, encoding: 'base64' } };
  };
  const caip2 = 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp';
  const evidence = asks({
    body: { method: 'signAndSendTransaction', caip2, ...of(PublicKey.default.toBase58()) },
  });
  const task = (n: number) => ({
    method: 'signTransaction',
    ...of(new PublicKey(Buffer.alloc(32, n)).toBase58()),
  });
  for (const n of [1, 2, 3, 1, 2]) await expect(signs(evidence, task(n), solana)).resolves.toBeDefined();
  await expect(signs(evidence, task(4), solana)).rejects.toMatchObject(spent);
});

test('a Tron transaction is signed with three times', async () => {
  const tron = await server.walletOf({ owner: ofKey(owner), chainType: 'tron' });
  const owner_address = TronWeb.address.toHex(tron.address);
  const contract = [
    { type: 'TransferContract', owner_address, to_address: `41${'11'.repeat(20)}`, amount: 5 },
  ];
  const evidence = asks({ body: { method: 'tron_sendTransaction', params: { raw_data: { contract } } } });
  const block = { ref_block_bytes: '0000', ref_block_hash: '00'.repeat(8), expiration: 2 };
  const task = (timestamp: number) => ({
    method: 'tron_signTransaction',
    params: { raw_data: { ...block, contract, timestamp } },
  });
  for (const n of [1, 2, 3, 1]) await expect(signs(evidence, task(n), tron)).resolves.toBeDefined();
  await expect(signs(evidence, task(4), tron)).rejects.toMatchObject(spent);
});

test('an operation for another entry point is another one', async () => {
  const evidence = asks({ body: { ...sends(), sponsor: true } });
  for (const contract of entryPoints)
    await expect(signs(evidence, operation(0, contract))).resolves.toBeDefined();
  const { params, method } = operation(0, `0x${entryPoints[0]!.slice(2).toUpperCase()}`);
  await expect(signs(evidence, { method, params })).resolves.toBeDefined();
  await expect(signs(evidence, operation(1))).rejects.toMatchObject(spent);
});

test('the body of another operation than rpc has no method, nor a fee', async () => {
  const evidence = asks({ path: '/swap', body: { ...swap().body, ...plain(0) } });
  await expect(signs(evidence, swaps(0))).rejects.toThrow('something else');
});

test('a swap is signed for no nonce of another chain or of another lane', async () => {
  const evidence = asks({ path: '/swap', body: swap().body });
  for (const change of [{ chain_id: 2 }, { type: 118, nonce_key: 1 }])
    await expect(signs(evidence, swaps(0, change))).rejects.toThrow('something else');
});

test('the approvals of a swap are counted apart from it, and as often as it needs them', async () => {
  const token = `0x${'e2'.repeat(20)}`;
  const source = { caip2: 'eip155:1', asset_address: token };
  const evidence = asks({ path: '/swap', body: { ...swap().body, source } });
  const approves = (n: number, amount: bigint) =>
    plain(n, { to: token, value: '0x0', data: tokenCall('approve', router, amount) });
  for (let n = 0; n < 6; n += 1) await signs(evidence, approves(n, n % 2 === 0 ? 0n : 1n));
  await expect(signs(evidence, approves(6, 1n))).rejects.toMatchObject(spent);
  const { data } = smallSwap(router, wallet.address).call;
  await expect(signs(evidence, plain(7, { to: router, data }))).rejects.toThrow('something else');
  const sells = (n: number) => plain(n, { to: router, value: '0x0', data: sale(token) });
  for (const n of [7, 8, 9]) await expect(signs(evidence, sells(n))).resolves.toBeDefined();
  await expect(signs(evidence, sells(10))).rejects.toMatchObject(spent);
});

test('those of a deposit are counted so too', async () => {
  const vault = `0x${'a7'.repeat(20)}`;
  const place = { appId: 'acme', caip2: 'eip155:1', address: vault };
  const vault_id = vaultIdOf(place, { address: friend, decimals: 6 });
  const evidence = asks({ path: '/earn/ethereum/deposit', body: { vault_id, raw_amount: '1' } });
  const approves = (n: number, amount: bigint) =>
    plain(n, { to: friend, value: '0x0', data: tokenCall('approve', vault, amount) });
  for (let n = 0; n < 6; n += 1) await signs(evidence, approves(n, n % 2 === 0 ? 0n : 1n));
  await expect(signs(evidence, approves(6, 1n))).rejects.toMatchObject(spent);
  const data = vaultCall('deposit', 1n, wallet.address);
  const deposits = (n: number) => plain(n, { to: vault, value: '0x0', data });
  for (const n of [7, 8, 9]) await expect(signs(evidence, deposits(n))).resolves.toBeDefined();
  await expect(signs(evidence, deposits(10))).rejects.toMatchObject(spent);
});

test('a swap in one batch with its approval counts as a swap', async () => {
  const token = `0x${'e2'.repeat(20)}`;
  const source = { caip2: 'eip155:1', asset_address: token };
  const evidence = asks({ path: '/swap', body: { ...swap().body, source } });
  const approve = { to: token, data: tokenCall('approve', router, 1n) };
  const data = batchCall([approve, { to: router, data: sale(token) }]);
  const batch = (n: number) => plain(n, { to: wallet.address, value: '0x0', data });
  for (const n of [0, 1, 2]) await expect(signs(evidence, batch(n))).resolves.toBeDefined();
  await expect(signs(evidence, batch(3))).rejects.toMatchObject(spent);
  await expect(signs(evidence, plain(3, { ...approve, value: '0x0' }))).resolves.toBeDefined();
});

test('approvals of a swap make no room for another payment, also if they were signed for the same nonces', async () => {
  const token = `0x${'e2'.repeat(20)}`;
  const source = { caip2: 'eip155:1', asset_address: token };
  const evidence = asks({ path: '/swap', body: { ...swap().body, source } });
  const approve = { to: token, value: '0x0', data: tokenCall('approve', router, 0n) };
  const sell = { to: router, value: '0x0', data: sale(token) };
  for (const n of [0, 1, 2]) await signs(evidence, plain(n, sell));
  for (const n of [0, 1, 2]) await signs(evidence, plain(n, approve));
  await expect(signs(evidence, plain(3, sell))).rejects.toMatchObject(spent);
  // Nor by another request, which hands its nonces on.
  const sending = asks({ body: sends() });
  for (const n of [4, 5, 6]) await signs(sending, plain(n));
  for (const n of [4, 5, 6]) await signs(evidence, plain(n, approve));
  await expect(signs(sending, plain(7))).rejects.toMatchObject(spent);
  await expect(signs(evidence, plain(3, sell))).rejects.toMatchObject(spent);
});

test('what is passed on after wrapping is paid as often as a request is signed for, alone and in batches', async () => {
  const base = { caip2: 'eip155:8453', asset_address: 'native' };
  const destination = { asset_address: wrapped, destination_address: friend };
  const evidence = asks({ path: '/swap', body: { source: base, destination, base_amount: '5' } });
  const pass = { to: wrapped, value: '0x0', data: tokenCall('transfer', friend, 5n) };
  const deposit = { to: wrapped, value: 5n, data: wrappedCall('deposit') };
  const data = batchCall([deposit, { to: wrapped, data: pass.data }]);
  const onBase = (n: number, call: object) => plain(n, { chain_id: 8453, ...call });
  const both = { to: wallet.address, value: '0x0', data };
  const alone = { to: wrapped, value: '0x5', data: deposit.data };
  for (const [n, call] of [both, pass, both].entries()) await signs(evidence, onBase(n, call));
  for (const call of [both, pass]) {
    await expect(signs(evidence, onBase(3, call))).rejects.toMatchObject(spent);
  }
  await expect(signs(evidence, onBase(3, alone))).resolves.toBeDefined();
});

/** The call of the router that sells one unit of a token. */
function sale(token: string): string {
  const { destination } = swap().body;
  const ends = [[token, destination.asset_address], wallet.address, 2_000_000_000n];
  return routerCall('swapExactTokensForTokens', 1n, 1n, ...ends);
}

test('a transaction of no chain, which takes effect on every one, is not built for a request', async () => {
  const everywhere = plain(0, {
    ...{ type: 0, chain_id: undefined, gas_price: hex(gwei) },
    ...{ max_fee_per_gas: undefined, max_priority_fee_per_gas: undefined },
  });
  await expect(signs(asks({ path: '/swap', body: swap().body }), everywhere)).rejects.toThrow(
    'something else',
  );
  // The owner may ask for it.
  await expect(signs(asks({ body: everywhere }), everywhere)).resolves.toBeDefined();
});

test('what automations may sign without a request is not counted for one', async () => {
  const use = useOf(wallet, asks({ path: '/automations/attach', body: { automation_ids: ['sweep'] } }));
  const change = { key: 'test', binding: wallet.binding, use };
  const { parts, json } = await server.call('changeAuthority', wallet.parts, change);
  const automated = { ...wallet, parts, authority: (json as SealedWallet).authority };
  expect(automated.authority.isAutomated).toBe(true);
  const evidence = asks({ body: sends() });
  for (let n = 0; n < 5; n += 1) await expect(signs(evidence, plain(n), automated)).resolves.toBeDefined();
  // They do not delegate to other contracts than ours.
  const [asked, fill] = kinds['a delegation']!;
  const delegates = asks(asked());
  for (const n of [0, 1, 2]) await signs(delegates, fill(n), automated);
  await expect(signs(delegates, fill(3), automated)).rejects.toMatchObject(spent);
});

test('a nonce in other words is the same nonce', async () => {
  const evidence = asks({ body: sends() });
  const nonces = ['0x7', '0x0007', 7, ['0x7']];
  for (const nonce of nonces) await signs(evidence, plain(0, { nonce, chain_id: '0x01' }));
  for (const n of [0, 1]) await expect(signs(evidence, plain(n))).resolves.toBeDefined();
  await expect(signs(evidence, plain(2))).rejects.toMatchObject(spent);
});

test('a request that was forgotten, because it has expired, is not signed when its key opens late', async () => {
  // The master key is elsewhere, and does not answer at once.
  const late = Promise.withResolvers<void>();
  let untilOpened: Promise<void> | undefined;
  server.close();
  server = await compromisedServer(
    () => nowMs,
    new Map(),
    new Map(),
    3,
    async () => untilOpened,
  );
  wallet = await server.walletOf({ owner: ofKey(owner) });
  const evidence = asks({ body: sends() });
  for (const n of [0, 1, 2]) await signs(evidence, plain(n));
  nowMs += 120_000;
  untilOpened = late.promise;
  const fourth = signs(evidence, plain(3));
  // Answered after the signer has judged the request before.
  await server.call('createTokenKey', [], {
    binding: { purpose: 'app-signing-key', rowId: 'key', appId: 'acme' },
  });
  nowMs += 60_001;
  untilOpened = undefined;
  await signs(asks({ body: sends('0x2') }), plain(0, { value: '0x2' }));
  late.resolve();
  await expect(fourth).rejects.toMatchObject(spent);
});

test('another idempotency key makes no other request, signed or not', async () => {
  const evidence = asks({ body: sends() });
  const keyed = (key: string) => {
    const payload = evidence.requests[0]!.payload.replace(
      '"service-app-id":"acme"',
      `$&,"service-idempotency-key":"${key}"`,
    );
    return { payload, signatures: [signPayload(owner, payload)] };
  };
  await signs({ requests: [keyed('a')] }, plain(0));
  await signs({ requests: [keyed('b')] }, plain(1));
  const unsigned = { ...keyed('c'), signatures: [] };
  await signs({ requests: [keyed('a'), unsigned] }, plain(2));
  for (const requests of [[keyed('a')], [keyed('a'), unsigned], [unsigned, keyed('b')]])
    await expect(signs({ requests }, plain(3))).rejects.toMatchObject(spent);
});

test('what the owner has signed in full, and messages, are signed as often as they are sent', async () => {
  const message = { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } };
  for (const task of [plain(7), message]) {
    const evidence = asks({ body: task });
    for (let n = 0; n < 5; n += 1) await expect(signs(evidence, task)).resolves.toBeDefined();
  }
});

describe('a nonce that another request was signed for', () => {
  const first = () => asks({ body: sends() });
  const second = (by = owner) => asks({ body: sends('0x2'), by });
  const two = (nonce: number) => plain(nonce, { value: '0x2' });

  test('does not count for the one that has lost it, so that together they have no more nonces', async () => {
    const [a, b] = [first(), second()];
    for (const n of [0, 1, 2]) await signs(a, plain(n));
    await expect(signs(a, plain(3))).rejects.toMatchObject(spent);
    await signs(b, two(0));
    await signs(a, plain(3));
    await expect(signs(a, plain(4))).rejects.toMatchObject(spent);
    // Taking it back counts too.
    await expect(signs(a, plain(0))).rejects.toMatchObject(spent);
    for (const n of [4, 5]) await signs(b, two(n));
    await expect(signs(b, two(6))).rejects.toMatchObject(spent);
  });

  test('counts on when it is another party’s, or a key quorum’s that does not own the wallet', async () => {
    const a = first();
    for (const n of [0, 1, 2]) await signs(a, plain(n));
    await signs(second(backend), two(0));
    await expect(signs(a, plain(3))).rejects.toMatchObject(spent);
    const other = await server.walletOf({ owner: ofKey(stranger) });
    const forged = { ...other, parts: wallet.parts };
    await expect(signs(second(stranger), two(0), forged)).rejects.toThrow();
    await expect(signs(a, plain(3))).rejects.toMatchObject(spent);
  });

  test('a nonce that another request was signed for is lost twenty times at most', async () => {
    const a = first();
    for (let n = 0; n < 23; n += 1) {
      await signs(a, plain(n));
      await signs(asks({ body: sends('0x2'), expiryMs: nowMs + 1_000 + n }), two(n));
    }
    await expect(signs(a, plain(23))).rejects.toMatchObject(spent);
  });
});

test('a request is remembered until nothing is signed for it any more', async () => {
  const evidence = asks({ body: sends() });
  for (const n of [0, 1, 2]) await signs(evidence, plain(n));
  const another = asks({ body: sends('0x2') });
  nowMs += 120_000;
  await expect(signs(evidence, plain(3))).rejects.toThrow('already signed for 3 transactions');
  await expect(signs(another, plain(0, { value: '0x2' }))).resolves.toBeDefined();
  nowMs += 1;
  await expect(signs(evidence, plain(3))).rejects.toThrow('has expired');
});

test('members of a key quorum who have signed under several names of the server have signed one request', async () => {
  const [one, two] = ['a', 'b'].map((host) => {
    const { requests } = asks({ body: sends() });
    const payload = requests[0]!.payload.replace('api.acme', `${host}.acme`);
    return { payload, host };
  });
  const [a, b] = [one!, two!].map(({ payload }) => ({ payload, signatures: [signPayload(owner, payload)] }));
  await signs({ requests: [a] }, plain(0));
  await signs({ requests: [b] }, plain(1));
  await signs({ requests: [a, b] }, plain(2));
  for (const requests of [[a], [b], [b, a]])
    await expect(signs({ requests }, plain(3))).rejects.toMatchObject(spent);
});

describe('all that is signed for a request', () => {
  beforeEach(() => {
    server.close();
    return open(3, new Map([['eip155:1', { fee: 50_000n * gwei }]]));
  });

  test('pays no more than one transaction may, with the highest fee at each nonce', async () => {
    const evidence = asks({ body: sends() });
    const priced = (nonce: number, gas: bigint) => plain(nonce, { gas_limit: hex(gas) });
    await signs(evidence, priced(0, 21_000n));
    await signs(evidence, priced(0, 28_000n));
    await signs(evidence, priced(0, 21_000n));
    await expect(signs(evidence, priced(1, 22_001n))).rejects.toThrow('50001000000000 wei, more than');
    await expect(signs(evidence, priced(1, 22_000n))).resolves.toBeDefined();
    await expect(signs(evidence, priced(2, 1n))).rejects.toThrow('more than the ceiling');
    await expect(signs(evidence, priced(0, 28_001n))).rejects.toThrow('more than the ceiling');
  });

  test('pays no more if the request names the gas or the price only', async () => {
    const { params, ...body } = sends();
    const naming = (fields: object) => ({
      ...body,
      params: { transaction: { ...params.transaction, ...fields } },
    });
    const both = { gas_limit: hex(30_000), max_fee_per_gas: hex(gwei) };
    const { gas_limit, max_fee_per_gas } = both;
    const evidences = [asks({ body: naming({ gas_limit }) }), asks({ body: naming({ max_fee_per_gas }) })];
    for (const evidence of evidences) {
      await signs(evidence, plain(0, both));
      await expect(signs(evidence, plain(1, both))).rejects.toThrow('60000000000000 wei, more than');
    }
  });

  test('pays so as an operation too, of which all gas counts', async () => {
    const evidence = asks({ body: { ...sends(), sponsor: true } });
    for (const n of [0, 1]) await signs(evidence, operation(n));
    await expect(signs(evidence, operation(2))).rejects.toThrow('63006000000000 wei, more than');
  });

  test('pays more if the request names the fee', async () => {
    const fee = { gas_limit: hex(40_000), max_fee_per_gas: hex(gwei) };
    const { params, ...body } = sends();
    const evidence = asks({ body: { ...body, params: { transaction: { ...params.transaction, ...fee } } } });
    for (const n of [0, 1, 2]) await expect(signs(evidence, plain(n, fee))).resolves.toBeDefined();
    const legacy = { type: 0, gas_price: hex(gwei), gas_limit: hex(40_000) };
    const other = { max_fee_per_gas: undefined, max_priority_fee_per_gas: undefined };
    const priced = { params: { transaction: { ...params.transaction, ...legacy } } };
    const inFull = asks({ body: { ...body, ...priced } });
    for (const n of [0, 1, 2]) await signs(inFull, plain(n, { ...legacy, ...other }));
    const whole = plain(3, { gas_limit: hex(60_000) });
    await expect(signs(asks({ body: whole }), whole)).resolves.toBeDefined();
  });
});
