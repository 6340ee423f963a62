import { bech32m } from '@scure/base';
import { beforeEach, describe, expect, test } from 'vitest';
import { sparkDepositAddress } from '../../../src/engine/signing/spark.ts';
import {
  type CompromisedServer,
  compromisedServer,
  ofKey,
  type SealedWallet,
  useOf,
} from '../../support/signer/compromised-server.ts';
import { newOwner, signedBy } from '../../support/signer/owner.ts';

// The owner has signed a request for an operation on Spark. The server has another operation signed for it.

const owner = newOwner();
const addressOf = (key: string, prefix = 'spark') =>
  bech32m.encode(prefix, bech32m.toWords(Buffer.from(`0a21${key}`, 'hex')), false);
const keys = [
  '0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798',
  '02c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5',
] as const;
const [friend, thief] = [addressOf(keys[0]), addressOf(keys[1])];
const [token, otherToken] = [1, 2].map((byte) =>
  bech32m.encode('btkn', bech32m.toWords(Buffer.alloc(32, byte)), false),
);
const layer1 = 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4';
const deposit = 'ab'.repeat(32);
// The examples of BOLT 11: without an amount, and of 2,500 µBTC.
const openInvoice =
  'lnbc1pvjluezsp5zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zygspp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypqdpl2pkx2ctnv5sxxmmwwd5kgetjypeh2ursdae8g6twvus8g6rfwvs8qun0dfjkxaq9qrsgq357wnc5r2ueh7ck6q93dj32dlqnls087fxdwk8qakdyafkq3yap9us6v52vjjsrvywa6rt52cm9r9zqt8r2t7mlcwspyetp5h2tztugp9lfyql';

let server: CompromisedServer;
let wallet: SealedWallet;
let key: string;
beforeEach(async () => {
  server = await compromisedServer(1_900_000_000_000, new Map(), new Map(), 3);
  wallet = await server.walletOf({ owner: ofKey(owner), chainType: 'spark' });
  // After the tag and the length.
  key = Buffer.from(bech32m.fromWords(bech32m.decode(wallet.address as never, false).words))
    .subarray(2)
    .toString('hex');
  return server.close;
});

const signs = (body: object, params: object) =>
  server.signs(
    wallet,
    { method: 'spark_operation', params },
    useOf(wallet, signedBy([owner], { path: '/v1/wallets/wallet/rpc', body })),
  );
const somethingElse = 'asks for something else';

interface Case {
  readonly params: object;
  readonly operation: () => object;
  readonly forged: Readonly<Record<string, object>>;
}
const cases: Record<string, Case> = {
  transfer: {
    params: { receiver_spark_address: friend, amount_sats: 1_000 },
    operation: () => ({ to: friend, amount: '1000' }),
    forged: { recipient: { to: thief }, amount: { amount: '1001' }, fee: { fee: '1' }, token: { token } },
  },
  transferTokens: {
    params: { receiver_spark_address: friend, token_identifier: token, token_amount: '1000' },
    operation: () => ({ to: friend, token, amount: '1000' }),
    forged: {
      recipient: { to: thief },
      amount: { amount: '01000' },
      fee: { fee: '1' },
      token: { token: otherToken },
      'sats for tokens': { token: null },
    },
  },
  claimStaticDeposit: {
    params: { transaction_id: deposit.toUpperCase(), credit_amount_sats: 900, signature: 'cd' },
    operation: () => ({
      ...{
        from: sparkDepositAddress(key, 'MAINNET'),
        to: wallet.address,
        amount: '900',
        fee: '100',
        deposit,
      },
    }),
    forged: {
      recipient: { to: thief },
      amount: { amount: '1' },
      deposit: { deposit: 'ef'.repeat(32) },
      'sender with the recipient': { from: friend },
      'no deposit': { deposit: null },
    },
  },
  withdraw: {
    params: { onchain_address: layer1, amount_sats: 5_000, fee_amount_sats: 50, exit_speed: 'FAST' },
    operation: () => ({ to: layer1, amount: '5000', fee: '50' }),
    forged: {
      recipient: { to: 'bc1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qccfmv3' },
      amount: { amount: '5001' },
      'less for the fee': { amount: '4950' },
      fee: { fee: '51' },
    },
  },
  payLightningInvoice: {
    params: { invoice: openInvoice.toUpperCase(), max_fee_sats: 20, amount_sats_to_send: 700 },
    operation: () => ({ to: friend, amount: '700', fee: '20', invoice: openInvoice }),
    forged: {
      amount: { amount: '701' },
      fee: { fee: '21' },
      'fee below zero': { fee: '-1' },
      invoice: { invoice: openInvoice.replace('lnbc1', 'lnbc2500u1') },
      'no invoice': { invoice: undefined },
    },
  },
};

