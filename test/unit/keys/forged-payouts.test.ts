import { Keypair } from '@solana/web3.js';
import canonicalize from 'canonicalize';
import { beforeEach, expect, test } from 'vitest';
import { encodeSolanaTransfer } from '../../../src/engine/signing/solana/encode-transfer.ts';
import { tokenCall } from '../../support/signer/built-calls.ts';
import {
  type CompromisedServer,
  compromisedServer,
  ofKey,
  type SealedWallet,
  useOf,
} from '../../support/signer/compromised-server.ts';
import { newOwner, signedBy } from '../../support/signer/owner.ts';

// The owner has signed a payout to a bank account. The provider names the address that is paid; the server has other
// transactions signed.

const owner = newOwner();
const usdc = '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913';
const provider = `0x${'11'.repeat(20)}`;

let server: CompromisedServer;
beforeEach(async () => {
  server = await compromisedServer(1_900_000_000_000);
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
const payout = (source: object) => ({
  source: { asset: 'usdc', chain: 'base', amount: '1.5', ...source },
  destination: { fiat_account_id: 'account' },
});

function payingOut(wallet: SealedWallet, body: object) {
  const use = useOf(wallet, signedBy([owner], { path: '/v1/wallets/wallet/payout/fiat', body }));
  return (task: object) => server.signs(wallet, task, use);
}

test('a payout moves the asset and the amount, in one transfer', async () => {
  const wallet = await server.walletOf({ owner: ofKey(owner) });
  const signs = payingOut(wallet, payout({}));
  const pays = (amount: bigint, change: object = {}) =>
    onBase({ to: usdc, data: tokenCall('transfer', provider, amount), ...change });
  await expect(signs(pays(1_500_000n))).resolves.toHaveProperty('signed_transaction');
  for (const [what, task] of Object.entries({
    'another amount': pays(1_500_001n),
    'another token': pays(1_500_000n, { to: provider }),
    'another chain': pays(1_500_000n, { chain_id: 1 }),
    'a value beside it': pays(1_500_000n, { value: '0x1' }),
    ether: onBase({ to: provider, value: '0x16e360' }),
    'an approval': onBase({ to: usdc, data: tokenCall('approve', provider, 1_500_000n) }),
    'a delegation': {
      method: 'eth_sign7702Authorization',
      params: { contract: '0xe6cae83bde06e4c305530e199d7217f42808555b', chain_id: 8453, nonce: 7 },
    },
    'a message': { method: 'personal_sign', params: { message: 'all my money', encoding: 'utf-8' } },
  })) {
    await expect(signs(task), what).rejects.toThrow('asks for something else');
  }
  const ether = payingOut(wallet, payout({ asset: 'eth' }));
  await expect(ether(onBase({ to: provider, value: '0x14d1120d7b160000' }))).resolves.toBeDefined();
  await expect(ether(pays(1_500_000n))).rejects.toThrow('asks for something else');
});

test('a fee of the app counts only as its owner has signed it', async () => {
  const wallet = await server.walletOf({ owner: ofKey(owner) });
  const task = onBase({ to: usdc, data: tokenCall('transfer', provider, 1_500_000n) });
  const without = payout({});
  const withFee = (fee: unknown) => ({ ...without, developer_fee_percent: fee });
  for (const [signed, shown] of [
    [without, withFee('1.5')],
    [without, withFee('0')],
    [withFee('1.5'), withFee('99')],
    [withFee('1.5'), without],
  ] as const) {
    const evidence = signedBy([owner], { path: '/v1/wallets/wallet/payout/fiat', body: signed });
    const [request] = evidence.requests;
    const payload = canonicalize({ ...JSON.parse(request!.payload), body: shown })!;
    const forged = useOf(wallet, { ...evidence, requests: [{ ...request!, payload }] });
    const what = JSON.stringify([signed, shown]);
    await expect(server.signs(wallet, task, forged), what).rejects.toThrow('signature');
    const use = useOf(wallet, evidence);
    await expect(server.signs(wallet, task, use), what).resolves.toHaveProperty('signed_transaction');
  }
  for (const fee of ['100', '-1', '1e1', '', ' 1', 1.5, null, ['1'], '9'.repeat(1000)]) {
    const signs = payingOut(wallet, withFee(fee));
    await expect(signs(task), JSON.stringify(fee)).rejects.toThrow('asks for something else');
  }
});

test('a payout from Solana is signed for the amount that its owner has signed, and no other', async () => {
  const wallet = await server.walletOf({ owner: ofKey(owner), chainType: 'solana' });
  const to = Keypair.fromSeed(Buffer.alloc(32, 1)).publicKey.toBase58();
  const pays = (rawAmount: bigint) => {
    const wire = encodeSolanaTransfer({ from: wallet.address, to, mint: undefined, rawAmount });
    return {
      method: 'signTransaction',
      params: { transaction: Buffer.from(wire).toString('base64'), encoding: 'base64' },
    };
  };
  const signs = payingOut(wallet, payout({ asset: 'sol', chain: 'solana' }));
  await expect(signs(pays(1_500_000_000n))).resolves.toBeDefined();
  await expect(signs(pays(1_500_000_001n))).rejects.toThrow('asks for something else');
});

test('a body that is no payout of such a wallet authorizes nothing', async () => {
  const wallet = await server.walletOf({ owner: ofKey(owner) });
  const task = onBase({ to: usdc, data: tokenCall('transfer', provider, 1_500_000n) });
  for (const body of [
    {},
    { ...payout({}), destination: undefined },
    { ...payout({}), destination: null },
    { ...payout({}), source: null },
    payout({ amount: 1.5 }),
    payout({ amount: '0' }),
    payout({ amount: '1.5000001' }),
    payout({ asset: 'gold' }),
    payout({ chain: 'mars' }),
    payout({ asset: 'usdc', chain: 'solana' }),
  ]) {
    const signs = payingOut(wallet, body);
    await expect(signs(task), JSON.stringify(body)).rejects.toThrow('asks for something else');
  }
});
