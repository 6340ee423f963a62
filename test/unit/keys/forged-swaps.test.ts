import { beforeEach, describe, expect, test } from 'vitest';
import { batchCall, routerCall, tokenCall, wrappedCall } from '../../support/signer/built-calls.ts';
import {
  type CompromisedServer,
  compromisedServer,
  ofKey,
  router,
  type SealedWallet,
  useOf,
  wrapped,
} from '../../support/signer/compromised-server.ts';
import { newOwner, signedBy } from '../../support/signer/owner.ts';

// The owner has signed a swap. The server, which builds its transactions, has others signed.

const owner = newOwner();
const somethingElse = 'asks for something else';
const usdc = '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913';
const euro = `0x${'e1'.repeat(20)}`;
const [friend, thief] = [`0x${'11'.repeat(20)}`, `0x${'22'.repeat(20)}`];
const deadline = 2_000_000_000n;
const million = 1_000_000n;

let server: CompromisedServer;
let wallet: SealedWallet;
beforeEach(async () => {
  server = await compromisedServer(1_900_000_000_000);
  wallet = await server.walletOf({ owner: ofKey(owner) });
  return server.close;
});

const filled = {
  ...{ type: 2, chain_id: 8453, nonce: 7, gas_limit: '0x5208' },
  ...{ max_fee_per_gas: '0x2', max_priority_fee_per_gas: '0x1' },
};
const onBase = (transaction: object) => ({
  method: 'eth_signTransaction',
  params: { transaction: { ...filled, ...transaction } },
});

/** Usdc for euros, exactly a million base units of the input. */
const selling = (change: object = {}, destination: object = {}) => ({
  source: { caip2: 'eip155:8453', asset_address: usdc },
  destination: { asset_address: euro, ...destination },
  base_amount: String(million),
  ...change,
});
const native = { source: { caip2: 'eip155:8453', asset_address: 'native' } };

function swapping(body: object) {
  const use = useOf(wallet, signedBy([owner], { path: '/v1/wallets/wallet/swap', body }));
  return (task: object) => server.signs(wallet, task, use);
}

async function expectRefused(
  signs: (task: object) => Promise<unknown>,
  forged: Readonly<Record<string, object>>,
  message = somethingElse,
): Promise<void> {
  for (const [what, task] of Object.entries(forged)) await expect(signs(task), what).rejects.toThrow(message);
}

const approves = (amount: bigint, spender = router, token = usdc) =>
  onBase({ to: token, data: tokenCall('approve', spender, amount) });
const direct = [usdc, euro];
const sells = (to = wallet.address, amount = million, path: readonly string[] = direct, least = 1n) =>
  routerCall('swapExactTokensForTokens', amount, least, path, to, deadline);

