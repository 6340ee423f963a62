import { readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  base64ToBytes,
  bytesTo0xHex,
  bytesToHex,
  concatBytes,
  equalBytes,
  hexToBytes,
} from '../../../src/engine/crypto/encoding.ts';
import { decodeAptosRawTransaction } from '../../../src/engine/signing/aptos.ts';
import {
  decodeEthereumTransaction,
  prepareEthereumTransaction,
  signEthereumTransaction,
} from '../../../src/engine/signing/ethereum/any-transaction.ts';
import { decodeNearTransaction } from '../../../src/engine/signing/near.ts';
import { SigningInputError } from '../../../src/engine/signing/signing-errors.ts';
import { decodeSolanaTransaction } from '../../../src/engine/signing/solana/wire.ts';
import { decodeSuiIntentMessage } from '../../../src/engine/signing/sui.ts';
import { decodeTronRawData, encodeTronRawData } from '../../../src/engine/signing/tron/raw-data.ts';
import { decodeXrplTransaction } from '../../../src/engine/signing/xrpl/transaction.ts';

const document = JSON.parse(readFileSync(new URL('../../../openapi/openapi.json', import.meta.url), 'utf8'));
const examples =
  document.paths['/v1/wallets/{wallet_id}/rpc'].post.requestBody.content['application/json'].examples;
const example = (name: string) => examples[name].value.params;
const samples = JSON.parse(
  readFileSync(new URL('../../vectors/transactions.json', import.meta.url), 'utf8'),
) as Record<'solana_v0' | 'sui' | 'tron_trigger', { source: string; hex: string }>;

const to = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';
const secret = new Uint8Array(32).fill(3);
const authorization = { contract: to, chain_id: 1, nonce: 0, r: '0x11', s: '0x22', y_parity: 1 } as const;
const ethereumTransactions = [
  { type: 0, chain_id: 1, nonce: 7, to, value: 5, gas_limit: 21_000, gas_price: 9, data: '0xabcdef' },
  { type: 0, nonce: 7, to, value: 5 },
  { type: 1, chain_id: 10, nonce: 7, to, value: 5, gas_limit: 21_000, gas_price: 9 },
  {
    type: 2,
    chain_id: 8453,
    nonce: 300,
    to,
    value: 5,
    max_fee_per_gas: 900,
    max_priority_fee_per_gas: 9,
    data: '0x01',
  },
  { type: 4, chain_id: 8453, to, max_fee_per_gas: 900, authorization_list: [authorization] },
  {
    type: 118,
    chain_id: 4217,
    nonce: 3,
    nonce_key: 4,
    calls: [{ to, value: 1, data: '0xaa' }, { to }],
    fee_token: to,
    valid_after: 10,
    valid_before: 2000,
    access_list: [{ address: to, storage_keys: [`0x${'55'.repeat(32)}`] }],
  },
] as const;

interface Sample {
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly view: (bytes: Uint8Array) => unknown;
}

async function ethereumSamples(): Promise<Sample[]> {
  const samplesOf = ethereumTransactions.map(async (transaction) => {
    const unsigned = (await prepareEthereumTransaction(transaction)).wireBytes();
    const signed = await signEthereumTransaction(secret, { transaction });
    return [unsigned, signed].map((hex, index) => ({
      name: `ethereum type ${transaction.type}, ${index === 0 ? 'unsigned' : 'signed'}`,
      bytes: hexToBytes(hex.slice(2)),
      view: (bytes: Uint8Array) => decodeEthereumTransaction(bytesTo0xHex(bytes)),
    }));
  });
  return (await Promise.all(samplesOf)).flat();
}

/** The decoded content of a Solana transaction, without its bytes. */
function solanaView(bytes: Uint8Array): unknown {
  const { message: _message, ...view } = decodeSolanaTransaction(bytes);
  return view;
}

const otherSamples: Sample[] = [
  { name: 'solana legacy', bytes: base64ToBytes(example('signTransaction').transaction), view: solanaView },
  { name: 'solana version 0', bytes: hexToBytes(samples.solana_v0.hex), view: solanaView },
  {
    name: 'solana version 1',
    // The transfer of solana-version-1.test.ts.
    bytes: concatBytes(
      base64ToBytes(
        'gQEAAQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAED6kpsY+KcUgq+9VB7Ey7F+ZVHdq6+vnuSQh7qaRRG0iwTmPYsbRpFfFG6aktfPb0vafypMhYhjciZfkFr0X2TygAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAgIMAAABAgAAAAUAAAAAAAAA',
      ),
      new Uint8Array(64),
    ),
    view: solanaView,
  },
  {
    name: 'tron transfer',
    bytes: encodeTronRawData(example('tron_signTransaction').raw_data),
    view: decodeTronRawData,
  },
  { name: 'tron call', bytes: hexToBytes(samples.tron_trigger.hex), view: decodeTronRawData },
  {
    name: 'xrpl payment',
    bytes: hexToBytes(example('xrpl_signTransaction').transaction.slice(8)),
    view: (bytes) => decodeXrplTransaction(bytesToHex(bytes)),
  },
  { name: 'sui transfer', bytes: hexToBytes(samples.sui.hex), view: decodeSuiIntentMessage },
  {
    name: 'near transfer',
    bytes: base64ToBytes(example('near_signTransaction').transaction),
    view: decodeNearTransaction,
  },
  {
    name: 'aptos call',
    bytes: hexToBytes(example('aptos_signTransaction').transaction.slice(2)),
    view: decodeAptosRawTransaction,
  },
];

/** The view as text; `refused` when the decoder throws, `not a transaction` when it finds none. */
async function viewText(sample: Sample, bytes: Uint8Array): Promise<string> {
  try {
    const view = await sample.view(bytes);
    if (view === undefined) return 'not a transaction';
    return JSON.stringify(view, (_key, value) => {
      if (typeof value === 'bigint') return `${value}n`;
      return value instanceof Uint8Array ? bytesToHex(value) : value;
    });
  } catch (error) {
    expect(error).toBeInstanceOf(SigningInputError);
    return 'refused';
  }
}

describe.each([...(await ethereumSamples()), ...otherSamples])('$name', (sample) => {
  test('is decoded', async () => {
    expect(await viewText(sample, sample.bytes)).toMatch(/^\{/);
  });

  test('with any byte changed is decoded as a different transaction, or refused', async () => {
    const original = await viewText(sample, sample.bytes);
    for (const position of sample.bytes.keys()) {
      for (const flip of [0x01, 0x80, 0xff]) {
        const mutated = sample.bytes.slice();
        mutated[position] = (mutated[position] ?? 0) ^ flip;
        expect(await viewText(sample, mutated), `byte ${position} ^ ${flip}`).not.toBe(original);
      }
    }
  });

  test('truncated, extended or with a range replaced is never decoded as itself', async () => {
    const original = await viewText(sample, sample.bytes);
    await fc.assert(
      fc.asyncProperty(
        fc.nat({ max: sample.bytes.length }),
        fc.nat({ max: 8 }),
        fc.uint8Array({ maxLength: 8 }),
        async (start, removed, inserted) => {
          const head = sample.bytes.subarray(0, start);
          const mutated = Uint8Array.of(...head, ...inserted, ...sample.bytes.subarray(start + removed));
          fc.pre(!equalBytes(mutated, sample.bytes));
          expect(await viewText(sample, mutated)).not.toBe(original);
        },
      ),
      { numRuns: 150 },
    );
  });
});