const plain = () => ({
  ...{ id: '7f1f3b1e', network: 'MAINNET', owner: key, from: wallet.address },
  ...{ token: null, fee: '0', deposit: null },
});

describe.each(Object.keys(cases))('%s', (method) => {
  const { params, operation, forged } = cases[method]!;
  const body = { method, params };

  test('is signed as its owner has asked for it', async () => {
    await expect(signs(body, { ...plain(), ...operation() })).resolves.toBeDefined();
  });

  test.each([
    ...Object.entries(forged),
    ['network', { network: 'REGTEST' }],
    ['sender', { from: thief }],
    ['key', { owner: keys[1] }],
    ['another field', { memo: 'more' }],
  ] as const)('is not signed with another %s', async (_, change) => {
    await expect(signs(body, { ...plain(), ...operation(), ...change })).rejects.toThrow(somethingElse);
  });

  test('is signed for three operations', async () => {
    const given = (id: string) => signs(body, { ...plain(), ...operation(), id });
    for (const id of ['a', 'b', 'c', 'a']) await expect(given(id)).resolves.toBeDefined();
    await expect(given('d')).rejects.toMatchObject({ name: 'SigningBudgetError' });
  });

  test('is not an operation of another method', async () => {
    for (const [other, { operation: of }] of Object.entries(cases)) {
      if (other === method) continue;
      await expect(signs(body, { ...plain(), ...of() }), other).rejects.toThrow(somethingElse);
    }
  });
});

test('a withdrawal has the fee in its amount only if it is deducted, and any amount if it is of everything', async () => {
  const of = (params: object, operation: object) =>
    signs(
      { method: 'withdraw', params: { onchain_address: layer1, exit_speed: 'FAST', ...params } },
      { ...plain(), to: layer1, ...operation },
    );
  const deducted = { amount_sats: 5_000, deduct_fee_from_withdrawal_amount: true };
  await expect(of(deducted, { amount: '4900', fee: '100' })).resolves.toBeDefined();
  await expect(of(deducted, { amount: '5000', fee: '100' })).rejects.toThrow(somethingElse);
  await expect(of({}, { amount: '77', fee: '3' })).resolves.toBeDefined();
  await expect(of({}, { amount: '77', fee: '3', to: layer1.toUpperCase() })).rejects.toThrow(somethingElse);
  await expect(of({}, { amount: '-77', fee: '3' })).rejects.toThrow(somethingElse);
});

test('no operation is signed for a request of another kind', async () => {
  const given = { ...plain(), to: thief, amount: '5' };
  for (const path of ['/swap', '/payout/fiat', '/earn/ethereum/deposit', '/transfer']) {
    const evidence = signedBy([owner], { path: `/v1/wallets/wallet${path}`, body: {} });
    const task = { method: 'spark_operation', params: given };
    await expect(server.signs(wallet, task, useOf(wallet, evidence)), path).rejects.toThrow(somethingElse);
  }
});

test('the network is the one of the request', async () => {
  const from = addressOf(key, 'sparkrt');
  const to = addressOf(keys[0], 'sparkrt');
  const params = { receiver_spark_address: to, amount_sats: 5 };
  const given = { ...plain(), network: 'REGTEST', from, to, amount: '5' };
  await expect(signs({ method: 'transfer', network: 'REGTEST', params }, given)).resolves.toBeDefined();
  await expect(signs({ method: 'transfer', params }, given)).rejects.toThrow(somethingElse);
});

test('an invoice without an amount is not paid unless the request names one', async () => {
  const body = { method: 'payLightningInvoice', params: { invoice: openInvoice, max_fee_sats: 5 } };
  const paid = { ...plain(), to: friend, invoice: openInvoice };
  for (const amount of ['1', 'undefined'])
    await expect(signs(body, { ...paid, amount })).rejects.toThrow(somethingElse);
});

test('an invoice with an amount is paid with that amount', async () => {
  const invoice =
    'lnbc2500u1pvjluezsp5zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zygspp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypqdq5xysxxatsyp3k7enxv4jsxqzpu9qrsgquk0rl77nj30yxdy8j9vdx85fkpmdla2087ne0xh8nhedh8w27kyke0lp53ut353s06fv3qfegext0eh0ymjpf39tuven09sam30g4vgpfna3rh';
  const body = { method: 'payLightningInvoice', params: { invoice, max_fee_sats: 5 } };
  const of = (amount: string) => signs(body, { ...plain(), to: friend, invoice, amount, fee: '5' });
  await expect(of('250000')).resolves.toBeDefined();
  await expect(of('250001')).rejects.toThrow(somethingElse);
});