describe('a swap of an exact amount of tokens', () => {
  test('a swap of an exact amount of tokens is the router’s, of that amount, from this token to that one, for the wallet', async () => {
    const signs = swapping(selling());
    for (const task of [
      onBase({ to: router, data: sells() }),
      onBase({ to: router, data: sells(), value: '0x0' }),
      onBase({ to: router.toUpperCase().replace('0X', '0x'), data: sells() }),
      onBase({ to: router, data: sells(wallet.address, million, [usdc, wrapped, euro]) }),
      // The price is what the server says.
      onBase({ to: router, data: sells(wallet.address, million, direct, 900_000n) }),
      onBase({ to: router, data: sells(), nonce: 8, max_fee_per_gas: '0x3' }),
    ]) {
      await expect(signs(task)).resolves.toHaveProperty('signed_transaction');
    }
    await expectRefused(signs, {
      'another contract': onBase({ to: thief, data: sells() }),
      'no contract': onBase({ data: sells() }),
      'a list of contracts': onBase({ to: [router], data: sells() }),
      'another amount': onBase({ to: router, data: sells(wallet.address, million + 1n) }),
      'another token to spend': onBase({ to: router, data: sells(wallet.address, million, [thief, euro]) }),
      'another token to receive': onBase({ to: router, data: sells(wallet.address, million, [usdc, thief]) }),
      'a path through another token': onBase({
        ...{ to: router, data: sells(wallet.address, million, [usdc, thief, euro]) },
      }),
      'a longer path': onBase({
        ...{ to: router, data: sells(wallet.address, million, [usdc, wrapped, thief, euro]) },
      }),
      'a path of one token': onBase({ to: router, data: sells(wallet.address, million, [usdc]) }),
      'a value beside it': onBase({ to: router, data: sells(), value: '0x1' }),
      'another chain': onBase({ to: router, data: sells(), chain_id: 1 }),
      'no chain': onBase({ to: router, data: sells(), type: 0, chain_id: undefined }),
      'bytes after it': onBase({ to: router, data: `${sells()}00` }),
      'an access list': onBase({ to: router, data: sells(), access_list: [] }),
      'a delegation beside it': onBase({ to: router, data: sells(), type: 4, authorization_list: [] }),
      'a fixed output': onBase({
        to: router,
        data: routerCall('swapTokensForExactTokens', million, million, direct, wallet.address, deadline),
      }),
      'a function that the server does not use': onBase({
        to: router,
        data: routerCall(
          'swapExactTokensForTokensSupportingFeeOnTransferTokens',
          ...[million, 1n, direct, wallet.address, deadline],
        ),
      }),
      'a transfer of the tokens': onBase({ to: usdc, data: tokenCall('transfer', thief, million) }),
      'a transfer to the router': onBase({ to: usdc, data: tokenCall('transfer', router, million) }),
      'a delegation to our account contract': {
        method: 'eth_sign7702Authorization',
        params: { contract: '0xe6cae83bde06e4c305530e199d7217f42808555b', chain_id: 8453, nonce: 7 },
      },
      'a message': { method: 'personal_sign', params: { message: 'all my money', encoding: 'utf-8' } },
    });
    await expectRefused(
      signs,
      { 'another recipient': onBase({ to: router, data: sells(thief) }) },
      'the address of',
    );
  });

  test('pays the recipient that the owner names', async () => {
    const signs = swapping(selling({}, { destination_address: friend }));
    await expect(signs(onBase({ to: router, data: sells(friend) }))).resolves.toBeDefined();
    await expectRefused(signs, {
      'another recipient': onBase({ to: router, data: sells(thief) }),
      'the wallet': onBase({ to: router, data: sells() }),
    });
  });

  test('approves exactly that amount of that token to the router, or nothing', async () => {
    const signs = swapping(selling());
    for (const amount of [million, 0n]) await expect(signs(approves(amount))).resolves.toBeDefined();
    await expectRefused(signs, {
      'another spender': approves(million, thief),
      'another amount': approves(million + 1n),
      'any amount': approves(2n ** 256n - 1n),
      'another token': approves(million, router, euro),
      'a value beside it': onBase({ to: usdc, data: tokenCall('approve', router, million), value: '0x1' }),
      'bytes after it': onBase({ to: usdc, data: `${tokenCall('approve', router, million)}00` }),
    });
  });

  test('a swap of an exact amount of tokens may be one batch of the wallet, of these calls in this order', async () => {
    const signs = swapping(selling());
    const approve = (amount: bigint) => ({ to: usdc, data: tokenCall('approve', router, amount) });
    const swap = { to: router, data: sells() };
    const batch = (calls: Parameters<typeof batchCall>[0], change: object = {}) =>
      onBase({ to: wallet.address, data: batchCall(calls), ...change });
    for (const calls of [
      [approve(million), swap],
      [approve(0n), approve(million), swap],
    ]) {
      await expect(signs(batch(calls))).resolves.toBeDefined();
    }
    await expectRefused(signs, {
      'two swaps': batch([approve(million), swap, swap]),
      'an approval after it': batch([swap, approve(million)]),
      'three approvals': batch([approve(0n), approve(million), approve(million), swap]),
      'another call': batch([approve(million), swap, { to: thief, value: 1n }]),
      'another call before it': batch([{ to: thief, value: 1n }, swap]),
      'no call': batch([]),
      'a value': batch([approve(million), swap], { value: '0x1' }),
      'bytes after it': onBase({ to: wallet.address, data: `${batchCall([approve(million), swap])}00` }),
    });
    const elsewhere = onBase({ to: thief, data: batchCall([approve(million), swap]) });
    await expectRefused(signs, { 'a batch of another account': elsewhere }, 'the address of');
  });
});

