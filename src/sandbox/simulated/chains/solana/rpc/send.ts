import { concatBytes } from '../../../../../engine/crypto/encoding.ts';
import { SigningInputError } from '../../../../../engine/signing/signing-errors.ts';
import { assertNodeAvailable } from '../../decode-or-refuse.ts';
import { invalid, isRecord, RpcError } from '../../rpc-calls.ts';
import { addToPool, errorOf, preflight } from '../accept-transaction.ts';
import { EMPTY_ACCOUNT } from '../accounts.ts';
import { describeError, type TransactionError } from '../failures.ts';
import type { SolanaRun } from '../machine.ts';
import { BLOCKHASH_LIFE, type SolanaParts } from '../parts.ts';
import { type DecodedSolana, decodeSolana, isSigned } from '../plan.ts';
import { accountView, shapeOf } from './accounts.ts';
import {
  addressOf,
  choiceOf,
  commitmentOf,
  contextOf,
  listOf,
  optionsOf,
  PREFLIGHT_FAILURE,
  SIGNATURE_FAILURE,
  wireOf,
} from './params.ts';
import { innerView, returnView, tokenBalanceView } from './transactions.ts';

// The methods that send or simulate a transaction.

const SIGNATURES_FAIL = 'Transaction signature verification failure';

function decoded(value: unknown, encoding: unknown): DecodedSolana {
  return decodedFrom(wireOf(value, choiceOf(encoding, ['base58', 'base64'], 'base58')));
}

function decodedFrom(wire: Uint8Array): DecodedSolana {
  try {
    return decodeSolana(wire);
  } catch (error) {
    if (!(error instanceof SigningInputError)) throw error;
    throw invalid(
      `failed to deserialize solana_transaction::versioned::VersionedTransaction: ${error.message}`,
    );
  }
}

/** Accepts a signed transaction of any sender and returns its signature. */
export async function sendTransaction(
  parts: SolanaParts,
  [value, second]: readonly unknown[],
): Promise<string> {
  const options = optionsOf(second);
  commitmentOf({ commitment: options.preflightCommitment });
  const transaction = decoded(value, options.encoding);
  contextOf(parts, { minContextSlot: options.minContextSlot });
  const { hash, plan } = transaction;
  const isTrusted = options.skipPreflight === true;
  const hasSigned = isSigned(transaction);
  if (!isTrusted && !hasSigned) throw new RpcError(SIGNATURE_FAILURE, SIGNATURES_FAIL);
  assertNodeAvailable(plan.sentinel);
  const executor = await parts.executor();
  await parts.atHead(() => {
    const { pool, isAlive } = parts;
    if (pool.isPending(hash)) return;
    if (!isTrusted) {
      const run: SolanaRun = pool.isKnown(hash)
        ? { kind: 'refused', error: 'AlreadyProcessed' }
        : preflight(parts, transaction, executor);
      const error = errorOf(run);
      if (error !== null) throw preflightFailure(error, run);
    }
    // Without a preflight, a leader silently drops a transaction that it cannot include.
    if (pool.isKnown(hash) || !hasSigned || !isAlive(plan.blockhash)) return;
    addToPool(parts, transaction);
  });
  await parts.blocks.catchUp();
  return hash;
}

function preflightFailure(error: TransactionError, run: SolanaRun): RpcError {
  const outcome = run.kind === 'ran' ? run.outcome : undefined;
  return new RpcError(PREFLIGHT_FAILURE, `Transaction simulation failed: ${describeError(error)}`, {
    ...{ accounts: null, err: error, innerInstructions: null, logs: outcome?.logs ?? [] },
    ...{ replacementBlockhash: null, returnData: null, unitsConsumed: outcome?.units ?? 0 },
  });
}

