import { sha256 } from '@noble/hashes/sha2.js';
import { decodeTronUnits } from '../../../engine/actions/decode-raw-bytes.ts';
import { bytesToHex, hexToBytes } from '../../../engine/crypto/encoding.ts';
import { encodeTronRawData, type TronRawData } from '../../../engine/signing/tron/raw-data.ts';
import { tronAddressText } from '../../../engine/signing/tron/signer.ts';
import { invalidField } from '../../../errors.ts';
import type { TronRawDataForSend } from '../../../generated/schemas.ts';
import type { TronChain } from '../../../ports/chains.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import type { BuiltTransaction } from './broadcast.ts';
import { callChain, chainRefusal, requireChain } from './call-chain.ts';

/** The network of requests that name none: TRON mainnet. */
export const TRON_MAINNET = 'tron:0x2b6653dc';

/** CHOICE: a transaction without an expiration is valid for one minute, the default of the network's own libraries. */
const LIFETIME_MS = 60_000;

export interface TronDraft {
  readonly caip2: string;
  readonly address: string;
  readonly rawData: TronRawDataForSend;
}

export interface TronPlan {
  readonly chain: TronChain;
  readonly rawData: TronRawData;
  /** The energy that the smart contract used in the simulation. */
  readonly energy: bigint;
}

/**
 * Fills in the reference block, expiration and timestamp of a transaction, and simulates it.
 *
 * @throws ApiError and SigningInputError: invalid_data, also when the contract's `owner_address` is not the wallet's
 * address; not_supported; insufficient_funds, transaction_execution_failure, transaction_broadcast_failure.
 */
export async function planTron(
  context: Pick<OperationContext, 'chains' | 'nowMs'>,
  { caip2, address, rawData }: TronDraft,
): Promise<TronPlan> {
  const chain = requireChain(context, { caip2, kind: 'tron' });
  const { ref_block_bytes: bytes, ref_block_hash: hash } = rawData;
  if ((bytes === undefined) !== (hash === undefined)) {
    const missing = bytes === undefined ? 'ref_block_bytes' : 'ref_block_hash';
    throw invalidField(`/params/raw_data/${missing}`, 'expected both fields of the reference block or none');
  }
  const block = hash === undefined ? await callChain(chain.referenceBlock()) : undefined;
  const filled = {
    ...rawData,
    ref_block_bytes: bytes ?? block?.refBlockBytes ?? '',
    ref_block_hash: hash ?? block?.refBlockHash ?? '',
    expiration: rawData.expiration ?? context.nowMs + LIFETIME_MS,
    timestamp: rawData.timestamp ?? context.nowMs,
  } as TronRawData;
  requireOwnerAddress(filled, address);
  const simulation = await callChain(chain.simulate(encodeTronRawData(filled)));
  if (!simulation.succeeds) throw chainRefusal(simulation.reason, simulation.message);
  return { chain, rawData: filled, energy: simulation.units };
}

function requireOwnerAddress({ contract: [contract] }: TronRawData, address: string): void {
  const owner = contract?.owner_address ?? '';
  if (/^41[0-9a-fA-F]{40}$/.test(owner) && tronAddressText(hexToBytes(owner.toLowerCase())) === address)
    return;
  const pointer = '/params/raw_data/contract/0/owner_address';
  throw invalidField(pointer, `expected the wallet \`${address}\`, got \`${owner.slice(0, 80)}\``);
}

/** Builds the bytes of a planned transaction. Nothing is reserved: TRON accounts have no nonces. */
export function buildTron({ chain, rawData }: TronPlan, method: string): BuiltTransaction {
  const encoded = encodeTronRawData(rawData);
  return {
    chain,
    action: {
      method,
      units: decodeTronUnits(encoded) ?? [{ label: 'transaction', undecodable: 'of another kind' }],
    },
    async sign(key) {
      const { signed_transaction: signed } = await key.sign('tron_signTransaction', { raw_data: rawData });
      return { bytes: hexToBytes(signed), hash: bytesToHex(sha256(encoded)) };
    },
  };
}