test('a batch whose calls are the same bytes many times is refused without being unfolded', {
  timeout: 2_500,
}, async () => {
  const [calls, bytes] = [8_000, 200_000];
  const word = (value: number) => value.toString(16).padStart(64, '0');
  const one = word(1) + word(0) + word(96) + word(bytes) + '00'.repeat(bytes);
  const list = word(32) + word(calls) + word(32 * calls).repeat(calls) + one;
  const data = `0xe9ae5c5301${'00'.repeat(31)}${word(64)}${word(list.length / 2)}${list}`;
  await expectRefused(swapping(selling()), { 'the batch': onBase({ to: wallet.address, data }) });
});

test('a swap for an exact amount spends what the server says, and delivers that amount', async () => {
  const signs = swapping(selling({ amount_type: 'exact_output' }));
  const buys = (output: bigint, most: bigint, to = wallet.address) =>
    onBase({ to: router, data: routerCall('swapTokensForExactTokens', output, most, direct, to, deadline) });
  for (const most of [2_000_000n, 3_000_000n]) {
    await expect(signs(buys(million, most))).resolves.toBeDefined();
    await expect(signs(approves(most))).resolves.toBeDefined();
  }
  await expectRefused(signs, {
    'another amount': buys(million - 1n, 2_000_000n),
    'a fixed input': onBase({ to: router, data: sells() }),
    'another spender': approves(million, thief),
  });
  await expectRefused(signs, { 'another recipient': buys(million, million, thief) }, 'the address of');
});

describe('a swap of the native asset', () => {
  const path = [wrapped, euro];

  test('a swap of the native asset spends exactly that value', async () => {
    const signs = swapping(selling(native));
    const data = routerCall('swapExactETHForTokens', 1n, path, wallet.address, deadline);
    await expect(signs(onBase({ to: router, data, value: '0xf4240' }))).resolves.toBeDefined();
    await expectRefused(signs, {
      'another value': onBase({ to: router, data, value: '0xf4241' }),
      'no value': onBase({ to: router, data }),
      'a path from another token': onBase({
        ...{ to: router, value: '0xf4240' },
        data: routerCall('swapExactETHForTokens', 1n, direct, wallet.address, deadline),
      }),
      'an approval': approves(million),
      'a payment': onBase({ to: thief, value: '0xf4240' }),
      'a payment to the router': onBase({ to: router, value: '0xf4240' }),
    });
  });

  test('for an exact amount spends the value that the server says', async () => {
    const signs = swapping(selling({ ...native, amount_type: 'exact_output' }));
    const data = (amount: bigint) =>
      routerCall('swapETHForExactTokens', amount, path, wallet.address, deadline);
    await expect(signs(onBase({ to: router, data: data(million), value: '0x7' }))).resolves.toBeDefined();
    await expectRefused(signs, { less: onBase({ to: router, data: data(1n), value: '0x7' }) });
  });

  test('a swap of the native asset for tokens is paid in it', async () => {
    const body = (change: object = {}) => ({
      ...selling(change),
      destination: { asset_address: 'native' },
    });
    const back = [usdc, wrapped];
    const ends = [wallet.address, deadline];
    const exactIn = routerCall('swapExactTokensForETH', million, 1n, back, ...ends);
    const exactOut = routerCall('swapTokensForExactETH', million, 5n, back, ...ends);
    await expect(swapping(body())(onBase({ to: router, data: exactIn }))).resolves.toBeDefined();
    await expectRefused(swapping(body()), { 'a fixed output': onBase({ to: router, data: exactOut }) });
    const fixed = swapping(body({ amount_type: 'exact_output' }));
    await expect(fixed(onBase({ to: router, data: exactOut }))).resolves.toBeDefined();
    await expectRefused(fixed, { 'a fixed input': onBase({ to: router, data: exactIn }) });
  });
});

