import { decodeSolanaUnits } from '../../../engine/actions/decode-solana-units.ts';
import { base58ToBytes, bytesToBase58, bytesToBase64 } from '../../../engine/crypto/encoding.ts';
import { InvalidSolanaTransactionError } from '../../../engine/signing/signing-errors.ts';
import { parseSolanaWire } from '../../../engine/signing/solana/signer.ts';
import {
  decodeSolanaTransaction,
  type SolanaTransaction,
  withFeePayer,
  withSignature,
} from '../../../engine/signing/solana/wire.ts';
import { ApiError } from '../../../errors.ts';
import type { SolanaChain } from '../../../ports/chains.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import type { BuiltTransaction } from './broadcast.ts';
import { callChain, chainRefusal, requireChain } from './call-chain.ts';

type FeePayer = NonNullable<SolanaChain['feePayer']>;

/** A transaction to send from one wallet. */
export interface SolanaDraft {
  readonly caip2: string;
  readonly address: string;
  /** The transaction in wire bytes, as base64. */
  readonly transaction: string;
  /** Whether the chain's fee payer pays the fee. */
  readonly isSponsored?: boolean | undefined;
}

export interface SolanaPlan {
  readonly chain: SolanaChain;
  readonly address: string;
  /** The wire bytes with a recent blockhash. */
  readonly wire: Uint8Array;
  /** The fee payer, which signs in addition to the wallet; undefined if the wallet pays the fee. */
  readonly feePayer?: FeePayer | undefined;
}

/**
 * Adds the fee payer if the transaction is sponsored, replaces the placeholder blockhash (32 zero bytes, all ones in
 * base58) with a recent one, and simulates the transaction.
 *
 * @throws ApiError and InvalidSolanaTransactionError: invalid_solana_transaction, also when another signer has signed
 * the placeholder; not_supported; insufficient_funds, transaction_execution_failure, transaction_broadcast_failure.
 */
export async function planSolana(
  context: Pick<OperationContext, 'chains'>,
  { caip2, address, transaction, isSponsored = false }: SolanaDraft,
): Promise<SolanaPlan> {
  const chain = requireChain(context, { caip2, kind: 'solana' });
  const given = parseSolanaWire(transaction);
  const isPlaceholder = decodeSolanaTransaction(given).recentBlockhash.every((byte) => byte === 0);
  const feePayer = isSponsored ? requireFeePayer(chain) : undefined;
  requireSigners(decodeSolanaTransaction(given), { address, isPlaceholder, isSponsored });
  const wire = feePayer === undefined ? given.slice() : withFeePayer(given, feePayer.address);
  const decoded = decodeSolanaTransaction(wire);
  if (isPlaceholder) {
    const { blockhash } = await callChain(chain.latestBlockhash());
    // The decoded fields are views into the wire bytes, so this changes the transaction.
    decoded.recentBlockhash.set(base58ToBytes(blockhash));
  }
  const simulation = await callChain(chain.simulate(wire));
  if (!simulation.succeeds) throw chainRefusal(simulation.reason, simulation.message);
  return { chain, address, wire, feePayer };
}

function requireFeePayer({ caip2, feePayer }: SolanaChain): FeePayer {
  if (feePayer !== undefined) return feePayer;
  throw new ApiError('not_supported', `/sponsor: no fee payer is available on \`${caip2}\``);
}

/** Requires that the wallet is a signer, that every other signer has signed, and that these signatures stay valid. */
function requireSigners(
  { signatures, staticKeys }: SolanaTransaction,
  { address, isPlaceholder, isSponsored }: { address: string; isPlaceholder: boolean; isSponsored: boolean },
): void {
  const signers = staticKeys.slice(0, signatures.length).map(bytesToBase58);
  if (!signers.includes(address)) {
    const message = `expected the wallet \`${address}\` among the required signers`;
    throw new InvalidSolanaTransactionError('/transaction', message);
  }
  for (const [index, signer] of signers.entries()) {
    if (signer === address) continue;
    const isSigned = signatures[index]!.some((byte) => byte !== 0);
    if (isSigned && isPlaceholder) {
      const message = `expected a recent blockhash: \`${signer}\` has signed the placeholder`;
      throw new InvalidSolanaTransactionError('/transaction', message);
    }
    if (isSponsored) {
      const message = `expected no other signer than the wallet with \`sponsor\`, got \`${signer}\``;
      throw new InvalidSolanaTransactionError('/transaction', message);
    }
    if (!isSigned) {
      throw new InvalidSolanaTransactionError('/transaction', `expected the signature of \`${signer}\``);
    }
  }
}

/** Builds the bytes of a planned transaction. Nothing is reserved: Solana accounts have no nonces. */
export function buildSolana({ chain, wire, feePayer }: SolanaPlan, method: string): BuiltTransaction {
  const transaction = bytesToBase64(wire);
  return {
    chain,
    action: { method, units: decodeSolanaUnits(transaction) },
    ...(feePayer === undefined ? {} : { sponsorship: 'fee_payer' as const }),
    async sign(key) {
      const data = await key.sign('signTransaction', { transaction, encoding: 'base64' });
      const signed = parseSolanaWire(data.signed_transaction);
      const { message } = decodeSolanaTransaction(signed);
      // The fee payer is the first signer.
      const bytes = feePayer === undefined ? signed : withSignature(signed, 0, await feePayer.sign(message));
      const [first = new Uint8Array()] = decodeSolanaTransaction(bytes).signatures;
      return { bytes, hash: bytesToBase58(first) };
    },
  };
}
