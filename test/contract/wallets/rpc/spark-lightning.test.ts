import { createHash } from 'node:crypto';
import { decode } from 'light-bolt11-decoder';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type {
  SparkLightningReceiveRequest,
  SparkLightningSendRequest,
  SparkTransfer,
  Wallet,
} from '../../../../src/generated/schemas.ts';
import { type CallOptions, call, refusal } from '../../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../../support/sandbox.ts';
import { waitSeconds } from '../../../support/wait-seconds.ts';

// Lightning with the node of simulated operators: invoices in the standard format, and payments that are made once.

const mainnet = 'spark:mainnet';
// BOLT 11, "Examples": signed by other nodes.
const foreign =
  'lnbc2500u1pvjluezsp5zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zygspp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypqdq5xysxxatsyp3k7enxv4jsxqzpu9qrsgquk0rl77nj30yxdy8j9vdx85fkpmdla2087ne0xh8nhedh8w27kyke0lp53ut353s06fv3qfegext0eh0ymjpf39tuven09sam30g4vgpfna3rh';

let sandbox: TestSandbox;
let alice: Wallet;
let bob: Wallet;

beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());
beforeEach(async () => {
  await sandbox.reset();
  const body = { chain_type: 'spark' } as const;
  alice = (await call(sandbox, 'createWallet', { body })).body;
  bob = (await call(sandbox, 'createWallet', { body })).body;
});

async function ask<Data>(
  from: Wallet,
  method: string,
  params?: object,
  options?: CallOptions,
): Promise<Data> {
  const body = { method, ...(params === undefined ? {} : { params }) };
  const input = { path: { wallet_id: from.id }, body } as never;
  return (await call(sandbox, 'walletRpc', input, options)).body.data as Data;
}

async function refused(from: Wallet, method: string, params: object, extra: object = {}): Promise<string> {
  const input = { path: { wallet_id: from.id }, body: { method, params, ...extra } };
  const answer = await refusal(sandbox, 'walletRpc', input);
  return `${answer.status} ${answer.body.code} ${answer.body.error}`;
}

interface Shown {
  readonly encoded_invoice: string;
  readonly payment_hash: string;
}

const invoiceOf = async (from: Wallet, params: object) =>
  (await ask<SparkLightningReceiveRequest>(from, 'createLightningInvoice', params)).invoice as Shown;
const pay = <Data = SparkLightningSendRequest>(from: Wallet, params: object, options?: CallOptions) =>
  ask<Data>(from, 'payLightningInvoice', { max_fee_sats: 1_000, ...params }, options);
const refusedPayment = (from: Wallet, params: object, extra?: object) =>
  refused(from, 'payLightningInvoice', { max_fee_sats: 1_000, ...params }, extra);

async function fund(wallet: Wallet, rawAmount: bigint): Promise<void> {
  const deposit = { address: wallet.address, tokenAddress: null, rawAmount };
  const funded = await sandbox.chains.fund(mainnet, deposit);
  if ('fault' in funded) throw new Error(funded.message);
}

const satsOf = async (wallet: Wallet) => (await ask<{ balance: string }>(wallet, 'getBalance')).balance;
const isoNow = () => new Date(sandbox.clock.now()).toISOString();

/** What a decoder of others reads. */
function read(text: string) {
  const { sections } = decode(text);
  return Object.fromEntries(
    sections.flatMap((section) => ('value' in section ? [[section.name, section.value]] : [])),
  ) as Record<string, unknown>;
}