describe('wrapping', () => {
  const wrapping = (destination: object = {}, change: object = native) => ({
    ...selling(change),
    destination: { asset_address: wrapped, ...destination },
  });
  const deposit = wrappedCall('deposit');

  test('wrapping: is a deposit of exactly that value at the wrapped asset', async () => {
    const signs = swapping(wrapping());
    await expect(signs(onBase({ to: wrapped, data: deposit, value: '0xf4240' }))).resolves.toBeDefined();
    await expectRefused(signs, {
      'another value': onBase({ to: wrapped, data: deposit, value: '0xf4241' }),
      'another contract': onBase({ to: thief, data: deposit, value: '0xf4240' }),
      'a payment to it': onBase({ to: wrapped, value: '0xf4240' }),
      'a transfer of it': onBase({ to: wrapped, data: tokenCall('transfer', thief, million) }),
      'a transfer to the wallet': onBase({
        to: wrapped,
        data: tokenCall('transfer', wallet.address, million),
      }),
    });
  });

  test('wrapping for another account is passed on to that address', async () => {
    const signs = swapping(wrapping({ destination_address: friend }));
    const pass = { to: wrapped, data: tokenCall('transfer', friend, million) };
    await expect(signs(onBase(pass))).resolves.toBeDefined();
    const both = batchCall([{ to: wrapped, data: deposit, value: million }, pass]);
    await expect(signs(onBase({ to: wallet.address, data: both }))).resolves.toBeDefined();
    await expectRefused(signs, {
      'to another one': onBase({ to: wrapped, data: tokenCall('transfer', thief, million) }),
      'more of it': onBase({ to: wrapped, data: tokenCall('transfer', friend, million + 1n) }),
      'an allowance': onBase({ to: wrapped, data: tokenCall('approve', friend, million) }),
      'of other tokens': onBase({ to: usdc, data: tokenCall('transfer', friend, million) }),
      twice: onBase({ to: wallet.address, data: batchCall([pass, pass]) }),
      'twice after it': onBase({
        to: wallet.address,
        data: batchCall([{ to: wrapped, data: deposit, value: million }, pass, pass]),
      }),
      'a value beside it': onBase({ ...pass, value: '0x1' }),
    });
  });

  test('back is a withdrawal of exactly that amount', async () => {
    const source = { source: { caip2: 'eip155:8453', asset_address: wrapped } };
    const signs = swapping({ ...selling(source), destination: { asset_address: 'native' } });
    const withdraw = (amount: bigint) => onBase({ to: wrapped, data: wrappedCall('withdraw', amount) });
    await expect(signs(withdraw(million))).resolves.toBeDefined();
    await expectRefused(signs, {
      more: withdraw(million + 1n),
      'a value beside it': onBase({ to: wrapped, data: wrappedCall('withdraw', million), value: '0x1' }),
    });
  });

  test('wrapping: is not signed for a swap of tokens for the wrapped asset, nor of that for others', async () => {
    const buying = swapping(wrapping({ destination_address: friend }, {}));
    await expectRefused(buying, {
      'a deposit': onBase({ to: wrapped, data: deposit, value: '0xf4240' }),
      'a payment': onBase({ to: wrapped, data: tokenCall('transfer', friend, million) }),
    });
    const spending = swapping(selling({ source: { caip2: 'eip155:8453', asset_address: wrapped } }));
    const withdraw = onBase({ to: wrapped, data: wrappedCall('withdraw', million) });
    await expectRefused(spending, { 'a withdrawal': withdraw });
  });

  test('wrapping: is not signed for another token that has such functions, nor where the asset is not configured', async () => {
    const like = swapping({ ...selling(native), destination: { asset_address: euro } });
    await expectRefused(like, {
      'a deposit': onBase({ to: euro, data: deposit, value: '0xf4240' }),
    });
    const onEthereum = swapping(wrapping({}, { source: { caip2: 'eip155:1', asset_address: 'native' } }));
    const task = onBase({ to: wrapped, data: deposit, value: '0xf4240', chain_id: 1 });
    await expectRefused(onEthereum, { 'a deposit': task }, 'knows no wrapped asset on `eip155:1`');
  });
});

