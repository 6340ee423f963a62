import { invalidQuery } from '../../../errors.ts';

/** Where a page of a wallet's transactions ended, in each of the two merged lists. */
export interface TransactionCursor {
  /** The last of our own transactions. */
  readonly row: { readonly createdAtMs: number; readonly id: string } | undefined;
  /** The last of the chain's transfers. */
  readonly position: string | undefined;
}

/** One opaque string for both positions. */
export function writeCursor({ row, position }: TransactionCursor): string {
  const parts = [row?.createdAtMs ?? null, row?.id ?? null, position ?? null];
  return Buffer.from(JSON.stringify(parts)).toString('base64url');
}

/** @throws ApiError invalid_data */
export function readCursor(text: string | undefined): TransactionCursor {
  if (text === undefined) return { row: undefined, position: undefined };
  const parts = parse(text);
  if (parts === undefined) throw invalidQuery('cursor', 'expected the `next_cursor` of a previous page');
  const [createdAtMs, id, position] = parts;
  return {
    row: createdAtMs === null || id === null ? undefined : { createdAtMs, id },
    position: position ?? undefined,
  };
}

const ID = /^[0-9a-z]{1,64}$/;
// The format of transfer positions.
const POSITION = /^\d{1,15}$/;

function parse(text: string): [number | null, string | null, string | null] | undefined {
  try {
    const parts: unknown = JSON.parse(Buffer.from(text, 'base64url').toString());
    if (!Array.isArray(parts) || parts.length !== 3) return undefined;
    const [createdAtMs, id, position] = parts as unknown[];
    if (createdAtMs !== null && !Number.isSafeInteger(createdAtMs)) return undefined;
    if (id !== null && !(typeof id === 'string' && ID.test(id))) return undefined;
    if (position !== null && !(typeof position === 'string' && POSITION.test(position))) return undefined;
    return parts as [number | null, string | null, string | null];
  } catch {
    return undefined;
  }
}