/** Executes a transaction without including it. */
export async function simulateTransaction(parts: SolanaParts, [value, second]: readonly unknown[]) {
  const options = optionsOf(second);
  const { sigVerify, replaceRecentBlockhash: isReplaced } = options;
  if (sigVerify === true && isReplaced === true) {
    throw invalid('sigVerify may not be used with replaceRecentBlockhash');
  }
  const transaction = decoded(value, options.encoding);
  const context = contextOf(parts, options);
  const wanted = wantedOf(options.accounts, transaction);
  if (sigVerify === true && !isSigned(transaction)) throw new RpcError(SIGNATURE_FAILURE, SIGNATURES_FAIL);
  const executor = await parts.executor();
  let accounts: (object | null)[] | null = null;
  const run = await parts.atHead((): SolanaRun => {
    if (
      sigVerify === true &&
      parts.pool.isKnown(transaction.hash) &&
      !parts.pool.isPending(transaction.hash)
    ) {
      return { kind: 'refused', error: 'AlreadyProcessed' };
    }
    return preflight(parts, transaction, executor, {
      isBlockhashChecked: isReplaced !== true,
      inspect() {
        accounts =
          wanted?.addresses.map((address) => {
            const account = parts.state.account(address);
            return account === EMPTY_ACCOUNT ? null : accountView(parts, account, wanted.shape);
          }) ?? null;
      },
    });
  });
  const ran = run.kind === 'ran' ? run : undefined;
  const error = errorOf(run);
  const { number } = parts.blocks.head();
  const isInnerShown = options.innerInstructions === true;
  return {
    context,
    value: {
      err: error,
      logs: ran?.outcome.logs ?? [],
      accounts: error === null ? accounts : (wanted?.addresses.map(() => null) ?? null),
      unitsConsumed: ran?.outcome.units ?? 0,
      returnData: ran?.receipt.returned == null ? null : returnView(ran.receipt.returned),
      innerInstructions:
        isInnerShown && ran !== undefined ? innerView(ran.receipt, ran.resolved, true) : null,
      replacementBlockhash:
        isReplaced === true
          ? { blockhash: parts.blockhashAt(number), lastValidBlockHeight: number + BLOCKHASH_LIFE }
          : null,
      fee: ran?.fee ?? null,
      loadedAddresses: ran?.resolved.loaded ?? null,
      preBalances: ran?.receipt.before ?? null,
      postBalances: ran?.receipt.after ?? null,
      preTokenBalances: ran?.receipt.tokensBefore.map(tokenBalanceView) ?? null,
      postTokenBalances: ran?.receipt.tokensAfter.map(tokenBalanceView) ?? null,
    },
  };
}

function wantedOf(value: unknown, { keys, transaction }: DecodedSolana) {
  if (value === undefined || value === null) return undefined;
  if (!isRecord(value)) throw invalid('Invalid params: expected `accounts` as an object.');
  const { addresses, encoding = 'base64' } = value;
  const loaded = transaction.lookups.reduce(
    (sum, { writableIndexes, readonlyIndexes }) => sum + writableIndexes.length + readonlyIndexes.length,
    0,
  );
  const most = keys.length + loaded;
  if (Array.isArray(addresses) && addresses.length > most) {
    throw invalid(`Too many accounts provided; max ${most}`);
  }
  if (encoding === 'base58' || encoding === 'binary') throw invalid('base58 encoding not supported');
  return { addresses: listOf(addresses, most).map(addressOf), shape: shapeOf({ encoding }) };
}

/** Returns the fee of a message, or null once its blockhash has expired. */
export function feeForMessage(parts: SolanaParts, [value, second]: readonly unknown[]) {
  const context = contextOf(parts, optionsOf(second));
  const message = wireOf(value, 'base64');
  // With a placeholder for each of its signatures, the message becomes a transaction that can be decoded.
  const isVersioned = (message[0] ?? 0) >= 0x80;
  const count = message[isVersioned ? 1 : 0] ?? 0;
  const wire = concatBytes(Uint8Array.of(count), new Uint8Array(64 * count), message);
  const { plan } = decodedFrom(wire);
  return { context, value: parts.isAlive(plan.blockhash) ? plan.fee : null };
}