describe('createLightningInvoice', () => {
  test('createLightningInvoice creates an invoice with the requested fields', async () => {
    const made = await ask<SparkLightningReceiveRequest>(alice, 'createLightningInvoice', {
      ...{ amount_sats: 250_000, memo: '1 cup coffee ☕', expiry_seconds: 60 },
      include_spark_address: true,
    });
    expect(made).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      created_at: isoNow(),
      updated_at: isoNow(),
      network: 'MAINNET',
      status: 'INVOICE_CREATED',
      typename: 'LightningReceiveRequest',
      receiver_identity_public_key: alice.public_key,
      invoice: {
        encoded_invoice: expect.stringMatching(/^lnbc2500u1/),
        payment_hash: expect.stringMatching(/^[0-9a-f]{64}$/),
        amount: { original_value: 250_000, original_unit: 'SATOSHI' },
        memo: '1 cup coffee ☕',
        expires_at: new Date(sandbox.clock.now() + 60_000).toISOString(),
      },
    });
    const { encoded_invoice: text, payment_hash: hash } = made.invoice as Shown;
    expect(read(text)).toMatchObject({
      amount: '250000000',
      timestamp: Math.floor(sandbox.clock.now() / 1000),
      payment_hash: hash,
      description: '1 cup coffee ☕',
      expiry: 60,
      route_hint: [{ pubkey: alice.public_key, short_channel_id: 'f42400f424000001' }],
    });
  });

  test('any amount, the hash of a text, thirty days, another receiver', async () => {
    const hash = createHash('sha256').update('a long story').digest('hex');
    const { encoded_invoice: text } = await invoiceOf(alice, {
      ...{ amount_sats: 0, description_hash: hash.toUpperCase() },
      receiver_identity_pubkey: bob.public_key,
    });
    expect(text).toMatch(/^lnbc1/);
    expect(read(text)).toMatchObject({ description_hash: hash, expiry: 30 * 24 * 3600 });
    expect(read(text)).not.toHaveProperty('route_hint');
    await fund(alice, 1_000n);
    await pay(alice, { invoice: text, amount_sats_to_send: 500 });
    expect(await satsOf(bob)).toBe('500');
  });

  test('no two invoices are the same', async () => {
    const [first, second] = [
      await invoiceOf(alice, { amount_sats: 1 }),
      await invoiceOf(alice, { amount_sats: 1 }),
    ];
    expect(first.payment_hash).not.toBe(second.payment_hash);
  });

  test.each([
    ['a memo of too many bytes', { memo: 'ナ'.repeat(300) }, '/params/memo: expected at most 639 bytes'],
    [
      'a memo and a hash',
      { memo: 'x', description_hash: '0'.repeat(64) },
      '/params/description_hash: expected either',
    ],
    [
      'no key',
      { receiver_identity_pubkey: `02${'f'.repeat(64)}` },
      '/params/receiver_identity_pubkey: expected a compressed key',
    ],
    ['an end too far off', { expiry_seconds: Number.MAX_SAFE_INTEGER }, '/params/expiry_seconds: expected'],
  ])('createLightningInvoice refuses %s', async (_, params, message) => {
    const answer = await refused(alice, 'createLightningInvoice', { amount_sats: 1, ...params });
    expect(answer).toContain(`400 invalid_data ${message}`);
  });

  test('createLightningInvoice refuses a time that an invoice cannot encode', async () => {
    sandbox.clock.set(Date.UTC(3100, 0, 1));
    expect(await refused(alice, 'createLightningInvoice', { amount_sats: 1 })).toMatch(/^400 not_supported/);
  });
});

