import { keccak_256 } from '@noble/hashes/sha3.js';
import { bytesTo0xHex, bytesToHex, hexToBytes } from '../../../../../engine/crypto/encoding.ts';
import { invalid } from '../../rpc-calls.ts';
import type { Overlay } from '../overlay.ts';
import { ZERO_WORD } from '../state.ts';
import { textOf } from '../state-manager.ts';
import type { ResultTracer } from './tracers.ts';
import { quantity } from './views.ts';

/** An account in the format of geth's `prestateTracer`. */
interface Shown {
  balance?: string;
  nonce?: number;
  code?: string;
  codeHash?: string;
  storage?: Record<string, string>;
}

/** The parts of an account's state that an execution has read, with their values either before it or after it. */
interface Account {
  balance: bigint;
  nonce: number;
  code: Uint8Array;
  readonly words: Map<string, string>;
}

interface Options {
  readonly withCode: boolean;
  readonly withStorage: boolean;
}

/**
 * Returns a tracer for the accounts that a transaction uses: their state before it, or only their changes. Its result
 * has the format of geth's `prestateTracer`.
 */
export function stateTracer(config: Readonly<Record<string, unknown>>): ResultTracer {
  const { diffMode, disableCode, disableStorage, includeEmpty } = config;
  if (diffMode === true && includeEmpty === true) {
    throw invalid('cannot use diffMode with includeEmpty');
  }
  const options = { withCode: disableCode !== true, withStorage: disableStorage !== true };
  // The machine reads the slot even if the operation then fails, for example for lack of gas.
  const used = new Set<string>();
  const begun: (string | undefined)[] = [];
  const noteUsed = (): void => {
    const slot = begun.at(-1);
    if (slot !== undefined) used.add(slot);
  };
  return {
    tracer: {
      enter() {
        noteUsed();
        begun.push(undefined);
      },
      exit({ execResult: { exceptionError } }) {
        if (exceptionError === undefined) noteUsed();
        begun.pop();
      },
      step({ opcode: { name }, stack, address }) {
        noteUsed();
        const slot = name === 'SLOAD' || name === 'SSTORE' ? stack.at(-1) : undefined;
        begun[begun.length - 1] = slot === undefined ? undefined : wordKey(textOf(address), slot);
      },
    },
    resultOf({ overlay }) {
      const all: Record<string, Shown> = {};
      const [pre, post]: [Record<string, Shown>, Record<string, Shown>] = [{}, {}];
      for (const [address, [before, after]] of accountsOf(overlay, used)) {
        const isEmpty = before.nonce === 0 && before.balance === 0n && before.code.length === 0;
        if (!isEmpty || includeEmpty === true) all[address] = shown(before, before.words, options);
        if (diffMode !== true) continue;
        const changed = changesOf(before, after, options);
        if (changed === undefined) continue;
        if (!isEmpty) {
          const words = [...before.words].filter(([slot, word]) => {
            return word !== ZERO_WORD && after.words.get(slot) !== word;
          });
          pre[address] = shown(before, new Map(words), options);
        }
        post[address] = changed;
      }
      return diffMode === true ? { pre, post } : all;
    },
  };
}

function wordKey(address: string, slot: bigint): string {
  return `word ${address} ${slot.toString(16).padStart(64, '0')}`;
}

/** Returns the accounts that an execution has read: their state before it, and their current state. */
function accountsOf(
  overlay: Overlay,
  used: ReadonlySet<string>,
): Map<string, [before: Account, after: Account]> {
  const accounts = new Map<string, [Account, Account]>();
  for (const [key, { original, value }] of overlay.cells()) {
    const [kind = '', address = '', second = ''] = key.split(' ');
    // The account that collects fees has no address.
    if (!/^0x[0-9a-f]{40}$/.test(address) || (kind === 'word' && !used.has(key))) continue;
    const none = (): Account => ({ balance: 0n, nonce: 0, code: new Uint8Array(), words: new Map() });
    const pair = accounts.get(address) ?? [none(), none()];
    accounts.set(address, pair);
    for (const [at, account] of pair.entries())
      note(account, { kind, second, value: at === 0 ? original : value });
  }
  return accounts;
}

/** Adds one cell of an overlay to its account's state. `makeOverlay` defines the names of cells. */
function note(
  account: Account,
  { kind, second, value }: { kind: string; second: string; value: unknown },
): void {
  if (kind === 'balance') account.balance = value as bigint;
  else if (kind === 'nonce' && second === '') account.nonce = value as number;
  else if (kind === 'code' && account.code.length === 0) account.code = value as Uint8Array;
  else if (kind === 'delegate' && value !== undefined)
    account.code = hexToBytes(`ef0100${String(value).slice(2)}`);
  else if (kind === 'word') account.words.set(second, value as string);
}

function shown(
  { balance, nonce, code }: Account,
  words: ReadonlyMap<string, string>,
  { withCode, withStorage }: Options,
): Shown {
  return {
    balance: quantity(balance),
    ...(nonce === 0 ? {} : { nonce }),
    ...(code.length === 0 ? {} : { codeHash: bytesTo0xHex(keccak_256(code)) }),
    ...(code.length === 0 || !withCode ? {} : { code: bytesTo0xHex(code) }),
    ...(words.size === 0 || !withStorage ? {} : { storage: storageOf(words) }),
  };
}

function storageOf(words: Iterable<readonly [string, string]>): Record<string, string> {
  return Object.fromEntries([...words].map(([slot, word]) => [`0x${slot}`, `0x${word}`]));
}

/** Returns the fields that have changed, or undefined if none have. */
function changesOf(before: Account, after: Account, { withCode, withStorage }: Options): Shown | undefined {
  const hasNewCode = bytesToHex(before.code) !== bytesToHex(after.code);
  const words = [...after.words].filter(([slot, word]) => before.words.get(slot) !== word);
  const isChanged =
    before.balance !== after.balance || before.nonce !== after.nonce || hasNewCode || words.length > 0;
  if (!isChanged) return undefined;
  const kept = words.filter(([, word]) => word !== ZERO_WORD);
  return {
    ...(before.balance === after.balance ? {} : { balance: quantity(after.balance) }),
    ...(before.nonce === after.nonce ? {} : { nonce: after.nonce }),
    ...(hasNewCode ? { codeHash: bytesTo0xHex(keccak_256(after.code)) } : {}),
    ...(hasNewCode && withCode ? { code: bytesTo0xHex(after.code) } : {}),
    ...(kept.length === 0 || !withStorage ? {} : { storage: storageOf(kept) }),
  };
}
