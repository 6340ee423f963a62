import { keccak_256 } from '@noble/hashes/sha3.js';
import * as TxEnvelopeEip1559 from 'ox/TxEnvelopeEip1559';
import * as TxEnvelopeEip2930 from 'ox/TxEnvelopeEip2930';
import * as TxEnvelopeEip7702 from 'ox/TxEnvelopeEip7702';
import * as TxEnvelopeLegacy from 'ox/TxEnvelopeLegacy';
import { bytesTo0xHex, hexToBytes } from '../../../../../engine/crypto/encoding.ts';
import { termsOf } from '../../chain-terms.ts';
import { readWithBigints } from '../../ledger.ts';
import { BLOCK_GAS_LIMIT } from '../machine.ts';
import type { EvmParts } from '../parts.ts';
import type { EvmPlan } from '../plan.ts';
import { findReceipt, type Receipt, receiptsIn } from '../receipts.ts';
import { hashOf, ZERO_WORD } from '../state.ts';

// Blocks, transactions, receipts and logs in the format of the Ethereum JSON-RPC.

/** The maximum number of receipts in one response. */
const MAX_RECEIPTS = 20_000;
const NO_ADDRESS = `0x${'0'.repeat(40)}`;
/** keccak256(rlp([])), the hash of an empty list of uncles. */
const NO_UNCLES = '0x1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347';

export function quantity(value: bigint | number): string {
  return `0x${value.toString(16)}`;
}

export const inBlock = ({ state }: EvmParts, number: number): readonly Receipt[] =>
  receiptsIn(state, { from: number, to: number, limit: MAX_RECEIPTS });

export function logViews({ forks }: Pick<EvmParts, 'forks'>, receipt: Receipt) {
  const { logs, block, hash, index, firstLog } = receipt;
  if (logs.length === 0) return [];
  const inBlockOf = forks.hashOf(block.number);
  return logs.map((log, offset) => ({
    ...log,
    blockNumber: quantity(block.number),
    blockHash: inBlockOf,
    blockTimestamp: quantity(block.seconds),
    transactionHash: hash,
    transactionIndex: quantity(index),
    logIndex: quantity(firstLog + offset),
    removed: false,
  }));
}

// Computes the bloom filter of logs. Each address and topic sets three of 2048 bits. Source: Ethereum yellow paper,
// 4.3.1.
function bloomOf(receipts: readonly Receipt[]): string {
  const bloom = new Uint8Array(256);
  for (const { address, topics } of receipts.flatMap(({ logs }) => logs)) {
    for (const input of [address, ...topics]) {
      const hash = keccak_256(hexToBytes(input.slice(2)));
      for (const at of [0, 2, 4]) {
        const bit = ((hash[at]! << 8) | hash[at + 1]!) & 2047;
        bloom[255 - (bit >> 3)]! |= 1 << (bit & 7);
      }
    }
  }
  return bytesTo0xHex(bloom);
}

/**
 * Returns a receipt in the format of the JSON-RPC.
 *
 * @param all the receipts of the transaction's block.
 */
export function receiptView(parts: EvmParts, receipt: Receipt, all = inBlock(parts, receipt.block.number)) {
  const { hash, block, index, sender, recipient, contract, gasUsed, gasPrice, isReverted } = receipt;
  const type = envelopeOf(rawOf(parts, hash))?.type;
  return {
    transactionHash: hash,
    transactionIndex: quantity(index),
    blockNumber: quantity(block.number),
    blockHash: parts.forks.hashOf(block.number),
    from: sender,
    to: recipient,
    contractAddress: contract,
    cumulativeGasUsed: quantity(
      all.reduce((sum, other) => (other.index <= index ? sum + other.gasUsed : sum), 0n),
    ),
    gasUsed: quantity(gasUsed),
    effectiveGasPrice: quantity(gasPrice),
    status: isReverted ? '0x0' : '0x1',
    type: rpcTypes[type ?? 'legacy'],
    logsBloom: bloomOf([receipt]),
    logs: logViews(parts, receipt),
  };
}

const rpcTypes = { legacy: '0x0', eip2930: '0x1', eip1559: '0x2', eip7702: '0x4' } as const;

