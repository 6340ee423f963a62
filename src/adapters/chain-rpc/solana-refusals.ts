import { bytesToBase58 } from '../../crypto/encoding.ts';
import type { BroadcastRefusal } from '../../ports/chains.ts';
import { decodeSolanaTransaction } from '../../signing/solana/wire.ts';
import { cutText, type NodeError } from './endpoint.ts';

const SYSTEM_PROGRAM = '11111111111111111111111111111111';
const PREFLIGHT_FAILED = -32002;
/** SystemError::ResultWithNegativeLamports. */
const NEGATIVE_LAMPORTS = 1;

// By the name of TransactionError; all others are `invalid`. Source: solana-transaction-error.
const reasons: Readonly<Record<string, BroadcastRefusal>> = {
  AccountNotFound: 'insufficient_funds',
  BlockhashNotFound: 'stale',
  InsufficientFundsForFee: 'insufficient_funds',
  InsufficientFundsForRent: 'reverts',
  InvalidRentPayingAccount: 'reverts',
  InstructionError: 'reverts',
  ProgramAccountNotFound: 'reverts',
};

/** Whether the transaction was already processed, which counts as a successful broadcast. */
export function isAlreadyKnown({ data, message }: NodeError): boolean {
  return (
    nameOf((data as { err?: unknown } | undefined)?.err) === 'AlreadyProcessed' ||
    /already been processed/i.test(message)
  );
}

/** Maps a node's error to the port's refusal reasons. */
export function classifyRefusal(
  error: NodeError,
  wire: Uint8Array,
): { reason: BroadcastRefusal; message: string } {
  const { err, logs } = (error.data ?? {}) as { err?: unknown; logs?: unknown };
  if (error.code === PREFLIGHT_FAILED && err !== undefined) return classifyFailure(err, logs, wire);
  return { reason: 'invalid', message: error.message };
}

/** Maps a TransactionError to the port's refusal reasons; the message includes the last error line of the logs. */
export function classifyFailure(
  err: unknown,
  logs: unknown,
  wire: Uint8Array,
): { reason: BroadcastRefusal; message: string } {
  const name = nameOf(err) ?? 'unknown error';
  const reason = isShortfall(err, wire) ? 'insufficient_funds' : (reasons[name] ?? 'invalid');
  const logLine = Array.isArray(logs)
    ? logs.map((line) => cutText(String(line))).findLast((line) => /failed|error|insufficient/i.test(line))
    : undefined;
  const detail =
    name === 'InstructionError'
      ? JSON.stringify((err as { InstructionError: unknown }).InstructionError)
      : undefined;
  const parts = [name, detail, logLine].filter((part) => part !== undefined);
  return { reason, message: cutText(parts.join(': ')) };
}

/** `"Name"` or `{"Name": …}`. */
function nameOf(err: unknown): string | undefined {
  if (typeof err === 'string') return err;
  return typeof err === 'object' && err !== null ? Object.keys(err)[0] : undefined;
}

/** Whether a transfer of the system program exceeded the sender's lamports. */
function isShortfall(err: unknown, wire: Uint8Array): boolean {
  const failure = (err as { InstructionError?: unknown } | null)?.InstructionError;
  if (!Array.isArray(failure)) return false;
  const [index, cause] = failure as [number, { Custom?: number } | string];
  if (typeof cause !== 'object' || cause.Custom !== NEGATIVE_LAMPORTS) return false;
  const { instructions, staticKeys } = decodeSolanaTransaction(wire);
  const program = staticKeys[instructions[index]?.programIndex ?? -1];
  return program !== undefined && bytesToBase58(program) === SYSTEM_PROGRAM;
}
