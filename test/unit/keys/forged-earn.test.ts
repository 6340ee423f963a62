import { beforeEach, describe, expect, test } from 'vitest';
import { vaultIdOf } from '../../../src/engine/actions/earn-terms.ts';
import { batchCall, claimCall, tokenCall, vaultCall } from '../../support/signer/built-calls.ts';
import {
  type CompromisedServer,
  compromisedServer,
  distributor,
  ofKey,
  type SealedWallet,
  useOf,
} from '../../support/signer/compromised-server.ts';
import { newOwner, signedBy } from '../../support/signer/owner.ts';

// The owner has signed a deposit, a withdrawal or a claim. The server, which builds its transactions, has others
// signed.

const owner = newOwner();
const somethingElse = 'asks for something else';
const caip2 = 'eip155:8453';
const usdc = '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913';
const [vault, thief] = [`0x${'a7'.repeat(20)}`, `0x${'22'.repeat(20)}`];
/** A token without a name in the contract, so that the id alone says how many decimals it has. */
const unnamed = `0x0${'5'.repeat(39)}`;
const idOf = (place: object = {}, asset: object = {}) =>
  vaultIdOf({ appId: 'acme', caip2, address: vault, ...place }, { address: usdc, decimals: 6, ...asset });
const units = 1_500_000n;

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

function asking(operation: string, body: object) {
  const path = `/v1/wallets/wallet/earn/ethereum/${operation}`;
  const use = useOf(wallet, signedBy([owner], { path, body }));
  return (task: object) => server.signs(wallet, task, use);
}

async function expectRefused(
  signs: (task: object) => Promise<unknown>,
  forged: Readonly<Record<string, object>>,
  message = somethingElse,
): Promise<void> {
  for (const [what, task] of Object.entries(forged)) await expect(signs(task), what).rejects.toThrow(message);
}

const deposits = (amount = units, to = wallet.address, at = vault) =>
  onBase({ to: at, data: vaultCall('deposit', amount, to) });
const approves = (amount: bigint, spender = vault, token = usdc) =>
  onBase({ to: token, data: tokenCall('approve', spender, amount) });