describe('payLightningInvoice', () => {
  test('payLightningInvoice moves the amount and a fee, once', async () => {
    await fund(bob, 2_000n);
    const { encoded_invoice: invoice, payment_hash: hash } = await invoiceOf(alice, { amount_sats: 1_500 });
    const options = { idempotencyKey: 'pay-once' };
    const paid = await pay(bob, { invoice, max_fee_sats: 2 }, options);
    expect(paid).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      created_at: isoNow(),
      updated_at: isoNow(),
      network: 'MAINNET',
      encoded_invoice: invoice,
      // A thousandth, rounded up.
      fee: { original_value: 2, original_unit: 'SATOSHI' },
      idempotency_key: hash,
      status: 'LIGHTNING_PAYMENT_INITIATED',
      typename: 'LightningSendRequest',
    });
    expect([await satsOf(alice), await satsOf(bob)]).toEqual(['1500', '498']);
    expect(await pay(bob, { invoice, max_fee_sats: 2 }, options)).toEqual(paid);
    expect(await refusedPayment(bob, { invoice: invoice.toUpperCase() })).toBe(
      '400 invalid_data /params/invoice: the invoice was paid before',
    );
    expect([await satsOf(alice), await satsOf(bob)]).toEqual(['1500', '498']);
    expect(await sandbox.chains.total(mainnet, null)).toBe(2_000n);
  });

  test('over Spark, if the invoice allows it and the payer prefers it, it is a transfer without a fee', async () => {
    await fund(bob, 1_500n);
    const { encoded_invoice: invoice } = await invoiceOf(alice, {
      ...{ amount_sats: 1_500, include_spark_address: true },
    });
    const sent = await pay<SparkTransfer>(bob, { invoice, prefer_spark: true, max_fee_sats: 0 });
    expect(sent).toMatchObject({ type: 'TRANSFER', total_value: 1_500, transfer_direction: 'OUTGOING' });
    expect(sent.receiver_identity_public_key).toBe(alice.public_key);
    expect([await satsOf(alice), await satsOf(bob)]).toEqual(['1500', '0']);
    expect(await refusedPayment(bob, { invoice })).toContain('the invoice was paid before');
  });

  test('two concurrent payments pay once', async () => {
    await fund(alice, 2_000n);
    await fund(bob, 2_000n);
    const body = { chain_type: 'spark' } as const;
    const { body: carol } = await call(sandbox, 'createWallet', { body });
    const { encoded_invoice: invoice } = await invoiceOf(carol, { amount_sats: 1_000 });
    const outcomes = await Promise.allSettled([alice, bob, alice, bob].map((from) => pay(from, { invoice })));
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    await waitSeconds(sandbox, 60);
    expect(await satsOf(carol)).toBe('1000');
    const left = Number(await satsOf(alice)) + Number(await satsOf(bob));
    expect(left).toBe(4_000 - 1_001);
  });

  test('a payment that was signed while the operators were down is executed once, even if another wallet has paid', async () => {
    await fund(alice, 2_000n);
    await fund(bob, 2_000n);
    const { encoded_invoice: invoice } = await invoiceOf(bob, { amount_sats: 700 });
    const chain = sandbox.chains.find(mainnet)!;
    const broadcast = chain.broadcast.bind(chain);
    Object.assign(chain, { broadcast: () => Promise.reject(new Error('connect ECONNREFUSED')) });
    await pay(alice, { invoice });
    await pay(bob, { invoice });
    Object.assign(chain, { broadcast });
    for (let step = 0; step < 4; step += 1) await waitSeconds(sandbox, 30);
    const balances = [Number(await satsOf(alice)), Number(await satsOf(bob))];
    // Either alice paid bob, or bob paid himself; the fee is one sat.
    expect([
      [2_000 - 701, 2_700],
      [2_000, 1_999],
    ]).toContainEqual(balances);
    expect(await refusedPayment(alice, { invoice })).toContain('the invoice was paid before');
  });

  test('payLightningInvoice refuses invoices that cannot be paid', async () => {
    await fund(bob, 1_000n);
    const reach = 'expected a BOLT 11 invoice of the operators of MAINNET; they reach no other node';
    for (const invoice of [foreign, 'lnbc1', alice.address, `lnbc1${'q'.repeat(8_000)}`]) {
      expect(await refusedPayment(bob, { invoice })).toBe(`400 invalid_data /params/invoice: ${reach}`);
    }
    const { encoded_invoice: invoice } = await invoiceOf(alice, { amount_sats: 500, expiry_seconds: 60 });
    expect(await refusedPayment(bob, { invoice }, { network: 'REGTEST' })).toContain(
      '/params/invoice: expected a BOLT 11 invoice of the operators of REGTEST',
    );
    // One letter of the amount changed, without correcting the checksum.
    expect(await refusedPayment(bob, { invoice: invoice.replace('lnbc5u', 'lnbc4u') })).toContain(reach);
    expect(await refusedPayment(bob, { invoice, max_fee_sats: 0 })).toBe(
      '400 invalid_data /params/max_fee_sats: expected at least `1`, which the payment costs',
    );
    expect(await refusedPayment(bob, { invoice, amount_sats_to_send: 500 })).toMatch(
      /^400 invalid_data \/params\/amount_sats_to_send: expected only for an invoice without an amount/,
    );
    const { encoded_invoice: open } = await invoiceOf(alice, { amount_sats: 0 });
    expect(await refusedPayment(bob, { invoice: open })).toMatch(
      /^400 invalid_data \/params\/amount_sats_to_send: expected, since the invoice has no amount/,
    );
    expect(await refusedPayment(bob, { invoice: open, amount_sats_to_send: 1_000 })).toMatch(
      /^400 insufficient_funds/,
    );
    await waitSeconds(sandbox, 60);
    expect(await refusedPayment(bob, { invoice })).toMatch(
      /^400 invalid_data \/params\/invoice: the invoice expired at 20/,
    );
    expect([await satsOf(alice), await satsOf(bob)]).toEqual(['0', '1000']);
  });

  test('payLightningInvoice on REGTEST the same, with invoices of that network', async () => {
    const extra = { network: 'REGTEST' };
    const body = { method: 'createLightningInvoice', params: { amount_sats: 10 }, ...extra };
    const answer = await call(sandbox, 'walletRpc', { path: { wallet_id: alice.id }, body } as never);
    const { encoded_invoice: invoice } = (answer.body.data as { invoice: Shown }).invoice;
    expect(invoice).toMatch(/^lnbcrt100n1/);
    expect(await refusedPayment(bob, { invoice })).toContain('invoice of the operators of MAINNET');
    expect(await refusedPayment(bob, { invoice }, extra)).toMatch(/^400 insufficient_funds/);
  });
});