test('where the wrapped asset is not configured, a path goes through any token, between these two', async () => {
  const onEthereum = (asset: string) =>
    swapping(selling({ source: { caip2: 'eip155:1', asset_address: asset } }));
  const through = (path: readonly string[]) =>
    onBase({ to: router, data: sells(wallet.address, million, path), chain_id: 1 });
  await expect(onEthereum(usdc)(through([usdc, friend, euro]))).resolves.toBeDefined();
  await expectRefused(onEthereum(usdc), { longer: through([usdc, friend, thief, euro]) });
  const data = (path: readonly string[]) =>
    routerCall('swapExactETHForTokens', 1n, path, wallet.address, deadline);
  const spends = (path: readonly string[]) =>
    onBase({ to: router, data: data(path), value: '0xf4240', chain_id: 1 });
  await expect(onEthereum('native')(spends([friend, euro]))).resolves.toBeDefined();
  await expectRefused(onEthereum('native'), { 'one token': spends([euro]), 'no token': spends([]) });
});

test('what no router of the signer swaps is not signed', async () => {
  const unknown = { caip2: 'eip155:10', asset_address: usdc };
  const bodies = {
    'a chain without a router': selling({ source: unknown }),
    'another chain': selling({}, { caip2: 'eip155:10' }),
    'a fee of the app': selling({ fee_configuration: { type: 'percentage_bps', value: 10 } }),
  };
  for (const [what, body] of Object.entries(bodies)) {
    const tasks = { [what]: onBase({ to: router, data: sells() }) };
    await expectRefused(swapping(body), tasks, 'has no router for this swap');
  }
});

test('a request by another method authorizes nothing', async () => {
  const request = { path: '/v1/wallets/wallet/swap', method: 'PUT', body: selling() };
  const use = useOf(wallet, signedBy([owner], request));
  const signs = (task: object) => server.signs(wallet, task, use);
  await expectRefused(signs, { 'a swap': onBase({ to: router, data: sells() }) });
});

test('a body that is no swap of such a wallet authorizes nothing', async () => {
  const bodies = {
    'no source': { ...selling(), source: undefined },
    'no destination': { ...selling(), destination: null },
    'a number for an amount': selling({ base_amount: 1_000_000 }),
    'no number': selling({ base_amount: '1e6' }),
    nothing: selling({ base_amount: '0' }),
    'another type of amount': selling({ amount_type: 'most' }),
    'a text for the slippage': selling({ slippage_bps: '50' }),
    'an unknown chain': selling({ source: { caip2: 'eip155:0', asset_address: usdc } }),
    'a chain of other wallets': selling({ source: { caip2: 'tron:0x2b6653dc', asset_address: usdc } }),
    'no token': selling({ source: { caip2: 'eip155:8453', asset_address: '0x12' } }),
    'the same token': selling({}, { asset_address: usdc }),
  };
  for (const [what, body] of Object.entries(bodies)) {
    await expectRefused(swapping(body), {
      [`${what}: a swap`]: onBase({ to: router, data: sells() }),
      [`${what}: an approval`]: approves(million),
    });
  }
});