describe('a deposit', () => {
  const bodies = [
    { vault_id: idOf(), amount: '1.5' },
    { vault_id: idOf(), amount: '1.50' },
    { vault_id: idOf(), raw_amount: '1500000' },
  ];

  test('goes into the vault that the id names, in full, for the wallet', async () => {
    for (const body of bodies) {
      const signs = asking('deposit', body);
      for (const task of [deposits(), approves(units), approves(0n)])
        await expect(signs(task)).resolves.toHaveProperty('signed_transaction');
      await expectRefused(signs, {
        'another amount': deposits(units + 1n),
        'the decimals of another asset': deposits(units * 10n),
        'an approval of more': approves(units + 1n),
        'an approval of another token': approves(units, vault, unnamed),
        'one of nothing, of another token': approves(0n, vault, unnamed),
        'an approval of the shares': approves(units, vault, vault),
        'a value beside an approval': onBase({
          ...{ to: usdc, data: tokenCall('approve', vault, units), value: '0x1' },
        }),
        'a value beside it': onBase({
          to: vault,
          data: vaultCall('deposit', units, wallet.address),
          value: '0x1',
        }),
        'bytes after it': onBase({ to: vault, data: `${vaultCall('deposit', units, wallet.address)}00` }),
        shares: onBase({ to: vault, data: vaultCall('mint', units, wallet.address) }),
        'a withdrawal': onBase({
          ...{ to: vault, data: vaultCall('withdraw', units, wallet.address, wallet.address) },
        }),
        'a transfer': onBase({ to: usdc, data: tokenCall('transfer', thief, units) }),
        'a transfer of the shares': onBase({ to: vault, data: tokenCall('transfer', thief, units) }),
        'a message': { method: 'personal_sign', params: { message: 'all my money', encoding: 'utf-8' } },
      });
      await expectRefused(signs, { 'for another account': deposits(units, thief) }, 'the address of');
    }
  });

  test('a deposit is refused for another contract than the id was made of', async () => {
    const signs = asking('deposit', bodies[0]!);
    const notTheVault = {
      'another contract': deposits(units, wallet.address, thief),
      'another spender': approves(units, thief),
      'another chain': onBase({ to: vault, data: vaultCall('deposit', units, wallet.address), chain_id: 1 }),
    };
    await expectRefused(signs, notTheVault, 'is not the contract');
    const ids = {
      'of another app': idOf({ appId: 'other' }),
      'of another chain': idOf({ caip2: 'eip155:1' }),
      'of another contract': idOf({ address: thief }),
      'of before ids followed from contracts': 'qrvc27mg0z2zii6xo0k3z34h',
      // 'v' || the last 23 digits of SHA-256(app id, chain, contract, 6).
      'of before ids followed from assets': 'vpkyurhivdzyx5oxzcedo2wp',
      'with the asset of another one': `${idOf({}, { address: unnamed }).slice(0, 32)}${idOf().slice(32)}`,
      'with the decimals of another one': `${idOf().slice(0, 32)}0i${idOf().slice(34)}`,
      'of other decimals than the asset has': idOf({}, { decimals: 18 }),
      'in another spelling': idOf().toUpperCase(),
      'with more after it': `${idOf()}0`,
    };
    for (const [what, id] of Object.entries(ids)) {
      const body = { vault_id: id, amount: '1.5' };
      await expectRefused(asking('deposit', body), { [what]: deposits() }, 'is not the contract');
    }
    expect(idOf({ address: `0x${'A7'.repeat(20)}` })).toBe(idOf());
    expect(idOf({}, { address: `0x${usdc.slice(2).toUpperCase()}` })).toBe(idOf());
    // The id says how many decimals the asset has, so that the server does not say what an amount is.
    const ether = { vault_id: idOf({}, { address: unnamed, decimals: 18 }), amount: '1.5' };
    const asEther = asking('deposit', ether);
    await expectRefused(asEther, { 'six decimals': deposits() });
    await expect(asEther(approves(units * 10n ** 12n, vault, unnamed))).resolves.toBeDefined();
    await expect(asEther(deposits(units * 10n ** 12n))).resolves.toBeDefined();
  });

  test('a deposit is signed for any decimals of an asset', async () => {
    for (const [decimals, amount] of [
      [0, '1500000'],
      [255, `0.${'0'.repeat(248)}15`],
    ] as const) {
      const signs = asking('deposit', { vault_id: idOf({}, { address: unnamed, decimals }), amount });
      await expect(signs(deposits()), amount).resolves.toBeDefined();
    }
  });

  test('a deposit may be one batch of the wallet', async () => {
    const signs = asking('deposit', bodies[0]!);
    const approve = (amount: bigint) => ({ to: usdc, data: tokenCall('approve', vault, amount) });
    const deposit = { to: vault, data: vaultCall('deposit', units, wallet.address) };
    const batch = (calls: Parameters<typeof batchCall>[0], to = wallet.address) =>
      onBase({ to, data: batchCall(calls) });
    await expect(signs(batch([approve(0n), approve(units), deposit]))).resolves.toBeDefined();
    await expectRefused(signs, {
      'two deposits': batch([deposit, deposit]),
      'three approvals': batch([approve(0n), approve(0n), approve(units), deposit]),
      'another call': batch([{ to: thief, value: 1n }, deposit]),
      'an approval of another spender': batch([
        { to: usdc, data: tokenCall('approve', thief, units) },
        deposit,
      ]),
      'an approval of another token': batch([{ ...approve(units), to: unnamed }, deposit]),
      'an approval after it': batch([deposit, approve(units)]),
    });
    await expectRefused(
      signs,
      { 'of another account': batch([approve(units), deposit], thief) },
      'the address of',
    );
  });

  test('needs a body that says how much', async () => {
    for (const body of [
      {},
      { amount: '1.5', raw_amount: '1500000' },
      { amount: 1.5 },
      { amount: '0' },
      { amount: '1.5000001' },
      { raw_amount: '0x16e360' },
      { raw_amount: 1_500_000 },
    ]) {
      const signs = asking('deposit', { vault_id: idOf(), ...body });
      await expectRefused(signs, { [JSON.stringify(body)]: deposits() });
    }
  });
});

