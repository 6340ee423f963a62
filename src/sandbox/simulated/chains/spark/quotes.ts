import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '../../../../engine/crypto/encoding.ts';
import { ecBackend, encodeDerSignature } from '../../../../engine/crypto/secp256k1.ts';
import type {
  SparkDeposit,
  SparkDepositQuote,
  SparkWithdrawal,
  SparkWithdrawalQuote,
} from '../../../../ports/spark.ts';
import { NATIVE } from '../ledger.ts';
import type { World } from '../world.ts';

/** CHOICE: a fixed, public key, because the signatures of the simulated operators protect nothing of value. */
export const OPERATOR_SECRET = new Uint8Array(32).fill(0x5a);

// CHOICE: constant operator fees in sats.
const DEPOSIT_FEE = 99n;
const EXIT_FEES = {
  FAST: { operatorSats: 150n, networkSats: 1_500n },
  MEDIUM: { operatorSats: 150n, networkSats: 900n },
  SLOW: { operatorSats: 150n, networkSats: 450n },
} as const;
const QUOTE_LIFE_MS = 10 * 60_000;

/** Quotes the claim of a deposit. Returns undefined if the deposit does not exist or does not exceed the fee. */
export function quoteDeposit(
  { store }: World,
  caip2: string,
  { depositAddress, transactionId, outputIndex = 0 }: SparkDeposit,
): SparkDepositQuote | undefined {
  const row = store.first<{ amount: string }>(
    'select amount from transfers where caip2 = ? and hash = ? and recipient = ? and asset = ?',
    ...[caip2, transactionId.toLowerCase(), depositAddress, NATIVE],
  );
  const amount = BigInt(row?.amount ?? 0);
  // A deposit from the faucet has only one output.
  if (outputIndex !== 0 || amount <= DEPOSIT_FEE) return undefined;
  const creditSats = amount - DEPOSIT_FEE;
  const digest = digestOf(caip2, transactionId.toLowerCase(), outputIndex, creditSats);
  const signature = bytesToHex(encodeDerSignature(ecBackend.sign(digest, OPERATOR_SECRET).compact));
  return { creditSats, feeSats: DEPOSIT_FEE, outputIndex, signature };
}

/**
 * Quotes a withdrawal, or checks the quote with the given id. Returns undefined if that quote has expired or has other
 * terms. The id encodes the expiry and a digest of the terms, so that quotes need not be stored.
 */
export function quoteWithdrawal(
  nowMs: number,
  caip2: string,
  { onchainAddress, sats, quoteId }: SparkWithdrawal,
): SparkWithdrawalQuote | undefined {
  const quotedExpiryMs = Number.parseInt(quoteId?.split('-')[0] ?? '', 36);
  const expiresAtMs = quoteId === undefined ? nowMs + QUOTE_LIFE_MS : quotedExpiryMs;
  if (!Number.isSafeInteger(expiresAtMs) || expiresAtMs <= nowMs) return undefined;
  const seal = digestOf(caip2, bytesToHex(OPERATOR_SECRET), onchainAddress, sats, expiresAtMs);
  const id = `${expiresAtMs.toString(36)}-${bytesToHex(seal.subarray(0, 16))}`;
  if (quoteId !== undefined && quoteId !== id) return undefined;
  return { id, expiresAtMs, fees: EXIT_FEES };
}

function digestOf(...parts: readonly (string | number | bigint)[]): Uint8Array {
  return sha256(utf8ToBytes(parts.join(' ')));
}