export function blockView(parts: EvmParts, number: number | undefined, isFull: boolean) {
  if (number === undefined) return null;
  const { caip2 } = parts;
  const receipts = inBlock(parts, number);
  const root = hashOf(`state of block ${number} of ${caip2}`);
  return {
    number: quantity(number),
    hash: parts.forks.hashOf(number),
    parentHash: number === 0 ? `0x${ZERO_WORD}` : parts.forks.hashOf(number - 1),
    nonce: '0x0000000000000000',
    sha3Uncles: NO_UNCLES,
    logsBloom: bloomOf(receipts),
    ...{ transactionsRoot: root, stateRoot: root, receiptsRoot: root },
    miner: NO_ADDRESS,
    ...{ difficulty: '0x0', totalDifficulty: '0x0', extraData: '0x', size: '0x220' },
    gasLimit: quantity(BLOCK_GAS_LIMIT),
    gasUsed: quantity(receipts.reduce((sum, { gasUsed }) => sum + gasUsed, 0n)),
    timestamp: quantity(receipts[0]?.block.seconds ?? parts.blocks.secondsOf(number)),
    baseFeePerGas: quantity(termsOf(caip2).baseFee),
    mixHash: hashOf(`randomness of block ${number}`),
    ...{ blobGasUsed: '0x0', excessBlobGas: '0x0', uncles: [], withdrawals: [] },
    transactions: receipts.map(({ hash }) => (isFull ? transactionBy(parts, hash) : hash)),
  };
}

function rawOf({ world, caip2 }: EvmParts, hash: string): string | null {
  const row = world.store.first<{ plan: string }>(
    'select plan from transactions where caip2 = ? and hash = ?',
    ...[caip2, hash],
  );
  return row === undefined ? null : ((readWithBigints(row.plan) as EvmPlan).raw ?? null);
}

/**
 * Decodes the signed transaction. Returns undefined for a user operation, a deposit, and a transaction type that
 * clients do not know.
 */
function envelopeOf(raw: string | null) {
  if (raw === null) return undefined;
  const hex = raw as `0x${string}`;
  if (raw.startsWith('0x02')) {
    return {
      type: 'eip1559',
      view: TxEnvelopeEip1559.toRpc(TxEnvelopeEip1559.deserialize(hex as `0x02${string}`)),
    } as const;
  }
  if (raw.startsWith('0x01')) {
    return {
      type: 'eip2930',
      view: TxEnvelopeEip2930.toRpc(TxEnvelopeEip2930.deserialize(hex as `0x01${string}`)),
    } as const;
  }
  if (raw.startsWith('0x04')) {
    return {
      type: 'eip7702',
      view: TxEnvelopeEip7702.toRpc(TxEnvelopeEip7702.deserialize(hex as `0x04${string}`)),
    } as const;
  }
  if (raw.startsWith('0x76')) return undefined;
  return { type: 'legacy', view: TxEnvelopeLegacy.toRpc(TxEnvelopeLegacy.deserialize(hex)) } as const;
}

export function transactionBy(parts: EvmParts, hash: string) {
  const receipt = findReceipt(parts.state, hash);
  const envelope = envelopeOf(rawOf(parts, hash));
  const pending = receipt === undefined && parts.pool.isPending(hash);
  if (receipt === undefined && !pending) return null;
  const place = {
    hash,
    blockNumber: receipt === undefined ? null : quantity(receipt.block.number),
    blockHash: receipt === undefined ? null : parts.forks.hashOf(receipt.block.number),
    transactionIndex: receipt === undefined ? null : quantity(receipt.index),
  };
  const from = receipt?.sender ?? parts.pool.senderOf(hash) ?? NO_ADDRESS;
  if (envelope !== undefined) {
    const { data, ...view } = envelope.view as Record<string, unknown>;
    const price = receipt?.gasPrice ?? view.gasPrice ?? view.maxFeePerGas;
    return {
      ...view,
      ...{ ...place, from, input: view.input ?? data ?? '0x', type: rpcTypes[envelope.type] },
      gasPrice: typeof price === 'bigint' ? quantity(price) : price,
      // Clients expect fields with zero values and empty lists to be present.
      ...{ to: view.to ?? null, value: view.value ?? '0x0', nonce: view.nonce ?? '0x0' },
      ...(envelope.type === 'legacy' ? {} : { accessList: view.accessList ?? [] }),
    };
  }
  return {
    ...{
      ...place,
      from,
      to: receipt?.recipient ?? null,
      input: '0x',
      value: '0x0',
      nonce: '0x0',
      type: '0x0',
    },
    gas: quantity(receipt?.gasUsed ?? 0n),
    gasPrice: quantity(receipt?.gasPrice ?? 0n),
    ...{ v: '0x0', r: `0x${ZERO_WORD}`, s: `0x${ZERO_WORD}` },
  };
}