test('a withdrawal pays the amount, or all shares, to the wallet', async () => {
  const signs = asking('withdraw', { vault_id: idOf(), amount: '1.5' });
  const own = wallet.address;
  const withdraws = (name: string, amount: bigint, to = own, from = own, at = vault) =>
    onBase({ to: at, data: vaultCall(name, amount, to, from) });
  await expect(signs(withdraws('withdraw', units))).resolves.toBeDefined();
  await expect(signs(withdraws('redeem', 123_456n))).resolves.toBeDefined();
  await expectRefused(signs, {
    'another amount': withdraws('withdraw', units + 1n),
    'a deposit': deposits(),
    'two of them': onBase({
      to: own,
      data: batchCall([1, 2].map(() => ({ to: vault, data: vaultCall('withdraw', units, own, own) }))),
    }),
  });
  for (const name of ['withdraw', 'redeem']) {
    await expectRefused(
      signs,
      { receiver: withdraws(name, units, thief), owner: withdraws(name, units, own, thief) },
      'the address of',
    );
    await expectRefused(signs, { contract: withdraws(name, units, own, own, thief) }, 'is not the contract');
  }
});

test('fees are collected from the vault to the wallet', async () => {
  const signs = asking('fees/collect', { vault_id: idOf() });
  const collects = (to = wallet.address, at = vault) =>
    onBase({ to: at, data: vaultCall('withdrawFees', to, 5n) });
  await expect(signs(collects())).resolves.toBeDefined();
  await expectRefused(signs, { thief: collects(thief) }, 'the address of');
  await expectRefused(signs, { 'another contract': collects(undefined, thief) }, 'is not the contract');
  await expectRefused(signs, {
    'a withdrawal': onBase({ to: vault, data: vaultCall('withdraw', 5n, wallet.address, wallet.address) }),
  });
});

test('rewards are claimed from the distributor of the signer for the wallet', async () => {
  const signs = asking('incentive/claim', { chain: 'base' });
  const proof = [`0x${'33'.repeat(32)}`];
  const claims = (users: readonly string[], at = distributor, change: object = {}) => {
    const each = <T>(value: T) => users.map(() => value);
    return onBase({ to: at, data: claimCall(users, each(usdc), each(7n), each(proof)), ...change });
  };
  const own = wallet.address;
  await expect(signs(claims([own]))).resolves.toBeDefined();
  await expect(signs(claims([own, own]))).resolves.toBeDefined();
  await expectRefused(signs, {
    'another contract': claims([own], thief),
    'a value': claims([own], distributor, { value: '0x1' }),
    'another chain': claims([own], distributor, { chain_id: 1 }),
    'another call': onBase({ to: distributor, data: tokenCall('approve', thief, 1n) }),
  });
  await expectRefused(signs, { 'another account': claims([own, thief]) }, 'the address of');
  const elsewhere = asking('incentive/claim', { chain: 'ethereum' });
  const task = claims([own], distributor, { chain_id: 1 });
  await expectRefused(elsewhere, { 'no distributor': task }, 'no distributor of rewards on `eip155:1`');
});

test('an operation authorizes nothing of another one', async () => {
  const body = { vault_id: idOf(), amount: '1.5', chain: 'base' };
  const withdraw = onBase({ to: vault, data: vaultCall('withdraw', units, wallet.address, wallet.address) });
  await expectRefused(asking('withdraw', body), { 'a deposit': deposits(), 'an approval': approves(0n) }, '');
  await expectRefused(asking('deposit', body), { 'a withdrawal': withdraw });
  await expectRefused(asking('incentive/claim', body), { 'a deposit': deposits() });
  await expectRefused(asking('fees/collect', body), { 'a deposit': deposits() });
});
