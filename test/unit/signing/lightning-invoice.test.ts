import { sha256 } from '@noble/hashes/sha2.js';
import { decode } from 'light-bolt11-decoder';
import { describe, expect, test } from 'vitest';
import { bytesToHex, hexToBytes, utf8ToBytes } from '../../../src/engine/crypto/encoding.ts';
import { ecBackend } from '../../../src/engine/crypto/secp256k1.ts';
import {
  encodeInvoice,
  type LightningInvoice,
  readInvoice,
} from '../../../src/engine/signing/lightning-invoice.ts';

// Source: BOLT 11, "Examples".
const nodeSecret = hexToBytes('e126f68f7eafcc8b74f54d269fe206be715000f94dac067d1c04a8ca3b2db734');
const said: LightningInvoice = {
  network: 'MAINNET',
  sats: undefined,
  createdAtSeconds: 1_496_314_658,
  expirySeconds: undefined,
  paymentHash: hexToBytes('0001020304050607080900010203040506070809000102030405060708090102'),
  paymentSecret: new Uint8Array(32).fill(0x11),
  description: 'Please consider supporting this project',
  hint: undefined,
  metadata: undefined,
};
const cake =
  'One piece of chocolate cake, one icecream cone, one pickle, one slice of swiss cheese, one slice of salami, ' +
  'one lollypop, one piece of cherry pie, one sausage, one cupcake, and one slice of watermelon';
const secretAndHash =
  'pvjluezsp5zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zygspp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypq';

describe('the examples of BOLT 11', () => {
  test.each([
    [
      'a donation of any amount',
      {},
      `lnbc1${secretAndHash}dpl2pkx2ctnv5sxxmmwwd5kgetjypeh2ursdae8g6twvus8g6rfwvs8qun0dfjkxaq9qrsgq357wnc5r2ueh7ck6q93dj32dlqnls087fxdwk8qakdyafkq3yap9us6v52vjjsrvywa6rt52cm9r9zqt8r2t7mlcwspyetp5h2tztugp9lfyql`,
    ],
    [
      'a cup of coffee within a minute',
      { sats: 250_000n, description: '1 cup coffee', expirySeconds: 60 },
      `lnbc2500u1${secretAndHash}dq5xysxxatsyp3k7enxv4jsxqzpu9qrsgquk0rl77nj30yxdy8j9vdx85fkpmdla2087ne0xh8nhedh8w27kyke0lp53ut353s06fv3qfegext0eh0ymjpf39tuven09sam30g4vgpfna3rh`,
    ],
    [
      'a list of things by its hash',
      { sats: 2_000_000n, description: sha256(utf8ToBytes(cake)) },
      `lnbc20m1${secretAndHash}hp58yjmdan79s6qqdhdzgynm4zwqd5d7xmw5fk98klysy043l2ahrqs9qrsgq7ea976txfraylvgzuxs8kgcw23ezlrszfnh8r6qtfpr6cxga50aj6txm9rxrydzd06dfeawfk6swupvz4erwnyutnjq7x39ymw6j38gp7ynn44`,
    ],
  ])('the examples of BOLT 11: %s', (_, fields, text) => {
    expect(encodeInvoice({ ...said, ...fields }, nodeSecret)).toBe(text);
  });

  test('an invoice with metadata and fields in another order is read', () => {
    const text =
      'lnbc10m1pvjluezpp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypqdp9wpshjmt9de6zqmt9w3skgct5vysxjmnnd9jx2mq8q8a04uqsp5zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zygs9q2gqqqqqqsgq7hf8he7ecf7n4ffphs6awl9t6676rrclv9ckg3d3ncn7fct63p6s365duk5wrk202cfy3aj5xnnp5gs3vrdvruverwwq7yzhkf5a3xqpd05wjc';
    const nodeKey = ecBackend.publicKey(nodeSecret, false);
    const read = {
      network: 'MAINNET',
      sats: 1_000_000n,
      createdAtSeconds: 1_496_314_658,
      expirySeconds: 3600,
      paymentHash: said.paymentHash,
      hint: undefined,
      metadata: hexToBytes('01fafaf0'),
      nodeKey,
    };
    expect(readInvoice(text)).toEqual(read);
    expect(readInvoice(text.toUpperCase())).toEqual(read);
  });
});

test('an independent decoder reads encoded invoices', () => {
  const hint = { nodeKey: ecBackend.publicKey(nodeSecret, true), channelId: new Uint8Array(8).fill(9) };
  const metadata = Uint8Array.of(1, 2, 3);
  for (const [network, sats, amount] of [
    ['MAINNET', 1n, '1000'],
    ['MAINNET', 123_456_789n, '123456789000'],
    ['REGTEST', 2_100_000_000_000_000n, '2100000000000000000'],
  ] as const) {
    const description = 'ナンセンス 1杯';
    const asked = { ...said, network, sats, description, expirySeconds: 86_400, hint, metadata };
    const text = encodeInvoice(asked, nodeSecret);
    const { sections } = decode(text);
    const found = (name: string) =>
      (sections.find((section) => section.name === name) as { value?: unknown } | undefined)?.value;
    expect(found('amount')).toBe(amount);
    expect(found('timestamp')).toBe(said.createdAtSeconds);
    expect(found('payment_hash')).toBe(bytesToHex(said.paymentHash));
    expect(found('payment_secret')).toBe('11'.repeat(32));
    expect(found('description')).toBe(description);
    expect(found('expiry')).toBe(86_400);
    expect(found('metadata')).toBe('010203');
    expect(found('route_hint')).toMatchObject([
      { pubkey: bytesToHex(hint.nodeKey), short_channel_id: '09'.repeat(8), fee_base_msat: 0 },
    ]);
    expect(readInvoice(text)).toEqual({
      ...{ network, sats, createdAtSeconds: said.createdAtSeconds, expirySeconds: 86_400 },
      ...{ paymentHash: said.paymentHash, hint, metadata },
      nodeKey: ecBackend.publicKey(nodeSecret, false),
    });
  }
});

test.each([
  ['nothing', ''],
  ['a prefix', 'lnbc1'],
  ['a megabyte', '1'.repeat(1_000_000)],
  ['an address', 'bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu'],
  ['a wrong checksum', `${encodeInvoice(said, nodeSecret).slice(0, -1)}q`],
  ['another network', encodeInvoice(said, nodeSecret).replace('lnbc', 'lntb')],
])('%s is not an invoice', (_, text) => {
  expect(readInvoice(text)).toBeUndefined();
});
